/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * owing.h -- the routes of a connection's poller: its list of them, and those
 * that are closed and whose work requests are still under way. Their numbers
 * come back when none is. Runs on the poller. doc/protocols/route.md.
 */

#ifndef RT_CONN_OWING_H
#define RT_CONN_OWING_H

#include "conn/conn.h"

struct rpma_rt_route;
struct rt_lane;
struct rt_route_opened;

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

#endif /* RT_CONN_OWING_H */
