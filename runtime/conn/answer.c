/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * answer.c -- see answer.h. The thread that clears a bit of want owns it: it
 * writes exactly one WRITABLE for it.
 */

#include "conn/answer.h"

#include "conn/item.h"
#include "conn/owing.h"
#include "conn/route.h"
#include "poller/callback.h"
#include "poller/poller.h"
#include "queue/lane.h"

/* Calls each function of the connection with one of these wants: WRITABLE. */
static void call_writable(struct rt_poller *poller, struct rpma_rt_conn *conn,
			  int side, uint32_t wants)
{
	const struct rpma_rt_completion item = rt_item_writable(conn, side);
	struct rpma_rt_route *route;

	for (route = conn->poll.routes; route != NULL; route = route->next) {
		if (!(route->wants & wants))
			continue;
		route->wants &= (uint8_t)~wants;
		if (conn->side[side].healthy) /* else CLOSED answers */
			rt_deliver_call(poller, &route->callback, &item);
	}
}

/*
 * While the connection's own queue is over its limit, WRITABLE waits for the
 * backlog to ease, or WRITABLEs that nobody takes would fill the spill. False:
 * the queue is not over its limit.
 */
static bool wait_for_own_lane(const struct rpma_rt_conn *conn,
			      const struct rt_side *side)
{
	const struct rpma_rt_route *own = conn->own[side->which];
	struct rt_lane *lane = rt_route_lane(own);

	if (!rt_lane_is_backlogged(lane))
		return false;
	rt_lane_wait_mt(lane, rt_route_waiter(own));
	return true;
}

void rt_answer_poller(struct rt_side *side, struct rt_poller *poller,
		      uint32_t wants)
{
	struct rpma_rt_conn *conn = rt_conn_of_side(side);
	uint32_t in_call = wants << RT_WANT_IN_CALL;
	struct rpma_rt_completion item;
	uint32_t taken;

	if (!side->healthy)
		return; /* CLOSED answers */
	if (rt_side_wants(side, RT_WANT_RETIRED)) {
		rt_owing_look_poller(side);
		if (!rt_side_wants(side, wants))
			return;
	}
	/* relaxed: the caller's look [LEDGER-2] */
	if ((atomic_load_explicit(&side->want, memory_order_relaxed) & wants) &&
	    wait_for_own_lane(conn, side))
		wants = 0; /* no queue is in the way of a function */
	/* acq_rel: of two takers one gets it */
	taken = atomic_fetch_and_explicit(&side->want, ~(wants | in_call),
					  memory_order_acq_rel);
	if (taken & wants) {
		item = rt_item_writable(conn, side->which);
		rt_deliver_write(poller, conn->poll.lane, &item);
	}
	if (taken & in_call)
		call_writable(poller, conn, side->which, RT_WANTS(side->which));
}

void rt_answer_eased_poller(void *arg)
{
	const uint32_t wants = RT_WANT_CREDIT | RT_WANT_BACKLOG;
	struct rt_side *side = arg;

	if (rt_side_wants(side, wants))
		rt_answer_poller(side, rt_conn_of_side(side)->poller, wants);
}

/* Posts that could not wait for a lock may be tried again. */
static void lock_message(struct rt_msg *msg, void *owner)
{
	struct rpma_rt_conn *conn = RT_FROM(struct rpma_rt_conn, lock_msg, msg);
	int i;

	conn->lock_sent = false;
	for (i = 0; i < 2; i++)
		call_writable(owner, conn, i, RT_WANTS_LOCK(i));
}

void rt_answer_retry_lock(struct rpma_rt_route *running, int side)
{
	struct rpma_rt_conn *conn = running->conn;

	running->wants |= (uint8_t)RT_WANTS_LOCK(side);
	if (conn->lock_sent)
		return;
	conn->lock_sent = true;
	conn->lock_msg.fn = lock_message;
	rt_inbox_push_mt(&conn->poller->inbox, &conn->lock_msg);
}
