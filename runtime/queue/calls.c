/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * calls.c -- public calls on a queue: new, delete, arm, fd, statistics, wake.
 * The calls that take from a queue are in poll.c.
 */

#include <errno.h>
#include <inttypes.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cancel.h"
#include "base/cfg.h"
#include "base/context.h"
#include "base/log.h"
#include "base/wait.h"
#include "queue/impl.h"
#include "queue/lane.h"
#include "queue/queue.h"
#include "queue/take.h"

/* ----------------------------------------------------------------- wake --- */

/*
 * Makes a consumer of a queue return without an item. Any thread, and handlers
 * of signals: nothing here takes a lock, allocates or logs.
 * doc/protocols/lane.md, "A wake".
 */

/* Waits until no thread is inside a wake. Called by the thread that deletes the
 * queue; no further call names the queue. */
static void rt_wake_await_leave(const struct rpma_rt_queue *queue)
{
	/* acquire: pairs with the release in wake_leave(), the last access of a
	 * wake to the queue */
	while (atomic_load_explicit(&queue->woken, memory_order_acquire) >=
	       RT_QUEUE_WAKER)
		sched_yield();
}

/* Sets the wake and counts the caller in, in a single step: a consumer that
 * returns for the wake and deletes the queue sees that the caller is inside. */
static void wake_enter(struct rpma_rt_queue *queue)
{
	/* relaxed: the compare-and-swap decides */
	uint32_t old =
		atomic_load_explicit(&queue->woken, memory_order_relaxed);

	/* release: pairs with the acquire in rt_wake_take_consumer() */
	while (!atomic_compare_exchange_weak_explicit(
		&queue->woken, &old, (old + RT_QUEUE_WAKER) | RT_QUEUE_WOKEN,
		memory_order_release, memory_order_relaxed))
		;
}

static void wake_leave(struct rpma_rt_queue *queue)
{
	/* release: pairs with the acquire in rt_wake_await_leave() */
	atomic_fetch_sub_explicit(&queue->woken, RT_QUEUE_WAKER,
				  memory_order_release);
}

int rpma_rt_queue_wake(struct rpma_rt_queue *queue)
{
	int saved = errno; /* errno of the code that a signal interrupted */
	int ret;

	if (queue == NULL)
		return RPMA_E_INVAL;
	ret = rt_context_check(queue->rt);
	if (ret)
		return ret;
	wake_enter(queue);
	/* [LANE-3]: the wake before the look at the bell's word */
	rt_queue_ring(queue);
	wake_leave(queue);
	errno = saved;
	return 0;
}

/* ------------------------------------------------------ new and delete --- */

static _Atomic uint32_t last_id;

static void queue_configure(struct rpma_rt_queue *queue,
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
	RT_NOT_CANCELLED;
	struct rpma_rt_queue_cfg checked;
	struct rpma_rt_queue *queue;
	int ret;

	ret = RT_REFUSE_NULL(rt, queue_ptr);
	if (ret == 0)
		ret = rt_cfg_read_queue(cfg, &checked);
	if (ret == 0)
		ret = RT_REFUSE_WAIT(rt);
	if (ret)
		return ret;
	if (rt_context_is_stopped(rt))
		return RT_REFUSE(RPMA_RT_E_CLOSED, "the runtime was stopped");
	queue = aligned_alloc(alignof(struct rpma_rt_queue), sizeof(*queue));
	if (queue == NULL)
		return RT_REFUSED(RPMA_E_NOMEM, "no queue is made");
	memset(queue, 0, sizeof(*queue));
	queue->rt = rt;
	rt_bell_init_futex(&queue->bell);
	/* relaxed: only the uniqueness of the number matters */
	queue->id =
		atomic_fetch_add_explicit(&last_id, 1, memory_order_relaxed) +
		1;
	queue_configure(queue, &checked);
	queue->bell.timed = rt_context_is_timed(rt);
	queue->goes_in = queue->params.shared || queue->bell.timed;
	rt_keep_init(&queue->alone);
	rt_mpsc_init(&queue->messages);
	rt_mark_init(&queue->waits);
	pthread_mutex_init(&queue->lock, NULL);
	rt_wait_cond_init(&queue->left);
	rt_queue_list_add(rt, queue);
	*queue_ptr = queue;
	return 0;
}

