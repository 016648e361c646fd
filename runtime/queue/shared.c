/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * shared.c -- a queue shared by several workers. A single worker at a time is
 * inside and is the consumer. A ring wakes one of the waiting workers, and a
 * worker that leaves items behind wakes another worker; workers that sleep on
 * the eventfd are all woken. Runs on the workers' threads. Words and proofs:
 * doc/protocols/shared-queue.md.
 */

#include "queue/take.h"

#include <sched.h>

#include "base/cancel.h"
#include "base/clock.h"
#include "base/self.h"
#include "queue/impl.h"
#include "queue/queue.h"

#define NS_PER_US    1000
#define SPINS_A_LOOK 64 /* looks between two reads of the clock */

/* ------------------------------------------------------------- entering --- */

static uint32_t shared_consumers_of(const struct rpma_rt_queue *queue)
{
	/* relaxed: the compare-and-swap that follows decides */
	return atomic_load_explicit(&queue->consumers, memory_order_relaxed);
}

/* Enters if no worker is inside. inside: added to the word on entry. */
static inline bool shared_try_enter(struct rpma_rt_queue *queue,
				    uint32_t inside)
{
	uint32_t old = shared_consumers_of(queue);

	while ((old & RT_CONSUMER_INSIDE) == 0) {
		/* acquire [SHARED-1]: pairs with the release in
		 * shared_try_leave(): the worker sees what earlier workers did
		 * and saw */
		if (atomic_compare_exchange_weak_explicit(
			    &queue->consumers, &old,
			    (old + inside) | RT_CONSUMER_INSIDE,
			    memory_order_acquire, memory_order_relaxed)) {
			rt_queue_go_in(queue);
			return true;
		}
	}
	return false;
}

/* Enters if no worker is inside, adding `inside` to the word. Otherwise adds
 * `outside` and the mark: the worker inside looks again before leaving. */
static bool shared_enter_or_mark(struct rpma_rt_queue *queue, uint32_t inside,
				 uint32_t outside)
{
	uint32_t old = shared_consumers_of(queue);
	uint32_t new;

	do {
		new = (old & RT_CONSUMER_INSIDE) == 0
			      ? (old + inside) | RT_CONSUMER_INSIDE
			      : (old + outside) | RT_CONSUMER_AGAIN;
		/* acquire [SHARED-1]: as in shared_try_enter(). release
		 * [SHARED-1]: pairs with the acquire in shared_take_mark(): the
		 * worker inside sees that this worker armed */
	} while (!atomic_compare_exchange_weak_explicit(
		&queue->consumers, &old, new, memory_order_acq_rel,
		memory_order_relaxed));
	if ((old & RT_CONSUMER_INSIDE) == 0) {
		rt_queue_go_in(queue);
		return true;
	}
	rt_stat_add_mt(&queue->stats.busy, 1);
	return false;
}

/* -------------------------------------------------------------- leaving --- */

/* Returns the way in which the other workers wait. A worker that sleeps on the
 * eventfd has armed the bell by itself. */
static uint32_t shared_way_of(uint32_t consumers)
{
	return consumers >= RT_CONSUMER_WAITER ? RT_BELL_ON_FUTEX : 0;
}

/* Takes the mark. Returns whether a worker tried to enter since the last
 * call. */
static bool shared_take_mark(struct rpma_rt_queue *queue, uint32_t *consumers)
{
	if ((*consumers & RT_CONSUMER_AGAIN) == 0)
		return false;
	/* acquire [SHARED-1]: pairs with the release in
	 * shared_enter_or_mark() */
	*consumers =
		atomic_fetch_and_explicit(&queue->consumers, ~RT_CONSUMER_AGAIN,
					  memory_order_acquire) &
		~RT_CONSUMER_AGAIN;
	return true;
}

/* Leaves: no worker is inside then, and the word counts `delta` more. Returns
 * false if a worker tried to enter meanwhile. */
static bool shared_try_leave(struct rpma_rt_queue *queue, uint32_t *consumers,
			     uint32_t delta)
{
	/* release [SHARED-1]: pairs with the acquire of the next worker that
	 * enters */
	return atomic_compare_exchange_weak_explicit(
		&queue->consumers, consumers,
		*consumers - RT_CONSUMER_INSIDE + delta, memory_order_release,
		memory_order_relaxed);
}

/*
 * Leaves, after arming the word for the workers that still sleep; wakes a
 * worker if items remain. If the word has the ways of the sleepers already, the
 * look after the former arming found nothing, and later publishers ring; so
 * only a find of this worker needs another look.
 */
