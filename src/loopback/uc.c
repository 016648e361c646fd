/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * uc.c -- executes a message of an unreliable connection: as one of a reliable
 * connection, but nobody answers. What the peer does not take is dropped, and
 * its sender has success all the same. Run with the sender's sq.lock held.
 */

#include "exec.h"
#include "internal.h"

static bool is_listening(const struct lb_work *w)
{
	const struct lb_qp *qp = w->qp, *peer = w->peer;
	uint32_t state = lb_qp_state(peer);

	return lb_qp_number(peer) == qp->attr.dest_qp_num &&
	       peer->type == IBV_QPT_UC && peer->dev == qp->peer_dev &&
	       (state == IBV_QPS_RTR || state == IBV_QPS_RTS ||
		state == IBV_QPS_SQD) &&
	       peer->attr.dest_qp_num == lb_qp_number(qp) &&
	       peer->peer_dev == qp->dev;
}

int lb_uc_execute(struct lb_work *w)
{
	int ret = LB_EXEC_OK;

	w->peer = lb_qp_at(w->qp->attr.dest_qp_num);
	if (!w->peer)
		return LB_EXEC_OK;
	lb_lock_get(&w->peer->rq.pop);
	if (is_listening(w))
		ret = lb_respond_to(w);
	lb_lock_put(&w->peer->rq.pop);
	return ret == LB_EXEC_AGAIN ? ret : LB_EXEC_OK;
}
