/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * growth.h -- a runtime with so many objects of each kind, and the public calls
 * that bench_growth counts in it. One thread, which owns all pollers.
 */

#ifndef BENCH_GROWTH_H
#define BENCH_GROWTH_H

#include "crowd.h"
#include "rpma_rt.h"
#include "stage.h"

/* as many futures as the longest wait needs, beside those that are asked for */
#define GROWTH_SPARE 64

/* how many there are of each kind */
struct growth_counts {
	uint32_t conns; /* ends of connections */
	uint32_t routes;
	uint32_t srqs;
	uint32_t listeners;
	uint32_t queues;
	uint32_t futures;
	uint32_t leases;
	uint32_t timers;
};

struct growth {
	struct growth_counts counts;
	struct stage s;		/* poller 0 */
	struct world_pair pair; /* with the stage's queues */
	struct crowd crowd;
	struct rpma_rt_queue *routed; /* where the routes lead */
	struct rpma_rt_route **routes;
	struct rpma_rt_pool *pool; /* whose slots are taken, but for a few */
	struct rpma_rt_shards *shards;
	struct rpma_rt_shard *shard; /* of poller 0 */
	struct rpma_rt_timer *timers;
	struct rpma_rt_srq *srq;
	struct rpma_rt_listener *listener;
	uint16_t port;
	/* without a queue, of messages of a pool */
	struct rpma_rt_pool *messages;
	struct world_pair fed;
	struct rpma_rt_route *chain; /* each send is followed by the next */
	uint32_t to_send;
	struct rpma_rt_future *futures; /* of the fed pair's passive end */
};

/* one call, and what comes before and after it; each may be NULL, but call */
struct growth_call {
	const char *name;
	void (*before)(struct growth *g);
	void (*call)(struct growth *g);
	void (*after)(struct growth *g);
};

extern const struct growth_call growth_calls[]; /* up to one without a name */

void growth_open(struct growth *g);
/* The fed pair's active end sends, up to to_send messages. */
void growth_send(struct growth *g);
/* Asks for those futures anew that were complete. */
void growth_renew(struct growth *g);

#endif /* BENCH_GROWTH_H */
