/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * bind.c -- the poller's side of a connection's begin and end: routes in the
 * CQ's table, the queue pair's number, the items that open the sides; the last
 * items. Runs on the connection's poller only. doc/protocols/connection.md,
 * srq.md.
 */

#include "conn/conn.h"

#include "conn/fill.h"
#include "conn/futures.h"
#include "conn/listener.h"
#include "conn/route.h"
#include "conn/slots.h"
#include "poller/cq_pool.h"
#include "poller/poller.h"
#include "poller/qp_table.h"
#include "pool/pool.h"
#include "queue/lane.h"
#include "queue/queue.h"
#include "srq/srq.h"

static void bind_write_event(struct rpma_rt_conn *conn,
			     enum rpma_rt_event event)
{
	struct rpma_rt_completion item = rt_item_event(conn, event);

	rt_item_write(conn, &item);
}

/* Writes the event that opens a side. Refused posters get WRITABLE after the
 * event. */
static void bind_write_open(struct rpma_rt_conn *conn, enum rpma_rt_event event,
			    enum rpma_rt_side side)
{
	bind_write_event(conn, event);
	rt_futures_event_poller(conn, event == RPMA_RT_EVENT_REQUEST
					      ? RPMA_RT_EVENT_READY
					      : event);
	rt_deliver_touch_side(conn->poller, &conn->side[side]);
}

static bool bind_is_late(const struct rpma_rt_conn *conn)
{
	return conn->poll.bind == RT_BIND_LATE ||
	       conn->poll.bind == RT_BIND_LATE_READY;
}

void rt_bind_ready_poller(struct rpma_rt_conn *conn)
{
	struct rt_listener_poller *part =
		conn->passive ? conn->poll.brought.part : NULL;

	if (bind_is_late(conn)) {
		conn->poll.bind = RT_BIND_LATE_READY;
		return;
	}
	bind_write_open(conn,
			conn->passive ? RPMA_RT_EVENT_REQUEST
				      : RPMA_RT_EVENT_READY,
			RPMA_RT_RECV_SIDE);
	if (part != NULL && part->lane == NULL)
		rt_listener_poller_offer(part, conn);
	if (part != NULL) /* the listener may end afterwards */
		rt_listener_poller_requested(part);
}

/* ------------------------------------ its number and its SRQ's receives --- */

/* Ends the wait for a reused number: the number is free now, or the connection
 * dies. */
static void end_qp_num_wait(struct rpma_rt_conn *conn)
{
	struct rpma_rt_conn **link = &rt_slots_of(conn->poller)->late;
	bool is_ready = conn->poll.bind == RT_BIND_LATE_READY;

	while (*link != conn)
		link = &(*link)->poll.late_next;
	*link = conn->poll.late_next;
	conn->poll.bind = RT_BIND_DONE;
	if (is_ready)
		rt_bind_ready_poller(conn);
}

void rt_bind_give_up_poller(struct rpma_rt_conn *conn)
{
	if (bind_is_late(conn))
		end_qp_num_wait(conn);
}

void rt_bind_leave_poller(struct rpma_rt_conn *conn)
{
	struct rpma_rt_conn *waiter = rt_slots_of(conn->poller)->late;

	if (rt_conn_srq(conn) == NULL || conn->poll.bind == RT_BIND_NONE ||
	    rt_qp_table_find(conn->cq->qps, conn->qp_num) !=
		    conn->poll.srq_route)
		return;
	rt_qp_table_remove(conn->cq->qps, conn->qp_num);
	while (waiter != NULL &&
	       (waiter->cq != conn->cq || waiter->qp_num != conn->qp_num))
		waiter = waiter->poll.late_next;
	if (waiter == NULL)
		return;
	rt_qp_table_set(waiter->cq->qps, waiter->qp_num,
			waiter->poll.srq_route);
	end_qp_num_wait(waiter);
}

/* -------------------------------------------------------- its routes --- */

/* Drops an item of a connection without a queue: no item should come, and an
 * item that a device invents goes nowhere. */
static void bind_forget(const struct rpma_rt_completion *cmpl, void *arg)
{
	(void)cmpl;
	(void)arg;
}

static struct rt_callback nowhere = {.fn = bind_forget};

/* Returns the futures for messages of a connection without a queue, or NULL. */
static struct rt_futures *bind_messages_of(const struct rpma_rt_conn *conn)
{
	return rt_conn_srq(conn) != NULL ? conn->from.srq->messages
					 : rt_fill_messages(conn);
}

