/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * DPDK's way: an rte_ring, single producer and single consumer, for each
 * destination; the same 32-byte completions, grouped as for lanes, in bulk.
 * The rings live in memory of our own, so no environment is initialised.
 */

#include "handoff.h"

#include <stdlib.h>
#include <string.h>

#include <rte_ring.h>

#include "bench.h"

#define SLOTS (2 * IN_FLIGHT) /* an rte_ring holds one less than its size */

struct group {
	uint32_t count;
	struct rpma_rt_completion items[BATCH];
};

struct rings {
	struct rte_ring *rings[MAX_FANOUT];
	struct group groups[MAX_FANOUT];
};

static struct rte_ring *new_ring(void)
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
	if (rte_ring_init(ring, "bench", SLOTS, RING_F_SP_ENQ | RING_F_SC_DEQ))
		bench_fail("rte_ring_init");
	return ring;
}

static void init(struct handoff *handoff)
{
	struct rings *rings = calloc(1, sizeof(*rings));
	uint32_t i;

	if (rings == NULL)
		bench_fail("no memory");
	for (i = 0; i < handoff->fanout; i++)
		rings->rings[i] = new_ring();
	handoff->private = rings;
}

static void send_all(struct handoff *handoff, const struct ibv_wc *wcs,
		     uint32_t count)
{
	struct rings *rings = handoff->private;
	struct handoff_route *route;
	struct group *group;
	uint32_t i;

	for (i = 0; i < count; i++) {
		route = handoff_look_up(handoff, &wcs[i]);
		if (route == NULL)
			continue;
		group = &rings->groups[route->destination];
		handoff_convert(route, &wcs[i], &group->items[group->count++]);
	}
	for (i = 0; i < handoff->fanout; i++) {
		group = &rings->groups[i];
		if (group->count == 0)
			continue;
		if (rte_ring_sp_enqueue_bulk_elem(rings->rings[i], group->items,
						  sizeof(group->items[0]),
						  group->count,
						  NULL) != group->count)
			bench_fail("rte_ring: full");
		group->count = 0;
	}
}

static uint32_t take(struct handoff *handoff, uint32_t destination,
		     uint64_t *sum)
{
	struct rings *rings = handoff->private;
	struct rpma_rt_completion cmpl[BATCH];
	uint32_t count;
	uint32_t i;

	count = rte_ring_sc_dequeue_burst_elem(rings->rings[destination], cmpl,
					       sizeof(cmpl[0]), BATCH, NULL);
	for (i = 0; i < count; i++)
		*sum += handoff_handle(&cmpl[i]);
	return count;
}

const struct handoff_way handoff_ring = {
	.name = "ring",
	.init = init,
	.send = send_all,
	.take = take,
};
