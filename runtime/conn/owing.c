/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * owing.c -- the routes of a connection's poller: the list of routes, and
 * closed routes that owe. The number of entries that have to retire first was
 * read from the ledger when the route was closed, so nothing is counted when a
 * work request is posted or completes.
 */

#include "conn/route.h"

#include "conn/conn.h"
#include "poller/cq_pool.h"

/* ---------------------------------------------------- routes of a lane --- */

/* Returns the bucket of a connection's open routes to the lane. */
static struct cds_hlist_head *owing_bucket_of(const struct rpma_rt_conn *conn,
					      const struct rt_lane *lane)
{
	uint64_t key = (uint64_t)(uintptr_t)conn * UINT64_C(0x9e3779b97f4a7c15);

	key = (key ^ (uintptr_t)lane) * UINT64_C(0xd6e8feb86659fd93);
	return &conn->cq->by_lane[(key >> 32) & (RT_LANE_BUCKETS - 1)];
}

void rt_owing_unhash_poller(struct rt_route_opened *opened)
{
	if (opened->same_lane.prev == NULL)
		return;
	cds_hlist_del(&opened->same_lane);
	opened->same_lane.prev = NULL;
}

bool rt_owing_has_lane(const struct rpma_rt_conn *conn,
		       const struct rt_lane *lane)
{
	const struct cds_hlist_node *node = owing_bucket_of(conn, lane)->next;
	const struct rt_route_opened *opened;

	for (; node != NULL; node = node->next) {
		opened = RT_FROM(const struct rt_route_opened, same_lane, node);
		if (opened->route.conn == conn &&
		    rt_route_lane(&opened->route) == lane)
			return true;
	}
	return false;
}

/* ---------------------------------------------------------- the list --- */

void rt_owing_list_poller(struct rpma_rt_conn *conn,
			  struct rpma_rt_route *route)
{
	struct rpma_rt_route *next = conn->poll.routes;
	struct rt_route_opened *opened;

	conn->poll.routes = route;
	conn->poll.routes_count++;
	if (route->is_own)
		return; /* an own route knows the next route */
	opened = rt_route_opened(route);
	opened->next = next;
	opened->link = &conn->poll.routes;
	if (!next->is_own)
		rt_route_opened(next)->link = &opened->next;
	if (rt_route_lane(route) != NULL)
		cds_hlist_add_head(&opened->same_lane,
				   owing_bucket_of(conn, rt_route_lane(route)));
}

static void owing_unlist(struct rpma_rt_conn *conn,
			 struct rt_route_opened *opened)
{
	*opened->link = opened->next;
	if (!opened->next->is_own)
		rt_route_opened(opened->next)->link = opened->link;
	conn->poll.routes_count--;
}

void rt_owing_bury_poller(struct rpma_rt_route *route)
{
	struct rt_route_opened *opened = rt_route_opened(route);
	struct rpma_rt_conn *conn = route->conn;

	conn->cq->routes[route->number] = (struct rt_route_entry){0};
	owing_unlist(conn, opened);
	/* release: pairs with the acquire in route_is_buried(), route.c: a
	 * reader of the flag does not believe that the number still belongs to
	 * this route */
	atomic_store_explicit(&opened->is_buried, true, memory_order_release);
	/* relaxed: only the poller writes */
	opened->next =
		atomic_load_explicit(&conn->poll.buried, memory_order_relaxed);
	opened->buried_count = rt_owing_buried_count(opened->next) + 1;
	/* release [ROUTE-3]: pairs with the acquire in route_unlist_buried(),
	 * route.c: next, is_buried, buried_count */
	atomic_store_explicit(&conn->poll.buried, route, memory_order_release);
	rt_numbers_return_poller(&conn->cq->numbers, route->number);
}

static bool owing_owes(const struct rt_route_opened *route,
		       const struct rt_side *side)
{
	return (int32_t)(side->count - route->last_retired) < 0;
}

void rt_owing_until_poller(struct rpma_rt_route *route, uint32_t retired)
{
	struct rt_route_opened *opened = rt_route_opened(route);
	struct rpma_rt_conn *conn = route->conn;
	struct rt_side *side = &conn->side[route->side];

	opened->last_retired = retired;
	if (!owing_owes(opened, side)) {
		rt_owing_bury_poller(route);
		return;
	}
	opened->owing_next = conn->poll.owing;
	conn->poll.owing = opened;
	/* relaxed: only the poller uses the bit */
	atomic_fetch_or_explicit(&side->want, RT_WANT_RETIRED,
				 memory_order_relaxed);
}

void rt_owing_look_poller(struct rt_side *side)
{
	struct rpma_rt_conn *conn = rt_conn_of_side(side);
	struct rt_route_opened **link = &conn->poll.owing;
	struct rt_route_opened *opened;
	bool is_left = false;

	while ((opened = *link) != NULL) {
		if (opened->route.side == side->which &&
		    !owing_owes(opened, side)) {
			*link = opened->owing_next;
			rt_owing_bury_poller(&opened->route);
			continue;
		}
		is_left |= opened->route.side == side->which;
		link = &opened->owing_next;
	}
	if (!is_left)
		/* relaxed: only the poller uses the bit */
		atomic_fetch_and_explicit(&side->want,
					  ~(uint32_t)RT_WANT_RETIRED,
					  memory_order_relaxed);
}
