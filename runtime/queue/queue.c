/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * queue.c -- the life of a queue: lanes, users, messages, end; see queue.h and
 * doc/protocols/lane.md, which has the labels in brackets.
 */

#include "queue/queue.h"

#include <assert.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/context.h"
#include "base/lang.h"
#include "base/log.h"
#include "base/owner.h"
#include "base/runtime.h"
#include "queue/impl.h"

/* ---------------------------------------------------------------- serve --- */

/*
 * A consumer that runs rounds of lent pollers. doc/protocols/lend.md.
 */

/* Returns the poller with this index; first: the runtime's first poller, or
 * NULL. */
static struct rt_owned *queue_find_poller(struct rt_owned *first, int index)
{
	for (; first != NULL && index > 0; index--)
		first = first->next;
	return first;
}

/* Returns the poller of a lane. REQUIRES: the runtime's pollers lend */
static struct rt_owned *serve_owned_of(const struct rt_queue_lane *lane)
{
	return queue_find_poller(rt_context_lending(lane->queue->rt),
				 lane->poller);
}

/* Returns the number of lanes whose pollers may be lent. */
static uint32_t serve_lanes_of(const struct rpma_rt_queue *queue)
{
	if (rt_context_lending(queue->rt) == NULL)
		return 0;
	/* acquire [LANE-6] */
	return atomic_load_explicit(&queue->lane_count, memory_order_acquire);
}

static struct rt_owned *serve_poller_of(const struct rpma_rt_queue *queue,
					uint32_t i)
{
	return serve_owned_of((const struct rt_queue_lane *)queue->lanes[i]);
}

void rt_serve_ask(const struct rpma_rt_queue *queue)
{
	uint32_t lanes = serve_lanes_of(queue);
	uint32_t i;

	for (i = 0; i < lanes; i++)
		rt_lend_ask(serve_poller_of(queue, i)->lending);
}

bool rt_serve_is_due(const struct rpma_rt_queue *queue)
{
	uint32_t lanes = serve_lanes_of(queue);
	uint32_t i;

	for (i = 0; i < lanes; i++) {
		if (rt_lend_is_lent(serve_poller_of(queue, i)->lending))
			return true;
	}
	return false;
}

