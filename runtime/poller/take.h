/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * take.h -- a consumer who owns the poller runs a round: completions go
 * straight to the caller, and not through the lane. doc/protocols/manual.md.
 */

#ifndef RT_POLLER_TAKE_H
#define RT_POLLER_TAKE_H

#include "base/clock.h"
#include "base/lang.h"
#include "base/owner.h"
#include "base/self.h"
#include "base/stats.h"
#include "poller/poller.h"
#include "poller/round.h"
#include "queue/take.h"

/* rounds between two reads of the clock: the thread may do other work between
 * waits */
#define TAKES_PER_TICK 8

/* Returns whether the completions of a round may go to the caller, who consumes
 * from the lane: nothing in the lane goes first, and the round has no unusual
 * beginning. Inside. */
static inline bool rt_take_may(const struct rt_poller *poller,
			       const struct rt_lane *lane)
{
	/* relaxed: the caller is the consumer, who alone writes the head. A
	 * lane that spills has no place */
	return likely(!poller->armed) &&
	       likely(lane->tail_next ==
			      atomic_load_explicit(&lane->head,
						   memory_order_relaxed) &&
		      rt_lane_has_place_poller(lane));
}

/* Returns the poller of the thread that fills the queue. */
static inline struct rt_poller *rt_take_poller(struct rt_owned *filler)
{
	return RT_FROM(struct rt_poller, owned, filler);
}

/* Runs, or ends, a round in which functions may be called:
 * rt_round_take_rest(). */
int rt_take_in_hand(struct rpma_rt_queue *queue, struct rt_owned *filler,
		    struct rt_side *side, struct rpma_rt_completion *cmpl,
		    int max, int n);
/* Does rt_take_in_hand() for a consumer that runs a loop: tasks may be
 * deferred. */
int rt_take_in_loop(struct rpma_rt_queue *queue, struct rt_owned *filler,
		    struct rt_side *side, struct rpma_rt_completion *cmpl,
		    int max, int n);

/* Runs a round as rt_round_run() does. The usual completions of routes to the
 * queue's lane go to cmpl, and not into the lane, as long as the round has
 * written nothing to the lane. is_loop: the consumer runs a loop. Returns their
 * number, at most max, or an RT_TAKE_*. A round of a single CQ without a
 * completion, or with a single usual one, calls no function if nothing else is
 * to do. */
__attribute__((always_inline)) static inline int
rt_take_round(struct rpma_rt_queue *queue, struct rt_owned *filler,
	      bool is_loop, struct rpma_rt_completion *cmpl, int max)
{
	int (*const in_hand)(struct rpma_rt_queue *queue,
			     struct rt_owned *filler, struct rt_side *side,
			     struct rpma_rt_completion *cmpl, int max, int n) =
		is_loop ? rt_take_in_loop : rt_take_in_hand;
	struct rt_poller *poller = rt_take_poller(filler);
	const struct rt_route_entry *entry = NULL;
	struct rt_cq *cq = poller->single;
	struct rt_side *side;
	uint8_t marks = 0;
	int n = 0;

	if (unlikely(!rt_take_may(poller, queue->lanes[0])))
		return RT_TAKE_NO_ROUND;
	if (rt_owner_count_turn(&poller->owned) % TAKES_PER_TICK == 0)
		rt_poller_set_tick_ms(poller, rt_now_ms());
	if (rt_round_has_single(poller)) {
		n = rt_round_poll_verb(poller, cq, max);
		if (n == 0 && likely(cds_list_empty(&cq->sweeping)) &&
		    rt_round_is_quiet(poller)) {
			RT_STAT_ADD(poller, empty_polls, 1);
			return 0;
		}
		if (n == 1)
			entry = rt_round_usual_route(cq, &poller->wcs[0],
						     &marks);
	}
	if (entry == NULL || entry->lane != queue->lanes[0])
		return in_hand(queue, filler, NULL, cmpl, max, n);
	side = entry->side;
	return likely(rt_round_store_one(poller, cq, entry, NULL, side, marks,
					 cmpl) &&
		      rt_round_is_quiet(poller))
		       ? 1
		       : in_hand(queue, filler, side, cmpl, max, n);
}

/*
 * Runs a round of the poller that fills the queue alone, for the owner of the
 * poller: the completions of the round go to the caller, without the lane, and
 * are counted as a call in *calls. is_loop: the consumer runs a loop. Returns
 * their number, or an RT_TAKE_*.
 */
__attribute__((always_inline)) static inline int
rt_take_straight(struct rpma_rt_queue *queue, struct rt_owned *filler,
		 bool is_loop, _Atomic uint64_t *calls,
		 struct rpma_rt_completion *cmpl, int max)
{
	int count;

	/* an owner that is inside already is in a function of a round */
	if (unlikely(!rt_queue_may_pass(queue) || rt_self_is_poller() ||
		     !rt_owner_go_in_owned(filler)))
		return RT_TAKE_NO_ROUND;
	count = rt_take_round(queue, filler, is_loop, cmpl, max);
	rt_owner_go_out_owned(filler);
	if (unlikely(count <= 0))
		return count;
	rt_queue_date_at(&queue->stats.last_take,
			 rt_poller_tick(rt_take_poller(filler)));
	rt_stat_add(calls, 1);
	rt_stat_add(&queue->stats.taken, (uint32_t)count);
	return count;
}

/* Runs such a round for a loop, where the poller is the calling thread's, and
 * fills the queue alone. Counts as a poll of the queue. Returns as
 * rt_take_straight(). */
__attribute__((always_inline)) static inline int
rt_take_own(struct rpma_rt_queue *queue, struct rt_owned *owned,
	    struct rpma_rt_completion *cmpl, int max)
{
	if (unlikely(rt_queue_filler(queue) != owned ||
		     !rt_owner_is_self(owned)))
		return RT_TAKE_NO_ROUND;
	return rt_take_straight(queue, owned, true, &queue->stats.polls, cmpl,
				max);
}

#endif /* RT_POLLER_TAKE_H */
