/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * thread.h -- the progress thread.
 */

#ifndef LB_EXEC_THREAD_H
#define LB_EXEC_THREAD_H

#include <stdbool.h>
#include <stdint.h>

#include "base/process.h"

struct lb_qp;

/*
 * Have fn(qp, budget) called for slices of random size, until it does not add
 * qp again.
 */
void lb_thread_add(struct lb_qp *qp,
		   void (*fn)(struct lb_qp *qp, uint64_t budget));
bool lb_thread_step(void); /* one slice of one QP; false: nothing to do */
bool lb_thread_has_work(void);
/* Look again whether the scheduler has gone. */
void lb_thread_wake(void);
/* Wait until it sees that the scheduler is on, and does nothing. */
void lb_thread_rest(void);
/* A child has neither the thread nor the work of its parent. */
void lb_thread_fork(enum lb_fork_step step);

#endif /* LB_EXEC_THREAD_H */
