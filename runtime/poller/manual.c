/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * manual.c -- manual mode: the application's thread is the poller for the
 * length of a call; and the getters of a poller in any mode.
 */

#include <limits.h>

#include "base/context.h"
#include "base/log.h"
#include "base/owner.h"
#include "base/runtime.h"
#include "base/stats.h"
#include "base/wait.h"
#include "poller/poller.h"
#include "poller/arm.h"
#include "poller/channel.h"
#include "poller/round.h"

#define unlikely(x) __builtin_expect(!!(x), 0)

/* The poller that a call names, to be run by hand. */
static int find(struct rpma_rt *rt, uint32_t poller,
		struct rt_poller **poller_ptr)
{
	int ret;

	if (rt == NULL || poller >= rt->cfg.pollers)
		return RPMA_E_INVAL;
	ret = rt_context_check_wait(rt);
	if (ret)
		return ret;
	if (rt->cfg.mode != RPMA_RT_MODE_MANUAL)
		return RPMA_E_NOSUPP;
	if (rt_context_is_stopped(rt))
		return RPMA_RT_E_CLOSED;
	*poller_ptr = &rt->pollers[poller];
	return 0;
}

/* Likewise, entered: the poller belongs to the caller from here on. */
static int enter(struct rpma_rt *rt, uint32_t poller,
		 struct rt_poller **poller_ptr)
{
	int ret = find(rt, poller, poller_ptr);

	if (ret)
		return ret;
	/* a waiting thread runs a round of it, as it belonged to no thread */
	while ((ret = rt_poller_enter(*poller_ptr)) == RPMA_E_AGAIN)
		rt_wait_nap();
	return ret;
}

/* Likewise if the poller belongs to the caller already; false: enter() finds
 * the reason. */
static inline bool enter_own(struct rpma_rt *rt, uint32_t poller,
			     struct rt_poller **poller_ptr)
{
	if (rt == NULL || poller >= rt->cfg.pollers || rt_context_check(rt) ||
	    rt_self_is_poller())
		return false;
	*poller_ptr = &rt->pollers[poller];
	/* that the caller owns it says all the rest that find() asks: manual
	 * mode, not the event thread; and a stop closes it */
	return rt_poller_enter_own(*poller_ptr);
}

static int run_entered(struct rt_poller *p, uint32_t budget)
{
	int handled;

	if (unlikely(p->armed))
		rt_channel_wake(p);
	handled = rt_round_run(p, (int)budget);
	rt_poller_leave(p);
	return handled;
}

/* A function of its own: a loop comes here once. */
__attribute__((noinline)) static int run_first(struct rpma_rt *rt,
					       uint32_t poller, uint32_t budget)
{
	struct rt_poller *p;
	int ret;

	if (budget < 1)
		return RPMA_E_INVAL;
	ret = enter(rt, poller, &p);
	if (ret)
		return ret;
	return run_entered(p, budget > INT_MAX ? INT_MAX : budget);
}

int rpma_rt_poller_run(struct rpma_rt *rt, uint32_t poller, uint32_t budget)
{
	struct rt_poller *p;

	if (unlikely(budget - 1 >= INT_MAX || !enter_own(rt, poller, &p)))
		return run_first(rt, poller, budget);
	return run_entered(p, budget);
}

int rpma_rt_poller_arm(struct rpma_rt *rt, uint32_t poller)
{
	struct rt_poller *p;
	bool sleep;
	int ret = enter(rt, poller, &p);

	if (ret)
		return ret;
	if (p->armed)
		rt_channel_wake(p);
	sleep = rt_arm_poller(p);
	rt_poller_leave(p);
	return sleep ? 0 : 1;
}

int rpma_rt_poller_release(struct rpma_rt *rt, uint32_t poller)
{
	char name[RT_THREAD_NAME];
	struct rt_poller *p;
	pid_t tid;
	int ret = find(rt, poller, &p);

	if (ret)
		return ret;
	if (rt_owner_is_other(&p->owned, name, &tid)) {
		RT_LOG_ERROR("poller %u belongs to thread %s (%d): only that "
			     "one releases it",
			     poller, name, (int)tid);
		return RPMA_E_INVAL;
	}
	if (!rt_owner_is_self(&p->owned))
		return 0;
	ret = rt_poller_enter(p);
	if (ret)
		return ret;
	rt_left_out_ring_poller(&p->left_out);
	p->runner = 0;
	rt_owner_release(&p->owned);
	rt_poller_leave(p);
	return 0;
}

int rpma_rt_poller_get_fd(const struct rpma_rt *rt, uint32_t poller, int *fd)
{
	int ret;

	if (rt == NULL || fd == NULL || poller >= rt->cfg.pollers)
		return RPMA_E_INVAL;
	ret = rt_context_check(rt);
	if (ret)
		return ret;
	if (rt->cfg.mode != RPMA_RT_MODE_MANUAL)
		return RPMA_E_NOSUPP;
	*fd = rt->pollers[poller].epfd;
	return 0;
}

int rpma_rt_poller_get_stats(const struct rpma_rt *rt, uint32_t poller,
			     struct rpma_rt_poller_stats *stats, size_t size)
{
	struct rpma_rt_poller_stats known;
	const struct rt_poller *p;
	int ret;

	if (rt == NULL || stats == NULL || poller >= rt->cfg.pollers)
		return RPMA_E_INVAL;
	ret = rt_context_check(rt);
	if (ret)
		return ret;
	p = &rt->pollers[poller];
	/* relaxed: counters, each for itself */
#define READ(name) \
	known.name = atomic_load_explicit(&p->stats.name, memory_order_relaxed)
	READ(empty_polls);
	READ(completions);
	READ(delivered);
	READ(batches);
	READ(doorbells);
	READ(sleeps);
	READ(events);
	READ(acks);
	READ(spilled);
	READ(lost);
	READ(stale);
	READ(lost_events_recovered);
	READ(keepalives);
	READ(spinning_ns);
	READ(sleeping_ns);
#undef READ
	/* each poll counts in one of the two */
	known.polls =
		known.empty_polls + atomic_load_explicit(&p->stats.full_polls,
							 memory_order_relaxed);
	rt_stats_give(stats, size, &known, sizeof(known));
	return 0;
}
