/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * route.c -- routes and their numbers, with room in lanes and spills for every
 * item that a connection or an SRQ may deliver. Under the runtime's lock; the
 * poller takes the result over.
 */

#include "conn/route.h"

#include <stdlib.h>

#include "base/runtime.h"
#include "conn/conn.h"
#include "poller/cq_pool.h"
#include "poller/poller.h"
#include "poller/route.h"
#include "queue/lane.h"
#include "queue/queue.h"
#include "srq/srq.h"

/* Reserves a lane for a route, with the data that undoing needs. */
static int route_lane_reserve(struct rpma_rt_route *route, uint32_t entries,
			      struct rt_spill **spill_ptr)
{
	struct rt_poller *poller = route->conn->poller;
	const struct rt_lane *lane =
		rt_queue_lane(route->queue, poller->index, &poller->bell);
	struct rt_lane *reserved;
	uint32_t announced;
	int ret;

	if (lane == NULL)
		return RPMA_E_NOMEM;
	announced = lane->announced;
	route->reserved = entries;
	ret = rt_reserve_lane(poller, route->queue, entries, &reserved,
			      spill_ptr);
	if (ret)
		return ret;
	if (*spill_ptr != NULL)
		(*spill_ptr)->announced_before = announced;
	/* relaxed: no other thread knows the route yet */
	atomic_store_explicit(&route->lane, reserved, memory_order_relaxed);
	return 0;
}

/* Shares the room for an SRQ's receives: any receive of the SRQ may lead to the
 * lane, so the lane has room for all receives, reserved by the first connection
 * and kept until the last connection goes. */
static int route_share(struct rpma_rt_route *route, struct rt_spill **spill_ptr)
{
	const struct rpma_rt_srq *srq = rt_conn_srq(route->conn);
	struct rt_lane *lane = rt_route_lane(route);
	uint32_t before = *spill_ptr != NULL ? (*spill_ptr)->announced_before
					     : lane->announced;
	struct rt_spill *spill = NULL;
	int ret = 0;

	if (lane->number_users[srq->number] == 0)
		ret = rt_reserve_spill(lane, rt_srq_items(srq), &spill);
	if (ret)
		return ret;
	lane->number_users[srq->number]++;
	route->shares = true;
	if (spill != NULL) { /* the new spill has room for both */
		spill->announced_before = before;
		rt_spill_delete(*spill_ptr);
		*spill_ptr = spill;
	}
	return 0;
}

/* Gives back the route's reservation in a lane to which the route leads or
 * led. */
static void route_unreserve(const struct rpma_rt_route *route,
			    struct rt_lane *lane)
{
	const struct rpma_rt_srq *srq = rt_conn_srq(route->conn);

	if (route->shares && --lane->number_users[srq->number] == 0)
		lane->reserved -= rt_srq_items(srq);
	lane->reserved -= route->reserved;
}

static int route_place(struct rpma_rt_route *route, uint32_t entries,
		       struct rt_spill **spill_ptr)
{
	struct rpma_rt_conn *conn = route->conn;
	int ret;

	ret = route_lane_reserve(route, entries, spill_ptr);
	if (ret || rt_conn_srq(conn) == NULL ||
	    route->side != RPMA_RT_RECV_SIDE)
		return ret;
	ret = route_share(route, spill_ptr);
	if (ret == 0)
		return 0;
	rt_route_lane(route)->reserved -= entries;
	if (*spill_ptr != NULL)
		rt_route_lane(route)->announced =
			(*spill_ptr)->announced_before;
	rt_spill_delete(*spill_ptr);
	rt_queue_unref(route->queue);
	return ret;
}

/* Lists an opened route first; own routes end the list. */
static void route_list_first(struct rpma_rt_route **first,
			     struct rt_route_opened *opened)
{
	struct rpma_rt_route *next = *first;

	opened->listed_next = next;
	opened->listed_link = first;
	if (next != NULL && !next->is_own)
		rt_route_opened(next)->listed_link = &opened->listed_next;
	*first = &opened->route;
}

