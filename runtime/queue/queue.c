/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * queue.c -- a queue's life: its lanes, its users, its end; see queue.h and
 * doc/protocols/lane.md, whose labels stand in brackets.
 */

#include "queue/impl.h"

#include "base/context.h"
#include "base/wait.h"
#include "queue/list.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

static _Atomic uint32_t last_id;

static struct rt_queue_lane *new_lane_locked(struct rpma_rt_queue *queue,
					     int poller,
					     struct rt_bell *poller_bell)
{
	/* relaxed: only changes under the lock we hold */
	uint32_t count =
		atomic_load_explicit(&queue->lane_count, memory_order_relaxed);
	struct rt_queue_lane *lane;

	lane = aligned_alloc(RT_APART, sizeof(*lane));
	if (lane == NULL)
		return NULL;
	if (rt_lane_init(&lane->lane, poller_bell, &queue->bell,
			 queue->params.lane_size,
			 queue->params.backlog_limit)) {
		free(lane);
		return NULL;
	}
	lane->queue = queue;
	lane->is_user = false;
	queue->of_poller[poller] = lane;
	queue->lanes[count] = &lane->lane;
	/* release [LANE-6]: the lane is whole */
	atomic_store_explicit(&queue->lane_count, count + 1,
			      memory_order_release);
	return lane;
}

struct rt_lane *rt_queue_lane(struct rpma_rt_queue *queue, int poller,
			      struct rt_bell *poller_bell)
{
	struct rt_queue_lane *lane;

	assert(poller >= 0 && poller < RPMA_RT_MAX_POLLERS);
	pthread_mutex_lock(&queue->lock);
	lane = queue->of_poller[poller];
	if (lane == NULL)
		lane = new_lane_locked(queue, poller, poller_bell);
	pthread_mutex_unlock(&queue->lock);
	return lane ? &lane->lane : NULL;
}

bool rt_queue_bell(struct rpma_rt_queue *queue)
{
	if (!rt_bell_ring_fenced(&queue->bell))
		return false;
	rt_stat_add_mt(&queue->stats.wakes, 1);
	return true;
}

void rt_queue_ring(struct rpma_rt_queue *queue)
{
	/* [LANE-3]: what the caller published before the word */
	rt_fence_dekker();
	rt_queue_bell(queue);
}

void rt_queue_ref(struct rpma_rt_queue *queue)
{
	pthread_mutex_lock(&queue->lock);
	queue->users++;
	pthread_mutex_unlock(&queue->lock);
}

static void put_locked(struct rpma_rt_queue *queue)
{
	assert(queue->users > 0);
	/* inside the lock: whoever sees no users may delete the queue, once we
	 * have let go of it */
	if (--queue->users == 0) {
		rt_queue_ring(queue);
		pthread_cond_broadcast(&queue->left);
	}
}

void rt_queue_unref(struct rpma_rt_queue *queue)
{
	pthread_mutex_lock(&queue->lock);
	put_locked(queue);
	pthread_mutex_unlock(&queue->lock);
}

static struct rt_queue_lane *lane_of(struct rt_lane *lane)
{
	return (struct rt_queue_lane *)lane;
}

void rt_queue_ref_spill_poller(struct rt_lane *lane)
{
	assert(!lane_of(lane)->is_user);
	lane_of(lane)->is_user = true;
	rt_queue_ref(lane_of(lane)->queue);
}

void rt_queue_unref_spill_poller(struct rt_lane *lane)
{
	assert(lane_of(lane)->is_user);
	lane_of(lane)->is_user = false;
	rt_queue_unref(lane_of(lane)->queue);
}

void rt_queue_announce_unref(struct rpma_rt_queue *queue)
{
	pthread_mutex_lock(&queue->lock);
	assert(queue->leaving < queue->users);
	queue->leaving++;
	pthread_mutex_unlock(&queue->lock);
}

void rt_queue_unref_announced(struct rpma_rt_queue *queue)
{
	pthread_mutex_lock(&queue->lock);
	assert(queue->leaving > 0);
	queue->leaving--;
	put_locked(queue);
	pthread_mutex_unlock(&queue->lock);
}

bool rt_queue_is_of(const struct rpma_rt_queue *queue, const struct rpma_rt *rt)
{
	return queue->rt == rt;
}

void rt_queue_finish(struct rpma_rt_queue *queue)
{
	struct rt_queue_lane *lane;
	int i;

	/* release [QUEUE-2]: the lanes and spills are the consumer's now */
	atomic_store_explicit(&queue->finished, true, memory_order_release);
	rt_queue_close_gate(queue);
	pthread_mutex_lock(&queue->lock);
	for (i = 0; i < RPMA_RT_MAX_POLLERS; i++) {
		lane = queue->of_poller[i];
		if (lane == NULL || !lane->is_user)
			continue;
		/* no poller will empty that spill: the consumer may, or not */
		lane->is_user = false;
		put_locked(queue);
	}
	rt_queue_ring(queue);
	pthread_mutex_unlock(&queue->lock);
}

