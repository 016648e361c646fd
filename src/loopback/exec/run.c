/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * run.c -- send queues are executed: by the thread that posts, by the progress
 * thread, or by the service thread when a wait is over; and what such a thread
 * put off until it holds no lock, send queues to flush or to continue, events
 * for completion channels, and a look at what other processes sent.
 */

#include "exec/run.h"

#include <stdatomic.h>

#include "base/base.h"
#include "base/lock.h"
#include "base/process.h"
#include "base/service.h"
#include "cq/due.h"
#include "exec/exec.h"
#include "exec/remote.h"
#include "exec/thread.h"
#include "qp/kick.h"
#include "qp/qp.h"
#include "rpma_loopback.h"
#include "wire/nic.h"

static void again_job(void *arg)
{
	lb_run_again(arg);
}

static int later(struct lb_qp *qp, uint64_t delay_ns)
{
	/* a slot is never freed: whichever queue pair has it then */
	return lb_service_post(again_job, qp, delay_ns);
}

void lb_run_begin(struct lb_run *run)
{
	run->due.first = NULL;
	run->kick = NULL;
	run->kick2 = NULL;
	run->later = later;
}

static enum lb_step execute(struct lb_run *run, struct lb_qp *qp,
			    uint64_t budget)
{
	return lb_likely(!qp->remote.link) ? lb_exec_run(run, qp, budget)
					   : lb_remote_run(run, qp, budget);
}

static void slice(struct lb_qp *qp, uint64_t budget)
{
	struct lb_run run;
	enum lb_step step;

	lb_run_begin(&run);
	lb_lock_get(&qp->sq_lock);
	step = execute(&run, qp, budget);
	if (step == LB_AGAIN)
		lb_thread_add(qp, slice);
	lb_lock_put(&qp->sq_lock);
	lb_run_end(&run);
}

void lb_run_submit(struct lb_run *run, struct lb_qp *qp)
{
	/* relaxed: an option */
	if (lb_likely(atomic_load_explicit(&lb.mode, memory_order_relaxed) ==
		      RPMA_LOOPBACK_INLINE))
		execute(run, qp, UINT64_MAX);
	else if (qp->sq_exec != qp->sq_tail)
		lb_thread_add(qp, slice);
}

static void pay(struct lb_run *run)
{
	struct lb_qp *qp;

	while ((qp = lb_kick_next(run))) {
		lb_lock_get(&qp->sq_lock);
		lb_run_submit(run, qp);
		lb_lock_put(&qp->sq_lock);
	}
	lb_due_pay(&run->due);
}

/* Some send queue found no room: it may be there meanwhile. */
static void look_for_room(struct lb_run *run)
{
	do {
		lb_nic_look(lb_nic_self(), run);
		while (run->kick || run->due.first)
			pay(run);
	} while (lb_nic_owes());
}

void lb_run_end(struct lb_run *run)
{
	while (run->kick || run->due.first)
		pay(run);
	if (lb_nic_owes())
		look_for_room(run);
}

void lb_run_with(void (*fn)(void *arg, struct lb_run *run), void *arg)
{
	struct lb_run run;

	lb_run_begin(&run);
	fn(arg, &run);
	lb_run_end(&run);
}

void lb_run_again(struct lb_qp *qp)
{
	struct lb_run run;

	lb_run_begin(&run);
	lb_kick_add(&run, qp);
	lb_run_end(&run);
}
