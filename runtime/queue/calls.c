/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * calls.c -- the calls of an application on a queue: new, delete, poll, wait,
 * arm, its fd, its statistics.
 */

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cfg.h"
#include "base/clock.h"
#include "base/context.h"
#include "base/log.h"
#include "base/wait.h"
#include "queue/alone.h"
#include "queue/count.h"
#include "queue/impl.h"
#include "queue/left_out.h"
#include "queue/list.h"
#include "queue/push.h"
#include "queue/queue.h"
#include "queue/shared.h"
#include "queue/take.h"
#include "queue/wake.h"

#define NS_PER_MS 1000000

#define unlikely(x) __builtin_expect(!!(x), 0)

/* ------------------------------------------------------ new and delete --- */

static _Atomic uint32_t last_id;

static void configure(struct rpma_rt_queue *queue,
		      const struct rpma_rt_queue_cfg *cfg)
{
	queue->params = (struct rt_queue_params){
		.lane_size = cfg->lane_size,
		.backlog_limit = cfg->backlog_limit,
		.spin_us = cfg->spin_us,
		.shared = cfg->shared,
	};
	if (cfg->name != NULL)
		snprintf(queue->name, sizeof(queue->name), "%s", cfg->name);
	else
		snprintf(queue->name, sizeof(queue->name), "queue %" PRIu32,
			 queue->id);
}

int rpma_rt_queue_new(struct rpma_rt *rt, const struct rpma_rt_queue_cfg *cfg,
		      struct rpma_rt_queue **queue_ptr)
{
	struct rpma_rt_queue_cfg checked;
	struct rpma_rt_queue *queue;
	int ret;

	if (rt == NULL || queue_ptr == NULL)
		return RPMA_E_INVAL;
	ret = rt_cfg_read_queue(cfg, &checked);
	if (ret == 0)
		ret = rt_context_check_wait(rt);
	if (ret)
		return ret;
	if (rt_context_is_stopped(rt))
		return RPMA_RT_E_CLOSED;
	queue = aligned_alloc(RT_CACHE_LINE, sizeof(*queue));
	if (queue == NULL)
		return RPMA_E_NOMEM;
	memset(queue, 0, sizeof(*queue));
	queue->rt = rt;
	rt_bell_init_futex(&queue->bell);
	/* relaxed: just a number */
	queue->id =
		atomic_fetch_add_explicit(&last_id, 1, memory_order_relaxed) +
		1;
	configure(queue, &checked);
	queue->bell.timed = rt_context_is_timed(rt);
	queue->goes_in = queue->params.shared || queue->bell.timed;
	rt_mpsc_init(&queue->messages);
	pthread_mutex_init(&queue->lock, NULL);
	rt_wait_cond_init(&queue->left);
	rt_queue_list_add(rt, queue);
	*queue_ptr = queue;
	return 0;
}

/* True: a thread takes from the queue, or waits to. */
static bool is_consumed(const struct rpma_rt_queue *queue)
{
	/* acquire: pairs with the release of the consumer that left last */
	return atomic_load_explicit(&queue->consumers, memory_order_acquire) !=
	       0;
}

static int refuse_delete(const struct rpma_rt_queue *queue, const char *why)
{
	RT_LOG_INFO("queue %u (%s) is not deleted: %s", queue->id, queue->name,
		    why);
	return RPMA_RT_E_BUSY;
}

/* True when neither a user nor a pusher is left; waits for users whose last
 * item is in the queue already: they are about to unref it. */
static bool is_free(struct rpma_rt_queue *queue)
{
	/* acquire [QUEUE-1]: a pusher that left touches nothing after */
	uint32_t gate =
		atomic_load_explicit(&queue->gate, memory_order_acquire);
	/* a poller, where the last item was behind a full lane */
	struct rt_wait wait = {.pollers = rt_context_owned(queue->rt),
			       .is_for_all = true};
	bool is_unused;

	pthread_mutex_lock(&queue->lock);
	while (queue->users > 0 && queue->users == queue->leaving)
		rt_wait_step(&wait, &queue->left, &queue->lock);
	is_unused = queue->users == 0;
	pthread_mutex_unlock(&queue->lock);
	return is_unused && gate < RT_QUEUE_PUSHER;
}

/* Items left may carry a handle that no other thread will unref. When the
 * runtime has stopped there may be some; a live queue is polled first. */
static void drop_items(struct rpma_rt_queue *queue)
{
	struct rpma_rt_completion item;

	while (rt_queue_take_consumer(queue, &item, 1) > 0)
		rt_context_drop_item(queue->rt, &item);
}

static void delete_lanes(struct rpma_rt_queue *queue)
{
	int i;

	for (i = 0; i < RPMA_RT_MAX_POLLERS; i++) {
		if (queue->of_poller[i] == NULL)
			continue;
		rt_left_out_forget(&queue->of_poller[i]->lane);
		rt_lane_fini(&queue->of_poller[i]->lane);
		free(queue->of_poller[i]);
	}
}