static void shared_leave(struct rpma_rt_queue *queue, bool found)
{
	uint32_t consumers = shared_consumers_of(queue);
	uint32_t owed = 0;
	uint32_t ways;

	if (~rt_bell_ways(&queue->bell) & shared_way_of(consumers))
		found = true;
	do {
		if (shared_take_mark(queue, &consumers))
			found = true;
		ways = shared_way_of(consumers);
		if (found && (ways | rt_bell_ways(&queue->bell)) != 0) {
			rt_bell_arm(&queue->bell, ways);
			if (rt_queue_look_consumer(queue) != RT_TAKE_EMPTY)
				owed |= rt_bell_disarm(&queue->bell);
			found = false;
		}
	} while (!shared_try_leave(queue, &consumers, 0));
	/* outside, so that a woken worker finds no worker inside */
	if (owed != 0 && rt_bell_wake_ways(&queue->bell, owed))
		rt_stat_add_mt(&queue->stats.wakes, 1);
}

/* Looks at everything again after nothing was found, with the caller among the
 * sleepers. */
static uint32_t shared_take_armed(struct rpma_rt_queue *queue,
				  struct rpma_rt_completion *cmpl, uint32_t max,
				  uint32_t ways, enum rt_take_end *why)
{
	uint32_t count;

	rt_bell_arm(&queue->bell,
		    ways | shared_way_of(shared_consumers_of(queue)));
	count = rt_queue_take_again_consumer(queue, cmpl, max, why);
	if (count == 0 && *why == RT_TAKE_EMPTY && rt_wake_take_consumer(queue))
		*why = RT_TAKE_WOKEN;
	return count;
}

/* Inside: takes and leaves, or leaves as an additional waiter (then returns 0,
 * and *why is EMPTY). armed: the word was armed without a look afterwards. */
static uint32_t shared_take_or_leave_to_wait(struct rpma_rt_queue *queue,
					     struct rpma_rt_completion *cmpl,
					     uint32_t max, bool armed,
					     enum rt_take_end *why)
{
	uint32_t consumers;
	uint32_t count;

	count = rt_queue_take_consumer(queue, cmpl, max);
	if (count > 0) {
		shared_leave(queue, armed);
		return count;
	}
	consumers = shared_consumers_of(queue);
	do {
		shared_take_mark(queue, &consumers);
		count = shared_take_armed(queue, cmpl, max, RT_BELL_ON_FUTEX,
					  why);
		if (count > 0 || *why != RT_TAKE_EMPTY) {
			shared_leave(queue, true);
			return count;
		}
	} while (!shared_try_leave(queue, &consumers, RT_CONSUMER_WAITER));
	return 0;
}

/* -------------------------------------------------------------- waiting --- */

/* Returns whether a worker outside may expect to find items. */
static bool shared_is_promising(struct rpma_rt_queue *queue)
{
	/* acquire [LANE-6]: the counted lanes are initialised */
	uint32_t lanes =
		atomic_load_explicit(&queue->lane_count, memory_order_acquire);
	uint32_t i;

	if (rt_queue_is_closed(queue) || !rt_mpsc_is_empty_mt(&queue->messages))
		return true;
	for (i = 0; i < lanes; i++) {
		if (!rt_lane_is_empty_mt(queue->lanes[i]))
			return true;
	}
	return false;
}

/* Looks from outside until items come and no other worker takes the items, the
 * queue's budget or the time is over, or other threads want the CPU. */
static uint32_t shared_spin(struct rpma_rt_queue *queue,
			    struct rpma_rt_completion *cmpl, uint32_t max,
			    int64_t end_ns)
{
	uint64_t now = rt_now_ns();
	uint64_t end = now + (uint64_t)queue->params.spin_us * NS_PER_US;
	uint32_t count;
	int i;

	if (end_ns >= 0 && (uint64_t)end_ns < end)
		end = (uint64_t)end_ns;
	while (now < end && rt_share_ask(&now) == RT_SHARE_ALONE &&
	       !rt_wake_is_due(queue)) {
		for (i = 0; i < SPINS_A_LOOK; i++) {
			rt_cpu_relax();
			if (!shared_is_promising(queue) ||
			    !shared_try_enter(queue, 0))
				continue;
			count = rt_queue_take_consumer(queue, cmpl, max);
			shared_leave(queue, false);
			if (count > 0)
				return count;
		}
		now = rt_now_ns();
	}
	return 0;
}

/*
 * Enters, or waits. Arms before leaving the mark: the worker inside finds the
 * mark and looks again on behalf of this worker.
 */
static bool shared_enter_or_wait(struct rpma_rt_queue *queue, bool is_waiting,
				 bool *armed)
{
	uint32_t inside = is_waiting ? -(uint32_t)RT_CONSUMER_WAITER : 0;
	uint32_t outside = is_waiting ? 0 : RT_CONSUMER_WAITER;

	*armed = false;
	if (shared_try_enter(queue, inside))
		return true;
	*armed = true;
	rt_bell_arm(&queue->bell, RT_BELL_ON_FUTEX);
	return shared_enter_or_mark(queue, inside, outside);
}

/* Ends a wait whose time is over. If this worker was woken, either this worker
 * or the worker inside sees the reason. */
