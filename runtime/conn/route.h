/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * route.h -- places for what may ever be delivered: lane and spill, routes
 * and their numbers. Under the runtime's lock.
 */

#ifndef RT_CONN_ROUTE_H
#define RT_CONN_ROUTE_H

#include "conn/conn.h"
#include "poller/callback.h"

/* of rpma_rt_route.wants: on that side for credit or backlog, for the lock */
#define RT_WANTS(side)	    (1u << (side))
#define RT_WANTS_LOCK(side) (4u << (side))

/* a caller's handle: immutable once the opener has returned it, but for what
 * is the poller's. Leads to a lane of a queue or to a function. */
struct rpma_rt_route {
	struct rpma_rt_conn *conn;
	struct rt_lane *lane;	     /* NULL: a function */
	struct rpma_rt_queue *queue; /* NULL: a function */
	struct rt_waiter *waiter;    /* for its lane; NULL: a function */
	struct rt_callback callback; /* fn NULL: a lane */
	struct rpma_rt_route *next;  /* the connection's list; poller */
	/* the directory's, see doc/protocols/directory.md */
	struct rpma_rt_route *listed_next;
	struct rt_lane *listed_lane; /* NULL: a function */
	uint32_t listed_queue;	     /* its id; 0: a function */
	uint8_t wants; /* its function was refused, see RT_WANTS_; poller */
	uint32_t number;
	uint32_t reserved;	   /* entries of the lane's spill held for it */
	uint32_t announced_before; /* of the lane, should it be undone */
	bool shares;		   /* counted in the lane's number_users */
	enum rpma_rt_side side;
};

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
/* The poller has moved own, a route of its own queue, to where to leads, and
 * the connection may have ended since. Place and hold pass over, to ends.
 * REQUIRES: the runtime's lock */
void rt_route_swap(struct rpma_rt_route *own, struct rpma_rt_queue *from,
		   struct rt_lane *from_lane, struct rpma_rt_route *to);
/* Undoes it, before the poller knew of route and spill. REQUIRES: the
 * runtime's lock, held since rt_route_new() */
void rt_route_undo(struct rpma_rt_conn *conn, struct rpma_rt_route *route,
		   struct rt_spill *spill);
/* What rt_route_new() made, when neither posters nor the poller use it. */
void rt_route_free(struct rpma_rt_route *route);
/* Gives place and number back. The queue's lane may be gone once the queue was
 * put: that comes after it. REQUIRES: the runtime's lock */
void rt_route_release(struct rpma_rt_conn *conn, struct rpma_rt_route *route);

#endif /* RT_CONN_ROUTE_H */
