/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * wait.c -- waiting for futures: for a single future, or for k of n. A waiting
 * thread spins, then sleeps in a place of the lot, to which each awaited slot
 * points. The poller pushes a slot to the place when the slot's result is
 * published, so a wake-up looks at complete slots only. In manual mode the
 * waiting thread runs its own pollers, and the pollers of the futures that
 * belong to no thread. Any thread that may wait. doc/protocols/future.md.
 */

#include "future/future.h"

#include <stdatomic.h>
#include <stdlib.h>

#include "base/cancel.h"
#include "base/clock.h"
#include "base/context.h"
#include "base/log.h"
#include "base/order.h"
#include "base/self.h"
#include "base/wait.h"
#include "poller/poller.h"

/* ------------------------------------------------------------------ lot --- */

/*
 * The lot: the places where threads wait for futures, each with a bell and a
 * list of complete slots. The process has as many places as threads ever waited
 * at the same time. A poller that has just pushed a slot may ring when the
 * thread has left, so places are never freed, and a thread that is rung for
 * nothing looks again. Any thread, without a lock that a fork could leave
 * behind.
 */

/* places where no thread sleeps */
static _Atomic(struct rt_future_place *) lot;

static void lot_put_back(struct rt_future_place *first,
			 struct rt_future_place *last)
{
	/* relaxed: the compare-and-swap decides */
	struct rt_future_place *head =
		atomic_load_explicit(&lot, memory_order_relaxed);

	do {
		last->next = head;
		/* release [LOT-1]: pairs with the acquire in
		 * rt_future_lot_take(): `next` of the places */
	} while (!atomic_compare_exchange_weak_explicit(&lot, &head, first,
							memory_order_release,
							memory_order_relaxed));
}

static struct rt_future_place *lot_make(void)
{
	struct rt_future_place *place =
		aligned_alloc(RT_CACHE_LINE, sizeof(*place));

	if (place == NULL)
		return NULL;
	rt_bell_init_futex(&place->bell);
	/* relaxed: slots that point to the place are released later */
	atomic_store_explicit(&place->pushed, NULL, memory_order_relaxed);
	place->next = NULL;
	return place;
}

struct rt_future_place *rt_future_lot_take(void)
{
	/* acquire [LOT-1]: pairs with the release in lot_put_back(). All places
	 * are taken at once, so no place can leave the list and come back
	 * meanwhile */
	struct rt_future_place *place =
		atomic_exchange_explicit(&lot, NULL, memory_order_acquire);
	struct rt_future_place *last;

	if (place == NULL)
		place = lot_make();
	if (place == NULL)
		return NULL;
	if (place->next != NULL) {
		for (last = place->next; last->next != NULL; last = last->next)
			;
		lot_put_back(place->next, last);
	}
	return place;
}

void rt_future_lot_return(struct rt_future_place *place)
{
	lot_put_back(place, place);
}

/* ----------------------------------------------------------------- wait --- */

#define NS_PER_MS    1000000
#define SPIN_NS	     (RPMA_RT_DEFAULT_QUEUE_SPIN_US * 1000)
#define SPINS_A_LOOK 64

/* up to so many futures a spinning thread looks at each future; beyond, at the
 * list of the place */
#define LOOKED_AT_EACH 8

/* a wait of a call */
struct wait {
	const struct rpma_rt_future *futures;
	int count;
	/* number of successes to wait for; 0: all futures have to be
	 * complete */
	int wanted;
	int64_t end_ns; /* -1: without end */
	int succeeded;	/* number of successes at the last look */
	int complete;
	/* slots that together name all pollers of manual mode on which results
	 * depend */
	struct rt_future *visited;
	/* NULL until the thread takes a place. Then the slots point to the
	 * place, and `lent` is the number of slots whose token this thread does
	 * not have [FUTURE-9] */
	struct rt_future_place *place;
	int lent;
};

static struct rt_future *future_wait_slot_of(const struct wait *wait, int index)
{
	return (struct rt_future *)(uintptr_t)wait->futures[index].opaque[0];
}

static bool future_wait_is_decided(const struct wait *wait)
{
	if (wait->wanted == 0)
		return wait->complete == wait->count;
	return wait->succeeded >= wait->wanted ||
	       wait->count - wait->complete + wait->succeeded < wait->wanted;
}

static void future_wait_count_ready(struct wait *wait,
				    const struct rt_future *slot,
				    uint32_t times)
{
	wait->complete += (int)times;
	if (rt_future_has_succeeded(slot))
		wait->succeeded += (int)times;
}

static void future_wait_look_at_each(struct wait *wait)
{
	const struct rt_future *slot;
	int i;

	wait->succeeded = 0;
	wait->complete = 0;
	for (i = 0; i < wait->count; i++) {
		slot = future_wait_slot_of(wait, i);
		if (rt_future_is_ready(slot))
			future_wait_count_ready(wait, slot, 1);
	}
}

