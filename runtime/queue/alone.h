/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/* alone.h -- the calls of a queue's one consumer. */

#ifndef RT_QUEUE_ALONE_H
#define RT_QUEUE_ALONE_H

#include <stdint.h>

#include "rpma_rt.h"
#include "queue/count.h"
#include "queue/impl.h"
#include "queue/take.h"

/* On a queue that is not shared a second consumer is a mistake of the program:
 * an assertion where those are compiled, else refused: RPMA_RT_E_BUSY. */
int rt_alone_refuse(const struct rpma_rt_queue *queue);

static inline bool rt_alone_try_enter(struct rpma_rt_queue *queue)
{
	uint32_t nobody = 0;

	/* acquire: pairs with rt_alone_leave(); a consumer that took over sees
	 * what the one before it did. Failure: nothing is read */
	return atomic_compare_exchange_strong_explicit(
		&queue->consumers, &nobody, RT_CONSUMER_INSIDE,
		memory_order_acquire, memory_order_relaxed);
}

static inline int rt_alone_enter(struct rpma_rt_queue *queue)
{
	if (!rt_alone_try_enter(queue))
		return rt_alone_refuse(queue);
	rt_queue_go_in(queue); /* it may stay inside for long */
	return 0;
}

static inline void rt_alone_leave(struct rpma_rt_queue *queue)
{
	/* release: to the next one's rt_alone_try_enter() */
	atomic_store_explicit(&queue->consumers, 0, memory_order_release);
}

/* How many were taken; if none, why. ERRORS: RPMA_RT_E_BUSY (another thread is
 * inside) */
int rt_alone_poll(struct rpma_rt_queue *queue, struct rpma_rt_completion *cmpl,
		  uint32_t max, uint32_t *count, enum rt_take_end *why);
/* Likewise, and waits so long; < 0: without end. spins: before the caller
 * sleeps. */
int rt_alone_wait(struct rpma_rt_queue *queue, int64_t timeout_ns, bool spins,
		  struct rpma_rt_completion *cmpl, uint32_t max,
		  uint32_t *count, enum rt_take_end *why);
/* RT_TAKE_EMPTY: armed, a ring makes the fd readable. ERRORS: likewise */
int rt_alone_arm(struct rpma_rt_queue *queue, enum rt_take_end *end);

#endif /* RT_QUEUE_ALONE_H */
