/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * take.c -- taking from all lanes of a queue and from its messages; looking
 * whether there is something to take, or the end. Runs on the consumer's
 * thread. Labels in brackets: doc/protocols/lane.md.
 */

#include "queue/take.h"

#include <stdlib.h>

#include "base/clock.h"
#include "base/lang.h"
#include "base/log.h"
#include "queue/impl.h"
#include "queue/queue.h"

/* ---------------------------------------------------------------- joint --- */

void rt_joint_announce(struct rpma_rt_queue *queue)
{
	/* relaxed: the tail behind which the first token is brings it */
	atomic_fetch_add_explicit(&queue->joints, 1, memory_order_relaxed);
}

/* The token of a lane was taken; true: of the last one, and *item is it. */
static bool take_token(struct rpma_rt_queue *queue,
		       struct rpma_rt_completion *item)
{
	struct rt_joint *joint = (struct rt_joint *)(uintptr_t)item->context;

	/* relaxed: one consumer at a time, and who is the next comes after it
	 * [SHARED-1] */
	if (atomic_fetch_sub_explicit(&joint->lanes, 1, memory_order_relaxed) >
	    1)
		return false;
	*item = joint->item;
	free(joint);
	/* relaxed: likewise */
	atomic_fetch_sub_explicit(&queue->joints, 1, memory_order_relaxed);
	return true;
}

/* Drops tokens from what was taken, puts items in place of the last ones; how
 * many are left. */
static uint32_t rt_joint_finish_consumer(struct rpma_rt_queue *queue,
					 struct rpma_rt_completion *cmpl,
					 uint32_t count)
{
	uint32_t left = 0;
	uint32_t i;

	for (i = 0; i < count; i++) {
		if (cmpl[i].kind == RT_JOINT_KIND &&
		    !take_token(queue, &cmpl[i]))
			continue;
		cmpl[left++] = cmpl[i];
	}
	return left;
}

/* ----------------------------------------------------------------- take --- */

static inline uint32_t take_lane(struct rpma_rt_queue *queue,
				 struct rt_lane *lane,
				 struct rpma_rt_completion *cmpl, uint32_t max)
{
	uint32_t count = rt_lane_take_consumer(lane, cmpl, max);
	uint64_t ns;

	if (count == 0)
		return 0;
	ns = rt_lane_take_stamp_consumer(lane);
	if (ns != 0)
		rt_histogram_add_mt(&queue->dispatch, rt_now_ns() - ns);
	return count;
}

static inline bool holds_messages(const struct rpma_rt_queue *queue)
{
	/* relaxed: the consumer's own */
	return atomic_load_explicit(&queue->holds_messages,
				    memory_order_relaxed);
}

static uint32_t take_messages(struct rpma_rt_queue *queue,
			      struct rpma_rt_completion *cmpl, uint32_t max)
{
	if (holds_messages(queue))
		return 0;
	return rt_queue_take_messages_consumer(queue, cmpl, max);
}

/* Takes up to max items from all sources, beginning with another one each time.
 */
static uint32_t take_all(struct rpma_rt_queue *queue,
			 struct rpma_rt_completion *cmpl, uint32_t max)
{
	/* acquire [QUEUE-2]: before we touch what was the pollers' */
	bool finished =
		atomic_load_explicit(&queue->finished, memory_order_acquire);
	/* acquire [LANE-6]: the lanes below it are initialised */
	uint32_t lanes =
		atomic_load_explicit(&queue->lane_count, memory_order_acquire);
	uint32_t source = queue->next_source;
	uint32_t total = 0;
	uint32_t i;

	for (i = 0; i <= lanes && total < max; i++, source++) {
		if (source > lanes)
			source = 0;
		if (source == lanes)
			total +=
				take_messages(queue, cmpl + total, max - total);
		else if (finished)
			total += rt_lane_drain_consumer(queue->lanes[source],
							cmpl + total,
							max - total);
		else
			total += take_lane(queue, queue->lanes[source],
					   cmpl + total, max - total);
	}
	queue->next_source =
		queue->next_source < lanes ? queue->next_source + 1 : 0;
	if (total > 0)
		/* relaxed: the consumer's own */
		atomic_store_explicit(&queue->owes_pollers, true,
				      memory_order_relaxed);
	return total;
}

uint32_t rt_queue_take_tokens_consumer(struct rpma_rt_queue *queue,
				       struct rpma_rt_completion *cmpl,
				       uint32_t count, uint32_t max)
{
	uint32_t left;

	/* tokens alone are nothing: there may be items behind them */
	while (count > 0 && rt_queue_has_tokens(queue)) {
		left = rt_joint_finish_consumer(queue, cmpl, count);
		if (left > 0)
			return left;
		count = take_all(queue, cmpl, max);
	}
	return count;
}

