/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/* push.h -- messages of a queue, for its consumer. */

#ifndef RT_QUEUE_PUSH_H
#define RT_QUEUE_PUSH_H

#include <stdint.h>

#include "rpma_rt.h"

/* Up to max messages; how many. */
uint32_t rt_queue_take_messages_consumer(struct rpma_rt_queue *queue,
					 struct rpma_rt_completion *cmpl,
					 uint32_t max);
/* Frees the messages that were not taken. */
void rt_queue_free_messages(struct rpma_rt_queue *queue);

#endif /* RT_QUEUE_PUSH_H */
