/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * queue_impl.h -- what a queue consists of, for the files that are one:
 * queue.c (its life), queue_take.c (the consumer), queue_push.c (messages and
 * the gate). Who owns which word: doc/protocols/lane.md.
 */

#ifndef RT_QUEUE_IMPL_H
#define RT_QUEUE_IMPL_H

#include <pthread.h>

#include "queue.h"
#include "inbox.h"

#define RT_QUEUE_CLOSED 1 /* bit of the gate; */
#define RT_QUEUE_PUSHER 2 /* the rest of it counts who is inside push */

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

/* ------------------------------------------------------- for each other --- */

/* Up to max items from all sources, beginning with another one each time.
 * The consumer, or who deletes. */
uint32_t rt_queue_take_consumer(struct rpma_rt_queue *queue,
				struct rpma_rt_completion *cmpl, uint32_t max);
/* Likewise from its messages alone. */
uint32_t rt_queue_take_messages_consumer(struct rpma_rt_queue *queue,
					 struct rpma_rt_completion *cmpl,
					 uint32_t max);
/* Frees the messages that nobody took. */
void rt_queue_free_messages(struct rpma_rt_queue *queue);
/* No push gets in any more. */
void rt_queue_close_gate(struct rpma_rt_queue *queue);

#endif /* RT_QUEUE_IMPL_H */
