/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * route.h -- routes and their numbers, with room in lane and spill for every
 * item that the routes may deliver. A connection has two own routes in its
 * record, which last as long as the connection; other routes are opened and
 * closed, and have more words. Threads that may change where a route leads:
 * doc/protocols/route.md.
 */

#ifndef RT_CONN_ROUTE_H
#define RT_CONN_ROUTE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <urcu/hlist.h>

#include "rpma_rt.h"
#include "base/lang.h"
#include "poller/poller.h"
#include "poller/route.h"

struct rpma_rt_conn;
struct rt_lane;
struct rt_side;
struct rt_spill;
struct rt_waiter;

/* value of rpma_rt_route.open_side: posts are refused */
#define RT_ROUTE_CLOSED 2

/* a route, the caller's handle. Leads to a lane of a queue or to a function. */
struct rpma_rt_route {
	/* words that posters read come first: see struct rpma_rt_conn */

	/* immutable once the opener has returned the route */
	struct rpma_rt_conn *conn;
	/* written by the poller, read also by posters and by the dump */
	/* NULL: the route leads to a function */
	_Atomic(struct rt_lane *) lane;
	/* immutable */
	uint16_t number;
	uint8_t side; /* enum rpma_rt_side */
	/* one of the connection's two own routes; otherwise see struct
	 * rt_route_opened */
	bool is_own;
	/* written by the poller: the side, or RT_ROUTE_CLOSED */
	_Atomic uint8_t open_side;
	/* under the runtime's lock: counted in the lane's number_users */
	bool shares;
	/* immutable. In the send side's own route: the number of work requests
	 * with a lease; otherwise 0 */
	uint16_t leases;

	/* used by the poller only, these two: */
	/* waiter for the lane; NULL: leads to a function, or closed */
	struct rt_waiter *waiter;
	struct rpma_rt_queue *queue; /* held; NULL: leads to a function */
	/* used by the directory: id of the queue, or 0 */
	uint32_t listed_queue;
	/* under the runtime's lock */
	/* entries of the lane's spill that are reserved for the route */
	uint32_t reserved;
};

/* a route that was opened */
struct rt_route_opened {
	struct rpma_rt_route route;
	/* immutable; fn NULL: the route leads to a lane */
	struct rt_callback callback;
	/* used by the poller only: */
	/* list of the connection, or of buried routes */
	struct rpma_rt_route *next;
	/* the pointer to this route in the connection's list */
	struct rpma_rt_route **link;
	/* of an open route: in by_lane of the CQ */
	struct cds_hlist_node same_lane;
	/* of an open route: closed routes that lead here */
	struct rt_led *followers;
	/* of a closed route. led: where the owed completions go; owing_next:
	 * list of the connection's routes that owe; last_retired: the route
	 * owes until so many entries have retired on its side */
	struct rt_led led;
	struct rt_route_opened *owing_next;
	uint32_t last_retired;
	/* RT_WANTS() of a post that was refused inside the route's function */
	uint8_t wants;
	/* the poller is done with the route: another route may have the
	 * number */
	_Atomic bool is_buried;
	uint32_t buried_count; /* number of buried routes up to this route */
	/* used by the directory, see doc/protocols/directory.md: */
	struct rpma_rt_route *listed_next;
	/* the pointer to this route; NULL: not listed */
	struct rpma_rt_route **listed_link;
	/* of a closed route: the listed route to which it leads */
	struct rpma_rt_route *listed_to;
};

/* REQUIRES: the route is not one of the connection's own routes */
static inline struct rt_route_opened *
rt_route_opened(const struct rpma_rt_route *route)
{
	return (struct rt_route_opened *)RT_FROM(const struct rt_route_opened,
						 route, route);
}

/* Returns the route behind an own route. The own routes end the connection's
 * lists: the receive side's, then the send side's. */
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

/* Returns the next listed route. Under the directory's lock. */
static inline struct rpma_rt_route *
rt_route_listed_next(const struct rpma_rt_route *route)
{
	return route->is_own ? rt_route_after_own(route)
			     : rt_route_opened(route)->listed_next;
}

/* bit of rt_route_opened.wants for a side */
#define RT_WANTS(side) (1u << (side))

/* Returns the route's lane. For the poller; for posters, see
 * rt_post_is_behind(); for callers that know that the route is not
 * redirected. */
static inline struct rt_lane *rt_route_lane(const struct rpma_rt_route *route)
{
	/* acquire: pairs with the release in change_show_posters(), change.c:
	 * the lane is initialised. Credit or fence make sure that a poster sees
	 * the newest lane [ROUTE-1]. Unseen: a lane is no data of the
	 * program */
	return rt_load_unseen(&route->lane, memory_order_acquire);
}

