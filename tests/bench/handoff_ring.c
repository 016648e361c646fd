/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * DPDK's ways: an rte_ring for each destination, with a single consumer, and
 * with a single producer or several; the same 32-byte completions, grouped as
 * for lanes, in bulk. The rings live in memory of our own, so no environment is
 * initialised.
 */

#include "handoff.h"

#include <stdlib.h>
#include <string.h>

#include <rte_ring.h>

#include "bench.h"

#define SLOTS (2 * IN_FLIGHT) /* an rte_ring holds one less than its size */

struct rings {
	struct rte_ring *rings[MAX_FANOUT];
	struct handoff_group groups[MAX_FANOUT];
};

static struct rte_ring *new_ring(unsigned int flags)
{
	ssize_t size;
	struct rte_ring *ring;

	size = rte_ring_get_memsize_elem(sizeof(struct rpma_rt_completion),
					 SLOTS);
	if (size < 0)
		bench_fail("rte_ring: no such size");
	ring = aligned_alloc(RTE_CACHE_LINE_SIZE,
			     ((size_t)size + RTE_CACHE_LINE_SIZE - 1) /
				     RTE_CACHE_LINE_SIZE * RTE_CACHE_LINE_SIZE);
	if (ring == NULL)
		bench_fail("no memory");
	memset(ring, 0, (size_t)size);
	if (rte_ring_init(ring, "bench", SLOTS, flags))
		bench_fail("rte_ring_init");
	return ring;
}

static void init(struct handoff *handoff, unsigned int flags)
{
	struct rings *rings = calloc(1, sizeof(*rings));
	uint32_t i;

	if (rings == NULL)
		bench_fail("no memory");
	for (i = 0; i < handoff->fanout; i++)
		rings->rings[i] = new_ring(flags);
	handoff->state = rings;
}

static void init_sp(struct handoff *handoff)
{
	init(handoff, RING_F_SP_ENQ | RING_F_SC_DEQ);
}

static void init_mp(struct handoff *handoff)
{
	init(handoff, RING_F_SC_DEQ);
}

static inline void send_groups(struct handoff *handoff,
			       const struct ibv_wc *wcs, uint32_t count,
			       bool is_mp)
{
	struct rings *rings = handoff->state;
	struct handoff_group *group;
	unsigned int done;
	uint32_t i;

	handoff_group(handoff, rings->groups, wcs, count);
	for (i = 0; i < handoff->fanout; i++) {
		group = &rings->groups[i];
		if (group->count == 0)
			continue;
		done = is_mp ? rte_ring_mp_enqueue_bulk_elem(
				       rings->rings[i], group->items,
				       sizeof(group->items[0]), group->count,
				       NULL)
			     : rte_ring_sp_enqueue_bulk_elem(
				       rings->rings[i], group->items,
				       sizeof(group->items[0]), group->count,
				       NULL);
		if (done != group->count)
			bench_fail("rte_ring: full");
		group->count = 0;
	}
}

static void send_sp(struct handoff *handoff, const struct ibv_wc *wcs,
		    uint32_t count)
{
	send_groups(handoff, wcs, count, false);
}

static void send_mp(struct handoff *handoff, const struct ibv_wc *wcs,
		    uint32_t count)
{
	send_groups(handoff, wcs, count, true);
}

static uint32_t take(struct handoff *handoff, uint32_t destination,
		     uint64_t *sum)
{
	struct rings *rings = handoff->state;
	struct rpma_rt_completion cmpl[BATCH];
	uint32_t count;

	count = rte_ring_sc_dequeue_burst_elem(rings->rings[destination], cmpl,
					       sizeof(cmpl[0]), BATCH, NULL);
	*sum += handoff_handle_all(cmpl, count);
	return count;
}

const struct handoff_way handoff_ring = {
	.name = "ring",
	.init = init_sp,
	.send = send_sp,
	.take = take,
};

const struct handoff_way handoff_ring_mp = {
	.name = "ringmp",
	.init = init_mp,
	.send = send_mp,
	.take = take,
};
