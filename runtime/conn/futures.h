/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * futures.h -- the futures of a connection: a block of slots for each side that
 * the program posts to, with a route number of its own.
 * doc/protocols/future.md.
 */

#ifndef RT_CONN_FUTURES_H
#define RT_CONN_FUTURES_H

#include <stdint.h>

#include "rpma_rt.h"
#include "conn/cfg.h"
#include "conn/conn.h"
#include "conn/route.h"

struct rt_route_entry;

/* Returns whether a connection that is made with `count` futures for each side
 * has futures on this side. */
static inline bool rt_futures_has(const struct rpma_rt_conn *conn,
				  enum rpma_rt_side side, uint32_t count)
{
	return count > 0 &&
	       (side == RPMA_RT_SEND_SIDE || conn->receives == RT_RECEIVES_OWN);
}

/* Reserve the blocks of futures, and undo the reservation. cfg: futures of a
 * side, and how many of them may wait for room. REQUIRES: the runtime's lock.
 * ERRORS: RPMA_E_NOMEM */
int rt_futures_reserve(struct rpma_rt_conn *conn, const struct rt_conn_cfg *cfg,
		       bool has_queue);
void rt_futures_unreserve(struct rpma_rt_conn *conn);
/* Gives the blocks back when the connection is DONE. Without a queue the events
 * stay as long as the program holds the handle, because otherwise the program
 * could not learn why the connection has ended. REQUIRES: the runtime's lock */
void rt_futures_end(struct rpma_rt_conn *conn);
/* Gives the blocks back. REQUIRES: the caller does not have the runtime's
 * lock */
void rt_futures_free(struct rpma_rt_conn *conn);

/* Returns how many futures of the side may be held at a time. */
static inline uint32_t rt_futures_count(const struct rpma_rt_conn *conn,
					enum rpma_rt_side side)
{
	const struct rt_futures *futures = conn->side[side].futures;

	return futures != NULL ? futures->count : 0;
}

/* Enter the futures in the CQ's table, together with the connection's own
 * routes. On the connection's poller. */
void rt_futures_open_poller(struct rpma_rt_conn *conn);
void rt_futures_bind_poller(struct rpma_rt_conn *conn);
void rt_futures_set_user_poller(struct rpma_rt_conn *conn);
/* Takes the futures out of the table: all futures are complete, and the routes
 * are closed next. */
void rt_futures_end_poller(struct rpma_rt_conn *conn);
/* Completes futures of READY or ESTABLISHED, which is being written. */
void rt_futures_event_poller(struct rpma_rt_conn *conn,
			     enum rpma_rt_event event);
/* rt_futures_closing_poller() ends the other events before CLOSED is written:
 * their functions have returned after the next flush.
 * rt_futures_closed_poller() completes futures of CLOSED, after CLOSED was
 * written. */
void rt_futures_closing_poller(struct rpma_rt_conn *conn);
void rt_futures_closed_poller(struct rpma_rt_conn *conn);
/* Returns where a future is led, see rt_side_ops.lead. */
const struct rt_route_entry *rt_futures_lead_poller(struct rt_side *side,
						    const void *route);

#endif /* RT_CONN_FUTURES_H */
