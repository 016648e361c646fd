/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * left_out.c -- see left_out.h. Runs on the poller, but for the end of a queue,
 * which may come on any thread: hence the lock.
 */

#include "queue/left_out.h"

#include <urcu/compiler.h> /* caa_container_of: others bring it since 0.13 */

void rt_left_out_init(struct rt_left_out *list)
{
	/* relaxed: no other thread has it yet */
	atomic_store_explicit(&list->count, 0, memory_order_relaxed);
	list->by = 0;
	pthread_mutex_init(&list->lock, NULL);
	CDS_INIT_LIST_HEAD(&list->lanes);
}

void rt_left_out_fini(struct rt_left_out *list)
{
	pthread_mutex_destroy(&list->lock);
}

/* REQUIRES: the lock */
static void take_off(struct rt_left_out *list, struct rt_lane *lane)
{
	cds_list_del_init(&lane->left_link);
	/* relaxed: under the lock */
	atomic_fetch_sub_explicit(&list->count, 1, memory_order_relaxed);
}

void rt_left_out_add_poller(struct rt_left_out *list, struct rt_lane *lane,
			    uint64_t thread)
{
	pthread_mutex_lock(&list->lock);
	list->by = thread;
	lane->left_out = list;
	if (cds_list_empty(&lane->left_link)) {
		cds_list_add(&lane->left_link, &list->lanes);
		/* relaxed: under the lock */
		atomic_fetch_add_explicit(&list->count, 1,
					  memory_order_relaxed);
	}
	pthread_mutex_unlock(&list->lock);
}

bool rt_left_out_is_due_poller(struct rt_left_out *list, uint64_t thread)
{
	struct cds_list_head *at;
	struct cds_list_head *next;
	struct rt_lane *lane;
	bool is_due = false;

	if (rt_left_out_is_empty(list))
		return false;
	pthread_mutex_lock(&list->lock);
	for (at = list->lanes.next; at != &list->lanes; at = next) {
		next = at->next;
		lane = caa_container_of(at, struct rt_lane, left_link);
		if (!rt_lane_is_empty_mt(lane) &&
		    rt_left_out_may(lane, thread)) {
			is_due = true;
			continue;
		}
		/* under the lock: until then its queue is not deleted */
		if (!rt_lane_is_empty_mt(lane))
			rt_bell_ring(lane->consumer);
		take_off(list, lane);
	}
	pthread_mutex_unlock(&list->lock);
	return is_due;
}

void rt_left_out_ring_poller(struct rt_left_out *list)
{
	rt_left_out_is_due_poller(list, 0);
}

void rt_left_out_forget(struct rt_lane *lane)
{
	struct rt_left_out *list = lane->left_out;

	if (list == NULL)
		return;
	pthread_mutex_lock(&list->lock);
	if (!cds_list_empty(&lane->left_link))
		take_off(list, lane);
	pthread_mutex_unlock(&list->lock);
}
