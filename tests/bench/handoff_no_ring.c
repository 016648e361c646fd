/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/* In the place of handoff_ring.c where DPDK is not installed. */

#include "handoff.h"

#include "bench.h"

static void init(struct handoff *handoff)
{
	(void)handoff;
	bench_missing("rte_ring to compare with", "libdpdk-dev");
}

const struct handoff_way handoff_ring = {
	.name = "ring",
	.init = init,
};

const struct handoff_way handoff_ring_mp = {
	.name = "ringmp",
	.init = init,
};
