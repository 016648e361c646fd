/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/* joint.c -- see joint.h. */

#include "queue/joint.h"

#include <stdlib.h>

#include "queue/impl.h"

void rt_joint_announce(struct rpma_rt_queue *queue)
{
	/* relaxed: the tail behind which the first token is brings it */
	atomic_fetch_add_explicit(&queue->joints, 1, memory_order_relaxed);
}

/* The token of a lane was taken; true: of the last one, and *item is it. */
static bool take_token(struct rpma_rt_queue *queue,
		       struct rpma_rt_completion *item)
{
	struct rt_joint *joint = (struct rt_joint *)(uintptr_t)item->context;

	/* relaxed: one consumer at a time, and who is the next comes after it
	 * [SHARED-1] */
	if (atomic_fetch_sub_explicit(&joint->lanes, 1, memory_order_relaxed) >
	    1)
		return false;
	*item = joint->item;
	free(joint);
	/* relaxed: likewise */
	atomic_fetch_sub_explicit(&queue->joints, 1, memory_order_relaxed);
	return true;
}

uint32_t rt_joint_finish_consumer(struct rpma_rt_queue *queue,
				  struct rpma_rt_completion *cmpl,
				  uint32_t count)
{
	uint32_t left = 0;
	uint32_t i;

	for (i = 0; i < count; i++) {
		if (cmpl[i].kind == RT_JOINT_KIND &&
		    !take_token(queue, &cmpl[i]))
			continue;
		cmpl[left++] = cmpl[i];
	}
	return left;
}
