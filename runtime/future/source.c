/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * source.c -- sources of futures: made, asked, ended, dropped. The list of a
 * source is in poller/source.c.
 */

#include "future/future.h"

#include <stdlib.h>

#include "base/context.h"
#include "base/runtime.h"
#include "poller/poller.h"
#include "poller/source.h"

/* Returns the slot that the owner drops: the first slot that was taken. */
static struct rt_future *keeper_of(const struct rt_futures *futures)
{
	return &futures->slots[0];
}

/* Makes a node for each item that is listed or that a slot got last: no more
 * than cfg->messages are listed or in receives, but for items put back. */
static struct rt_future_source *make(const struct rt_source_cfg *cfg)
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
	struct rt_future_source *source = make(cfg);
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
	rt_future_free_holder(keeper_of(futures));
	rt_future_block_return(futures);
}

void rt_source_drop_mt(struct rt_futures *futures)
{
	struct rt_future *keeper;

	if (futures == NULL)
		return;
	keeper = keeper_of(futures);
	/* relaxed: the owner's; even: it was dropped before */
	if (atomic_load_explicit(&keeper->generation, memory_order_relaxed) %
		    2 ==
	    0)
		return;
	rt_future_end_generation(keeper);
	rt_future_ask_mt(keeper, RT_FUTURE_DROP);
}

void rt_source_wake_mt(struct rt_futures *futures)
{
	rt_future_ask_mt(keeper_of(futures), RT_FUTURE_WATCH);
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

	/* of two threads one takes a slot */
	pthread_mutex_lock(&futures->rt->ask_lock);
	slot = rt_source_take(futures, 0, futures->source->arg);
	pthread_mutex_unlock(&futures->rt->ask_lock);
	if (slot == NULL)
		return RPMA_RT_E_BUSY;
	rt_future_name(future, slot);
	rt_future_ask_mt(slot, RT_FUTURE_WATCH);
	return 0;
}
