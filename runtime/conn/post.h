/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * post.h -- shared by posting sends and posting receives of a connection: the
 * first checks of a call, routes and futures, the call that posts alone.
 * doc/protocols/ledger.md.
 */

#ifndef RT_CONN_POST_H
#define RT_CONN_POST_H

#include <stdbool.h>
#include <stdint.h>

#include "base/context.h"
#include "base/lang.h"
#include "base/log.h"
#include "conn/conn.h"
#include "conn/fill.h"
#include "conn/hold.h"
#include "conn/route.h"
#include "future/future.h"
#include "poller/post.h"
#include "queue/lane.h"

/* Returns the connection that the call posts to. */
static inline struct rpma_rt_conn *rt_post_conn(const struct rt_post *post)
{
	return post->object;
}

/* Refuses a post of receives that an SRQ or a pool supplies. Returns
 * RPMA_E_INVAL, logged. */
int rt_post_refuse_recv(const struct rpma_rt_conn *conn);

/* Returns whether there is something to post, and a connection. Begins each
 * call. */
static inline bool rt_post_has_some(const struct rpma_rt_conn *conn,
				    const void *wr, int count)
{
	rt_want_none();
	/* each condition by itself, because a single condition costs more */
	if (__builtin_expect(conn == NULL, 0))
		return false;
	if (__builtin_expect(wr == NULL, 0))
		return false;
	return __builtin_expect(count > 0, 1);
}

/* Checks that the runtime was made in this process, and that the side may be
 * posted to. Before a send, runs a deferred fill. */
static inline int rt_post_check(struct rpma_rt_conn *conn,
				enum rpma_rt_side which)
{
	if (__builtin_expect(rt_context_check(conn->rt), 0))
		return RT_REFUSE_FORKED(conn->rt);
	if (which == RPMA_RT_RECV_SIDE &&
	    __builtin_expect(conn->receives != RT_RECEIVES_OWN, 0))
		return rt_post_refuse_recv(conn);
	if (which == RPMA_RT_SEND_SIDE)
		rt_fill_before_send(conn);
	/* relaxed: a later set_queue() leaves ROUTE_CLOSED; the program orders
	 * post and set_queue() */
	if (__builtin_expect(!(atomic_load_explicit(&conn->reached,
						    memory_order_relaxed) &
			       RT_REACHED_POST),
			     0))
		/* relaxed: as above */
		atomic_fetch_or_explicit(&conn->reached, RT_REACHED_POST,
					 memory_order_relaxed);
	return 0;
}

/* Returns whether rt_post_check() would find nothing to do. */
static inline bool rt_post_is_checked(const struct rpma_rt_conn *conn,
				      enum rpma_rt_side which)
{
	/* relaxed: as in rt_post_check() */
	return !rt_context_check(conn->rt) &&
	       (which != RPMA_RT_RECV_SIDE ||
		conn->receives == RT_RECEIVES_OWN) &&
	       (which != RPMA_RT_SEND_SIDE || !rt_fill_is_deferred(conn)) &&
	       (atomic_load_explicit(&conn->reached, memory_order_relaxed) &
		RT_REACHED_POST);
}

/* Ends a call that posts nothing: returns 0 for a count of 0; otherwise logs
 * what is wrong and returns the error. */
static inline int rt_post_nothing(struct rpma_rt_conn *conn, const void *wr,
				  int count, enum rpma_rt_side which)
{
	if (conn == NULL || count < 0 || (wr == NULL && count > 0))
		return rt_wr_refuse_call("conn", conn, count);
	return rt_post_check(conn, which);
}

/* Returns whether the route's consumer is behind; false for a function. The
 * lane may be the route's former lane, and its queue deleted: lanes are never
 * freed. */
static inline bool rt_post_is_behind(const struct rpma_rt_route *route)
{
	const struct rt_lane *lane = rt_route_lane(route);

	return lane != NULL && rt_lane_is_backlogged(lane);
}

/* Returns whether a work request may name the route. NULL: the connection's own
 * route, if the connection has a queue. */
static inline bool rt_post_is_route(const struct rpma_rt_conn *conn,
				    const struct rpma_rt_route *route,
				    enum rpma_rt_side side)
{
	/* relaxed: the exchange that posts fails if the route was closed
	 * meanwhile [ROUTE-1] */
	return route == NULL
		       ? rt_conn_has_queue(conn, side)
		       : route->conn == conn &&
				 atomic_load_explicit(&route->open_side,
						      memory_order_relaxed) ==
					 side;
}

static inline const struct rpma_rt_route *
rt_post_route(const struct rpma_rt_conn *conn,
	      const struct rpma_rt_route *route, enum rpma_rt_side side)
{
	return route == NULL ? &conn->own[side] : route;
}