static struct rt_route_entry bind_own_entry(struct rpma_rt_conn *conn,
					    const struct rpma_rt_route *route)
{
	struct rt_futures *messages = bind_messages_of(conn);
	struct rt_route_entry entry = {
		.leads_to = RT_TO_LANE,
		.lane = rt_route_lane(route),
		.user = rt_item_user(conn),
		.side = &conn->side[route->side],
	};

	if (entry.lane != NULL)
		return entry;
	if (messages != NULL && route->side == RPMA_RT_RECV_SIDE) {
		entry.leads_to = RT_TO_SOURCE;
		entry.futures = messages;
	} else {
		entry.leads_to = RT_TO_CALLBACK;
		entry.callback = &nowhere;
	}
	return entry;
}

/* Returns the entry for work requests with a lease, which leads to the pool of
 * the lease. */
static struct rt_route_entry *bind_lease_entry(const struct rpma_rt_conn *conn)
{
	return &conn->cq->routes[conn->own[RPMA_RT_SEND_SIDE].leases];
}

/* Replaces the table of queue pairs of the CQ by a larger table. */
static void bind_take_qp_table(struct rpma_rt_conn *conn)
{
	struct rt_qp_table *qps = conn->poll.brought.qps;

	rt_qp_table_move(qps, conn->cq->qps);
	rt_qp_table_delete(conn->cq->qps);
	conn->cq->qps = qps;
	conn->poll.brought.qps = NULL;
}

void rt_bind_open_poller(struct rpma_rt_conn *conn)
{
	struct rpma_rt_route *route;
	int i;

	rt_slots_set_poller(conn->poller, conn->slot, conn);
	for (i = 0; i < 2; i++) {
		route = &conn->own[i];
		rt_owing_list_poller(conn, route);
		conn->cq->routes[route->number] = bind_own_entry(conn, route);
	}
	*bind_lease_entry(conn) = (struct rt_route_entry){
		.leads_to = RT_TO_SINK,
		.sink = rt_pool_end_send,
		.side = &conn->side[RPMA_RT_SEND_SIDE],
	};
	if (rt_conn_fed(conn) != NULL)
		conn->cq->routes[conn->own[RPMA_RT_RECV_SIDE].number].flags =
			RPMA_RT_C_LEASE;
	for (i = 0; i < 2 && rt_conn_lane(conn) != NULL; i++) {
		rt_lane_take_spill_poller(rt_conn_lane(conn),
					  conn->poll.brought.spill[i]);
		conn->poll.brought.spill[i] = NULL;
	}
	if (conn->poll.brought.qps != NULL)
		bind_take_qp_table(conn);
	rt_futures_open_poller(conn);
	conn->poll.srq_route = conn->own[RPMA_RT_RECV_SIDE].number;
}

/* Enters the connection in the table: completions of the SRQ find the
 * connection by the queue pair's number. Waits if a former user of the number
 * may have completions left. */
static void bind_enter_qp_table(struct rpma_rt_conn *conn)
{
	struct rt_slots *slots = rt_slots_of(conn->poller);

	if (rt_qp_table_find(conn->cq->qps, conn->qp_num) == 0) {
		rt_qp_table_set(conn->cq->qps, conn->qp_num,
				conn->poll.srq_route);
		return;
	}
	conn->poll.bind = RT_BIND_LATE;
	conn->poll.late_next = slots->late;
	slots->late = conn;
}

void rt_bind_qp_poller(struct rpma_rt_conn *conn)
{
	const struct rpma_rt_route *route;

	conn->poll.bind = RT_BIND_DONE;
	rt_side_mark(&conn->side[RPMA_RT_SEND_SIDE], RT_SIDE_HEALTHY);
	rt_side_mark(&conn->side[RPMA_RT_RECV_SIDE], RT_SIDE_HEALTHY);
	for (route = conn->poll.routes; route != NULL;
	     route = rt_route_next(route))
		conn->cq->routes[route->number].qp_key =
			rt_qp_key(conn->qp_num);
	bind_lease_entry(conn)->qp_key = rt_qp_key(conn->qp_num);
	rt_futures_bind_poller(conn);
	if (rt_conn_srq(conn) != NULL)
		bind_enter_qp_table(conn);
}

void rt_bind_established_poller(struct rpma_rt_conn *conn)
{
	bind_write_open(conn, RPMA_RT_EVENT_ESTABLISHED, RPMA_RT_SEND_SIDE);
}

/* ------------------------------------------------------------------ end --- */

/*
 * The end: ROUTE_CLOSED in every place to which the connection had a route,
 * then CLOSED. A connection may have tens of thousands of routes, so a few
 * routes are closed in each round. A mark in the lane says that the connection
 * has written ROUTE_CLOSED there already. Connections that need several rounds
 * end one after the other, each with a mark of its own, because otherwise they
 * would overwrite each other's marks.
 */

