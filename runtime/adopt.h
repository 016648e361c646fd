/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * adopt.h -- CQs of connections made elsewhere, polled raw by a poller. What
 * ends in _owner runs on that poller. doc/protocols/adoption.md.
 */

#ifndef RT_ADOPT_H
#define RT_ADOPT_H

#include <stdbool.h>
#include <stdint.h>

#include <infiniband/verbs.h>

#include "rpma_rt.h"

struct rt_lane;
struct rt_poller;
struct rt_spill;

struct rt_raw_cq {
	/* immutable */
	struct rpma_cq *cq;
	struct ibv_cq *ibv_cq;
	/* the poller's */
	uint32_t unacked; /* events read and not yet acknowledged */
	bool dead;
};

struct rpma_rt_adopted {
	/* immutable from attach to detach */
	struct rpma_rt *rt;
	struct rt_poller *poller;
	struct rpma_rt_queue *queue;
	struct rt_lane *lane;
	void *user;
	struct rt_spill *spill; /* handed over with attach; or NULL */
	struct ibv_comp_channel *channels[2];
	int flags[2]; /* of the channels' fds, as they were */
	int channels_count;
	uint32_t reserved; /* entries of the lane's spill */
	struct rt_raw_cq cqs[2];
	int cqs_count;
	/* under the runtime's lock */
	struct rpma_rt_adopted *next;
	/* the poller's */
	int first; /* of its CQs in the next round */
	struct rpma_rt_adopted *poller_next;
};

/* Takes what is there, up to budget; how many. */
int rt_adopt_poll(struct rt_poller *poller, int budget);
void rt_adopt_arm(struct rt_poller *poller);
/* Reads the events that are there; how many. */
int rt_adopt_read_events(struct rt_poller *poller);

/* A stop: gives all back; the handles stay. Pollers still run. */
void rt_adopt_detach_all(struct rpma_rt *rt);

#endif /* RT_ADOPT_H */
