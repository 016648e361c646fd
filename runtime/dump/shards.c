/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * shards.c -- the snapshot of shards: which sleep, what waits in lanes.
 * Under the directory's lock; of a shard that runs meanwhile what is read at
 * once need not belong together.
 */

#include "dump/snapshot.h"

#include "base/lang.h"
#include "base/runtime.h"
#include "base/stats.h"
#include "shard/shard.h"

void rt_dump_shards_count(const struct rpma_rt *rt, struct rt_dump *dump)
{
	const struct cds_list_head *link;

	cds_list_for_each(link, &rt->listed_shards)
	{
		dump->shards_count +=
			RT_FROM(const struct rpma_rt_shards, listed, link)
				->count;
	}
}

static void take_lane(const struct rt_shard_lane *lane, uint32_t from,
		      struct rt_dump_shard *out)
{
	struct rt_dump_lane *shown = &out->lanes[out->lanes_count++];
	/* acquire, both: head first, so that tail is not behind it */
	uint32_t head = atomic_load_explicit(&lane->head, memory_order_acquire);
	uint32_t tail = atomic_load_explicit(&lane->tail, memory_order_acquire);

	shown->from = from;
	shown->waiting = tail - head;
	/* relaxed: shown, orders nothing */
	shown->wants_room =
		atomic_load_explicit(&lane->wants, memory_order_relaxed);
	out->waiting += shown->waiting;
}

static void take_shard(struct rpma_rt_shards *set, uint32_t index,
		       struct rt_dump_shard *out)
{
	const struct rpma_rt_shard *shard = &set->shards[index];
	uint32_t i;

	out->index = index;
	if (shard->queue != NULL)
		out->queue = rt_queue_id(shard->queue);
	/* relaxed, here and below: shown, they order nothing */
	out->asleep =
		atomic_load_explicit(&shard->asleep, memory_order_relaxed) & 1;
	/* relaxed, both: as above */
	out->is_run =
		atomic_load_explicit(&shard->runner, memory_order_relaxed) != 0;
	out->phase = atomic_load_explicit(&shard->phase, memory_order_relaxed);
	out->timers = (uint32_t)rt_stat_read(&shard->counters.timers_set);
	rpma_rt_shard_get_stats(shard, &out->stats, sizeof(out->stats));
	/* the lock: which lanes there are */
	pthread_mutex_lock(&set->lock);
	for (i = 0; i < set->count; i++) {
		if (set->lanes[i * set->count + index] != NULL)
			take_lane(set->lanes[i * set->count + index], i, out);
	}
	pthread_mutex_unlock(&set->lock);
}

void rt_dump_shards_take(const struct rpma_rt *rt, struct rt_dump *dump)
{
	const struct cds_list_head *link;
	struct rpma_rt_shards *set;
	uint32_t sets = 0;
	uint32_t at = 0;
	uint32_t i;

	cds_list_for_each(link, &rt->listed_shards)
	{
		set = RT_FROM(struct rpma_rt_shards, listed, link);
		for (i = 0; i < set->count; i++) {
			dump->shards[at].set = sets;
			take_shard(set, i, &dump->shards[at++]);
		}
		sets++;
	}
}