static inline uint32_t take(struct rpma_rt_queue *queue,
			    struct rpma_rt_completion *cmpl, uint32_t max)
{
	uint32_t count = take_all(queue, cmpl, max);

	if (count == 0 || likely(!rt_queue_has_tokens(queue)))
		return count;
	return rt_queue_take_tokens_consumer(queue, cmpl, count, max);
}

uint32_t rt_queue_take_consumer(struct rpma_rt_queue *queue,
				struct rpma_rt_completion *cmpl, uint32_t max)
{
	return take(queue, cmpl, max);
}

/* Before the take whose nothing it explains: what was published before the
 * state that it finds is found by that take. */
static enum rt_take_end look_at_end(struct rpma_rt_queue *queue)
{
	/* acquire [QUEUE-1]: the messages of every pusher that has left */
	uint32_t gate =
		atomic_load_explicit(&queue->gate, memory_order_acquire);
	bool over;

	if ((gate & RT_QUEUE_CLOSED) == 0)
		return RT_TAKE_EMPTY;
	if (gate != RT_QUEUE_CLOSED)
		return RT_TAKE_BUSY;
	/* acquire [QUEUE-2]: what the pollers left behind */
	over = atomic_load_explicit(&queue->finished, memory_order_acquire);
	if (!over) {
		pthread_mutex_lock(&queue->lock);
		over = queue->users == 0;
		pthread_mutex_unlock(&queue->lock);
	}
	return over ? RT_TAKE_CLOSED : RT_TAKE_EMPTY;
}

/* After the consumer's fence, all lanes found empty: pollers that sleep on a
 * spill are rung for the room [LANE-4]. */
static void ring_pollers(struct rpma_rt_queue *queue)
{
	uint32_t lanes;
	uint32_t i;

	/* relaxed: the consumer's own */
	atomic_store_explicit(&queue->owes_pollers, false,
			      memory_order_relaxed);
	/* relaxed: the pollers are gone, or nearly, and this is harmless */
	if (atomic_load_explicit(&queue->finished, memory_order_relaxed))
		return;
	/* acquire [LANE-6] */
	lanes = atomic_load_explicit(&queue->lane_count, memory_order_acquire);
	for (i = 0; i < lanes; i++)
		rt_lane_ring_poller_consumer(queue->lanes[i]);
}

uint32_t rt_queue_take_again_consumer(struct rpma_rt_queue *queue,
				      struct rpma_rt_completion *cmpl,
				      uint32_t max, enum rt_take_end *why)
{
	uint32_t count;

	*why = look_at_end(queue);
	count = rt_queue_take_consumer(queue, cmpl, max);
	if (count > 0)
		return count;
	ring_pollers(queue);
	rt_serve_arm(queue);
	return 0;
}

uint32_t rt_queue_poll_consumer(struct rpma_rt_queue *queue,
				struct rpma_rt_completion *cmpl, uint32_t max,
				enum rt_take_end *why)
{
	uint32_t count = take(queue, cmpl, max);

	*why = RT_TAKE_EMPTY;
	if (count > 0)
		return count;
	/* relaxed: the consumer's own */
	if (atomic_load_explicit(&queue->owes_pollers, memory_order_relaxed)) {
		/* [LANE-4]: our last head before the look at `spilled` */
		rt_fence_dekker();
		ring_pollers(queue);
	}
	if (!rt_queue_is_closed(queue))
		return 0;
	*why = look_at_end(queue);
	return rt_queue_take_consumer(queue, cmpl, max);
}

/* Looks without taking. */
static bool has_items(struct rpma_rt_queue *queue)
{
	/* acquire [QUEUE-2] */
	bool finished =
		atomic_load_explicit(&queue->finished, memory_order_acquire);
	/* acquire [LANE-6] */
	uint32_t lanes =
		atomic_load_explicit(&queue->lane_count, memory_order_acquire);
	uint32_t i;

	for (i = 0; i < lanes; i++) {
		if (!rt_lane_is_empty_mt(queue->lanes[i]) ||
		    (finished && rt_lane_is_spilling_poller(queue->lanes[i])))
			return true;
	}
	return !holds_messages(queue) &&
	       !rt_mpsc_is_empty_owner(&queue->messages);
}

enum rt_take_end rt_queue_look_consumer(struct rpma_rt_queue *queue)
{
	enum rt_take_end end = look_at_end(queue);

	if (has_items(queue))
		return RT_TAKE_SOME;
	if (end != RT_TAKE_EMPTY)
		return end;
	ring_pollers(queue);
	rt_serve_arm(queue);
	return rt_wake_is_due(queue) ? RT_TAKE_WOKEN : RT_TAKE_EMPTY;
}

int rt_queue_refuse_closed(const struct rpma_rt_queue *queue)
{
	return RT_REFUSE(RPMA_RT_E_CLOSED,
			 "queue %u (%s) is closed and empty: nothing comes any "
			 "more",
			 queue->id, queue->name);
}
