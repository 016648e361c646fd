/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * ud.c -- executes a datagram: at once and as a whole, to a queue pair or to
 * the members of a multicast group. A datagram without an allowed receiver, or
 * without a posted receive, is dropped, and the sender has success all the
 * same. Run with sq.lock of the sender held. To another process a datagram goes
 * as a record; datagrams from other processes come through inbound.c.
 */

#include "exec/ud.h"

#include <errno.h>
#include <string.h>

#include "base/lock.h"
#include "exec/respond.h"
#include "exec/work.h"
#include "memory/copy.h"
#include "memory/lost.h"
#include "memory/power.h"
#include "object/device.h"
#include "object/limits.h"
#include "qp/ah.h"
#include "qp/mcast.h"
#include "qp/number.h"
#include "qp/qp.h"
#include "qp/resp.h"
#include "qp/wqe.h"
#include "wire/link.h"
#include "wire/nic.h"
#include "wire/record.h"

#define OWN_QKEY 0x80000000u /* "use the Q_Key of my queue pair" */

static uint32_t qkey_of(const struct lb_work *w)
{
	uint32_t qkey = w->wqe->qkey;

	return qkey & OWN_QKEY ? w->qp->attr.qkey : qkey;
}

static bool is_listening(const struct lb_qp *peer, uint32_t qkey)
{
	return peer->type == IBV_QPT_UD && lb_qp_takes_in(lb_qp_state(peer)) &&
	       peer->attr.qkey == qkey;
}

/* Copies the header and the datagram into the receive. */
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
	if (err)
		return err;
	if (lb_power_is_on())
		lb_power_deliver(peer->order, dst, 0, length);
	lb_copy_move(dst, 0, src, 0, length, true);
	return lb_lost_is() && lb_lost_take(dst) ? EFAULT : 0;
}

static union ibv_gid dgid_of(const struct lb_wqe *wqe)
{
	union ibv_gid gid;

	memcpy(gid.raw, wqe->route.dgid, sizeof(gid.raw));
	return gid;
}

void lb_ud_deliver(struct lb_work *w, const struct lb_datagram *datagram)
{
	uint8_t grh[LB_GRH];
	int err;

	if (!is_listening(w->peer, datagram->qkey) || !lb_respond_take(w))
		return;
	if (lb_power_is_on())
		lb_power_arrive();
	lb_ah_header(grh, &datagram->from, &datagram->to,
		     datagram->traffic_class, w->wqe->length);
	w->sl = lb_ah_kind(grh);
	err = fill(w, grh);
	if (err)
		lb_respond_fail(w, err == ENOSPC ? IBV_WC_LOC_LEN_ERR
						 : IBV_WC_LOC_PROT_ERR);
	else
		lb_respond_complete(w);
	w->moved += w->wqe->length;
}

/* Delivers within this process. */
static void deliver(struct lb_work *w)
{
	const struct lb_datagram datagram = {
		.from = *lb_gid_at(w->qp->dev, w->wqe->route.sgid),
		.to = dgid_of(w->wqe),
		.qkey = qkey_of(w),
		.traffic_class = w->wqe->route.traffic_class,
	};

	lb_ud_deliver(w, &datagram);
}

/*
 * Sends datagrams by another link from now on: the reference goes to the queue
 * pair. NULL: no link.
 */
static void go_by(struct lb_qp *qp, struct lb_link *way)
{
	struct lb_link *before = qp->remote.way;

	if (before) { /* the waiter may be on the list of the link */
		lb_link_leave(before, &qp->remote.waiter);
		lb_link_put(before);
	}
	qp->remote.way = way;
	lb_remote_look_at(&qp->remote, way);
}

/*
 * Returns the link to another process, the link of the last datagram if
 * possible.
 */
static struct lb_link *way_to(struct lb_qp *qp, unsigned process)
{
	struct lb_link *way = qp->remote.way;
	struct lb_nic *nic = lb_nic_self();

	if (way && lb_link_number(way) == process &&
	    lb_link_state(way) != LB_LINK_DEAD)
		return way;
	go_by(qp, nic ? lb_nic_link(nic, process) : NULL);
	return qp->remote.way;
}

