/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * timer.c -- timers of a shard: a heap by time, of structs of the program. On
 * the shard's thread.
 */

#include "shard/shard.h"

#include <stddef.h>

#include "base/cancel.h"
#include "base/clock.h"
#include "base/stats.h"

#define NS_PER_US 1000u

/* the inside of struct rpma_rt_timer */
struct __attribute__((may_alias)) timer {
	rpma_rt_timer_fn *fn;
	void *arg;
	/* the shard on which the timer is set; NULL: not set */
	struct rpma_rt_shard *shard;
	struct rt_heap_node node;
};
_Static_assert(sizeof(struct timer) == sizeof(struct rpma_rt_timer),
	       "one is the other");
_Static_assert(offsetof(struct timer, shard) ==
		       offsetof(struct rpma_rt_timer, opaque),
	       "behind the program's fields");

static void timer_unset(struct timer *timer)
{
	rt_heap_remove(&timer->shard->timers, &timer->node);
	rt_stat_add(&timer->shard->counters.timers_set, (uint64_t)-1);
	timer->shard = NULL;
}

/* Checks a call on a timer that is set, or was never set. */
static int timer_check(const struct rt_log_place *place,
		       const struct rpma_rt_shard *shard,
		       const struct timer *timer)
{
	int ret = rt_shard_refuse_thread(place, shard);

	if (ret == 0 && timer->shard != NULL && timer->shard != shard)
		return rt_refuse(place, RPMA_E_INVAL,
				 "the timer is set on another shard than %u, "
				 "or was not zeroed",
				 shard->index);
	return ret;
}

/* Returns the time when a delay is over; a time beyond the range of the clock
 * becomes the last time. */
static uint64_t timer_due_ns(uint64_t delay_us)
{
	uint64_t now = rt_now_ns();

	if (delay_us > (UINT64_MAX - 1 - now) / NS_PER_US)
		return UINT64_MAX - 1;
	return now + delay_us * NS_PER_US;
}

int rpma_rt_timer_start(struct rpma_rt_shard *shard,
			struct rpma_rt_timer *timer, uint64_t delay_us)
{
	struct timer *inside = (struct timer *)(void *)timer;
	int ret = RT_REFUSE_NULL(shard, timer);

	if (ret == 0)
		ret = timer_check(RT_LOG_HERE, shard, inside);
	if (ret)
		return ret;
	if (inside->fn == NULL)
		return RT_REFUSE(RPMA_E_INVAL, "rpma_rt_timer.fn is missing");
	if (inside->shard != NULL)
		timer_unset(inside);
	inside->shard = shard;
	rt_heap_insert(&shard->timers, &inside->node, timer_due_ns(delay_us));
	rt_stat_add(&shard->counters.timers_set, 1);
	return 0;
}

int rpma_rt_timer_cancel(struct rpma_rt_shard *shard,
			 struct rpma_rt_timer *timer)
{
	struct timer *inside = (struct timer *)(void *)timer;
	int ret = RT_REFUSE_NULL(shard, timer);

	if (ret == 0)
		ret = timer_check(RT_LOG_HERE, shard, inside);
	if (ret || inside->shard == NULL)
		return ret;
	timer_unset(inside);
	return 1;
}

void rt_shard_timer_end(struct rpma_rt_shard *shard)
{
	while (shard->timers.first != NULL)
		timer_unset(RT_FROM(struct timer, node, shard->timers.first));
}

int rt_shard_timer_call(struct rpma_rt_shard *shard)
{
	struct timer *timer;
	uint64_t now = rt_now_ns();
	int called = 0;

	while (called < RT_SHARD_BATCH && rt_shard_timer_next(shard) <= now) {
		RT_NOT_CANCELLED;
		timer = RT_FROM(struct timer, node, shard->timers.first);
		timer_unset(timer);
		/* the function may set the timer again, or free it */
		timer->fn(shard, (struct rpma_rt_timer *)(void *)timer);
		called++;
	}
	if (called > 0)
		rt_stat_add(&shard->counters.timers, (uint64_t)called);
	return called;
}
