/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * life.c -- the life of a pool: the memory, the number in this process, the
 * users, futures of the next slot, and the end. Made and ended by the calling
 * thread. doc/protocols/pool.md.
 */

#include "pool/pool.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cancel.h"
#include "base/cfg.h"
#include "base/context.h"
#include "base/log.h"
#include "base/runtime.h"
#include "base/wait.h"
#include "future/future.h"
#include "poller/poller.h"
#include "poller/source.h"
#include "pool/feed.h"

/* ---------------------------------------------------------------- waits --- */

/*
 * Futures of the next free slot: a source that the runtime's first poller
 * serves. A thread that gives back a slot for which a future waits asks the
 * poller to look. doc/protocols/pool.md.
 */

static struct rt_poller *pool_home_of(const struct rpma_rt *rt)
{
	return &rt->pollers[0];
}

/* Makes the lease of a free slot the next item. On the poller. */
static bool pool_fetch(void *owner, struct rpma_rt_completion *item)
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

/* Makes the source of futures of slots. Returns 0 or RPMA_E_NOMEM. */
static int rt_pool_make_waits(struct rpma_rt_pool *pool, uint32_t futures)
{
	struct rpma_rt *rt = pool->rt;
	const struct rt_source_cfg cfg = {
		.kind = &rt_source_slots,
		.poller = pool_home_of(rt),
		.futures = futures,
		.fetch = pool_fetch,
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

/* Drops the source and gives the source's block back. waits NULL: does
 * nothing. */
static void rt_pool_drop_waits(struct rpma_rt_pool *pool)
{
	rt_source_drop_mt(pool->waits);
	pthread_mutex_lock(&pool->rt->lock);
	rt_future_block_return(pool->waits);
	pthread_mutex_unlock(&pool->rt->lock);
}

static int pool_end_on_poller(void *arg)
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

/* no pool is made or deleted any more, so no other thread uses the list */
void rt_pool_end_all(struct rpma_rt *rt)
{
	struct cds_list_head *link;

	cds_list_for_each(link, &rt->listed_pools)
		rt_poller_call(pool_home_of(rt), pool_end_on_poller,
			       RT_FROM(struct rpma_rt_pool, listed, link));
}

/* ----------------------------------------------------------------- life --- */

#define PAGE 4096

static _Atomic uint32_t last_name;

/* --------------------------------------------------------------- making --- */

static void pool_free(struct rpma_rt_pool *pool)
{
	pthread_cond_destroy(&pool->left);
	free(pool->feeders);
	free(pool->leases);
	free(pool->next);
	free(pool->memory);
	free(pool);
}

static void pool_set_name(struct rpma_rt_pool *pool, const char *name)
{
	/* relaxed: only the uniqueness of the number matters */
	uint32_t number = 1 + atomic_fetch_add_explicit(&last_name, 1,
							memory_order_relaxed);

	if (name != NULL)
		snprintf(pool->name, sizeof(pool->name), "%s", name);
	else
		snprintf(pool->name, sizeof(pool->name), "pool %u", number);
}

static int pool_alloc(struct rpma_rt *rt, const struct rpma_rt_pool_cfg *cfg,
		      struct rpma_rt_pool **pool_ptr)
{
	struct rpma_rt_pool *pool;
	size_t size;
	uint32_t i;

	pool = aligned_alloc(RT_APART, sizeof(*pool));
	if (pool == NULL)
		return RPMA_E_NOMEM;
	memset(pool, 0, sizeof(*pool));
	rt_wait_cond_init(&pool->left);
	pool->rt = rt;
	pool->peer = cfg->peer;
	pool->count = cfg->count;
	pool->receives = cfg->count - cfg->sends;
	pool->slot_size = cfg->slot_size;
	/* whole lines: a line is written by the holder of a single slot */
	pool->stride = ((uint64_t)cfg->slot_size + RT_CACHE_LINE - 1) /
		       RT_CACHE_LINE * RT_CACHE_LINE;
	size = (pool->stride * pool->count + PAGE - 1) / PAGE * PAGE;
	pool->memory = aligned_alloc(PAGE, size);
	pool->leases = calloc(pool->count, sizeof(*pool->leases));
	pool->next = calloc(pool->count, sizeof(*pool->next));
	pool->feeders = calloc(rt->cfg.pollers, sizeof(*pool->feeders));
	if (pool->memory == NULL || pool->leases == NULL ||
	    pool->next == NULL || pool->feeders == NULL) {
		pool_free(pool);
		return RPMA_E_NOMEM;
	}
	/* peers must not see the former content of the memory */
	memset(pool->memory, 0, size);
	rt_pool_list_init(&pool->head, pool->next, 0, pool->receives);
	rt_pool_list_init(&pool->head_of_sends, pool->next, pool->receives,
			  pool->count);
	pool_set_name(pool, cfg->name);
	for (i = 0; i < rt->cfg.pollers; i++)
		rt_feed_init_feeder(&pool->feeders[i], pool, &rt->pollers[i]);
	*pool_ptr = pool;
	return 0;
}

static int pool_take_number(struct rpma_rt_pool *pool)
{
	struct rpma_rt_pool *none;
	uint32_t i;

	for (i = 0; i < RT_POOL_POOLS; i++) {
		none = NULL;
		/* release: a thread reads the entry only after a completion of
		 * the pool, which comes later; relaxed: the entry belongs to
		 * another pool */
		if (!atomic_compare_exchange_strong_explicit(
			    &rt_pool_table[i], &none, pool,
			    memory_order_release, memory_order_relaxed))
			continue;
		pool->number = i;
		return 0;
	}
	return RT_REFUSE(RPMA_E_NOMEM,
			 "no pool is made: this process has %u already",
			 RT_POOL_POOLS);
}

static void pool_return_number(struct rpma_rt_pool *pool)
{
	/* release: pairs with the exchange in pool_take_number() of the next
	 * pool in this entry: this thread's use of the pool is over */
	atomic_store_explicit(&rt_pool_table[pool->number], NULL,
			      memory_order_release);
}

static int pool_make(struct rpma_rt *rt, const struct rpma_rt_pool_cfg *cfg,
		     struct rpma_rt_pool **pool_ptr)
{
	static const char what[] = "no pool is made";
	struct rpma_rt_pool *pool;
	int ret = pool_alloc(rt, cfg, &pool);

	if (ret)
		return RT_REFUSED(ret, what);
	ret = rpma_mr_reg(cfg->peer, pool->memory, pool->stride * pool->count,
			  (int)cfg->usage | RPMA_MR_USAGE_SEND |
				  RPMA_MR_USAGE_RECV,
			  &pool->mr);
	if (ret == 0)
		ret = RT_REFUSED(rt_pool_make_waits(pool, cfg->futures), what);
	if (ret == 0)
		ret = pool_take_number(pool);
	if (ret) {
		rt_pool_drop_waits(pool);
		rpma_mr_dereg(&pool->mr);
		pool_free(pool);
		return ret;
	}
	/* relaxed: a count, which orders no other data */
	atomic_fetch_add_explicit(&rt->handles, 1, memory_order_relaxed);
	rt_context_list(rt, &rt->listed_pools, &pool->listed);
	*pool_ptr = pool;
	return 0;
}

int rpma_rt_pool_new(struct rpma_rt *rt, const struct rpma_rt_pool_cfg *cfg,
		     struct rpma_rt_pool **pool_ptr)
{
	RT_NOT_CANCELLED;
	struct rpma_rt_pool_cfg checked;
	int ret = RT_REFUSE_NULL(rt, cfg, pool_ptr);

	if (ret == 0)
		ret = rt_cfg_read_pool(cfg, &checked);
	if (ret == 0)
		ret = RT_REFUSE_WAIT(rt);
	if (ret)
		return ret;
	ret = rt_context_ref(rt);
	if (ret)
		return RT_REFUSED(ret, "no pool is made");
	ret = pool_make(rt, &checked, pool_ptr);
	rt_context_unref(rt);
	return ret;
}

/* ---------------------------------------------------------------- users --- */

int rt_pool_check_of(const struct rpma_rt_pool *pool, const struct rpma_rt *rt,
		     const struct rpma_peer *peer, const char *field)
{
	const char *wrong = NULL;

	if (pool == NULL)
		return 0;
	if (pool->rt != rt)
		wrong = "runtime";
	else if (pool->peer != peer)
		wrong = "peer";
	if (wrong == NULL)
		return 0;
	RT_LOG_ERROR("%s has another %s: make a pool for each", field, wrong);
	return RPMA_E_INVAL;
}

void rt_pool_ref(struct rpma_rt_pool *pool)
{
	if (pool != NULL)
		pool->users++;
}

void rt_pool_use(struct rpma_rt_pool *pool, uint32_t receives)
{
	if (pool != NULL)
		/* relaxed: changed under the lock; see
		 * pool_has_receives_to_spare() */
		atomic_fetch_add_explicit(&pool->fills, receives,
					  memory_order_relaxed);
}

void rt_pool_disuse(struct rpma_rt_pool *pool, uint32_t receives)
{
	if (pool == NULL)
		return;
	/* seq_cst, both [POOL-4]: pairs with rt_pool_take_or_await(): either
	 * this thread sees AWAITED, or the poller sees that `fills` is 0 */
	if (atomic_fetch_sub_explicit(&pool->fills, receives,
				      memory_order_seq_cst) == receives &&
	    (atomic_load_explicit(&pool->head_of_sends, memory_order_seq_cst) &
	     RT_POOL_AWAITED))
		rt_source_wake_mt(pool->waits);
}

struct rt_pool_words rt_pool_short_words(uint32_t receives, uint32_t fills)
{
	struct rt_pool_words words;

	snprintf(words.text, sizeof(words.text),
		 "has %u slots for receives, and the receive queues that are "
		 "filled from the pool want %u receives: later queues get "
		 "fewer, at last none, and their peers wait. Make "
		 "rpma_rt_pool_cfg.count larger, or rq_size (of an SRQ, "
		 "srq_size) smaller",
		 receives, fills);
	return words;
}

void rt_pool_log_short(struct rpma_rt_pool *pool)
{
	uint32_t fills;

	if (pool == NULL)
		return;
	/* relaxed, both: a number and a mark of the log, which order nothing */
	fills = atomic_load_explicit(&pool->fills, memory_order_relaxed);
	if (fills <= pool->receives ||
	    atomic_exchange_explicit(&pool->is_short_logged, true,
				     memory_order_relaxed))
		return;
	RT_LOG_ERROR("pool \"%s\" %s", pool->name,
		     rt_pool_short_words(pool->receives, fills).text);
}

void rt_pool_unref(struct rpma_rt_pool *pool)
{
	if (pool == NULL)
		return;
	pool->users--;
	pthread_cond_broadcast(&pool->left);
}

void rt_pool_unref_announced(struct rpma_rt_pool *pool)
{
	if (pool == NULL)
		return;
	/* relaxed: changed under the lock */
	atomic_fetch_sub_explicit(&pool->leaving, 1, memory_order_relaxed);
	rt_pool_unref(pool);
}

/* --------------------------------------------------------------- ending --- */

/* Waits for users whose CLOSED was written, because such users are about to go.
 * Returns the number of remaining users. */
static uint32_t pool_await_users(struct rpma_rt_pool *pool)
{
	struct rt_wait wait = {0};
	uint32_t users;

	pthread_mutex_lock(&pool->rt->lock);
	/* relaxed: a caller that has seen CLOSED sees the earlier stores */
	while (pool->users > 0 &&
	       pool->users == atomic_load_explicit(&pool->leaving,
						   memory_order_relaxed))
		rt_wait_step(&wait, &pool->left, &pool->rt->lock);
	users = pool->users;
	pthread_mutex_unlock(&pool->rt->lock);
	return users;
}

static int pool_do_nothing(void *arg)
{
	(void)arg;
	return 0;
}

/* Waits for each poller, for the poller of the futures of slots last. Then the
 * messages that were in the inboxes have been run (of feeders; of dropped
 * futures and handles, whose leases go back), and no poller is inside a give
 * that began before. Such a give may have sent a feeder's message to a poller
 * that had answered already. */
static void pool_run_pollers(const struct rpma_rt *rt)
{
	struct rt_call calls[RPMA_RT_MAX_POLLERS];
	uint32_t i;

	for (i = 1; i < rt->cfg.pollers; i++)
		rt_poller_call_send(&rt->pollers[i], &calls[i], pool_do_nothing,
				    NULL);
	for (i = 1; i < rt->cfg.pollers; i++)
		rt_poller_call_wait(&rt->pollers[i], &calls[i]);
	rt_poller_call(&rt->pollers[0], pool_do_nothing, NULL);
}

/* Refuses to delete a pool in use. has_pollers: the pollers of the runtime
 * run. */
static int pool_refuse_used(struct rpma_rt_pool *pool, bool has_pollers)
{
	uint32_t users = pool_await_users(pool);
	uint32_t before = 0;
	uint32_t out = 0;

	/* looks again if the last lease came back meanwhile: a poller may still
	 * be inside the give, and a future may get the slot */
	while (users == 0) {
		before = rt_pool_out(pool, pool->count);
		if (has_pollers)
			pool_run_pollers(pool->rt);
		out = rt_pool_out(pool, pool->count);
		if (out > 0)
			break;
		if (before == 0)
			return 0;
	}
	/* relaxed: statistic, orders nothing */
	atomic_store_explicit(&pool->delete_refused, true,
			      memory_order_relaxed);
	if (users > 0)
		return RT_REFUSE(RPMA_RT_E_BUSY,
				 "pool \"%s\" is not deleted: %u connections "
				 "whose CLOSED has not come, listeners or SRQs "
				 "use it",
				 pool->name, users);
	return RT_REFUSE(RPMA_RT_E_BUSY,
			 "pool \"%s\" is not deleted: %u leases are not given "
			 "back (messages in queues count)",
			 pool->name, out);
}

/* Keeps the memory of a deleted pool: a message of the pool may be in the inbox
 * of a poller that has stopped. */
static void pool_keep_ended(struct rpma_rt_pool *pool)
{
	pthread_mutex_lock(&pool->rt->lock);
	pool->next_ended = pool->rt->ended_pools;
	pool->rt->ended_pools = pool;
	pthread_mutex_unlock(&pool->rt->lock);
}

void rt_pool_free_ended(struct rpma_rt *rt)
{
	struct rpma_rt_pool *pool;

	while ((pool = rt->ended_pools) != NULL) {
		rt->ended_pools = pool->next_ended;
		pool_free(pool);
	}
}

/* Frees the pool. has_pollers: the pollers run, and no poller is inside a
 * give. */
static int pool_finish(struct rpma_rt_pool *pool, bool has_pollers)
{
	int ret;

	rt_pool_drop_waits(pool);
	/* a feeder's message may have been sent during the calls before; and
	 * until the keeper's drop has been run, a request to a future looks
	 * into the pool */
	if (has_pollers)
		pool_run_pollers(pool->rt);
	rt_context_unlist(pool->rt, &pool->listed);
	pool_return_number(pool);
	ret = rpma_mr_dereg(&pool->mr);
	if (has_pollers)
		pool_free(pool);
	else
		pool_keep_ended(pool);
	return ret;
}

int rpma_rt_pool_delete(struct rpma_rt_pool **pool_ptr)
{
	RT_NOT_CANCELLED;
	struct rpma_rt *rt;
	bool has_pollers;
	bool is_used;
	int ret = RT_REFUSE_NULL(pool_ptr);

	if (ret || *pool_ptr == NULL)
		return ret;
	rt = (*pool_ptr)->rt;
	ret = RT_REFUSE_WAIT(rt);
	if (ret)
		return ret;
	has_pollers = rt_context_ref(rt) == 0;
	if (!has_pollers)
		rt_context_wait_stopped(rt);
	ret = pool_refuse_used(*pool_ptr, has_pollers);
	is_used = ret != 0;
	if (!is_used)
		ret = pool_finish(*pool_ptr, has_pollers);
	if (has_pollers)
		rt_context_unref(rt);
	if (is_used)
		return ret;
	*pool_ptr = NULL;
	/* release: pairs with the acquire in rpma_rt_delete() */
	atomic_fetch_sub_explicit(&rt->handles, 1, memory_order_release);
	return ret;
}
