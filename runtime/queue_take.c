/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * queue_take.c -- the consumer's side of a queue: taking from all lanes and
 * from the messages, spinning, sleeping on a futex or arming the eventfd. Runs
 * on the consumer's thread. Labels in brackets: doc/protocols/lane.md.
 */

#include "queue_impl.h"

#include <assert.h>
#include <sched.h>
#include <time.h>

#define NS_PER_S     1000000000
#define NS_PER_MS    1000000
#define NS_PER_US    1000
#define SPINS_A_LOOK 64 /* takes between two reads of the clock */

/* How a take that found nothing ends. */
enum nothing {
	NOTHING_YET,
	NOTHING_FOR_A_MOMENT, /* a pusher is inside a closed queue */
	NOTHING_EVER
};

/* Up to max items from all sources, beginning with another one each time. */
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
			total += rt_lane_take_consumer(queue->lanes[source],
						       cmpl + total,
						       max - total);
	}
	queue->next_source =
		queue->next_source < lanes ? queue->next_source + 1 : 0;
	return total;
}

/* Before the take whose nothing it explains: what was published before the
 * state that it finds is found by that take. */
static enum nothing look_at_end(struct rpma_rt_queue *queue)
{
	/* acquire [QUEUE-1]: the messages of every pusher that has left */
	uint32_t gate =
		atomic_load_explicit(&queue->gate, memory_order_acquire);
	bool over;

	if ((gate & RT_QUEUE_CLOSED) == 0)
		return NOTHING_YET;
	if (gate != RT_QUEUE_CLOSED)
		return NOTHING_FOR_A_MOMENT;
	/* acquire [QUEUE-2]: what the pollers left behind */
	over = atomic_load_explicit(&queue->finished, memory_order_acquire);
	if (!over) {
		pthread_mutex_lock(&queue->lock);
		over = queue->users == 0;
		pthread_mutex_unlock(&queue->lock);
	}
	return over ? NOTHING_EVER : NOTHING_YET;
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

/* The second look, after a fence of the caller. */
static uint32_t take_again(struct rpma_rt_queue *queue,
			   struct rpma_rt_completion *cmpl, uint32_t max,
			   enum nothing *why)
{
	uint32_t count;

	*why = look_at_end(queue);
	count = rt_queue_take_consumer(queue, cmpl, max);
	if (count == 0)
		ring_pollers(queue);
	return count;
}

static int answer(enum nothing why)
{
	return why == NOTHING_EVER ? RPMA_RT_E_CLOSED : RPMA_E_NO_COMPLETION;
}

/* One consumer at a time: checked where assertions are compiled. */
static void begin_consuming(struct rpma_rt_queue *queue)
{
#ifndef NDEBUG
	/* acquire and release: a consumer that took over is no race */
	assert(!atomic_exchange_explicit(&queue->consuming, true,
					 memory_order_acq_rel));
#else
	(void)queue;
#endif
}

static void end_consuming(struct rpma_rt_queue *queue)
{
#ifndef NDEBUG
	/* release: to the next consumer's exchange */
	atomic_store_explicit(&queue->consuming, false, memory_order_release);
#else
	(void)queue;
#endif
}

/* -------------------------------------------------------------- waiting --- */

static int64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (int64_t)now.tv_sec * NS_PER_S + now.tv_nsec;
}

/*
 * An empty poll: a consumer with an eventfd may go to sleep on it now, so it
 * is made quiet and armed, and everything is looked at once more.
 */
static uint32_t take_or_arm(struct rpma_rt_queue *queue,
			    struct rpma_rt_completion *cmpl, uint32_t max,
			    enum nothing *why)
{
	struct rt_bell *bell = &queue->bell;
	uint32_t count;

	if (rt_bell_fd(bell) < 0) {
		/* [LANE-4]: our last head before the look at `spilled` */
		rt_fence_dekker();
		return take_again(queue, cmpl, max, why);
	}
	rt_bell_cancel(bell);
	rt_bell_prepare(bell);
	count = take_again(queue, cmpl, max, why);
	if (count > 0 || *why != NOTHING_YET)
		rt_bell_cancel(bell);
	if (count == 0 && *why == NOTHING_FOR_A_MOMENT)
		rt_bell_poke(bell);
	return count;
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
	end = now_ns() + budget_ns;
	do {
		for (i = 0; i < SPINS_A_LOOK; i++) {
			count = rt_queue_take_consumer(queue, cmpl, max);
			if (count > 0)
				return count;
			rt_cpu_relax();
		}
	} while (now_ns() < end);
	return 0;
}

