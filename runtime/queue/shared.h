/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/* shared.h -- the calls of several workers of one queue. */

#ifndef RT_QUEUE_SHARED_H
#define RT_QUEUE_SHARED_H

#include <stdint.h>

#include "rpma_rt.h"
#include "queue/take.h"

/* end_ns < 0: never, otherwise of rt_now_ns(). spins: before the caller sleeps.
 * How many; 0: why. */
uint32_t rt_shared_poll(struct rpma_rt_queue *queue,
			struct rpma_rt_completion *cmpl, uint32_t max,
			enum rt_take_end *why);
uint32_t rt_shared_wait(struct rpma_rt_queue *queue,
			struct rpma_rt_completion *cmpl, uint32_t max,
			int64_t end_ns, bool spins, enum rt_take_end *why);
/* RT_TAKE_EMPTY: armed, a ring makes the fd readable. */
enum rt_take_end rt_shared_arm(struct rpma_rt_queue *queue);

#endif /* RT_QUEUE_SHARED_H */
