/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/* fill.h -- keeps the receive queue of a connection with a pool filled. Runs on
 * the connection's poller. doc/protocols/pool.md. */

#ifndef RT_CONN_FILL_H
#define RT_CONN_FILL_H

#include <stdlib.h>

#include "base/lang.h"
#include "conn/conn.h"
#include "pool/feed.h"
#include "poller/schedule.h"

struct rt_futures;

/* the part of a connection with a pool; used by the poller, except for
 * immutable words */
struct rt_conn_fed {
	struct rpma_rt_conn *conn; /* immutable, these three words */
	struct rpma_rt_pool *pool;
	struct rt_futures *messages; /* NULL: the connection has a queue */
	uint32_t base;		     /* as of rt_feed_init(); immutable */
	struct rt_feed feed;
	struct rt_task again; /* a fill in the next round, or a deferred fill */
	bool is_fed;
	/* batches whose fill is not deferred, because the last deferred fill
	 * was overdue */
	uint8_t undeferred;
};

/* Makes the struct while the record is made; pool NULL: does nothing. base:
 * as of rt_feed_init(). ERRORS: RPMA_E_NOMEM */
int rt_fill_new(struct rpma_rt_conn *conn, struct rpma_rt_pool *pool,
		uint32_t base);

static inline void rt_fill_free(struct rpma_rt_conn *conn)
{
	free(rt_conn_fed(conn));
}

/* Returns the futures of the connection's messages, or NULL. */
static inline struct rt_futures *
rt_fill_messages(const struct rpma_rt_conn *conn)
{
	return rt_conn_fed(conn) != NULL ? conn->from.fed->messages : NULL;
}

/* Returns the connection's pool, or NULL. */
static inline struct rpma_rt_pool *rt_fill_pool(const struct rpma_rt_conn *conn)
{
	return rt_conn_fed(conn) != NULL ? conn->from.fed->pool : NULL;
}

/* The following do nothing without a pool. */

/* Count the connection's receives among those of the pool, once the connection
 * has a poller, and take the receives out of the count. REQUIRES: the runtime's
 * lock. */
void rt_fill_join(struct rpma_rt_conn *conn);
void rt_fill_leave(struct rpma_rt_conn *conn);

/* Posts the first receives, before READY or REQUEST: the receive side is
 * open. */
void rt_fill_begin_poller(struct rpma_rt_conn *conn);
/* Fills the receive queue, after receives have retired or a backlog has
 * eased. */
void rt_fill_poller(struct rpma_rt_conn *conn);
/* Fills the receive queue, or defers the fill, at the end of a batch that took
 * receives. doc/protocols/pool.md. */
void rt_fill_answer_poller(struct rpma_rt_conn *conn);

/* Returns whether a fill is deferred to the next post. Any thread. */
static inline bool rt_fill_is_deferred(const struct rpma_rt_conn *conn)
{
	/* relaxed: written by the thread that owns the poller, which is the
	 * calling thread; any other thread leaves the fill to the poller */
	return atomic_load_explicit(&conn->fill_deferred, memory_order_relaxed);
}
/* Runs a deferred fill, if the calling thread owns the poller and is outside.
 * Any thread. */
void rt_fill_deferred(struct rpma_rt_conn *conn);
/* Runs a deferred fill before the calling thread posts to the send side, or
 * drains the connection. Any thread. */
static inline void rt_fill_before_send(struct rpma_rt_conn *conn)
{
	if (unlikely(rt_fill_is_deferred(conn)))
		rt_fill_deferred(conn);
}
/* Ends the filling: the connection dies. */
void rt_fill_end_poller(struct rpma_rt_conn *conn);

#endif /* RT_CONN_FILL_H */
