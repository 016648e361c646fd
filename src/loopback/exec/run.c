/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * run.c -- the work that a thread put off until it holds no lock: send queues
 * to flush or to continue, and events for completion channels.
 */

#include "exec/exec.h"
#include "internal.h"

void lb_run_begin(struct lb_run *run)
{
	run->due.first = NULL;
	run->kick = NULL;
	run->kick2 = NULL;
}

static void kick_job(void *arg)
{
	lb_qp_kick(arg);
}

int lb_kick_later(struct lb_qp *qp, uint64_t delay_ns)
{
	/* a slot is never freed: whoever has it then may be kicked */
	return lb_service_post(kick_job, qp, delay_ns);
}

void lb_run_kick(struct lb_run *run, struct lb_qp *qp)
{
	if (!run->kick || run->kick == qp)
		run->kick = qp;
	else if (!run->kick2 || run->kick2 == qp)
		run->kick2 = qp;
	else if (lb_kick_later(qp, 0))
		lb_log(0, "no memory: a send queue is not flushed");
}

static struct lb_qp *next_kick(struct lb_run *run)
{
	struct lb_qp *qp = run->kick;

	run->kick = run->kick2;
	run->kick2 = NULL;
	return qp;
}

static void pay(struct lb_run *run)
{
	struct lb_qp *qp;

	while ((qp = next_kick(run))) {
		lb_lock_get(&qp->sq_lock);
		lb_sq_submit(run, qp);
		lb_lock_put(&qp->sq_lock);
	}
	lb_due_pay(&run->due);
}

void lb_run_end(struct lb_run *run)
{
	while (run->kick || run->due.first)
		pay(run);
}

void lb_qp_kick(struct lb_qp *qp)
{
	struct lb_run run;

	lb_run_begin(&run);
	lb_run_kick(&run, qp);
	lb_run_end(&run);
}