int rpma_rt_queue_delete(struct rpma_rt_queue **queue_ptr)
{
	struct rpma_rt_queue *queue;
	int ret;

	if (queue_ptr == NULL)
		return RPMA_E_INVAL;
	queue = *queue_ptr;
	if (queue == NULL)
		return 0;
	ret = rt_context_check_wait(queue->rt);
	if (ret)
		return ret;
	if (is_consumed(queue))
		return refuse_delete(queue, "a thread takes from it or waits");
	if (rt_context_is_stopped(queue->rt))
		drop_items(queue);
	if (!is_free(queue))
		return refuse_delete(queue,
				     "a connection whose CLOSED has not come, "
				     "a listener or an SRQ names it, or items "
				     "wait behind a full lane");
	rt_wake_await_leave(queue);
	drop_items(queue);
	rt_queue_list_remove(queue->rt, queue);
	rt_queue_free_messages(queue);
	delete_lanes(queue);
	rt_bell_fini(&queue->bell);
	pthread_cond_destroy(&queue->left);
	pthread_mutex_destroy(&queue->lock);
	free(queue);
	*queue_ptr = NULL;
	return 0;
}

/* The number of items inside, as far as they are seen. */
static uint64_t backlog(const struct rpma_rt_queue *queue)
{
	/* acquire [LANE-6] */
	uint32_t lanes =
		atomic_load_explicit(&queue->lane_count, memory_order_acquire);
	/* taken first: it never counts more than was pushed */
	uint64_t taken = rt_stat_read(&queue->stats.messages_taken);
	uint64_t total = rt_stat_read(&queue->stats.messages) - taken;
	uint32_t i;

	for (i = 0; i < lanes; i++)
		total += rt_lane_count_mt(queue->lanes[i]);
	return total;
}

/* Wake-ups by pushes and closes, and by pollers. */
static uint64_t count_wakes(const struct rpma_rt_queue *queue)
{
	/* acquire [LANE-6] */
	uint32_t lanes =
		atomic_load_explicit(&queue->lane_count, memory_order_acquire);
	uint64_t total = rt_stat_read(&queue->stats.wakes);
	uint32_t i;

	for (i = 0; i < lanes; i++)
		total += rt_stat_read(&queue->lanes[i]->wakes);
	return total;
}

int rpma_rt_queue_get_stats(const struct rpma_rt_queue *queue,
			    struct rpma_rt_queue_stats *stats, size_t size)
{
	struct rpma_rt_queue_stats known;
	uint64_t idle;
	int ret;

	if (queue == NULL || stats == NULL)
		return RPMA_E_INVAL;
	ret = rt_context_check(queue->rt);
	if (ret)
		return ret;
#define READ(name) known.name = rt_stat_read(&queue->stats.name)
	READ(polls);
	READ(waits);
	READ(empty);
	READ(busy);
	READ(batches);
	READ(taken);
	READ(messages);
	READ(sleeps);
#undef READ
	idle = rt_stat_read(&queue->stats.idle_polls);
	known.polls += idle;
	known.empty += idle;
	known.wakes = count_wakes(queue);
	known.backlog = backlog(queue);
	rt_histogram_read(&queue->dispatch, &known.dispatch);
	rt_histogram_read(&queue->wakeup, &known.wakeup);
	rt_stats_give(stats, size, &known, sizeof(known));
	return 0;
}

/* --------------------------------------------------------------- taking --- */

static int answer(uint32_t count, enum rt_take_end why)
{
	if (count > 0)
		return (int)count;
	return why == RT_TAKE_CLOSED ? RPMA_RT_E_CLOSED : 0;
}

/* 0: the call may take, unless max is 0. */
__attribute__((noinline)) static int
check_take(const struct rpma_rt_queue *queue,
	   const struct rpma_rt_completion *cmpl, int max)
{
	if (queue == NULL || max < 0 || (cmpl == NULL && max > 0))
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
	rt_queue_count_take(queue, &queue->stats.polls, count);
	return count;
}

/*
 * Nothing to take, nothing owed, not closed, and no consumer inside: a poll of
 * a queue that is not shared answers without entering. Later items are found by
 * the next poll, or by the second look of a consumer before it sleeps.
 */
static bool is_idle(const struct rpma_rt_queue *queue)
{
	uint32_t lanes;
	uint32_t i;

	/* relaxed: a consumer that enters looks again; no items are read */
	if (queue->goes_in ||
	    atomic_load_explicit(&queue->owes_pollers, memory_order_relaxed) ||
	    atomic_load_explicit(&queue->consumers, memory_order_relaxed) !=
		    0 ||
	    !rt_mpsc_is_empty_owner(&queue->messages) ||
	    (atomic_load_explicit(&queue->gate, memory_order_relaxed) &
	     RT_QUEUE_CLOSED) != 0)
		return false;
	/* acquire [LANE-6] */
	lanes = atomic_load_explicit(&queue->lane_count, memory_order_acquire);
	for (i = 0; i < lanes; i++) {
		if (!rt_lane_is_empty_mt(queue->lanes[i]))
			return false;
	}
	return true;
}

