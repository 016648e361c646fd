/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * sq.c -- the ring of posted sends of a queue pair. All under its sq.lock.
 */

#include "qp/sq.h"

#include <stdatomic.h>

#include "base/base.h"
#include "base/cancel.h"
#include "base/lock.h"
#include "qp/qp.h"
#include "qp/wqe.h"

void lb_sq_wait_for_batch(struct lb_qp *qp)
{
	LB_NOT_CANCELLED;
	unsigned tries = 0;

	do {
		lb_lock_put(&qp->sq_lock);
		lb_lock_pause(tries++);
		lb_lock_get(&qp->sq_lock);
	} while (qp->sq_batch);
}

struct lb_wqe *lb_sq_slot(const struct lb_qp *qp, uint32_t pos)
{
	return (struct lb_wqe *)(qp->sq +
				 (size_t)(pos & qp->sq_mask) * qp->sq_stride);
}

bool lb_sq_has_room(struct lb_qp *qp, uint32_t pos)
{
	if (lb_likely(pos - qp->sq_freed_seen < qp->cap.max_send_wr))
		return true;
	/* acquire: pairs with the release in lb_advance() */
	qp->sq_freed_seen =
		atomic_load_explicit(&qp->sq_freed, memory_order_acquire);
	return pos - qp->sq_freed_seen < qp->cap.max_send_wr;
}

void lb_sq_go_back(struct lb_qp *qp)
{
	struct lb_remote *r = &qp->remote;

	r->acked.pos = qp->sq_exec;
	r->sent = r->acked;
	r->reads = r->acked.offset &&
		   lb_wqe_is_counted(lb_sq_slot(qp, qp->sq_exec));
}

void lb_sq_drained(struct lb_qp *qp)
{
	/* relaxed: SQD is left only with sq.lock, which we hold */
	if (!qp->sq_drained_wanted || qp->exec.begun ||
	    atomic_load_explicit(&qp->state, memory_order_relaxed) !=
		    IBV_QPS_SQD)
		return;
	qp->sq_drained_wanted = false;
	lb_qp_event(qp, IBV_EVENT_SQ_DRAINED);
}
