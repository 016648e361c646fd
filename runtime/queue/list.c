/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * list.c -- the list of a runtime's queues. The runtime's lock protects the
 * list; inside that lock a change also takes the directory's lock.
 * doc/protocols/directory.md.
 */

#include "queue/queue.h"

#include <string.h>

#include "base/clock.h"
#include "base/context.h"
#include "base/runtime.h"
#include "queue/impl.h"

/* ----------------------------------------------------------------- list --- */

void rt_queue_finish_all(struct rpma_rt_queue *list)
{
	struct rpma_rt_queue *next;

	for (; list != NULL; list = next) {
		/* the consumer may delete a finished, empty queue at once, but
		 * the queue leaves the list only under the lock that the caller
		 * holds */
		next = list->next;
		rt_queue_finish(list);
	}
}

static void rt_queue_link(struct rpma_rt_queue *queue,
			  struct rpma_rt_queue **list)
{
	queue->next = *list;
	*list = queue;
}

static void rt_queue_unlink(const struct rpma_rt_queue *queue,
			    struct rpma_rt_queue **list)
{
	while (*list != queue)
		list = &(*list)->next;
	*list = queue->next;
}

struct rpma_rt_queue *rt_queue_next(const struct rpma_rt_queue *queue)
{
	return queue->next;
}

void rt_queue_list_add(struct rpma_rt *rt, struct rpma_rt_queue *queue)
{
	pthread_mutex_lock(&rt->lock);
	pthread_mutex_lock(&rt->directory);
	rt_queue_link(queue, &rt->queues);
	pthread_mutex_unlock(&rt->directory);
	if (rt_context_is_stopped(rt))
		rt_queue_finish(queue);
	pthread_mutex_unlock(&rt->lock);
	/* relaxed: a count, which orders no other data */
	atomic_fetch_add_explicit(&rt->handles, 1, memory_order_relaxed);
}

void rt_queue_list_remove(struct rpma_rt *rt, struct rpma_rt_queue *queue)
{
	pthread_mutex_lock(&rt->lock);
	pthread_mutex_lock(&rt->directory);
	rt_queue_unlink(queue, &rt->queues);
	pthread_mutex_unlock(&rt->directory);
	pthread_mutex_unlock(&rt->lock);
	/* release: pairs with the acquire in rpma_rt_delete() */
	atomic_fetch_sub_explicit(&rt->handles, 1, memory_order_release);
}

/* ------------------------------------------------------------- snapshot --- */

/*
 * The state of a queue, for a dump. Any thread that keeps the queue alive; the
 * thread waits for no other thread. doc/protocols/directory.md.
 */

/* Takes note of an item that has waited for `ms`. */
static void list_add_waiting(struct rt_queue_state *view, uint32_t ms)
{
	if (!view->has_waiting || ms > view->waiting_ms)
		view->waiting_ms = ms;
	view->has_waiting = true;
}

static void list_take_lanes(const struct rpma_rt_queue *queue, uint32_t now_ms,
			    struct rt_queue_state *view)
{
	const struct rt_lane *lane;
	uint32_t since_ms;
	uint32_t i;

	/* acquire [LANE-6] */
	view->lanes =
		atomic_load_explicit(&queue->lane_count, memory_order_acquire);
	for (i = 0; i < view->lanes; i++) {
		lane = queue->lanes[i];
		view->spilled += rt_stat_read32(&lane->spill_now);
		view->backlogged += rt_lane_is_backlogged(lane);
		if (rt_lane_waits_mt(lane, &since_ms))
			list_add_waiting(view, rt_ms_between(since_ms, now_ms));
	}
}

static void list_take_messages(const struct rpma_rt_queue *queue,
			       uint32_t now_ms, struct rt_queue_state *view)
{
	/* read first, so that never more messages are taken than pushed */
	uint64_t taken = rt_stat_read(&queue->stats.messages_taken);

	/* acquire: pairs with the release in push_count_message(), so the date
	 * is visible */
	if (atomic_load_explicit(&queue->pushed, memory_order_acquire) != taken)
		list_add_waiting(view,
				 rt_ms_between(rt_mark_since(&queue->waits,
							     (uint32_t)taken),
					       now_ms));
}

static struct rt_queue_date list_date_of(const _Atomic uint64_t *when,
					 uint32_t now_ms)
{
	uint64_t word = rt_stat_read(when);

	return (struct rt_queue_date){
		.tid = (uint32_t)(word >> 32),
		.ago_ms = rt_ms_between((uint32_t)word, now_ms),
	};
}

void rt_queue_snapshot(const struct rpma_rt_queue *queue, uint32_t now_ms,
		       struct rt_queue_state *view)
{
	uint32_t consumers = rt_stat_read32(&queue->consumers);

	*view = (struct rt_queue_state){
		.id = queue->id,
		.shared = queue->params.shared,
		.closed = rt_queue_is_closed(queue),
		.finished = rt_stat_is(&queue->finished),
		.inside = (consumers & RT_CONSUMER_INSIDE) != 0 ||
			  rt_keep_is_taken(&queue->alone),
		.inside_tid = rt_stat_read32(&queue->inside),
		.asleep = rt_bell_ways(&queue->bell) != RT_BELL_AWAKE,
		.waiters = consumers / RT_CONSUMER_WAITER,
		.delete_refused = rt_stat_is(&queue->delete_refused),
		.look = list_date_of(&queue->stats.last_look, now_ms),
		.take = list_date_of(&queue->stats.last_take, now_ms),
	};
	memcpy(view->name, queue->name, sizeof(view->name));
	list_take_lanes(queue, now_ms, view);
	list_take_messages(queue, now_ms, view);
}