void rt_queue_finish_all(struct rpma_rt_queue *list)
{
	struct rpma_rt_queue *next;

	for (; list != NULL; list = next) {
		/* a finished queue that is empty may be deleted at once, but
		 * leaves the list only under the lock that the caller holds */
		next = list->next;
		rt_queue_finish(list);
	}
}

void rt_queue_link(struct rpma_rt_queue *queue, struct rpma_rt_queue **list)
{
	queue->next = *list;
	*list = queue;
}

void rt_queue_unlink(const struct rpma_rt_queue *queue,
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

uint32_t rt_queue_id(const struct rpma_rt_queue *queue)
{
	return queue->id;
}

void rt_queue_snapshot(const struct rpma_rt_queue *queue,
		       struct rt_queue_state *view)
{
	/* relaxed: figures */
	uint32_t consumers =
		atomic_load_explicit(&queue->consumers, memory_order_relaxed);
	const struct rt_lane *lane;
	uint32_t i;

	*view = (struct rt_queue_state){
		.id = queue->id,
		.shared = queue->params.shared,
		.closed = rt_queue_is_closed(queue),
		/* relaxed: likewise */
		.finished = atomic_load_explicit(&queue->finished,
						 memory_order_relaxed),
		.inside = (consumers & RT_CONSUMER_INSIDE) != 0,
		.asleep = rt_bell_ways(&queue->bell) != RT_BELL_AWAKE,
		.waiters = consumers / RT_CONSUMER_WAITER,
		/* acquire [LANE-6] */
		.lanes = atomic_load_explicit(&queue->lane_count,
					      memory_order_acquire),
	};
	for (i = 0; i < view->lanes; i++) {
		lane = queue->lanes[i];
		/* relaxed: figures */
		view->spilled += atomic_load_explicit(&lane->spill_now,
						      memory_order_relaxed);
		view->backlogged += rt_lane_is_backlogged(lane);
	}
}

/* --------------------------------------------------------------- public --- */

int rpma_rt_queue_new(struct rpma_rt *rt, const struct rpma_rt_queue_cfg *cfg,
		      struct rpma_rt_queue **queue_ptr)
{
	struct rpma_rt_queue *queue;
	int ret;

	if (rt == NULL || queue_ptr == NULL)
		return RPMA_E_INVAL;
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
	rt_queue_cfg_params(cfg, &queue->params);
	rt_bell_init_futex(&queue->bell);
	/* relaxed: just a number */
	queue->id =
		atomic_fetch_add_explicit(&last_id, 1, memory_order_relaxed) +
		1;
	queue->bell.timed = rt_context_is_timed(rt);
	rt_mpsc_init(&queue->messages);
	pthread_mutex_init(&queue->lock, NULL);
	rt_wait_cond_init(&queue->left);
	rt_queue_list_add(rt, queue);
	*queue_ptr = queue;
	return 0;
}

/* Somebody takes from it, or waits to. */
static bool is_consumed(const struct rpma_rt_queue *queue)
{
	/* acquire: pairs with the release of the consumer that left last */
	return atomic_load_explicit(&queue->consumers, memory_order_acquire) !=
	       0;
}

/* True when neither a user nor a pusher is left; waits for users whose last
 * item is in the queue already: they are about to put it. */
static bool is_free(struct rpma_rt_queue *queue)
{
	/* acquire [QUEUE-1]: a pusher that left touches nothing after */
	uint32_t gate =
		atomic_load_explicit(&queue->gate, memory_order_acquire);
	struct rt_wait wait = {0};
	bool is_unused;

	pthread_mutex_lock(&queue->lock);
	while (queue->users > 0 && queue->users == queue->leaving)
		rt_wait_step(&wait, &queue->left, &queue->lock);
	is_unused = queue->users == 0;
	pthread_mutex_unlock(&queue->lock);
	return is_unused && gate < RT_QUEUE_PUSHER;
}

/* Items that nobody took may carry a handle that nobody else will put. When the
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
		return RPMA_E_AGAIN;
	if (rt_context_is_stopped(queue->rt))
		drop_items(queue);
	if (!is_free(queue))
		return RPMA_E_AGAIN;
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

/* ----------------------------------------------------------- statistics --- */

/* Items inside, as far as they are seen. */
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

/* By pushes and closes, and by pollers. */
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

int rpma_rt_get_queue_stats(const struct rpma_rt_queue *queue,
			    struct rpma_rt_queue_stats *stats)
{
	int ret;

	if (queue == NULL || stats == NULL)
		return RPMA_E_INVAL;
	ret = rt_context_check(queue->rt);
	if (ret)
		return ret;
#define READ(name) stats->name = rt_stat_read(&queue->stats.name)
	READ(polls);
	READ(waits);
	READ(empty);
	READ(busy);
	READ(batches);
	READ(taken);
	READ(messages);
	READ(sleeps);
#undef READ
	stats->wakes = count_wakes(queue);
	stats->backlog = backlog(queue);
	rt_histogram_read(&queue->dispatch, &stats->dispatch);
	rt_histogram_read(&queue->wakeup, &stats->wakeup);
	return 0;
}
