/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * alone.c -- a queue of one consumer at a time: taking, spinning, sleeping on a
 * futex, arming the eventfd. Runs on the consumer's thread. Labels in
 * brackets: doc/protocols/lane.md.
 */

#include "queue/alone.h"

#include <assert.h>
#include <sched.h>

#include "base/cancel.h"
#include "base/clock.h"
#include "base/context.h"
#include "base/log.h"
#include "base/self.h"
#include "queue/count.h"
#include "queue/impl.h"
#include "queue/take.h"
#include "queue/queue.h"

#define NS_PER_US     1000
#define SPINS_A_LOOK  64 /* takes between two reads of the clock */
#define SERVES_A_LOOK 32 /* rounds and takes, likewise */

int rt_alone_refuse(const struct rpma_rt_queue *queue)
{
	assert(!"two consumers at once on a queue that is not shared");
	return RT_REFUSE(
		RPMA_RT_E_BUSY,
		"another thread takes from queue %u (%s), which is not "
		"shared: set rpma_rt_queue_cfg.shared",
		queue->id, queue->name);
}

static uint32_t take_some(struct rpma_rt_queue *queue,
			  struct rpma_rt_completion *cmpl, uint32_t max)
{
	uint32_t count = 0;
	int i;

	for (i = 0; i < SPINS_A_LOOK && count == 0; i++) {
		if (i > 0)
			rt_cpu_relax();
		count = rt_queue_take_consumer(queue, cmpl, max);
	}
	return count;
}

/* Runs rounds of pollers that are lent, and takes, some times; then gives the
 * CPU up to threads that want the CPU for a moment. *is_over: the caller is to
 * sleep, because threads that compute want the CPU, or a poller's thread is
 * needed. Moves the end by the time of other threads. */
static uint32_t serve_some(struct rpma_rt_queue *queue,
			   struct rpma_rt_completion *cmpl, uint32_t max,
			   uint64_t *end, bool *is_over)
{
	uint64_t before;
	uint64_t now;
	uint32_t count;
	int i;

	for (i = 0; i < SERVES_A_LOOK; i++) {
		*is_over = !rt_serve_run(queue);
		count = rt_queue_take_consumer(queue, cmpl, max);
		if (count > 0 || *is_over)
			return count;
		rt_cpu_relax();
	}
	now = before = rt_now_ns();
	*is_over = rt_share_yield(&now) == RT_SHARE_BUSY;
	*end += now - before;
	return 0;
}

/* Takes until items come, the budget or the time is over, or other threads want
 * the CPU. The budget is the queue's, and the poller's besides where the caller
 * runs the rounds of a poller. */
static uint32_t spin(struct rpma_rt_queue *queue,
		     struct rpma_rt_completion *cmpl, uint32_t max,
		     int64_t end_ns)
{
	bool is_over = false;
	uint32_t count = 0;
	uint64_t now;
	uint64_t end;

	if (queue->params.spin_us == 0)
		return 0;
	now = rt_now_ns();
	end = now + (uint64_t)queue->params.spin_us * NS_PER_US;
	if (rt_serve_is_due(queue))
		end += rt_context_spin_ns(queue->rt);
	if (end_ns >= 0 && (uint64_t)end_ns < end)
		end = (uint64_t)end_ns;
	while (now < end && count == 0 && !is_over && !rt_wake_is_due(queue)) {
		if (rt_serve_is_due(queue)) {
			count = serve_some(queue, cmpl, max, &end, &is_over);
		} else {
			rt_serve_ask(queue);
			if (rt_share_ask(&now) != RT_SHARE_ALONE)
				break;
			count = take_some(queue, cmpl, max);
		}
		now = rt_now_ns();
		is_over |= end_ns >= 0 && now >= (uint64_t)end_ns;
	}
	return count;
}

/* The consumer was cancelled while it slept: the next one finds all. */
static void cancelled(void *arg)
{
	struct rpma_rt_queue *queue = arg;

	rt_bell_take_back(&queue->bell, RT_BELL_ON_FUTEX);
	rt_alone_leave(queue);
}

