/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/* alone.h -- the calls of a queue's one consumer. */

#ifndef RT_QUEUE_ALONE_H
#define RT_QUEUE_ALONE_H

#include <stdint.h>

#include "rpma_rt.h"
#include "queue/take.h"

/* How many were taken; if none, why. ERRORS: RPMA_RT_E_BUSY (another thread is
 * inside) */
int rt_alone_poll(struct rpma_rt_queue *queue, struct rpma_rt_completion *cmpl,
		  uint32_t max, uint32_t *count, enum rt_take_end *why);
/* Likewise, and waits so long; < 0: without end. */
int rt_alone_wait(struct rpma_rt_queue *queue, int64_t timeout_ns,
		  struct rpma_rt_completion *cmpl, uint32_t max,
		  uint32_t *count, enum rt_take_end *why);
/* RT_TAKE_EMPTY: armed, a ring makes the fd readable. ERRORS: likewise */
int rt_alone_arm(struct rpma_rt_queue *queue, enum rt_take_end *end);

#endif /* RT_QUEUE_ALONE_H */
