/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/* look.c -- a poller looks at a connection that it was told of; see look.h. */

#include "conn/look.h"

#include "base/runtime.h"
#include "conn/hold.h"
#include "conn/owing.h"
#include "conn/route.h"
#include "poller/cq_pool.h"
#include "poller/poller.h"
#include "queue/lane.h"

/* of rt_side.awaited: posts to several routes were refused */
#define MANY UINT32_MAX

/* ------------------------------------------------- refused for backlogs --- */

void rt_look_await(struct rpma_rt_conn *conn, const struct rpma_rt_route *route,
		   enum rpma_rt_side side)
{
	_Atomic uint32_t *awaited = &conn->side[side].awaited;
	uint32_t is = 0;
	uint32_t to;

	do {
		to = is == 0 || is == route->number ? route->number : MANY;
		/* release: what the caller wants, to take_awaited() */
	} while (!atomic_compare_exchange_weak_explicit(awaited, &is, to,
							memory_order_release,
							memory_order_relaxed));
	rt_look_send(conn);
}

/* Lists the route with its lane, if that is over its limit. */
static bool list(struct rpma_rt_route *route)
{
	struct rt_lane *lane = rt_route_lane(route);

	if (rt_route_is_closed(route) || lane == NULL ||
	    !rt_lane_is_backlogged(lane))
		return false;
	rt_lane_wait_poller(lane, route->waiter);
	return true;
}

/* Lists the routes whose lanes are over their limit. Returns whether there was
 * a route whose lane is not: the refused post to that may be tried again. */
static bool list_awaited(struct rpma_rt_conn *conn, int side)
{
	/* acquire: pairs with rt_look_await() */
	uint32_t number = atomic_exchange_explicit(
		&conn->side[side].awaited, 0, memory_order_acquire);
	struct rpma_rt_route *route = conn->poll.routes;
	bool is_eased = false;

	if (number == 0)
		return false;
	if (number == conn->own[side].number)
		return !list(&conn->own[side]);
	for (; route != NULL; route = rt_route_next(route)) {
		if (route->side != side ||
		    (number != MANY && route->number != number))
			continue;
		is_eased |= !list(route);
		if (number != MANY)
			return is_eased;
	}
	/* the route is closed by now: whoever posts to it learns that */
	return is_eased || number != MANY;
}

/* -------------------------------------------------------------- looking --- */

static void look_at(struct rpma_rt_conn *conn, int side)
{
	uint32_t wants = RT_SIDE_ANSWERS;

	rt_hold_poller(conn, (enum rpma_rt_side)side);
	if (list_awaited(conn, side))
		wants |= RT_WANT_BACKLOG;
	conn->side[side].ops->answer(&conn->side[side], conn->poller, wants);
}

static void look(struct rt_msg *msg, void *owner)
{
	struct rpma_rt_conn *conn = RT_FROM(struct rpma_rt_conn, look_msg, msg);
	int i;

	(void)owner;
	/* acq_rel: pairs with the exchange in rt_look_send(): either this sees
	 * what that thread left, or that thread sends the message again */
	atomic_exchange_explicit(&conn->look_sent, false, memory_order_acq_rel);
	for (i = 0; i < 2; i++) {
		/* before the first completion of a new side there is nothing
		 * to look at, after the first failure CLOSED answers */
		if (conn->side[i].healthy)
			look_at(conn, i);
	}
	if (conn->side[RPMA_RT_SEND_SIDE].healthy &&
	    rt_turn_is_through(&conn->gate[RPMA_RT_SEND_SIDE].turn))
		rt_conn_tell_control(conn, RT_CTL_THROUGH);
	conn->target.ops->unref(&conn->target);
}

void rt_look_send(struct rpma_rt_conn *conn)
{
	/* acq_rel: as above */
	if (atomic_exchange_explicit(&conn->look_sent, true,
				     memory_order_acq_rel))
		return;
	/* relaxed: the caller has a handle */
	atomic_fetch_add_explicit(&conn->target.count, 1, memory_order_relaxed);
	conn->look_msg.fn = look;
	rt_inbox_push_mt(&conn->poller->inbox, &conn->look_msg);
}