/* One sleep; returns the items that the look before it found, or none. */
static uint32_t sleep_once(struct rpma_rt_queue *queue,
			   struct rpma_rt_completion *cmpl, uint32_t max,
			   int64_t timeout_ns, enum rt_take_end *why)
{
	uint32_t count;

	rt_bell_arm(&queue->bell, RT_BELL_ON_FUTEX);
	count = rt_queue_take_again_consumer(queue, cmpl, max, why);
	if (count == 0 && *why == RT_TAKE_EMPTY && rt_wake_take_consumer(queue))
		*why = RT_TAKE_WOKEN;
	if (count == 0 && *why == RT_TAKE_EMPTY) {
		rt_queue_count_sleep(queue);
		rt_cancel_sleep_armed(&queue->bell, timeout_ns, cancelled,
				      queue);
		rt_queue_time_wakeup(queue);
	}
	rt_bell_take_back(&queue->bell, RT_BELL_ON_FUTEX);
	return count;
}

/* Sleeps until something comes, a wake, the end, or the time passed (end_ns <
 * 0: never). */
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
				return rt_queue_poll_consumer(queue, cmpl, max,
							      why);
		}
		count = sleep_once(queue, cmpl, max, left, why);
		if (count > 0 || *why == RT_TAKE_CLOSED ||
		    *why == RT_TAKE_WOKEN)
			return count;
		if (*why == RT_TAKE_BUSY)
			sched_yield();
	}
}

int rt_alone_poll(struct rpma_rt_queue *queue, struct rpma_rt_completion *cmpl,
		  uint32_t max, uint32_t *count, enum rt_take_end *why)
{
	int ret = rt_alone_enter(queue);

	if (ret)
		return ret;
	rt_queue_time_wakeup(queue);
	*count = rt_queue_poll_consumer(queue, cmpl, max, why);
	rt_queue_count_take(queue, &queue->stats.polls, *count);
	rt_alone_leave(queue);
	return 0;
}

int rt_alone_wait(struct rpma_rt_queue *queue, int64_t timeout_ns, bool spins,
		  struct rpma_rt_completion *cmpl, uint32_t max,
		  uint32_t *count, enum rt_take_end *why)
{
	int64_t end_ns;
	int ret = rt_alone_enter(queue);

	if (ret)
		return ret;
	*count = rt_queue_take_consumer(queue, cmpl, max);
	if (*count == 0) {
		end_ns = rt_queue_end_ns(timeout_ns);
		if (spins)
			*count = spin(queue, cmpl, max, end_ns);
		if (*count == 0)
			*count = sleep_for(queue, cmpl, max, end_ns, why);
	}
	rt_queue_count_take(queue, &queue->stats.waits, *count);
	rt_alone_leave(queue);
	return 0;
}

/* Inside. A fd that was readable stays so unless there is nothing to take. */
static enum rt_take_end arm(struct rpma_rt_queue *queue)
{
	enum rt_take_end end = rt_queue_look_consumer(queue);

	if (end == RT_TAKE_WOKEN)
		rt_wake_take_consumer(queue);
	if (end != RT_TAKE_EMPTY)
		return end;
	rt_bell_read(&queue->bell);
	rt_bell_set_armed_by(&queue->bell, rt_self_number());
	rt_bell_arm(&queue->bell, RT_BELL_ON_FD);
	end = rt_queue_look_consumer(queue);
	if (end != RT_TAKE_EMPTY)
		rt_bell_wake(&queue->bell);
	if (end == RT_TAKE_WOKEN)
		rt_wake_take_consumer(queue);
	return end;
}

int rt_alone_arm(struct rpma_rt_queue *queue, enum rt_take_end *end)
{
	int ret = rt_alone_enter(queue);

	if (ret)
		return ret;
	*end = arm(queue);
	rt_alone_leave(queue);
	return 0;
}