static struct lb_record record_of(const struct lb_work *w)
{
	const struct lb_wqe *wqe = w->wqe;
	struct lb_record record = {
		.length = (uint16_t)wqe->length,
		.type = LB_RECORD_DATAGRAM,
		.device = (uint8_t)w->qp->dev->index,
		.code = wqe->route.device,
		.from = w->from,
		.to = wqe->rkey,
		.psn = wqe->route.traffic_class,
		.total = wqe->length,
		.key = qkey_of(w),
		.imm = wqe->imm,
	};

	if (wqe->opcode == IBV_WR_SEND_WITH_IMM)
		record.flags |= LB_RECORD_IMM;
	if (wqe->flags & IBV_SEND_SOLICITED)
		record.flags |= LB_RECORD_SOLICITED;
	memcpy(record.sgid, lb_gid_at(w->qp->dev, wqe->route.sgid),
	       sizeof(record.sgid));
	memcpy(record.dgid, wqe->route.dgid, sizeof(record.dgid));
	return record;
}

/* Puts a datagram, which is sent once in the ring, and lost without a peer. */
static int put(struct lb_work *w, const struct lb_record *record)
{
	struct lb_remote *r = &w->qp->remote;

	switch (lb_link_request(r->way, record, w->local, 0, &r->waiter)) {
	case LB_PUT_NO_ROOM:
	case LB_PUT_NOT_YET:
		return LB_EXEC_WAIT;
	case LB_PUT_LOST:
		w->qp->tally->lost++;
		return LB_EXEC_OK;
	case LB_PUT_NOBODY:
		return LB_EXEC_OK;
	case LB_PUT_OK:
		lb_link_show(r->way);
		break;
	case LB_PUT_DEAD:
		break;
	}
	w->moved += w->wqe->length;
	return LB_EXEC_OK;
}

static int to_other(struct lb_work *w, unsigned process)
{
	struct lb_record record;

	if (!way_to(w->qp, process))
		return LB_EXEC_OK;
	record = record_of(w);
	return put(w, &record);
}

static void to_one(struct lb_work *w)
{
	const struct lb_device *dev = &lb_device_all[w->wqe->route.device];

	lb_lock_get(&w->peer->rq.pop);
	if (lb_qp_number(w->peer) == w->wqe->rkey && w->peer->dev == dev)
		deliver(w);
	lb_lock_put(&w->peer->rq.pop);
}

/*
 * Delivers to all members of a group in this process, including the sender if a
 * member.
 */
static void to_own_members(struct lb_work *w)
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

/* Sends over each link; waits for a full link, and goes on there. */
static int to_other_members(struct lb_work *w)
{
	struct lb_remote *r = &w->qp->remote;
	struct lb_nic *nic = lb_nic_self();
	struct lb_record record = record_of(w);
	struct lb_link *link;
	uint32_t at = r->fan - 1;

	record.type = LB_RECORD_MULTICAST;
	while ((link = lb_nic_next(nic, &at))) {
		go_by(w->qp, link);
		if (put(w, &record) == LB_EXEC_WAIT)
			return LB_EXEC_WAIT;
		r->fan = at + 1;
	}
	return LB_EXEC_OK;
}

static int to_group(struct lb_work *w)
{
	struct lb_remote *r = &w->qp->remote;
	int ret;

	if (!r->fan)
		to_own_members(w);
	if (!r->fan)
		r->fan = 1;
	/* also without a link that is up: waits for links in contact */
	ret = lb_nic_self() ? to_other_members(w) : LB_EXEC_OK;
	if (ret == LB_EXEC_OK)
		r->fan = 0;
	return ret;
}

int lb_ud_execute(struct lb_work *w)
{
	if (!lb_likely(w->wqe->route.device != LB_NO_ROUTE))
		return IBV_WC_LOC_QP_OP_ERR;
	if (w->wqe->length > LB_MTU_BYTES)
		return IBV_WC_LOC_LEN_ERR;
	/* without an address: removed after the handle was made */
	if (lb_gid_at(w->qp->dev, w->wqe->route.sgid) == &lb_gid_none)
		return LB_EXEC_OK;
	if (w->wqe->route.is_multicast)
		return w->wqe->rkey == LB_MCAST_QPN ? to_group(w) : LB_EXEC_OK;
	w->peer = lb_qp_at(w->wqe->rkey);
	if (w->peer)
		to_one(w);
	else if (lb_qp_number_process(w->wqe->rkey))
		return to_other(w, lb_qp_number_process(w->wqe->rkey));
	return LB_EXEC_OK;
}
