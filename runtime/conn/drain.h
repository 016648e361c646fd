/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * drain.h -- the poller's side of a connection: its messages, its unhappy
 * completions, its last items. Everything here runs on the connection's poller
 * only. doc/protocols/connection.md, ledger.md.
 */

#ifndef RT_CONN_DRAIN_H
#define RT_CONN_DRAIN_H

#include <infiniband/verbs.h>

#include "conn/conn.h"

/* The bits that the control thread set, in the order of life. */
void rt_conn_messages_poller(struct rpma_rt_conn *conn, uint32_t bits);

/* A completion that is no success, or of a connection that is not healthy. */
void rt_conn_slow_completion(struct rt_side *side, const struct ibv_wc *wc);

/* It is broken, by a WR that is in no ledger: a keep-alive, an SRQ's. */
void rt_conn_break_poller(struct rpma_rt_conn *conn, enum ibv_wc_status status);
/* A marker of the side came in. */
void rt_conn_marker_poller(struct rpma_rt_conn *conn, enum rpma_rt_side side);

/* Is it drained (or its time over)? Then the control thread is told. True:
 * it leaves the poller's list of dying connections. */
bool rt_conn_try_drained_poller(struct rpma_rt_conn *conn, uint64_t now_ns);
/* Is it swept? Then what is left is synthesized, the control thread told. */
bool rt_conn_try_swept_poller(struct rpma_rt_conn *conn);

/* One more route; its lane has got its spill. */
void rt_conn_add_route_poller(struct rpma_rt_conn *conn,
			      struct rpma_rt_route *route);
/* Its user pointer, or its own queue, is another from here on. */
void rt_conn_set_user_poller(struct rpma_rt_conn *conn);
void rt_conn_set_queue_poller(struct rpma_rt_conn *conn,
			      const struct rpma_rt_route *to);

#endif /* RT_CONN_DRAIN_H */
