/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/* list.h -- a runtime's list of queues. */

#ifndef RT_QUEUE_LIST_H
#define RT_QUEUE_LIST_H

#include "rpma_rt.h"

/* A queue that is made now; one that was is finished if the runtime stopped. */
void rt_queue_list_add(struct rpma_rt *rt, struct rpma_rt_queue *queue);
/* rt_queue_finish() is called under the same lock, so a queue is on the list
 * or not being finished. */
void rt_queue_list_remove(struct rpma_rt *rt, struct rpma_rt_queue *queue);

#endif /* RT_QUEUE_LIST_H */
