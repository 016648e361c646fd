/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * queue.c -- a queue's life: its lanes, its users, its end; see queue.h and
 * doc/protocols/lane.md, whose labels stand in brackets.
 */

#include "queue/queue.h"

#include <assert.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/context.h"
#include "base/log.h"
#include "base/owner.h"
#include "base/runtime.h"
#include "queue/impl.h"

/* ---------------------------------------------------------------- serve --- */

/*
 * A consumer that runs rounds of pollers that are lent. doc/protocols/lend.md.
 */

/* REQUIRES: the pollers lend */
static struct rt_owned *owned_of(const struct rt_queue_lane *lane)
{
	struct rt_owned *owned = rt_context_lending(lane->queue->rt);
	int i;

	for (i = 0; i < lane->poller; i++)
		owned = owned->next;
	return owned;
}

/* Returns the number of lanes whose pollers may be lent. */
static uint32_t lanes_of(const struct rpma_rt_queue *queue)
{
	if (rt_context_lending(queue->rt) == NULL)
		return 0;
	/* acquire [LANE-6] */
	return atomic_load_explicit(&queue->lane_count, memory_order_acquire);
}

static struct rt_owned *poller_of(const struct rpma_rt_queue *queue, uint32_t i)
{
	return owned_of((const struct rt_queue_lane *)queue->lanes[i]);
}

void rt_serve_ask(const struct rpma_rt_queue *queue)
{
	uint32_t lanes = lanes_of(queue);
	uint32_t i;

	for (i = 0; i < lanes; i++)
		rt_lend_ask(poller_of(queue, i)->lending);
}

bool rt_serve_is_due(const struct rpma_rt_queue *queue)
{
	uint32_t lanes = lanes_of(queue);
	uint32_t i;

	for (i = 0; i < lanes; i++) {
		if (rt_lend_is_lent(poller_of(queue, i)->lending))
			return true;
	}
	return false;
}

bool rt_serve_run(const struct rpma_rt_queue *queue)
{
	uint32_t lanes = lanes_of(queue);
	struct rt_owned *owned;
	bool is_any = false;
	uint32_t i;

	for (i = 0; i < lanes; i++) {
		owned = poller_of(queue, i);
		if (!rt_lend_is_lent(owned->lending))
			continue;
		if (!rt_owner_serve(owned, owned->lending->serve))
			return false;
		is_any = true;
	}
	return is_any;
}

void rt_serve_arm(const struct rpma_rt_queue *queue)
{
	uint32_t lanes = lanes_of(queue);
	struct rt_owned *owned;
	uint32_t i;

	for (i = 0; i < lanes; i++) {
		owned = poller_of(queue, i);
		(void)rt_owner_serve(owned, owned->lending->arm);
	}
}

/* A lane to a queue was made, under the lock of the queue; is deleted. */
/* A lane to a queue was made, under the lock of the queue. */
static void rt_serve_add(struct rt_queue_lane *lane)
{
	if (rt_context_lending(lane->queue->rt) != NULL)
		rt_lend_add_bell(owned_of(lane)->lending, &lane->sleeps,
				 &lane->queue->bell);
}

void rt_serve_remove(struct rt_queue_lane *lane)
{
	if (rt_context_lending(lane->queue->rt) != NULL)
		rt_lend_remove_bell(owned_of(lane)->lending, &lane->sleeps);
}

/* ---------------------------------------------------------------- queue --- */

/* -------------------------------------------------------- idle lanes --- */

/* Lanes first..last, linked. */
static void put_idle(struct rpma_rt *rt, struct rt_queue_lane *first,
		     struct rt_queue_lane *last)
{
	/* relaxed: the exchange looks again */
	struct rt_queue_lane *head =
		atomic_load_explicit(&rt->idle_lanes, memory_order_relaxed);

	do {
		last->idle_next = head;
		/* release: pairs with take_all_idle() */
	} while (!atomic_compare_exchange_weak_explicit(
		&rt->idle_lanes, &head, first, memory_order_release,
		memory_order_relaxed));
}

/* All of them at once, so that no lane can have been away in between. */
static struct rt_queue_lane *take_all_idle(struct rpma_rt *rt)
{
	/* acquire: the links, and what was done with the lanes before */
	return atomic_exchange_explicit(&rt->idle_lanes, NULL,
					memory_order_acquire);
}

static struct rt_queue_lane *take_lane(struct rpma_rt *rt)
{
	struct rt_queue_lane *lane = take_all_idle(rt);
	struct rt_queue_lane *last;

