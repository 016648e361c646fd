/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * slots.c -- see slots.h. Numbers are taken and returned under the runtime's
 * lock, the table they index is the poller's.
 */

#include "conn/slots.h"

#include <assert.h>
#include <stdlib.h>

#include "conn/answer.h"
#include "conn/conn.h"
#include "conn/drain.h"
#include "poller/cq_pool.h"

/* -------------------------------------------------------------- numbers --- */

int rt_slots_take(struct rt_poller *poller, uint32_t *slot)
{
	struct rt_slots *slots = rt_slots_of(poller);

	if (slots->returned_count > 0) {
		*slot = slots->returned[--slots->returned_count];
		return 0;
	}
	if (slots->next == RT_MAX_SLOTS)
		return RPMA_E_NOMEM;
	*slot = slots->next++;
	return 0;
}

void rt_slots_return(struct rt_poller *poller, uint32_t slot)
{
	struct rt_slots *slots = rt_slots_of(poller);

	assert(slot > 0 && slot < slots->next);
	slots->returned[slots->returned_count++] = slot;
}

/* ----------------------------------------------------------- the poller --- */

void rt_slots_set_poller(struct rt_poller *poller, uint32_t slot,
			 struct rpma_rt_conn *conn)
{
	struct rt_slots *slots = rt_slots_of(poller);

	slots->conns[slot] = conn;
	if (slot > slots->used)
		slots->used = slot;
}

/* The connection whose WR that is, NULL: of none that is bound. */
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
	if (conn == NULL || conn->cq != cq || !conn->poll.bound ||
	    conn->qp_num != wc->qp_num)
		return NULL;
	return conn;
}

/* A marker or a keep-alive, or a completion of nothing that is open. */
static void internal_completion(struct rt_poller *poller, struct rt_cq *cq,
				const struct ibv_wc *wc)
{
	uint32_t kind =
		(uint32_t)(rt_wr_id_cookie(wc->wr_id) >> RT_KIND_SHIFT);
	struct rpma_rt_conn *conn;

	/* what binds it was sent before its WR was posted: it may be in the
	 * inbox still */
	rt_inbox_run_owner(&poller->inbox, poller);
	conn = find(rt_slots_of(poller), cq, wc);
	if (conn == NULL || wc->wr_id != rt_wr_id_internal(kind, conn->slot))
		RT_STAT_ADD(poller, stale, 1);
	else if (kind == RT_SQ_MARKER)
		rt_conn_marker_poller(conn, RPMA_RT_SEND_SIDE);
	else if (kind == RT_RQ_MARKER)
		rt_conn_marker_poller(conn, RPMA_RT_RECV_SIDE);
	else if (kind == RT_KEEPALIVE)
		rt_keepalive_completed(conn, wc->status);
	else
		RT_STAT_ADD(poller, stale, 1);
}

/* Any connection may have waited for it. */
static void eased(struct rt_poller *poller, void *arg)
{
	const struct rt_slots *slots = arg;
	struct rpma_rt_conn *conn;
	uint32_t slot;

	for (slot = 1; slot < RT_MAX_SLOTS && slot <= slots->used; slot++) {
		conn = slots->conns[slot];
		if (conn != NULL)
			rt_answer_all_poller(conn, poller);
	}
}

/* --------------------------------------------------------------- its life --- */

static const struct rt_reserved_ops internal_ops = {
	.completion = internal_completion,
	.eased = eased,
};

int rt_slots_new(struct rt_poller *poller)
{
	struct rt_slots *slots = calloc(1, sizeof(*slots));

	if (slots == NULL)
		return RPMA_E_NOMEM;
	slots->next = 1;
	/* pages of numbers never used are never touched */
	slots->conns = calloc(RT_MAX_SLOTS, sizeof(struct rpma_rt_conn *));
	slots->returned = calloc(RT_MAX_SLOTS, sizeof(*slots->returned));
	poller->reserved[RT_ROUTE_INTERNAL] =
		(struct rt_reserved){.ops = &internal_ops, .arg = slots};
	if (slots->conns != NULL && slots->returned != NULL)
		return 0;
	rt_slots_delete(poller);
	return RPMA_E_NOMEM;
}

void rt_slots_delete(struct rt_poller *poller)
{
	struct rt_slots *slots = rt_slots_of(poller);

	poller->reserved[RT_ROUTE_INTERNAL] = (struct rt_reserved){0};
	free(slots->conns);
	free(slots->returned);
	free(slots);
}
