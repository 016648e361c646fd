/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * take.c -- the consumer's side of a queue: taking from all lanes and
 * from the messages, spinning, sleeping on a futex or arming the eventfd. Runs
 * on the consumer's thread. Labels in brackets: doc/protocols/lane.md.
 */

#include "queue/impl.h"

#include <assert.h>
#include <sched.h>

#include "base/clock.h"
#include "base/context.h"
#include "base/wait.h"

#define NS_PER_MS    1000000
#define NS_PER_US    1000
#define SPINS_A_LOOK 64 /* takes between two reads of the clock */

/* Up to max items from all sources, beginning with another one each time. */
static uint32_t take_lane(struct rpma_rt_queue *queue, struct rt_lane *lane,
			  struct rpma_rt_completion *cmpl, uint32_t max)
{
	uint32_t count = rt_lane_take_consumer(lane, cmpl, max);
	uint64_t ns;

	if (count == 0)
		return 0;
	ns = rt_lane_take_stamp_consumer(lane);
	if (ns != 0)
		rt_histogram_add_mt(&queue->dispatch, rt_now_ns() - ns);
	return count;
}

uint32_t rt_queue_take_consumer(struct rpma_rt_queue *queue,
				struct rpma_rt_completion *cmpl, uint32_t max)
{
	/* acquire [QUEUE-2]: before we touch what was the pollers' */
	bool finished =
		atomic_load_explicit(&queue->finished, memory_order_acquire);
	/* acquire [LANE-6]: the lanes below it are initialised */
	uint32_t lanes =
		atomic_load_explicit(&queue->lane_count, memory_order_acquire);
	uint32_t source = queue->next_source;
	uint32_t total = 0;
	uint32_t i;

	for (i = 0; i <= lanes && total < max; i++, source++) {
		if (source > lanes)
			source = 0;
		if (source == lanes)
			total += rt_queue_take_messages_consumer(
				queue, cmpl + total, max - total);
		else if (finished)
			total += rt_lane_drain_consumer(queue->lanes[source],
							cmpl + total,
							max - total);
		else
			total += take_lane(queue, queue->lanes[source],
					   cmpl + total, max - total);
	}
	queue->next_source =
		queue->next_source < lanes ? queue->next_source + 1 : 0;
	return total;
}

/* Before the take whose nothing it explains: what was published before the
 * state that it finds is found by that take. */
static enum rt_take_end look_at_end(struct rpma_rt_queue *queue)
{
	/* acquire [QUEUE-1]: the messages of every pusher that has left */
	uint32_t gate =
		atomic_load_explicit(&queue->gate, memory_order_acquire);
	bool over;

	if ((gate & RT_QUEUE_CLOSED) == 0)
		return RT_TAKE_EMPTY;
	if (gate != RT_QUEUE_CLOSED)
		return RT_TAKE_BUSY;
	/* acquire [QUEUE-2]: what the pollers left behind */
	over = atomic_load_explicit(&queue->finished, memory_order_acquire);
	if (!over) {
		pthread_mutex_lock(&queue->lock);
		over = queue->users == 0;
		pthread_mutex_unlock(&queue->lock);
	}
	return over ? RT_TAKE_CLOSED : RT_TAKE_EMPTY;
}

/* After the consumer's fence, all lanes found empty: pollers that sleep on a
 * spill are told of the room [LANE-4]. */
static void ring_pollers(struct rpma_rt_queue *queue)
{
	uint32_t lanes;
	uint32_t i;

	/* relaxed: the pollers are gone, or nearly, and this is harmless */
	if (atomic_load_explicit(&queue->finished, memory_order_relaxed))
		return;
	/* acquire [LANE-6] */
	lanes = atomic_load_explicit(&queue->lane_count, memory_order_acquire);
	for (i = 0; i < lanes; i++)
		rt_lane_ring_poller_consumer(queue->lanes[i]);
}

uint32_t rt_queue_take_again_consumer(struct rpma_rt_queue *queue,
				      struct rpma_rt_completion *cmpl,
				      uint32_t max, enum rt_take_end *why)
{
	uint32_t count;

	*why = look_at_end(queue);
	count = rt_queue_take_consumer(queue, cmpl, max);
	if (count == 0)
		ring_pollers(queue);
	return count;
}