	if (lane == NULL)
		return aligned_alloc(RT_APART, sizeof(*lane));
	if (lane->idle_next != NULL) {
		for (last = lane->idle_next; last->idle_next != NULL;
		     last = last->idle_next)
			;
		put_idle(rt, lane->idle_next, last);
	}
	return lane;
}

void rt_queue_free_lane(struct rpma_rt *rt, struct rt_queue_lane *lane)
{
	rt_lane_fini(&lane->lane);
	put_idle(rt, lane, lane);
}

void rt_queue_free_idle(struct rpma_rt *rt)
{
	struct rt_queue_lane *lane = take_all_idle(rt);
	struct rt_queue_lane *next;

	for (; lane != NULL; lane = next) {
		next = lane->idle_next;
		free(lane);
	}
}

/* ------------------------------------------------------------- lanes --- */

static struct rt_queue_lane *new_lane_locked(struct rpma_rt_queue *queue,
					     int poller,
					     struct rt_bell *poller_bell)
{
	/* relaxed: only changes under the lock we hold */
	uint32_t count =
		atomic_load_explicit(&queue->lane_count, memory_order_relaxed);
	struct rt_queue_lane *lane;

	lane = take_lane(queue->rt);
	if (lane == NULL)
		return NULL;
	if (rt_lane_init(&lane->lane, poller_bell, &queue->bell,
			 queue->params.lane_size,
			 queue->params.backlog_limit)) {
		put_idle(queue->rt, lane, lane);
		return NULL;
	}
	lane->queue = queue;
	lane->poller = poller;
	lane->is_user = false;
	lane->is_leaving = false;
	rt_serve_add(lane);
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

static struct rt_queue_lane *lane_of(struct rt_lane *lane)
{
	return (struct rt_queue_lane *)lane;
}

void rt_queue_set_shard(struct rpma_rt_queue *queue, uint32_t shard)
{
	queue->shard = UINT64_C(1) << shard;
}

uint64_t rt_queue_pollers(const struct rpma_rt_queue *queue)
{
	/* acquire [LANE-6] */
	uint32_t lanes =
		atomic_load_explicit(&queue->lane_count, memory_order_acquire);
	uint64_t pollers = 0;
	uint32_t i;

	for (i = 0; i < lanes; i++)
		pollers |= UINT64_C(1) << lane_of(queue->lanes[i])->poller;
	return rt_context_has_shards(queue->rt) ? pollers & queue->shard
						: pollers;
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
	/* inside the lock: a thread that sees no users may delete the queue,
	 * once we have unlocked it */
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

void rt_queue_ref_spill_poller(struct rt_lane *lane)
{
	assert(!lane_of(lane)->is_user);
	lane_of(lane)->is_user = true;
	rt_queue_ref(lane_of(lane)->queue);
}

static void set_leaving_locked(struct rt_queue_lane *lane, bool is_leaving)
{
	if (lane->is_leaving == is_leaving)
		return;
	lane->is_leaving = is_leaving;
	lane->queue->leaving += is_leaving ? 1 : -1;
	/* a thread that waits for leaving users must not wait for one that
	 * stays */
	if (!is_leaving)
		pthread_cond_broadcast(&lane->queue->left);
}

void rt_queue_announce_spill_poller(struct rt_lane *lane, bool is_leaving)
{
	struct rpma_rt_queue *queue = lane_of(lane)->queue;

	assert(lane_of(lane)->is_user);
	pthread_mutex_lock(&queue->lock);
	set_leaving_locked(lane_of(lane), is_leaving);
	pthread_mutex_unlock(&queue->lock);
}

static void put_spill_locked(struct rt_queue_lane *lane)
{
	lane->is_user = false;
	set_leaving_locked(lane, false);
	put_locked(lane->queue);
}

void rt_queue_unref_spill_poller(struct rt_lane *lane)
{
	struct rpma_rt_queue *queue = lane_of(lane)->queue;

	assert(lane_of(lane)->is_user);
	pthread_mutex_lock(&queue->lock);
	put_spill_locked(lane_of(lane));
	pthread_mutex_unlock(&queue->lock);
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
	/* its last item may be in a spill, which is a user that stays: a thread
	 * that waits for leaving users must not wait for that one */
	pthread_cond_broadcast(&queue->left);
	pthread_mutex_unlock(&queue->lock);
}

bool rt_queue_is_closed(const struct rpma_rt_queue *queue)
{
	/* relaxed: a caller that needs the order has it from elsewhere */
	return (atomic_load_explicit(&queue->gate, memory_order_relaxed) &
		RT_QUEUE_CLOSED) != 0;
}

/* Refuses further pushes. */
static void rt_queue_close_gate(struct rpma_rt_queue *queue)
{
	/* release: a consumer that sees it closed sees what came before */
	atomic_fetch_or_explicit(&queue->gate, RT_QUEUE_CLOSED,
				 memory_order_release);
}

int rt_queue_check_of(const struct rpma_rt_queue *queue,
		      const struct rpma_rt *rt, const char *field)
{
	if (rt_queue_is_of(queue, rt))
		return 0;
	return RT_REFUSE(RPMA_E_INVAL,
			 "%s is of another runtime: give a queue of this one",
			 field);
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
		put_spill_locked(lane);
	}
	rt_queue_ring(queue);
	pthread_mutex_unlock(&queue->lock);
}

uint32_t rt_queue_id(const struct rpma_rt_queue *queue)
{
	return queue->id;
}

/* ----------------------------------------------------------------- push --- */

/*
 * Messages of a queue: pushes, and the end of the pushes. Labels in brackets:
 * doc/protocols/lane.md.
 */

#define SPARES_SHOWN 32	  /* messages that a consumer shows at once */
#define SPARES_MOST  1024 /* spare messages of a queue, at most */

struct rt_message {
	struct cds_wfcq_node node;
	struct rpma_rt_completion item;
	struct rt_message *next; /* of a spare one */
	uint32_t count; /* of the first spare one: how many there are */
};

static void leave_gate(struct rpma_rt_queue *queue)
{
	/* release [QUEUE-1]: our message, and our last touch of the queue */
	atomic_fetch_sub_explicit(&queue->gate, RT_QUEUE_PUSHER,
				  memory_order_release);
}

/* True: inside, and the queue cannot be deleted until we left. */
static bool enter_gate(struct rpma_rt_queue *queue)
{
	uint32_t gate;

	if (rt_queue_is_closed(queue))
		return false;
	/* acquire [QUEUE-1]: we come after all that left, or closed, before */
	gate = atomic_fetch_add_explicit(&queue->gate, RT_QUEUE_PUSHER,
					 memory_order_acquire);
	if ((gate & RT_QUEUE_CLOSED) == 0)
		return true;
	leave_gate(queue);
	return false;
}

/* Are there as many as may be, when so many were pushed before? */
static bool is_full(struct rpma_rt_queue *queue, uint64_t pushed)
{
	uint64_t taken;

	/* relaxed, all: counts; what was taken was counted before. The
	 * consumer's own count is read again only where the old one promises
	 * too little */
	taken = atomic_load_explicit(&queue->taken_seen, memory_order_relaxed);
	if (pushed - taken < RPMA_RT_MAX_MESSAGES)
		return false;
	taken = atomic_load_explicit(&queue->stats.messages_taken,
				     memory_order_relaxed);
	atomic_store_explicit(&queue->taken_seen, taken, memory_order_relaxed);
	return pushed - taken >= RPMA_RT_MAX_MESSAGES;
}

/* False: there are as many as may be. Pushed before it is counted as taken, so
 * never more, and a few less while others are refused. */
static bool count_message(struct rpma_rt_queue *queue)
{
	uint32_t ms = rt_now_ms();
	bool is_due = rt_mark_date(&queue->waits, ms);
	/* release: the date, to rt_queue_snapshot() */
	uint64_t before = atomic_fetch_add_explicit(&queue->pushed, 1,
						    memory_order_release);

	if (is_due)
		rt_mark_put(
			&queue->waits, (uint32_t)before, ms,
			(uint32_t)rt_stat_read(&queue->stats.messages_taken));
	if (!is_full(queue, before))
		return true;
	/* relaxed: a count */
	atomic_fetch_sub_explicit(&queue->pushed, 1, memory_order_relaxed);
	return false;
}

/* --------------------------------------------------------------- spares --- */

static void free_chain(struct rt_message *msg)
{
	struct rt_message *next;

	for (; msg != NULL; msg = next) {
		next = msg->next;
		free(msg);
	}
}

/* A pusher, inside the gate: a spare message; NULL: there is none, or another
 * pusher takes one. */
static struct rt_message *take_spare(struct rpma_rt_queue *queue)
{
	struct rt_message *msg;

