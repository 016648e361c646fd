/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * impl.h -- the inside of a queue, for the files of this folder: queue.c
 * (lanes, users, messages, end), take.c (taking), poll.c and shared.c
 * (one consumer, several), calls.c (the public calls), list.c (queues of a
 * runtime). Who owns which word: doc/protocols/lane.md, shared-queue.md.
 */

#ifndef RT_QUEUE_IMPL_H
#define RT_QUEUE_IMPL_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "rpma_rt.h"
#include "base/bell.h"
#include "base/inbox.h"
#include "base/owner.h"
#include "base/stats.h"
#include "queue/lane.h"

/* ---------------------------------------------------------------- queue --- */

/* the word of the consumers */
#define RT_CONSUMER_INSIDE 1 /* a thread is inside: the consumer; */
#define RT_CONSUMER_AGAIN  2 /* it looks again before it leaves; */
#define RT_CONSUMER_WAITER 4 /* the rest counts waiters on the futex */

#define RT_QUEUE_CLOSED 1 /* bit of the gate; */
#define RT_QUEUE_PUSHER 2 /* the rest of it counts threads inside push */

#define RT_QUEUE_WOKEN 1 /* bit of woken: nobody has come back for it yet; */
#define RT_QUEUE_WAKER 2 /* the rest of it counts who is inside wake */

struct rt_queue_params {
	uint32_t lane_size;
	uint32_t backlog_limit;
	uint32_t spin_us;
	bool shared;
};

/* A lane, and what the queue knows of it. */
struct rt_queue_lane {
	struct rt_lane lane; /* first */
	struct rpma_rt_queue *queue;
	int poller;		    /* the index */
	struct rt_lend_bell sleeps; /* of a poller that lends itself */
	/* its spill is; the poller's, after finish under lock */
	bool is_user;
	bool is_leaving;		 /* a user that is announced to leave */
	struct rt_queue_lane *idle_next; /* of rpma_rt.idle_lanes */
};

struct rpma_rt_queue {
	/* immutable after new, but for what only grows */
	alignas(RT_CACHE_LINE) struct rpma_rt *rt;
	struct rt_queue_params params;
	bool goes_in; /* a poll does, also if it finds the queue idle */
	uint32_t id;
	uint64_t shard; /* bit: the shard whose queue this is; 0: no shard */
	_Atomic uint32_t lane_count; /* grows under lock */
	_Atomic bool finished;
	_Atomic uint32_t joints; /* whose tokens may be in lanes */
	struct rt_lane *lanes[RPMA_RT_MAX_POLLERS]; /* in order of making */

	/* the consumer's own */
	alignas(RT_CACHE_LINE) uint32_t next_source;
	/* it took, and has not looked at `spilled` since */
	_Atomic bool owes_pollers;
	/* messages stay until it takes them again */
	_Atomic bool holds_messages;
	/* messages that were copied, not shown to pushers yet; how many */
	struct rt_message *copied;
	uint32_t copied_count;

	/* those who consume, or want to */
	alignas(RT_CACHE_LINE) _Atomic uint32_t consumers; /* RT_CONSUMER_* */
	_Atomic uint32_t inside; /* tid of the last to go in, for the dump */

	/* written by the sleeping consumer, read by those who publish */
	alignas(RT_CACHE_LINE) struct rt_bell bell;
	_Atomic uint32_t woken; /* any thread, also in handlers of signals */

	/* messages, and the threads inside push */
	alignas(RT_CACHE_LINE) _Atomic uint32_t gate;
	_Atomic bool is_taking;	 /* a pusher takes a message from spares */
	_Atomic uint64_t pushed; /* messages in all */
	/* messages_taken, as a pusher saw it last */
	_Atomic uint64_t taken_seen;
	struct rt_message *spares; /* of the pusher that is taking */
	struct rt_mpsc messages;
	struct rt_mark waits; /* for the dump */
	/* spare messages: from the consumer, all at once to a pusher */
	alignas(RT_CACHE_LINE) _Atomic(struct rt_message *) returned;