/* ------------------------------------------------------------ the place --- */

/* Counts the slot if the slot is ready and was not counted before. */
static void future_wait_count_once(struct wait *wait,
				   const struct rt_future *slot)
{
	struct rt_future_waited *waited = rt_future_waited(slot);

	if (waited->times == 0 || !rt_future_is_ready(slot))
		return;
	future_wait_count_ready(wait, slot, waited->times);
	waited->times = 0;
}

/* Points the slot, whose token this thread has, to the place. The caller fences
 * before looking at the slot [FUTURE-5]. */
static void future_wait_point(struct wait *wait, struct rt_future *slot)
{
	wait->lent++;
	/* release [FUTURE-9]: pairs with the exchange in future_wake(),
	 * poller/future.c: the place is visible, and this thread does not touch
	 * the link any more */
	atomic_store_explicit(&slot->waiter, wait->place, memory_order_release);
}

/* Adds the call to the block's sleepers, or takes the call back. */
static void future_wait_add_sleeper(struct rt_futures *futures, bool is_added)
{
	/* relaxed: the fence of the caller orders the addition [FUTURE-5];
	 * taking back orders nothing */
	atomic_fetch_add_explicit(&futures->sleepers, is_added ? 1 : UINT32_MAX,
				  memory_order_relaxed);
}

/* Returns whether the future is the first of neighbours in the same block. */
static bool future_wait_is_first_of_block(const struct wait *wait, int index)
{
	return index == 0 || future_wait_slot_of(wait, index)->of !=
				     future_wait_slot_of(wait, index - 1)->of;
}

/* Takes a place, points all slots to the place, and counts the ready slots. */
static int future_wait_take_place(struct wait *wait)
{
	struct rt_future *slot = NULL;
	int i;

	wait->place = rt_future_lot_take();
	if (wait->place == NULL)
		return RT_REFUSED(RPMA_E_NOMEM, "the future is not waited for");
	wait->succeeded = 0;
	wait->complete = 0;
	for (i = 0; i < wait->count; i++) {
		slot = future_wait_slot_of(wait, i);
		if (future_wait_is_first_of_block(wait, i))
			future_wait_add_sleeper(slot->of, true);
		if (rt_future_waited(slot)->times++ == 0)
			future_wait_point(wait, slot);
	}
	/* pairs with the batch's fence [FUTURE-5]: either the poller sees where
	 * this thread waits, or this look sees what the poller published */
	rt_fence_dekker();
	for (i = 0; i < wait->count; i++)
		future_wait_count_once(wait, future_wait_slot_of(wait, i));
	return 0;
}

static bool future_wait_has_pushed(const struct wait *wait)
{
	/* relaxed: future_wait_take_pushed() acquires */
	return atomic_load_explicit(&wait->place->pushed,
				    memory_order_relaxed) != NULL;
}

/* Takes all pushed slots, and counts the ready slots. A slot that is not ready
 * was pushed too early, and points to the place again. */
static void future_wait_take_pushed(struct wait *wait)
{
	struct rt_future *slot = NULL;
	struct rt_future *next;

	if (!future_wait_has_pushed(wait))
		return;
	/* acquire [FUTURE-9]: pairs with the release of the push in
	 * future_wake(), poller/future.c: the links are visible */
	slot = atomic_exchange_explicit(&wait->place->pushed, NULL,
					memory_order_acquire);
	for (; slot != NULL; slot = next) {
		next = rt_future_waited(slot)->next;
		wait->lent--;
		future_wait_count_once(wait, slot);
		if (rt_future_waited(slot)->times == 0)
			continue;
		future_wait_point(wait, slot);
		/* pairs with the batch's fence, as in future_wait_take_place()
		 * [FUTURE-5] */
		rt_fence_dekker();
		future_wait_count_once(wait, slot);
	}
}

/* Sleeps until a slot is pushed, or for `ns`, or for no reason. */
static void future_wait_sleep_at_place(const struct wait *wait, int64_t ns)
{
	struct rt_bell *bell = &wait->place->bell;

	/* the fence of rt_bell_arm() pairs with the fence of rt_bell_ring() in
	 * future_wake() */
	rt_bell_arm(bell, RT_BELL_ON_FUTEX);
	if (!future_wait_has_pushed(wait))
		rt_bell_sleep_armed(bell, ns);
	rt_bell_take_back(bell, RT_BELL_ON_FUTEX);
}

