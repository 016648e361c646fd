/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * sq.h -- the ring of posted sends of a queue pair; sq.lock held.
 */

#ifndef LB_QP_SQ_H
#define LB_QP_SQ_H

#include <stdbool.h>
#include <stdint.h>

#include "base/base.h"
#include "base/lock.h"
#include "qp/qp.h"

struct lb_wqe;

/* The slow half of lb_sq_lock_to_post(): a batch is open. */
void lb_sq_wait_for_batch(struct lb_qp *qp);

/*
 * Takes sq.lock for a post or a batch; waits while a batch is open, exec/wr.c.
 */
static inline void lb_sq_lock_to_post(struct lb_qp *qp)
{
	lb_lock_get(&qp->sq_lock);
	if (!lb_likely(!qp->sq_batch))
		lb_sq_wait_for_batch(qp);
}

struct lb_wqe *lb_sq_slot(const struct lb_qp *qp, uint32_t pos);
bool lb_sq_has_room(struct lb_qp *qp, uint32_t pos);
/* What is under way to another process is as if it had not been sent. */
void lb_sq_go_back(struct lb_qp *qp);
/* Raise SQ_DRAINED if it is due; sq.lock held. */
void lb_sq_drained(struct lb_qp *qp);

#endif /* LB_QP_SQ_H */
