/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * connection.h: listeners, connections, routes, and adopted connections of
 * librpma.
 *
 *   passive: listen -> EVENT_REQUEST -> [set_queue, set_user, recv...]
 *            -> accept or reject -> EVENT_ESTABLISHED -> ... -> EVENT_CLOSED
 *   active:  conn_new -> EVENT_READY -> [recv...] -> connect
 *            -> EVENT_ESTABLISHED -> ... -> EVENT_CLOSED
 *
 * A message of the peer can precede EVENT_ESTABLISHED, on either side; sends
 * are refused until then (AGAIN, NOT_YET). EVENT_CLOSED comes exactly once for
 * every connection, after all completions of the connection.
 */

#ifndef RPMA_RT_CONNECTION_H
#define RPMA_RT_CONNECTION_H

#include <sys/socket.h>

#include <rpma_rt/core.h>

RPMA_RT_BEGIN

#define RPMA_RT_POLLER_ANY   (-1) /* the pollers in turn */
#define RPMA_RT_POLLER_LEAST (-2) /* the poller with the fewest connections */

#define RPMA_RT_NO_WAITING	     UINT32_MAX /* of the field waiting */
#define RPMA_RT_DEFAULT_SQ_SIZE	     128
#define RPMA_RT_DEFAULT_RQ_SIZE	     128
#define RPMA_RT_DEFAULT_POOL_RQ_SIZE 8
#define RPMA_RT_MOST_POOL_RQ_SIZE    128
#define RPMA_RT_DEFAULT_INLINE	     8

/* What rpma_rt_listen() and rpma_rt_conn_new() make connections with. */
struct rpma_rt_conn_cfg {
	uint32_t size;
	int32_t poller; /* index, RPMA_RT_POLLER_ANY (default) or _LEAST */
	/* required: device and protection domain. Stays until CLOSED of the
	 * last connection and LISTENER_CLOSED were taken */
	struct rpma_peer *peer;
	/* for events, and completions without a route; NULL: only futures */
	struct rpma_rt_queue *queue;
	/* of a listener, in place of queue: a queue for each poller */
	struct rpma_rt_queue *const *queues;
	void *user; /* in each item of the connection; default NULL */
	/* for receives, an SRQ of each poller at most; NULL (default): none */
	struct rpma_rt_srq *const *srqs;
	/* settings without a field here, copied; NULL: librpma's defaults */
	const struct rpma_conn_cfg *more;
	uint32_t queue_count; /* pollers, or 0 if queues is NULL */
	uint32_t srq_count;
	uint32_t sq_size; /* outstanding sends, 1..device; default 128 */
	/* receives, 1..device; 0: 128, or with a pool 8, which become up to 128
	 * with the messages that come at a time */
	uint32_t rq_size;
	uint32_t max_sge; /* pieces of a work request, 1..128 and device; 1 */
	uint32_t max_inline; /* bytes of an inline message, 8..device; 8 */
	uint32_t timeout_ms; /* until READY, 1..; default 1000 */
	/* after which a connection without completed sends gets a write of no
	 * bytes, to notice a dead peer, ..3600000; 0 (default): never */
	uint32_t keepalive_ms;
	uint32_t backlog; /* unread requests of a listener; 0: provider's */
	uint8_t min_rnr_timer; /* InfiniBand code, 0..31; default 12: 0.64 ms */
	uint8_t ack_timeout;   /* 4.096 us << 0..31, 0: for ever; driver's */
	uint16_t reserved16;
	/* for receives, not with srqs; NULL: the program posts receives */
	struct rpma_rt_pool *pool;
	uint32_t futures; /* held by each side, 0..1048576; default 0: none */
	/* work requests of a side in line, 1..1048576; 0 (default): as many as
	 * sq_size or rq_size; RPMA_RT_NO_WAITING: none */
	uint32_t waiting;
	uint64_t reserved[2];
};

/* clang-format off */
#define RPMA_RT_CONN_CFG_INIT { sizeof(struct rpma_rt_conn_cfg), \
	RPMA_RT_POLLER_ANY, NULL, NULL, NULL, NULL, NULL, NULL, 0, 0, \
	RPMA_RT_DEFAULT_SQ_SIZE, 0, 1, \
	RPMA_RT_DEFAULT_INLINE, RPMA_DEFAULT_TIMEOUT_MS, 0, 0, \
	RPMA_MIN_RNR_TIMER_UNSET, RPMA_ACK_TIMEOUT_UNSET, 0, NULL, 0, 0, \
	{0, 0} }
/* clang-format on */

/* Writes size bytes of RPMA_RT_CONN_CFG_INIT. Returns 0. Thread: any. */
int rpma_rt_conn_cfg_init(struct rpma_rt_conn_cfg *cfg, size_t size);

/* ------------------------------------------------------------ listeners --- */

