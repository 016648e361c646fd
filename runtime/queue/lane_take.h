/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * lane_take.h -- taking a few items from a lane that the same thread filled,
 * inline. Runs on the consumer. Labels in brackets: doc/protocols/lane.md.
 */

#ifndef RT_QUEUE_LANE_TAKE_H
#define RT_QUEUE_LANE_TAKE_H

#include "queue/lane.h"

#define RT_LANE_FEW 8 /* as many are taken without a call */

/* Does the calling thread fill it, as far as a hint can say? */
static inline bool rt_lane_is_own(const struct rt_lane *lane)
{
	/* relaxed: a hint */
	return atomic_load_explicit(&lane->by, memory_order_relaxed) ==
	       &rt_self;
}

/*
 * As rt_lane_take_consumer(), if there are a few, in one piece, and the poller
 * does not wait for room; 0: that one is for the others.
 */
static inline uint32_t rt_lane_take_few(struct rt_lane *lane,
					struct rpma_rt_completion *cmpl,
					uint32_t max)
{
	/* acquire [LANE-1]: the slots below it are written */
	uint32_t tail = atomic_load_explicit(&lane->tail, memory_order_acquire);
	uint32_t at = lane->head_next & (lane->size - 1);
	uint32_t count = tail - lane->head_next;
	uint32_t i;

	if (count > max)
		count = max;
	/* relaxed [LANE-4]: as in rt_lane_take_consumer() */
	if (count - 1 >= RT_LANE_FEW || at + count > lane->size ||
	    atomic_load_explicit(&lane->spilled, memory_order_relaxed))
		return 0;
	for (i = 0; i < count; i++) {
		cmpl[i] = lane->ring[at + i];
		/* keeps the compiler from making a memcpy() of it */
		__asm__ __volatile__("" ::: "memory");
	}
	lane->tail_seen = tail;
	lane->head_next += count;
	/* release [LANE-2]: our reads of the slots come before their reuse.
	 * Unseen: so are the reads, and the slots are the lane's */
	rt_store_unseen(&lane->head, lane->head_next, memory_order_release);
	return count;
}

#endif /* RT_QUEUE_LANE_TAKE_H */
