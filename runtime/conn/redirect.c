/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * redirect.c -- see redirect.h. Posters look at a route's lane while that
 * changes: it is one word, and whoever waited in the former lane is answered
 * behind the change.
 */

#include "conn/redirect.h"

#include "conn/answer.h"
#include "conn/bind.h"
#include "conn/conn.h"
#include "conn/owing.h"
#include "conn/route.h"
#include "poller/cq_pool.h"
#include "poller/poller.h"
#include "queue/queue.h"

/* Has it begun to die? Then its routes are final. */
static bool is_dying(const struct rpma_rt_conn *conn)
{
	return conn->poll.state != RT_PS_HEALTHY;
}

/* ------------------------------------------------------- what is posted --- */

/* waiter: the route's from here on; NULL: it has none. */
static void show_posters(struct rpma_rt_route *route,
			 const struct rpma_rt_route *to,
			 struct rt_waiter *waiter)
{
	rt_waiter_delete(route->waiter);
	route->waiter = waiter;
	/* release: the lane may have been made for this. Before any credit of
	 * what completes there is given back [LANE-5] */
	atomic_store_explicit(&route->lane, rt_route_lane(to),
			      memory_order_release);
}

/* Those who wait for the former lane look again, at another. */
static void answer_waiters(struct rt_side *side, bool was_behind)
{
	/* an answer that was put off, as the own lane was over its limit. A
	 * poster that leaves what it wants later sends a message */
	if (was_behind || rt_side_wants(side, RT_WANT_BACKLOG))
		rt_answer_eased_poller(side);
}

/* ---------------------------------------------------- what is delivered --- */

static struct rt_route_entry *entry_of(const struct rpma_rt_route *route)
{
	return &route->conn->cq->routes[route->number];
}

/* The root of the closed routes that lead to an open route. */
static struct rt_led **followers_of(struct rpma_rt_route *route)
{
	return route->is_own ? &route->conn->side[route->side].followers
			     : &rt_route_opened(route)->followers;
}

/* Leads a route that is closed, and all that leads to it, where `to` leads. */
static void lead_on(struct rpma_rt_route *route, struct rpma_rt_route *to)
{
	struct rt_led *led = &rt_route_opened(route)->led;
	struct rt_route_entry *entry = entry_of(route);

	*led = (struct rt_led){.size = 1};
	led = rt_route_led_join(rt_route_opened(route)->followers, led);
	led = rt_route_led_join(led, *followers_of(to));
	led->to = entry_of(to);
	*followers_of(to) = led;
	rt_route_opened(route)->followers = NULL;
	entry->led = &rt_route_opened(route)->led;
	entry->is_callback = true;
	entry->is_led = true;
}

/* Does an open route of the connection lead there, its own included? */
static bool leads_there(const struct rpma_rt_conn *conn,
			const struct rt_lane *lane)
{
	return lane == rt_conn_lane(conn) || rt_owing_has_lane(conn, lane);
}

/* The connection's last item there. */
static void write_closed(struct rpma_rt_conn *conn, struct rt_lane *lane)
{
	struct rpma_rt_completion item =
		rt_item_event(conn, RPMA_RT_EVENT_ROUTE_CLOSED);

	if (!leads_there(conn, lane))
		rt_deliver_write(conn->poller, lane, &item);
}

/* ------------------------------------------------------------ own queue --- */

/* Nothing was posted, and it was not connected: whoever takes from the former
 * queue was not told that it is a consumer of this connection. */
static bool is_early(const struct rpma_rt_conn *conn)
{
	/* relaxed: what completed was posted, and connected, before */
	return !(atomic_load_explicit(&conn->reached, memory_order_relaxed) &
		 (RT_REACHED_DECISION | RT_REACHED_POST));
}