/* Collects the tokens of all slots, then gives the place back. */
static void future_wait_leave_place(struct wait *wait)
{
	struct rt_future *slot = NULL;
	int i;

	for (i = 0; i < wait->count; i++) {
		slot = future_wait_slot_of(wait, i);
		future_wait_count_once(wait, slot);
		rt_future_waited(slot)->times = 0;
		/* relaxed, both [FUTURE-9]: either the poller or this thread
		 * gets the token; the poller's earlier writes came with the
		 * list */
		if (atomic_load_explicit(&slot->waiter, memory_order_relaxed) !=
			    NULL &&
		    atomic_exchange_explicit(&slot->waiter, NULL,
					     memory_order_relaxed) != NULL)
			wait->lent--;
		if (future_wait_is_first_of_block(wait, i))
			future_wait_add_sleeper(slot->of, false);
	}
	future_wait_take_pushed(wait);
	while (wait->lent > 0) { /* a poller is about to push */
		future_wait_sleep_at_place(wait, -1);
		future_wait_take_pushed(wait);
	}
	rt_future_lot_return(wait->place);
}

/* Leaves the place: the thread was cancelled during its sleep. */
static void future_wait_cancelled(void *arg)
{
	struct wait *wait = arg;

	rt_bell_take_back(&wait->place->bell, RT_BELL_ON_FUTEX);
	future_wait_leave_place(wait);
}

/* Sleeps as future_wait_sleep_at_place() does; the thread may be cancelled
 * during the sleep. */
static void future_wait_sleep_cancellable(struct wait *wait, int64_t ns)
{
	struct rt_bell *bell = &wait->place->bell;

	/* the fence pairs as in future_wait_sleep_at_place() */
	rt_bell_arm(bell, RT_BELL_ON_FUTEX);
	if (!future_wait_has_pushed(wait))
		rt_cancel_sleep_armed(bell, ns, future_wait_cancelled, wait);
	rt_bell_take_back(bell, RT_BELL_ON_FUTEX);
}

/* -------------------------------------------------------------- waiting --- */

/* Looks at the futures. Returns whether the wait is decided. */
static bool future_wait_look(struct wait *wait)
{
	if (wait->place == NULL)
		future_wait_look_at_each(wait);
	else
		future_wait_take_pushed(wait);
	return future_wait_is_decided(wait);
}

/* Returns the time until the wait ends, in ns; -1: without end. */
static int64_t future_wait_left_ns(const struct wait *wait)
{
	int64_t left;

	if (wait->end_ns < 0)
		return -1;
	left = wait->end_ns - (int64_t)rt_now_ns();
	return left > 0 ? left : 0;
}

/* Returns whether the results of both blocks depend on the same pollers. */
static bool future_wait_is_beside(const struct rt_futures *a,
				  const struct rt_futures *b)
{
	return a->rt == b->rt && a->pollers == b->pollers;
}

/* Lists slots that together name all pollers of manual mode on which results
 * depend. */
static void future_wait_find_visited(struct wait *wait)
{
	const struct rt_futures *last = NULL;
	const struct rt_futures *of;
	struct rt_future *seen;
	int i;

	for (i = 0; i < wait->count; i++) {
		of = future_wait_slot_of(wait, i)->of;
		if (of == last || rt_context_owned(of->rt) == NULL)
			continue;
		last = of;
		for (seen = wait->visited; seen != NULL;
		     seen = rt_future_waited(seen)->next_visited) {
			if (future_wait_is_beside(seen->of, of))
				break;
		}
		if (seen != NULL)
			continue;
		rt_future_waited(future_wait_slot_of(wait, i))->next_visited =
			wait->visited;
		wait->visited = future_wait_slot_of(wait, i);
	}
}

/* Returns the pollers on which the slot's result depends. Of pollers that
 * shards run, only the poller of the slot counts. */
static uint64_t future_wait_pollers_of(const struct rt_future *slot)
{
	uint64_t sharded = rt_context_sharded(slot->of->rt);

	if (sharded == 0)
		return slot->of->pollers;
	return (slot->of->pollers & ~sharded) |
	       UINT64_C(1) << slot->of->poller->index;
}

/* Returns the poller that completes the slot, or NULL. */
static struct rt_owned *future_wait_poller_of(const struct rt_future *slot)
{
	return slot->of->poller != NULL ? &slot->of->poller->owned : NULL;
}

/* Returns the slot of a result that the only poller of the thread brings, or
 * any slot; NULL: no result depends on a poller that a wait may have to run. */
static const struct rt_future *future_wait_own_slot(const struct wait *wait)
{
	const struct rt_future *slot = wait->visited;

	while (slot != NULL && !rt_owner_is_only(future_wait_poller_of(slot)))
		slot = rt_future_waited(slot)->next_visited;
	return slot != NULL ? slot : wait->visited;
}

/* Runs the caller's pollers, and the pollers without an owner on which results
 * depend. Returns whether there are any such pollers. */