/* Returns whether a thread takes from the queue, or waits to take. */
static bool queue_is_consumed(const struct rpma_rt_queue *queue)
{
	if (!queue->params.shared)
		return rt_keep_is_taken(&queue->alone);
	/* acquire: pairs with the release of the last consumer that left */
	return atomic_load_explicit(&queue->consumers, memory_order_acquire) !=
	       0;
}

static int queue_refuse_delete(const struct rt_log_place *place,
			       struct rpma_rt_queue *queue, const char *why)
{
	/* relaxed: statistic, orders nothing */
	atomic_store_explicit(&queue->delete_refused, true,
			      memory_order_relaxed);
	return rt_refuse(place, RPMA_RT_E_BUSY,
			 "queue %u (%s) is not deleted: %s", queue->id,
			 queue->name, why);
}

/* Returns whether neither a user nor a pusher is left. Waits for users whose
 * last item is in the queue already, because such users are about to leave. */
static bool queue_is_free(struct rpma_rt_queue *queue)
{
	/* acquire [QUEUE-1]: a pusher that has left does not touch the queue
	 * any more */
	uint32_t gate =
		atomic_load_explicit(&queue->gate, memory_order_acquire);
	/* a poller has to run where the last item was behind a full lane */
	struct rt_wait wait = {.pollers = rt_context_owned(queue->rt),
			       .which = RT_WAIT_ALL};
	bool is_unused;

	pthread_mutex_lock(&queue->lock);
	while (queue->users > 0 && queue->users == queue->leaving)
		rt_wait_step(&wait, &queue->left, &queue->lock);
	is_unused = queue->users == 0;
	pthread_mutex_unlock(&queue->lock);
	return is_unused && gate < RT_QUEUE_PUSHER;
}

/* Drops the remaining items: an item may carry a handle that no other thread
 * will unref. Items remain only when the runtime has stopped; a live queue is
 * polled first. */
static void queue_drop_items(struct rpma_rt_queue *queue)
{
	struct rpma_rt_completion item;

	while (rt_queue_take_consumer(queue, &item, 1) > 0)
		rt_context_drop_item(queue->rt, &item);
}

static void queue_delete_lanes(struct rpma_rt_queue *queue)
{
	int i;

	for (i = 0; i < RPMA_RT_MAX_POLLERS; i++) {
		if (queue->of_poller[i] == NULL)
			continue;
		rt_serve_remove(queue->of_poller[i]);
		rt_left_out_forget(&queue->of_poller[i]->lane);
		rt_queue_free_lane(queue->rt, queue->of_poller[i]);
	}
}

int rpma_rt_queue_delete(struct rpma_rt_queue **queue_ptr)
{
	RT_NOT_CANCELLED;
	struct rpma_rt_queue *queue;
	int ret;

	ret = RT_REFUSE_NULL(queue_ptr);
	if (ret || *queue_ptr == NULL)
		return ret;
	queue = *queue_ptr;
	ret = RT_REFUSE_WAIT(queue->rt);
	if (ret)
		return ret;
	if (queue_is_consumed(queue))
		return queue_refuse_delete(RT_LOG_HERE, queue,
					   "a thread takes from it or waits");
	if (rt_context_is_stopped(queue->rt))
		queue_drop_items(queue);
	if (!queue_is_free(queue))
		return queue_refuse_delete(
			RT_LOG_HERE, queue,
			"a connection whose CLOSED has not come, "
			"a listener or an SRQ names it, or items "
			"wait behind a full lane; rpma_rt_dump() "
			"says which");
	rt_wake_await_leave(queue);
	queue_drop_items(queue);
	rt_queue_list_remove(queue->rt, queue);
	rt_queue_free_messages(queue);
	queue_delete_lanes(queue);
	rt_bell_fini(&queue->bell);
	pthread_cond_destroy(&queue->left);
	pthread_mutex_destroy(&queue->lock);
	free(queue);
	*queue_ptr = NULL;
	return 0;
}