/* -------------------------------------------------------------- futures --- */

/* Takes a slot of the side, which *future names from here on; without a slot
 * notes the refusal and returns false. */
static inline bool rt_post_take_future(struct rt_post *post, uint64_t context,
				       struct rpma_rt_future *future)
{
	struct rt_future *slot = rt_future_take(
		rt_post_conn(post)->side[post->side].futures, context);

	if (likely(slot != NULL)) {
		rt_future_name(future, slot, rt_future_here());
		return true;
	}
	post->refusal =
		(struct rt_post_refusal){.reason = RPMA_RT_AGAIN_FUTURES};
	return false;
}

/* Begins the use of a slot that was taken, which *future names from here on.
 * number: of the route, as in a wr_id. Returns the wr_id. */
static inline uint64_t rt_post_name_future(struct rt_future *slot,
					   uint64_t number, uint64_t context,
					   struct rpma_rt_future *future,
					   uint64_t here)
{
	uint32_t generation;
	uint64_t cookie = rt_future_begin(slot, context, &generation);

	rt_future_name_use(future, slot, here | generation);
	return number + cookie; /* no bit is in both */
}

/* Gives back the slot of a future whose work request was not posted. */
static inline void rt_post_return_future(struct rpma_rt_future *future)
{
	/* two work requests of the call named the future */
	if (future->opaque[0] == 0)
		return;
	rt_future_return(rt_future_slot(future));
	*future = (struct rpma_rt_future){{0, 0}};
}

/* Returns the wr_id of a work request with the future. */
static inline uint64_t rt_post_future_wr_id(const struct rpma_rt_future *future)
{
	const struct rt_future *slot = rt_future_slot(future);

	return rt_wr_id(slot->of->number, rt_future_cookie(slot));
}

/* ---------------------------------------------------- through the line --- */

extern const struct rt_post_object_ops rt_post_side_ops;

/* Looks again after slots were taken: may the side still be posted to? Returns
 * 0; RPMA_RT_E_CLOSED; RT_POST_STALE: the generation has changed */
static inline int rt_post_look_again(const struct rt_post *post, uint64_t seen)
{
	uint64_t word;

	/* pairs with the fence in control_is_pinned(), control.c: either that
	 * look sees the slots, or this look sees the closed side [LINE-1] */
	rt_fence_dekker();
	word = rt_turn_look(post->turn);
	if (word & (RT_TURN_CLOSED | RT_TURN_DRAINED))
		return RPMA_RT_E_CLOSED;
	return word / RT_TURN_GENERATION == seen / RT_TURN_GENERATION
		       ? 0
		       : RT_POST_STALE;
}

/* --------------------------------------------------------------- alone --- */

/*
 * Does rt_post_ops.alone for a side. give() appends the work requests before
 * `end`, as far as they are ready, and gives them to the device; returns false
 * if the device refused a work request. The appended work requests are done in
 * either case.
 */
__attribute__((always_inline)) static inline int
rt_post_alone(struct rt_post *post, const struct rt_post_ops *ops,
	      enum rpma_rt_side side, uint64_t seen,
	      bool (*give)(struct rt_post *post, int end))
{
	struct rpma_rt_conn *conn = rt_post_conn(post);
	const struct rt_ledger *ledger = &conn->gate[side].ledger;
	int end = post->count;

	if (unlikely(!rt_hold_has_room(conn, side,
				       (uint32_t)(end - post->done))))
		end = rt_post_end_of_room(post, ops, ledger->depth,
					  rt_ledger_room(ledger));
	if (unlikely(end == post->done)) {
		rt_hold_leave(conn, side, seen);
		return RT_POST_NO_ROOM;
	}
	if (unlikely(!give(post, end))) {
		rt_hold_refused(conn, side, seen);
		return 0;
	}
	rt_hold_show_posted(conn, side);
	rt_hold_leave(conn, side, seen);
	/* another thread may have missed the futures that came back */
	if (unlikely(post->error))
		rt_hold_tell_places(conn, side);
	return post->error;
}

/* ------------------------------------------------- any work request --- */

/* Post any number of work requests of any kind, see rpma_rt_post_send() and
 * rpma_rt_post_recv(). count: 1 or more. */
int rt_post_send_any(struct rpma_rt_conn *conn, const struct rpma_rt_wr *wr,
		     int count);
int rt_post_recv_any(struct rpma_rt_conn *conn,
		     const struct rpma_rt_recv_wr *wr, int count);

/* Checks a work request that is not plain. ERRORS: RPMA_E_INVAL,
 * RPMA_RT_E_CLOSED (the route is closed); logged */
int rt_fault_check(const struct rt_post *post, int index);

#endif /* RT_CONN_POST_H */
