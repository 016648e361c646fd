/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * drain.c -- the poller's side of a connection's life: messages from the
 * control thread, completions that are no success, and the last items.
 * Runs on the connection's poller only. doc/protocols/connection.md.
 */

#include "conn/drain.h"

#include <assert.h>
#include <string.h>

#include "base/clock.h"
#include "base/runtime.h"
#include "poller/cq_pool.h"
#include "poller/poller.h"
#include "poller/qp_table.h"
#include "queue/queue.h"

static void *user_of(const struct rpma_rt_conn *conn)
{
	/* relaxed: the application orders its own pointer */
	return atomic_load_explicit(&conn->user, memory_order_relaxed);
}

/* A WR that failed is told of also where the peer's leaving, which it may have
 * caused, was heard of first. */
static enum rpma_rt_reason reason_of(const struct rpma_rt_conn *conn)
{
	return conn->poll.failed &&
			       conn->ctl.reason == RPMA_RT_REASON_DISCONNECTED
		       ? RPMA_RT_REASON_ERROR
		       : conn->ctl.reason;
}

/* An item that is about the connection itself. */
static struct rpma_rt_completion event_item(const struct rpma_rt_conn *conn,
					    enum rpma_rt_event event)
{
	struct rpma_rt_completion item = {
		.context = (uintptr_t)conn,
		.user = user_of(conn),
		.qp_num = conn->poll.bound ? conn->qp_num : 0,
		.kind = RPMA_RT_EVENT,
		.opcode = (uint8_t)event,
	};

	if (event == RPMA_RT_EVENT_CLOSED ||
	    event == RPMA_RT_EVENT_ROUTE_CLOSED) {
		item.status = (uint8_t)reason_of(conn);
		item.imm = conn->ctl.cm_status;
	}
	return item;
}

/* Into its own queue. */
static void write_event(struct rpma_rt_conn *conn, enum rpma_rt_event event)
{
	struct rpma_rt_completion item = event_item(conn, event);

	rt_deliver_write(conn->poller, conn->poll.lane, &item);
}

/* That side's gate is open: whoever was refused is told behind the event. */
static void write_open(struct rpma_rt_conn *conn, enum rpma_rt_event event,
		       enum rpma_rt_side side)
{
	write_event(conn, event);
	rt_deliver_touch_side(conn->poller, &conn->side[side]);
}

static void ready(struct rpma_rt_conn *conn)
{
	conn->poll.late_ready = conn->poll.late;
	if (!conn->poll.late)
		write_open(conn,
			   conn->passive ? RPMA_RT_EVENT_REQUEST
					 : RPMA_RT_EVENT_READY,
			   RPMA_RT_RECV_SIDE);
}

/* ------------------------------------ its number and its SRQ's receives --- */

/* It waits no more: it may have its number now, or dies. */
static void end_qp_num_wait(struct rpma_rt_conn *conn)
{
	struct rpma_rt_conn **link = &conn->poller->late;

	while (*link != conn)
		link = &(*link)->poll.late_next;
	*link = conn->poll.late_next;
	conn->poll.late = false;
	if (conn->poll.late_ready)
		ready(conn);
}

