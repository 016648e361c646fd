/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * calls.c -- the calls of a future's holder that never wait: poll, cancel,
 * then, drop. Any thread, but a single thread at a time for each future.
 * doc/protocols/future.md.
 */

#include "future/future.h"

#include "base/context.h"
#include "base/log.h"

int rt_future_refuse(const struct rt_log_place *place,
		     const struct rpma_rt_future *future)
{
	int ret;

	if (future == NULL)
		return rt_refuse(place, RPMA_E_INVAL, "future is NULL");
	if (future->opaque[0] == 0)
		return rt_refuse(place, RPMA_E_INVAL,
				 "future is none: no work request with it was "
				 "posted");
	ret = rt_context_check_here(place, rt_future_slot(future)->of->rt);
	return ret ? ret
		   : rt_refuse(place, RPMA_E_INVAL,
			       "future was dropped before");
}
#define find(future, slot_ptr) rt_future_find(RT_LOG_HERE, future, slot_ptr)

/* Not inlined: a poll that succeeds saves no registers. */
__attribute__((noinline)) static int
future_refuse_poll(const struct rpma_rt_future *future,
		   const struct rpma_rt_completion *cmpl)
{
	struct rt_future *slot = NULL;
	int ret = find(future, &slot);

	return ret ? ret : RT_REFUSE_NULL(cmpl);
}

int rpma_rt_future_poll(const struct rpma_rt_future *future,
			struct rpma_rt_completion *cmpl)
{
	struct rt_future *slot;

	if (unlikely(!rt_future_is_held(future) || cmpl == NULL))
		return future_refuse_poll(future, cmpl);
	slot = rt_future_slot(future);
	return rt_future_is_ready(slot) ? rt_future_read(slot, cmpl) : 0;
}

/* -------------------------------------------------------- continuation --- */

static enum rt_future_claim future_claim_of(const struct rt_future *slot)
{
	/* acquire [FUTURE-4]: pairs with the exchange in future_claim_call(),
	 * poller/future.c */
	return (enum rt_future_claim)atomic_load_explicit(&slot->claim,
							  memory_order_acquire);
}

/* Takes the continuation back. Returns false if the continuation has run or
 * will run. */
static bool future_take_call_back(struct rt_future *slot)
{
	uint8_t armed = RT_FUTURE_ARMED;

	/* acq_rel [FUTURE-4]: exactly one of the poller and the holder wins */
	return atomic_compare_exchange_strong_explicit(
		       &slot->claim, &armed, RT_FUTURE_NEVER,
		       memory_order_acq_rel, memory_order_acquire) ||
	       armed != RT_FUTURE_CALLED;
}

int rt_future_check_arm(const struct rt_log_place *place,
			const struct rt_future *slot)
{
	if (!(slot->mine & RT_FUTURE_AWAY) &&
	    future_claim_of(slot) == RT_FUTURE_NONE)
		return 0;
	return rt_refuse(place, RPMA_E_INVAL,
			 "future has a continuation, or was cancelled");
}

void rt_future_arm(struct rt_future *slot, const struct rt_future_then *then)
{
	slot->of->then[slot - slot->of->slots] = *then;
	if (then->fn == NULL)
		slot->mine |= RT_FUTURE_AWAY;
	/* relaxed: the request to the poller publishes the claim */
	atomic_store_explicit(&slot->claim, RT_FUTURE_ARMED,
			      memory_order_relaxed);
	rt_future_ask_mt(slot, RT_FUTURE_THEN);
}

int rpma_rt_future_then(const struct rpma_rt_future *future,
			rpma_rt_route_fn *fn, void *arg)
{
	const struct rt_future_then then = {.fn = fn, .arg = arg};
	struct rt_future *slot = NULL;
	int ret = find(future, &slot);

	if (ret == 0)
		ret = RT_REFUSE_NULL(fn);
	if (ret == 0)
		ret = rt_future_check_arm(RT_LOG_HERE, slot);
	if (ret == 0)
		rt_future_arm(slot, &then);
	return ret;
}

/* ----------------------------------------------------- cancel and drop --- */

int rpma_rt_future_cancel(const struct rpma_rt_future *future,
			  enum rpma_rt_cancelled *cancelled)
{
	struct rt_future *slot = NULL;
	int ret = find(future, &slot);

	if (ret == 0)
		ret = RT_REFUSE_NULL(cancelled);
	if (ret)
		return ret;
	*cancelled = RPMA_RT_CANCELLED_DONE;
	if (slot->mine & RT_FUTURE_TAKEN_BACK)
		*cancelled = RPMA_RT_CANCELLED_NOT_POSTED;
	else if (slot->mine & RT_FUTURE_CANCELLED)
		*cancelled = RPMA_RT_CANCELLED_DETACHED; /* earlier */
	if ((slot->mine & RT_FUTURE_AWAY) || rt_future_is_ready(slot) ||
	    !future_take_call_back(slot))
		return 0;
	*cancelled = RPMA_RT_CANCELLED_DETACHED;
	if (rt_future_take_post_back(slot)) {
		*cancelled = RPMA_RT_CANCELLED_NOT_POSTED;
		slot->mine |= RT_FUTURE_TAKEN_BACK;
	}
	slot->mine |= RT_FUTURE_AWAY | RT_FUTURE_CANCELLED;
	rt_future_ask_mt(slot, RT_FUTURE_CANCEL);
	return 0;
}

