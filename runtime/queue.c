/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * A queue: its lanes, its messages, its consumer's sleep, its end; see queue.h
 * and doc/protocols/lane.md, whose labels stand in brackets.
 */

#include "queue.h"

#include <assert.h>
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "inbox.h"

#define GATE_CLOSED 1 /* bit of the gate; */
#define GATE_PUSHER 2 /* the rest of it counts who is inside push */

#define NS_PER_S     1000000000
#define NS_PER_MS    1000000
#define NS_PER_US    1000
#define SPINS_A_LOOK 64 /* takes between two reads of the clock */

struct message {
	struct cds_wfcq_node node;
	struct rpma_rt_completion item;
};

struct rpma_rt_queue {
	/* immutable after new, but for what only grows */
	alignas(RT_CACHE_LINE) struct rpma_rt *rt;
	struct rt_queue_params params;
	_Atomic uint32_t lane_count; /* grows under lock */
	_Atomic bool finished;
	struct rt_lane *lanes[RPMA_RT_MAX_POLLERS]; /* in order of making */

	/* the consumer's own */
	alignas(RT_CACHE_LINE) uint32_t next_source;
	_Atomic bool consuming; /* assert builds: one at a time */

	/* written by the sleeping consumer, read by those who publish */
	alignas(RT_CACHE_LINE) struct rt_bell bell;

	/* messages and who is inside push */
	alignas(RT_CACHE_LINE) _Atomic uint32_t gate;
	struct rt_mpsc messages;

	/* under lock */
	alignas(RT_CACHE_LINE) pthread_mutex_t lock;
	uint32_t users;
	uint32_t leaving;    /* of them: wrote their last item, will put */
	pthread_cond_t left; /* users became 0 */
	struct rpma_rt_queue *next; /* the runtime's list, under its lock */
	struct rt_lane *of_poller[RPMA_RT_MAX_POLLERS];
};

/* How a take that found nothing ends. */
enum nothing {
	NOTHING_YET,
	NOTHING_FOR_A_MOMENT, /* a pusher is inside a closed queue */
	NOTHING_EVER
};

/* --------------------------------------------------------------- taking --- */

static uint32_t take_messages(struct rpma_rt_queue *queue,
			      struct rpma_rt_completion *cmpl, uint32_t max)
{
	struct cds_wfcq_node *node;
	struct message *msg;
	uint32_t count = 0;

	while (count < max) {
		node = rt_mpsc_pop_owner(&queue->messages);
		if (node == NULL)
			break;
		msg = caa_container_of(node, struct message, node);
		cmpl[count++] = msg->item;
		free(msg);
	}
	return count;
}

/* Up to max items from all sources, beginning with another one each time. */
static uint32_t take(struct rpma_rt_queue *queue,
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
			total +=
				take_messages(queue, cmpl + total, max - total);
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

	if ((gate & GATE_CLOSED) == 0)
		return NOTHING_YET;
	if (gate != GATE_CLOSED)
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
	count = take(queue, cmpl, max);
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
			count = take(queue, cmpl, max);
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

/* ---------------------------------------------------- internal, runtime --- */

static struct rt_lane *new_lane_locked(struct rpma_rt_queue *queue, int poller,
				       struct rt_bell *poller_bell)
{
	/* relaxed: only changes under the lock we hold */
	uint32_t count =
		atomic_load_explicit(&queue->lane_count, memory_order_relaxed);
	struct rt_lane *lane;

	lane = rt_lane_new(queue, poller_bell, queue->params.lane_size,
			   queue->params.backlog_limit);
	if (lane == NULL)
		return NULL;
	queue->of_poller[poller] = lane;
	queue->lanes[count] = lane;
	/* release [LANE-6]: the lane is whole */
	atomic_store_explicit(&queue->lane_count, count + 1,
			      memory_order_release);
	return lane;
}

struct rt_lane *rt_queue_lane(struct rpma_rt_queue *queue, int poller,
			      struct rt_bell *poller_bell)
{
	struct rt_lane *lane;

	assert(poller >= 0 && poller < RPMA_RT_MAX_POLLERS);
	pthread_mutex_lock(&queue->lock);
	lane = queue->of_poller[poller];
	if (lane == NULL)
		lane = new_lane_locked(queue, poller, poller_bell);
	pthread_mutex_unlock(&queue->lock);
	return lane;
}

bool rt_queue_bell(struct rpma_rt_queue *queue)
{
	return rt_bell_ring_fenced(&queue->bell);
}

void rt_queue_get(struct rpma_rt_queue *queue)
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
		rt_bell_ring(&queue->bell);
		pthread_cond_broadcast(&queue->left);
	}
}