bool rt_serve_run(const struct rpma_rt_queue *queue)
{
	uint32_t lanes = serve_lanes_of(queue);
	struct rt_owned *owned;
	bool is_any = false;
	uint32_t i;

	for (i = 0; i < lanes; i++) {
		owned = serve_poller_of(queue, i);
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
	uint32_t lanes = serve_lanes_of(queue);
	struct rt_owned *owned;
	uint32_t i;

	for (i = 0; i < lanes; i++) {
		owned = serve_poller_of(queue, i);
		(void)rt_owner_serve(owned, owned->lending->arm);
	}
}

/* Adds the queue's bell to the poller's list. Called when a lane was made,
 * under the lock of the queue. */
static void rt_serve_add(struct rt_queue_lane *lane)
{
	if (rt_context_lending(lane->queue->rt) != NULL)
		rt_lend_add_bell(serve_owned_of(lane)->lending, &lane->sleeps,
				 &lane->queue->bell);
}

void rt_serve_remove(struct rt_queue_lane *lane)
{
	if (rt_context_lending(lane->queue->rt) != NULL)
		rt_lend_remove_bell(serve_owned_of(lane)->lending,
				    &lane->sleeps);
}

/* ---------------------------------------------------------------- queue --- */

/* -------------------------------------------------------- idle lanes --- */

/* Puts the linked lanes first..last on the list of idle lanes. */
static void queue_put_idle(struct rpma_rt *rt, struct rt_queue_lane *first,
			   struct rt_queue_lane *last)
{
	/* relaxed: the compare-and-swap looks again */
	struct rt_queue_lane *head =
		atomic_load_explicit(&rt->idle_lanes, memory_order_relaxed);

	do {
		last->idle_next = head;
		/* release: pairs with the acquire in queue_take_all_idle() */
	} while (!atomic_compare_exchange_weak_explicit(
		&rt->idle_lanes, &head, first, memory_order_release,
		memory_order_relaxed));
}

/* Takes all idle lanes at once: so no lane can leave the list and come back
 * between a look and an exchange. */
static struct rt_queue_lane *queue_take_all_idle(struct rpma_rt *rt)
{
	/* acquire: pairs with the release in queue_put_idle(): the links, and
	 * the last use of the lanes */
	return atomic_exchange_explicit(&rt->idle_lanes, NULL,
					memory_order_acquire);
}

static struct rt_queue_lane *queue_take_lane(struct rpma_rt *rt)
{
	struct rt_queue_lane *lane = queue_take_all_idle(rt);
	struct rt_queue_lane *last;

	if (lane == NULL)
		return aligned_alloc(RT_APART, sizeof(*lane));
	if (lane->idle_next != NULL) {
		for (last = lane->idle_next; last->idle_next != NULL;
		     last = last->idle_next)
			;
		queue_put_idle(rt, lane->idle_next, last);
	}
	return lane;
}

void rt_queue_free_lane(struct rpma_rt *rt, struct rt_queue_lane *lane)
{
	rt_lane_fini(&lane->lane);
	queue_put_idle(rt, lane, lane);
}

void rt_queue_free_idle(struct rpma_rt *rt)
{
	struct rt_queue_lane *lane = queue_take_all_idle(rt);
	struct rt_queue_lane *next;

	for (; lane != NULL; lane = next) {
		next = lane->idle_next;
		free(lane);
	}
}

/* ------------------------------------------------------------- lanes --- */

/* Finds out which poller may hand completions to the consumer without a lane:
 * of the queue's only lane, in manual mode. Called before the lane is shown. */
static void queue_set_filler_locked(struct rpma_rt_queue *queue, uint32_t lanes,
				    int poller)
{
	struct rt_owned *filler = NULL;

	if (lanes == 1 && !queue->goes_in)
		filler = queue_find_poller(rt_context_owned(queue->rt), poller);
	/* release [LANE-6]: pairs with the acquire in rt_queue_filler(): the
	 * lane is whole */
	atomic_store_explicit(&queue->filler, filler, memory_order_release);
}

static struct rt_queue_lane *queue_new_lane_locked(struct rpma_rt_queue *queue,
						   int poller,
						   struct rt_bell *poller_bell)
{
	/* relaxed: changes only under the lock, which the caller holds */
	uint32_t count =
		atomic_load_explicit(&queue->lane_count, memory_order_relaxed);
	struct rt_queue_lane *lane;

	lane = queue_take_lane(queue->rt);
	if (lane == NULL)
		return NULL;
	if (rt_lane_init(&lane->lane, poller_bell, &queue->bell,
			 queue->params.lane_size,
			 queue->params.backlog_limit)) {
		queue_put_idle(queue->rt, lane, lane);
		return NULL;
	}
	lane->lane.kept = &queue->alone;
	lane->queue = queue;
	lane->poller = poller;
	lane->is_user = false;
	lane->is_leaving = false;
	rt_serve_add(lane);
	queue->of_poller[poller] = lane;
	queue->lanes[count] = &lane->lane;
	queue_set_filler_locked(queue, count + 1, poller);
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
		lane = queue_new_lane_locked(queue, poller, poller_bell);
	pthread_mutex_unlock(&queue->lock);
	return lane ? &lane->lane : NULL;
}

static struct rt_queue_lane *queue_lane_of(struct rt_lane *lane)
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
		pollers |= UINT64_C(1)
			   << queue_lane_of(queue->lanes[i])->poller;
	return pollers & (~rt_context_sharded(queue->rt) | queue->shard);
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
	/* [LANE-3]: what the caller published comes before the look at the
	 * bell's word */
	rt_fence_dekker();
	rt_queue_bell(queue);
}

void rt_queue_ref(struct rpma_rt_queue *queue)
{
	pthread_mutex_lock(&queue->lock);
	queue->users++;
	pthread_mutex_unlock(&queue->lock);
}

static void queue_put_locked(struct rpma_rt_queue *queue)
{
	assert(queue->users > 0);
	/* the ring is inside the lock, because a thread that finds no users may
	 * delete the queue once the lock is free */
	if (--queue->users == 0) {
		rt_queue_ring(queue);
		pthread_cond_broadcast(&queue->left);
	}
}

