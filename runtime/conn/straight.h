/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * straight.h -- a straight way for the usual work requests: a call whose work
 * requests are all plain, and all go to routes or all to futures, is filled
 * into a chain, takes the right, and gives the chain to the device. Inline, and
 * so generated for the sends (straight_send.c) and the receives
 * (straight_recv.c). Any thread. doc/protocols/ledger.md.
 */

#ifndef RT_CONN_STRAIGHT_H
#define RT_CONN_STRAIGHT_H

#include <stdbool.h>
#include <stdint.h>

#include "base/lang.h"
#include "conn/conn.h"
#include "conn/post.h"

/* Where the completion of a work request goes: named alike on both sides. */
struct straight_target {
	uint64_t context;
	const struct rpma_rt_route *route;
	struct rpma_rt_future *future;
};

/* The functions of a way. wrs: the caller's work requests, of the kind
 * of the side; chain: librpma's work requests, filled in for the verb only. */
struct straight_way {
	/* fills the chain in and links the chain, or leaves that to note().
	 * Returns how many routes the work requests have; 0: a work request has
	 * to be posted in another way */
	int (*fill)(const struct rpma_rt_conn *conn, const void *wrs, int count,
		    void *chain);
	/* returns, with the right to post, whether all work requests may be
	 * posted now */
	bool (*is_ready)(const struct rpma_rt_conn *conn,
			 const struct straight_way *way, const void *wrs,
			 int count, int routes, void *chain);
	struct straight_target (*target)(const void *wrs, int index);
	uint64_t *(*wr_id)(void *chain, int index);
	enum rpma_rt_side side;
	/* takes the futures, and notes the work requests in the ledger. Returns
	 * false, and takes and notes nothing, if a work request has to be
	 * posted in another way */
	bool (*note)(struct rpma_rt_conn *conn, const void *wrs, int count,
		     void *chain);
	/* returns how many work requests the device took */
	int (*give)(struct rpma_rt_conn *conn, void *chain, int count);
};

/* functions of the straight ways */
#define STRAIGHT __attribute__((always_inline)) static inline

/* Gives back a right that was taken at the word `seen`. */
STRAIGHT void straight_leave(struct rpma_rt_conn *conn, enum rpma_rt_side side,
			     uint64_t seen, bool is_kept)
{
	if (!is_kept)
		rt_hold_leave(conn, side, seen);
	else if (unlikely(!rt_turn_go_out(&conn->gate[side].turn, seen)))
		rt_hold_published(conn, side);
}

/* Posts the work requests of a call alone, as many as the chain holds. seen:
 * the word of the turn, read before the routes are looked at. is_kept: the word
 * is rt_turn_is_kept_idle(). The code is inlined into each caller, and so
 * generated for the way, for everything that is constant in the whole call, for
 * a kept right, and for a count of 1. Returns false if nothing is posted: the
 * call has to be made in another way. */
STRAIGHT bool straight_post_at(struct rpma_rt_conn *conn, const void *wrs,
			       int count, void *chain,
			       const struct straight_way *way, uint64_t seen,
			       bool is_kept)
{
	const enum rpma_rt_side side = way->side;
	struct rt_gate *gate = &conn->gate[side];
	int routes = way->fill(conn, wrs, count, chain);
	int taken;

	if (unlikely(routes == 0))
		return false;
	if (unlikely(!(is_kept ? rt_turn_go_in(&gate->turn, seen)
			       : rt_turn_take_idle(&gate->turn, seen)))) {
		rt_hold_answer_recall(conn, side, seen);
		return false;
	}
	if (unlikely(!rt_hold_has_room(conn, side, (uint32_t)count) ||
		     !way->is_ready(conn, way, wrs, count, routes, chain) ||
		     !way->note(conn, wrs, count, chain))) {
		straight_leave(conn, side, seen, is_kept);
		return false;
	}
	taken = way->give(conn, chain, count);
	if (unlikely(taken < count)) {
		rt_ledger_refuse(&gate->ledger, (uint32_t)(count - taken));
		rt_hold_refused(conn, side, seen);
		return true;
	}
	rt_hold_show_posted(conn, side);
	straight_leave(conn, side, seen, is_kept);
	return true;
}

