/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * joint.h -- an item that comes behind everything in several lanes of a queue.
 * A token goes into each of the lanes; the consumer drops all but the one that
 * it takes last, in whose place it sees the item. doc/protocols/lane.md.
 */

#ifndef RT_QUEUE_JOINT_H
#define RT_QUEUE_JOINT_H

#include <stdatomic.h>
#include <stdint.h>

#include "rpma_rt.h"

/* kind of a token: no value of enum rpma_rt_kind */
#define RT_JOINT_KIND 255

/* freed by the consumer that takes the last token */
struct rt_joint {
	_Atomic uint32_t lanes; /* whose tokens were not taken yet */
	struct rpma_rt_completion item;
};

/* Any thread that holds the queue, before the first token: they come. */
void rt_joint_announce(struct rpma_rt_queue *queue);
/* What a poller writes into its lane. */
static inline struct rpma_rt_completion
rt_joint_token(const struct rt_joint *joint)
{
	return (struct rpma_rt_completion){.context = (uintptr_t)joint,
					   .kind = RT_JOINT_KIND};
}

/* Drops tokens from what was taken, puts items in place of the last ones; how
 * many are left. */
uint32_t rt_joint_finish_consumer(struct rpma_rt_queue *queue,
				  struct rpma_rt_completion *cmpl,
				  uint32_t count);

#endif /* RT_QUEUE_JOINT_H */
