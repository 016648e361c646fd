/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * keepalive.h -- keep-alive: a connection whose sends were silent for a while
 * gets a write of no bytes, so that a peer that is gone without a word becomes
 * an error. Runs on the connection's poller only; time is looked at in idle
 * rounds and in one of many others. doc/protocols/connection.md.
 */

#ifndef RT_CONN_KEEPALIVE_H
#define RT_CONN_KEEPALIVE_H

#include <stdbool.h>
#include <stdint.h>

#include <infiniband/verbs.h>

struct rpma_rt_conn;
struct rt_poller;

/* of a connection */
struct rt_keepalive {
	uint64_t period_ns; /* immutable; 0: off */
	/* the poller's */
	uint64_t due_ns;
	uint32_t seen; /* send side's completions at the last look */
	bool answered; /* a keep-alive since the last look */
	bool out;      /* one is under way */
	bool listed;
	struct rpma_rt_conn *prev;
	struct rpma_rt_conn *next;
};

/* It is established; nothing, if it has no keep-alive. */
void rt_keepalive_begin(struct rpma_rt_conn *conn);
/* It dies. */
void rt_keepalive_end(struct rpma_rt_conn *conn);
/* A keep-alive of it has completed. */
void rt_keepalive_completed(struct rpma_rt_conn *conn,
			    enum ibv_wc_status status);
/* Posts what is due; how many. */
int rt_keepalive_run(struct rt_poller *poller);

#endif /* RT_CONN_KEEPALIVE_H */