/* Without moving anything. */
static bool has_items(struct rpma_rt_queue *queue)
{
	/* acquire [QUEUE-2] */
	bool finished =
		atomic_load_explicit(&queue->finished, memory_order_acquire);
	/* acquire [LANE-6] */
	uint32_t lanes =
		atomic_load_explicit(&queue->lane_count, memory_order_acquire);
	uint32_t i;

	for (i = 0; i < lanes; i++) {
		if (!rt_lane_is_empty_mt(queue->lanes[i]) ||
		    (finished && rt_lane_is_spilling_poller(queue->lanes[i])))
			return true;
	}
	return !rt_mpsc_is_empty_owner(&queue->messages);
}

bool rt_queue_has_work_consumer(struct rpma_rt_queue *queue)
{
	if (look_at_end(queue) != RT_TAKE_EMPTY || has_items(queue))
		return true;
	ring_pollers(queue);
	return false;
}

void rt_queue_time_wakeup(struct rpma_rt_queue *queue)
{
	uint64_t ns = rt_bell_take_rung_ns(&queue->bell);

	if (ns != 0)
		rt_histogram_add_mt(&queue->wakeup, rt_now_ns() - ns);
}

static void count_one(const struct rpma_rt_queue *queue, _Atomic uint64_t *stat,
		      uint64_t n)
{
	if (queue->params.shared)
		rt_stat_add_mt(stat, n);
	else
		rt_stat_add(stat, n);
}

/* A call, and what it found; a consumer, of a shared queue any. */
static void count_call(struct rpma_rt_queue *queue, _Atomic uint64_t *calls,
		       uint32_t count)
{
	count_one(queue, calls, 1);
	if (count == 0) {
		count_one(queue, &queue->stats.empty, 1);
		return;
	}
	count_one(queue, &queue->stats.batches, 1);
	count_one(queue, &queue->stats.taken, count);
}

static int answer(enum rt_take_end why)
{
	return why == RT_TAKE_CLOSED ? RPMA_RT_E_CLOSED : RPMA_E_NO_COMPLETION;
}

/* ----------------------------------------------- one consumer at a time --- */

/* On a queue that is not shared a second one is a mistake of the application,
 * told where assertions are compiled and refused where not. */
static int enter_alone(struct rpma_rt_queue *queue)
{
	uint32_t nobody = 0;

	/* acquire: pairs with leave_alone(); a consumer that took over sees
	 * what the one before it did. Failure: nothing is read */
	if (atomic_compare_exchange_strong_explicit(
		    &queue->consumers, &nobody, RT_CONSUMER_INSIDE,
		    memory_order_acquire, memory_order_relaxed))
		return 0;
	assert(!"two consumers at once on a queue that is not shared");
	return RPMA_E_AGAIN;
}

static void leave_alone(struct rpma_rt_queue *queue)
{
	/* release: to the next one's enter_alone() */
	atomic_store_explicit(&queue->consumers, 0, memory_order_release);
}

/* -------------------------------------------------------------- waiting --- */

/*
 * An empty poll: a consumer with an eventfd may go to sleep on it now, so it
 * is made quiet and armed, and everything is looked at once more.
 */
static uint32_t take_or_arm(struct rpma_rt_queue *queue,
			    struct rpma_rt_completion *cmpl, uint32_t max,
			    enum rt_take_end *why)
{
	struct rt_bell *bell = &queue->bell;
	uint32_t count;

	if (rt_bell_fd(bell) < 0) {
		/* [LANE-4]: our last head before the look at `spilled` */
		rt_fence_dekker();
		return rt_queue_take_again_consumer(queue, cmpl, max, why);
	}
	rt_bell_cancel(bell);
	rt_bell_prepare(bell);
	count = rt_queue_take_again_consumer(queue, cmpl, max, why);
	if (count > 0 || *why != RT_TAKE_EMPTY)
		rt_bell_cancel(bell);
	if (count == 0 && *why == RT_TAKE_BUSY)
		rt_bell_poke(bell);
	return count;
}

/* -1: never */
static int64_t end_of(int64_t timeout_ns)
{
	return timeout_ns < 0 ? -1 : (int64_t)rt_now_ns() + timeout_ns;
}

