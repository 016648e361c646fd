/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * The hand-off of routed completions from a poller to its consumer, in several
 * ways that differ in nothing else. A way groups the routed completions, hands
 * the groups over once a batch, and takes them out on the other side.
 */

#ifndef HANDOFF_H
#define HANDOFF_H

#include <stdint.h>

#include <infiniband/verbs.h>

#include "queue/lane.h"

#define BATCH	   32	/* work completions a poll finds */
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
	void *private; /* the way's */
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

extern const struct handoff_way handoff_lane;  /* the bare lane */
extern const struct handoff_way handoff_queue; /* rpma_rt_queue_poll() */
extern const struct handoff_way handoff_wfcq;  /* liburcu */
/* DPDK; handoff_ring.c or, where there is none, handoff_no_ring.c */
extern const struct handoff_way handoff_ring;

/* The wr_id of the page wr_id.md: route and cookie. */
#define HANDOFF_ROUTE_SHIFT 48
#define HANDOFF_ROUTE_MASK  0x7fff

/* Looks up and checks; what is stale leads nowhere. */
static inline struct handoff_route *handoff_look_up(struct handoff *handoff,
						    const struct ibv_wc *wc)
{
	struct handoff_route *route =
		&handoff->routes[(wc->wr_id >> HANDOFF_ROUTE_SHIFT) &
				 HANDOFF_ROUTE_MASK];

	if (__builtin_expect(route->qp_num != wc->qp_num, 0))
		return NULL;
	route->routed++;
	return route;
}

static inline void handoff_convert(const struct handoff_route *route,
				   const struct ibv_wc *wc,
				   struct rpma_rt_completion *cmpl)
{
	const struct rpma_rt_completion filled = {
		.context = wc->wr_id & ((1ull << HANDOFF_ROUTE_SHIFT) - 1),
		.user = route->user,
		.byte_len = wc->byte_len,
		.imm = wc->imm_data,
		.qp_num = wc->qp_num,
		.kind = RPMA_RT_COMPLETION,
		.status = (uint8_t)wc->status,
		.opcode = (uint8_t)wc->opcode,
		.flags = (uint8_t)wc->wc_flags,
	};

	rt_lane_fill_slot(cmpl, &filled);
}

/* What a consumer does with one. */
static inline uint64_t handoff_handle(const struct rpma_rt_completion *cmpl)
{
	return cmpl->context + (cmpl->status != IBV_WC_SUCCESS);
}

#endif /* HANDOFF_H */
