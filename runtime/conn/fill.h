/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/* fill.h -- the receive queue of a connection with a pool is kept filled. Runs
 * on the connection's poller. doc/protocols/pool.md. */

#ifndef RT_CONN_FILL_H
#define RT_CONN_FILL_H

#include <stdlib.h>

#include "conn/conn.h"
#include "pool/feed.h"
#include "poller/schedule.h"

struct rt_futures;

/* of a connection with a pool: the poller's, but for what stays */
struct rt_conn_fed {
	struct rpma_rt_conn *conn; /* immutable, these three */
	struct rpma_rt_pool *pool;
	struct rt_futures *messages; /* NULL: it has a queue */
	struct rt_feed feed;	     /* while is_fed */
	struct rt_task again;
	bool is_fed;
};

/* While the record is made; NULL: without a pool. ERRORS: RPMA_E_NOMEM */
int rt_fill_new(struct rpma_rt_conn *conn, struct rpma_rt_pool *pool);

static inline void rt_fill_free(struct rpma_rt_conn *conn)
{
	free(rt_conn_fed(conn));
}

/* Returns the futures of its messages, or NULL. */
static inline struct rt_futures *
rt_fill_messages(const struct rpma_rt_conn *conn)
{
	return rt_conn_fed(conn) != NULL ? conn->from.fed->messages : NULL;
}

/* Its pool, or NULL. */
static inline struct rpma_rt_pool *rt_fill_pool(const struct rpma_rt_conn *conn)
{
	return rt_conn_fed(conn) != NULL ? conn->from.fed->pool : NULL;
}

/* Nothing of these without a pool. */

/* The receive side is open: posts the first ones, before READY or REQUEST. */
void rt_fill_begin_poller(struct rpma_rt_conn *conn);
/* Receives have retired, or a backlog has eased. */
void rt_fill_poller(struct rpma_rt_conn *conn);
/* The connection dies: no further receives. */
void rt_fill_end_poller(struct rpma_rt_conn *conn);

#endif /* RT_CONN_FILL_H */