void rt_queue_put(struct rpma_rt_queue *queue)
{
	pthread_mutex_lock(&queue->lock);
	put_locked(queue);
	pthread_mutex_unlock(&queue->lock);
}

void rt_queue_leave(struct rpma_rt_queue *queue)
{
	pthread_mutex_lock(&queue->lock);
	assert(queue->leaving < queue->users);
	queue->leaving++;
	pthread_mutex_unlock(&queue->lock);
}

void rt_queue_put_left(struct rpma_rt_queue *queue)
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

bool rt_queue_is_closed(const struct rpma_rt_queue *queue)
{
	/* relaxed: whoever needs the order has it from elsewhere */
	return (atomic_load_explicit(&queue->gate, memory_order_relaxed) &
		GATE_CLOSED) != 0;
}

static void leave_gate(struct rpma_rt_queue *queue)
{
	/* release [QUEUE-1]: our message, and our last touch of the queue */
	atomic_fetch_sub_explicit(&queue->gate, GATE_PUSHER,
				  memory_order_release);
}

/* True: inside, and the queue cannot be deleted until we left. */
static bool enter_gate(struct rpma_rt_queue *queue)
{
	uint32_t gate;

	if (rt_queue_is_closed(queue))
		return false;
	/* acquire [QUEUE-1]: we come after whoever left, or closed, before */
	gate = atomic_fetch_add_explicit(&queue->gate, GATE_PUSHER,
					 memory_order_acquire);
	if ((gate & GATE_CLOSED) == 0)
		return true;
	leave_gate(queue);
	return false;
}

static void close_gate(struct rpma_rt_queue *queue)
{
	/* release: a consumer that sees it closed sees what came before */
	atomic_fetch_or_explicit(&queue->gate, GATE_CLOSED,
				 memory_order_release);
}