	/* acquire [QUEUE-3]: spares, of the pusher before */
	if (atomic_exchange_explicit(&queue->is_taking, true,
				     memory_order_acquire))
		return NULL;
	msg = queue->spares;
	/* relaxed: a look. acquire [QUEUE-3]: pairs with show_spares() */
	if (msg == NULL && atomic_load_explicit(&queue->returned,
						memory_order_relaxed) != NULL)
		msg = atomic_exchange_explicit(&queue->returned, NULL,
					       memory_order_acquire);
	if (msg != NULL)
		queue->spares = msg->next;
	/* release [QUEUE-3]: to the next pusher */
	atomic_store_explicit(&queue->is_taking, false, memory_order_release);
	return msg;
}

/* The consumer: shows pushers what was copied, or frees that if they have as
 * many as may be. */
static void show_spares(struct rpma_rt_queue *queue, struct rt_message *last)
{
	struct rt_message *first = queue->copied;
	/* acquire: count, and the links, of a consumer before */
	struct rt_message *old = atomic_exchange_explicit(
		&queue->returned, NULL, memory_order_acquire);

	first->count = queue->copied_count + (old != NULL ? old->count : 0);
	last->next = old;
	if (first->count > SPARES_MOST) {
		last->next = NULL;
		free_chain(first);
		first = old;
	}
	/* release [QUEUE-3]: the content was copied. Only the consumer makes
	 * the word other than NULL */
	atomic_store_explicit(&queue->returned, first, memory_order_release);
	queue->copied = NULL;
	queue->copied_count = 0;
}

/* The consumer has copied the message. */
static void give_spare(struct rpma_rt_queue *queue, struct rt_message *msg)
{
	msg->next = queue->copied;
	queue->copied = msg;
	if (++queue->copied_count < SPARES_SHOWN)
		return;
	while (msg->next != NULL)
		msg = msg->next;
	show_spares(queue, msg);
}

uint32_t rt_queue_take_messages_consumer(struct rpma_rt_queue *queue,
					 struct rpma_rt_completion *cmpl,
					 uint32_t max)
{
	struct cds_wfcq_node *node;
	struct rt_message *msg;
	uint32_t count = 0;

	while (count < max) {
		node = rt_mpsc_pop_owner(&queue->messages);
		if (node == NULL)
			break;
		msg = caa_container_of(node, struct rt_message, node);
		cmpl[count++] = msg->item;
		give_spare(queue, msg);
	}
	if (count > 0)
		rt_stat_add(&queue->stats.messages_taken, count);
	return count;
}

void rt_queue_free_messages(struct rpma_rt_queue *queue)
{
	struct cds_wfcq_node *node;

	while ((node = rt_mpsc_pop_owner(&queue->messages)) != NULL)
		free(caa_container_of(node, struct rt_message, node));
	free_chain(queue->copied);
	free_chain(queue->spares);
	/* relaxed: no pusher is inside, and none comes */
	free_chain(
		atomic_load_explicit(&queue->returned, memory_order_relaxed));
}

/* --------------------------------------------------------------- public --- */

int rpma_rt_queue_push(struct rpma_rt_queue *queue,
		       const struct rpma_rt_completion *item)
{
	struct rt_message *msg;
	int ret;

	ret = RT_REFUSE_NULL(queue, item);
	if (ret == 0)
		ret = RT_REFUSE_FORKED(queue->rt);
	if (ret)
		return ret;
	if (!enter_gate(queue))
		return RT_REFUSE(RPMA_RT_E_CLOSED,
				 "queue %u (%s) is closed: the message is not "
				 "pushed",
				 queue->id, queue->name);
	msg = take_spare(queue);
	if (msg == NULL)
		msg = malloc(sizeof(*msg));
	if (msg == NULL) {
		leave_gate(queue);
		return RT_REFUSED(RPMA_E_NOMEM, "the message is not pushed");
	}
	msg->item = (struct rpma_rt_completion){
		.context = item->context,
		.user = item->user,
		.byte_len = item->byte_len,
		.imm = item->imm,
		.kind = RPMA_RT_MESSAGE,
	};
	if (!count_message(queue)) {
		leave_gate(queue);
		free(msg);
		return RT_REFUSE(RPMA_RT_E_BUSY,
				 "queue %u (%s) has as many messages as it "
				 "holds: poll it; the message is not pushed",
				 queue->id, queue->name);
	}
	rt_mpsc_push_mt(&queue->messages, &msg->node);
	rt_queue_ring(queue);
	leave_gate(queue);
	return 0;
}

int rpma_rt_queue_close(struct rpma_rt_queue *queue)
{
	int ret;

	ret = RT_REFUSE_NULL(queue);
	if (ret == 0)
		ret = RT_REFUSE_FORKED(queue->rt);
	if (ret)
		return ret;
	if (!enter_gate(queue))
		return 0; /* another has closed it */
	rt_queue_close_gate(queue);
	rt_queue_ring(queue);
	/* until here no call answers CLOSED, after which it may be deleted */
	leave_gate(queue);
	return 0;
}
