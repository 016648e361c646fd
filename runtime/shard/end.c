/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * end.c -- how shards stop: each goes through phases, the next of which waits
 * until all others are in the one before, so that whatever was sent is
 * delivered. doc/protocols/shard.md.
 */

#include "shard/shard.h"

#include "base/context.h"
#include "base/log.h"

void rt_shard_end_begin(struct rpma_rt_shards *set)
{
	uint32_t i;

	/* release: what the caller did before */
	atomic_store_explicit(&set->stopping, true, memory_order_release);
	/* behind the store, as a system call; also those that are awake */
	for (i = 0; i < set->count; i++)
		rt_shard_ring_wake(&set->shards[i]);
}

int rpma_rt_shards_stop(struct rpma_rt_shards *shards)
{
	int ret = RT_REFUSE_NULL(shards);

	if (ret == 0)
		ret = RT_REFUSE_FORKED(shards->rt);
	if (ret == 0)
		rt_shard_end_begin(shards);
	return ret;
}

/* The least phase of all others. */
static enum rt_shard_phase phase_of_others(const struct rpma_rt_shard *shard)
{
	enum rt_shard_phase least = RT_SHARD_ENDED;
	enum rt_shard_phase phase;
	uint32_t i;

	for (i = 0; i < shard->count; i++) {
		if (i == shard->index)
			continue;
		phase = rt_shard_phase_of(&shard->set->shards[i]);
		if (phase < least)
			least = phase;
	}
	return least;
}

static void enter(struct rpma_rt_shard *shard, enum rt_shard_phase phase)
{
	uint32_t i;

	/* release [SHARD-5]: what the shard sent before */
	atomic_store_explicit(&shard->phase, phase, memory_order_release);
	/* [SHARD-4]: the phase before asleep, as a message */
	rt_fence_dekker();
	for (i = 0; i < shard->count; i++) {
		if (i != shard->index)
			rt_shard_ring(shard, i, NULL);
	}
}

/* Of a runtime that is stopped everything has come; else the queue is the
 * program's from here on. */
static bool is_queue_through(const struct rpma_rt_shard *shard)
{
	return !shard->is_poller_over || shard->is_queue_over;
}

bool rt_shard_end_step(struct rpma_rt_shard *shard, int messages)
{
	enum rt_shard_phase phase = rt_shard_phase_of(shard);
	/* as it was before this turn's look at the lanes */
	bool is_time = shard->others >= phase && messages == 0;

	if (phase == RT_SHARD_RUNS) {
		rt_shard_send_close(shard);
		enter(shard, RT_SHARD_QUIET);
	} else if (phase == RT_SHARD_QUIET && is_time) {
		enter(shard, RT_SHARD_DRAINED);
	} else if (phase == RT_SHARD_DRAINED && is_time &&
		   is_queue_through(shard)) {
		enter(shard, RT_SHARD_ENDED);
	}
	shard->others = phase_of_others(shard);
	return rt_shard_phase_of(shard) == RT_SHARD_ENDED;
}

bool rt_shard_end_is_due(const struct rpma_rt_shard *shard)
{
	enum rt_shard_phase phase;

	if (!rt_shard_is_stopping(shard->set))
		return false;
	phase = rt_shard_phase_of(shard);
	if (phase == RT_SHARD_DRAINED && !is_queue_through(shard))
		return false;
	return phase == RT_SHARD_RUNS || phase_of_others(shard) >= phase;
}
