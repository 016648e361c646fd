/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * route.h -- places for what may ever be delivered: lane and spill, routes
 * and their numbers. Under the runtime's lock.
 */

#ifndef RT_CONN_ROUTE_H
#define RT_CONN_ROUTE_H

#include "conn/conn.h"

/*
 * A route and its number, with a place in the queue's lane; *spill_ptr is a
 * larger spill for the poller to take, or NULL. Holds the queue. queue NULL:
 * a route to a function, which the caller fills in.
 * REQUIRES: the runtime's lock. ERRORS: RPMA_E_NOMEM, RPMA_E_AGAIN (the
 * queue's consumer is behind), RPMA_RT_E_CLOSED (the queue is)
 */
int rt_route_new(struct rpma_rt_conn *conn, enum rpma_rt_side side,
		 struct rpma_rt_queue *queue, uint32_t entries,
		 struct rpma_rt_route **route_ptr, struct rt_spill **spill_ptr);
/* The poller has moved own, a route of its own queue, to where to leads, and
 * the connection may have ended since. Place and hold pass over, to ends.
 * REQUIRES: the runtime's lock */
void rt_route_swap(struct rpma_rt_route *own, struct rpma_rt_queue *from,
		   struct rt_lane *from_lane, struct rpma_rt_route *to);
/* Undoes it, before the poller knew of route and spill. REQUIRES: the
 * runtime's lock, held since rt_route_new() */
void rt_route_undo(struct rpma_rt_conn *conn, struct rpma_rt_route *route,
		   struct rt_spill *spill);
/* Gives place and number back. The queue's lane may be gone once the queue was
 * put: that comes after it. REQUIRES: the runtime's lock */
void rt_route_release(struct rpma_rt_conn *conn, struct rpma_rt_route *route);

#endif /* RT_CONN_ROUTE_H */
