/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * bench_storm [--seconds S] [--cpus A,B] COUNT
 *
 * COUNT connections that are made at once, beside the traffic of STEADY
 * established ends on the same two pollers. "up" is the time from the first
 * call until both ends of the last connection are established; "quiet" and
 * "p99" are the 99th percentiles of the writes of the traffic, before and
 * meanwhile, from the post to the consumer, which sleeps in between; "ratio" is
 * the second to the first.
 */

#include <stdlib.h>
#include <sys/prctl.h>

#include "bench.h"
#include "steady.h"

#define POLLERS 2
#define STEADY	100

struct bench {
	struct world world;
	struct steady steady;
	struct crowd storm;
	uint32_t count;
	uint64_t up_ns;
	_Atomic bool is_up;
};

static void *storm_main(void *arg)
{
	struct bench *bench = arg;
	uint64_t begin = bench_now_ns();

	crowd_open_at_once(&bench->storm, &bench->world, RPMA_RT_POLLER_ANY,
			   2 * bench->count, NULL, bench->count);
	bench->up_ns = bench_now_ns() - begin;
	/* relaxed: the join orders up_ns */
	atomic_store_explicit(&bench->is_up, true, memory_order_relaxed);
	return NULL;
}

static void measure(struct bench *bench, double seconds)
{
	pthread_t thread;
	uint64_t before;
	double quiet, p99;

	prctl(PR_SET_TIMERSLACK, 1ul);
	steady_write(&bench->steady, seconds, NULL);
	before = bench->steady.posted;
	CHECK(!pthread_create(&thread, NULL, storm_main, bench));
	steady_write(&bench->steady, 0, &bench->is_up);
	pthread_join(thread, NULL);
	p99 = steady_percentile(&bench->steady, before, 0.99);
	bench->steady.posted = before;
	quiet = steady_percentile(&bench->steady, 0, 0.99);
	bench_report("up", (double)bench->up_ns / 1e9, "s");
	bench_report("quiet", quiet, "us");
	bench_report("p99", p99, "us");
	bench_report("ratio", p99 / quiet, "x");
}

int main(int argc, char **argv)
{
	struct bench_args args = bench_parse(argc, argv);
	static struct bench bench;
	int count;

	if (args.count != 1)
		bench_fail("usage: bench_storm [--seconds S] [--cpus A,B] "
			   "COUNT");
	count = atoi(args.words[0]);
	if (count < 1)
		bench_fail("COUNT is at least 1");
	bench.count = (uint32_t)count;
	world_open(&bench.world);
	world_start(&bench.world, POLLERS, RPMA_RT_MODE_ADAPTIVE);
	steady_open(&bench.steady, &bench.world, STEADY);
	measure(&bench, args.seconds);
	fflush(stdout);
	_Exit(0); /* the connections stay */
}
