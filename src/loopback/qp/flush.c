/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * flush.c -- queue pairs go to error: the requests in their queues complete
 * with IBV_WC_WR_FLUSH_ERR. Run by the thread that made the error, under the
 * locks that flush.h names for each.
 */

#include "qp/flush.h"

#include <stdatomic.h>
#include <string.h>

#include "base/lock.h"
#include "cq/cq.h"
#include "fault/fault.h"
#include "object/device.h"
#include "qp/kick.h"
#include "qp/qp.h"
#include "qp/resp.h"
#include "qp/rq.h"
#include "qp/sq.h"
#include "wire/link.h"

static void flush_one(struct lb_run *run, struct lb_qp *qp, struct lb_cq *cq,
		      uint64_t wr_id, _Atomic uint32_t *freed, uint32_t pos)
{
	struct ibv_wc wc = {
		.wr_id = wr_id,
		.status = IBV_WC_WR_FLUSH_ERR,
		/* relaxed: constant while this lock is held */
		.qp_num = atomic_load_explicit(&qp->qpn, memory_order_relaxed),
	};

	lb_cq_push(&run->due, cq, &wc, freed, pos, false);
}

/* Nothing of it waits any more, for room or for a link. */
static void leave(struct lb_qp *qp)
{
	struct lb_remote *r = &qp->remote;

	if (r->link)
		lb_link_leave(r->link, &r->waiter);
	if (r->way)
		lb_link_leave(r->way, &r->waiter);
}

void lb_flush_sends(struct lb_run *run, struct lb_qp *qp)
{
	for (; qp->sq_exec != qp->sq_tail; qp->sq_exec++) {
		flush_one(run, qp, qp->send_cq,
			  lb_sq_slot(qp, qp->sq_exec)->wr_id, &qp->sq_freed,
			  qp->sq_exec);
		qp->tally->flushed++;
	}
	memset(&qp->exec, 0, sizeof(qp->exec));
	qp->remote.acked.offset = 0;
	qp->remote.fan = 0;
	lb_sq_go_back(qp);
	leave(qp);
}

/* Reports that a QP with an SRQ takes no further receive of the SRQ. */
static void say_last_wqe(struct lb_qp *qp)
{
	uint32_t knob = lb_fault_knob(LB_KNOB_NO_LAST_WQE);

	if (!qp->srq || qp->resp.last_wqe)
		return;
	qp->resp.last_wqe = true;
	if (knob != 1)
		lb_qp_event(qp, IBV_EVENT_QP_LAST_WQE_REACHED);
	if (knob == 2)
		lb_qp_event(qp, IBV_EVENT_QP_LAST_WQE_REACHED);
}

void lb_flush_receives(struct lb_run *run, struct lb_qp *qp)
{
	struct lb_resp *resp = &qp->resp;
	_Atomic uint32_t *freed = qp->srq ? &lb_cq_no_slot : &qp->rq.freed;
	struct lb_rqe *rqe;
	uint32_t pos;

	/* takes the receive from the thread that fills it */
	resp->is_working = false;
	if (resp->busy) {
		resp->busy = false;
		qp->tally->flushed_receives++;
		flush_one(run, qp, qp->recv_cq, resp->wr_id, freed, resp->pos);
	}
	while ((rqe = lb_rq_pop(&qp->rq, &pos))) {
		qp->tally->flushed_receives++;
		flush_one(run, qp, qp->recv_cq, rqe->wr_id, freed, pos);
	}
	say_last_wqe(qp);
}

static void set_error(struct lb_run *run, struct lb_qp *qp)
{
	/* relaxed: the locks order it; a bare look may be late */
	atomic_store_explicit(&qp->state, IBV_QPS_ERR, memory_order_relaxed);
	lb_flush_receives(run, qp);
}

void lb_flush_responder(struct lb_run *run, struct lb_qp *qp)
{
	lb_lock_get(&qp->rq.post);
	set_error(run, qp);
	lb_lock_put(&qp->rq.post);
	lb_kick_add(run, qp);
}

void lb_qp_fail(struct lb_run *run, struct lb_qp *qp)
{
	lb_lock_get(&qp->rq.pop);
	lb_lock_get(&qp->rq.post);
	set_error(run, qp);
	lb_lock_put(&qp->rq.post);
	lb_lock_put(&qp->rq.pop);
	lb_flush_sends(run, qp);
}

void lb_qp_fail_sends(struct lb_run *run, struct lb_qp *qp)
{
	lb_lock_get(&qp->rq.pop);
	lb_lock_get(&qp->rq.post);
	/* what its responder broke meanwhile stays so */
	if (lb_qp_state(qp) != IBV_QPS_ERR)
		/* relaxed: the locks order it */
		atomic_store_explicit(&qp->state, IBV_QPS_SQE,
				      memory_order_relaxed);
	lb_lock_put(&qp->rq.post);
	lb_lock_put(&qp->rq.pop);
	lb_flush_sends(run, qp);
}

void lb_qp_set_error(struct lb_run *run, struct lb_qp *qp)
{
	set_error(run, qp);
	lb_flush_sends(run, qp);
}

void lb_qp_break(struct lb_run *run, struct lb_qp *qp,
		 const struct lb_device *dev)
{
	lb_qp_lock(qp);
	/* relaxed, both: constant while the locks are held */
	if (atomic_load_explicit(&qp->qpn, memory_order_relaxed) &&
	    qp->dev == dev &&
	    atomic_load_explicit(&qp->state, memory_order_relaxed) !=
		    IBV_QPS_RESET)
		lb_qp_set_error(run, qp);
	lb_qp_unlock(qp);
}
