/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * bench_calibrate [--seconds S] [--cpus A,B]
 *
 * Is this machine fit to measure now? Two threads, pinned as the measured ones
 * are, do nothing but read the clock: "lost" is the share of the time in which
 * one of them did not run, because of other programs or of other machines on
 * the same host. "distance" is half the time that a cache line takes from one
 * of the CPUs to the other and back: it tells near pairs from far ones.
 */

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>

#include "bench.h"
#include "base/order.h"

#define GAP_S  10e-6 /* a longer step of the clock is time not run */
#define ROUNDS 20000

struct half {
	const struct bench_args *args;
	int index;
	double lost;	 /* share */
	double distance; /* ns; of the first */
};

static _Alignas(128) _Atomic uint32_t ball;
static pthread_barrier_t start;

static double lose(double seconds)
{
	double begin = bench_now();
	double last = begin;
	double lost = 0;
	double now;

	do {
		now = bench_now();
		if (now - last > GAP_S)
			lost += now - last;
		last = now;
	} while (now - begin < seconds);
	return lost / (last - begin);
}

static double play(uint32_t index)
{
	double begin = bench_now();
	uint32_t i;

	for (i = 0; i < ROUNDS; i++) {
		/* acquire, release: nothing hangs on it but the turn */
		while (atomic_load_explicit(&ball, memory_order_acquire) !=
		       2 * i + index)
			rt_cpu_relax();
		atomic_store_explicit(&ball, 2 * i + index + 1,
				      memory_order_release);
	}
	return (bench_now() - begin) * 1e9 / (2.0 * ROUNDS);
}

static void *half_main(void *arg)
{
	struct half *half = arg;

	bench_pin(half->args->cpus[half->index]);
	pthread_barrier_wait(&start);
	half->distance = play((uint32_t)half->index);
	half->lost = lose(half->args->seconds);
	return NULL;
}

int main(int argc, char **argv)
{
	struct bench_args args = bench_parse(argc, argv);
	struct half halves[2] = {{.args = &args, .index = 0},
				 {.args = &args, .index = 1}};
	pthread_t other;
	double lost;

	pthread_barrier_init(&start, NULL, 2);
	if (pthread_create(&other, NULL, half_main, &halves[1]))
		bench_fail("no thread");
	half_main(&halves[0]);
	pthread_join(other, NULL);
	lost = halves[0].lost > halves[1].lost ? halves[0].lost
					       : halves[1].lost;
	bench_report("lost", lost * 100, "%");
	bench_report("distance", halves[0].distance, "ns");
	return 0;
}
