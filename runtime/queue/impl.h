/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * impl.h -- what a queue consists of, for the files that are one:
 * queue.c (its life), take.c (the consumer), shared.c (several of
 * them), push.c (messages and the gate). Who owns which word:
 * doc/protocols/lane.md, shared-queue.md.
 */

#ifndef RT_QUEUE_IMPL_H
#define RT_QUEUE_IMPL_H

#include <pthread.h>

#include "queue/queue.h"
#include "base/inbox.h"
#include "base/stats.h"

/* the word of who consumes */
#define RT_CONSUMER_INSIDE 1 /* somebody is inside: the consumer; */
#define RT_CONSUMER_AGAIN  2 /* it looks again before it leaves; */
#define RT_CONSUMER_WAITER 4 /* the rest counts who waits on the futex */

#define RT_QUEUE_CLOSED 1 /* bit of the gate; */
#define RT_QUEUE_PUSHER 2 /* the rest of it counts who is inside push */

/* A lane, and what the queue knows of it. */
struct rt_queue_lane {
	struct rt_lane lane; /* first */
	struct rpma_rt_queue *queue;
	bool is_user; /* its spill is; the poller's, after finish under lock */
};

struct rpma_rt_queue {
	/* immutable after new, but for what only grows */
	alignas(RT_CACHE_LINE) struct rpma_rt *rt;
	struct rt_queue_params params;
	uint32_t id;
	_Atomic uint32_t lane_count; /* grows under lock */
	_Atomic bool finished;
	struct rt_lane *lanes[RPMA_RT_MAX_POLLERS]; /* in order of making */

	/* the consumer's own */
	alignas(RT_CACHE_LINE) uint32_t next_source;

	/* those who consume, or want to */
	alignas(RT_CACHE_LINE) _Atomic uint32_t consumers; /* RT_CONSUMER_* */

	/* written by the sleeping consumer, read by those who publish */
	alignas(RT_CACHE_LINE) struct rt_bell bell;

	/* messages and who is inside push */
	alignas(RT_CACHE_LINE) _Atomic uint32_t gate;
	struct rt_mpsc messages;

	/* written by the consumer, some by anyone, read by anyone */
	alignas(RT_CACHE_LINE) struct {
		_Atomic uint64_t polls, waits, empty, batches, taken,
			messages_taken, busy, messages, sleeps, wakes;
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
};

/* How a take that found nothing ends. */
enum rt_take_end {
	RT_TAKE_EMPTY,
	RT_TAKE_BUSY, /* a pusher is inside a closed queue */
	RT_TAKE_CLOSED
};

/* ------------------------------------------------------- for each other --- */

/* Up to max items from all sources, beginning with another one each time.
 * The consumer, or who deletes. */
uint32_t rt_queue_take_consumer(struct rpma_rt_queue *queue,
				struct rpma_rt_completion *cmpl, uint32_t max);
/* The second look, after a fence of the caller; nothing: why, and pollers that
 * sleep on a spill are rung. */
uint32_t rt_queue_take_again_consumer(struct rpma_rt_queue *queue,
				      struct rpma_rt_completion *cmpl,
				      uint32_t max, enum rt_take_end *why);
/* The same without taking: is there anything, or an end, to know of? */
bool rt_queue_has_work_consumer(struct rpma_rt_queue *queue);
/* Likewise from its messages alone. */
uint32_t rt_queue_take_messages_consumer(struct rpma_rt_queue *queue,
					 struct rpma_rt_completion *cmpl,
					 uint32_t max);
/* Frees the messages that nobody took. */
void rt_queue_free_messages(struct rpma_rt_queue *queue);
/* Rings after a fence of its own; counted. */
void rt_queue_ring(struct rpma_rt_queue *queue);
/* After a call that may have been woken for: how long that took. */
void rt_queue_time_wakeup(struct rpma_rt_queue *queue);
/* No push gets in any more. */
void rt_queue_close_gate(struct rpma_rt_queue *queue);

/* What the calls do on a shared queue; shared.c. end_ns < 0: never,
 * otherwise of rt_now_ns(). How many; 0: why. */
uint32_t rt_shared_poll(struct rpma_rt_queue *queue,
			struct rpma_rt_completion *cmpl, uint32_t max,
			enum rt_take_end *why);
uint32_t rt_shared_wait(struct rpma_rt_queue *queue,
			struct rpma_rt_completion *cmpl, uint32_t max,
			int64_t end_ns, enum rt_take_end *why);

#endif /* RT_QUEUE_IMPL_H */
