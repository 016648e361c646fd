/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * bind.c -- the poller's side of a connection's way to established: its routes
 * in the CQ's table, its queue pair's number, the items that open its sides.
 * Runs on the connection's poller only.
 * doc/protocols/connection.md, srq.md.
 */

#include "conn/conn.h"

#include "conn/fill.h"
#include "conn/futures.h"
#include "conn/listener.h"
#include "conn/owing.h"
#include "conn/route.h"
#include "conn/slots.h"
#include "poller/cq_pool.h"
#include "poller/poller.h"
#include "poller/qp_table.h"
#include "pool/pool.h"
#include "queue/lane.h"
#include "srq/srq.h"

/* That side's gate is open: refused posters get WRITABLE after the event. */
static void write_open(struct rpma_rt_conn *conn, enum rpma_rt_event event,
		       enum rpma_rt_side side)
{
	rt_item_write_event(conn, event);
	rt_futures_event_poller(conn, event == RPMA_RT_EVENT_REQUEST
					      ? RPMA_RT_EVENT_READY
					      : event);
	rt_deliver_touch_side(conn->poller, &conn->side[side]);
}

static bool is_late(const struct rpma_rt_conn *conn)
{
	return conn->poll.bind == RT_BIND_LATE ||
	       conn->poll.bind == RT_BIND_LATE_READY;
}

void rt_bind_ready_poller(struct rpma_rt_conn *conn)
{
	struct rt_listener_poller *part =
		conn->passive ? conn->poll.brought.part : NULL;

	if (is_late(conn)) {
		conn->poll.bind = RT_BIND_LATE_READY;
		return;
	}
	write_open(conn,
		   conn->passive ? RPMA_RT_EVENT_REQUEST : RPMA_RT_EVENT_READY,
		   RPMA_RT_RECV_SIDE);
	if (part != NULL && part->lane == NULL)
		rt_listener_poller_offer(part, conn);
	if (part != NULL) /* the listener may end behind it */
		rt_listener_poller_requested(part);
}

/* ------------------------------------ its number and its SRQ's receives --- */

/* Stops waiting for a reused QP number: it is free now, or conn dies. */
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
	if (is_late(conn))
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

/* It has no queue: nothing is to come there, and if a device makes something up
 * it goes nowhere. */
static void forget(const struct rpma_rt_completion *cmpl, void *arg)
{
	(void)cmpl;
	(void)arg;
}

static struct rt_callback nowhere = {.fn = forget};

/* Futures that get its messages if it has no queue, or NULL. */
static struct rt_futures *messages_of(const struct rpma_rt_conn *conn)
{
	return rt_conn_srq(conn) != NULL ? conn->from.srq->messages
					 : rt_fill_messages(conn);
}

static struct rt_route_entry own_entry(struct rpma_rt_conn *conn,
				       const struct rpma_rt_route *route)
{
	struct rt_futures *messages = messages_of(conn);
	struct rt_route_entry entry = {
		.lane = rt_route_lane(route),
		.user = rt_item_user(conn),
		.side = &conn->side[route->side],
	};

	if (entry.lane != NULL)
		return entry;
	entry.is_callback = true;
	entry.is_source = messages != NULL && route->side == RPMA_RT_RECV_SIDE;
	if (entry.is_source)
		entry.futures = messages;
	else
		entry.callback = &nowhere;
	return entry;
}

/* What work requests with a lease complete to: the pool of the lease. */
static struct rt_route_entry *lease_entry(const struct rpma_rt_conn *conn)
{
	return &conn->cq->routes[conn->own[RPMA_RT_SEND_SIDE].leases];
}

/* Replaces the QP table of conn's CQ with a larger one. */
static void take_qp_table(struct rpma_rt_conn *conn)
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
		conn->cq->routes[route->number] = own_entry(conn, route);
	}
	*lease_entry(conn) = (struct rt_route_entry){
		.sink = rt_pool_end_send,
		.side = &conn->side[RPMA_RT_SEND_SIDE],
		.is_callback = true,
		.is_sink = true,
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
		take_qp_table(conn);
	rt_futures_open_poller(conn);
	conn->poll.srq_route = conn->own[RPMA_RT_RECV_SIDE].number;
}

/* Completions of the SRQ find conn by its QP number, unless a former user of
 * the number may have some left. */
static void enter_qp_table(struct rpma_rt_conn *conn)
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
	lease_entry(conn)->qp_key = rt_qp_key(conn->qp_num);
	rt_futures_bind_poller(conn);
	if (rt_conn_srq(conn) != NULL)
		enter_qp_table(conn);
}

void rt_bind_established_poller(struct rpma_rt_conn *conn)
{
	write_open(conn, RPMA_RT_EVENT_ESTABLISHED, RPMA_RT_SEND_SIDE);
}