static inline bool rt_route_is_closed(const struct rpma_rt_route *route)
{
	/* relaxed: a post that misses the close is not published, or is waited
	 * for [ROUTE-1] */
	return atomic_load_explicit(&route->open_side, memory_order_relaxed) ==
	       RT_ROUTE_CLOSED;
}

/* The following functions run under the runtime's lock. */

/*
 * Makes a route and its number, with a place in the queue's lane. Stores in
 * *spill_ptr a larger spill for the poller to take, or NULL. Holds the queue.
 * queue NULL: a route to a function, which the caller fills in. REQUIRES: the
 * runtime's lock. ERRORS: RPMA_E_NOMEM, RPMA_RT_E_BUSY (the queue's consumer is
 * behind), RPMA_RT_E_CLOSED (the queue is closed)
 */
int rt_route_new(struct rpma_rt_conn *conn, enum rpma_rt_side side,
		 struct rpma_rt_queue *queue, uint32_t entries,
		 struct rpma_rt_route **route_ptr, struct rt_spill **spill_ptr);
/* Initialises the connection's own route of the side, with the parameters and
 * errors of rt_route_new(). */
int rt_route_init_own(struct rpma_rt_conn *conn, enum rpma_rt_side side,
		      struct rpma_rt_queue *queue, uint32_t entries,
		      struct rt_spill **spill_ptr);
/* Finishes a move: the poller has moved `own`, a route of the connection's own
 * queue, to where `to` leads; the connection may have ended since. Place and
 * hold of `to` pass over to `own`, and `to` ends; the leave from the former
 * queue was announced. REQUIRES: the runtime's lock */
void rt_route_swap(struct rpma_rt_route *own, struct rpma_rt_queue *from,
		   struct rt_lane *from_lane, struct rpma_rt_route *to);
/* Finishes a close: the poller has closed the route, and completions that the
 * route owes go where `to` leads. The place in the former queue `from` (NULL:
 * the route led to a function) and the hold of that queue are given back.
 * REQUIRES: the runtime's lock */
void rt_route_end(struct rpma_rt_route *route, struct rpma_rt_queue *from,
		  struct rt_lane *from_lane, struct rpma_rt_route *to);
/* Undoes rt_route_new(), before the poller knows route and spill. REQUIRES: the
 * runtime's lock, held since rt_route_new() */
void rt_route_undo(struct rpma_rt_conn *conn, struct rpma_rt_route *route,
		   struct rt_spill *spill);
/* Frees a route that neither posters nor the poller use any more; of an own
 * route frees the waiter. */
void rt_route_free(struct rpma_rt_route *route);
/* Gives place and number back, before the queue is put: the queue's lane may be
 * freed afterwards. REQUIRES: the runtime's lock */
void rt_route_release(struct rpma_rt_conn *conn, struct rpma_rt_route *route);

/* -------------------------------------------------------- on the poller --- */

/* The routes of a connection on the poller: the poller's list of routes, and
 * closed routes whose work requests are still outstanding. The number of such a
 * route comes back when no work request is outstanding.
 * doc/protocols/route.md. */

/* Lists a route that is new to the poller. */
void rt_owing_list_poller(struct rpma_rt_conn *conn,
			  struct rpma_rt_route *route);
/* Takes an open route that leads to a lane out of the hash, if the route is
 * there: the route is closed, or its connection ends. */
void rt_owing_unhash_poller(struct rt_route_opened *opened);
/* Returns whether an open route of the connection, own routes aside, leads to
 * the lane. */
bool rt_owing_has_lane(const struct rpma_rt_conn *conn,
		       const struct rt_lane *lane);
/* Makes a closed route owe until `retired` entries of its side have retired. */
void rt_owing_until_poller(struct rpma_rt_route *route, uint32_t retired);
/* Buries a route that owes nothing: another route may get the number; the
 * record stays. */
void rt_owing_bury_poller(struct rpma_rt_route *route);

/* Returns how many routes of the connection are buried, up to the given route,
 * the top of a stack; NULL: 0. */
static inline uint32_t rt_owing_buried_count(const struct rpma_rt_route *buried)
{
	return buried != NULL ? rt_route_opened(buried)->buried_count : 0;
}

/* Buries the routes of a side that owe nothing any more, after entries of the
 * side have retired. */
void rt_owing_look_poller(struct rt_side *side);

#endif /* RT_CONN_ROUTE_H */
