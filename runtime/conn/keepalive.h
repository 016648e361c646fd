/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * keepalive.h -- keep-alive: a connection whose sends were silent for a while
 * gets a write of no bytes, so that a peer that went away silently causes an
 * error. Runs on the connection's poller only, as a task.
 * doc/protocols/connection.md.
 */

#ifndef RT_CONN_KEEPALIVE_H
#define RT_CONN_KEEPALIVE_H

#include <stdbool.h>
#include <stdint.h>

#include <infiniband/verbs.h>

#include "poller/schedule.h"

struct rpma_rt_conn;

/* of a connection */
struct rt_keepalive {
	struct rpma_rt_conn *conn; /* immutable */
	uint64_t period_ns;	   /* likewise */
	/* the poller's */
	struct rt_task task; /* its looks */
	uint32_t seen;	     /* send side's completions at the last look */
	bool answered;	     /* a keep-alive since the last look */
	bool out;	     /* one is under way */
};

/* For a connection that is being made; 0: it has none. ERRORS: RPMA_E_NOMEM */
int rt_keepalive_new(struct rpma_rt_conn *conn, uint32_t period_ms);
/* The connection is established; does nothing if it has no keep-alive. */
void rt_keepalive_begin(struct rpma_rt_conn *conn);
/* The connection dies. */
void rt_keepalive_end(struct rpma_rt_conn *conn);
/* A keep-alive of the connection has completed. */
void rt_keepalive_completed(struct rpma_rt_conn *conn,
			    enum ibv_wc_status status);

#endif /* RT_CONN_KEEPALIVE_H */
