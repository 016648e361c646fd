/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * future.h: results that are stored for the thread that holds the future: of
 * work requests (rpma_rt_wr.future), of events, and the next item of a source.
 *
 * The handle is plain data; copies name the same future. A future is held until
 * rpma_rt_future_drop(), can outlive the connection, and keeps rpma_rt_delete()
 * BUSY. Calls on a dropped or empty future fail with INVAL.
 */

#ifndef RPMA_RT_FUTURE_H
#define RPMA_RT_FUTURE_H

#include <rpma_rt/connection.h>

RPMA_RT_BEGIN

struct rpma_rt_future {
	uint64_t opaque[2];
};

/* Makes a future of READY, ESTABLISHED or CLOSED, past or to come; the result
 * is the event, or CLOSED if the event comes no more.
 * Returns 0. Errors: INVAL (rpma_rt_conn_cfg.futures is 0), BUSY (16 are held),
 * CLOSED (EVENT_CLOSED is in the queue). Thread: any. */
int rpma_rt_conn_future(struct rpma_rt_conn *conn, enum rpma_rt_event event,
			struct rpma_rt_future *future);

/* The source of the next item: exactly one field is set. */
struct rpma_rt_source {
	/* without a queue: EVENT_REQUEST, 16 futures; end: LISTENER_CLOSED */
	struct rpma_rt_listener *listener;
	/* with a pool, without a queue: messages with a lease; end: CLOSED */
	struct rpma_rt_conn *conn;
	/* with futures: messages; end: SRQ_FAILED, SRQ_CLOSED */
	struct rpma_rt_srq *srq;
	struct rpma_rt_pool *pool; /* free slots; end: POOL_CLOSED */
};

/* Makes a future of the next item of a source, in order; behind the last item
 * futures get the end.
 * Returns 0. Errors: INVAL (no such futures), BUSY (the limit of futures is
 * reached, or was a moment ago). Thread: any. */
int rpma_rt_next_future(const struct rpma_rt_source *source,
			struct rpma_rt_future *future);

/* Writes the result of a complete future, as often as asked.
 * Returns 1, or 0 if the future is not complete. Thread: holder. */
int rpma_rt_future_poll(const struct rpma_rt_future *future,
			struct rpma_rt_completion *cmpl) RPMA_RT_MUST_CHECK;

/* Waits up to timeout_ms milliseconds (-1: no limit) for the result.
 * Returns 1, or 0 if the time passed. Errors: NOMEM. Thread: holder, waits. */
int rpma_rt_future_wait(const struct rpma_rt_future *future,
			struct rpma_rt_completion *cmpl,
			int timeout_ms) RPMA_RT_MUST_CHECK;

/* Waits up to timeout_ms milliseconds (-1: no limit) until wanted (1..count)
 * futures have succeeded.
 * Returns the number that have, or 0 if the time passed. Errors: NOMEM, FAILED
 * (wanted cannot be reached). Thread: holder, waits. */
int rpma_rt_future_wait_some(const struct rpma_rt_future *futures, int count,
			     int wanted, int timeout_ms) RPMA_RT_MUST_CHECK;

enum rpma_rt_cancelled {
	RPMA_RT_CANCELLED_DETACHED = 1,	 /* takes effect or not; no result */
	RPMA_RT_CANCELLED_DONE = 2,	 /* too late: the result is there */
	RPMA_RT_CANCELLED_NOT_POSTED = 3 /* no effect, the memory is free */
};

/* Gives up the result, and never blocks; the future is still to be dropped, and
 * the memory is the device's until the future is complete.
 * Returns 0. Thread: holder. */
int rpma_rt_future_cancel(const struct rpma_rt_future *future,
			  enum rpma_rt_cancelled *cancelled);

/* Has the poller call fn(cmpl, arg) once with the result; arg stays until then,
 * or until a drop returned 0. Returns 0. Errors: INVAL (has a function, was
 * delivered or cancelled). Thread: holder. */
int rpma_rt_future_then(const struct rpma_rt_future *future,
			rpma_rt_route_fn *fn, void *arg);

/* Delivers the result along a route, NULL: to the connection's queue; the
 * future is then complete with RPMA_RT_C_DETACHED.
 * Returns 0. Errors: INVAL (as rpma_rt_future_then(); route, queue; an event),
 * CLOSED (the route), BUSY (consumer behind). Thread: holder. */
int rpma_rt_future_deliver(const struct rpma_rt_future *future,
			   struct rpma_rt_route *route);

/* Ends the future, and never blocks; the memory is the device's until the work
 * is over.
 * Returns 1 if the function of the future has run or is about to run, otherwise
 * 0 (always 0 for a zeroed handle). Thread: holder. */
int rpma_rt_future_drop(struct rpma_rt_future *future);

/* Writes the results of the first futures, as many as are complete, and drops
 * these futures: a poll and a drop of each, in one call.
 * Returns their number, 0..count. Errors: INVAL (the first handle names no
 * future; another such handle ends the call). Thread: holder of each. */
int rpma_rt_futures_take(struct rpma_rt_future *futures, int count,
			 struct rpma_rt_completion *cmpls) RPMA_RT_MUST_CHECK;

RPMA_RT_END

#endif /* RPMA_RT_FUTURE_H */
