/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/* take.h -- taking from a queue; the callers decide which thread consumes. */

#ifndef RT_QUEUE_TAKE_H
#define RT_QUEUE_TAKE_H

#include <stdbool.h>
#include <stdint.h>

#include "rpma_rt.h"
#include "base/clock.h"

/* How a take that found nothing ends. */
enum rt_take_end {
	RT_TAKE_EMPTY,
	RT_TAKE_SOME,  /* of a look only: there is something */
	RT_TAKE_BUSY,  /* a pusher is inside a closed queue */
	RT_TAKE_WOKEN, /* rpma_rt_queue_wake(), and nothing else */
	RT_TAKE_CLOSED
};

/* Up to max items from all sources, beginning with another one each time.
 * Thread: the consumer, or the one that deletes. */
uint32_t rt_queue_take_consumer(struct rpma_rt_queue *queue,
				struct rpma_rt_completion *cmpl, uint32_t max);
/* The end of a take of so many items: tokens of joints are dropped. If they
 * were all, takes again. */
uint32_t rt_queue_take_tokens_consumer(struct rpma_rt_queue *queue,
				       struct rpma_rt_completion *cmpl,
				       uint32_t count, uint32_t max);
/* A poll: takes; of nothing, says why and rings pollers that sleep on a spill.
 */
uint32_t rt_queue_poll_consumer(struct rpma_rt_queue *queue,
				struct rpma_rt_completion *cmpl, uint32_t max,
				enum rt_take_end *why);
/* The second look of a consumer about to sleep, after its fence: likewise. */
uint32_t rt_queue_take_again_consumer(struct rpma_rt_queue *queue,
				      struct rpma_rt_completion *cmpl,
				      uint32_t max, enum rt_take_end *why);
/* The same without taking: RT_TAKE_EMPTY if a take would find nothing. */
enum rt_take_end rt_queue_look_consumer(struct rpma_rt_queue *queue);

/* RPMA_RT_E_CLOSED, logged: a take that found the end. */
int rt_queue_refuse_closed(const struct rpma_rt_queue *queue);

/* When a wait of that length ends, of rt_now_ns(); -1: never */
static inline int64_t rt_queue_end_ns(int64_t timeout_ns)
{
	return timeout_ns < 0 ? -1 : (int64_t)rt_now_ns() + timeout_ns;
}

#endif /* RT_QUEUE_TAKE_H */
