/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * route.h -- routes and their numbers, with room in lane and spill for every
 * item that they may deliver. A connection has two of its own in its record,
 * which last as long as it does; others are opened and closed, and have more to
 * them. Who may change where a route leads: doc/protocols/route.md.
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

#define RT_ROUTE_CLOSED 2 /* of rpma_rt_route.open_side: posts are refused */

/* a caller's handle. Leads to a lane of a queue or to a function. */
struct rpma_rt_route {
	/* what posters read comes first: see struct rpma_rt_conn */

	/* immutable once the opener has returned it */
	struct rpma_rt_conn *conn;
	/* written by the poller, read by posters too, and by the dump */
	_Atomic(struct rt_lane *) lane; /* NULL: a function */
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

	/* the poller's, these two */
	struct rt_waiter *waiter; /* for the lane; NULL: likewise, or closed */
	struct rpma_rt_queue *queue; /* held; NULL: likewise */
	uint32_t listed_queue;	     /* the directory's: its id, or 0 */
	/* under the runtime's lock */
	uint32_t reserved; /* entries of the lane's spill held for it */
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

/* The following run under the runtime's lock. */

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

/* -------------------------------------------------------- on the poller --- */

/* The routes of a connection's poller: its list of them, and those that are
 * closed and whose work requests are still under way. Their numbers come back
 * when none is. doc/protocols/route.md. */

/* A route that it did not have. */
void rt_owing_list_poller(struct rpma_rt_conn *conn,
			  struct rpma_rt_route *route);
/* Takes an open route that leads to a lane out of the hash, if it is there: it
 * is closed, or its connection ends. */
void rt_owing_unhash_poller(struct rt_route_opened *opened);
/* Does an open route of the connection, but its own, lead there? */
bool rt_owing_has_lane(const struct rpma_rt_conn *conn,
		       const struct rt_lane *lane);
/* A closed one of that list: it owes until so many of its side retired. */
void rt_owing_until_poller(struct rpma_rt_route *route, uint32_t retired);
/* It owes nothing: its number may be another's, its record stays. */
void rt_owing_bury_poller(struct rpma_rt_route *route);
/* How many routes of the connection are buried, up to that one, the top of a
 * stack; NULL: 0. */
uint32_t rt_owing_buried_count(const struct rpma_rt_route *buried);
/* Some have retired on that side: those that owe nothing now are buried. */
void rt_owing_look_poller(struct rt_side *side);

#endif /* RT_CONN_ROUTE_H */
