/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * route_record.h -- what a route is made of. A connection has two of its own in
 * its record, which last as long as it does; others are opened and closed, and
 * have more to them. Who may change where a route leads:
 * doc/protocols/route.md.
 */

#ifndef RT_CONN_ROUTE_RECORD_H
#define RT_CONN_ROUTE_RECORD_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include <urcu/hlist.h>

#include "base/from.h"
#include "poller/callback.h"
#include "poller/route.h"
#include "rpma_rt.h"

struct rt_lane;
struct rt_waiter;

#define RT_ROUTE_CLOSED 2 /* of rpma_rt_route.open_side: posts are refused */

/* a caller's handle. Leads to a lane of a queue or to a function. */
struct rpma_rt_route {
	/* immutable once the opener has returned it */
	struct rpma_rt_conn *conn;
	/* written by the poller, read by posters too, and by the dump */
	_Atomic(struct rt_lane *) lane; /* NULL: a function */
	/* the poller's, these two */
	struct rt_waiter *waiter; /* for the lane; NULL: likewise, or closed */
	struct rpma_rt_queue *queue; /* held; NULL: likewise */
	uint32_t listed_queue;	     /* the directory's: its id, or 0 */
	/* under the runtime's lock */
	uint32_t reserved; /* entries of the lane's spill held for it */
	/* immutable */
	uint16_t number;
	uint8_t side; /* enum rpma_rt_side */
	bool is_own;  /* one of the connection's two; else see below */
	/* written by the poller: its side, or RT_ROUTE_CLOSED */
	_Atomic uint8_t open_side;
	bool shares; /* runtime's lock: counted in the lane's number_users */
	/* immutable, of the send side's own: the number that work requests with
	 * a lease have; of others 0 */
	uint16_t leases;
};

/* one that was opened */
struct rt_route_opened {
	struct rpma_rt_route route;
	struct rt_callback callback; /* immutable; fn NULL: a lane */
	/* the poller's */
	struct rpma_rt_route *next;  /* the connection's list, or buried ones */
	struct rpma_rt_route **link; /* what points here in the first */
	struct cds_hlist_node same_lane; /* open: of its CQ's by_lane */
	struct rt_led *followers;	 /* open: closed routes led here */
	/* closed: where what it owes goes; the others of its connection that
	 * owe; until so many have retired on its side */
	struct rt_led led;
	struct rt_route_opened *owing_next;
	uint32_t last_retired;
	uint8_t wants;		/* its function was refused, see RT_WANTS_ */
	_Atomic bool is_buried; /* the poller is through: the number may be
				 * another's */
	uint32_t buried_count;	/* buried routes up to this one */
	/* the directory's, see doc/protocols/directory.md */
	struct rpma_rt_route *listed_next;
	struct rpma_rt_route **listed_link; /* points here; NULL: off it */
	struct rpma_rt_route *listed_to;    /* closed: to is listed instead */
};

/* REQUIRES: it is none of the connection's own */
static inline struct rt_route_opened *
rt_route_opened(const struct rpma_rt_route *route)
{
	return (struct rt_route_opened *)RT_FROM(const struct rt_route_opened,
						 route, route);
}

/* The connection's own end its lists: the receive side's, then the other. */
static inline struct rpma_rt_route *
rt_route_after_own(const struct rpma_rt_route *own)
{
	return own->side == RPMA_RT_RECV_SIDE
		       ? (struct rpma_rt_route *)(uintptr_t)(own - 1)
		       : NULL;
}

static inline struct rpma_rt_route *
rt_route_next(const struct rpma_rt_route *route)
{
	return route->is_own ? rt_route_after_own(route)
			     : rt_route_opened(route)->next;
}

/* Under the directory's lock. */
static inline struct rpma_rt_route *
rt_route_listed_next(const struct rpma_rt_route *route)
{
	return route->is_own ? rt_route_after_own(route)
			     : rt_route_opened(route)->listed_next;
}

#endif /* RT_CONN_ROUTE_RECORD_H */