/* Takes until something comes or the budget is over. */
static uint32_t spin(struct rpma_rt_queue *queue,
		     struct rpma_rt_completion *cmpl, uint32_t max,
		     int64_t budget_ns)
{
	int64_t end;
	uint32_t count;
	int i;

	if (budget_ns <= 0)
		return 0;
	end = (int64_t)rt_now_ns() + budget_ns;
	do {
		for (i = 0; i < SPINS_A_LOOK; i++) {
			count = rt_queue_take_consumer(queue, cmpl, max);
			if (count > 0)
				return count;
			rt_cpu_relax();
		}
	} while ((int64_t)rt_now_ns() < end);
	return 0;
}

/* One sleep; returns what the look before it found, or nothing. */
static uint32_t park(struct rpma_rt_queue *queue,
		     struct rpma_rt_completion *cmpl, uint32_t max,
		     int64_t timeout_ns, enum rt_take_end *why)
{
	uint32_t count;

	rt_bell_cancel(&queue->bell);
	rt_bell_prepare_futex(&queue->bell);
	count = rt_queue_take_again_consumer(queue, cmpl, max, why);
	if (count == 0 && *why == RT_TAKE_EMPTY) {
		rt_stat_add_mt(&queue->stats.sleeps, 1);
		rt_bell_sleep_futex(&queue->bell, timeout_ns);
		rt_queue_time_wakeup(queue);
	}
	rt_bell_cancel(&queue->bell);
	return count;
}

/* Sleeps until something comes, the end, or the time passed (end_ns < 0:
 * never). */
static uint32_t sleep_for(struct rpma_rt_queue *queue,
			  struct rpma_rt_completion *cmpl, uint32_t max,
			  int64_t end_ns, enum rt_take_end *why)
{
	int64_t left = -1;
	uint32_t count;

	for (;;) {
		if (end_ns >= 0) {
			left = end_ns - (int64_t)rt_now_ns();
			if (left <= 0)
				return take_or_arm(queue, cmpl, max, why);
		}
		count = park(queue, cmpl, max, left, why);
		if (count > 0 || *why == RT_TAKE_CLOSED)
			return count;
		if (*why == RT_TAKE_BUSY)
			sched_yield();
	}
}

/* --------------------------------------------------------------- public --- */

static int check_take(const struct rpma_rt_queue *queue, int max,
		      const struct rpma_rt_completion *cmpl, const int *got)
{
	if (queue == NULL || max <= 0 || cmpl == NULL || got == NULL)
		return RPMA_E_INVAL;
	return rt_context_check(queue->rt);
}

static uint32_t poll_shared(struct rpma_rt_queue *queue,
			    struct rpma_rt_completion *cmpl, uint32_t max,
			    enum rt_take_end *why)
{
	uint32_t count;

	rt_queue_time_wakeup(queue);
	count = rt_shared_poll(queue, cmpl, max, why);
	count_call(queue, &queue->stats.polls, count);
	return count;
}

static uint32_t wait_shared(struct rpma_rt_queue *queue, int64_t timeout_ns,
			    struct rpma_rt_completion *cmpl, uint32_t max,
			    enum rt_take_end *why)
{
	uint32_t count;

	count = rt_shared_wait(queue, cmpl, max, end_of(timeout_ns), why);
	count_call(queue, &queue->stats.waits, count);
	return count;
}

static int poll_alone(struct rpma_rt_queue *queue,
		      struct rpma_rt_completion *cmpl, uint32_t max,
		      uint32_t *count, enum rt_take_end *why)
{
	int ret = enter_alone(queue);

	if (ret)
		return ret;
	rt_queue_time_wakeup(queue);
	*count = rt_queue_take_consumer(queue, cmpl, max);
	if (*count == 0)
		*count = take_or_arm(queue, cmpl, max, why);
	count_call(queue, &queue->stats.polls, *count);
	leave_alone(queue);
	return 0;
}

int rpma_rt_queue_poll(struct rpma_rt_queue *queue, int max,
		       struct rpma_rt_completion *cmpl, int *got)
{
	enum rt_take_end why = RT_TAKE_EMPTY;
	uint32_t count = 0;
	int ret;