/* Returns whether the slot holds something that no thread has read: a message,
 * which has to go to the connection's queue, or a request, which goes to the
 * next future. */
static bool future_holds_message(const struct rt_future *slot)
{
	return !(slot->mine & RT_FUTURE_READ) && rt_future_is_message(slot) &&
	       future_claim_of(slot) != RT_FUTURE_CALLED;
}

/* Drops a future in any state. Not inlined, as above. */
__attribute__((noinline)) static int
future_drop_any(struct rpma_rt_future *future)
{
	struct rt_future *slot = NULL;
	uint32_t asked = RT_FUTURE_DROP;
	bool is_called;
	int ret;

	if (future != NULL && future->opaque[0] == 0)
		return 0;
	ret = find(future, &slot);
	if (ret)
		return ret;
	*future = (struct rpma_rt_future){{0, 0}};
	if (slot->mine & RT_FUTURE_READ)
		asked |= RT_FUTURE_TAKEN;
	/* without a continuation, or after the continuation ran, the poller
	 * does not touch a ready slot any more */
	if (rt_future_is_ready(slot) &&
	    future_claim_of(slot) != RT_FUTURE_ARMED &&
	    !future_holds_message(slot)) {
		is_called = future_claim_of(slot) == RT_FUTURE_CALLED;
		rt_future_free_holder(slot);
		return is_called;
	}
	is_called = !future_take_call_back(slot);
	rt_future_take_post_back(slot);
	rt_future_end_generation(slot);
	rt_future_ask_mt(slot, asked);
	return is_called;
}

/* Returns whether the holder has asked for no continuation. */
static inline bool future_has_no_then(const struct rt_future *slot)
{
	/* relaxed: only the holder arms a continuation */
	return atomic_load_explicit(&slot->claim, memory_order_relaxed) ==
	       RT_FUTURE_NONE;
}

/* Returns whether the holder has read the result, and has asked for nothing:
 * then the poller is through with the slot. */
static inline bool future_is_only_read(const struct rt_future *slot)
{
	return slot->mine == RT_FUTURE_READ && future_has_no_then(slot);
}

int rpma_rt_future_drop(struct rpma_rt_future *future)
{
	struct rt_future *slot;

	if (unlikely(!rt_future_is_held(future)))
		return future_drop_any(future);
	slot = rt_future_slot(future);
	if (unlikely(!future_is_only_read(slot)))
		return future_drop_any(future);
	*future = (struct rpma_rt_future){{0, 0}};
	rt_future_free_holder(slot);
	return 0;
}

/* --------------------------------------------------------------- taking --- */

/* Takes a future that is complete, and of which more than the result was asked
 * or may be asked. Returns false if the future is not complete. */
__attribute__((noinline)) static bool
future_take_any(struct rpma_rt_future *future, struct rpma_rt_completion *cmpl)
{
	if (rpma_rt_future_poll(future, cmpl) != 1)
		return false;
	rpma_rt_future_drop(future);
	return true;
}

/* Returns whether the result is there, and only the holder has the slot:
 * nothing but the result was asked, nobody has read the result, and the slot is
 * off the line. */
static inline bool future_is_only_done(const struct rt_future *slot)
{
	/* acquire [FUTURE-10]: as in rt_future_set_free() */
	return rt_future_state(slot) == RT_FUTURE_DONE &&
	       likely(rt_load_unseen(&slot->extras, memory_order_acquire) == 0);
}

/* Not inlined: a take that is right saves no registers for this function. */
__attribute__((noinline)) static int
future_refuse_take(const struct rpma_rt_future *futures, int count,
		   const struct rpma_rt_completion *cmpls)
{
	struct rt_future *slot = NULL;
	int ret = RT_REFUSE_NULL(futures, cmpls);

	if (ret)
		return ret;
	if (count < 1)
		return RT_REFUSE(RPMA_E_INVAL,
				 "count is %d: give how many futures there "
				 "are, 1 or more",
				 count);
	return find(futures, &slot);
}

int rpma_rt_futures_take(struct rpma_rt_future *futures, int count,
			 struct rpma_rt_completion *cmpls)
{
	const uint64_t here = rt_future_here();
	struct rt_future *slot;
	int n;

	if (unlikely(count < 1 || futures == NULL || cmpls == NULL ||
		     !rt_future_is_held_here(&futures[0], here)))
		return future_refuse_take(futures, count, cmpls);
	for (n = 0; n < count; n++) {
		if (unlikely(!rt_future_is_held_here(&futures[n], here)))
			break;
		slot = rt_future_slot(&futures[n]);
		if (unlikely(!future_is_only_done(slot))) {
			if (!future_take_any(&futures[n], &cmpls[n]))
				return n;
			continue;
		}
		cmpls[n] = slot->result;
		futures[n] = (struct rpma_rt_future){{0, 0}};
		rt_future_set_free_at(slot, rt_future_end_generation(slot));
	}
	return n;
}