void rt_queue_unref(struct rpma_rt_queue *queue)
{
	pthread_mutex_lock(&queue->lock);
	queue_put_locked(queue);
	pthread_mutex_unlock(&queue->lock);
}

void rt_queue_ref_spill_poller(struct rt_lane *lane)
{
	assert(!queue_lane_of(lane)->is_user);
	queue_lane_of(lane)->is_user = true;
	rt_queue_ref(queue_lane_of(lane)->queue);
}

static void queue_set_leaving_locked(struct rt_queue_lane *lane,
				     bool is_leaving)
{
	if (lane->is_leaving == is_leaving)
		return;
	lane->is_leaving = is_leaving;
	lane->queue->leaving += is_leaving ? 1 : -1;
	/* a thread that waits for leaving users must not wait for a user that
	 * stays */
	if (!is_leaving)
		pthread_cond_broadcast(&lane->queue->left);
}

void rt_queue_announce_spill_poller(struct rt_lane *lane, bool is_leaving)
{
	struct rpma_rt_queue *queue = queue_lane_of(lane)->queue;

	assert(queue_lane_of(lane)->is_user);
	pthread_mutex_lock(&queue->lock);
	queue_set_leaving_locked(queue_lane_of(lane), is_leaving);
	pthread_mutex_unlock(&queue->lock);
}

static void queue_put_spill_locked(struct rt_queue_lane *lane)
{
	lane->is_user = false;
	queue_set_leaving_locked(lane, false);
	queue_put_locked(lane->queue);
}

void rt_queue_unref_spill_poller(struct rt_lane *lane)
{
	struct rpma_rt_queue *queue = queue_lane_of(lane)->queue;

	assert(queue_lane_of(lane)->is_user);
	pthread_mutex_lock(&queue->lock);
	queue_put_spill_locked(queue_lane_of(lane));
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
	queue_put_locked(queue);
	/* the last item may be in a spill, which is a user that stays: a thread
	 * that waits for leaving users must not wait for the spill */
	pthread_cond_broadcast(&queue->left);
	pthread_mutex_unlock(&queue->lock);
}

bool rt_queue_is_closed(const struct rpma_rt_queue *queue)
{
	/* relaxed: a caller that needs an order gets the order from
	 * elsewhere */
	return atomic_load_explicit(&queue->is_closed, memory_order_relaxed);
}

