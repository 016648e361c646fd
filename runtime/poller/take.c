/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * take.c -- the calls that take in a round of their own, see take.h:
 * rpma_rt_queue_wait() begins so, and rpma_rt_poller_take() is such a round.
 */

#include "poller/take.h"

#include "base/context.h"
#include "base/log.h"
#include "base/runtime.h"

/* Here, and not in the header: a round that calls no function keeps no register
 * for this one. */
int rt_take_in_hand(struct rpma_rt_queue *queue, struct rt_owned *filler,
		    struct rt_side *side, struct rpma_rt_completion *cmpl,
		    int max, int n)
{
	struct rt_poller *poller = rt_take_poller(filler);
	int count;

	rt_queue_set_in_hand(queue, true);
	count = rt_round_take_rest(poller, side, queue->lanes[0], cmpl, max, n);
	rt_queue_set_in_hand(queue, false);
	return count;
}

int rt_take_in_loop(struct rpma_rt_queue *queue, struct rt_owned *filler,
		    struct rt_side *side, struct rpma_rt_completion *cmpl,
		    int max, int n)
{
	struct rt_poller *poller = rt_take_poller(filler);
	int count;

	poller->taking = queue->lanes[0];
	count = rt_take_in_hand(queue, filler, side, cmpl, max, n);
	poller->taking = NULL;
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
	count = rt_take_straight(queue, filler, false, &queue->stats.waits,
				 cmpl, max);
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
	if (likely(owned != NULL))
		count = rt_take_own(queue, owned, cmpl, max);
	if (unlikely(count == RT_TAKE_NO_ROUND))
		return take_run_and_poll(rt, poller, queue, cmpl, max, busy);
	*busy = count != 0;
	return likely(count > 0) ? count : rpma_rt_queue_poll(queue, cmpl, max);
}