	/* written by the consumer, some by anyone, read by anyone */
	alignas(RT_CACHE_LINE) struct {
		/* polls that did not go in are counted apart */
		_Atomic uint64_t idle_polls, polls, waits, empty, taken,
			messages_taken, busy, sleeps, wakes;
		/* the last to take something, or of many that found nothing:
		 * tid, then when in ms; 0: none yet */
		_Atomic uint64_t last_look, last_take;
		_Atomic bool date_due; /* the next take is worth a date */
	} stats;
	struct rt_histogram dispatch;
	struct rt_histogram wakeup;

	/* under lock */
	alignas(RT_CACHE_LINE) pthread_mutex_t lock;
	uint32_t users;
	uint32_t leaving;    /* of them: wrote their last item, will put */
	pthread_cond_t left; /* users became 0 */
	struct rpma_rt_queue *next; /* the runtime's list, under its lock */
	struct rt_queue_lane *of_poller[RPMA_RT_MAX_POLLERS];

	_Atomic bool delete_refused; /* still used, for the dump */

	/* immutable after new; for the dump */
	char name[RPMA_RT_NAME_MAX + 1];
};

/* The lane's queue is deleted: keeps the lane for another queue. */
void rt_queue_free_lane(struct rpma_rt *rt, struct rt_queue_lane *lane);

/* May there be tokens of joints among items that were taken? */
static inline bool rt_queue_has_tokens(const struct rpma_rt_queue *queue)
{
	/* relaxed: the taker of a token has seen the tail that brings the
	 * count */
	return atomic_load_explicit(&queue->joints, memory_order_relaxed) > 0;
}

/* ----------------------------------------------------------------- wake --- */

/*
 * The word of a queue by which rpma_rt_queue_wake() brings a consumer back
 * without an item. doc/protocols/lane.md, "A wake".
 */

/* Has somebody woken it, and no consumer come back for that? To a consumer that
 * armed its bell, and fenced: what decides whether it sleeps. */
static inline bool rt_wake_is_due(const struct rpma_rt_queue *queue)
{
	/* relaxed: whoever takes the wake acquires */
	return (atomic_load_explicit(&queue->woken, memory_order_relaxed) &
		RT_QUEUE_WOKEN) != 0;
}

/* True: there was one, and the consumer comes back for it. */
static inline bool rt_wake_take_consumer(struct rpma_rt_queue *queue)
{
	if (!rt_wake_is_due(queue))
		return false;
	/* acquire: pairs with rpma_rt_queue_wake(): what its callers did */
	atomic_fetch_and_explicit(&queue->woken, ~(uint32_t)RT_QUEUE_WOKEN,
				  memory_order_acquire);
	return true;
}

/* ----------------------------------------------------------------- push --- */

/* Messages of a queue, for its consumer. */

/* Up to max messages; how many. */
uint32_t rt_queue_take_messages_consumer(struct rpma_rt_queue *queue,
					 struct rpma_rt_completion *cmpl,
					 uint32_t max);
/* Frees the messages that were not taken. */
void rt_queue_free_messages(struct rpma_rt_queue *queue);

/* ---------------------------------------------------------------- serve --- */

/*
 * A consumer that runs rounds of pollers that are lent. Runs on the thread of
 * the consumer. doc/protocols/lend.md.
 */

struct rpma_rt_queue;
struct rt_queue_lane;

/* Asks the threads of all pollers with a lane to the queue to lend these. */
void rt_serve_ask(const struct rpma_rt_queue *queue);
/* Is any of these pollers lent? */
bool rt_serve_is_due(const struct rpma_rt_queue *queue);
/* Runs a round of each that is lent. Returns false if none is, or if the thread
 * of one is needed. */
bool rt_serve_run(const struct rpma_rt_queue *queue);
/* After the caller's fence, before the caller sleeps: likewise, and completions
 * that come later wake the poller's thread. */
void rt_serve_arm(const struct rpma_rt_queue *queue);

/* The lane is deleted. */
void rt_serve_remove(struct rt_queue_lane *lane);

/* ----------------------------------------------------------------- list --- */

/* A runtime's list of queues. */

/* A queue that is made now; one that was is finished if the runtime stopped. */
void rt_queue_list_add(struct rpma_rt *rt, struct rpma_rt_queue *queue);
/* rt_queue_finish() is called under the same lock, so a queue is on the list
 * or not being finished. */
void rt_queue_list_remove(struct rpma_rt *rt, struct rpma_rt_queue *queue);

#endif /* RT_QUEUE_IMPL_H */
