/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * lane.h -- a lane: a ring of messages from one shard to another, single
 * producer, single consumer. And the two ends of it, each in the memory of the
 * shard whose end it is. doc/protocols/shard.md.
 */

#ifndef RT_SHARD_LANE_H
#define RT_SHARD_LANE_H

#include <assert.h>
#include <stdalign.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "rpma_rt.h"
#include "base/lang.h"
#include "base/order.h"

/* messages that wait for the turn's end, a lane; a power of two */
#define RT_SHARD_STAGED 32

struct rt_shard_lane {
	uint32_t limit; /* immutable; the ring has twice as many */
	/* the sender's */
	alignas(RT_APART) _Atomic uint32_t tail;
	/* it was refused, and waits for room; a line of its own, which the
	 * receiver reads only when the sender sleeps */
	alignas(RT_APART) _Atomic bool wants;
	/* the receiver's */
	alignas(RT_APART) _Atomic uint32_t head;
	/* the sender's own: messages that are not in their slots yet */
	alignas(RT_APART) struct rpma_rt_shard_message staged[RT_SHARD_STAGED];
	/* the sender's up to tail */
	alignas(RT_APART) struct rpma_rt_shard_message slots[];
};
_Static_assert(sizeof(struct rpma_rt_shard_message) == 32, "two a line");

/* what a sender was refused for: bits */
enum rt_shard_want { RT_SHARD_WANT_ROOM = 1, RT_SHARD_WANT_CREDIT = 2 };

/* the sender's end, in its memory */
struct rt_shard_out {
	struct rt_shard_lane *lane; /* NULL: not made */
	uint32_t next;		    /* where the next message goes */
	/* messages before that, but for answers, are staged without a look;
	 * answers may be beyond it */
	uint32_t free_end;
	uint32_t mask;
	uint32_t room;	    /* the lane's limit; 0: not made, or stopped */
	uint32_t published; /* tail */
	uint32_t head_seen;
	uint32_t credits;    /* requests that may be sent; 0: see paired */
	uint32_t unanswered; /* requests sent whose credits are not back */
	uint32_t owed;	     /* requests of the other, to be answered */
	uint32_t rung;	     /* the last sleep of the other that was rung */
	/* the lane from the other; NULL: not met */
	struct rt_shard_lane *back;
	uint8_t wants;	/* bits of enum rt_shard_want */
	bool is_paired; /* the lane of the answers is made */
};
static_assert(sizeof(struct rt_shard_out) == RT_CACHE_LINE,
	      "one is found by a shift");

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
/* Messages that nobody took, up to the sender's next; no other thread is at it.
 */
uint32_t rt_shard_lane_left(const struct rt_shard_lane *lane, uint32_t next);

/* Sender: may one more message that is no answer be staged at once? */
static inline bool rt_shard_lane_is_free(const struct rt_shard_out *out)
{
	return (int32_t)(out->free_end - out->next) > 0;
}

/* Sender: has the lane room for one, by what it knows? */
static inline bool rt_shard_lane_has_room(const struct rt_shard_out *out)
{
	return out->next - out->head_seen < out->room;
}

/* Sender: after a change of room, head_seen or published. */
static inline void rt_shard_lane_set_free(struct rt_shard_out *out)
{
	uint32_t by_room = out->head_seen + out->room;
	uint32_t by_stage = out->published + RT_SHARD_STAGED;

	out->free_end = (int32_t)(by_room - by_stage) < 0 ? by_room : by_stage;
}

/* Sender: looks at the room again. */
static inline void rt_shard_lane_look(struct rt_shard_out *out)
{
	/* acquire [SHARD-3]: the receiver is through with the slots */
	out->head_seen =
		atomic_load_explicit(&out->lane->head, memory_order_acquire);
	rt_shard_lane_set_free(out);
}

/* Sender: is enough room back for one that was refused? */
static inline bool rt_shard_lane_is_eased(const struct rt_shard_out *out)
{
	return out->next - out->head_seen <= out->lane->limit / 2;
}

/* Sender: are as many staged as may be? */
static inline bool rt_shard_lane_is_full(const struct rt_shard_out *out)
{
	return out->next - out->published == RT_SHARD_STAGED;
}

/*
 * Sender: writes a message where it is staged; place: its code, its sender, its
 * kind. What the caller has just written is read in words; a wide load would
 * wait for it.
 */
static inline void
rt_shard_lane_stage(struct rt_shard_out *out,
		    const struct rpma_rt_shard_message *message,
		    uint64_t context, uint64_t place)
{
	const volatile uint64_t *words = message->words;
	rt_two_words *to = (rt_two_words *)&out->lane
				   ->staged[out->next & (RT_SHARD_STAGED - 1)];

	to[0] = (rt_two_words){context, words[0]};
	to[1] = (rt_two_words){words[1], place};
	out->next++;
}

/*
 * Sender: copies what is staged into the slots, and publishes it; how many that
 * were. All at once: the receiver has the slots' lines, and the processor
 * fetches them side by side as long as little else is written between.
 */
static inline uint32_t rt_shard_lane_publish(struct rt_shard_out *out)
{
	struct rt_shard_lane *lane = out->lane;
	uint32_t count = out->next - out->published;
	uint32_t at;

	/* no store for nothing: the receiver has the line */
	if (count == 0)
		return 0;
	for (at = out->published; at != out->next; at++)
		lane->slots[at & out->mask] =
			lane->staged[at & (RT_SHARD_STAGED - 1)];
	out->published = out->next;
	rt_shard_lane_set_free(out);
	/* release [SHARD-2]: the messages */
	atomic_store_explicit(&lane->tail, out->next, memory_order_release);
	return count;
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
