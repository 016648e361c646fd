/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/* In place of bench_cost_old where there is no other librpma to measure. */

#include "bench.h"

int main(void)
{
	bench_missing("librpma of the distribution", "librpma-dev");
}
