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
#include "conn/answer.h"
#include "poller/cq_pool.h"
#include "poller/poller.h"
#include "poller/reserve.h"
#include "queue/lane.h"
#include "queue/queue.h"
#include "srq/srq.h"

/* The same for a route, and what undoing it needs. */
static int lane_reserve(struct rpma_rt_route *route, uint32_t entries,
			struct rt_spill **spill_ptr)
{
	struct rt_poller *poller = route->conn->poller;
	const struct rt_lane *lane =
		rt_queue_lane(route->queue, poller->index, &poller->bell);
	struct rt_lane *reserved;
	int ret;

	if (lane == NULL)
		return RPMA_E_NOMEM;
	route->announced_before = lane->announced;
	route->reserved = entries;
	ret = rt_reserve_lane(poller, route->queue, entries, &reserved,
			      spill_ptr);
	if (ret)
		return ret;
	/* relaxed: nobody else knows the route yet */
	atomic_store_explicit(&route->lane, reserved, memory_order_relaxed);
	rt_route_waiter(route)->lane = reserved;
	return 0;
}

/* Receives of an SRQ lead there: any of them may, so the lane has room for all,
 * kept for it by the first connection until the last one goes. */
static int share(struct rpma_rt_route *route, struct rt_spill **spill_ptr)
{
	const struct rpma_rt_srq *srq = route->conn->srq;
	struct rt_lane *lane = rt_route_lane(route);
	struct rt_spill *spill = NULL;
	int ret = 0;

	if (lane->number_users[srq->number] == 0)
		ret = rt_reserve_spill(lane, srq->cfg.srq_size, &spill);
	if (ret)
		return ret;
	lane->number_users[srq->number]++;
	route->shares = true;
	if (spill != NULL) { /* it has room for both */
		rt_spill_delete(*spill_ptr);
		*spill_ptr = spill;
	}
	return 0;
}

/* Gives back the route's reservation in that lane, which it led or leads to. */
static void unreserve(const struct rpma_rt_route *route, struct rt_lane *lane)
{
	const struct rpma_rt_srq *srq = route->conn->srq;

	if (route->shares && --lane->number_users[srq->number] == 0)
		lane->reserved -= srq->cfg.srq_size;
	lane->reserved -= route->reserved;
}

static int place_route(struct rpma_rt_route *route, uint32_t entries,
		       struct rt_spill **spill_ptr)
{
	struct rpma_rt_conn *conn = route->conn;
	int ret;

	ret = lane_reserve(route, entries, spill_ptr);
	if (ret || conn->srq == NULL || route->side != RPMA_RT_RECV_SIDE)
		return ret;
	ret = share(route, spill_ptr);
	if (ret == 0)
		return 0;
	rt_route_lane(route)->reserved -= entries;
	rt_route_lane(route)->announced = route->announced_before;
	rt_spill_delete(*spill_ptr);
	rt_queue_unref(route->queue);
	return ret;
}

static void route_list(struct rpma_rt_conn *conn, struct rpma_rt_route *route)
{
	route->listed_lane = rt_route_lane(route);
	if (route->queue != NULL)
		route->listed_queue = rt_queue_id(route->queue);
	pthread_mutex_lock(&conn->rt->directory);
	route->listed_next = conn->listed;
	conn->listed = route;
	pthread_mutex_unlock(&conn->rt->directory);
}

/* Updates the directory's copy of where route leads: where to leads. The caller
 * references both the former queue and that of to. */
static void route_relist(struct rpma_rt_route *route,
			 const struct rpma_rt_route *to)
{
	pthread_mutex_lock(&route->conn->rt->directory);
	route->listed_lane = to->listed_lane;
	route->listed_queue = to->listed_queue;
	pthread_mutex_unlock(&route->conn->rt->directory);
}

/* Takes the route off the directory, before it is freed. */
static void route_unlist(struct rpma_rt_conn *conn,
			 const struct rpma_rt_route *route)
{
	struct rpma_rt_route **link = &conn->listed;

	pthread_mutex_lock(&conn->rt->directory);
	while (*link != route)
		link = &(*link)->listed_next;
	*link = route->listed_next;
	pthread_mutex_unlock(&conn->rt->directory);
}

void rt_route_free(struct rpma_rt_route *route)
{
	rt_waiter_delete(rt_route_waiter(route));
	free(route);
}

