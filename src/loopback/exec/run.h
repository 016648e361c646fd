/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * run.h -- has send queues executed.
 */

#ifndef LB_EXEC_RUN_H
#define LB_EXEC_RUN_H

#include <stdatomic.h>

#include "qp/kick.h"
#include "qp/qp.h"
#include "wire/nic.h"

void lb_run_submit(struct lb_run *run, struct lb_qp *qp); /* sq.lock */
void lb_run_again(struct lb_qp *qp);			  /* no lock held */
void lb_run_begin(struct lb_run *run);
void lb_run_end(struct lb_run *run);
void lb_run_with(void (*fn)(void *arg, struct lb_run *run), void *arg);

/*
 * Takes what the peer's process sent: called by a post before its first lock.
 */
static inline void lb_run_look(const struct lb_qp *qp)
{
	struct lb_link *link;

	if (!lb_nic_has_links())
		return;
	/* relaxed: see lb_remote.look */
	link = atomic_load_explicit(&qp->remote.look, memory_order_relaxed);
	if (link)
		lb_nic_poll_link(link);
}

#endif /* LB_EXEC_RUN_H */