void rt_queue_finish(struct rpma_rt_queue *queue)
{
	uint32_t lanes;
	uint32_t i;

	/* release [QUEUE-2]: the lanes and spills are the consumer's now */
	atomic_store_explicit(&queue->finished, true, memory_order_release);
	close_gate(queue);
	pthread_mutex_lock(&queue->lock);
	/* relaxed: only changes under the lock we hold */
	lanes = atomic_load_explicit(&queue->lane_count, memory_order_relaxed);
	for (i = 0; i < lanes; i++) {
		if (!queue->lanes[i]->holding)
			continue;
		/* no poller will empty that spill: the consumer may, or not */
		queue->lanes[i]->holding = false;
		put_locked(queue);
	}
	rt_bell_ring(&queue->bell);
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

/* --------------------------------------------------------------- public --- */

int rpma_rt_queue_new(struct rpma_rt *rt, const struct rpma_rt_queue_cfg *cfg,
		      struct rpma_rt_queue **queue_ptr)
{
	struct rpma_rt_queue *queue;
	int ret;

	if (rt == NULL || queue_ptr == NULL)
		return RPMA_E_INVAL;
	ret = rt_runtime_check(rt);
	if (ret)
		return ret;
	if (rt_runtime_is_stopped(rt))
		return RPMA_RT_E_CLOSED;
	queue = aligned_alloc(RT_CACHE_LINE, sizeof(*queue));
	if (queue == NULL)
		return RPMA_E_NOMEM;
	memset(queue, 0, sizeof(*queue));
	queue->rt = rt;
	rt_queue_cfg_params(cfg, &queue->params);
	rt_bell_init_futex(&queue->bell);
	rt_mpsc_init(&queue->messages);
	pthread_mutex_init(&queue->lock, NULL);
	pthread_cond_init(&queue->left, NULL);
	rt_runtime_queue_added(rt, queue);
	*queue_ptr = queue;
	return 0;
}

/* True when neither a user nor a pusher is left; waits for users whose last
 * item is in the queue already: they are about to put it. */
static bool is_free(struct rpma_rt_queue *queue)
{
	/* acquire [QUEUE-1]: a pusher that left touches nothing after */
	uint32_t gate =
		atomic_load_explicit(&queue->gate, memory_order_acquire);
	bool is_unused;

	pthread_mutex_lock(&queue->lock);
	while (queue->users > 0 && queue->users == queue->leaving)
		pthread_cond_wait(&queue->left, &queue->lock);
	is_unused = queue->users == 0;
	pthread_mutex_unlock(&queue->lock);
	return is_unused && gate < GATE_PUSHER;
}

static void free_messages(struct rpma_rt_queue *queue)
{
	struct cds_wfcq_node *node;

	while ((node = rt_mpsc_pop_owner(&queue->messages)) != NULL)
		free(caa_container_of(node, struct message, node));
}

/*
 * Requests that nobody took carry a handle that nobody else will put. When the
 * runtime has stopped, that is what may be left; a live queue is polled first.
 */
static void drop_items(struct rpma_rt_queue *queue)
{
	struct rpma_rt_completion item;
	struct rpma_rt_conn *conn;

	while (take(queue, &item, 1) > 0) {
		if (item.kind != RPMA_RT_EVENT ||
		    item.opcode != RPMA_RT_EVENT_REQUEST)
			continue;
		conn = (struct rpma_rt_conn *)(uintptr_t)item.context;
		rpma_rt_conn_put(&conn);
	}
}

int rpma_rt_queue_delete(struct rpma_rt_queue **queue_ptr)
{
	struct rpma_rt_queue *queue;
	int ret;
	int i;

	if (queue_ptr == NULL)
		return RPMA_E_INVAL;
	queue = *queue_ptr;
	if (queue == NULL)
		return 0;
	ret = rt_runtime_check(queue->rt);
	if (ret)
		return ret;
	if (rt_runtime_is_stopped(queue->rt))
		drop_items(queue);
	if (!is_free(queue))
		return RPMA_E_AGAIN;
	drop_items(queue);
	rt_runtime_queue_gone(queue->rt, queue);
	free_messages(queue);
	for (i = 0; i < RPMA_RT_MAX_POLLERS; i++)
		rt_lane_delete(queue->of_poller[i]);
	rt_bell_fini(&queue->bell);
	pthread_cond_destroy(&queue->left);
	pthread_mutex_destroy(&queue->lock);
	free(queue);
	*queue_ptr = NULL;
	return 0;
}

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
	count = take(queue, cmpl, (uint32_t)max);
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
	if (ret)
		return ret;
	begin_consuming(queue);
	count = take(queue, cmpl, (uint32_t)max);
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

int rpma_rt_queue_push(struct rpma_rt_queue *queue, uint64_t context,
		       void *user, uint32_t byte_len, uint32_t imm)
{
	struct message *msg;
	int ret;

	if (queue == NULL)
		return RPMA_E_INVAL;
	ret = rt_runtime_check(queue->rt);
	if (ret)
		return ret;
	msg = malloc(sizeof(*msg));
	if (msg == NULL)
		return RPMA_E_NOMEM;
	msg->item = (struct rpma_rt_completion){
		.context = context,
		.user = user,
		.byte_len = byte_len,
		.imm = imm,
		.kind = RPMA_RT_MESSAGE,
	};
	if (!enter_gate(queue)) {
		free(msg);
		return RPMA_RT_E_CLOSED;
	}
	rt_mpsc_push_mt(&queue->messages, &msg->node);
	rt_bell_ring(&queue->bell);
	leave_gate(queue);
	return 0;
}

int rpma_rt_queue_close(struct rpma_rt_queue *queue)
{
	int ret;

	if (queue == NULL)
		return RPMA_E_INVAL;
	ret = rt_runtime_check(queue->rt);
	if (ret)
		return ret;
	if (!enter_gate(queue))
		return 0; /* another has closed it */
	close_gate(queue);
	rt_bell_ring(&queue->bell);
	/* until here nobody is told that it is closed, and deletes it */
	leave_gate(queue);
	return 0;
}