/* A function of its own: an idle poll saves no registers for it. */
__attribute__((noinline)) static int
poll_inside(struct rpma_rt_queue *queue, struct rpma_rt_completion *cmpl,
	    int max)
{
	enum rt_take_end why = RT_TAKE_EMPTY;
	uint32_t count = 0;
	int ret = 0;

	if (queue->params.shared)
		count = poll_shared(queue, cmpl, (uint32_t)max, &why);
	else
		ret = rt_alone_poll(queue, cmpl, (uint32_t)max, &count, &why);
	return ret ? ret : answer(count, why);
}

int rpma_rt_queue_poll(struct rpma_rt_queue *queue,
		       struct rpma_rt_completion *cmpl, int max)
{
	if (unlikely(queue == NULL || max <= 0 || rt_context_check(queue->rt) ||
		     cmpl == NULL))
		return check_take(queue, cmpl, max);
	if (!is_idle(queue))
		return poll_inside(queue, cmpl, max);
	rt_stat_add(&queue->stats.idle_polls, 1);
	return 0;
}

static uint32_t wait_shared(struct rpma_rt_queue *queue, int64_t timeout_ns,
			    struct rpma_rt_completion *cmpl, uint32_t max,
			    enum rt_take_end *why)
{
	uint32_t count;

	count = rt_shared_wait(queue, cmpl, max, rt_queue_end_ns(timeout_ns),
			       why);
	rt_queue_count_take(queue, &queue->stats.waits, count);
	return count;
}

static int wait_once(struct rpma_rt_queue *queue, int64_t timeout_ns,
		     struct rpma_rt_completion *cmpl, uint32_t max,
		     uint32_t *count, enum rt_take_end *why)
{
	if (!queue->params.shared)
		return rt_alone_wait(queue, timeout_ns, cmpl, max, count, why);
	*count = wait_shared(queue, timeout_ns, cmpl, max, why);
	return 0;
}

/* The caller has pollers of manual mode: runs rounds of them, outside of the
 * queue since their functions may take from it, and short waits by turns. */
static int wait_and_run(struct rpma_rt_queue *queue, int64_t timeout_ns,
			struct rpma_rt_completion *cmpl, uint32_t max,
			uint32_t *count, enum rt_take_end *why)
{
	int64_t end_ns = rt_queue_end_ns(timeout_ns);
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
	} while (ret == 0 && *count == 0 && *why != RT_TAKE_CLOSED &&
		 *why != RT_TAKE_WOKEN && !is_last);
	return ret;
}

int rpma_rt_queue_wait(struct rpma_rt_queue *queue,
		       struct rpma_rt_completion *cmpl, int max, int timeout_ms)
{
	enum rt_take_end why = RT_TAKE_EMPTY;
	uint32_t count = 0;
	int64_t timeout_ns;
	int ret;

	if (timeout_ms < -1)
		return RPMA_E_INVAL;
	ret = check_take(queue, cmpl, max);
	if (ret == 0)
		ret = rt_context_check_wait(queue->rt);
	if (ret || max == 0)
		return ret;
	timeout_ns = timeout_ms < 0 ? -1 : (int64_t)timeout_ms * NS_PER_MS;
	if (rt_wait_has_pollers())
		ret = wait_and_run(queue, timeout_ns, cmpl, (uint32_t)max,
				   &count, &why);
	else
		ret = wait_once(queue, timeout_ns, cmpl, (uint32_t)max, &count,
				&why);
	return ret ? ret : answer(count, why);
}

int rpma_rt_queue_get_fd(struct rpma_rt_queue *queue, int *fd)
{
	int ret;

	if (queue == NULL || fd == NULL)
		return RPMA_E_INVAL;
	ret = rt_context_check(queue->rt);
	if (ret)
		return ret;
	/* several consumers of a shared queue may call at once */
	pthread_mutex_lock(&queue->lock);
	ret = rt_bell_add_fd(&queue->bell);
	pthread_mutex_unlock(&queue->lock);
	if (ret)
		return ret;
	*fd = rt_bell_fd(&queue->bell);
	return 0;
}

int rpma_rt_queue_arm(struct rpma_rt_queue *queue)
{
	enum rt_take_end end;
	int ret;

	if (queue == NULL)
		return RPMA_E_INVAL;
	ret = rt_context_check(queue->rt);
	if (ret)
		return ret;
	if (rt_bell_fd(&queue->bell) < 0) {
		RT_LOG_ERROR("a queue is armed before its descriptor is asked "
			     "for: call rpma_rt_queue_get_fd() first");
		return RPMA_E_INVAL;
	}
	if (queue->params.shared)
		end = rt_shared_arm(queue);
	else
		ret = rt_alone_arm(queue, &end);
	if (ret)
		return ret;
	if (end == RT_TAKE_CLOSED)
		return RPMA_RT_E_CLOSED;
	return end != RT_TAKE_EMPTY;
}