static void route_unlist_opened(struct rt_route_opened *opened)
{
	struct rpma_rt_route *next = opened->listed_next;

	*opened->listed_link = next;
	if (next != NULL && !next->is_own)
		rt_route_opened(next)->listed_link = opened->listed_link;
	opened->listed_link = NULL;
}

static void route_list(struct rpma_rt_conn *conn, struct rpma_rt_route *route)
{
	if (route->queue != NULL)
		route->listed_queue = rt_queue_id(route->queue);
	pthread_mutex_lock(&conn->rt->directory);
	if (route->is_own)
		conn->listed = route;
	else
		route_list_first(&conn->listed, rt_route_opened(route));
	pthread_mutex_unlock(&conn->rt->directory);
}

/* Updates the directory's copy of where the route leads to where `to` leads.
 * The caller holds both the former queue and the queue of `to`: a dump that has
 * read the former lane is over when this function returns. */
static void route_relist(struct rpma_rt_route *route,
			 const struct rpma_rt_route *to)
{
	pthread_mutex_lock(&route->conn->rt->directory);
	route->listed_queue = to->listed_queue;
	pthread_mutex_unlock(&route->conn->rt->directory);
}

/* Takes the route off the directory, before the route is freed. An own route
 * goes only when all routes in front have gone. */
static void route_unlist(struct rpma_rt_conn *conn,
			 const struct rpma_rt_route *route)
{
	pthread_mutex_lock(&conn->rt->directory);
	if (route->is_own)
		conn->listed = rt_route_listed_next(route);
	else
		route_unlist_opened(rt_route_opened(route));
	pthread_mutex_unlock(&conn->rt->directory);
}

static void route_delete_waiter(struct rpma_rt_route *route)
{
	rt_waiter_delete(route->waiter);
	route->waiter = NULL;
}

void rt_route_free(struct rpma_rt_route *route)
{
	route_delete_waiter(route);
	if (!route->is_own)
		free(rt_route_opened(route));
}

/* Initialises number, waiter and place of a record that has connection and
 * side. */
static int route_init(struct rpma_rt_route *route, struct rpma_rt_queue *queue,
		      uint32_t entries, struct rt_spill **spill_ptr)
{
	struct rpma_rt_conn *conn = route->conn;
	uint32_t number;
	int ret;

	route->queue = queue;
	/* relaxed: no other thread knows the route yet */
	atomic_store_explicit(&route->open_side, route->side,
			      memory_order_relaxed);
	if (queue != NULL) {
		route->waiter = rt_waiter_new(rt_answer_eased_poller,
					      &conn->side[route->side]);
		if (route->waiter == NULL)
			return RPMA_E_NOMEM;
	}
	ret = rt_numbers_take(&conn->cq->numbers, &number);
	if (ret)
		return ret;
	route->number = (uint16_t)number;
	*spill_ptr = NULL;
	if (queue != NULL)
		ret = route_place(route, entries, spill_ptr);
	if (ret)
		rt_numbers_return(&conn->cq->numbers, route->number);
	else
		route_list(conn, route);
	return ret;
}

int rt_route_new(struct rpma_rt_conn *conn, enum rpma_rt_side side,
		 struct rpma_rt_queue *queue, uint32_t entries,
		 struct rpma_rt_route **route_ptr, struct rt_spill **spill_ptr)
{
	struct rt_route_opened *opened;
	int ret;

	opened = calloc(1, sizeof(*opened));
	if (opened == NULL)
		return RPMA_E_NOMEM;
	opened->route.conn = conn;
	opened->route.side = (uint8_t)side;
	ret = route_init(&opened->route, queue, entries, spill_ptr);
	if (ret)
		rt_route_free(&opened->route);
	else
		*route_ptr = &opened->route;
	return ret;
}

/* Takes the number for work requests with a lease. On failure the own route is
 * undone. */
static int route_take_lease_number(struct rpma_rt_conn *conn,
				   struct rpma_rt_route *own,
				   struct rt_spill *spill)
{
	uint32_t number;
	int ret = rt_numbers_take(&conn->cq->numbers, &number);

	if (ret == 0)
		own->leases = (uint16_t)number;
	else
		rt_route_undo(conn, own, spill);
	return ret;
}

