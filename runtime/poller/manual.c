/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * manual.c -- manual mode: the application's thread is the poller for the
 * length of a call; and what can be read of a poller in any mode.
 */

#include "poller/manual.h"

#include "base/context.h"
#include "base/runtime.h"
#include "poller/poller.h"
#include "queue/queue.h"

void rt_manual_assist(struct rpma_rt *rt)
{
	int i;

	for (i = 0; i < rt->cfg.pollers; i++) {
		if (!rt_poller_try_enter(&rt->pollers[i], RT_RUNNER_ASSIST))
			continue;
		rt_round_run(&rt->pollers[i], RT_BATCH);
		rt_poller_leave(&rt->pollers[i]);
	}
}

/* The poller to run by hand, entered. */
static int enter(struct rpma_rt *rt, int poller, struct rt_poller **poller_ptr)
{
	int ret;

	if (rt == NULL || poller < 0 || poller >= rt->cfg.pollers)
		return RPMA_E_INVAL;
	ret = rt_context_check_wait(rt);
	if (ret)
		return ret;
	if (rt->cfg.mode != RPMA_RT_MODE_MANUAL)
		return RPMA_E_NOSUPP;
	if (rt_context_is_stopped(rt))
		return RPMA_RT_E_CLOSED;
	if (!rt_poller_try_enter(&rt->pollers[poller], RT_RUNNER_OWNER))
		return RPMA_E_AGAIN;
	*poller_ptr = &rt->pollers[poller];
	return 0;
}

int rpma_rt_run_once(struct rpma_rt *rt, int poller, int budget, int *done)
{
	struct rt_poller *p;
	int handled;
	int ret;

	if (budget < 1 || done == NULL)
		return RPMA_E_INVAL;
	ret = enter(rt, poller, &p);
	if (ret)
		return ret;
	if (p->armed)
		rt_channel_wake(p);
	handled = rt_round_run(p, budget);
	rt_poller_leave(p);
	*done = handled;
	return 0;
}

int rpma_rt_arm(struct rpma_rt *rt, int poller)
{
	struct rt_poller *p;
	bool sleep;
	int ret = enter(rt, poller, &p);

	if (ret)
		return ret;
	if (p->armed)
		rt_channel_wake(p);
	sleep = rt_channel_arm(p);
	rt_poller_leave(p);
	return sleep ? 0 : RPMA_E_AGAIN;
}

int rpma_rt_get_fd(const struct rpma_rt *rt, int poller, int *fd)
{
	int ret;

	if (rt == NULL || fd == NULL || poller < 0 || poller >= rt->cfg.pollers)
		return RPMA_E_INVAL;
	ret = rt_context_check(rt);
	if (ret)
		return ret;
	if (rt->cfg.mode != RPMA_RT_MODE_MANUAL)
		return RPMA_E_NOSUPP;
	*fd = rt->pollers[poller].epfd;
	return 0;
}

int rpma_rt_get_poller_stats(const struct rpma_rt *rt, int poller,
			     struct rpma_rt_poller_stats *stats)
{
	const struct rt_poller *p;
	int ret;

	if (rt == NULL || stats == NULL || poller < 0 ||
	    poller >= rt->cfg.pollers)
		return RPMA_E_INVAL;
	ret = rt_context_check(rt);
	if (ret)
		return ret;
	p = &rt->pollers[poller];
	/* relaxed: counters, each for itself */
#define READ(name) \
	stats->name = atomic_load_explicit(&p->stats.name, memory_order_relaxed)
	READ(polls);
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
	return 0;
}
