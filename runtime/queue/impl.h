/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * impl.h -- the inside of a queue, for the files of this folder: queue.c
 * (lanes, users, messages, end), take.c (taking), poll.c and shared.c (a single
 * consumer, several consumers), calls.c (the public calls), list.c (queues of a
 * runtime). Owners of each word: doc/protocols/lane.md, shared-queue.md.
 */

#ifndef RT_QUEUE_IMPL_H
#define RT_QUEUE_IMPL_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "rpma_rt.h"
#include "base/bell.h"
#include "base/inbox.h"
#include "base/keep.h"
#include "base/owner.h"
#include "base/stats.h"
#include "queue/lane.h"

/* ---------------------------------------------------------------- queue --- */

/* values of rpma_rt_queue.consumers, of a shared queue */
#define RT_CONSUMER_INSIDE 1 /* bit: a thread is inside, the consumer */
/* bit: the consumer looks again before it leaves */
#define RT_CONSUMER_AGAIN  2
#define RT_CONSUMER_WAITER 4 /* the higher bits count waiters on the futex */

#define RT_QUEUE_CLOSED 1 /* bit of rpma_rt_queue.gate */
/* the higher bits of the gate count the threads inside push */
#define RT_QUEUE_PUSHER 2

/* bit of rpma_rt_queue.woken: no consumer has returned for the wake yet */
#define RT_QUEUE_WOKEN 1
/* the higher bits of woken count the threads inside wake */
#define RT_QUEUE_WAKER 2

struct rt_queue_params {
	uint32_t lane_size;
	uint32_t backlog_limit;
	uint32_t spin_us;
	bool shared;
};

/* A lane, with the queue's words about the lane. */
struct rt_queue_lane {
	struct rt_lane lane; /* first */
	struct rpma_rt_queue *queue;
	int poller; /* index of the poller */
	/* bell of the queue, listed by a poller that lends itself */
	struct rt_lend_bell sleeps;
	/* the lane's spill is a user of the queue; belongs to the poller, and
	 * after finish to the lock */
	bool is_user;
	bool is_leaving;		 /* the spill is announced to leave */
	struct rt_queue_lane *idle_next; /* list of rpma_rt.idle_lanes */
};

struct rpma_rt_queue {
	/* immutable after new, except for words that only grow */
	alignas(RT_CACHE_LINE) struct rpma_rt *rt;
	struct rt_queue_params params;
	bool goes_in; /* every poll goes inside, also a poll of an idle queue */
	uint32_t id;
	uint64_t shard; /* bit of the shard that owns the queue; 0: no shard */
	_Atomic uint32_t lane_count; /* grows under lock */
	_Atomic bool finished;
	/* the gate is closed: each poll looks, and would take the line of the
	 * gate from the pushers */
	_Atomic bool is_closed;
	_Atomic uint32_t joints; /* joints whose tokens may be in lanes */
	/* in the order in which the lanes were made */
	struct rt_lane *lanes[RPMA_RT_MAX_POLLERS];
	/* the poller of manual mode that fills the queue's only lane, or NULL:
	 * the owner may take from the poller without the lane. Changed under
	 * lock */
	_Atomic(struct rt_owned *) filler;

	/* the consumer's own words */
	alignas(RT_CACHE_LINE) uint32_t next_source;
	/* the consumer took items, and has not looked at `spilled` since */
	_Atomic bool owes_pollers;
	/* the consumer has items of a straight take in hand, which go before
	 * everything in the queue: functions of the round take nothing */
	_Atomic bool in_hand;
	/* messages stay in the queue until the consumer takes messages again */
	_Atomic bool holds_messages;
	/* messages that were copied and not yet shown to pushers, and their
	 * number */
	struct rt_message *copied;
	uint32_t copied_count;

	/* threads that consume, or wait to consume: of a queue that is shared,
	 * and of any other queue */
	alignas(RT_CACHE_LINE) _Atomic uint32_t consumers; /* RT_CONSUMER_* */
	struct rt_keep alone;
	/* tid of the last thread that went inside, for the dump */
	_Atomic uint32_t inside;

	/* written by the sleeping consumer, read by threads that publish */
	alignas(RT_CACHE_LINE) struct rt_bell bell;
	/* written by any thread, also by handlers of signals */
	_Atomic uint32_t woken;

	/* apart from the words of the pushers: the consumer polls the head */
	alignas(RT_APART) struct rt_mpsc messages;

	/* the pushers' words, and the threads inside push */
	alignas(RT_APART) _Atomic uint32_t gate;
	_Atomic bool is_taking;	 /* a pusher takes a message from spares */
	_Atomic uint64_t pushed; /* number of messages ever pushed */
	/* the last value of stats.messages_taken that a pusher read */
	_Atomic uint64_t taken_seen;
	/* belong to the pusher that set is_taking */
	struct rt_message *spares;
	struct rt_message_block *blocks; /* every block of the queue */
	uint32_t block_count;
	struct rt_mark waits; /* dates of waiting messages, for the dump */
	/* spare messages, on their way from the consumer to a pusher */
	alignas(RT_CACHE_LINE) _Atomic(struct rt_message *) returned;