int rt_redirect_own_poller(struct rt_redirect *redirect)
{
	struct rpma_rt_conn *conn = redirect->conn;
	bool was_behind;
	int i;

	if (is_dying(conn))
		return RPMA_RT_E_CLOSED;
	redirect->from = conn->own[0].queue;
	redirect->from_lane = rt_conn_lane(conn);
	was_behind = rt_lane_is_backlogged(rt_conn_lane(conn));
	for (i = 0; i < 2; i++) {
		/* here, not by the caller: the connection may die before that
		 * goes on */
		show_posters(&conn->own[i], redirect->own_to[i],
			     redirect->own_to[i]->waiter);
		redirect->own_to[i]->waiter = NULL;
		conn->own[i].queue = redirect->own_to[i]->queue;
		entry_of(&conn->own[i])->lane =
			rt_route_lane(redirect->own_to[i]);
		/* the reader of ROUTE_CLOSED may delete the queue */
		rt_queue_announce_unref(redirect->from);
	}
	for (i = 0; i < 2; i++)
		answer_waiters(&conn->side[i], was_behind);
	if (!is_early(conn))
		write_closed(conn, redirect->from_lane);
	rt_deliver_flush(conn->poller);
	return 0;
}

/* --------------------------------------------------------- other routes --- */

/* What a post inside its function was refused for is answered in the
 * connection's queue: the function is not called any more. */
static void hand_wants_over(struct rt_route_opened *route)
{
	struct rpma_rt_conn *conn = route->route.conn;
	int i;

	for (i = 0; i < 2; i++) {
		if (!(route->wants & RT_WANTS(i)))
			continue;
		/* relaxed: posters inside functions are this thread */
		atomic_fetch_or_explicit(&conn->side[i].want, RT_WANT_CREDIT,
					 memory_order_relaxed);
		rt_deliver_touch_side(conn->poller, &conn->side[i]);
	}
	route->wants = 0;
}

static void end_function(struct rt_route_opened *route)
{
	struct rpma_rt_conn *conn = route->route.conn;
	struct rpma_rt_completion item =
		rt_item_event(conn, RPMA_RT_EVENT_ROUTE_CLOSED);

	hand_wants_over(route);
	rt_deliver_call(conn->poller, &route->callback, &item);
}

static void end_lane(struct rt_redirect *redirect)
{
	struct rpma_rt_route *route = redirect->route;
	struct rt_side *side = &route->conn->side[route->side];

	answer_waiters(side, false);
	/* the reader of ROUTE_CLOSED may delete the queue */
	rt_queue_announce_unref(redirect->from);
	write_closed(route->conn, redirect->from_lane);
}

int rt_redirect_route_poller(struct rt_redirect *redirect)
{
	struct rpma_rt_route *route = redirect->route;
	struct rpma_rt_conn *conn = redirect->conn;
	const struct rt_route_entry *to = entry_of(redirect->to);

	/* functions that are due are called while the route is open */
	rt_deliver_flush(conn->poller);
	if (is_dying(conn))
		return RPMA_RT_E_CLOSED;
	/* its room is for what its own posts may bring: those are refused */
	if (!to->is_callback && rt_lane_is_backlogged(to->lane))
		return RPMA_RT_E_BUSY;
	redirect->from = route->queue;
	redirect->from_lane = rt_route_lane(route);
	route->queue = NULL;
	rt_owing_unhash_poller(rt_route_opened(route));
	/* relaxed: a poster that goes on is waited for [ROUTE-1] */
	atomic_store_explicit(&route->open_side, RT_ROUTE_CLOSED,
			      memory_order_relaxed);
	show_posters(route, redirect->to, NULL);
	lead_on(route, redirect->to);
	if (conn->poll.srq_route == route->number)
		rt_bind_redirect_poller(conn, redirect->to->number);
	if (redirect->from_lane == NULL)
		end_function(rt_route_opened(route));
	else
		end_lane(redirect);
	rt_deliver_flush(conn->poller);
	return 0;
}

/* ------------------------------------------------------ the second step --- */

/* No post names it any more. */
static void finish_route(struct rt_redirect *redirect)
{
	struct rpma_rt_route *route = redirect->route;

	/* a dying connection gives all its numbers back at its end */
	if (is_dying(route->conn) || !redirect->is_known)
		return;
	if (redirect->is_out)
		rt_owing_until_poller(route, redirect->last_retired);
	else
		rt_owing_bury_poller(route);
}

void rt_redirect_finish_poller(struct rt_redirect *redirect)
{
	if (redirect->route != NULL)
		finish_route(redirect);
}
