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

/* Has the connection some on that side, when it is made with count a side? */
static inline bool rt_futures_has(const struct rpma_rt_conn *conn,
				  enum rpma_rt_side side, uint32_t count)
{
	return count > 0 &&
	       (side == RPMA_RT_SEND_SIDE || conn->receives == RT_RECEIVES_OWN);
}

/* REQUIRES: the runtime's lock, both. cfg: how many a side, how many of those
 * may wait for room. ERRORS: RPMA_E_NOMEM */
int rt_futures_reserve(struct rpma_rt_conn *conn, const struct rt_conn_cfg *cfg,
		       bool has_queue);
void rt_futures_unreserve(struct rpma_rt_conn *conn);
/* It is DONE: likewise, but without a queue its events stay to be asked for as
 * long as its handle is held, or nobody could know why it has ended. REQUIRES:
 * the runtime's lock */
void rt_futures_end(struct rpma_rt_conn *conn);
/* Its last reference goes: what nobody has of its messages is given back. Once,
 * any thread */
void rt_futures_let_go(struct rpma_rt_conn *conn);
/* Gives the blocks back. REQUIRES: not that lock */
void rt_futures_free(struct rpma_rt_conn *conn);

/* So many of that side are held at most. */
uint32_t rt_futures_count(const struct rpma_rt_conn *conn,
			  enum rpma_rt_side side);

/* The connection's poller: their entries in its CQ's table, with those of its
 * own routes. */
void rt_futures_open_poller(struct rpma_rt_conn *conn);
void rt_futures_bind_poller(struct rpma_rt_conn *conn);
void rt_futures_set_user_poller(struct rpma_rt_conn *conn);
/* All of them are complete; its routes are closed next. */
void rt_futures_end_poller(struct rpma_rt_conn *conn);
/* READY, ESTABLISHED has come, which is being written. */
void rt_futures_event_poller(struct rpma_rt_conn *conn,
			     enum rpma_rt_event event);
/* CLOSED is written next: the others come no more, and their functions have
 * returned after the next flush. Then, behind CLOSED: that one has come. */
void rt_futures_closing_poller(struct rpma_rt_conn *conn);
void rt_futures_closed_poller(struct rpma_rt_conn *conn);
/* See rt_side_ops.lead. */
const struct rt_route_entry *rt_futures_lead_poller(struct rt_side *side,
						    const void *route);

#endif /* RT_CONN_FUTURES_H */