/* One sleep; returns what the look before it found, or nothing. */
static uint32_t park(struct rpma_rt_queue *queue,
		     struct rpma_rt_completion *cmpl, uint32_t max,
		     int64_t timeout_ns, enum nothing *why)
{
	uint32_t count;

	rt_bell_cancel(&queue->bell);
	rt_bell_prepare_futex(&queue->bell);
	count = take_again(queue, cmpl, max, why);
	if (count == 0 && *why == NOTHING_YET)
		rt_bell_sleep_futex(&queue->bell, timeout_ns);
	rt_bell_cancel(&queue->bell);
	return count;
}

/* Sleeps until something comes, the end, or the time passed (end_ns < 0:
 * never). */
static uint32_t sleep_for(struct rpma_rt_queue *queue,
			  struct rpma_rt_completion *cmpl, uint32_t max,
			  int64_t end_ns, enum nothing *why)
{
	int64_t left = -1;
	uint32_t count;

	for (;;) {
		if (end_ns >= 0) {
			left = end_ns - now_ns();
			if (left <= 0)
				return take_or_arm(queue, cmpl, max, why);
		}
		count = park(queue, cmpl, max, left, why);
		if (count > 0 || *why == NOTHING_EVER)
			return count;
		if (*why == NOTHING_FOR_A_MOMENT)
			sched_yield();
	}
}

/* --------------------------------------------------------------- public --- */

static int check_take(const struct rpma_rt_queue *queue, int max,
		      const struct rpma_rt_completion *cmpl, const int *got)
{
	if (queue == NULL || max <= 0 || cmpl == NULL || got == NULL)
		return RPMA_E_INVAL;
	return rt_runtime_check(queue->rt);
}

int rpma_rt_queue_poll(struct rpma_rt_queue *queue, int max,
		       struct rpma_rt_completion *cmpl, int *got)
{
	enum nothing why = NOTHING_YET;
	uint32_t count;
	int ret;

	ret = check_take(queue, max, cmpl, got);
	if (ret)
		return ret;
	begin_consuming(queue);
	count = rt_queue_take_consumer(queue, cmpl, (uint32_t)max);
	if (count == 0)
		count = take_or_arm(queue, cmpl, (uint32_t)max, &why);
	end_consuming(queue);
	if (count == 0)
		return answer(why);
	*got = (int)count;
	return 0;
}

int rpma_rt_queue_wait(struct rpma_rt_queue *queue, int timeout_ms, int max,
		       struct rpma_rt_completion *cmpl, int *got)
{
	enum nothing why = NOTHING_YET;
	int64_t end_ns = -1;
	int64_t spin_ns;
	uint32_t count;
	int ret;

	ret = check_take(queue, max, cmpl, got);
	if (ret == 0)
		ret = rt_runtime_check_wait(queue->rt);
	if (ret)
		return ret;
	begin_consuming(queue);
	count = rt_queue_take_consumer(queue, cmpl, (uint32_t)max);
	if (count == 0) {
		spin_ns = (int64_t)queue->params.spin_us * NS_PER_US;
		if (timeout_ms >= 0) {
			end_ns = now_ns() + (int64_t)timeout_ms * NS_PER_MS;
			if (spin_ns > (int64_t)timeout_ms * NS_PER_MS)
				spin_ns = (int64_t)timeout_ms * NS_PER_MS;
		}
		count = spin(queue, cmpl, (uint32_t)max, spin_ns);
	}
	if (count == 0)
		count = sleep_for(queue, cmpl, (uint32_t)max, end_ns, &why);
	end_consuming(queue);
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
	ret = rt_runtime_check(queue->rt);
	if (ret)
		return ret;
	ret = rt_bell_add_fd(&queue->bell);
	if (ret)
		return ret;
	*fd = rt_bell_fd(&queue->bell);
	return 0;
}