/* Listens at addr and port ("0": any); requests arrive as EVENT_REQUEST.
 * Returns 0. Errors: NOMEM, PROVIDER (device, address or port), BUSY (the
 * consumer of a queue is behind), CLOSED. Thread: waits. */
int rpma_rt_listen(struct rpma_rt *rt, const char *addr, const char *port,
		   const struct rpma_rt_conn_cfg *cfg,
		   struct rpma_rt_listener **listener_ptr) RPMA_RT_MUST_CHECK;

/* Writes the port, in host order. Returns 0. Thread: any. */
int rpma_rt_listener_get_port(const struct rpma_rt_listener *listener,
			      uint16_t *port);

/* Ends and frees the listener, not its connections; EVENT_LISTENER_CLOSED
 * follows. Returns 0. Thread: owner, waits. */
int rpma_rt_listener_delete(struct rpma_rt_listener **listener_ptr);

/* Ends the listener, and drains its connections as rpma_rt_conn_drain().
 * Returns 0. Errors: CLOSED (the runtime has stopped). Thread: waits. */
int rpma_rt_listener_drain(struct rpma_rt_listener *listener,
			   uint32_t timeout_ms);

/* ---------------------------------------------------------- connections --- */

/*
 * The handle is counted: the receiver, from rpma_rt_conn_new() or with
 * EVENT_REQUEST, calls rpma_rt_conn_unref() once, and once more for each
 * rpma_rt_conn_ref(). The handle stays valid until then, also after CLOSED.
 */

/* Begins an active connection; EVENT_READY follows, or EVENT_CLOSED.
 * Returns 0. Errors: NOMEM, PROVIDER, BUSY (the consumer of the queue is
 * behind), CLOSED. Thread: waits. */
int rpma_rt_conn_new(struct rpma_rt *rt, const char *addr, const char *port,
		     const struct rpma_rt_conn_cfg *cfg,
		     struct rpma_rt_conn **conn_ptr) RPMA_RT_MUST_CHECK;

/* Leads all further items to queue; the former queue gets EVENT_ROUTE_CLOSED.
 * Returns 0. Errors: INVAL (made without a queue), NOMEM, BUSY (the new
 * consumer is behind), CLOSED. Thread: waits. */
int rpma_rt_conn_set_queue(struct rpma_rt_conn *conn,
			   struct rpma_rt_queue *queue);

/* Changes the user pointer of all further items, before connect or accept.
 * Returns 0. Errors: INVAL (too late), CLOSED. Thread: owner, waits. */
int rpma_rt_conn_set_user(struct rpma_rt_conn *conn, void *user);

/* Writes the user pointer. Returns 0. Thread: any. */
int rpma_rt_conn_get_user(const struct rpma_rt_conn *conn, void **user);

/* Copies a name, 1..RPMA_RT_NAME_MAX printable ASCII characters, before connect
 * or accept; default "conn N".
 * Returns 0. Errors: INVAL (name, too late), NOMEM. Thread: owner, waits. */
int rpma_rt_conn_set_name(struct rpma_rt_conn *conn, const char *name);

/* Returns the name, valid while the handle is held; NULL for NULL.
 * Thread: any, but not during rpma_rt_conn_set_name(). */
const char *rpma_rt_conn_get_name(const struct rpma_rt_conn *conn);

/* Connects an active connection after EVENT_READY; EVENT_ESTABLISHED follows,
 * or EVENT_CLOSED. pdata is copied (NULL: none).
 * Returns 0. Errors: INVAL (too early or late), CLOSED. Thread: any. */
int rpma_rt_conn_connect(struct rpma_rt_conn *conn,
			 const struct rpma_conn_private_data *pdata);

/* Accepts a request; EVENT_ESTABLISHED or EVENT_CLOSED follows. Copies pdata.
 * Returns 0. Errors: INVAL (no request, or answered), CLOSED. Thread: any. */
int rpma_rt_conn_accept(struct rpma_rt_conn *conn,
			const struct rpma_conn_private_data *pdata);

/* Refuses a request; EVENT_CLOSED follows. Copies pdata.
 * Returns 0. Errors: INVAL (no request, or answered), CLOSED. Thread: any. */
int rpma_rt_conn_reject(struct rpma_rt_conn *conn,
			const struct rpma_conn_private_data *pdata);

/* Copies what the peer said of its memory, before the first persistent flush.
 * Returns 0. Errors: NOMEM. Thread: any. */
int rpma_rt_conn_apply_remote_peer_cfg(struct rpma_rt_conn *conn,
				       const struct rpma_peer_cfg *pcfg);

/* Closes from any state and returns at once; outstanding work requests
 * complete, then EVENT_CLOSED follows. Returns 0. Thread: any. */
int rpma_rt_conn_close(struct rpma_rt_conn *conn);

