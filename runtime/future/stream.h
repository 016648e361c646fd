/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * stream.h -- messages that futures are asked for when they are wanted, not
 * when their receives are posted: each is of the next one. What nobody has
 * waits in order. doc/protocols/future.md.
 */

#ifndef RT_FUTURE_STREAM_H
#define RT_FUTURE_STREAM_H

#include <stdatomic.h>
#include <stdint.h>

#include "rpma_rt.h"
#include "poller/future.h"

struct rt_poller;
struct rt_side;

struct rt_stream_item {
	struct rpma_rt_completion item;
	uint32_t sequence;
};

/* the poller's; freed by it, or in its place after a stop, when the owner's
 * slot is dropped */
struct rt_stream {
	struct rt_future_source source; /* first */
	struct rt_futures *futures;	/* immutable, these three */
	struct rt_future *keeper;	/* the slot that its owner drops */
	uint32_t mask;			/* of waiting */
	/* somebody has taken a message: there is room for another receive.
	 * NULL: no more are posted */
	void (*taken)(void *arg);
	void *arg;
	uint32_t first; /* of waiting */
	_Atomic uint32_t count;
	uint32_t sequence; /* of the next one to come */
	uint32_t *held;	   /* one a slot: sequence of the message it has */
	struct rt_stream_item *waiting; /* those that nobody has */
};

/* For so many futures at a time, and so many messages besides. owner: the
 * context of futures that have none. NULL: no memory. REQUIRES: the runtime's
 * lock */
struct rt_stream *rt_stream_new(struct rt_poller *poller, uint32_t futures,
				uint32_t messages, const void *owner);
/* Nobody else knows it. NULL: nothing. REQUIRES: the runtime's lock */
void rt_stream_undo(struct rt_stream *stream);
/* Its owner has no business with it any more: what nobody has is given back by
 * the poller. Its block stays, to be returned. NULL: nothing. Any thread */
void rt_stream_drop_mt(struct rt_stream *stream);

/* Any thread: a future of the next message. ERRORS: RPMA_RT_E_BUSY: too many
 * are held */
int rt_stream_future(struct rt_futures *futures, const void *owner,
		     struct rpma_rt_future *future);

/* The poller: how many wait. */
static inline uint32_t rt_stream_waiting_poller(const struct rt_stream *stream)
{
	/* relaxed: its own; the dump reads it, too */
	return atomic_load_explicit(&stream->count, memory_order_relaxed);
}
/* The poller: no message comes any more; what futures end with behind those
 * that wait. */
void rt_stream_end_poller(struct rt_stream *stream,
			  const struct rpma_rt_completion *last);

#endif /* RT_FUTURE_STREAM_H */
