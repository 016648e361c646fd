/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * internal.c -- see internal.h.
 */

#include "conn/internal.h"

#include "conn/answer.h"
#include "conn/conn.h"
#include "conn/drain.h"
#include "conn/keepalive.h"
#include "conn/slots.h"
#include "poller/cq_pool.h"
#include "poller/poller.h"

/* The connection that posted the WR; NULL: none that is bound. */
static struct rpma_rt_conn *find(const struct rt_slots *slots,
				 const struct rt_cq *cq,
				 const struct ibv_wc *wc)
{
	uint64_t cookie = rt_wr_id_cookie(wc->wr_id);
	uint32_t slot = (uint32_t)(cookie & RT_SLOT_MASK);
	struct rpma_rt_conn *conn;

	if (slot == 0 || slot >= RT_MAX_SLOTS)
		return NULL;
	conn = slots->conns[slot];
	if (conn == NULL || conn->cq != cq || conn->poll.bind == RT_BIND_NONE ||
	    conn->qp_num != wc->qp_num)
		return NULL;
	return conn;
}

/* A marker or a keep-alive, or a completion without an open connection. */
static void internal_completion(struct rt_poller *poller, struct rt_cq *cq,
				const struct ibv_wc *wc)
{
	uint32_t kind = (uint32_t)(rt_wr_id_cookie(wc->wr_id) >> RT_KIND_SHIFT);
	struct rpma_rt_conn *conn = find(rt_slots_of(poller), cq, wc);

	if (conn == NULL) {
		/* the message that binds it was sent before its WR was posted:
		 * it may still be in the inbox */
		rt_inbox_run_owner(&poller->inbox, poller);
		conn = find(rt_slots_of(poller), cq, wc);
	}
	if (conn == NULL || wc->wr_id != rt_wr_id_internal(kind, conn->slot))
		RT_STAT_ADD(poller, stale, 1);
	else if (kind == RT_SQ_MARKER)
		rt_drain_marker_poller(conn, RPMA_RT_SEND_SIDE, wc->status);
	else if (kind == RT_RQ_MARKER)
		rt_drain_marker_poller(conn, RPMA_RT_RECV_SIDE, wc->status);
	else if (kind == RT_KEEPALIVE)
		rt_keepalive_completed(conn, wc->status);
	else
		RT_STAT_ADD(poller, stale, 1);
}

static const struct rt_reserved_ops internal_ops = {
	.completion = internal_completion,
};

int rt_internal_new(struct rt_poller *poller)
{
	int ret = rt_slots_new(poller);

	if (ret == 0)
		poller->reserved[RT_ROUTE_INTERNAL].ops = &internal_ops;
	return ret;
}

void rt_internal_delete(struct rt_poller *poller)
{
	poller->reserved[RT_ROUTE_INTERNAL].ops = NULL;
	rt_slots_delete(poller);
}
