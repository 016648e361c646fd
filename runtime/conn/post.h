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

#include "conn/conn.h"
#include "conn/route.h"
#include "queue/lane.h"

/* Are a call's arguments valid, and was the runtime made in this process? */
int rt_post_check(struct rpma_rt_conn *conn, const void *wr, int count);
/* 0: the caller is inside the gate, until rt_gate_leave(). Else an error. */
int rt_post_enter(struct rpma_rt_conn *conn, enum rpma_rt_side which);
/* How many were taken; if none, the error. REQUIRES: the gate was left */
int rt_post_answer(struct rpma_rt_conn *conn, int taken, int ret);

/* Inside the gate: credit for count work requests, the one of route among
 * them. ERRORS: RPMA_E_AGAIN, with one WRITABLE to follow */
int rt_post_await_credit(struct rt_gate *gate,
			 const struct rpma_rt_route *route, uint32_t count);

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

/* May a work request name that route? NULL: the connection's own. */
static inline bool rt_post_is_route(const struct rpma_rt_conn *conn,
				    const struct rpma_rt_route *route,
				    enum rpma_rt_side side)
{
	/* relaxed: a post that passes by its closing is waited for [ROUTE-1] */
	return route == NULL ||
	       (route->conn == conn &&
		atomic_load_explicit(&route->open_side, memory_order_relaxed) ==
			(uint32_t)side);
}

static inline const struct rpma_rt_route *
rt_post_route(const struct rpma_rt_conn *conn,
	      const struct rpma_rt_route *route, enum rpma_rt_side side)
{
	return route == NULL ? conn->own[side] : route;
}

/* Why the work request of that index may not name that route: RPMA_RT_E_CLOSED,
 * or RPMA_E_INVAL, which is logged. */
int rt_post_refuse_route(const struct rpma_rt_conn *conn,
			 const struct rpma_rt_route *route,
			 enum rpma_rt_side side, int index);

#endif /* RT_CONN_POST_H */