int rt_route_new(struct rpma_rt_conn *conn, enum rpma_rt_side side,
		 struct rpma_rt_queue *queue, uint32_t entries,
		 struct rpma_rt_route **route_ptr, struct rt_spill **spill_ptr)
{
	struct rpma_rt_route *route;
	struct rt_waiter *waiter;
	int ret;

	route = calloc(1, sizeof(*route));
	if (route == NULL)
		return RPMA_E_NOMEM;
	route->conn = conn;
	route->queue = queue;
	route->side = side;
	/* relaxed: nobody else knows the route yet */
	atomic_store_explicit(&route->open_side, side, memory_order_relaxed);
	ret = RPMA_E_NOMEM;
	if (queue != NULL) {
		waiter = rt_waiter_new(rt_answer_eased_poller,
				       &conn->side[side]);
		if (waiter == NULL)
			goto err_free;
		/* relaxed: likewise */
		atomic_store_explicit(&route->waiter, waiter,
				      memory_order_relaxed);
	}
	ret = rt_numbers_take(&conn->cq->numbers, &route->number);
	if (ret)
		goto err_free;
	*spill_ptr = NULL;
	if (queue != NULL)
		ret = place_route(route, entries, spill_ptr);
	if (ret)
		goto err_return_number;
	route_list(conn, route);
	*route_ptr = route;
	return 0;
err_return_number:
	rt_numbers_return(&conn->cq->numbers, route->number);
err_free:
	rt_route_free(route);
	return ret;
}

void rt_route_release(struct rpma_rt_conn *conn, struct rpma_rt_route *route)
{
	if (rt_route_lane(route) != NULL)
		unreserve(route, rt_route_lane(route));
	rt_numbers_return(&conn->cq->numbers, route->number);
}

void rt_route_swap(struct rpma_rt_route *own, struct rpma_rt_queue *from,
		   struct rt_lane *from_lane, struct rpma_rt_route *to)
{
	unreserve(own, from_lane);
	own->reserved = to->reserved;
	own->shares = to->shares;
	route_relist(own, to); /* before from is let go */
	route_unlist(own->conn, to);
	rt_numbers_return(&own->conn->cq->numbers, to->number);
	/* relaxed: its waiter is own's now */
	atomic_store_explicit(&to->waiter, NULL, memory_order_relaxed);
	rt_route_free(to);
	rt_queue_unref_announced(from);
}

/* Closed ones that owe nothing any more leave the directory. */
static void unlist_buried(struct rpma_rt_conn *conn)
{
	struct rpma_rt_route **link = &conn->listed_closed;

	while (*link != NULL) {
		/* acquire: pairs with the release in bury() */
		if (atomic_load_explicit(&(*link)->is_buried,
					 memory_order_acquire))
			*link = (*link)->listed_next;
		else
			link = &(*link)->listed_next;
	}
}

/* The directory says that what it owes goes where to leads. */
static void route_list_closed(struct rpma_rt_conn *conn,
			      struct rpma_rt_route *route,
			      struct rpma_rt_route *to)
{
	route_unlist(conn, route);
	pthread_mutex_lock(&conn->rt->directory);
	unlist_buried(conn);
	route->listed_to = to;
	route->listed_next = conn->listed_closed;
	conn->listed_closed = route;
	pthread_mutex_unlock(&conn->rt->directory);
}

void rt_route_end(struct rpma_rt_route *route, struct rpma_rt_queue *from,
		  struct rt_lane *from_lane, struct rpma_rt_route *to)
{
	if (from_lane != NULL)
		unreserve(route, from_lane);
	route->reserved = 0;
	route->shares = false;
	route_list_closed(route->conn, route, to); /* before from is let go */
	if (from != NULL)
		rt_queue_unref_announced(from);
}

void rt_route_undo(struct rpma_rt_conn *conn, struct rpma_rt_route *route,
		   struct rt_spill *spill)
{
	/* one that the poller has got is announced rightly */
	if (spill != NULL)
		rt_route_lane(route)->announced = route->announced_before;
	rt_route_release(conn, route);
	route_unlist(conn, route);
	if (route->queue != NULL)
		rt_queue_unref(route->queue);
	rt_spill_delete(spill);
	rt_route_free(route);
}
