/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * The hand-off of routed completions from a poller to its consumer, in several
 * ways that differ in nothing else. A way groups the routed completions, hands
 * the groups over once a batch, and takes them out on the other side.
 */

#ifndef HANDOFF_H
#define HANDOFF_H

#include "handoff_way.h"
#include "queue/lane.h"

extern const struct handoff_way handoff_lane;  /* the bare lane */
extern const struct handoff_way handoff_queue; /* rpma_rt_queue_poll() */
extern const struct handoff_way handoff_push;  /* rpma_rt_queue_push() */
extern const struct handoff_way handoff_wfcq;  /* liburcu */
/* a bare ring with the index of the other side cached on each side */
extern const struct handoff_way handoff_spsc;
/* DPDK; handoff_ring.c or, where there is none, handoff_no_ring.c: with one
 * producer, and with several */
extern const struct handoff_way handoff_ring;
extern const struct handoff_way handoff_ring_mp;
/* boost::lockfree::spsc_queue, moodycamel::ConcurrentQueue and
 * ReaderWriterQueue; handoff_cxx.cc */
extern const struct handoff_way handoff_boost;
extern const struct handoff_way handoff_moody;
extern const struct handoff_way handoff_rwq;

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

static inline void handoff_group(struct handoff *handoff,
				 struct handoff_group *groups,
				 const struct ibv_wc *wcs, uint32_t count)
{
	struct handoff_route *route;
	struct handoff_group *group;
	uint32_t i;

	for (i = 0; i < count; i++) {
		route = handoff_look_up(handoff, &wcs[i]);
		if (route == NULL)
			continue;
		group = &groups[route->destination];
		handoff_convert(route, &wcs[i], &group->items[group->count++]);
	}
}

/* What a consumer does with one. */
static inline uint64_t handoff_handle(const struct rpma_rt_completion *cmpl)
{
	return cmpl->context + (cmpl->status != IBV_WC_SUCCESS);
}

static inline uint64_t handoff_handle_all(const struct rpma_rt_completion *cmpl,
					  uint32_t count)
{
	uint64_t sum = 0;
	uint32_t i;

	for (i = 0; i < count; i++)
		sum += handoff_handle(&cmpl[i]);
	return sum;
}

#endif /* HANDOFF_H */
