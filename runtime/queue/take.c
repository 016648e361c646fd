/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * take.c -- taking from all lanes and the messages of a queue; looking for
 * something to take, or for the end. Runs on the consumer's thread. Labels in
 * brackets: doc/protocols/lane.md.
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
	/* relaxed: the tail that publishes the first token publishes the count
	 * too */
	atomic_fetch_add_explicit(&queue->joints, 1, memory_order_relaxed);
}

/* Counts a token as taken. Returns true for the last token of the joint, and
 * stores the joint's item in *item. */
static bool take_token(struct rpma_rt_queue *queue,
		       struct rpma_rt_completion *item)
{
	struct rt_joint *joint = (struct rt_joint *)(uintptr_t)item->context;

	/* relaxed: a single consumer at a time, and the next consumer comes
	 * after this consumer [SHARED-1] */
	if (atomic_fetch_sub_explicit(&joint->lanes, 1, memory_order_relaxed) >
	    1)
		return false;
	*item = joint->item;
	free(joint);
	/* relaxed: as for joint->lanes */
	atomic_fetch_sub_explicit(&queue->joints, 1, memory_order_relaxed);
	return true;
}

/* Drops the tokens among the taken items and puts a joint's item in place of
 * its last token. Returns the number of remaining items. */
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

static inline bool take_holds_messages(const struct rpma_rt_queue *queue)
{
	/* relaxed: written and read by the consumer only */
	return atomic_load_explicit(&queue->holds_messages,
				    memory_order_relaxed);
}

static uint32_t take_messages(struct rpma_rt_queue *queue,
			      struct rpma_rt_completion *cmpl, uint32_t max)
{
	if (take_holds_messages(queue))
		return 0;
	return rt_queue_take_messages_consumer(queue, cmpl, max);
}

/* Takes up to max items from all sources, beginning with another source each
 * time. */
static uint32_t take_all(struct rpma_rt_queue *queue,
			 struct rpma_rt_completion *cmpl, uint32_t max)
{
	/* acquire [QUEUE-2]: pairs with the release in rt_queue_finish(),
	 * before the consumer touches words of the pollers */
	bool finished =
		atomic_load_explicit(&queue->finished, memory_order_acquire);
	/* acquire [LANE-6]: the counted lanes are initialised */
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
		/* relaxed: written and read by the consumer only */
		atomic_store_explicit(&queue->owes_pollers, true,
				      memory_order_relaxed);
	return total;
}

uint32_t rt_queue_take_tokens_consumer(struct rpma_rt_queue *queue,
				       struct rpma_rt_completion *cmpl,
				       uint32_t count, uint32_t max)
{
	uint32_t left;

	/* tokens alone do not count: there may be items behind the tokens */
	while (count > 0 && rt_queue_has_tokens(queue)) {
		left = rt_joint_finish_consumer(queue, cmpl, count);
		if (left > 0)
			return left;
		count = take_all(queue, cmpl, max);
	}
	return count;
}

static inline uint32_t take_with_tokens(struct rpma_rt_queue *queue,
					struct rpma_rt_completion *cmpl,
					uint32_t max)
{
	uint32_t count = take_all(queue, cmpl, max);

	if (count == 0 || likely(!rt_queue_has_tokens(queue)))
		return count;
	return rt_queue_take_tokens_consumer(queue, cmpl, count, max);
}

uint32_t rt_queue_take_consumer(struct rpma_rt_queue *queue,
				struct rpma_rt_completion *cmpl, uint32_t max)
{
	return take_with_tokens(queue, cmpl, max);
}

/* Finds out why a take finds nothing. Called before that take: the take finds
 * everything that was published before the state seen here. */
static enum rt_take_end take_look_at_end(struct rpma_rt_queue *queue)
{
	/* acquire [QUEUE-1]: the consumer sees the messages of every pusher
	 * that has left */
	uint32_t gate =
		atomic_load_explicit(&queue->gate, memory_order_acquire);
	bool over;

	if ((gate & RT_QUEUE_CLOSED) == 0)
		return RT_TAKE_EMPTY;
	if (gate != RT_QUEUE_CLOSED)
		return RT_TAKE_BUSY;
	/* acquire [QUEUE-2]: the consumer sees everything that the pollers left
	 * behind */
	over = atomic_load_explicit(&queue->finished, memory_order_acquire);
	if (!over) {
		pthread_mutex_lock(&queue->lock);
		over = queue->users == 0;
		pthread_mutex_unlock(&queue->lock);
	}
	return over ? RT_TAKE_CLOSED : RT_TAKE_EMPTY;
}

/* Rings pollers that sleep with a spill, because there is room now [LANE-4].
 * Called after the consumer's fence, when all lanes were found empty. */
static void take_ring_pollers(struct rpma_rt_queue *queue)
{
	uint32_t lanes;
	uint32_t i;

	/* relaxed: written and read by the consumer only */
	atomic_store_explicit(&queue->owes_pollers, false,
			      memory_order_relaxed);
	/* relaxed: if the pollers are gone, or nearly gone, a ring is
	 * harmless */
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

	*why = take_look_at_end(queue);
	count = rt_queue_take_consumer(queue, cmpl, max);
	if (count > 0)
		return count;
	take_ring_pollers(queue);
	rt_serve_arm(queue);
	return 0;
}

uint32_t rt_queue_poll_consumer(struct rpma_rt_queue *queue,
				struct rpma_rt_completion *cmpl, uint32_t max,
				enum rt_take_end *why)
{
	uint32_t count = take_with_tokens(queue, cmpl, max);

	*why = RT_TAKE_EMPTY;
	if (count > 0)
		return count;
	/* relaxed: written and read by the consumer only */
	if (atomic_load_explicit(&queue->owes_pollers, memory_order_relaxed)) {
		/* [LANE-4]: the consumer's last head before the look at
		 * `spilled` */
		rt_fence_dekker();
		take_ring_pollers(queue);
	}
	if (!rt_queue_is_closed(queue))
		return 0;
	*why = take_look_at_end(queue);
	return rt_queue_take_consumer(queue, cmpl, max);
}

/* Returns whether there is something to take. */
static bool take_has_items(struct rpma_rt_queue *queue)
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
	return !take_holds_messages(queue) &&
	       !rt_mpsc_is_empty_owner(&queue->messages);
}

enum rt_take_end rt_queue_look_consumer(struct rpma_rt_queue *queue)
{
	enum rt_take_end end = take_look_at_end(queue);

	if (take_has_items(queue))
		return RT_TAKE_SOME;
	if (end != RT_TAKE_EMPTY)
		return end;
	take_ring_pollers(queue);
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