int rt_route_init_own(struct rpma_rt_conn *conn, enum rpma_rt_side side,
		      struct rpma_rt_queue *queue, uint32_t entries,
		      struct rt_spill **spill_ptr)
{
	struct rpma_rt_route *own = &conn->own[side];
	int ret;

	own->conn = conn;
	own->side = (uint8_t)side;
	own->is_own = true;
	ret = route_init(own, queue, entries, spill_ptr);
	if (ret)
		route_delete_waiter(own);
	else if (side == RPMA_RT_SEND_SIDE)
		ret = route_take_lease_number(conn, own, *spill_ptr);
	return ret;
}

void rt_route_release(struct rpma_rt_conn *conn, struct rpma_rt_route *route)
{
	if (rt_route_lane(route) != NULL)
		route_unreserve(route, rt_route_lane(route));
	rt_numbers_return(&conn->cq->numbers, route->number);
	if (route->leases != 0)
		rt_numbers_return(&conn->cq->numbers, route->leases);
}

void rt_route_swap(struct rpma_rt_route *own, struct rpma_rt_queue *from,
		   struct rt_lane *from_lane, struct rpma_rt_route *to)
{
	route_unreserve(own, from_lane);
	own->reserved = to->reserved;
	own->shares = to->shares;
	route_relist(own, to); /* before `from` is let go */
	route_unlist(own->conn, to);
	rt_numbers_return(&own->conn->cq->numbers, to->number);
	rt_route_free(to);
	rt_queue_unref_announced(from);
}

/* Takes closed routes off the directory that were buried since the last change.
 * A route that was buried before it was listed is on no list. */
static void route_unlist_buried(struct rpma_rt_conn *conn)
{
	/* acquire [ROUTE-3]: pairs with the release in
	 * rt_owing_bury_poller() */
	const struct rpma_rt_route *route =
		atomic_load_explicit(&conn->poll.buried, memory_order_acquire);
	uint32_t count = rt_owing_buried_count(route);
	uint32_t left = count - conn->poll.seen_buried;

	for (; left > 0; left--) {
		if (rt_route_opened(route)->listed_link != NULL)
			route_unlist_opened(rt_route_opened(route));
		route = rt_route_opened(route)->next;
	}
	conn->poll.seen_buried = count;
}

static bool route_is_buried(const struct rpma_rt_route *route)
{
	/* acquire: pairs with the release in rt_owing_bury_poller() */
	return atomic_load_explicit(&rt_route_opened(route)->is_buried,
				    memory_order_acquire);
}

/* Lists a closed route: the directory says that its owed completions go where
 * `to` leads. */
static void route_list_closed(struct rpma_rt_conn *conn,
			      struct rpma_rt_route *route,
			      struct rpma_rt_route *to)
{
	route_unlist(conn, route);
	pthread_mutex_lock(&conn->rt->directory);
	route_unlist_buried(conn);
	rt_route_opened(route)->listed_to = to;
	/* a route that is buried after this look is above the routes seen by
	 * route_unlist_buried() */
	if (!route_is_buried(route))
		route_list_first(&conn->listed_closed, rt_route_opened(route));
	pthread_mutex_unlock(&conn->rt->directory);
}

void rt_route_end(struct rpma_rt_route *route, struct rpma_rt_queue *from,
		  struct rt_lane *from_lane, struct rpma_rt_route *to)
{
	if (from_lane != NULL)
		route_unreserve(route, from_lane);
	route->reserved = 0;
	route->shares = false;
	route_list_closed(route->conn, route, to); /* before `from` is let go */
	if (from != NULL)
		rt_queue_unref_announced(from);
}

void rt_route_undo(struct rpma_rt_conn *conn, struct rpma_rt_route *route,
		   struct rt_spill *spill)
{
	/* a spill that the poller has got stays announced */
	if (spill != NULL)
		rt_route_lane(route)->announced = spill->announced_before;
	rt_route_release(conn, route);
	route_unlist(conn, route);
	if (route->queue != NULL)
		rt_queue_unref(route->queue);
	rt_spill_delete(spill);
	rt_route_free(route);
}
