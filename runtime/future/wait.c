/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * wait.c -- waiting for futures: for one, or for k of n. A thread that waits
 * spins, then sleeps in a place of the lot that each slot it waits for points
 * to; the poller rings it when it has published one of those. In manual mode it
 * runs its own pollers, and those of the futures that belong to no thread. Any
 * thread that may wait. doc/protocols/future.md.
 */

#include "future/future.h"

#include "base/clock.h"
#include "base/context.h"
#include "base/order.h"
#include "base/refuse.h"
#include "base/wait.h"
#include "poller/poller.h"

#define NS_PER_MS    1000000
#define SPIN_NS	     (RPMA_RT_DEFAULT_QUEUE_SPIN_US * 1000)
#define SPINS_A_LOOK 64

/* what a call waits for */
struct wait {
	const struct rpma_rt_future *futures;
	int count;
	int wanted;	/* so many successes; 0: that all are complete */
	int64_t end_ns; /* -1: without end */
	int succeeded;	/* of the last look */
	int complete;
	bool is_of_others; /* one has a poller that another thread runs */
};

static struct rt_future *slot_of(const struct wait *wait, int index)
{
	return (struct rt_future *)(uintptr_t)wait->futures[index].opaque[0];
}

/* Is it decided? */
static bool look(struct wait *wait)
{
	const struct rt_future *slot;
	int i;

	wait->succeeded = 0;
	wait->complete = 0;
	for (i = 0; i < wait->count; i++) {
		slot = slot_of(wait, i);
		if (!rt_future_is_ready(slot))
			continue;
		wait->complete++;
		wait->succeeded += rt_future_has_succeeded(slot);
	}
	if (wait->wanted == 0)
		return wait->complete == wait->count;
	return wait->succeeded >= wait->wanted ||
	       wait->count - wait->complete + wait->succeeded < wait->wanted;
}

/* ns; -1: without end */
static int64_t left_ns(const struct wait *wait)
{
	int64_t left;

	if (wait->end_ns < 0)
		return -1;
	left = wait->end_ns - (int64_t)rt_now_ns();
	return left > 0 ? left : 0;
}

static bool spin(struct wait *wait)
{
	int64_t end = (int64_t)rt_now_ns() + SPIN_NS;
	int i;

	if (wait->end_ns >= 0 && wait->end_ns < end)
		end = wait->end_ns;
	do {
		for (i = 0; i < SPINS_A_LOOK; i++) {
			if (look(wait))
				return true;
			rt_cpu_relax();
		}
	} while ((int64_t)rt_now_ns() < end);
	return false;
}

/* ------------------------------------------------------------- sleeping --- */

static void point(const struct wait *wait, int index, struct rt_bell *bell)
{
	struct rt_future *slot = slot_of(wait, index);

	/* release: pairs with the acquire in wake(), for a bell that is new */
	atomic_store_explicit(&slot->waiter, bell, memory_order_release);
	/* relaxed: the fence of rt_bell_arm() orders it [FUTURE-5] */
	if (bell != NULL)
		atomic_fetch_add_explicit(&slot->of->sleepers, 1,
					  memory_order_relaxed);
	else
		atomic_fetch_sub_explicit(&slot->of->sleepers, 1,
					  memory_order_relaxed);
}

/* Sleeps until one of them is complete, or for so long, or for no reason. */
static void sleep_at(struct wait *wait, struct rt_bell *bell, int64_t ns)
{
	int i;

	for (i = 0; i < wait->count; i++)
		point(wait, i, bell);
	/* its fence pairs with the batch's [FUTURE-5]: either the poller sees
	 * where this thread sleeps, or this look sees what it published */
	rt_bell_arm(bell, RT_BELL_ON_FUTEX);
	if (!look(wait))
		rt_bell_sleep_armed(bell, ns);
	rt_bell_take_back(bell, RT_BELL_ON_FUTEX);
	for (i = 0; i < wait->count; i++)
		point(wait, i, NULL);
}

/* Runs what nobody else does: the caller's pollers, and those of the futures
 * that belong to no thread. Are there any? */
