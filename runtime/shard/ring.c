/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * ring.c -- a shard wakes another: by its eventfd, once for each sleep; and
 * which thread may speak for a shard.
 */

#include "shard/shard.h"

#include <unistd.h>

#include "base/cancel.h"
#include "base/context.h"
#include "base/log.h"
#include "base/stats.h"

void rt_shard_ring_wake(const struct rpma_rt_shard *shard)
{
	RT_NOT_CANCELLED;
	const uint64_t one = 1;
	ssize_t ret;

	/* a full counter (EAGAIN) is readable too, so nothing is lost */
	ret = write(shard->eventfd, &one, sizeof(one));
	(void)ret;
}

void rt_shard_ring(struct rpma_rt_shard *shard, uint32_t other,
		   const struct rt_shard_lane *wanted)
{
	struct rpma_rt_shard *sleeper = &shard->set->shards[other];
	struct rt_shard_out *out = &shard->out[other];
	/* acquire: wants, stored before it; the caller's fence orders it behind
	 * what was handed over [SHARD-4] */
	uint32_t asleep =
		atomic_load_explicit(&sleeper->asleep, memory_order_acquire);

	if (likely((asleep & 1) == 0) || asleep == out->rung)
		return;
	/* relaxed: asleep carries it */
	if (wanted != NULL &&
	    !atomic_load_explicit(&wanted->wants, memory_order_relaxed))
		return;
	out->rung = asleep;
	rt_shard_ring_wake(sleeper);
	rt_stat_add(&shard->counters.rings, 1);
}

int rt_shard_refuse_thread(const struct rt_log_place *place,
			   const struct rpma_rt_shard *shard)
{
	int ret = rt_context_check_here(place, shard->rt);

	if (ret || shard->thread == 0 || shard->thread == rt_self_number())
		return ret;
	return rt_refuse(place, RPMA_E_INVAL,
			 "shard %u is run by another thread: only that one "
			 "sends in its name and sets its timers",
			 shard->index);
}
