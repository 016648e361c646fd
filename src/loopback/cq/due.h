/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * due.h -- events of completion queues that a thread made and still has.
 */

#ifndef LB_CQ_DUE_H
#define LB_CQ_DUE_H

struct lb_cq;

/*
 * The CQs with events that a thread has made and not yet handed over, in the
 * order of their completions.
 */
struct lb_due {
	struct lb_cq *first;
	struct lb_cq *last; /* if there is a first */
};

/* An event of cq is made, push held; all are handed over, no lock */
void lb_due_add(struct lb_due *due, struct lb_cq *cq);
void lb_due_pay(struct lb_due *due);

#endif /* LB_CQ_DUE_H */
