/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * lane.c -- see lane.h. The memory of a lane is its set's; it is made by the
 * sender, under the set's lock (send.c).
 */

#include "shard/lane.h"

#include <stdlib.h>
#include <string.h>

struct rt_shard_lane *rt_shard_lane_new(uint32_t limit)
{
	struct rt_shard_lane *lane;
	/* the room of the answers is reserved beside that of all others */
	size_t size =
		sizeof(*lane) + 2 * (size_t)limit * sizeof(lane->slots[0]);

	lane = aligned_alloc(RT_APART,
			     (size + RT_APART - 1) / RT_APART * RT_APART);
	if (lane == NULL)
		return NULL;
	memset(lane, 0, size);
	lane->limit = limit;
	return lane;
}

uint32_t rt_shard_lane_left(const struct rt_shard_lane *lane, uint32_t next)
{
	/* relaxed: the caller is alone */
	return next - atomic_load_explicit(&lane->head, memory_order_relaxed);
}
