/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * bench_idle [--seconds S] [--cpus A,B] CONNECTIONS
 *
 * The share of a CPU, in percent, that the process takes while CONNECTIONS
 * connections are idle: both ends of each, on two pollers in adaptive mode with
 * the defaults, no keep-alive. By getrusage(), so what other programs do does
 * not count.
 */

#include <stdlib.h>
#include <sys/resource.h>

#include "bench.h"
#include "crowd.h"

#define QUIET_NS 500000000 /* until the pollers sleep */

static double cpu_seconds(void)
{
	struct rusage used;

	CHECK(getrusage(RUSAGE_SELF, &used) == 0);
	return (double)(used.ru_utime.tv_sec + used.ru_stime.tv_sec) +
	       (double)(used.ru_utime.tv_usec + used.ru_stime.tv_usec) / 1e6;
}

static double idle_percent(double seconds)
{
	uint64_t begin;
	double cpu;

	bench_sleep_until(bench_now_ns() + QUIET_NS);
	begin = bench_now_ns();
	cpu = cpu_seconds();
	bench_sleep_until(begin + (uint64_t)(seconds * 1e9));
	return 100 * (cpu_seconds() - cpu) /
	       ((double)(bench_now_ns() - begin) / 1e9);
}

int main(int argc, char **argv)
{
	struct rpma_rt_cfg cfg = RPMA_RT_CFG_INIT;
	struct bench_args args = bench_parse(argc, argv);
	struct world world;
	struct crowd crowd;

	if (args.count != 1)
		bench_fail("usage: bench_idle [--seconds S] [--cpus A,B] "
			   "CONNECTIONS");
	world_open(&world);
	cfg.pollers = 2;
	MUST(rpma_rt_new(&cfg, &world.rt));
	crowd_open(&crowd, &world, RPMA_RT_POLLER_ANY,
		   2 * (uint32_t)atoi(args.words[0]), NULL);
	bench_report("idle", idle_percent(args.seconds), "%");
	crowd_close(&crowd);
	crowd_end(&crowd);
	world_close(&world);
	return 0;
}
