/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * ask.c -- what holders ask of the poller that completes their future: a stack
 * of slots in each block, and one message for all that is on it.
 * doc/protocols/future.md.
 */

#include "future/future.h"

#include "base/context.h"
#include "base/order.h"
#include "base/runtime.h"
#include "poller/poller.h"
#include "poller/route.h"
#include "poller/source.h"

/* What is on the stack is the caller's: index + 1 of the one that was put there
 * first, and so on. Futures of the next message get it in this order. */
static uint32_t take_all(struct rt_futures *futures)
{
	/* acquire [FUTURE-6]: the slots' next, as push() left them */
	uint32_t at = atomic_exchange_explicit(&futures->requests, 0,
					       memory_order_acq_rel);
	uint32_t first = 0;
	struct rt_future *slot;
	uint32_t next;

	while (at != 0) {
		slot = &futures->slots[at - 1];
		next = slot->next;
		slot->next = first;
		first = at;
		at = next;
	}
	return first;
}

/* What was asked of it; from here on it may be put on the stack again. */
static uint32_t take_asked(struct rt_future *slot)
{
	/* acq_rel [FUTURE-6]: pairs with the holder's fetch_or */
	return atomic_exchange_explicit(&slot->asked, 0, memory_order_acq_rel);
}

static void run_ended_once(struct rt_futures *futures)
{
	uint32_t at = take_all(futures);
	struct rt_future *slot;

	while (at != 0) {
		slot = &futures->slots[at - 1];
		at = slot->next;
		rt_future_ask_ended(slot, take_asked(slot));
	}
}

static bool has_requests(const struct rt_futures *futures)
{
	/* relaxed: after the fence of run_ended() */
	return atomic_load_explicit(&futures->requests, memory_order_relaxed) !=
	       0;
}

/* In place of the poller, which has ended: one thread at a time. One that finds
 * another inside leaves its request to that, which looks again [FUTURE-7]. */
static void run_ended(struct rt_futures *futures)
{
	do {
		/* acquire: what the last one inside did with the slots */
		if (atomic_exchange_explicit(&futures->ending, true,
					     memory_order_acq_rel))
			return;
		run_ended_once(futures);
		/* release: to the next one inside */
		atomic_store_explicit(&futures->ending, false,
				      memory_order_release);
		/* pairs with the one of a thread that has put a request there
		 * and then finds this one inside */
		rt_fence_dekker();
	} while (has_requests(futures));
}

void rt_future_run_poller(struct rt_futures *futures)
{
	struct rt_poller *poller = futures->poller;
	const struct rt_route_entry *to;
	struct rpma_rt_completion left;
	struct rt_future *slot;
	bool may_serve = false;
	uint32_t asked;
	uint32_t at;

	/* each slot is either not complete, or published */
	if (poller->futures.count > 0)
		rt_deliver_flush(poller);
	at = take_all(futures);
	while (at != 0) {
		slot = &futures->slots[at - 1];
		at = slot->next;
		rt_deliver_futures(poller);
		asked = take_asked(slot);
		/* before it is done: the block may be another's then */
		may_serve = rt_source_may_serve(slot, asked);
		to = rt_future_ask_poller(poller, slot, asked, &left);
		if (to != NULL)
			rt_deliver_item(poller, to, &left);
	}
	/* behind the requests: a slot that is complete now may be among those.
	 * What keeps the source keeps the block */
	if (may_serve)
		rt_deliver_asked(poller, futures, 0);
}

static void push(struct rt_futures *futures, struct rt_future *slot)
{
	/* relaxed: the compare-and-swap decides */
	uint32_t first =
		atomic_load_explicit(&futures->requests, memory_order_relaxed);

	do {
		slot->next = first;
		/* acq_rel [FUTURE-6]: the slot, to whoever takes the stack;
		 * what the last one to take it is through with */
	} while (!atomic_compare_exchange_weak_explicit(
		&futures->requests, &first,
		(uint32_t)(slot - futures->slots) + 1, memory_order_acq_rel,
		memory_order_relaxed));
}

void rt_future_message(struct rt_msg *msg, void *owner)
{
	struct rt_futures *futures = RT_FROM(struct rt_futures, msg, msg);

	(void)owner;
	/* acq_rel [FUTURE-6]: pairs with the exchange of the sender: what is
	 * put on the stack from here on sends it again */
	atomic_exchange_explicit(&futures->msg_sent, false,
				 memory_order_acq_rel);
	/* acquire: pairs with the release in rt_poller_stop(). No batch may
	 * follow that would publish it: it is the stop's [FUTURE-7] */
	if (atomic_load_explicit(&futures->poller->stopping,
				 memory_order_acquire))
		return;
	rt_future_run_poller(futures);
}

void rt_future_ask_mt(struct rt_future *slot, uint32_t asked)
{
	struct rt_futures *futures = slot->of;

	/* acq_rel [FUTURE-6]: pairs with take_asked() */
	if (atomic_fetch_or_explicit(&slot->asked, (uint8_t)asked,
				     memory_order_acq_rel) != 0)
		return; /* it is on the stack */
	push(futures, slot);
	/* acq_rel [FUTURE-6]: it is on its way, and will see the slot; or it is
	 * sent */
	if (!atomic_exchange_explicit(&futures->msg_sent, true,
				      memory_order_acq_rel))
		rt_inbox_push_mt(&futures->poller->inbox, &futures->msg);
	/* pairs with the one in rt_future_finish_all(): either that finds the
	 * slot, or this finds that the poller has ended [FUTURE-7] */
	rt_fence_dekker();
	if (__builtin_expect(rt_context_is_stopped(futures->rt), 0))
		run_ended(futures);
}

void rt_future_finish_all(struct rpma_rt *rt)
{
	struct rt_futures *futures;

	/* pairs with the one in rt_future_ask_mt() [FUTURE-7] */
	rt_fence_dekker();
	/* no connection is made any more: the list stays as it is */
	for (futures = rt->futures; futures != NULL;
	     futures = futures->all_next)
		run_ended(futures);
}