/* Closes the gate: refuses further pushes. */
static void rt_queue_close_gate(struct rpma_rt_queue *queue)
{
	/* release [QUEUE-1]: a consumer that sees the gate closed sees the
	 * earlier writes */
	atomic_fetch_or_explicit(&queue->gate, RT_QUEUE_CLOSED,
				 memory_order_release);
	/* release: behind the gate, at which a consumer looks next */
	atomic_store_explicit(&queue->is_closed, true, memory_order_release);
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

	/* release [QUEUE-2]: pairs with the acquires of the consumer, which
	 * owns lanes and spills from here on */
	atomic_store_explicit(&queue->finished, true, memory_order_release);
	rt_queue_close_gate(queue);
	pthread_mutex_lock(&queue->lock);
	for (i = 0; i < RPMA_RT_MAX_POLLERS; i++) {
		lane = queue->of_poller[i];
		if (lane == NULL || !lane->is_user)
			continue;
		/* no poller will empty the spill any more; the consumer may */
		queue_put_spill_locked(lane);
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
 * Messages of a queue: the pushes, and the end of the pushes. Labels in
 * brackets: doc/protocols/lane.md.
 */

/* spare messages that a consumer shows to pushers at a time */
#define SPARES_SHOWN   32
#define BLOCK_MESSAGES 16
#define BLOCKS_MOST    64 /* of a queue */

struct rt_message {
	struct cds_wfcq_node node;
	struct rpma_rt_completion item;
	struct rt_message *next; /* next spare message */
	bool is_single; /* of no block: freed when the content was copied */
};

/* Messages that stay with the queue, each in a line of the cache, which goes
 * from CPU to CPU. */
struct rt_message_block {
	struct rt_message_block *next;
	struct {
		alignas(RT_CACHE_LINE) struct rt_message message;
	} lines[BLOCK_MESSAGES];
};

static void push_leave_gate(struct rpma_rt_queue *queue)
{
	/* release [QUEUE-1]: pairs with the acquire of the gate in
	 * take_look_at_end(): the message, and the last access of the pusher to
	 * the queue */
	atomic_fetch_sub_explicit(&queue->gate, RT_QUEUE_PUSHER,
				  memory_order_release);
}

/* Enters the gate. Returns true if the caller is inside: the queue cannot be
 * deleted until the caller leaves. */
static bool push_enter_gate(struct rpma_rt_queue *queue)
{
	uint32_t gate;

	if (rt_queue_is_closed(queue))
		return false;
	/* acquire [QUEUE-1]: comes after every thread that left, or closed,
	 * before */
	gate = atomic_fetch_add_explicit(&queue->gate, RT_QUEUE_PUSHER,
					 memory_order_acquire);
	if ((gate & RT_QUEUE_CLOSED) == 0)
		return true;
	push_leave_gate(queue);
	return false;
}

/* Returns whether the queue has the largest number of messages, if `pushed`
 * messages were pushed before. More messages may have been taken: messages that
 * were counted later, while the caller did not run. */
static bool push_is_full(struct rpma_rt_queue *queue, uint64_t pushed)
{
	uint64_t taken;

	/* relaxed, all: counts; a message counts as pushed before it counts as
	 * taken. The consumer's count is read again only where the older value
	 * promises too little */
	taken = atomic_load_explicit(&queue->taken_seen, memory_order_relaxed);
	if ((int64_t)(pushed - taken) < RPMA_RT_MAX_MESSAGES)
		return false;
	taken = atomic_load_explicit(&queue->stats.messages_taken,
				     memory_order_relaxed);
	atomic_store_explicit(&queue->taken_seen, taken, memory_order_relaxed);
	return (int64_t)(pushed - taken) >= RPMA_RT_MAX_MESSAGES;
}

/* Takes a message that is not pushed out of the count. */
static void push_uncount_message(struct rpma_rt_queue *queue)
{
	/* relaxed: a count */
	atomic_fetch_sub_explicit(&queue->pushed, 1, memory_order_relaxed);
}

/* Counts a message that is about to be pushed; returns false if the queue is
 * full. A message counts as pushed before it counts as taken, so there are
 * never too many messages, and a few less while other pushes are refused. */
static bool push_count_message(struct rpma_rt_queue *queue)
{
	uint32_t ms = rt_now_ms();
	bool is_due = rt_mark_date(&queue->waits, ms);
	/* release: publishes the date to list_take_messages(), list.c */
	uint64_t before = atomic_fetch_add_explicit(&queue->pushed, 1,
						    memory_order_release);

	if (is_due)
		rt_mark_put(
			&queue->waits, (uint32_t)before, ms,
			(uint32_t)rt_stat_read(&queue->stats.messages_taken));
	if (!push_is_full(queue, before))
		return true;
	push_uncount_message(queue);
	return false;
}

/* --------------------------------------------------------------- spares --- */

/* Makes a block of spare messages. Called by the pusher that set is_taking.
 * NULL: the queue has as many as it may have, or there is no memory. */
__attribute__((cold)) static struct rt_message *
push_make_block(struct rpma_rt_queue *queue)
{
	struct rt_message_block *block;
	struct rt_message *msg = NULL;
	int i;

	if (queue->block_count == BLOCKS_MOST)
		return NULL;
	block = aligned_alloc(alignof(struct rt_message_block), sizeof(*block));
	if (block == NULL)
		return NULL;
	for (i = BLOCK_MESSAGES - 1; i >= 0; i--) {
		block->lines[i].message.next = msg;
		block->lines[i].message.is_single = false;
		msg = &block->lines[i].message;
	}
	block->next = queue->blocks;
	queue->blocks = block;
	queue->block_count++;
	return msg;
}

/* Takes a spare message. Called by a pusher, inside the gate. NULL: there is no
 * spare message, or another pusher is taking. */
static struct rt_message *push_take_spare(struct rpma_rt_queue *queue)
{
	struct rt_message *msg;

	/* acquire [QUEUE-3]: pairs with the release below by the pusher before:
	 * the list `spares` */
	if (atomic_exchange_explicit(&queue->is_taking, true,
				     memory_order_acquire))
		return NULL;
	msg = queue->spares;
	/* relaxed: only a look. acquire [QUEUE-3]: pairs with the release in
	 * push_show_spares() */
	if (msg == NULL && atomic_load_explicit(&queue->returned,
						memory_order_relaxed) != NULL)
		msg = atomic_exchange_explicit(&queue->returned, NULL,
					       memory_order_acquire);
	if (msg == NULL)
		msg = push_make_block(queue);
	if (msg != NULL)
		queue->spares = msg->next;
	/* release [QUEUE-3]: pairs with the acquire of the next pusher above */
	atomic_store_explicit(&queue->is_taking, false, memory_order_release);
	return msg;
}

/* Returns a message of no block. NULL: no memory. */
static struct rt_message *push_new_single(void)
{
	struct rt_message *msg = malloc(sizeof(*msg));

	if (msg != NULL)
		msg->is_single = true;
	return msg;
}

/* Shows the copied messages to pushers. Called by the consumer. */
static void push_show_spares(struct rpma_rt_queue *queue,
			     struct rt_message *last)
{
	/* acquire: pairs with the release below by an earlier consumer: the
	 * links */
	last->next = atomic_exchange_explicit(&queue->returned, NULL,
					      memory_order_acquire);
	/* release [QUEUE-3]: pairs with the acquire in push_take_spare(): the
	 * content was copied. Only the consumer stores a value other than
	 * NULL */
	atomic_store_explicit(&queue->returned, queue->copied,
			      memory_order_release);
	queue->copied = NULL;
	queue->copied_count = 0;
}

/* Keeps a message of a block as a spare message. Called by the consumer, which
 * has copied the content. */
static void push_give_spare(struct rpma_rt_queue *queue, struct rt_message *msg)
{
	if (unlikely(msg->is_single)) {
		free(msg);
		return;
	}
	msg->next = queue->copied;
	queue->copied = msg;
	if (++queue->copied_count < SPARES_SHOWN)
		return;
	while (msg->next != NULL)
		msg = msg->next;
	push_show_spares(queue, msg);
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
		push_give_spare(queue, msg);
	}
	if (count > 0)
		rt_stat_add(&queue->stats.messages_taken, count);
	return count;
}

void rt_queue_free_messages(struct rpma_rt_queue *queue)
{
	struct rt_message_block *block;
	struct rt_message_block *next;
	struct cds_wfcq_node *node;
	struct rt_message *msg;

	while ((node = rt_mpsc_pop_owner(&queue->messages)) != NULL) {
		msg = caa_container_of(node, struct rt_message, node);
		if (msg->is_single)
			free(msg);
	}
	/* no pusher is inside, and no pusher comes */
	for (block = queue->blocks; block != NULL; block = next) {
		next = block->next;
		free(block);
	}
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
	if (!push_enter_gate(queue))
		return RT_REFUSE(RPMA_RT_E_CLOSED,
				 "queue %u (%s) is closed: the message is not "
				 "pushed",
				 queue->id, queue->name);
	if (!push_count_message(queue)) {
		push_leave_gate(queue);
		return RT_REFUSE(RPMA_RT_E_BUSY,
				 "queue %u (%s) has as many messages as it "
				 "holds: poll it; the message is not pushed",
				 queue->id, queue->name);
	}
	msg = push_take_spare(queue);
	if (msg == NULL)
		msg = push_new_single();
	if (msg == NULL) {
		push_uncount_message(queue);
		push_leave_gate(queue);
		return RT_REFUSED(RPMA_E_NOMEM, "the message is not pushed");
	}
	msg->item = (struct rpma_rt_completion){
		.context = item->context,
		.user = item->user,
		.byte_len = item->byte_len,
		.imm = item->imm,
		.kind = RPMA_RT_MESSAGE,
	};
	rt_mpsc_push_mt(&queue->messages, &msg->node);
	rt_queue_ring(queue);
	push_leave_gate(queue);
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
	if (!push_enter_gate(queue))
		return 0; /* another thread has closed the queue */
	rt_queue_close_gate(queue);
	rt_queue_ring(queue);
	/* until here no call returns CLOSED, after which the queue may be
	 * deleted */
	push_leave_gate(queue);
	return 0;
}