	/* written by the consumer, some words by any thread; read by any
	 * thread */
	alignas(RT_CACHE_LINE) struct {
		/* idle_polls: polls that did not go inside; polls does not
		 * count them */
		_Atomic uint64_t idle_polls, polls, waits, empty, taken,
			messages_taken, busy, sleeps, wakes;
		/* dates of the last look of many that found nothing, and of the
		 * last take: tid and the time in ms; 0: no date yet */
		_Atomic uint64_t last_look, last_take;
		_Atomic bool date_due; /* the next take has to be dated */
	} stats;
	struct rt_histogram dispatch;
	struct rt_histogram wakeup;

	/* under the lock: */
	alignas(RT_CACHE_LINE) pthread_mutex_t lock;
	uint32_t users;
	/* users that wrote their last item and are about to put */
	uint32_t leaving;
	pthread_cond_t left; /* users became 0 */
	/* list of the runtime, under the runtime's lock */
	struct rpma_rt_queue *next;
	struct rt_queue_lane *of_poller[RPMA_RT_MAX_POLLERS];

	/* a delete was refused because the queue is in use; for the dump */
	_Atomic bool delete_refused;

	/* immutable after new; for the dump */
	char name[RPMA_RT_NAME_MAX + 1];
};

/* Keeps a lane, whose queue is deleted, for another queue. */
void rt_queue_free_lane(struct rpma_rt *rt, struct rt_queue_lane *lane);

/* Returns whether items that were taken may include tokens of joints. */
static inline bool rt_queue_has_tokens(const struct rpma_rt_queue *queue)
{
	/* relaxed: the taker of a token has acquired the tail behind which the
	 * token lies, and so sees the count */
	return atomic_load_explicit(&queue->joints, memory_order_relaxed) > 0;
}

/* ----------------------------------------------------------------- wake --- */

/*
 * The word by which rpma_rt_queue_wake() makes a consumer return without an
 * item. doc/protocols/lane.md, "A wake".
 */

/* Returns whether a thread woke the queue and no consumer has returned for the
 * wake yet. Decides whether a consumer sleeps that armed its bell and
 * fenced. */
static inline bool rt_wake_is_due(const struct rpma_rt_queue *queue)
{
	/* relaxed: rt_wake_take_consumer() acquires */
	return (atomic_load_explicit(&queue->woken, memory_order_relaxed) &
		RT_QUEUE_WOKEN) != 0;
}

/* Takes a wake; returns whether there was a wake, for which the consumer has to
 * return. */
static inline bool rt_wake_take_consumer(struct rpma_rt_queue *queue)
{
	if (!rt_wake_is_due(queue))
		return false;
	/* acquire: pairs with the release in rpma_rt_queue_wake(), so the
	 * consumer sees the earlier writes of the threads that woke the
	 * queue */
	atomic_fetch_and_explicit(&queue->woken, ~(uint32_t)RT_QUEUE_WOKEN,
				  memory_order_acquire);
	return true;
}

/* ----------------------------------------------------------------- push --- */

/* Messages of a queue, for its consumer. */

/* Takes up to max messages; returns their number. */
uint32_t rt_queue_take_messages_consumer(struct rpma_rt_queue *queue,
					 struct rpma_rt_completion *cmpl,
					 uint32_t max);
/* Frees the messages that were not taken. */
void rt_queue_free_messages(struct rpma_rt_queue *queue);

/* ---------------------------------------------------------------- serve --- */

/*
 * A consumer that runs rounds of lent pollers, on the consumer's thread.
 * doc/protocols/lend.md.
 */

struct rpma_rt_queue;
struct rt_queue_lane;

/* Asks the threads of all pollers with a lane to the queue to lend their
 * pollers. */
void rt_serve_ask(const struct rpma_rt_queue *queue);
/* Returns whether any of these pollers is lent. */
bool rt_serve_is_due(const struct rpma_rt_queue *queue);
/* Runs a round of each lent poller. Returns false if no poller is lent, or if
 * the thread of a poller is needed. */
bool rt_serve_run(const struct rpma_rt_queue *queue);
/* Runs rounds as rt_serve_run() does, and arms the lent pollers: completions
 * that come later wake the poller's thread. Called between the caller's fence
 * and its sleep. */
void rt_serve_arm(const struct rpma_rt_queue *queue);

/* Takes the lane, which is deleted, from its poller's list of bells. */
void rt_serve_remove(struct rt_queue_lane *lane);

/* ----------------------------------------------------------------- list --- */

/* The list of a runtime's queues. */

/* Lists a new queue. If the runtime has stopped, the queue is finished at
 * once. */
void rt_queue_list_add(struct rpma_rt *rt, struct rpma_rt_queue *queue);
/* Takes a queue off the list. rt_queue_finish() runs under the same lock, so a
 * queue that is off the list is not being finished. */
void rt_queue_list_remove(struct rpma_rt *rt, struct rpma_rt_queue *queue);

#endif /* RT_QUEUE_IMPL_H */
