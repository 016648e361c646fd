/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * waits.c -- futures of the next free slot: a source that the runtime's first
 * poller serves. Whoever gives back a slot that a future waits for asks the
 * poller to look. doc/protocols/pool.md.
 */

#include "pool/pool.h"

#include "base/runtime.h"
#include "future/future.h"
#include "poller/poller.h"
#include "poller/source.h"

static struct rt_poller *home_of(const struct rpma_rt *rt)
{
	return &rt->pollers[0];
}

/* The poller: makes the lease of a free slot the next item. */
static bool fetch(void *owner, struct rpma_rt_completion *item)
{
	struct rpma_rt_pool *pool = owner;
	uint64_t cookie;

	if (item == NULL)
		rt_pool_end_await(pool);
	if (item == NULL || !rt_pool_take_or_await(pool, &cookie))
		return false;
	*item = (struct rpma_rt_completion){
		.context = cookie,
		.kind = RPMA_RT_COMPLETION,
		.status = IBV_WC_SUCCESS,
		.opcode = IBV_WC_RECV,
		.byte_len = pool->slot_size,
		.flags = RPMA_RT_C_LEASE,
	};
	return true;
}

int rt_pool_make_waits(struct rpma_rt_pool *pool, uint32_t futures)
{
	struct rpma_rt *rt = pool->rt;
	const struct rt_source_cfg cfg = {
		.kind = &rt_source_slots,
		.poller = home_of(rt),
		.futures = futures,
		.fetch = fetch,
		.owner = pool,
	};

	pthread_mutex_lock(&rt->lock);
	pool->waits = rt_source_new(&cfg);
	pthread_mutex_unlock(&rt->lock);
	if (pool->waits == NULL)
		return RPMA_E_NOMEM;
	/* any poller may have the work request that holds the next slot */
	pool->waits->pollers = UINT64_MAX >> (64 - rt->cfg.pollers);
	return 0;
}

void rt_pool_drop_waits(struct rpma_rt_pool *pool)
{
	rt_source_drop_mt(pool->waits);
	pthread_mutex_lock(&pool->rt->lock);
	rt_future_block_return(pool->waits);
	pthread_mutex_unlock(&pool->rt->lock);
}

static int end_on_poller(void *arg)
{
	const struct rpma_rt_completion closed = {
		.kind = RPMA_RT_EVENT,
		.status = RPMA_RT_REASON_STOPPED,
		.opcode = RPMA_RT_EVENT_POOL_CLOSED,
	};
	struct rpma_rt_pool *pool = arg;

	rt_source_end_poller(pool->waits, &closed);
	rt_pool_end_await(pool);
	return 0;
}

/* No pool is made or deleted any more: the list is ours. */
void rt_pool_end_all(struct rpma_rt *rt)
{
	struct cds_list_head *link;

	cds_list_for_each(link, &rt->listed_pools)
		rt_poller_call(home_of(rt), end_on_poller,
			       RT_FROM(struct rpma_rt_pool, listed, link));
}