/* Posts the work requests of a call alone. Returns false if nothing is
 * posted. */
STRAIGHT bool straight_post(struct rpma_rt_conn *conn, const void *wrs,
			    int count, void *chain,
			    const struct straight_way *way)
{
	struct rt_turn *turn = &conn->gate[way->side].turn;
	uint64_t seen = rt_turn_look(turn);

	return likely(count <= RT_POST_CHUNK) &&
	       likely(rt_turn_is_idle(turn, seen)) &&
	       straight_post_at(conn, wrs, count, chain, way, seen, false);
}

/* Leaves the chain to note(), which writes it and the ledger in one pass. */
STRAIGHT int straight_fill_later(const struct rpma_rt_conn *conn,
				 const void *wrs, int count, void *chain)
{
	(void)conn;
	(void)wrs;
	(void)count;
	(void)chain;
	return 1;
}

STRAIGHT int straight_give_sends(struct rpma_rt_conn *conn, void *sends,
				 int count)
{
	return rt_hold_give_linked_sends(conn, sends, count);
}

/* Returns whether the connection has a queue that is not behind: what goes to
 * the own route may be posted. */
STRAIGHT bool straight_own_ready(const struct rpma_rt_conn *conn,
				 const struct straight_way *way,
				 const void *wrs, int count, int routes,
				 void *chain)
{
	const struct rt_lane *lane = rt_route_lane(&conn->own[way->side]);

	(void)wrs;
	(void)count;
	(void)routes;
	(void)chain;
	return likely(lane != NULL) && likely(!rt_lane_is_backlogged(lane));
}

/* Returns whether no consumer is behind. */
STRAIGHT bool straight_routes_ready(const struct rpma_rt_conn *conn,
				    const struct straight_way *way,
				    const void *wrs, int count, int routes,
				    void *chain)
{
	int i;

	(void)chain;
	for (i = 0; i < count; i++) {
		if (unlikely(rt_post_is_behind(rt_post_route(
			    conn, way->target(wrs, i).route, way->side))))
			return false;
		if (likely(routes == 1))
			break; /* all work requests have this route */
	}
	return true;
}

/* Returns whether the consumer of what futures do not take is not behind. */
STRAIGHT bool straight_futures_ready(const struct rpma_rt_conn *conn,
				     const struct straight_way *way,
				     const void *wrs, int count, int routes,
				     void *chain)
{
	(void)wrs;
	(void)count;
	(void)routes;
	(void)chain;
	return likely(!rt_post_is_behind(&conn->own[way->side]));
}

/* Takes the slots of the futures of the call, and puts the wr_ids into the
 * chain. pen: notes receives at once; NULL: the caller notes sends. Returns
 * false, and leaves no future taken, if there are too few slots: then what the
 * pen has noted does not count. */
STRAIGHT bool straight_name_futures(struct rpma_rt_conn *conn,
				    const struct straight_way *way,
				    const void *wrs, int count, void *chain,
				    struct rt_ledger_pen *pen, uint32_t tick)
{
	struct rt_futures *futures = conn->side[way->side].futures;
	const uint64_t number = rt_wr_id(futures->number, 0);
	const uint64_t here = rt_future_here();
	struct straight_target to;
	struct rt_future *row = NULL;
	struct rt_future *slot;
	uint32_t n = 1;
	uint64_t wr_id;
	int end;
	int i;

	for (i = 0; i < count && n > 0;) {
		n = rt_future_take_row(futures, (uint32_t)(count - i), &row);
		slot = row;
		for (end = i + (int)n; i < end; i++) {
			to = way->target(wrs, i);
			wr_id = rt_post_name_future(slot++, number, to.context,
						    to.future, here);
			*way->wr_id(chain, i) = wr_id;
			if (pen != NULL)
				rt_ledger_append_signaled(pen, wr_id,
							  IBV_WC_RECV, tick);
		}
	}
	if (likely(i == count))
		return true;
	while (i-- > 0)
		rt_post_return_future(way->target(wrs, i).future);
	return false;
}

#endif /* RT_CONN_STRAIGHT_H */
