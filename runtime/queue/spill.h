/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * spill.h -- holds completions that a lane's ring has no room for: a ring that
 * grows only by being replaced. Used by one thread at a time: the lane's
 * poller, and after it the consumer. doc/protocols/lane.md, "Memory".
 */

#ifndef RT_QUEUE_SPILL_H
#define RT_QUEUE_SPILL_H

#include <stdint.h>

#include "rpma_rt.h"

struct rt_spill {
	uint32_t announced_before; /* of its lane, should it be undone */
	uint32_t entries;
	uint32_t first;
	uint32_t count;
	struct rpma_rt_completion items[];
};

/* entries > 0; NULL: no memory. */
struct rt_spill *rt_spill_new(uint32_t entries);
void rt_spill_delete(struct rt_spill *spill);

/* Adds at the end; returns for how many there was room. */
uint32_t rt_spill_put(struct rt_spill *spill,
		      const struct rpma_rt_completion *items, uint32_t count);
/* The longest piece from items[first] on that does not wrap, up to max. */
uint32_t rt_spill_front(const struct rt_spill *spill, uint32_t max);
/* Removes so many from the front. */
void rt_spill_drop(struct rt_spill *spill, uint32_t count);

#endif /* RT_QUEUE_SPILL_H */
