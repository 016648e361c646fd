/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * end.c -- see end.h. A connection may have tens of thousands of routes: they
 * are closed a few in each round. A mark in the lane says that the connection
 * has written there already. Connections that need several rounds end one after
 * the other, each with a mark of its own, or they would overwrite each other's.
 */

#include "conn/end.h"

#include "conn/fill.h"
#include "conn/futures.h"
#include "conn/conn.h"
#include "conn/owing.h"
#include "conn/route.h"
#include "conn/slots.h"
#include "pool/pool.h"
#include "poller/cq_pool.h"
#include "poller/poller.h"
#include "queue/lane.h"
#include "queue/queue.h"
#include "srq/srq.h"

static int end(struct rt_task *task, struct rt_poller *poller);

/* Marks the lane; true: this is the first route of the connection to it. */
static bool mark(const struct rpma_rt_conn *conn, struct rt_lane *lane)
{
	uint64_t *marked = &lane->marks[conn->poll.is_long];

	if (*marked == conn->poll.mark)
		return false;
	*marked = conn->poll.mark;
	return true;
}

static void close_route(struct rpma_rt_conn *conn, struct rpma_rt_route *route)
{
	struct rpma_rt_completion item =
		rt_item_event(conn, RPMA_RT_EVENT_ROUTE_CLOSED);
	struct rt_route_entry *entry = &conn->cq->routes[route->number];
	struct rt_lane *lane = rt_route_lane(route);

	/* a route that is closed has no ROUTE_CLOSED to come, and no waiter.
	 * Of the others each function is called for it, each lane has it once;
	 * CLOSED comes to the connection's own, if it has a queue */
	if (!rt_route_is_closed(route) && !route->is_own &&
	    (lane == NULL || (lane != rt_conn_lane(conn) && mark(conn, lane))))
		rt_deliver_item(conn->poller, entry, &item);
	*entry = (struct rt_route_entry){0};
	if (route->leases != 0)
		conn->cq->routes[route->leases] = (struct rt_route_entry){0};
	if (!route->is_own)
		rt_owing_unhash_poller(rt_route_opened(route));
	rt_waiter_delete(route->waiter);
	route->waiter = NULL;
}

/* Closes the next routes, up to max; how many. A consumer that takes
 * ROUTE_CLOSED may delete the queue: every route has announced its leave by
 * then. */
static int close_routes(struct rpma_rt_conn *conn, int max)
{
	struct rpma_rt_route *route;
	int n = 0;

	while ((route = conn->poll.to_announce) != NULL && n < max) {
		if (route->queue != NULL)
			rt_queue_announce_unref(route->queue);
		conn->poll.to_announce = rt_route_next(route);
		n++;
	}
	while ((route = conn->poll.to_close) != NULL && n < max) {
		close_route(conn, route);
		conn->poll.to_close = rt_route_next(route);
		n++;
	}
	return n;
}

static void finish(struct rpma_rt_conn *conn, struct rt_poller *poller)
{
	if (rt_conn_srq(conn) != NULL)
		/* relaxed: CLOSED, which is published after it, carries it */
		atomic_fetch_add_explicit(&conn->from.srq->leaving, 1,
					  memory_order_relaxed);
	rt_pool_announce_unref(rt_fill_pool(conn));
	rt_futures_closing_poller(conn);
	/* functions have returned when CLOSED is seen */
	rt_deliver_flush(poller);
	if (conn->ctl.handshake != RT_HANDSHAKE_UNHEARD)
		rt_item_write_event(conn, RPMA_RT_EVENT_CLOSED);
	rt_futures_closed_poller(conn);
	rt_slots_set_poller(poller, conn->slot, NULL);
	/* rung before the control thread lets the queues go */
	rt_deliver_flush(poller);
	rt_conn_tell_control(conn, RT_CTL_DONE);
}

/* The next of the connections whose end takes several rounds. */
static void end_next(struct rt_poller *poller)
{
	struct rt_slots *slots = rt_slots_of(poller);
	struct rt_task *task;

	if (cds_list_empty(&slots->ending)) {
		slots->is_ending = false;
		return;
	}
	task = cds_list_first_entry(&slots->ending, struct rt_task, link);
	rt_schedule_ready(poller, task);
}

static int end(struct rt_task *task, struct rt_poller *poller)
{
	struct rpma_rt_conn *conn =
		RT_FROM(struct rpma_rt_conn, poll.dying, task);
	int n = close_routes(conn, RT_SCHEDULE_UNITS);
	bool is_long = conn->poll.is_long;

	if (conn->poll.to_announce != NULL || conn->poll.to_close != NULL) {
		rt_schedule_ready(poller, task);
		return n;
	}
	finish(conn, poller); /* it may be gone */
	if (is_long)
		end_next(poller);
	return n;
}

void rt_end_begin_poller(struct rpma_rt_conn *conn)
{
	struct rt_poller *poller = conn->poller;
	struct rt_slots *slots = rt_slots_of(poller);

	/* while its own routes lead to its queue still */
	rt_futures_end_poller(conn);
	conn->poll.to_announce = conn->poll.routes;
	conn->poll.to_close = conn->poll.routes;
	conn->poll.mark = ++slots->marks;
	/* each route is gone through twice */
	conn->poll.is_long = 2 * conn->poll.routes_count > RT_SCHEDULE_UNITS;
	rt_task_init(&conn->poll.dying, end);
	if (conn->poll.is_long && slots->is_ending) {
		rt_schedule_wait(&conn->poll.dying, &slots->ending);
		return;
	}
	slots->is_ending |= conn->poll.is_long;
	rt_schedule_ready(poller, &conn->poll.dying);
}
