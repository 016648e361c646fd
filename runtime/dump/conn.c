/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * conn.c -- the snapshot of a connection, under the directory's lock; a
 * ledger is read under its side's lock, if that is free.
 * doc/protocols/directory.md.
 */

#include "dump/snapshot.h"

#include <arpa/inet.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/stats.h"
#include "conn/hold.h"
#include "conn/conn.h"
#include "conn/route.h"
#include "poller/poller.h"
#include "queue/lane.h"

/* -------------------------------------------------------------- routes --- */

static const struct rpma_rt_route *find_route(const struct rpma_rt_conn *conn,
					      uint32_t number)
{
	const struct rpma_rt_route *route = conn->listed;

	while (route != NULL && route->number != number)
		route = rt_route_listed_next(route);
	if (route != NULL)
		return route;
	for (route = conn->listed_closed; route != NULL;
	     route = rt_route_listed_next(route)) {
		/* acquire: pairs with the release in rt_owing_bury_poller() */
		if (route->number == number &&
		    !atomic_load_explicit(&rt_route_opened(route)->is_buried,
					  memory_order_acquire))
			break;
	}
	while (route != NULL && !route->is_own &&
	       rt_route_opened(route)->listed_to != NULL)
		route = rt_route_opened(route)->listed_to;
	return route;
}

/* The routes of one of its lists: holders of queues, functions that run. */
static void take_routes(const struct rpma_rt_route *route,
			const struct rt_dump_conn *conn, struct rt_dump *dump)
{
	struct rt_dump_poller *poller = &dump->pollers[conn->poller];
	char label[RT_DUMP_LABEL];

	snprintf(label, sizeof(label), "connection \"%s\"", conn->name);
	for (; route != NULL; route = rt_route_listed_next(route)) {
		if (!route->is_own &&
		    poller->function == &rt_route_opened(route)->callback)
			memcpy(poller->function_of, label, sizeof(label));
		if (route->listed_queue != 0)
			rt_dump_hold(dump, route->listed_queue, label);
	}
}

static bool is_backlogged(const struct rpma_rt_conn *conn)
{
	const struct rpma_rt_route *route;

	const struct rt_lane *lane;

	for (route = conn->listed; route != NULL;
	     route = rt_route_listed_next(route)) {
		/* alive while the directory's lock is held: route_relist() */
		lane = rt_route_lane(route);
		if (lane != NULL && rt_lane_is_backlogged(lane))
			return true;
	}
	return false;
}

/* ------------------------------------------------------- work requests --- */

static void take_wr(const struct rpma_rt_conn *conn,
		    const struct rt_ledger_entry *entry, uint32_t now_ms,
		    struct rt_dump_wr *wr)
{
	uint32_t number = rt_wr_id_route(entry->wr_id);
	const struct rpma_rt_route *route = find_route(conn, number);
	int i;

	*wr = (struct rt_dump_wr){
		.context = rt_wr_id_cookie(entry->wr_id),
		.age_ms = rt_ms_between(entry->tick, now_ms),
		.opcode = entry->opcode,
		.on_error_only = (entry->wr_id & RT_ON_ERROR_ONLY) != 0,
	};
	if (route != NULL)
		wr->queue = route->listed_queue;
	for (i = 0; i < 2; i++)
		wr->has_future |= conn->side[i].futures != NULL &&
				  conn->side[i].futures->number == number;
}

/* Of those that are not signaled it is not known whether they wait. */
static void take_waiting(const struct rt_ledger *ledger, uint32_t first,
			 uint32_t now_ms, struct rt_dump_side *out)
{
	const struct rt_ledger_entry *entry;
	uint32_t i;

	for (i = first; i != ledger->tail; i++) {
		entry = &ledger->entries[i & ledger->mask];
		if (!entry->signaled)
			continue;
		out->has_waiting = true;
		out->waiting_opcode = entry->opcode;
		out->waiting_ms = rt_ms_between(entry->tick, now_ms);
		return;
	}
}

/* With the right to post: the ledger is the caller's. */
static void take_ledger(const struct rpma_rt_conn *conn, int side,
			uint32_t now_ms, struct rt_dump_side *out)
{
	const struct rt_ledger *ledger = &conn->gate[side].ledger;
	/* acquire [LEDGER-1]: as a holder */
	uint32_t first = atomic_load_explicit(&conn->side[side].retired,
					      memory_order_acquire);
	uint32_t i;

	out->outstanding = ledger->tail - first;
	for (i = 0; i < out->outstanding && i < RT_DUMP_WRS; i++)
		take_wr(conn, &ledger->entries[(first + i) & ledger->mask],
			now_ms, &out->wrs[i]);
	out->shown = i;
	take_waiting(ledger, first, now_ms, out);
}