static int end_step(struct rt_task *task, struct rt_poller *poller);

/* Marks the lane. Returns true if this is the connection's first route to the
 * lane. */
static bool end_mark(const struct rpma_rt_conn *conn, struct rt_lane *lane)
{
	uint64_t *marked = &lane->marks[conn->poll.is_long];

	if (*marked == conn->poll.mark)
		return false;
	*marked = conn->poll.mark;
	return true;
}

static void end_close_route(struct rpma_rt_conn *conn,
			    struct rpma_rt_route *route)
{
	struct rpma_rt_completion item =
		rt_item_event(conn, RPMA_RT_EVENT_ROUTE_CLOSED);
	struct rt_route_entry *entry = &conn->cq->routes[route->number];
	struct rt_lane *lane = rt_route_lane(route);

	/* a closed route gets no further ROUTE_CLOSED, and has no waiter. Of
	 * the open routes each function is called, and each lane gets a single
	 * ROUTE_CLOSED; the own queue, if there is a queue, gets CLOSED */
	if (!rt_route_is_closed(route) && !route->is_own &&
	    (lane == NULL ||
	     (lane != rt_conn_lane(conn) && end_mark(conn, lane))))
		rt_deliver_item(conn->poller, entry, &item);
	*entry = (struct rt_route_entry){0};
	if (route->leases != 0)
		conn->cq->routes[route->leases] = (struct rt_route_entry){0};
	if (!route->is_own)
		rt_owing_unhash_poller(rt_route_opened(route));
	rt_waiter_delete(route->waiter);
	route->waiter = NULL;
}

/* Closes the next routes, up to max; returns their number. Every route
 * announces its leave first, because a consumer that takes ROUTE_CLOSED may
 * delete the queue. */
static int end_close_routes(struct rpma_rt_conn *conn, int max)
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
		end_close_route(conn, route);
		conn->poll.to_close = rt_route_next(route);
		n++;
	}
	return n;
}

static void end_finish(struct rpma_rt_conn *conn, struct rt_poller *poller)
{
	if (rt_conn_srq(conn) != NULL)
		/* relaxed: the later publication of CLOSED orders the store */
		atomic_fetch_add_explicit(&conn->from.srq->leaving, 1,
					  memory_order_relaxed);
	rt_pool_announce_unref(rt_fill_pool(conn));
	rt_futures_closing_poller(conn);
	/* functions have returned before CLOSED is visible */
	rt_deliver_flush(poller);
	if (conn->ctl.handshake != RT_HANDSHAKE_UNHEARD)
		bind_write_event(conn, RPMA_RT_EVENT_CLOSED);
	rt_futures_closed_poller(conn);
	rt_slots_set_poller(poller, conn->slot, NULL);
	/* rung before the control thread lets the queues go */
	rt_deliver_flush(poller);
	rt_conn_tell_control(conn, RT_CTL_DONE);
}

/* Makes the next connection ready whose end takes several rounds. */
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

static int end_step(struct rt_task *task, struct rt_poller *poller)
{
	struct rpma_rt_conn *conn =
		RT_FROM(struct rpma_rt_conn, poll.dying, task);
	int n = end_close_routes(conn, RT_SCHEDULE_UNITS);
	bool is_long = conn->poll.is_long;

	if (conn->poll.to_announce != NULL || conn->poll.to_close != NULL) {
		rt_schedule_ready(poller, task);
		return n;
	}
	end_finish(conn, poller); /* the connection may be freed */
	if (is_long)
		end_next(poller);
	return n;
}

void rt_end_begin_poller(struct rpma_rt_conn *conn)
{
	struct rt_poller *poller = conn->poller;
	struct rt_slots *slots = rt_slots_of(poller);

	/* while the own routes still lead to the queue */
	rt_futures_end_poller(conn);
	conn->poll.to_announce = conn->poll.routes;
	conn->poll.to_close = conn->poll.routes;
	conn->poll.mark = ++slots->marks;
	/* the end walks over each route twice */
	conn->poll.is_long = 2 * conn->poll.routes_count > RT_SCHEDULE_UNITS;
	rt_task_init(&conn->poll.dying, end_step);
	if (conn->poll.is_long && slots->is_ending) {
		rt_schedule_wait(&conn->poll.dying, &slots->ending);
		return;
	}
	slots->is_ending |= conn->poll.is_long;
	rt_schedule_ready(poller, &conn->poll.dying);
}
