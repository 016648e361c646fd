/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * end.c -- how shards stop: each shard goes through phases. A shard enters the
 * next phase when all other shards are in the present phase, so that every sent
 * message is delivered. On the shard's thread. doc/protocols/shard.md.
 */

#include "shard/shard.h"

/* Returns the least phase of all other shards. */
static enum rt_shard_phase
end_phase_of_others(const struct rpma_rt_shard *shard)
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

static void end_enter_phase(struct rpma_rt_shard *shard,
			    enum rt_shard_phase phase)
{
	uint32_t i;

	/* release [SHARD-5]: pairs with the acquire in rt_shard_phase_of():
	 * messages that the shard sent before */
	atomic_store_explicit(&shard->phase, phase, memory_order_release);
	/* [SHARD-4]: the phase is stored before the look at `asleep`, as a
	 * message is */
	rt_fence_dekker();
	for (i = 0; i < shard->count; i++) {
		if (i != shard->index)
			rt_shard_ring(shard, i);
	}
}

/* Returns whether the queue lets the shard end. In a stop of the runtime the
 * queue has to be closed and empty; in any other stop the shard leaves the
 * queue to the program. */
static bool end_is_queue_through(const struct rpma_rt_shard *shard)
{
	return !shard->is_poller_over || shard->is_queue_over;
}

bool rt_shard_end_step(struct rpma_rt_shard *shard, bool has_taken)
{
	enum rt_shard_phase phase = rt_shard_phase_of(shard);
	/* the phases as they were before this turn's look at the lanes */
	bool is_time = shard->others >= phase && !has_taken;

	if (phase == RT_SHARD_RUNS) {
		rt_shard_send_close(shard);
		end_enter_phase(shard, RT_SHARD_QUIET);
	} else if (phase == RT_SHARD_QUIET && is_time) {
		end_enter_phase(shard, RT_SHARD_DRAINED);
	} else if (phase == RT_SHARD_DRAINED && is_time &&
		   end_is_queue_through(shard)) {
		end_enter_phase(shard, RT_SHARD_ENDED);
	}
	shard->others = end_phase_of_others(shard);
	return rt_shard_phase_of(shard) == RT_SHARD_ENDED;
}

bool rt_shard_end_is_due(const struct rpma_rt_shard *shard)
{
	enum rt_shard_phase phase;

	if (!rt_shard_is_stopping(shard->set))
		return false;
	phase = rt_shard_phase_of(shard);
	if (phase == RT_SHARD_DRAINED && !end_is_queue_through(shard))
		return false;
	return phase == RT_SHARD_RUNS || end_phase_of_others(shard) >= phase;
}
