/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * route.h -- routes and their numbers, with room in lane and spill for every
 * item that they may deliver. Under the runtime's lock.
 */

#ifndef RT_CONN_ROUTE_H
#define RT_CONN_ROUTE_H

#include "conn/conn.h"
#include "conn/route_record.h"

/* of rt_route_opened.wants: on that side */
#define RT_WANTS(side) (1u << (side))

/* For the poller; for posters, see rt_post_is_behind(); for callers that know
 * that it does not move. */
static inline struct rt_lane *rt_route_lane(const struct rpma_rt_route *route)
{
	/* acquire: pairs with show_posters(): the lane is whole. That a poster
	 * sees the newest comes from its credit, or its fence [ROUTE-1] */
	return atomic_load_explicit(&route->lane, memory_order_acquire);
}

static inline bool rt_route_is_closed(const struct rpma_rt_route *route)
{
	/* relaxed: what passes it by is not published, or waited for
	 * [ROUTE-1] */
	return atomic_load_explicit(&route->open_side, memory_order_relaxed) ==
	       RT_ROUTE_CLOSED;
}

/*
 * A route and its number, with a place in the queue's lane; *spill_ptr is a
 * larger spill for the poller to take, or NULL. Holds the queue. queue NULL:
 * a route to a function, which the caller fills in.
 * REQUIRES: the runtime's lock. ERRORS: RPMA_E_NOMEM, RPMA_RT_E_BUSY (the
 * queue's consumer is behind), RPMA_RT_E_CLOSED (the queue is)
 */
int rt_route_new(struct rpma_rt_conn *conn, enum rpma_rt_side side,
		 struct rpma_rt_queue *queue, uint32_t entries,
		 struct rpma_rt_route **route_ptr, struct rt_spill **spill_ptr);
/* Likewise the connection's own of that side. */
int rt_route_init_own(struct rpma_rt_conn *conn, enum rpma_rt_side side,
		      struct rpma_rt_queue *queue, uint32_t entries,
		      struct rt_spill **spill_ptr);
/* The poller has moved own, a route of its own queue, to where to leads, and
 * the connection may have ended since. Place and hold pass over, to ends; the
 * former queue's hold was announced. REQUIRES: the runtime's lock */
void rt_route_swap(struct rpma_rt_route *own, struct rpma_rt_queue *from,
		   struct rt_lane *from_lane, struct rpma_rt_route *to);
/* The poller has closed it, likewise: what it owes goes where to leads. Its
 * place and hold of the former queue, NULL: a function, are given back.
 * REQUIRES: the runtime's lock */
void rt_route_end(struct rpma_rt_route *route, struct rpma_rt_queue *from,
		  struct rt_lane *from_lane, struct rpma_rt_route *to);
/* Undoes it, before the poller knew of route and spill. REQUIRES: the
 * runtime's lock, held since rt_route_new() */
void rt_route_undo(struct rpma_rt_conn *conn, struct rpma_rt_route *route,
		   struct rt_spill *spill);
/* Frees a route that neither posters nor the poller use any more; of one of the
 * connection's own its waiter. */
void rt_route_free(struct rpma_rt_route *route);
/* Gives place and number back. The queue's lane may be gone once the queue was
 * put: that comes after it. REQUIRES: the runtime's lock */
void rt_route_release(struct rpma_rt_conn *conn, struct rpma_rt_route *route);

#endif /* RT_CONN_ROUTE_H */
