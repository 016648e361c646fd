/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * A way of the hand-off, as handoff.c knows it; also for C++.
 */

#ifndef HANDOFF_WAY_H
#define HANDOFF_WAY_H

#include <stdint.h>

#include <infiniband/verbs.h>

#include "rpma_rt.h"

#define BATCH	   32	/* work completions a poll finds, at most */
#define IN_FLIGHT  1024 /* handed over and not taken, at most */
#define MAX_FANOUT 8

/* What a route of a CQ leads to. */
struct handoff_route {
	void *user;
	uint32_t qp_num;
	uint32_t destination;
	uint32_t routed;
};

struct handoff {
	uint32_t fanout;
	struct handoff_route *routes;
	void *state; /* the way's */
};

/* Completions of a batch that lead to one destination. */
struct handoff_group {
	uint32_t count;
	struct rpma_rt_completion items[BATCH];
};

struct handoff_way {
	const char *name;
	void (*init)(struct handoff *handoff);
	/* poller: routes a batch and hands it over */
	void (*send)(struct handoff *handoff, const struct ibv_wc *wcs,
		     uint32_t count);
	/* consumer: takes what one destination has, up to BATCH; handles each
	 * and adds what it saw to *sum */
	uint32_t (*take)(struct handoff *handoff, uint32_t destination,
			 uint64_t *sum);
};

/* Routes a batch into the groups of the destinations, which are empty. */
void handoff_group_batch(struct handoff *handoff, struct handoff_group *groups,
			 const struct ibv_wc *wcs, uint32_t count);

#endif /* HANDOFF_WAY_H */
