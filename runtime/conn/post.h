/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * post.h -- shared by posting sends and posting receives: the gate, the credit
 * that a work request needs, the result. doc/protocols/ledger.md.
 */

#ifndef RT_CONN_POST_H
#define RT_CONN_POST_H

#include <stdbool.h>
#include <stdint.h>

#include "base/context.h"
#include "conn/conn.h"
#include "conn/gate.h"
#include "conn/route.h"
#include "poller/poller.h"
#include "poller/waiting.h"
#include "poller/want.h"
#include "queue/lane.h"

/* A call that posts nothing: 0 for a count of 0; else what is wrong, logged. */
int rt_post_nothing(struct rpma_rt_conn *conn, const void *wr, int count,
		    enum rpma_rt_side which);
/* The connection is posted to for the first time. */
void rt_post_mark(struct rpma_rt_conn *conn);
/* Receives are an SRQ's, or a pool's: RPMA_E_INVAL, logged. */
int rt_post_refuse_recv(const struct rpma_rt_conn *conn);
/* Of rt_post_enter(): the gate refused; 0: it is open by now, and the caller is
 * inside, as with RT_GATE_BEHIND. */
int rt_post_await_gate(struct rpma_rt_conn *conn, enum rpma_rt_side which,
		       int refused);
/* The end of a call that was refused, or taken in part: how many were taken; if
 * none, the error. REQUIRES: the gate was left */
int rt_post_answer(struct rpma_rt_conn *conn, int taken, int ret);

/* Is there something to post, and something to post it to? The beginning of
 * each call. */
static inline bool rt_post_has_some(const struct rpma_rt_conn *conn,
				    const void *wr, int count)
{
	rt_want_none();
	/* each by itself: as one condition they cost more */
	if (__builtin_expect(conn == NULL, 0))
		return false;
	if (__builtin_expect(wr == NULL, 0))
		return false;
	return __builtin_expect(count > 0, 1);
}

/* Was the runtime made in this process, and may that side be posted to? */
static inline int rt_post_check(struct rpma_rt_conn *conn,
				enum rpma_rt_side which)
{
	if (__builtin_expect(rt_context_check(conn->rt), 0))
		return RT_REFUSE_FORKED(conn->rt);
	if (which == RPMA_RT_RECV_SIDE &&
	    __builtin_expect(conn->receives != RT_RECEIVES_OWN, 0))
		return rt_post_refuse_recv(conn);
	/* relaxed: a set_queue() from here on leaves ROUTE_CLOSED; whoever
	 * posts orders the two */
	if (__builtin_expect(!(atomic_load_explicit(&conn->reached,
						    memory_order_relaxed) &
			       RT_REACHED_POST),
			     0))
		rt_post_mark(conn);
	return 0;
}

/* 0: the caller is inside the gate, until rt_gate_leave(). RT_GATE_BEHIND: it
 * is, but what it posts is behind what waits for room. Else an error. */
static inline int rt_post_enter(struct rpma_rt_conn *conn,
				enum rpma_rt_side which)
{
	struct rt_gate *gate = &conn->gate[which];
	int ret = rt_post_check(conn, which);

	if (__builtin_expect(ret, 0))
		return ret;
	ret = rt_gate_enter(gate);
	if (__builtin_expect(ret, 0))
		ret = rt_post_await_gate(conn, which, ret);
	if (__builtin_expect(ret, 0))
		return ret;
	gate->ledger.tick = rt_poller_date(conn->poller);
	return 0;
}

/* Inside the gate: credit for count work requests, the one of route among
 * them. ERRORS: RPMA_E_AGAIN, with one WRITABLE to follow */
int rt_post_await_credit(struct rt_gate *gate,
			 const struct rpma_rt_route *route, uint32_t count);

/* Inside the gate: a slot for a future of that side, which *future names from
 * here on. ERRORS: RPMA_E_AGAIN: all are out */
int rt_post_take_future(struct rpma_rt_conn *conn, enum rpma_rt_side side,
			uint64_t context, struct rpma_rt_future *future);
/* The same undone: it was not posted. */
void rt_post_return_future(struct rpma_rt_future *future);
/* The wr_id of a work request with that future. */
uint64_t rt_post_future_wr_id(const struct rpma_rt_future *future);

/* ----------------------------------------------------- waiting for room --- */

/* Posts the next count of those that wait, which have their room, and moves
 * waiting->first over what is posted. False: the device refused one. */
typedef bool rt_post_run_fn(struct rpma_rt_conn *conn,
			    struct rt_waiting *waiting, uint32_t count);

/* Those of that side that may wait; NULL: none. */
static inline struct rt_waiting *rt_post_waiting(const struct rt_gate *gate)
{
	return rt_waiting_of(gate->side);
}

/* May a work request with a future wait there? Of a single poster one that runs
 * the poller itself, in manual mode: it meets no other thread then. */
static inline bool rt_post_may_wait(const struct rpma_rt_conn *conn,
				    const struct rt_gate *gate)
{
	return rt_post_waiting(gate) != NULL &&
	       (!gate->single || rt_owner_is_self(&conn->poller->owned));
}

/* Inside the gate, before the first of them waits: what resumes them. */
static inline void rt_post_waiting_by(const struct rt_gate *gate,
				      int (*resume)(struct rt_side *side))
{
	struct rt_waiting *waiting = rt_post_waiting(gate);

	/* once: the poller reads it outside of the gate */
	if (waiting->resume == NULL)
		waiting->resume = resume;
}

/* Is there no room for count of that route, whatever was reaped? Leaves no
 * want. */
bool rt_post_is_full(struct rt_gate *gate, const struct rpma_rt_route *route,
		     uint32_t count);
/* Inside the gate: posts what waits, as far as there is room. 0: all of it.
 * ERRORS: RPMA_E_AGAIN: the poller goes on with it; RPMA_E_PROVIDER: the gate
 * is closed, for rt_post_answer() */
int rt_post_go_on(struct rpma_rt_conn *conn, enum rpma_rt_side side,
		  rt_post_run_fn *run);
/* The poller: the same from outside of the gate; see rt_waiting.resume. */
int rt_post_resume(struct rt_side *side, rt_post_run_fn *run);
/* Inside the gate, while some wait: refuses what may not; WRITABLE comes when
 * they are posted. RPMA_E_AGAIN */
int rt_post_stay_behind(struct rpma_rt_conn *conn, enum rpma_rt_side side);

/* Is the route's consumer behind? A function never is. */
static inline bool rt_post_is_behind(const struct rpma_rt_route *route)
{
	const struct rt_lane *lane = rt_route_lane(route);

	return lane != NULL && rt_lane_is_backlogged(lane);
}

/*
 * Credit that needs no second look: entries reaped before serve as long as they
 * last, if the flag of the lane is read after that.
 */
static inline bool rt_post_has_credit(const struct rt_gate *gate,
				      const struct rpma_rt_route *route,
				      uint32_t count)
{
	return rt_ledger_room(&gate->ledger) >= count &&
	       !rt_post_is_behind(route);
}

/* May a work request name that route? NULL: the connection's own, if it has a
 * queue. */
static inline bool rt_post_is_route(const struct rpma_rt_conn *conn,
				    const struct rpma_rt_route *route,
				    enum rpma_rt_side side)
{
	/* relaxed: a post that passes by its closing is waited for [ROUTE-1] */
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

#endif /* RT_CONN_POST_H */
