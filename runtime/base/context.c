/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * context.c -- see context.h. Any thread; the lock is the runtime's.
 */

#include "base/context.h"

#include <assert.h>
#include <stddef.h>

#include "base/log.h"
#include "base/runtime.h"
#include "base/self.h"
#include "base/wait.h"

_Atomic unsigned rt_context_forks;

static_assert(offsetof(struct rpma_rt, fork_generation) == 0,
	      "where rt_context_check() looks");

int rt_context_refuse_forked(const struct rt_log_place *place)
{
	return rt_refuse(place, RPMA_RT_E_FORKED,
			 "the runtime is from before fork(): make one in this "
			 "process");
}

int rt_context_check_thread(const struct rt_log_place *place)
{
	if (!rt_self_is_poller() && !rt_self_is_events())
		return 0;
	return rt_refuse(place, RPMA_RT_E_THREAD,
			 "the call may wait, and was made inside a function "
			 "that the runtime called: make it on another thread");
}

int rt_context_pollers(const struct rpma_rt *rt)
{
	return (int)rt->cfg.pollers;
}

bool rt_context_is_stopped(const struct rpma_rt *rt)
{
	/* acquire: pairs with the release of rt->stopped in
	 * runtime_finish_queues(), runtime.c */
	return atomic_load_explicit(&rt->stopped, memory_order_acquire);
}

bool rt_context_is_timed(const struct rpma_rt *rt)
{
	return rt->cfg.timing != 0;
}

struct rt_owned *rt_context_owned(const struct rpma_rt *rt)
{
	return rt->owned;
}

struct rt_owned *rt_context_lending(const struct rpma_rt *rt)
{
	return rt->lending;
}

uint64_t rt_context_spin_ns(const struct rpma_rt *rt)
{
	return (uint64_t)rt->cfg.spin_us * 1000;
}

uint64_t rt_context_sharded(const struct rpma_rt *rt)
{
	/* relaxed: set before the threads of the shards are started; a wait
	 * that finds an older value looks again before long */
	return atomic_load_explicit(&rt->sharded, memory_order_relaxed);
}

void rt_context_drop_item(struct rpma_rt *rt,
			  const struct rpma_rt_completion *item)
{
	rt->drop_item(item);
}

int rt_context_ref(struct rpma_rt *rt)
{
	int ret = RPMA_RT_E_CLOSED;

	pthread_mutex_lock(&rt->lock);
	if (!rt->stopping) {
		rt->in_use++;
		ret = 0;
	}
	pthread_mutex_unlock(&rt->lock);
	return ret;
}

void rt_context_unref(struct rpma_rt *rt)
{
	pthread_mutex_lock(&rt->lock);
	if (--rt->in_use == 0)
		pthread_cond_broadcast(&rt->quiet);
	pthread_mutex_unlock(&rt->lock);
}

void rt_context_wait_stopped(struct rpma_rt *rt)
{
	struct rt_wait wait = {0};

	pthread_mutex_lock(&rt->lock);
	while (!rt_context_is_stopped(rt))
		rt_wait_step(&wait, &rt->quiet, &rt->lock);
	pthread_mutex_unlock(&rt->lock);
}

void rt_context_list(struct rpma_rt *rt, struct cds_list_head *list,
		     struct cds_list_head *link)
{
	pthread_mutex_lock(&rt->directory);
	cds_list_add_tail(link, list);
	pthread_mutex_unlock(&rt->directory);
}

void rt_context_unlist(struct rpma_rt *rt, struct cds_list_head *link)
{
	pthread_mutex_lock(&rt->directory);
	cds_list_del(link);
	pthread_mutex_unlock(&rt->directory);
}
