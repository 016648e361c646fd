/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * A way of the hand-off, as handoff.c calls a way; also for C++.
 */

#ifndef HANDOFF_WAY_H
#define HANDOFF_WAY_H

#include <stdint.h>

#include <infiniband/verbs.h>

#include "rpma_rt.h"

#define BATCH	   32	/* work completions a poll finds, at most */
#define IN_FLIGHT  1024 /* handed over and not taken, at most */
#define MAX_FANOUT 8

/* The target of a route of a CQ. */
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

/* The completions of a batch for a single destination. */
struct handoff_group {
	uint32_t count;
	struct rpma_rt_completion items[BATCH];
};

struct handoff_way {
	const char *name;
	void (*init)(struct handoff *handoff);
	/* poller: routes a batch and hands the completions over */
	void (*send)(struct handoff *handoff, const struct ibv_wc *wcs,
		     uint32_t count);
	/* consumer: takes up to BATCH completions of a destination; handles
	 * each and adds to *sum */
	uint32_t (*take)(struct handoff *handoff, uint32_t destination,
			 uint64_t *sum);
};

/* Routes a batch into the groups of the destinations, which are empty. */
void handoff_group_batch(struct handoff *handoff, struct handoff_group *groups,
			 const struct ibv_wc *wcs, uint32_t count);

#endif /* HANDOFF_WAY_H */