static bool run_pollers(struct wait *wait)
{
	struct rt_poller *last = NULL;
	struct rt_poller *poller;
	bool is_any = rt_wait_has_pollers();
	int i;

	if (is_any)
		rt_wait_run();
	for (i = 0; i < wait->count; i++) {
		poller = slot_of(wait, i)->of->poller;
		if (poller->threaded || poller == last)
			continue;
		last = poller;
		is_any |= rt_owner_visit(&poller->owned);
		wait->is_of_others = true;
	}
	return is_any;
}

/* Until it is decided, or the time has passed. */
static int wait_asleep(struct wait *wait)
{
	struct rt_bell *bell = rt_future_lot_take();
	int64_t left, most;
	bool is_running;

	if (bell == NULL)
		return RT_REFUSED(RPMA_E_NOMEM, "the future is not waited for");
	while (!look(wait) && (left = left_ns(wait)) != 0) {
		is_running = run_pollers(wait);
		most = is_running ? RT_WAIT_NS : RT_WAIT_LOOK_NS;
		if ((is_running || wait->is_of_others) &&
		    (left < 0 || left > most))
			left = most;
		if (!is_running || !look(wait))
			sleep_at(wait, bell, left);
	}
	rt_future_lot_return(bell);
	return 0;
}

static int wait_for(struct wait *wait, int timeout_ms)
{
	int ret = 0;

	if (look(wait) || timeout_ms == 0) {
		if (wait->complete < wait->count && run_pollers(wait))
			look(wait);
		return 0;
	}
	wait->end_ns = timeout_ms < 0 ? -1
				      : (int64_t)rt_now_ns() +
						(int64_t)timeout_ms * NS_PER_MS;
	if (run_pollers(wait) || !spin(wait))
		ret = wait_asleep(wait);
	look(wait);
	return ret;
}

/* ------------------------------------------------------------ the calls --- */

/* Each of them, and the thread. */
static int check(const struct rt_log_place *place,
		 const struct rpma_rt_future *futures, int count,
		 int timeout_ms)
{
	struct rt_future *slot;
	int ret;
	int i;

	if (timeout_ms < -1)
		return rt_refuse(place, RPMA_E_INVAL,
				 "timeout_ms is %d: give milliseconds, or -1 "
				 "to wait without an end",
				 timeout_ms);
	for (i = 0; i < count; i++) {
		ret = rt_future_find(place, &futures[i], &slot);
		if (ret)
			return ret;
	}
	return rt_context_check_thread(place);
}

int rpma_rt_future_wait(const struct rpma_rt_future *future,
			struct rpma_rt_completion *cmpl, int timeout_ms)
{
	struct wait wait = {.futures = future, .count = 1, .end_ns = -1};
	int ret = RT_REFUSE_NULL(future, cmpl);

	if (ret == 0)
		ret = check(RT_LOG_HERE, future, 1, timeout_ms);
	if (ret == 0)
		ret = wait_for(&wait, timeout_ms);
	return ret ? ret : rpma_rt_future_poll(future, cmpl);
}

int rpma_rt_future_wait_some(const struct rpma_rt_future *futures, int count,
			     int wanted, int timeout_ms)
{
	struct wait wait = {
		.futures = futures,
		.count = count,
		.wanted = wanted,
		.end_ns = -1,
	};
	int ret = RT_REFUSE_NULL(futures);

	if (ret == 0 && (wanted < 1 || wanted > count))
		ret = RT_REFUSE(RPMA_E_INVAL,
				"wanted is %d: give 1 to count, which is %d",
				wanted, count);
	if (ret == 0)
		ret = check(RT_LOG_HERE, futures, count, timeout_ms);
	if (ret == 0)
		ret = wait_for(&wait, timeout_ms);
	if (ret)
		return ret;
	if (wait.succeeded >= wanted)
		return wait.succeeded;
	/* no refusal of the call: what was waited for has come */
	return count - wait.complete + wait.succeeded < wanted
		       ? RPMA_RT_E_FAILED
		       : 0;
}