static bool future_wait_run_pollers(const struct wait *wait)
{
	const struct rt_future *own = future_wait_own_slot(wait);
	const struct rt_future *slot;
	bool is_any;

	if (own == NULL)
		return rt_wait_run(NULL, NULL, 0);
	is_any = rt_wait_run(future_wait_poller_of(own),
			     rt_context_owned(own->of->rt),
			     future_wait_pollers_of(own));
	for (slot = wait->visited; slot != NULL;
	     slot = rt_future_waited(slot)->next_visited) {
		if (slot != own)
			is_any |= rt_wait_visit(rt_context_owned(slot->of->rt),
						future_wait_pollers_of(slot));
	}
	return is_any;
}

/* Looks until the wait is decided, SPIN_NS or the time is over, or other
 * threads want the CPU. is_running: runs pollers in between, as long as
 * rt_share_goes_on(). Returns whether the wait is decided. */
static bool future_wait_spin(struct wait *wait, bool is_running)
{
	uint64_t now = rt_now_ns();
	uint64_t over = wait->end_ns < 0 ? UINT64_MAX : (uint64_t)wait->end_ns;
	uint64_t end = now + SPIN_NS;
	uint64_t asked = now;
	int i;

	while (now < over &&
	       (is_running
			? rt_share_goes_on(now, end, RT_WAIT_NS, &asked)
			: now < end && rt_share_ask(&now) == RT_SHARE_ALONE)) {
		for (i = 0; i < SPINS_A_LOOK; i++) {
			if (future_wait_look(wait))
				return true;
			if (is_running)
				future_wait_run_pollers(wait);
			else
				rt_cpu_relax();
		}
		now = rt_now_ns();
	}
	return false;
}

/* Waits until the wait is decided, or the time is over. */
static void wait_asleep(struct wait *wait)
{
	int64_t left, most;
	bool is_running;

	while (!future_wait_look(wait) &&
	       (left = future_wait_left_ns(wait)) != 0) {
		is_running = future_wait_run_pollers(wait);
		most = is_running ? RT_WAIT_NS : RT_WAIT_LOOK_NS;
		if ((is_running || wait->visited != NULL) &&
		    (left < 0 || left > most))
			left = most;
		if (!is_running || !future_wait_look(wait))
			future_wait_sleep_cancellable(wait, left);
	}
}

static int wait_for(struct wait *wait, int timeout_ms)
{
	bool is_few = wait->count <= LOOKED_AT_EACH;
	bool is_running;
	int ret;

	if (future_wait_look(wait)) {
		if (wait->complete == wait->count)
			return 0;
		timeout_ms = 0;
	}
	future_wait_find_visited(wait);
	is_running = future_wait_run_pollers(wait);
	if (timeout_ms == 0) {
		if (is_running)
			future_wait_look(wait);
		return 0;
	}
	wait->end_ns = timeout_ms < 0 ? -1
				      : (int64_t)rt_now_ns() +
						(int64_t)timeout_ms * NS_PER_MS;
	if (is_few && future_wait_spin(wait, is_running))
		return 0;
	ret = future_wait_take_place(wait);
	if (ret)
		return ret;
	if (!is_few)
		future_wait_spin(wait, is_running);
	wait_asleep(wait);
	future_wait_leave_place(wait);
	return 0;
}

/* ------------------------------------------------------------ the calls --- */

/* Checks the arguments, each future, and whether the thread may wait. */
static int future_wait_check(const struct rt_log_place *place,
			     const struct rpma_rt_future *futures, int count,
			     int timeout_ms)
{
	struct rt_future *slot = NULL;
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

__attribute__((noinline)) static int
wait_for_one(const struct rpma_rt_future *future, int timeout_ms)
{
	struct wait wait = {.futures = future, .count = 1, .end_ns = -1};

	return wait_for(&wait, timeout_ms);
}

int rpma_rt_future_wait(const struct rpma_rt_future *future,
			struct rpma_rt_completion *cmpl, int timeout_ms)
{
	struct rt_future *slot = NULL;
	int ret = RT_REFUSE_NULL(future, cmpl);

	if (ret == 0)
		ret = future_wait_check(RT_LOG_HERE, future, 1, timeout_ms);
	if (ret)
		return ret;
	slot = rt_future_slot(future);
	if (!rt_future_is_ready(slot)) {
		ret = wait_for_one(future, timeout_ms);
		if (ret || !rt_future_is_ready(slot))
			return ret;
	}
	return rt_future_read(slot, cmpl);
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
		ret = future_wait_check(RT_LOG_HERE, futures, count,
					timeout_ms);
	if (ret == 0)
		ret = wait_for(&wait, timeout_ms);
	if (ret)
		return ret;
	if (wait.succeeded >= wanted)
		return wait.succeeded;
	/* no refusal of the call: the awaited results have come */
	return count - wait.complete + wait.succeeded < wanted
		       ? RPMA_RT_E_FAILED
		       : 0;
}