	ret = check_take(queue, max, cmpl, got);
	if (ret)
		return ret;
	if (queue->params.shared)
		count = poll_shared(queue, cmpl, (uint32_t)max, &why);
	else
		ret = poll_alone(queue, cmpl, (uint32_t)max, &count, &why);
	if (ret)
		return ret;
	if (count == 0)
		return answer(why);
	*got = (int)count;
	return 0;
}

static int wait_alone(struct rpma_rt_queue *queue, int64_t timeout_ns,
		      struct rpma_rt_completion *cmpl, uint32_t max,
		      uint32_t *count, enum rt_take_end *why)
{
	int64_t end_ns = -1;
	int64_t spin_ns;
	int ret = enter_alone(queue);

	if (ret)
		return ret;
	*count = rt_queue_take_consumer(queue, cmpl, max);
	if (*count == 0) {
		spin_ns = (int64_t)queue->params.spin_us * NS_PER_US;
		if (timeout_ns >= 0) {
			end_ns = end_of(timeout_ns);
			if (spin_ns > timeout_ns)
				spin_ns = timeout_ns;
		}
		*count = spin(queue, cmpl, max, spin_ns);
	}
	if (*count == 0)
		*count = sleep_for(queue, cmpl, max, end_ns, why);
	count_call(queue, &queue->stats.waits, *count);
	leave_alone(queue);
	return 0;
}

static int wait_once(struct rpma_rt_queue *queue, int64_t timeout_ns,
		     struct rpma_rt_completion *cmpl, uint32_t max,
		     uint32_t *count, enum rt_take_end *why)
{
	if (!queue->params.shared)
		return wait_alone(queue, timeout_ns, cmpl, max, count, why);
	*count = wait_shared(queue, timeout_ns, cmpl, max, why);
	return 0;
}

/* The caller has pollers of manual mode: rounds of them, outside of the queue
 * since their functions may take from it, and short waits by turns. */
static int wait_and_run(struct rpma_rt_queue *queue, int64_t timeout_ns,
			struct rpma_rt_completion *cmpl, uint32_t max,
			uint32_t *count, enum rt_take_end *why)
{
	int64_t end_ns = end_of(timeout_ns);
	int64_t left = RT_WAIT_NS;
	bool is_last = false;
	int ret;

	do {
		rt_wait_run();
		if (end_ns >= 0)
			left = end_ns - (int64_t)rt_now_ns();
		if (left > RT_WAIT_NS)
			left = RT_WAIT_NS;
		if (left <= 0) {
			left = 0;
			is_last = true;
		}
		ret = wait_once(queue, left, cmpl, max, count, why);
	} while (ret == 0 && *count == 0 && *why != RT_TAKE_CLOSED && !is_last);
	return ret;
}

int rpma_rt_queue_wait(struct rpma_rt_queue *queue, int timeout_ms, int max,
		       struct rpma_rt_completion *cmpl, int *got)
{
	enum rt_take_end why = RT_TAKE_EMPTY;
	uint32_t count = 0;
	int64_t timeout_ns;
	int ret;

	if (timeout_ms < -1)
		return RPMA_E_INVAL;
	ret = check_take(queue, max, cmpl, got);
	if (ret == 0)
		ret = rt_context_check_wait(queue->rt);
	if (ret)
		return ret;
	timeout_ns = timeout_ms < 0 ? -1 : (int64_t)timeout_ms * NS_PER_MS;
	if (rt_wait_has_pollers())
		ret = wait_and_run(queue, timeout_ns, cmpl, (uint32_t)max,
				   &count, &why);
	else
		ret = wait_once(queue, timeout_ns, cmpl, (uint32_t)max, &count,
				&why);
	if (ret)
		return ret;
	if (count == 0)
		return answer(why);
	*got = (int)count;
	return 0;
}

int rpma_rt_queue_get_fd(struct rpma_rt_queue *queue, int *fd)
{
	int ret;

	if (queue == NULL || fd == NULL)
		return RPMA_E_INVAL;
	ret = rt_context_check(queue->rt);
	if (ret)
		return ret;
	/* of a shared queue several may ask at once */
	pthread_mutex_lock(&queue->lock);
	ret = rt_bell_add_fd(&queue->bell);
	pthread_mutex_unlock(&queue->lock);
	if (ret)
		return ret;
	*fd = rt_bell_fd(&queue->bell);
	return 0;
}
