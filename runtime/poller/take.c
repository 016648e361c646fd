/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * take.c -- a consumer who owns the poller runs a round: completions go
 * straight to the caller, and not through the lane. rpma_rt_queue_wait() begins
 * so, and rpma_rt_poller_take() is such a round. doc/protocols/manual.md.
 */

#include "base/clock.h"
#include "base/context.h"
#include "base/lang.h"
#include "base/log.h"
#include "base/owner.h"
#include "base/runtime.h"
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
static inline bool take_may(const struct rt_poller *poller,
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
static inline struct rt_poller *take_poller(struct rt_owned *filler)
{
	return RT_FROM(struct rt_poller, owned, filler);
}

/* Runs, or ends, a round in which functions may be called:
 * rt_round_take_rest(). Not inlined: a round that calls no function keeps no
 * register for this one. */
__attribute__((noinline)) static int
take_in_hand(struct rpma_rt_queue *queue, struct rt_owned *filler,
	     struct rt_side *side, struct rpma_rt_completion *cmpl, int max,
	     int n)
{
	struct rt_poller *poller = take_poller(filler);
	int count;

	rt_queue_set_in_hand(queue, true);
	count = rt_round_take_rest(poller, side, queue->lanes[0], cmpl, max, n);
	rt_queue_set_in_hand(queue, false);
	return count;
}

/* Runs a round as rt_round_run() does. The usual completions of routes to the
 * queue's lane go to cmpl, and not into the lane, as long as the round has
 * written nothing to the lane. Returns their number, at most max, or an
 * RT_TAKE_*. A round of a single CQ without a completion, or with a single
 * usual one, calls no function if nothing else is to do. */
__attribute__((always_inline)) static inline int
take_round(struct rpma_rt_queue *queue, struct rt_owned *filler,
	   struct rpma_rt_completion *cmpl, int max)
{
	struct rt_poller *poller = take_poller(filler);
	const struct rt_route_entry *entry = NULL;
	struct rt_cq *cq = poller->single;
	struct rt_side *side;
	uint8_t marks = 0;
	int n = 0;

	if (unlikely(!take_may(poller, queue->lanes[0])))
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
		return take_in_hand(queue, filler, NULL, cmpl, max, n);
	side = entry->side;
	return likely(rt_round_store_one(poller, cq, entry, NULL, side, marks,
					 cmpl) &&
		      rt_round_is_quiet(poller))
		       ? 1
		       : take_in_hand(queue, filler, side, cmpl, max, n);
}

/*
 * Runs a round of the poller that fills the queue alone, for the owner of the
 * poller: the completions of the round go to the caller, without the lane, and
 * are counted as a call in *calls. Returns their number, or an RT_TAKE_*.
 */
__attribute__((always_inline)) static inline int
take_straight(struct rpma_rt_queue *queue, struct rt_owned *filler,
	      _Atomic uint64_t *calls, struct rpma_rt_completion *cmpl, int max)
{
	int count;

	/* an owner that is inside already is in a function of a round */
	if (unlikely(!rt_queue_may_pass(queue) || rt_self_is_poller() ||
		     !rt_owner_go_in_owned(filler)))
		return RT_TAKE_NO_ROUND;
	count = take_round(queue, filler, cmpl, max);
	rt_owner_go_out_owned(filler);
	if (unlikely(count <= 0))
		return count;
	rt_queue_date_at(&queue->stats.last_take,
			 rt_poller_tick(take_poller(filler)));
	rt_stat_add(calls, 1);
	rt_stat_add(&queue->stats.taken, (uint32_t)count);
	return count;
}

int rpma_rt_queue_wait(struct rpma_rt_queue *queue,
		       struct rpma_rt_completion *cmpl, int max, int timeout_ms)
{
	/* in memory: a register would be saved for the poll, but is needed only
	 * after a poll without completions */
	const volatile int timeout = timeout_ms;
	struct rt_owned *filler;
	int count;

	if (unlikely(queue == NULL || cmpl == NULL || max <= 0 ||
		     timeout_ms < -1))
		return rt_queue_wait_any(queue, cmpl, max, timeout_ms);
	filler = rt_queue_filler(queue);
	/* a wait runs all pollers of the thread. A thread that has pollers is
	 * not in a child of a fork: rt_owner_forked() */
	if (!rt_owner_is_only(filler))
		return rt_queue_wait_any(queue, cmpl, max, timeout_ms);
	count = take_straight(queue, filler, &queue->stats.waits, cmpl, max);
	if (likely(count > 0))
		return count;
	if (count != RT_TAKE_NO_ROUND && timeout == 0)
		return rt_queue_wait_no_more(queue, cmpl, max);
	return rt_queue_wait_any(queue, cmpl, max, timeout);
}

/* Not inlined: a take that is right saves no registers for this function. */
__attribute__((noinline)) static int
take_refuse(const struct rpma_rt *rt, const struct rpma_rt_queue *queue,
	    const struct rpma_rt_completion *cmpl, int max, const bool *busy)
{
	int ret = RT_REFUSE_NULL(rt, queue, cmpl, busy);

	if (ret == 0)
		ret = RT_REFUSE_FORKED(rt);
	return ret ? ret
		   : RT_REFUSE(RPMA_E_INVAL,
			       "max is %d: give how many fit into cmpl, 1 or "
			       "more",
			       max);
}

/* Runs a round, then polls the queue: the take where nothing goes straight. The
 * queue of a stopped runtime may have items, and says itself that no item
 * follows. */
__attribute__((noinline)) static int
take_run_and_poll(struct rpma_rt *rt, uint32_t poller,
		  struct rpma_rt_queue *queue, struct rpma_rt_completion *cmpl,
		  int max, bool *busy)
{
	int handled = rpma_rt_poller_run(rt, poller, (uint32_t)max);

	if (handled < 0 && handled != RPMA_RT_E_CLOSED)
		return handled;
	*busy = handled > 0;
	return rpma_rt_queue_poll(queue, cmpl, max);
}

int rpma_rt_poller_take(struct rpma_rt *rt, uint32_t poller,
			struct rpma_rt_queue *queue,
			struct rpma_rt_completion *cmpl, int max, bool *busy)
{
	int count = RT_TAKE_NO_ROUND;
	struct rt_owned *owned;

	if (unlikely(rt == NULL || queue == NULL || cmpl == NULL || max < 1 ||
		     busy == NULL || rt_context_check(rt)))
		return take_refuse(rt, queue, cmpl, max, busy);
	owned = likely(poller < rt->cfg.pollers) ? &rt->pollers[poller].owned
						 : NULL;
	if (likely(owned != NULL && rt_queue_filler(queue) == owned &&
		   rt_owner_is_self(owned)))
		count = take_straight(queue, owned, &queue->stats.polls, cmpl,
				      max);
	if (unlikely(count == RT_TAKE_NO_ROUND))
		return take_run_and_poll(rt, poller, queue, cmpl, max, busy);
	*busy = count != 0;
	return likely(count > 0) ? count : rpma_rt_queue_poll(queue, cmpl, max);
}
