/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * manual.c -- manual mode: the application's thread is the poller for the
 * length of a call; which thread owns a poller; and the getters of a poller in
 * any mode.
 */

#include <limits.h>

#include "base/cancel.h"
#include "base/clock.h"
#include "base/context.h"
#include "base/lang.h"
#include "base/owner.h"
#include "base/log.h"
#include "base/runtime.h"
#include "base/stats.h"
#include "poller/poller.h"
#include "poller/cq_pool.h"
#include "poller/round.h"

/* Checks the index of a poller. */
static int manual_check_index(const struct rt_log_place *place,
			      const struct rpma_rt *rt, uint32_t poller)
{
	if (poller < rt->cfg.pollers)
		return 0;
	return rt_refuse(place, RPMA_E_INVAL, "poller is %u, it may be 0..%u",
			 poller, rt->cfg.pollers - 1);
}

/* Checks that the runtime is in manual mode. */
static int manual_check_mode(const struct rt_log_place *place,
			     const struct rpma_rt *rt)
{
	if (rt->cfg.mode == RPMA_RT_MODE_MANUAL)
		return 0;
	return rt_refuse(place, RPMA_E_NOSUPP,
			 "the poller has a thread: rpma_rt_cfg.mode is not "
			 "RPMA_RT_MODE_MANUAL");
}

/* Finds the poller named by a call, to be run by hand. */
static int manual_find(const struct rt_log_place *place, struct rpma_rt *rt,
		       uint32_t poller, struct rt_poller **poller_ptr)
{
	const void *const pointers[] = {rt};
	int ret = rt_refuse_null(place, "rt", pointers, sizeof(pointers));

	if (ret == 0)
		ret = manual_check_index(place, rt, poller);
	if (ret == 0)
		ret = rt_context_check_wait(place, rt);
	if (ret == 0)
		ret = manual_check_mode(place, rt);
	if (ret)
		return ret;
	if (rt_context_is_stopped(rt))
		return rt_refuse(
			place, RPMA_RT_E_CLOSED,
			"the runtime was stopped: poller %u has nothing "
			"to do any more",
			poller);
	*poller_ptr = &rt->pollers[poller];
	return 0;
}

/* Logs that the poller belongs to another thread. */
static int manual_refuse_other(const struct rt_log_place *place,
			       struct rt_poller *p)
{
	char name[RT_THREAD_NAME] = "?";
	pid_t tid = 0;

	(void)rt_owner_is_other(&p->owned, name, &tid);
	return rt_refuse(place, RPMA_RT_E_BUSY,
			 "poller %d belongs to thread %s (%d): no other thread "
			 "runs, arms, attaches or releases the poller before "
			 "that thread calls rpma_rt_poller_release(), or ends",
			 p->index, name, (int)tid);
}

/* Finds the poller and enters. rt_poller_leave() has to follow. */
static int manual_enter(const struct rt_log_place *place, struct rpma_rt *rt,
			uint32_t poller, struct rt_poller **poller_ptr)
{
	int ret = manual_find(place, rt, poller, poller_ptr);

	if (ret)
		return ret;
	ret = rt_poller_enter(*poller_ptr);
	if (ret == RPMA_RT_E_BUSY)
		return manual_refuse_other(place, *poller_ptr);
	return rt_refuse_finish(place, ret, "the poller is not run");
}

/* Enters a poller of the calling thread. Returns false if manual_enter() has to
 * find the reason. */
static inline bool manual_enter_own(struct rpma_rt *rt, uint32_t poller,
				    struct rt_poller **poller_ptr)
{
	if (rt == NULL || poller >= rt->cfg.pollers || rt_context_check(rt) ||
	    rt_self_is_poller())
		return false;
	*poller_ptr = &rt->pollers[poller];
	/* the caller owns the poller, which implies every other check of
	 * manual_find(): manual mode, not the event thread, and no stop,
	 * because a stop closes the poller */
	return rt_poller_enter_own(*poller_ptr);
}

__attribute__((noinline)) void rt_poller_wake(struct rt_poller *p)
{
	rt_poller_set_tick_ms(p, rt_now_ms()); /* the poller may have slept */
	rt_channel_wake(p);
}

/* Runs a poller that another thread armed, and on which that thread may sleep:
 * the poller stays armed, and the descriptor is readable if the round did
 * something. */
static int manual_run_armed(struct rt_poller *p, int budget)
{
	int handled;

	rt_poller_set_tick_ms(p, rt_now_ms());
	handled = rt_round_run(p, budget);
	if (handled > 0)
		rt_bell_ring(&p->bell);
	rt_poller_set_tick_asleep(p);
	return handled;
}

/* Runs a round of a poller that is not attached to the caller. Not inlined: a
 * loop that attached its poller comes here once. */
