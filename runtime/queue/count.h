/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * count.h -- statistics of a consumer's calls. Inline: each call that takes
 * from a queue counts.
 */

#ifndef RT_QUEUE_COUNT_H
#define RT_QUEUE_COUNT_H

#include "base/clock.h"
#include "queue/impl.h"

/* After a call that may have slept: records how long its wake-up took. */
static inline void rt_queue_time_wakeup(struct rpma_rt_queue *queue)
{
	uint64_t ns;

	if (!queue->bell.timed)
		return;
	ns = rt_bell_take_rung_ns(&queue->bell);
	if (ns != 0)
		rt_histogram_add_mt(&queue->wakeup, rt_now_ns() - ns);
}

static inline void rt_queue_count(const struct rpma_rt_queue *queue,
				  _Atomic uint64_t *stat, uint64_t n)
{
	if (queue->params.shared)
		rt_stat_add_mt(stat, n);
	else
		rt_stat_add(stat, n);
}

/* A call, and what it found; a consumer, of a shared queue any. */
static inline void rt_queue_count_take(struct rpma_rt_queue *queue,
				       _Atomic uint64_t *calls, uint32_t count)
{
	rt_queue_count(queue, calls, 1);
	if (count == 0) {
		rt_queue_count(queue, &queue->stats.empty, 1);
		return;
	}
	rt_queue_count(queue, &queue->stats.batches, 1);
	rt_queue_count(queue, &queue->stats.taken, count);
}

#endif /* RT_QUEUE_COUNT_H */