/* Closes when all posted sends have completed, or after timeout_ms milliseconds
 * (0..600000; 0: no limit), and returns at once.
 * Returns 0. Thread: any. */
int rpma_rt_conn_drain(struct rpma_rt_conn *conn, uint32_t timeout_ms);

/* Adds a reference to the handle. Returns 0. Thread: any. */
int rpma_rt_conn_ref(struct rpma_rt_conn *conn);

/* Drops a reference, without a close. Returns 0. Thread: any. */
int rpma_rt_conn_unref(struct rpma_rt_conn **conn_ptr);

/* Writes the peer's private data, a pointer of NULL if there is none (yet),
 * valid while the handle is held. Returns 0. Thread: any. */
int rpma_rt_conn_get_private_data(const struct rpma_rt_conn *conn,
				  struct rpma_conn_private_data *pdata);

/* Writes the peer's address as getpeername(): *len is room, then length.
 * Returns 0. Errors: INVAL (before REQUEST or READY). Thread: any. */
int rpma_rt_conn_get_peer_addr(const struct rpma_rt_conn *conn,
			       struct sockaddr *addr, socklen_t *len);

/* Writes the number of the queue pair.
 * Returns 0. Errors: INVAL (before REQUEST or READY). Thread: any. */
int rpma_rt_conn_get_qp_num(const struct rpma_rt_conn *conn, uint32_t *qp_num);

/* Writes the index of the poller. Returns 0. Thread: any. */
int rpma_rt_conn_get_poller(const struct rpma_rt_conn *conn, int *poller);

/* --------------------------------------------------------------- routes --- */

enum rpma_rt_side {
	RPMA_RT_SEND_SIDE = 0, /* send, write, read, flush, atomic */
	RPMA_RT_RECV_SIDE = 1
};

/* Receives items of a route or a future, on the thread that runs the poller.
 * cmpl is valid inside the call only. May post, connect, reject, close, ref,
 * unref and push; calls that wait fail with THREAD. */
typedef void rpma_rt_route_fn(const struct rpma_rt_completion *cmpl, void *arg);

/* Opens a route: work requests that name the route complete in queue. The route
 * lives as long as the connection's handle.
 * Returns 0. Errors: NOMEM, BUSY (consumer behind), CLOSED. Thread: waits. */
int rpma_rt_route_open(struct rpma_rt_conn *conn, enum rpma_rt_side side,
		       struct rpma_rt_queue *queue,
		       struct rpma_rt_route **route_ptr) RPMA_RT_MUST_CHECK;

/* Opens a route to a function: the poller calls fn(cmpl, arg) once for each
 * work request, for WRITABLE, and last for EVENT_ROUTE_CLOSED, until which arg
 * stays.
 * Returns 0. Errors: NOMEM, CLOSED. Thread: waits. */
int rpma_rt_route_open_callback(
	struct rpma_rt_conn *conn, enum rpma_rt_side side, rpma_rt_route_fn *fn,
	void *arg, struct rpma_rt_route **route_ptr) RPMA_RT_MUST_CHECK;

/* Closes a route. Completions still outstanding are delivered to `to`, an open
 * route of the same connection and side, NULL: the connection's queue.
 * Returns 0. Errors: INVAL (no such `to`), NOMEM, BUSY (consumer behind),
 * CLOSED. Thread: waits. */
int rpma_rt_route_close(struct rpma_rt_route *route, struct rpma_rt_route *to);

/* ------------------------------------------------------------- adoption --- */

/* Has a poller poll the CQs of a connection of librpma until the release, and
 * deliver raw completions to queue; the program posts with librpma.
 * Returns 0. Errors: SHARED_CHANNEL (a channel object, or claimed), BUSY (a
 * thread waits, consumer behind), NOMEM, PROVIDER, CLOSED. Thread: waits. */
int rpma_rt_adopt(struct rpma_rt *rt, struct rpma_conn *conn, int poller,
		  struct rpma_rt_queue *queue, void *user,
		  struct rpma_rt_adopted **adopted_ptr) RPMA_RT_MUST_CHECK;

/* Has a poller poll the RCQ of an SRQ of librpma, for all its connections.
 * Returns 0. Errors: as rpma_rt_adopt(), INVAL (no RCQ). Thread: waits. */
int rpma_rt_adopt_srq(struct rpma_rt *rt, struct rpma_srq *srq, int poller,
		      struct rpma_rt_queue *queue, void *user,
		      struct rpma_rt_adopted **adopted_ptr) RPMA_RT_MUST_CHECK;

/* Gives the CQs back; completions that were not polled are in the CQ.
 * Returns 0. Thread: owner, waits. */
int rpma_rt_adopted_release(struct rpma_rt_adopted **adopted_ptr);

RPMA_RT_END

#endif /* RPMA_RT_CONNECTION_H */
