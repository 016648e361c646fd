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

#define STUB_LANE  64
#define STUB_LIMIT 256 /* of the backlog */
#define STUB_MAX   (2 * STUB_LANE)

/* A runtime, its queue, and what was taken last. */
struct stub_world {
	struct rpma_rt rt;
	struct rpma_rt_queue *queue;
	struct rt_lane *lane; /* of the only poller; NULL: of several */
	struct rpma_rt_completion taken[STUB_MAX];
	int got;
};

/* Makes the world *state; stub_close() is the teardown. */
int stub_open(void **state, int pollers, bool timed, bool shared);
int stub_close(void **state);

/* Polls the queue into taken. Returns the result, which is in got, too. */
int stub_poll(struct stub_world *world, int max);
/* Returns the descriptor of the queue, or -1. */
int stub_fd(struct stub_world *world);
/* Rings after a publish, as a poller does. */
bool stub_ring(struct rt_lane *lane);

/* A completion that is told apart by its context. */
struct rpma_rt_completion stub_item(uint64_t context);

/* Stages count items with contexts from first on and publishes them. */
void stub_publish(struct rt_lane *lane, uint64_t first, uint32_t count);

bool stub_is_readable(int fd);

#endif /* RT_STUB_H */
