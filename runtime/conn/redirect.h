/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * redirect.h -- where a living connection's completions go is changed: its own
 * queue is another, or a route is closed and another gets what it owes. Runs on
 * the connection's poller; its caller: change.c. doc/protocols/route.md.
 */

#ifndef RT_CONN_REDIRECT_H
#define RT_CONN_REDIRECT_H

#include "conn/conn.h"

struct rpma_rt_route;

/* one change, in two steps; the caller's, who waits for each */
struct rt_redirect {
	struct rpma_rt_conn *conn;
	/* a route that is closed, and the one that gets what it owes */
	struct rpma_rt_route *route;
	struct rpma_rt_route *to;
	/* or, by side, what only says where the own routes shall lead */
	struct rpma_rt_route *own_to[2];
	/* of the route, or of both own ones, until the first step; NULL: it led
	 * to a function */
	struct rpma_rt_queue *from;
	struct rt_lane *from_lane;
	/* between the two, by the caller: none can be posted any more. What is
	 * known of those that were: whether any is out, and until when */
	bool is_known;
	bool is_out;
	uint32_t last_retired;
};

/* The first step: from here on all goes there. ROUTE_CLOSED is its last item
 * where it led before. Nothing is changed if it is refused. ERRORS:
 * RPMA_RT_E_CLOSED (the connection is dying), RPMA_RT_E_BUSY (route: the
 * consumer of what gets it is behind) */
int rt_redirect_own_poller(struct rt_redirect *redirect);
int rt_redirect_route_poller(struct rt_redirect *redirect);
/* The second step: nobody is inside a post that saw what was before. */
void rt_redirect_finish_poller(struct rt_redirect *redirect);

#endif /* RT_CONN_REDIRECT_H */
