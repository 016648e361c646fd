/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * lane.h -- a lane: a ring of messages from one shard to another, single
 * producer, single consumer. And the two ends of it, each in the memory of the
 * shard whose end it is. doc/protocols/shard.md.
 */

#ifndef RT_SHARD_LANE_H
#define RT_SHARD_LANE_H

#include <stdalign.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "rpma_rt.h"
#include "base/order.h"

struct rt_shard_lane {
	uint32_t limit; /* immutable; the ring has twice as many */
	/* the sender's */
	alignas(RT_APART) _Atomic uint32_t tail;
	/* it was refused, and waits for room; a line of its own, which the
	 * receiver reads only when the sender sleeps */
	alignas(RT_APART) _Atomic bool wants;
	/* the receiver's */
	alignas(RT_APART) _Atomic uint32_t head;
	/* the sender's up to tail */
	alignas(RT_APART) struct rpma_rt_shard_message slots[];
};
_Static_assert(sizeof(struct rpma_rt_shard_message) == 32, "two a line");

/* what a sender was refused for: bits */
enum rt_shard_want { RT_SHARD_WANT_ROOM = 1, RT_SHARD_WANT_CREDIT = 2 };

/* the sender's end, in its memory */
struct rt_shard_out {
	struct rt_shard_lane *lane; /* NULL: not made */
	struct rpma_rt_shard_message *slots;
	uint32_t mask;
	uint32_t room;	    /* the lane's limit; 0: not made, or stopped */
	uint32_t next;	    /* where the next message goes */
	uint32_t published; /* tail */
	uint32_t head_seen;
	uint32_t credits;    /* requests that may be sent; 0: see paired */
	uint32_t unanswered; /* requests sent whose credits are not back */
	uint32_t owed;	     /* requests of the other, to be answered */
	uint32_t rung;	     /* the last sleep of the other that was rung */
	uint8_t wants;	     /* bits of enum rt_shard_want */
	/* the lane from the other; NULL: not met */
	struct rt_shard_lane *back;
	bool is_paired; /* the lane of the answers is made */
};

/* the receiver's end, in its memory */
struct rt_shard_in {
	struct rt_shard_lane *lane;
	uint32_t head;
	uint32_t from;
};

struct rpma_rt_shard;
struct rpma_rt_shards;

/* The memory of one, for that many messages that are no answers; NULL. */
struct rt_shard_lane *rt_shard_lane_new(uint32_t limit);
/* Messages inside that nobody took; no other thread is at it. */
uint32_t rt_shard_lane_left(const struct rt_shard_lane *lane);

/* Sender: may one more message that is no answer go in, by what it knows? */
static inline bool rt_shard_lane_has_room(const struct rt_shard_out *out)
{
	return out->next - out->head_seen < out->room;
}

/* Sender: looks at the room again. */
static inline void rt_shard_lane_look(struct rt_shard_out *out)
{
	/* acquire [SHARD-3]: the receiver is through with the slots */
	out->head_seen =
		atomic_load_explicit(&out->lane->head, memory_order_acquire);
}

/* Sender: is enough room back for one that was refused? */
static inline bool rt_shard_lane_is_eased(const struct rt_shard_out *out)
{
	return out->next - out->head_seen <= out->lane->limit / 2;
}

/* Sender: publishes what is written. */
static inline void rt_shard_lane_publish(struct rt_shard_out *out)
{
	/* no store for nothing: the receiver has the line */
	if (out->published == out->next)
		return;
	out->published = out->next;
	/* release [SHARD-2]: the messages */
	atomic_store_explicit(&out->lane->tail, out->next,
			      memory_order_release);
}

/* Receiver: up to where there are messages. */
static inline uint32_t rt_shard_lane_tail(const struct rt_shard_in *in)
{
	/* acquire [SHARD-2]: the messages */
	return atomic_load_explicit(&in->lane->tail, memory_order_acquire);
}

/* Receiver: has taken all up to head. */
static inline void rt_shard_lane_advance(struct rt_shard_in *in, uint32_t head)
{
	in->head = head;
	/* release [SHARD-3]: we have read the slots */
	atomic_store_explicit(&in->lane->head, head, memory_order_release);
}

#endif /* RT_SHARD_LANE_H */
