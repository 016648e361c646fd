/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * life.c -- blocks of slots: made for a side of a connection, used again by
 * another of the same poller when all slots are free, freed with the runtime.
 * A future may outlive its connection, never its runtime.
 */

#include "future/future.h"

#include <stdlib.h>
#include <string.h>

#include "base/cfg.h"
#include "base/context.h"
#include "base/runtime.h"
#include "base/wr.h"
#include "poller/poller.h"

static uint32_t count_out(const struct rt_futures *futures)
{
	uint32_t out = 0;
	uint32_t i;

	for (i = 0; i < futures->room; i++)
		out += rt_future_state(&futures->slots[i]) != RT_FUTURE_FREE;
	return out;
}

static bool is_all_free(const struct rt_futures *futures)
{
	uint32_t i;

	for (i = 0; i < futures->room; i++) {
		if (rt_future_state(&futures->slots[i]) != RT_FUTURE_FREE)
			return false;
	}
	return true;
}

_Static_assert(RT_CFG_FUTURES + 1 <= 1 << (RT_FUTURE_SIZES - 1),
	       "a ring for each size that is asked for");

/* The power of two that count needs. */
static int size_of(uint32_t count)
{
	return count == 1 ? 0 : 32 - __builtin_clz(count - 1);
}

/* Out of the ring comes the one behind `before`. */
static struct rt_futures *unlink_next(struct rt_futures **ring,
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

/* One of them that is all free. Such ones are at the beginning; of the others
 * there are as many as have futures that the program has not dropped. */
static struct rt_futures *find_idle(struct rt_futures **ring)
{
	struct rt_futures *before = *ring;

	if (before == NULL)
		return NULL;
	do {
		if (is_all_free(before->idle_next))
			return unlink_next(ring, before);
		before = before->idle_next;
	} while (before != *ring);
	return NULL;
}

static void link_idle(struct rt_futures **ring, struct rt_futures *futures)
{
	struct rt_futures *last = *ring;

	futures->idle_next = last != NULL ? last->idle_next : futures;
	if (last != NULL)
		last->idle_next = futures;
	if (last == NULL || !is_all_free(futures))
		*ring = futures;
}

static void free_block(struct rt_futures *futures)
{
	free(futures->then);
	free(futures->waited);
	free(futures->slots);
	free(futures);
}

static struct rt_futures *make(struct rt_poller *poller, uint32_t room)
{
	struct rt_futures *futures = calloc(1, sizeof(*futures));
	size_t size = room * sizeof(*futures->slots);
	uint32_t i;

	if (futures == NULL)
		return NULL;
	futures->then = calloc(room, sizeof(*futures->then));
	futures->waited = calloc(room, sizeof(*futures->waited));
	futures->slots = aligned_alloc(RT_CACHE_LINE, size);
	/* a slot's address is part of a wr_id */
	if (futures->then == NULL || futures->waited == NULL ||
	    futures->slots == NULL ||
	    !rt_wr_is_context((uintptr_t)futures->slots + size)) {
		free_block(futures);
		return NULL;
	}
	memset(futures->slots, 0, size);
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
	int size = size_of(count);
	struct rt_futures *futures = find_idle(&poller->idle_futures[size]);

	if (futures == NULL)
		futures = make(poller, (uint32_t)1 << size);
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
		link_idle(
			&futures->poller->idle_futures[size_of(futures->room)],
			futures);
}

uint32_t rt_future_held(const struct rpma_rt *rt)
{
	const struct rt_futures *futures;
	uint32_t held = 0;

	for (futures = rt->futures; futures != NULL;
	     futures = futures->all_next)
		held += count_out(futures);
	return held;
}

void rt_future_free_all(struct rpma_rt *rt)
{
	struct rt_futures *futures;

	while ((futures = rt->futures) != NULL) {
		rt->futures = futures->all_next;
		free_block(futures);
	}
}
