/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * wake.c -- brings a consumer of a queue back without an item. Any thread, and
 * handlers of signals: nothing here takes a lock, allocates or logs.
 * doc/protocols/lane.md, "A wake".
 */

#include "queue/impl.h"

#include <errno.h>
#include <sched.h>

#include "base/context.h"
#include "queue/queue.h"

void rt_wake_await_leave(const struct rpma_rt_queue *queue)
{
	/* acquire: pairs with leave(): its last touch of the queue */
	while (atomic_load_explicit(&queue->woken, memory_order_acquire) >=
	       RT_QUEUE_WAKER)
		sched_yield();
}

/* The wake is there, and its caller inside: in one step, so that whoever comes
 * back for it and deletes the queue finds the caller. */
static void enter(struct rpma_rt_queue *queue)
{
	/* relaxed: the compare-and-swap decides */
	uint32_t old =
		atomic_load_explicit(&queue->woken, memory_order_relaxed);

	/* release: pairs with rt_wake_take_consumer() */
	while (!atomic_compare_exchange_weak_explicit(
		&queue->woken, &old, (old + RT_QUEUE_WAKER) | RT_QUEUE_WOKEN,
		memory_order_release, memory_order_relaxed))
		;
}

static void leave(struct rpma_rt_queue *queue)
{
	/* release: pairs with rt_wake_await_leave() */
	atomic_fetch_sub_explicit(&queue->woken, RT_QUEUE_WAKER,
				  memory_order_release);
}

int rpma_rt_queue_wake(struct rpma_rt_queue *queue)
{
	int saved = errno; /* of whom a signal interrupted */
	int ret;

	if (queue == NULL)
		return RPMA_E_INVAL;
	ret = rt_context_check(queue->rt);
	if (ret)
		return ret;
	enter(queue);
	/* [LANE-3]: the wake before the word */
	rt_queue_ring(queue);
	leave(queue);
	errno = saved;
	return 0;
}