__attribute__((noinline)) static int
manual_run_first(const struct rt_log_place *place, struct rpma_rt *rt,
		 uint32_t poller, uint32_t budget)
{
	struct rt_poller *p;
	int handled;
	int ret;

	if (budget < 1)
		return rt_refuse(place, RPMA_E_INVAL,
				 "budget is 0: give how many completions a "
				 "round may take, 1 or more");
	ret = manual_enter(place, rt, poller, &p);
	if (ret)
		return ret;
	(void)rt_self_tid(); /* makes the tid known from here on */
	if (budget > INT_MAX)
		budget = INT_MAX;
	if (p->armed && p->armed_by != p->runner)
		handled = manual_run_armed(p, (int)budget);
	else
		handled = rt_round_run_entered(p, (int)budget);
	rt_poller_leave(p);
	return handled;
}

int rpma_rt_poller_run(struct rpma_rt *rt, uint32_t poller, uint32_t budget)
{
	struct rt_poller *p;
	int handled;

	if (unlikely(budget - 1 >= INT_MAX ||
		     !manual_enter_own(rt, poller, &p)))
		return manual_run_first(RT_LOG_HERE, rt, poller, budget);
	handled = rt_round_run_entered(p, (int)budget);
	rt_poller_leave_own(p);
	return handled;
}

int rpma_rt_poller_arm(struct rpma_rt *rt, uint32_t poller)
{
	RT_NOT_CANCELLED;
	struct rt_poller *p;
	bool sleep;
	int ret = manual_enter(RT_LOG_HERE, rt, poller, &p);

	if (ret)
		return ret;
	if (p->armed)
		rt_channel_wake(p);
	p->armed_by = p->runner;
	sleep = rt_arm_poller(p);
	rt_poller_leave(p);
	return sleep ? 0 : 1;
}

int rpma_rt_poller_attach(struct rpma_rt *rt, uint32_t poller)
{
	RT_NOT_CANCELLED;
	struct rt_poller *p;
	int ret = manual_enter(RT_LOG_HERE, rt, poller, &p);

	if (ret)
		return ret;
	(void)rt_self_tid(); /* as in manual_run_first() */
	ret = rt_owner_attach(&p->owned);
	/* the sleeping thread learns from the descriptor that another thread
	 * runs the poller from now on */
	if (ret == 0 && p->armed && p->armed_by != p->runner)
		rt_bell_ring(&p->bell);
	rt_poller_leave(p);
	return RT_REFUSED(ret, "the poller is not attached: the end of the "
			       "thread could not be noticed");
}

int rpma_rt_poller_release(struct rpma_rt *rt, uint32_t poller)
{
	RT_NOT_CANCELLED;
	struct rt_poller *p;
	int ret = manual_enter(RT_LOG_HERE, rt, poller, &p);

	if (ret)
		return ret;
	rt_left_out_ring_poller(&p->left_out);
	/* the caller's posts cannot do so any more */
	rt_schedule_run_deferred(p);
	p->runner = 0;
	rt_owner_release(&p->owned);
	rt_poller_leave(p);
	return 0;
}

int rpma_rt_poller_get_fd(const struct rpma_rt *rt, uint32_t poller, int *fd)
{
	int ret = RT_REFUSE_NULL(rt, fd);

	if (ret == 0)
		ret = manual_check_index(RT_LOG_HERE, rt, poller);
	if (ret == 0)
		ret = RT_REFUSE_FORKED(rt);
	if (ret == 0)
		ret = manual_check_mode(RT_LOG_HERE, rt);
	if (ret)
		return ret;
	*fd = rt->pollers[poller].epfd;
	return 0;
}

int rpma_rt_poller_get_stats(const struct rpma_rt *rt, uint32_t poller,
			     struct rpma_rt_poller_stats *stats, size_t size)
{
	struct rpma_rt_poller_stats known;
	const struct rt_poller *p;
	uint64_t alone;
	int ret;

	ret = RT_REFUSE_NULL(rt, stats);
	if (ret == 0)
		ret = manual_check_index(RT_LOG_HERE, rt, poller);
	if (ret == 0)
		ret = RT_REFUSE_FORKED(rt);
	if (ret)
		return ret;
	p = &rt->pollers[poller];
	/* relaxed, all: separate counters, which order nothing */
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
	READ(last_wqe_missing);
	READ(spinning_ns);
	READ(sleeping_ns);
#undef READ
	/* relaxed: a counter, which orders nothing */
	alone = atomic_load_explicit(&p->stats.alone, memory_order_relaxed);
	known.completions += alone;
	known.delivered += alone;
	known.batches += alone;
	/* each poll counts as empty, alone or full */
	known.polls = known.empty_polls + alone +
		      atomic_load_explicit(&p->stats.full_polls,
					   memory_order_relaxed);
	rt_stats_give(stats, size, &known, sizeof(known));
	return 0;
}
