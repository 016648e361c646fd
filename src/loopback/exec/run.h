/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * run.h -- has send queues executed.
 */

#ifndef LB_EXEC_RUN_H
#define LB_EXEC_RUN_H

#include "qp/kick.h"
#include "wire/nic.h"

struct lb_qp;

void lb_run_submit(struct lb_run *run, struct lb_qp *qp); /* sq.lock */
void lb_run_again(struct lb_qp *qp);			  /* no lock held */
void lb_run_begin(struct lb_run *run);
void lb_run_end(struct lb_run *run);
void lb_run_with(void (*fn)(void *arg, struct lb_run *run), void *arg);

/*
 * What other processes sent is taken first, by a verb that is about to take a
 * lock; not between ibv_wr_start() and what ends it, when a lock is held: those
 * two say so.
 */
static inline void lb_run_look(void)
{
	if (lb_nic_has_links())
		lb_nic_poll();
}
void lb_run_hold(void);
void lb_run_release(void);

#endif /* LB_EXEC_RUN_H */