/* It is swept: its number may be another's. */
static void leave_qp_table(struct rpma_rt_conn *conn)
{
	struct rpma_rt_conn *waiter = conn->poller->late;

	if (!conn->poll.bound ||
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

/* ------------------------------------------------------------- settling --- */

static void write_settled(struct rpma_rt_conn *conn,
			  const struct rt_ledger_entry *entry,
			  const struct rt_kept *kept)
{
	struct rt_route_entry *route =
		&conn->cq->routes[rt_wr_id_route(entry->wr_id)];
	struct rpma_rt_completion item = {
		.context = rt_wr_id_cookie(entry->wr_id),
		.user = route->user,
		.byte_len = kept->byte_len,
		.imm = kept->imm,
		.qp_num = conn->qp_num,
		.kind = RPMA_RT_COMPLETION,
		.status = kept->status,
		.opcode = kept->status == IBV_WC_SUCCESS ? kept->opcode
							 : entry->opcode,
		.flags = kept->flags,
	};

	rt_deliver_item(conn->poller, route, &item);
}

static void settle(struct rpma_rt_conn *conn, const struct rt_kept *kept)
{
	const struct rt_ledger_entry *entry;
	bool success = kept->status == IBV_WC_SUCCESS;

	entry = rt_ledger_settle(&conn->gate[kept->side].ledger, kept->wr_id,
				 success);
	if (entry == NULL) {
		RT_STAT_ADD(conn->poller, stale, 1);
		return;
	}
	if (success && (entry->wr_id & RT_ON_ERROR_ONLY))
		return;
	write_settled(conn, entry, kept);
}

/* Only what is valid is read: on an error four fields are. */
static void to_kept(const struct rt_side *side, const struct ibv_wc *wc,
		    struct rt_kept *kept)
{
	*kept = (struct rt_kept){
		.wr_id = wc->wr_id,
		.status = (uint8_t)wc->status,
		.side = side->which,
	};
	if (wc->status != IBV_WC_SUCCESS) {
		kept->imm = wc->vendor_err;
		return;
	}
	kept->byte_len = wc->byte_len;
	kept->imm = wc->imm_data;
	kept->opcode = (uint8_t)wc->opcode;
	kept->flags = (uint8_t)wc->wc_flags &
		      (RPMA_RT_F_WITH_IMM | RPMA_RT_F_WITH_INV);
}

static void become_broken(struct rpma_rt_conn *conn)
{
	int i;

	conn->poll.state = RT_PS_BROKEN;
	for (i = 0; i < 2; i++) {
		conn->side[i].healthy = false;
		/* relaxed: a hint to posters; the control thread makes it firm
		 * under the lock */
		atomic_store_explicit(&conn->gate[i].state, RT_GATE_CLOSED,
				      memory_order_relaxed);
	}
	rt_conn_tell_control(conn, RT_CTL_BROKEN);
}

static bool is_failure(enum ibv_wc_status status)
{
	return status != IBV_WC_SUCCESS && status != IBV_WC_WR_FLUSH_ERR;
}

void rt_conn_break_poller(struct rpma_rt_conn *conn, enum ibv_wc_status status)
{
	conn->poll.failed |= is_failure(status);
	if (conn->poll.state == RT_PS_HEALTHY)
		become_broken(conn);
}

void rt_conn_slow_completion(struct rt_side *side, const struct ibv_wc *wc)
{
	struct rpma_rt_conn *conn = side->conn;
	struct rt_kept kept;

	to_kept(side, wc, &kept);
	conn->poll.failed |= is_failure(wc->status);
	switch (conn->poll.state) {
	case RT_PS_HEALTHY:
		become_broken(conn);
		/* fall through */
	case RT_PS_BROKEN:
		if (conn->poll.kept_count < conn->poll.kept_max)
			conn->poll.kept[conn->poll.kept_count++] = kept;
		else /* more than was posted: the device repeats itself */
			RT_STAT_ADD(conn->poller, stale, 1);
		break;
	case RT_PS_SETTLING:
	case RT_PS_SWEEPING:
		settle(conn, &kept);
		break;
	case RT_PS_SWEPT:
		RT_STAT_ADD(conn->poller, stale, 1);
		break;
	}
}

void rt_conn_marker_poller(struct rpma_rt_conn *conn, enum rpma_rt_side side)
{
	conn->poll.markers_seen |= 1u << side;
}

/* --------------------------------------------------- the order of death --- */

static void list_dying(struct rpma_rt_conn *conn)
{
	conn->poll.dying_next = conn->poller->dying;
	conn->poller->dying = conn;
}

/* For who looks on: nobody else may read a ledger that was handed over. */
static void publish_owed(struct rpma_rt_conn *conn)
{
	int i;

	for (i = 0; i < 2; i++)
		/* relaxed: a figure */
		atomic_store_explicit(
			&conn->gate[i].owed,
			rt_ledger_unsettled(&conn->gate[i].ledger),
			memory_order_relaxed);
}

static void handover(struct rpma_rt_conn *conn)
{
	struct rt_side *side;
	uint32_t n;
	int i;

	rt_keepalive_end(conn);
	if (conn->poll.late)
		end_qp_num_wait(conn);
	for (i = 0; i < 2; i++) {
		side = &conn->side[i];
		side->healthy = false;
		rt_ledger_reap(&conn->gate[i].ledger, side->count);
	}
	conn->poll.state = RT_PS_SETTLING;
	for (n = 0; n < conn->poll.kept_count; n++)
		settle(conn, &conn->poll.kept[n]);
	conn->poll.kept_count = 0;
	publish_owed(conn);
	conn->poll.deadline_ns =
		rt_now_ns() +
		(uint64_t)conn->poller->rt->cfg.drain_ms * 1000000u;
	list_dying(conn);
}

bool rt_conn_try_drained_poller(struct rpma_rt_conn *conn, uint64_t now_ns)
{
	int i;

	if ((conn->poll.markers_seen & conn->ctl.markers_due) !=
		    conn->ctl.markers_due &&
	    !conn->cq->dead && now_ns < conn->poll.deadline_ns)
		return false;
	for (i = 0; i < 2; i++) {
		if (conn->poll.markers_seen & (1u << i))
			rt_ledger_settle_marker(&conn->gate[i].ledger);
	}
	publish_owed(conn);
	rt_conn_tell_control(conn, RT_CTL_DRAINED);
	return true;
}

static void gone(struct rpma_rt_conn *conn)
{
	conn->poll.state = RT_PS_SWEEPING;
	conn->poll.sweep_taken = conn->cq->taken;
	conn->poll.sweep_empty = conn->cq->empties;
	list_dying(conn);
}

static void synthesize(struct rpma_rt_conn *conn, struct rt_gate *gate)
{
	static const struct rt_kept unknown = {.status = IBV_WC_GENERAL_ERR,
					       .flags = RPMA_RT_F_SYNTHESIZED};
	const struct rt_ledger_entry *entry;

	while ((entry = rt_ledger_take_unsettled(&gate->ledger)) != NULL)
		write_settled(conn, entry, &unknown);
}

bool rt_conn_try_swept_poller(struct rpma_rt_conn *conn)
{
	const struct rt_cq *cq = conn->cq;

	if (cq->empties == conn->poll.sweep_empty &&
	    cq->taken - conn->poll.sweep_taken < cq->cqe && !cq->dead)
		return false;
	conn->poll.state = RT_PS_SWEPT;
	if (conn->srq != NULL)
		leave_qp_table(conn);
	synthesize(conn, &conn->gate[RPMA_RT_SEND_SIDE]);
	synthesize(conn, &conn->gate[RPMA_RT_RECV_SIDE]);
	publish_owed(conn);
	rt_conn_tell_control(conn, RT_CTL_SWEPT);
	return true;
}

/* Has an earlier route of the list the same lane? */
static bool is_repeated(const struct rpma_rt_conn *conn,
			const struct rpma_rt_route *route)
{
	const struct rpma_rt_route *other;

	if (route->fn != NULL)
		return false; /* each function hears of it */
	for (other = conn->poll.routes; other != route; other = other->next) {
		if (other->lane == route->lane)
			return true;
	}
	return false;
}

static void last(struct rpma_rt_conn *conn)
{
	struct rpma_rt_completion item =
		event_item(conn, RPMA_RT_EVENT_ROUTE_CLOSED);
	const struct rpma_rt_route *route;
	struct rt_route_entry *entry;

	for (route = conn->poll.routes; route != NULL; route = route->next) {
		if (route->queue != NULL)
			rt_queue_announce_unref(route->queue);
	}
	for (route = conn->poll.routes; route != NULL; route = route->next) {
		entry = &conn->cq->routes[route->number];
		if (route->lane != conn->poll.lane && !is_repeated(conn, route))
			rt_deliver_item(conn->poller, entry, &item);
		*entry = (struct rt_route_entry){0};
	}
	if (conn->srq != NULL)
		/* relaxed: CLOSED, which is published after it, carries it */
		atomic_fetch_add_explicit(&conn->srq->leaving, 1,
					  memory_order_relaxed);
	/* functions have returned when CLOSED is seen */
	rt_deliver_flush(conn->poller);
	if (!conn->ctl.silent)
		write_event(conn, RPMA_RT_EVENT_CLOSED);
	conn->poller->slots[conn->slot] = NULL;
	/* rung before the control thread lets the queues go */
	rt_deliver_flush(conn->poller);
	rt_conn_tell_control(conn, RT_CTL_DONE);
}

/* -------------------------------------------------------- the way there --- */

/* A larger one for its CQ. */
static void take_qp_table(struct rpma_rt_conn *conn)
{
	rt_qp_table_move(conn->qps, conn->cq->qps);
	rt_qp_table_delete(conn->cq->qps);
	conn->cq->qps = conn->qps;
	conn->qps = NULL;
}

static void open_routes(struct rpma_rt_conn *conn)
{
	struct rpma_rt_route *route;
	int i;

	conn->poller->slots[conn->slot] = conn;
	if (conn->slot > conn->poller->slots_used)
		conn->poller->slots_used = conn->slot;
	for (i = 0; i < 2; i++) {
		route = conn->own[i];
		route->next = conn->poll.routes;
		conn->poll.routes = route;
		conn->cq->routes[route->number] = (struct rt_route_entry){
			.lane = route->lane,
			.user = user_of(conn),
			.side = &conn->side[route->side],
		};
	}
	conn->poll.lane = conn->own[0]->lane;
	for (i = 0; i < 2; i++) {
		rt_lane_take_spill_poller(conn->poll.lane, conn->spill[i]);
		conn->spill[i] = NULL;
	}
	if (conn->qps != NULL)
		take_qp_table(conn);
	conn->poll.srq_route = conn->own[RPMA_RT_RECV_SIDE]->number;
}

/* Completions of its SRQ find it, unless they may be another's still. */
static void enter_qp_table(struct rpma_rt_conn *conn)
{
	if (rt_qp_table_find(conn->cq->qps, conn->qp_num) == 0) {
		rt_qp_table_set(conn->cq->qps, conn->qp_num,
				conn->poll.srq_route);
		return;
	}
	conn->poll.late = true;
	conn->poll.late_next = conn->poller->late;
	conn->poller->late = conn;
}

static void bind_routes(struct rpma_rt_conn *conn)
{
	const struct rpma_rt_route *route;

	conn->poll.bound = true;
	conn->side[RPMA_RT_SEND_SIDE].healthy = true;
	conn->side[RPMA_RT_RECV_SIDE].healthy = true;
	for (route = conn->poll.routes; route != NULL; route = route->next)
		conn->cq->routes[route->number].qp_key =
			rt_qp_key(conn->qp_num);
	if (conn->srq != NULL)
		enter_qp_table(conn);
}

void rt_conn_messages_poller(struct rpma_rt_conn *conn, uint32_t bits)
{
	if (bits & RT_POLL_OPEN)
		open_routes(conn);
	if (bits & RT_POLL_BIND)
		bind_routes(conn);
	if (bits & RT_POLL_READY)
		ready(conn);
	if (bits & RT_POLL_ESTABLISHED) {
		write_open(conn, RPMA_RT_EVENT_ESTABLISHED, RPMA_RT_SEND_SIDE);
		rt_keepalive_begin(conn);
	}
	if (bits & RT_POLL_HANDOVER)
		handover(conn);
	if (bits & RT_POLL_GONE)
		gone(conn);
	if (bits & RT_POLL_LAST)
		last(conn);
}

/* Its SRQ's receives take that route from here on. */
static void redirect(struct rpma_rt_conn *conn, uint32_t route)
{
	if (conn->poll.bound && !conn->poll.late)
		rt_qp_table_set(conn->cq->qps, conn->qp_num, route);
	conn->poll.srq_route = route;
}

void rt_conn_add_route_poller(struct rpma_rt_conn *conn,
			      struct rpma_rt_route *route)
{
	struct rt_route_entry entry = {
		.user = user_of(conn),
		.side = &conn->side[route->side],
		.qp_key = conn->poll.bound ? rt_qp_key(conn->qp_num)
					   : RT_QP_KEY_NONE,
		.is_callback = route->fn != NULL,
	};

	if (entry.is_callback)
		entry.route = route;
	else
		entry.lane = route->lane;
	conn->cq->routes[route->number] = entry;
	if (conn->srq != NULL && route->side == RPMA_RT_RECV_SIDE)
		redirect(conn, route->number);
	route->next = conn->poll.routes;
	conn->poll.routes = route;
}

void rt_conn_set_user_poller(struct rpma_rt_conn *conn)
{
	const struct rpma_rt_route *route;

	for (route = conn->poll.routes; route != NULL; route = route->next)
		conn->cq->routes[route->number].user = user_of(conn);
}

void rt_conn_set_queue_poller(struct rpma_rt_conn *conn,
			      const struct rpma_rt_route *to)
{
	int i;

	conn->poll.lane = to->lane;
	for (i = 0; i < 2; i++) {
		/* here, not by who asked: it may die before that one goes on */
		conn->own[i]->queue = to->queue;
		conn->own[i]->lane = to->lane;
		conn->cq->routes[conn->own[i]->number].lane = to->lane;
	}
}