/* Returns the number of items in the queue, as far as they are visible. */
static uint64_t queue_backlog(const struct rpma_rt_queue *queue)
{
	/* acquire [LANE-6] */
	uint32_t lanes =
		atomic_load_explicit(&queue->lane_count, memory_order_acquire);
	/* read first, so that never more messages are taken than pushed */
	uint64_t taken = rt_stat_read(&queue->stats.messages_taken);
	uint64_t total = rt_stat_read(&queue->pushed) - taken;
	uint32_t i;

	for (i = 0; i < lanes; i++)
		total += rt_lane_count_mt(queue->lanes[i]);
	return total;
}

/* Returns the number of wake-ups by pushes, closes and pollers. */
static uint64_t queue_count_wakes(const struct rpma_rt_queue *queue)
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

	ret = RT_REFUSE_NULL(queue, stats);
	if (ret == 0)
		ret = RT_REFUSE_FORKED(queue->rt);
	if (ret)
		return ret;
	known.batches = rt_queue_batches(queue);
#define READ(name) known.name = rt_stat_read(&queue->stats.name)
	READ(polls);
	READ(waits);
	READ(empty);
	READ(busy);
	READ(taken);
	known.messages = rt_stat_read(&queue->pushed);
	READ(sleeps);
#undef READ
	idle = rt_stat_read(&queue->stats.idle_polls);
	known.polls += idle;
	known.empty += idle;
	known.wakes = queue_count_wakes(queue);
	known.backlog = queue_backlog(queue);
	rt_histogram_read(&queue->dispatch, &known.dispatch);
	rt_histogram_read(&queue->wakeup, &known.wakeup);
	rt_stats_give(stats, size, &known, sizeof(known));
	return 0;
}

/* ---------------------------------------------------------- messages --- */

int rpma_rt_queue_hold(struct rpma_rt_queue *queue, int holds)
{
	int ret;

	ret = RT_REFUSE_NULL(queue);
	if (ret == 0)
		ret = RT_REFUSE_FORKED(queue->rt);
	if (ret == 0)
		/* relaxed: written and read by the consumer only */
		atomic_store_explicit(&queue->holds_messages, holds != 0,
				      memory_order_relaxed);
	return ret;
}

/* ------------------------------------------------------------ its fd --- */

int rpma_rt_queue_get_fd(struct rpma_rt_queue *queue, int *fd)
{
	RT_NOT_CANCELLED;
	int ret;

	ret = RT_REFUSE_NULL(queue, fd);
	if (ret == 0)
		ret = RT_REFUSE_FORKED(queue->rt);
	if (ret)
		return ret;
	/* several consumers of a shared queue may call at the same time */
	pthread_mutex_lock(&queue->lock);
	ret = rt_bell_add_fd(&queue->bell);
	pthread_mutex_unlock(&queue->lock);
	if (ret)
		return RT_REFUSED(ret, "the queue has no descriptor");
	*fd = rt_bell_fd(&queue->bell);
	return 0;
}

int rpma_rt_queue_arm(struct rpma_rt_queue *queue)
{
	enum rt_take_end end;
	int ret;

	ret = RT_REFUSE_NULL(queue);
	if (ret == 0)
		ret = RT_REFUSE_FORKED(queue->rt);
	if (ret)
		return ret;
	if (rt_bell_fd(&queue->bell) < 0)
		return RT_REFUSE(RPMA_E_INVAL,
				 "queue %u (%s) is armed before its descriptor "
				 "is asked for: call rpma_rt_queue_get_fd() "
				 "first",
				 queue->id, queue->name);
	if (queue->params.shared)
		end = rt_shared_arm(queue);
	else
		ret = rt_alone_arm(queue, &end);
	if (ret)
		return ret;
	if (end == RT_TAKE_CLOSED)
		return rt_queue_refuse_closed(queue);
	return end != RT_TAKE_EMPTY;
}
