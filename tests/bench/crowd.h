/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * crowd.h -- many idle connections that stand by and are torn down.
 * Both ends are in this process and on the same poller; a thread takes the
 * CLOSED events.
 */

#ifndef CROWD_H
#define CROWD_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "world.h"

struct crowd {
	struct world *world;
	struct rpma_rt_queue *queue; /* of all ends */
	struct rpma_rt_conn **conns; /* active ends first */
	uint32_t ends;
	_Atomic uint32_t closed; /* ends */
	pthread_t thread;
};

/* Connects; an odd end is left out. Queue pairs of depth 1; their completions
 * go to the crowd's queue, made with queue_cfg (NULL: defaults). Skips the
 * program when the device has no room for so many and some others. */
void crowd_open(struct crowd *crowd, struct world *world, int poller,
		uint32_t ends, const struct rpma_rt_queue_cfg *queue_cfg);
/* Connects like crowd_open(), but begins at_once connections before the first
 * is established. */
void crowd_open_at_once(struct crowd *crowd, struct world *world, int poller,
			uint32_t ends,
			const struct rpma_rt_queue_cfg *queue_cfg,
			uint32_t at_once);
/* Closes all and returns at once. */
void crowd_close(struct crowd *crowd);
bool crowd_is_closed(const struct crowd *crowd);
/* Waits until all are closed, frees. */
void crowd_end(struct crowd *crowd);

#endif /* CROWD_H */
