/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * owing.c -- see owing.h. How many signaled work requests have to retire first
 * was read from the ledger when the route was closed, so nothing is counted
 * when one is posted or completes.
 */

#include "conn/owing.h"

#include "conn/route.h"
#include "poller/cq_pool.h"

void rt_owing_list_poller(struct rpma_rt_conn *conn,
			  struct rpma_rt_route *route)
{
	route->next = conn->poll.routes;
	route->link = &conn->poll.routes;
	if (route->next != NULL)
		route->next->link = &route->next;
	conn->poll.routes = route;
	conn->poll.routes_count++;
}

static void unlist(struct rpma_rt_conn *conn, struct rpma_rt_route *route)
{
	*route->link = route->next;
	if (route->next != NULL)
		route->next->link = route->link;
	conn->poll.routes_count--;
}

void rt_owing_bury_poller(struct rpma_rt_route *route)
{
	struct rpma_rt_conn *conn = route->conn;

	conn->cq->routes[route->number] = (struct rt_route_entry){0};
	unlist(conn, route);
	route->next = conn->poll.buried;
	conn->poll.buried = route;
	/* release: a reader of it does not take the number for this route's */
	atomic_store_explicit(&route->is_buried, true, memory_order_release);
	rt_numbers_return_poller(&conn->cq->numbers, route->number);
}

static bool owes(const struct rpma_rt_route *route, const struct rt_side *side)
{
	return (int32_t)(side->count - route->last_retired) < 0;
}

void rt_owing_until_poller(struct rpma_rt_route *route, uint32_t retired)
{
	struct rpma_rt_conn *conn = route->conn;
	struct rt_side *side = &conn->side[route->side];

	route->last_retired = retired;
	if (!owes(route, side)) {
		rt_owing_bury_poller(route);
		return;
	}
	route->owing_next = conn->poll.owing;
	conn->poll.owing = route;
	/* relaxed: our own bit */
	atomic_fetch_or_explicit(&side->want, RT_WANT_RETIRED,
				 memory_order_relaxed);
}

void rt_owing_look_poller(struct rt_side *side)
{
	struct rpma_rt_conn *conn = rt_conn_of_side(side);
	struct rpma_rt_route **link = &conn->poll.owing;
	struct rpma_rt_route *route;
	bool is_left = false;

	while ((route = *link) != NULL) {
		if (route->side == side->which && !owes(route, side)) {
			*link = route->owing_next;
			rt_owing_bury_poller(route);
			continue;
		}
		is_left |= route->side == side->which;
		link = &route->owing_next;
	}
	if (!is_left)
		/* relaxed: our own bit */
		atomic_fetch_and_explicit(&side->want,
					  ~(uint32_t)RT_WANT_RETIRED,
					  memory_order_relaxed);
}
