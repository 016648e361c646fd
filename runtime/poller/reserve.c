/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * reserve.c -- room in the lane of a poller and a queue for all items that may
 * be delivered there; see reserve.h. Under the runtime's lock.
 */

#include "poller/reserve.h"

#include "poller/poller.h"
#include "queue/lane.h"
#include "queue/queue.h"

int rt_reserve_spill(struct rt_lane *lane, uint32_t entries,
		     struct rt_spill **spill_ptr)
{
	struct rt_spill *spill = NULL;
	uint32_t needed = lane->backlog_limit + lane->reserved + entries;
	uint32_t have = lane->announced ? lane->announced : lane->backlog_limit;

	if (needed > have) {
		have = needed > 2 * have ? needed : 2 * have;
		spill = rt_spill_new(have);
		if (spill == NULL)
			return RPMA_E_NOMEM;
		lane->announced = have;
	}
	lane->reserved += entries;
	*spill_ptr = spill;
	return 0;
}

int rt_reserve_lane(struct rt_poller *poller, struct rpma_rt_queue *queue,
		    uint32_t entries, struct rt_lane **lane_ptr,
		    struct rt_spill **spill_ptr)
{
	struct rt_lane *lane =
		rt_queue_lane(queue, poller->index, &poller->bell);
	int ret;

	if (lane == NULL)
		return RPMA_E_NOMEM;
	/* items of connections that are gone may fill the spill: no new
	 * connections while it is over its limit */
	if (rt_lane_is_backlogged(lane))
		return RPMA_RT_E_BUSY;
	/* reference before check: a consumer that already got "closed, empty"
	 * saw the close before, so we see it too */
	rt_queue_ref(queue);
	ret = RPMA_RT_E_CLOSED;
	if (rt_queue_is_closed(queue))
		goto err_put_queue;
	ret = rt_reserve_spill(lane, entries, spill_ptr);
	if (ret)
		goto err_put_queue;
	*lane_ptr = lane;
	return 0;
err_put_queue:
	rt_queue_unref(queue);
	return ret;
}
