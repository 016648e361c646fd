/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * life.c -- blocks of slots: made for a side of a connection, used again by
 * another side of the same poller when all slots are free, freed with the
 * runtime. A future may outlive its connection, never its runtime. Also: the
 * requests of holders to the poller, and the sources of futures.
 */

#include "future/future.h"

#include <stdlib.h>
#include <string.h>

#include "base/cfg.h"
#include "base/context.h"
#include "base/order.h"
#include "base/runtime.h"
#include "base/wr.h"
#include "poller/poller.h"
#include "poller/route.h"
#include "poller/source.h"

/* ------------------------------------------------------------------ ask --- */

/*
 * The requests of holders to the poller that completes their futures: each
 * block has a stack of slots with requests, and a single message for the whole
 * stack. doc/protocols/future.md.
 */

/* Takes the whole stack for the caller and reverses the order: returns index +
 * 1 of the slot that was pushed first. So futures get the next messages in the
 * order in which the program asked. */
static uint32_t future_take_all(struct rt_futures *futures)
{
	/* acq_rel [FUTURE-6]: pairs with the exchange in future_push(): the
	 * slots' `next` are visible */
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

/* Takes the requests of a slot; from here on the slot may be pushed again. */
static uint32_t future_take_asked(struct rt_future *slot)
{
	/* acq_rel [FUTURE-6]: pairs with the fetch_or in rt_future_ask_mt() */
	return atomic_exchange_explicit(&slot->asked, 0, memory_order_acq_rel);
}

static void future_run_ended_once(struct rt_futures *futures)
{
	uint32_t at = future_take_all(futures);
	struct rt_future *slot;

	while (at != 0) {
		slot = &futures->slots[at - 1];
		at = slot->next;
		rt_future_ask_ended(slot, future_take_asked(slot));
	}
}

static bool future_has_requests(const struct rt_futures *futures)
{
	/* relaxed: after the fence in future_run_ended() */
	return atomic_load_explicit(&futures->requests, memory_order_relaxed) !=
	       0;
}

/* Does the requests in place of the poller, which has ended; a single thread at
 * a time. A thread that finds another thread inside leaves the requests to the
 * thread inside, which looks again [FUTURE-7]. */
static void future_run_ended(struct rt_futures *futures)
{
	do {
		/* acquire: pairs with the release below: the changes by the
		 * last thread inside are visible */
		if (atomic_exchange_explicit(&futures->ending, true,
					     memory_order_acq_rel))
			return;
		future_run_ended_once(futures);
		/* release: pairs with the exchange above of the next thread
		 * inside */
		atomic_store_explicit(&futures->ending, false,
				      memory_order_release);
		/* pairs with the fence of a thread that pushed a request before
		 * finding this thread inside */
		rt_fence_dekker();
	} while (future_has_requests(futures));
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

	/* after the flush each slot is either incomplete or published */
	if (poller->futures.count > 0)
		rt_deliver_flush(poller);
	at = future_take_all(futures);
	while (at != 0) {
		slot = &futures->slots[at - 1];
		at = slot->next;
		rt_deliver_futures(poller);
		asked = future_take_asked(slot);
		/* before the request is done: afterwards the block may belong
		 * to another owner */
		may_serve = rt_source_may_serve(slot, asked);
		to = rt_future_ask_poller(poller, slot, asked, &left);
		if (to != NULL)
			rt_deliver_item(poller, to, &left);
	}
	/* after all requests, because a slot that is complete now may have a
	 * request. The slot that pins the source also pins the block */
	if (may_serve)
		rt_deliver_asked(poller, futures, 0);
}

static void future_push(struct rt_futures *futures, struct rt_future *slot)
{
	/* relaxed: the compare-and-swap decides */
	uint32_t first =
		atomic_load_explicit(&futures->requests, memory_order_relaxed);

	do {
		slot->next = first;
		/* acq_rel [FUTURE-6]: pairs with the exchange in
		 * future_take_all(): publishes the slot to the thread that
		 * takes the stack, and sees that the last such thread is done
		 * with the slot */
	} while (!atomic_compare_exchange_weak_explicit(
		&futures->requests, &first,
		(uint32_t)(slot - futures->slots) + 1, memory_order_acq_rel,
		memory_order_relaxed));
}

/* Handles the block's message: does the requests of the block. */
static void rt_future_message(struct rt_msg *msg, void *owner)
{
	struct rt_futures *futures = RT_FROM(struct rt_futures, msg, msg);

	(void)owner;
	/* acq_rel [FUTURE-6]: pairs with the exchange of the sender in
	 * rt_future_ask_mt(): a slot that is pushed from here on sends the
	 * message again */
	atomic_exchange_explicit(&futures->msg_sent, false,
				 memory_order_acq_rel);
	/* acquire: pairs with the release in rt_poller_stop(). No batch may
	 * follow that publishes results: the stop does the requests
	 * [FUTURE-7] */
	if (atomic_load_explicit(&futures->poller->stopping,
				 memory_order_acquire))
		return;
	rt_future_run_poller(futures);
}

void rt_future_ask_mt(struct rt_future *slot, uint32_t asked)
{
	struct rt_futures *futures = slot->of;

	/* acq_rel [FUTURE-6]: pairs with the exchange in future_take_asked() */
	if (atomic_fetch_or_explicit(&slot->asked, (uint8_t)asked,
				     memory_order_acq_rel) != 0)
		return; /* the slot is on the stack already */
	future_push(futures, slot);
	/* acq_rel [FUTURE-6]: pairs with the exchange in rt_future_message():
	 * either a message on its way will see the slot, or this thread sends
	 * the message */
	if (!atomic_exchange_explicit(&futures->msg_sent, true,
				      memory_order_acq_rel))
		rt_inbox_push_mt(&futures->poller->inbox, &futures->msg);
	/* pairs with the fence in rt_future_finish_all(): either that function
	 * finds the slot, or this thread finds that the poller has ended
	 * [FUTURE-7] */
	rt_fence_dekker();
	if (__builtin_expect(rt_context_is_stopped(futures->rt), 0))
		future_run_ended(futures);
}

void rt_future_finish_all(struct rpma_rt *rt)
{
	struct rt_futures *futures;

	/* pairs with the fence in rt_future_ask_mt() [FUTURE-7] */
	rt_fence_dekker();
	/* no connection is made any more, so the list does not change */
	for (futures = rt->futures; futures != NULL;
	     futures = futures->all_next)
		future_run_ended(futures);
}

/* ----------------------------------------------------------------- life --- */

static uint32_t future_count_out(const struct rt_futures *futures)
{
	uint32_t out = 0;
	uint32_t i;

	for (i = 0; i < futures->room; i++)
		out += !rt_future_is_free_state(
			rt_future_state(&futures->slots[i]));
	return out;
}

static bool future_is_all_free(const struct rt_futures *futures)
{
	uint32_t i;

	for (i = 0; i < futures->room; i++) {
		if (!rt_future_is_free_state(
			    rt_future_state(&futures->slots[i])))
			return false;
	}
	return true;
}

_Static_assert(RT_CFG_FUTURES + 1 <= 1 << (RT_FUTURE_SIZES - 1),
	       "a ring for each size that is asked for");

/* Returns the exponent of the power of two that `count` slots need. */
static int future_size_of(uint32_t count)
{
	return count == 1 ? 0 : 32 - __builtin_clz(count - 1);
}

/* Takes the block behind `before` out of the ring. */
static struct rt_futures *future_unlink_next(struct rt_futures **ring,
					     struct rt_futures *before)
{
	struct rt_futures *futures = before->idle_next;

	before->idle_next = futures->idle_next;
	if (futures == before)
		*ring = NULL;
	else if (futures == *ring)
		*ring = before;
	return futures;
}

/* Takes a block whose slots are all free out of the ring. Such blocks are
 * mostly at the beginning; every other block in the ring has a future that the
 * program has not dropped. */
static struct rt_futures *future_find_idle(struct rt_futures **ring)
{
	struct rt_futures *before = *ring;

	if (before == NULL)
		return NULL;
	do {
		if (future_is_all_free(before->idle_next))
			return future_unlink_next(ring, before);
		before = before->idle_next;
	} while (before != *ring);
	return NULL;
}

static void future_link_idle(struct rt_futures **ring,
			     struct rt_futures *futures)
{
	struct rt_futures *last = *ring;

	futures->idle_next = last != NULL ? last->idle_next : futures;
	if (last != NULL)
		last->idle_next = futures;
	if (last == NULL || !future_is_all_free(futures))
		*ring = futures;
}

static void future_free_block(struct rt_futures *futures)
{
	free(futures->then);
	free(futures->taken);
	free(futures->waited);
	free(futures->slots);
	free(futures);
}

/* Returns zeroed memory that shares no cache line with other memory; NULL: no
 * memory. Other blocks belong to other CPUs. */
static void *future_alloc_apart(size_t size)
{
	size_t whole = (size + RT_APART - 1) / RT_APART * RT_APART;
	void *memory = aligned_alloc(RT_APART, whole);

	return memory != NULL ? memset(memory, 0, whole) : NULL;
}

static struct rt_futures *future_make(struct rt_poller *poller, uint32_t room)
{
	struct rt_futures *futures = future_alloc_apart(sizeof(*futures));
	size_t size = room * sizeof(*futures->slots);
	uint32_t i;

	if (futures == NULL)
		return NULL;
	futures->then = calloc(room, sizeof(*futures->then));
	futures->waited = calloc(room, sizeof(*futures->waited));
	futures->taken =
		future_alloc_apart((room + RT_FUTURE_GROUP - 1) /
				   RT_FUTURE_GROUP * sizeof(*futures->taken));
	futures->slots = future_alloc_apart(size);
	/* a slot's address is part of a wr_id */
	if (futures->then == NULL || futures->waited == NULL ||
	    futures->taken == NULL || futures->slots == NULL ||
	    !rt_wr_is_context((uintptr_t)futures->slots + size)) {
		future_free_block(futures);
		return NULL;
	}
	for (i = 0; i < room; i++) {
		futures->slots[i].of = futures;
		rt_future_poison(&futures->slots[i]);
	}
	futures->rt = poller->rt;
	futures->poller = poller;
	futures->room = room;
	futures->msg.fn = rt_future_message;
	futures->all_next = poller->rt->futures;
	poller->rt->futures = futures;
	return futures;
}

struct rt_futures *rt_future_block_take(struct rt_poller *poller,
					const struct rt_future_kind *kind,
					struct rt_side *side, uint32_t count)
{
	int size = future_size_of(count);
	struct rt_futures *futures =
		future_find_idle(&poller->idle_futures[size]);

	if (futures == NULL)
		futures = future_make(poller, (uint32_t)1 << size);
	if (futures == NULL)
		return NULL;
	futures->count = count;
	futures->pollers = UINT64_C(1) << poller->index;
	/* relaxed: no poster has the block yet */
	atomic_store_explicit(&futures->cursor, 0, memory_order_relaxed);
	futures->side = side;
	futures->kind = kind;
	futures->source = NULL;
	futures->events = NULL;
	memset(futures->awaited, 0, sizeof(futures->awaited));
	return futures;
}

void rt_future_block_return(struct rt_futures *futures)
{
	if (futures != NULL)
		future_link_idle(
			&futures->poller
				 ->idle_futures[future_size_of(futures->room)],
			futures);
}

uint32_t rt_future_held(const struct rpma_rt *rt)
{
	const struct rt_futures *futures;
	uint32_t held = 0;

	for (futures = rt->futures; futures != NULL;
	     futures = futures->all_next)
		held += future_count_out(futures);
	return held;
}

void rt_future_free_all(struct rpma_rt *rt)
{
	struct rt_futures *futures;

	while ((futures = rt->futures) != NULL) {
		rt->futures = futures->all_next;
		future_free_block(futures);
	}
}

/* --------------------------------------------------------------- source --- */

/*
 * Sources of futures: made, asked, ended, dropped. The list of a source is in
 * poller/source.c.
 */

/* Returns the slot that the owner drops: the slot that was taken first. */
static struct rt_future *source_keeper_of(const struct rt_futures *futures)
{
	return &futures->slots[0];
}

/* Makes a source, with a node for each item that can be listed and for the last
 * item of each slot: at most cfg->messages items are listed or in posted
 * receives, not counting items that were put back. */
static struct rt_future_source *source_make(const struct rt_source_cfg *cfg)
{
	size_t nodes = cfg->messages > 0 ? cfg->messages + cfg->futures : 0;
	struct rt_future_source *source =
		calloc(1, sizeof(*source) + nodes * sizeof(*source->nodes) +
				  (cfg->futures + 1) * sizeof(*source->held));

	if (source == NULL)
		return NULL;
	source->last = &source->first;
	source->taken = cfg->taken;
	source->fetch = cfg->fetch;
	source->arg = cfg->owner;
	source->has_nodes = nodes > 0;
	source->held = (struct rt_source_node **)(source->nodes + nodes);
	while (nodes-- > 0) {
		source->nodes[nodes].next = source->free;
		source->free = &source->nodes[nodes];
	}
	return source;
}

struct rt_futures *rt_source_new(const struct rt_source_cfg *cfg)
{
	struct rt_future_source *source = source_make(cfg);
	struct rt_futures *futures;

	if (source == NULL)
		return NULL;
	futures = rt_future_block_take(cfg->poller, cfg->kind, NULL,
				       cfg->futures + 1);
	if (futures == NULL) {
		free(source);
		return NULL;
	}
	source->futures = futures;
	futures->source = source;
	rt_source_take(futures, RT_FUTURE_KEEPER, cfg->owner);
	return futures;
}

void rt_source_undo(struct rt_futures *futures)
{
	if (futures == NULL)
		return;
	free(futures->source);
	futures->source = NULL;
	rt_future_free_holder(source_keeper_of(futures));
	rt_future_block_return(futures);
}

void rt_source_drop_mt(struct rt_futures *futures)
{
	struct rt_future *keeper;

	if (futures == NULL)
		return;
	keeper = source_keeper_of(futures);
	/* relaxed: written by the owner only; even: the keeper was dropped
	 * before */
	if (atomic_load_explicit(&keeper->generation, memory_order_relaxed) %
		    2 ==
	    0)
		return;
	rt_future_end_generation(keeper);
	rt_future_ask_mt(keeper, RT_FUTURE_DROP);
}

void rt_source_wake_mt(struct rt_futures *futures)
{
	rt_future_ask_mt(source_keeper_of(futures), RT_FUTURE_WATCH);
}

void rt_source_end_poller(struct rt_futures *futures,
			  const struct rpma_rt_completion *end)
{
	futures->source->taken = NULL;
	futures->source->fetch = NULL;
	rt_future_run_poller(futures);
	rt_source_set_end_poller(futures, 0, end);
	rt_deliver_asked(futures->poller, futures, 0);
}

struct rt_future *rt_source_take(struct rt_futures *futures, uint8_t event,
				 const void *owner)
{
	struct rt_future *slot = rt_future_take(futures, (uintptr_t)owner);

	if (slot == NULL)
		return NULL;
	slot->tag = event;
	/* no item yet */
	slot->result = (struct rpma_rt_completion){
		.context = (uintptr_t)owner,
		.kind = RPMA_RT_COMPLETION,
		.status = IBV_WC_GENERAL_ERR,
		.opcode = (uint8_t)(futures->kind->opcode + event),
	};
	return slot;
}

int rt_source_next(struct rt_futures *futures, struct rpma_rt_future *future)
{
	struct rt_future *slot;

	/* so that two threads do not take the same slot */
	pthread_mutex_lock(&futures->rt->ask_lock);
	slot = rt_source_take(futures, 0, futures->source->arg);
	pthread_mutex_unlock(&futures->rt->ask_lock);
	if (slot == NULL)
		return RPMA_RT_E_BUSY;
	rt_future_name(future, slot, rt_future_here());
	rt_future_ask_mt(slot, RT_FUTURE_WATCH);
	return 0;
}
