/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * ud.c -- executes a datagram: at once and as a whole. A datagram that nobody
 * may have, or for which no receive is posted, is dropped, and its sender has
 * success all the same. Run with the sender's sq.lock held.
 */

#include "ah.h"
#include "exec.h"
#include "internal.h"

#include <string.h>

#define OWN_QKEY 0x80000000u /* "use the one of my queue pair" */

static bool is_listening(const struct lb_work *w, const struct lb_route *route)
{
	const struct lb_qp *peer = w->peer;
	uint32_t qkey = (uint32_t)w->wqe->remote_addr;
	uint32_t state = lb_qp_state(peer);

	if (qkey & OWN_QKEY)
		qkey = w->qp->attr.qkey;
	return lb_qp_number(peer) == w->wqe->rkey && peer->type == IBV_QPT_UD &&
	       peer->dev == &lb.devices[route->device] &&
	       (state == IBV_QPS_RTR || state == IBV_QPS_RTS ||
		state == IBV_QPS_SQD) &&
	       peer->attr.qkey == qkey;
}

/* The header and the datagram into the receive that was taken. */
static int fill(struct lb_work *w, uint8_t grh[LB_GRH])
{
	struct lb_resp *resp = &w->peer->resp;
	const struct lb_qp *peer = w->peer;
	const struct ibv_pd *pd = peer->srq ? &peer->srq->pd->ibv : peer->pd;
	struct lb_span src[LB_MAX_SGE + 2] = {{grh, LB_GRH}};
	struct lb_span dst[LB_MAX_SGE + 1];
	uint32_t length = w->wqe->length + LB_GRH;
	int err;

	memcpy(src + 1, w->local, sizeof(w->local));
	err = lb_to_spans(resp->sge, resp->nsge, length, IBV_ACCESS_LOCAL_WRITE,
			  pd, dst);
	if (!err)
		lb_move(dst, 0, src, 0, length, true);
	return err;
}

static void deliver(struct lb_work *w, const struct lb_route *route)
{
	uint8_t grh[LB_GRH];
	int err;

	lb_ah_header(grh, &w->qp->dev->gids[route->sgid],
		     &w->peer->dev->gids[route->dgid], w->wqe->length);
	err = fill(w, grh);
	if (err)
		lb_respond_fail(w, err == ENOSPC ? IBV_WC_LOC_LEN_ERR
						 : IBV_WC_LOC_PROT_ERR);
	else
		lb_respond_complete(w);
	w->qp->stats.bytes += w->wqe->length;
}

int lb_ud_execute(struct lb_work *w)
{
	struct lb_route route;

	if (w->wqe->length > LB_MTU_BYTES)
		return IBV_WC_LOC_LEN_ERR;
	memcpy(&route, &w->wqe->swap, sizeof(route));
	w->peer = lb_qp_at(w->wqe->rkey);
	if (!w->peer)
		return LB_EXEC_OK;
	lb_lock_get(&w->peer->rq.pop);
	if (is_listening(w, &route) && lb_respond_take(w))
		deliver(w, &route);
	lb_lock_put(&w->peer->rq.pop);
	return LB_EXEC_OK;
}
