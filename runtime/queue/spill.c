/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * spill.c -- the ring behind a full lane; see lane.h.
 */

#include "queue/lane.h"

#include <assert.h>
#include <stdlib.h>

struct rt_spill *rt_spill_new(uint32_t entries)
{
	struct rt_spill *spill;

	assert(entries > 0);
	spill = malloc(sizeof(*spill) +
		       entries * sizeof(struct rpma_rt_completion));
	if (spill == NULL)
		return NULL;
	spill->entries = entries;
	spill->announced_before = 0;
	spill->first = 0;
	spill->count = 0;
	return spill;
}

void rt_spill_delete(struct rt_spill *spill)
{
	free(spill);
}

struct rpma_rt_completion *rt_spill_place(struct rt_spill *spill)
{
	if (spill->count == spill->entries)
		return NULL;
	return &spill->items[(spill->first + spill->count++) % spill->entries];
}

uint32_t rt_spill_put(struct rt_spill *spill,
		      const struct rpma_rt_completion *items, uint32_t count)
{
	uint32_t at = (spill->first + spill->count) % spill->entries;
	uint32_t i;

	if (count > spill->entries - spill->count)
		count = spill->entries - spill->count;
	for (i = 0; i < count; i++) {
		spill->items[at] = items[i];
		if (++at == spill->entries)
			at = 0;
	}
	spill->count += count;
	return count;
}

uint32_t rt_spill_front(const struct rt_spill *spill, uint32_t max)
{
	uint32_t count = spill->entries - spill->first;

	if (count > spill->count)
		count = spill->count;
	return count < max ? count : max;
}

void rt_spill_drop(struct rt_spill *spill, uint32_t count)
{
	spill->count -= count;
	spill->first += count;
	if (spill->first >= spill->entries)
		spill->first -= spill->entries;
}
