/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * left_out.h -- lanes whose consumer a poller of manual mode did not ring: the
 * thread that runs the poller is the one that armed their queue, and polls it
 * next. Until then the poller does not sleep. doc/protocols/lane.md, "A ring
 * that is left out".
 */

#ifndef RT_QUEUE_LEFT_OUT_H
#define RT_QUEUE_LEFT_OUT_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include <urcu/list.h>

#include "queue/lane.h"

/* a poller's */
struct rt_left_out {
	_Atomic uint32_t count;	    /* written under the lock */
	uint64_t by;		    /* the thread that left them out */
	pthread_mutex_t lock;	    /* a leaf: the poller, and delete */
	struct cds_list_head lanes; /* under it */
};

void rt_left_out_init(struct rt_left_out *list);
void rt_left_out_fini(struct rt_left_out *list);

/* After the poller's fence, in place of rt_lane_bell_poller(), for a thread
 * that runs it by hand: may its ring be left out? */
static inline bool rt_left_out_may(const struct rt_lane *lane, uint64_t thread)
{
	return thread != 0 && rt_bell_is_armed_by(lane->consumer, thread);
}
void rt_left_out_add_poller(struct rt_left_out *list, struct rt_lane *lane,
			    uint64_t thread);

/* Before that thread sleeps: are there items that it did not take? Rings the
 * thread that is to take them now, if that is another. */
bool rt_left_out_is_due_poller(struct rt_left_out *list, uint64_t thread);
/* Another thread runs the poller next, or none does: rings all lanes. */
void rt_left_out_ring_poller(struct rt_left_out *list);

static inline bool rt_left_out_is_empty(const struct rt_left_out *list)
{
	/* relaxed: only the poller adds */
	return atomic_load_explicit(&list->count, memory_order_relaxed) == 0;
}

/* The lane's queue is deleted: no poller writes to the lane any more. */
void rt_left_out_forget(struct rt_lane *lane);

#endif /* RT_QUEUE_LEFT_OUT_H */
