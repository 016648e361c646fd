/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * A runtime without threads, with only the functions that a queue calls, and
 * helpers that the tests of lane and queue share.
 */

#ifndef RT_STUB_H
#define RT_STUB_H

#include <stdbool.h>
#include <stdint.h>

#include "queue/queue.h"

struct rpma_rt {
	unsigned fork_generation; /* first; 0 is this process's */
	bool stopped;
	bool timed;
	int queues;  /* added and not gone */
	int drops;   /* items that a queue dropped */
	int pollers; /* of which each has a bell */
	struct rt_bell bells[RPMA_RT_MAX_POLLERS];
};

/* The calling thread passes for a poller. */
extern _Thread_local bool stub_on_poller;

void stub_rt_init(struct rpma_rt *rt, int pollers);
void stub_rt_fini(struct rpma_rt *rt);

/* A queue with this lane size and backlog limit that waits without spinning;
 * NULL when it could not be made. */
struct rpma_rt_queue *stub_queue_new(struct rpma_rt *rt, uint32_t lane_size,
				     uint32_t backlog_limit);

/* A completion that is told apart by its context. */
struct rpma_rt_completion stub_item(uint64_t context);

/* Stages count items with contexts from first on and publishes them. */
void stub_publish(struct rt_lane *lane, uint64_t first, uint32_t count);

bool stub_is_readable(int fd);

/* Deletes the queue, which must be the only one, and ends the runtime. Returns
 * what a teardown returns. */
int stub_end(struct rpma_rt *rt, struct rpma_rt_queue **queue);

#endif /* RT_STUB_H */
