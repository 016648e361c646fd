/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * ud.c -- executes a datagram: at once and as a whole, to a queue pair or to
 * the members of a multicast group. A datagram that nobody
 * may have, or for which no receive is posted, is dropped, and its sender has
 * success all the same. Run with the sender's sq.lock held.
 */

#include "exec/ud.h"

#include <errno.h>
#include <string.h>

#include "base/lock.h"
#include "exec/respond.h"
#include "exec/work.h"
#include "memory/copy.h"
#include "object/device.h"
#include "object/limits.h"
#include "qp/ah.h"
#include "qp/mcast.h"
#include "qp/number.h"
#include "qp/qp.h"
#include "qp/resp.h"
#include "qp/wqe.h"

#define OWN_QKEY 0x80000000u /* "use the one of my queue pair" */

static bool is_listening(const struct lb_work *w)
{
	const struct lb_qp *peer = w->peer;
	uint32_t qkey = w->wqe->qkey;

	if (qkey & OWN_QKEY)
		qkey = w->qp->attr.qkey;
	return peer->type == IBV_QPT_UD && lb_qp_takes_in(lb_qp_state(peer)) &&
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
	err = lb_copy_spans(resp->sge, resp->nsge, length,
			    IBV_ACCESS_LOCAL_WRITE, pd, dst);
	if (!err)
		lb_copy_move(dst, 0, src, 0, length, true);
	return err;
}

static union ibv_gid dgid_of(const struct lb_wqe *wqe)
{
	union ibv_gid gid;

	memcpy(gid.raw, wqe->route.dgid, sizeof(gid.raw));
	return gid;
}

/* To the peer, which is the one meant; its rq.pop held. */
static void deliver(struct lb_work *w)
{
	const union ibv_gid *from = &w->qp->dev->gids[w->wqe->route.sgid];
	const union ibv_gid to = dgid_of(w->wqe);
	uint8_t grh[LB_GRH];
	int err;

	if (!is_listening(w) || !lb_respond_take(w))
		return;
	lb_ah_header(grh, from, &to, w->wqe->length);
	err = fill(w, grh);
	if (err)
		lb_respond_fail(w, err == ENOSPC ? IBV_WC_LOC_LEN_ERR
						 : IBV_WC_LOC_PROT_ERR);
	else
		lb_respond_complete(w);
	w->qp->stats.bytes += w->wqe->length;
}

static void to_one(struct lb_work *w)
{
	const struct lb_device *dev = &lb_device_all[w->wqe->route.device];

	w->peer = lb_qp_at(w->wqe->rkey);
	if (!w->peer)
		return;
	lb_lock_get(&w->peer->rq.pop);
	if (lb_qp_number(w->peer) == w->wqe->rkey && w->peer->dev == dev)
		deliver(w);
	lb_lock_put(&w->peer->rq.pop);
}

/* To all members of a group, the sender too if it is one. */
static void to_group(struct lb_work *w)
{
	struct lb_member members[LB_MAX_MCAST_ATTACH];
	const union ibv_gid gid = dgid_of(w->wqe);
	uint32_t i, n = lb_mcast_members(&gid, members);

	for (i = 0; i < n; i++) {
		w->peer = members[i].qp;
		lb_lock_get(&w->peer->rq.pop);
		if (lb_qp_number(w->peer) && w->peer->order == members[i].order)
			deliver(w);
		lb_lock_put(&w->peer->rq.pop);
	}
}

int lb_ud_execute(struct lb_work *w)
{
	if (w->wqe->length > LB_MTU_BYTES)
		return IBV_WC_LOC_LEN_ERR;
	if (!w->wqe->route.is_multicast)
		to_one(w);
	else if (w->wqe->rkey == LB_MCAST_QPN)
		to_group(w);
	return LB_EXEC_OK;
}
