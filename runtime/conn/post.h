/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * post.h -- shared by posting sends and posting receives: what a call checks
 * first, why it is refused, slots of the line, the answer.
 * doc/protocols/ledger.md.
 */

#ifndef RT_CONN_POST_H
#define RT_CONN_POST_H

#include <stdbool.h>
#include <stdint.h>

#include "base/context.h"
#include "base/lang.h"
#include "base/line.h"
#include "conn/conn.h"
#include "conn/gate.h"
#include "conn/route.h"
#include "poller/want.h"
#include "queue/lane.h"

/* of a step of a call: the routes were led elsewhere, all is looked at again;
 * there is not the room to post alone */
#define RT_POST_STALE	1
#define RT_POST_NO_ROOM 2

/* A call that posts nothing: 0 for a count of 0; else what is wrong, logged. */
int rt_post_nothing(struct rpma_rt_conn *conn, const void *wr, int count,
		    enum rpma_rt_side which);
/* The connection is posted to for the first time. */
void rt_post_mark(struct rpma_rt_conn *conn);
/* Receives are an SRQ's, or a pool's: RPMA_E_INVAL, logged. */
int rt_post_refuse_recv(const struct rpma_rt_conn *conn);

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

/* Of a word of the turn: 0: open. ERRORS: RPMA_RT_E_CLOSED; RPMA_E_AGAIN: not
 * open yet */
static inline int rt_post_check_word(uint64_t word)
{
	if (unlikely(word & (RT_TURN_CLOSED | RT_TURN_DRAINED)))
		return RPMA_RT_E_CLOSED;
	return likely(word & RT_TURN_OPEN) ? 0 : RPMA_E_AGAIN;
}

/* ------------------------------------------------------------- refusals --- */

/* what keeps the first work request that was not taken out */
struct rt_post_refusal {
	enum rpma_rt_again reason; /* NONE: nothing does */
	/* of BACKLOG: the route; of CREDIT: so many, of a link, need places */
	const struct rpma_rt_route *route;
	uint32_t count;
};

/*
 * Leaves what the caller wants, so that exactly one WRITABLE follows, also
 * where the reason has gone meanwhile. Returns RPMA_E_AGAIN, with the reason.
 * The caller holds nothing.
 */
int rt_post_refuse(struct rpma_rt_conn *conn, enum rpma_rt_side side,
		   const struct rt_post_refusal *refusal);
/* The end of a call that was not taken whole: how many were taken; if none, the
 * error. */
int rt_post_answer(int taken, int ret);

/* Is the route's consumer behind? A function never is. The lane may be of a
 * route of before, and its queue deleted: lanes are never freed. */
static inline bool rt_post_is_behind(const struct rpma_rt_route *route)
{
	const struct rt_lane *lane = rt_route_lane(route);

	return lane != NULL && rt_lane_is_backlogged(lane);
}

/* May a work request name that route? NULL: the connection's own, if it has a
 * queue. */
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

/* ---------------------------------------------------- slots of the line --- */

/*
 * Takes count slots, a chain from the number returned on; 0: there are not so
 * many places. While a thread has slots, the connection's queue pair may go,
 * but librpma's connection and the futures stay.
 */
uint16_t rt_post_take_slots(struct rpma_rt_conn *conn, enum rpma_rt_side side,
			    uint32_t count);
/* Gives a chain of so many back, unposted, from first on. */
void rt_post_give_slots(struct rpma_rt_conn *conn, enum rpma_rt_side side,
			uint16_t first, uint32_t count);
/* Gives the first count of a chain back; returns the rest of the chain. */
uint16_t rt_post_give_surplus(struct rpma_rt_conn *conn, enum rpma_rt_side side,
			      uint16_t first, uint32_t count);
/* After the slots were taken: is the side still what it was? 0; RT_POST_STALE;
 * RPMA_RT_E_CLOSED */
int rt_post_look_again(const struct rpma_rt_conn *conn, enum rpma_rt_side side,
		       uint64_t seen);
/* Publishes the slots from first on; the last of the chain is the oldest work
 * request. 0: posted, or on the way. RT_POST_STALE, RPMA_RT_E_CLOSED: the
 * slots are the caller's still. */
int rt_post_publish(struct rpma_rt_conn *conn, enum rpma_rt_side side,
		    uint64_t seen, uint16_t first);

/* -------------------------------------------------------------- futures --- */

/* A slot for a future of that side, which *future names from here on. False:
 * all are held. */
bool rt_post_take_future(struct rpma_rt_conn *conn, enum rpma_rt_side side,
			 uint64_t context, struct rpma_rt_future *future);
/* The same undone: it was not posted. */
void rt_post_return_future(struct rpma_rt_future *future);
/* The wr_id of a work request with that future. */
uint64_t rt_post_future_wr_id(const struct rpma_rt_future *future);

/* Look for what may be wrong with a work request that is not plain. */

/* Of count, the one of that index. ERRORS: RPMA_E_INVAL, logged;
 * RPMA_RT_E_CLOSED (its route is) */
int rt_fault_check_send(const struct rpma_rt_conn *conn,
			const struct rpma_rt_wr *wrs, int count, int index);
int rt_fault_check_recv(const struct rpma_rt_conn *conn,
			const struct rpma_rt_recv_wr *wr, int index);

#endif /* RT_CONN_POST_H */
