/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/* In the place of handoff_cxx.cc where there is no compiler of C++. */

#include "handoff.h"

#include "bench.h"

static void init(struct handoff *handoff)
{
	(void)handoff;
	bench_missing("compiler of C++", "g++");
}

const struct handoff_way handoff_boost = {.name = "boost", .init = init};
const struct handoff_way handoff_moody = {.name = "moody", .init = init};
const struct handoff_way handoff_rwq = {.name = "rwq", .init = init};
