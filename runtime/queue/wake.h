/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * wake.h -- the word of a queue by which rpma_rt_queue_wake() brings a consumer
 * back without an item. doc/protocols/lane.md, "A wake".
 */

#ifndef RT_QUEUE_WAKE_H
#define RT_QUEUE_WAKE_H

#include "queue/impl.h"

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

/* Until nobody is inside a wake. For the thread that deletes the queue, which
 * no further call will name. */
void rt_wake_await_leave(const struct rpma_rt_queue *queue);

#endif /* RT_QUEUE_WAKE_H */
