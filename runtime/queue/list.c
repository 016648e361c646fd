/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * list.c -- a runtime's list of queues: under its lock, inside it the
 * directory's. doc/protocols/directory.md.
 */

#include "queue/impl.h"

#include "base/context.h"
#include "base/runtime.h"
#include "queue/queue.h"

void rt_queue_list_add(struct rpma_rt *rt, struct rpma_rt_queue *queue)
{
	pthread_mutex_lock(&rt->lock);
	pthread_mutex_lock(&rt->directory);
	rt_queue_link(queue, &rt->queues);
	pthread_mutex_unlock(&rt->directory);
	if (rt_context_is_stopped(rt))
		rt_queue_finish(queue);
	pthread_mutex_unlock(&rt->lock);
	/* relaxed: a count, read under no order */
	atomic_fetch_add_explicit(&rt->handles, 1, memory_order_relaxed);
}

void rt_queue_list_remove(struct rpma_rt *rt, struct rpma_rt_queue *queue)
{
	pthread_mutex_lock(&rt->lock);
	pthread_mutex_lock(&rt->directory);
	rt_queue_unlink(queue, &rt->queues);
	pthread_mutex_unlock(&rt->directory);
	pthread_mutex_unlock(&rt->lock);
	/* release: pairs with the acquire in rpma_rt_delete() */
	atomic_fetch_sub_explicit(&rt->handles, 1, memory_order_release);
}