/* NULL: the ledger was read. A closed side's may be the poller's already. */
static const char *try_ledger(struct rpma_rt_conn *conn, int side,
			      uint64_t word, uint32_t now_ms,
			      struct rt_dump_side *out)
{
	if (word & RT_TURN_CLOSED)
		return "closed";
	if (!rt_turn_try_take(&conn->gate[side].turn))
		return "busy";
	take_ledger(conn, side, now_ms, out);
	rt_hold_let_go(conn, (enum rpma_rt_side)side);
	return NULL;
}

static void take_side(struct rpma_rt_conn *conn, int i, uint32_t now_ms,
		      struct rt_dump_side *out)
{
	const struct rt_side *side = &conn->side[i];
	const struct rt_gate *gate = &conn->gate[i];
	uint64_t word = rt_turn_look(&gate->turn);
	uint32_t owed = rt_stat_read32(&side->owed);
	uint32_t out_now;

	*out = (struct rt_dump_side){
		.depth = gate->ledger.depth,
		.in_line = rt_freelist_used(&gate->turn.free),
		.want = rt_stat_read32(&side->want),
		.gate = (uint32_t)(word & RT_TURN_STATES),
		.is_inside = (word & RT_TURN_HELD) != 0,
		.retired = rt_stat_read32(&side->retired),
		.retired_ms = rt_ms_between(rt_stat_read32(&side->retired_ms),
					    now_ms),
	};
	out_now = rt_stat_read32(&gate->ledger.posted) - out->retired;
	out->outstanding = out_now <= out->depth ? out_now : 0;
	out->unread = try_ledger(conn, i, word, now_ms, out);
	if (owed != RT_OWED_UNKNOWN) { /* its line is among those */
		out->outstanding = owed;
		out->in_line = 0;
	}
}

/* --------------------------------------------------------- connections --- */

static void print_addr(const union rt_peer_addr *addr, char text[RT_DUMP_ADDR])
{
	char host[INET6_ADDRSTRLEN] = "?";

	if (addr->any.sa_family == AF_INET) {
		inet_ntop(AF_INET, &addr->in.sin_addr, host, sizeof(host));
		snprintf(text, RT_DUMP_ADDR, "%s:%u", host,
			 ntohs(addr->in.sin_port));
	} else if (addr->any.sa_family == AF_INET6) {
		inet_ntop(AF_INET6, &addr->in6.sin6_addr, host, sizeof(host));
		snprintf(text, RT_DUMP_ADDR, "[%s]:%u", host,
			 ntohs(addr->in6.sin6_port));
	}
}

/* What the record itself has. */
static void take_record(const struct rpma_rt_conn *conn, uint32_t now_ms,
			struct rt_dump_conn *out)
{
	uint32_t shown = rt_stat_read32(&conn->ctl.shown);
	uint32_t closing = rt_stat_read32(&conn->closing);
	/* acquire: pairs with the release in qp_is_made() */
	uint32_t reached =
		atomic_load_explicit(&conn->reached, memory_order_acquire);

	*out = (struct rt_dump_conn){
		.handle = conn,
		.slot = conn->slot,
		.number = conn->number,
		.is_named = conn->is_named,
		.state = shown & 0xff,
		.state_ms = rt_ms_between(rt_stat_read32(&conn->ctl.shown_ms),
					  now_ms),
		.reason = shown >> 8,
		/* relaxed: the program orders its own pointer */
		.user = atomic_load_explicit(&conn->user, memory_order_relaxed),
		.is_decided = (reached & RT_REACHED_DECISION) != 0,
		.is_closing = closing != 0,
		.closing_ms = rt_ms_between(closing, now_ms),
		.is_drained = rt_stat_read32(&conn->drain_ms) != 0,
		.poller = conn->poller->index,
		.holders = rt_stat_read32(&conn->target.count),
		.held = rt_stat_read32(&conn->held),
		.passive = conn->passive,
		.has_srq = conn->receives != RT_RECEIVES_OWN,
	};
	strcpy(out->name, rt_name_of(conn));
	if (!(reached & RT_REACHED_READY))
		return;
	out->qp_num = conn->qp_num;
	print_addr(&conn->peer_addr, out->peer);
}

void rt_dump_conn_take(struct rpma_rt_conn *conn, struct rt_dump *dump,
		       struct rt_dump_conn *out)
{
	uint32_t i;

	take_record(conn, dump->now_ms, out);
	out->queue = conn->own[RPMA_RT_SEND_SIDE].listed_queue;
	out->is_backlogged = is_backlogged(conn);
	for (i = 0; i < 2; i++)
		take_side(conn, (int)i, dump->now_ms, &out->side[i]);
	take_routes(conn->listed, out, dump);
	take_routes(conn->listed_closed, out, dump);
	for (i = 0; i < dump->srqs_count; i++) {
		if (dump->srqs[i].handle == rt_conn_srq(conn))
			dump->srqs[i].users++;
	}
}

void rt_dump_conn_take_ended(struct rpma_rt_conn *conn, uint32_t now_ms,
			     struct rt_dump_conn *out)
{
	take_record(conn, now_ms, out);
	out->is_ended = true;
}
