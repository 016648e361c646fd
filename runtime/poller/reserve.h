/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * reserve.h -- room in the lane of a poller and a queue for all items that may
 * be delivered there. Under the runtime's lock.
 */

#ifndef RT_POLLER_RESERVE_H
#define RT_POLLER_RESERVE_H

#include <stdint.h>

#include "rpma_rt.h"

struct rt_lane;
struct rt_poller;
struct rt_spill;

/* Room for entries more in the lane's spill; *spill_ptr is a larger one for the
 * poller to take, or NULL. ERRORS: RPMA_E_NOMEM */
int rt_reserve_spill(struct rt_lane *lane, uint32_t entries,
		     struct rt_spill **spill_ptr);

/*
 * Reserves room for entries more in the lane between the poller and the queue,
 * and references the queue; *spill_ptr as above. The caller gives both back.
 * REQUIRES: the runtime's lock. ERRORS: RPMA_E_NOMEM, RPMA_RT_E_BUSY (the
 * queue's consumer is behind), RPMA_RT_E_CLOSED (the queue is)
 */
int rt_reserve_lane(struct rt_poller *poller, struct rpma_rt_queue *queue,
		    uint32_t entries, struct rt_lane **lane_ptr,
		    struct rt_spill **spill_ptr);

#endif /* RT_POLLER_RESERVE_H */