static uint32_t shared_give_up(struct rpma_rt_queue *queue,
			       struct rpma_rt_completion *cmpl, uint32_t max,
			       bool is_waiting, enum rt_take_end *why)
{
	uint32_t one_less = is_waiting ? -(uint32_t)RT_CONSUMER_WAITER : 0;
	uint32_t count;

	*why = RT_TAKE_EMPTY;
	if (!shared_enter_or_mark(queue, one_less, one_less))
		return 0;
	count = shared_take_armed(queue, cmpl, max, 0, why);
	shared_leave(queue, count > 0 || *why != RT_TAKE_EMPTY);
	return count;
}

/* Ends the wait of a worker that was cancelled during its sleep. The worker may
 * have been woken for items, so another worker is woken if there are items. */
static void shared_cancelled(void *arg)
{
	const uint32_t one_less = -(uint32_t)RT_CONSUMER_WAITER;
	struct rpma_rt_queue *queue = arg;

	if (shared_enter_or_mark(queue, one_less, one_less))
		shared_leave(queue, true);
}

static void shared_sleep_once(struct rpma_rt_queue *queue, int64_t left_ns)
{
	rt_queue_count_sleep(queue);
	rt_cancel_sleep_armed(&queue->bell, left_ns, shared_cancelled, queue);
	rt_queue_time_wakeup(queue);
}

static uint32_t shared_sleep_for(struct rpma_rt_queue *queue,
				 struct rpma_rt_completion *cmpl, uint32_t max,
				 int64_t end_ns, enum rt_take_end *why)
{
	bool is_waiting = false;
	bool armed;
	int64_t left = -1;
	uint32_t count;

	for (;;) {
		if (end_ns >= 0) {
			left = end_ns - (int64_t)rt_now_ns();
			if (left <= 0)
				return shared_give_up(queue, cmpl, max,
						      is_waiting, why);
		}
		is_waiting = !shared_enter_or_wait(queue, is_waiting, &armed);
		if (!is_waiting) {
			count = shared_take_or_leave_to_wait(queue, cmpl, max,
							     armed, why);
			if (count > 0 || *why == RT_TAKE_CLOSED ||
			    *why == RT_TAKE_WOKEN)
				return count;
			is_waiting = *why == RT_TAKE_EMPTY;
		}
		if (is_waiting)
			shared_sleep_once(queue, left);
		else
			sched_yield();
	}
}

/* ------------------------------------------------------------ the calls --- */

uint32_t rt_shared_poll(struct rpma_rt_queue *queue,
			struct rpma_rt_completion *cmpl, uint32_t max,
			enum rt_take_end *why)
{
	uint32_t count;

	*why = RT_TAKE_EMPTY;
	if (!shared_try_enter(queue, 0)) {
		rt_stat_add_mt(&queue->stats.busy, 1);
		return 0;
	}
	count = rt_queue_poll_consumer(queue, cmpl, max, why);
	shared_leave(queue, *why != RT_TAKE_EMPTY);
	return count;
}

uint32_t rt_shared_wait(struct rpma_rt_queue *queue,
			struct rpma_rt_completion *cmpl, uint32_t max,
			int64_t end_ns, bool spins, enum rt_take_end *why)
{
	uint32_t count = 0;

	if (shared_try_enter(queue, 0)) {
		count = rt_queue_take_consumer(queue, cmpl, max);
		shared_leave(queue, false);
	}
	if (count == 0 && spins && queue->params.spin_us > 0)
		count = shared_spin(queue, cmpl, max, end_ns);
	if (count == 0)
		count = shared_sleep_for(queue, cmpl, max, end_ns, why);
	return count;
}

enum rt_take_end rt_shared_arm(struct rpma_rt_queue *queue)
{
	bool is_inside = shared_try_enter(queue, 0);
	enum rt_take_end end;

	if (is_inside) {
		end = rt_queue_look_consumer(queue);
		if (end == RT_TAKE_WOKEN)
			rt_wake_take_consumer(queue);
		if (end != RT_TAKE_EMPTY) {
			shared_leave(queue, end == RT_TAKE_CLOSED);
			return end;
		}
	}
	rt_bell_read(&queue->bell);
	rt_bell_arm(&queue->bell, RT_BELL_ON_FD);
	/* armed before the mark: the worker inside looks on behalf of this
	 * worker, and writes the fd */
	if (!is_inside && !shared_enter_or_mark(queue, 0, 0))
		return RT_TAKE_EMPTY;
	end = rt_queue_look_consumer(queue);
	if (end == RT_TAKE_WOKEN)
		rt_wake_take_consumer(queue);
	/* something was found: other workers may sleep on the eventfd, which is
	 * quiet now */
	shared_leave(queue, end != RT_TAKE_EMPTY);
	/* this worker has taken the wake, so others would not find the wake */
	if (end == RT_TAKE_WOKEN)
		rt_bell_wake(&queue->bell);
	return end;
}
