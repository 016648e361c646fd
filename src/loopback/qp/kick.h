/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * kick.h -- what a thread owes once it holds no lock.
 */

#ifndef LB_QP_KICK_H
#define LB_QP_KICK_H

#include <stdint.h>

#include "cq/due.h"

struct lb_qp;

/*
 * What a thread owes once it holds no lock: events to hand over, and a QP to
 * look after. Made by lb_run_begin(), paid by lb_run_end().
 */
struct lb_run {
	struct lb_due due;
	struct lb_qp *kick;
	struct lb_qp *kick2;
	/* Look at qp after a while, in the service thread. 0 or ENOMEM. */
	int (*later)(struct lb_qp *qp, uint64_t delay_ns);
};

/* A queue pair to look after; the next of those, or NULL */
void lb_kick_add(struct lb_run *run, struct lb_qp *qp);
struct lb_qp *lb_kick_next(struct lb_run *run);

#endif /* LB_QP_KICK_H */
