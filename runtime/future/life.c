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

#include "base/context.h"
#include "base/runtime.h"
#include "base/wr.h"
#include "poller/poller.h"

/* of blocks that might do, so many are looked at */
#define LOOKED_AT 16

static uint32_t count_out(const struct rt_futures *futures)
{
	uint32_t out = 0;
	uint32_t i;

	for (i = 0; i < futures->count; i++)
		out += rt_future_state(&futures->slots[i]) != RT_FUTURE_FREE;
	return out;
}

/* One that has enough, all free. */
static struct rt_futures *
find_idle(struct rpma_rt *rt, const struct rt_poller *poller, uint32_t count)
{
	struct rt_futures **link = &rt->idle_futures;
	struct rt_futures *futures;
	int i;

	for (i = 0; i < LOOKED_AT && *link != NULL; i++) {
		futures = *link;
		if (futures->poller == poller && futures->count >= count &&
		    futures->count <= 2 * count && count_out(futures) == 0) {
			*link = futures->idle_next;
			return futures;
		}
		link = &futures->idle_next;
	}
	return NULL;
}

static struct rt_futures *make(struct rt_poller *poller, uint32_t count)
{
	struct rt_futures *futures = calloc(1, sizeof(*futures));
	size_t size = count * sizeof(*futures->slots);
	uint32_t i;

	if (futures == NULL)
		return NULL;
	futures->then = calloc(count, sizeof(*futures->then));
	futures->slots = aligned_alloc(RT_CACHE_LINE, size);
	/* a slot's address is part of a wr_id */
	if (futures->then == NULL || futures->slots == NULL ||
	    !rt_wr_is_context((uintptr_t)futures->slots + size)) {
		free(futures->then);
		free(futures->slots);
		free(futures);
		return NULL;
	}
	memset(futures->slots, 0, size);
	for (i = 0; i < count; i++)
		futures->slots[i].of = futures;
	futures->rt = poller->rt;
	futures->poller = poller;
	futures->count = count;
	futures->msg.fn = rt_future_message;
	futures->all_next = poller->rt->futures;
	poller->rt->futures = futures;
	return futures;
}

struct rt_futures *rt_future_block_take(struct rt_poller *poller,
					struct rt_side *side, uint32_t count)
{
	struct rt_futures *futures = find_idle(poller->rt, poller, count);

	if (futures == NULL)
		futures = make(poller, count);
	if (futures == NULL)
		return NULL;
	futures->side = side;
	futures->is_recv = side->which == RPMA_RT_RECV_SIDE;
	return futures;
}

void rt_future_block_return(struct rt_futures *futures)
{
	struct rpma_rt *rt;

	if (futures == NULL)
		return;
	rt = futures->rt;
	futures->idle_next = rt->idle_futures;
	rt->idle_futures = futures;
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
		free(futures->then);
		free(futures->slots);
		free(futures);
	}
}
