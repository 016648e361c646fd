/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * bench_handoff [--seconds S] [--cpus A,B,...] WAY FANOUT [BATCH [PAIRS]]
 *
 * Millions of completions per second that a poller on CPU A routes, BATCH at a
 * time (1 to 32, the default), and hands to FANOUT destinations, all emptied in
 * turn by a consumer on CPU B. Work completions come from an array, so nothing
 * but the hand-off differs between the ways. "none" handles completions at the
 * place of routing. PAIRS: so many pollers, each with a consumer, side by side,
 * and the sum of all.
 */

#include "handoff.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench.h"
#include "base/order.h"

#define WCS	   4096
#define ROUTES	   64
#define FIRST_QP   100
#define MAX_PAIRS  64
#define CLOCK_EACH 1024 /* batches between two looks at the clock */

struct run {
	struct handoff handoff;
	const struct handoff_way *way;
	int poller_cpu, consumer_cpu;
	struct ibv_wc wcs[WCS];
	uint32_t batch;
	double length;	/* of the run, asked for */
	double seconds; /* measured */
	struct handoff_route routes[HANDOFF_ROUTE_MASK + 1];

	/* written by the consumer: posters' credits, in the end */
	_Alignas(64) _Atomic uint64_t taken;
	/* written by the poller: how many there will be; 0: not yet known */
	_Alignas(64) _Atomic uint64_t total;
	_Atomic bool ready; /* the consumer is pinned and looking */
};

static void fill(struct run *run)
{
	uint32_t i;
	uint32_t route;

	for (i = 1; i <= ROUTES; i++) {
		run->routes[i].user = run;
		run->routes[i].qp_num = FIRST_QP + i;
		run->routes[i].destination = i % run->handoff.fanout;
	}
	for (i = 0; i < WCS; i++) {
		/* a fixed disorder, so the processor predicts nothing by
		 * position */
		route = 1 + (i * 2654435761u >> 7) % ROUTES;
		run->wcs[i].wr_id =
			(uint64_t)route << HANDOFF_ROUTE_SHIFT | (i + 1);
		run->wcs[i].qp_num = FIRST_QP + route;
		run->wcs[i].opcode = IBV_WC_RECV;
		run->wcs[i].byte_len = i;
	}
	run->handoff.routes = run->routes;
}

/* Waits until so many were taken. */
static void wait_taken(struct run *run, uint64_t count)
{
	/* acquire: the work of the consumer before the credit */
	while (atomic_load_explicit(&run->taken, memory_order_acquire) < count)
		rt_cpu_relax();
}

void handoff_group_batch(struct handoff *handoff, struct handoff_group *groups,
			 const struct ibv_wc *wcs, uint32_t count)
{
	handoff_group(handoff, groups, wcs, count);
}

static uint64_t send_all(struct run *run, double end)
{
	uint64_t sent = 0;
	uint64_t limit = IN_FLIGHT; /* sent up to here without a look */
	uint64_t batches = 0;
	uint32_t batch = run->batch;

	for (;;) {
		if (sent + batch > limit) {
			wait_taken(run, sent + batch - IN_FLIGHT);
			/* acquire: as in wait_taken() */
			limit = IN_FLIGHT +
				atomic_load_explicit(&run->taken,
						     memory_order_acquire);
		}
		run->way->send(&run->handoff, &run->wcs[sent % WCS], batch);
		sent += batch;
		if (++batches % CLOCK_EACH == 0 && bench_now() >= end)
			return sent;
	}
}

static void *poller_main(void *arg)
{
	struct run *run = arg;
	double begin;
	uint64_t sent;

	/* acquire: the consumer's setup is over */
	while (!atomic_load_explicit(&run->ready, memory_order_acquire))
		rt_cpu_relax();
	begin = bench_now();
	sent = send_all(run, begin + run->length);
	wait_taken(run, sent);
	run->seconds = bench_now() - begin;
	/* release: to the consumer, which ends */
	atomic_store_explicit(&run->total, sent, memory_order_release);
	return NULL;
}

static uint64_t consume(struct run *run)
{
	uint64_t taken = 0;
	uint64_t sum = 0;
	uint32_t destination = 0;
	uint32_t count;

	/* release: to the poller, which begins */
	atomic_store_explicit(&run->ready, true, memory_order_release);
	for (;;) {
		count = run->way->take(&run->handoff, destination, &sum);
		if (++destination == run->handoff.fanout)
			destination = 0;
		if (count > 0) {
			taken += count;
			/* release: we are done with them */
			atomic_store_explicit(&run->taken, taken,
					      memory_order_release);
			continue;
		}
		/* acquire: the end of the poller's run */
		if (atomic_load_explicit(&run->total, memory_order_acquire) ==
			    taken &&
		    taken > 0)
			return sum;
	}
}

static uint64_t expected_sum(uint64_t total)
{
	uint64_t round = (uint64_t)WCS * (WCS + 1) / 2;
	uint64_t rest = total % WCS;

	return total / WCS * round + rest * (rest + 1) / 2;
}

/* Consumes on the calling thread; the poller is another thread. */
static void *run_way(void *arg)
{
	struct run *run = arg;
	pthread_t poller = bench_start(run->poller_cpu, poller_main, run);
	uint64_t sum;

	bench_pin(run->consumer_cpu);
	sum = consume(run);
	pthread_join(poller, NULL);
	/* relaxed: written by this thread */
	if (sum != expected_sum(atomic_load_explicit(&run->taken,
						     memory_order_relaxed)))
		bench_fail("completions were lost or doubled");
	return NULL;
}

/* Routes and handles in a single place. */
static void run_none(struct run *run)
{
	double begin = bench_now();
	double end = begin + run->length;
	struct rpma_rt_completion cmpl;
	struct handoff_route *route;
	uint64_t sent = 0;
	uint64_t sum = 0;
	uint32_t i;

	bench_pin(run->poller_cpu);
	do {
		for (i = 0; i < WCS; i++) {
			route = handoff_look_up(&run->handoff, &run->wcs[i]);
			if (route == NULL)
				continue;
			handoff_convert(route, &run->wcs[i], &cmpl);
			/* the completion is built, as for a callback */
			__asm__ __volatile__("" ::"r"(&cmpl) : "memory");
			sum += handoff_handle(&cmpl);
		}
		sent += WCS;
	} while (bench_now() < end);
	run->seconds = bench_now() - begin;
	if (sum != expected_sum(sent))
		bench_fail("completions were lost or doubled");
	/* relaxed: a single thread */
	atomic_store_explicit(&run->taken, sent, memory_order_relaxed);
}

static const struct handoff_way *find_way(const char *name)
{
	static const struct handoff_way *const ways[] = {
		&handoff_lane,	  &handoff_queue, &handoff_push, &handoff_ring,
		&handoff_ring_mp, &handoff_wfcq,  &handoff_spsc, &handoff_boost,
		&handoff_moody,	  &handoff_rwq};
	size_t i;

	for (i = 0; i < sizeof(ways) / sizeof(ways[0]); i++) {
		if (strcmp(ways[i]->name, name) == 0)
			return ways[i];
	}
	return NULL;
}

/* Makes a poller and the consumer. */
static struct run *make_run(const struct bench_args *args, uint32_t pair)
{
	size_t size = (sizeof(struct run) + 127) / 128 * 128;
	struct run *run = aligned_alloc(128, size);

	if (run == NULL)
		bench_fail("no memory");
	memset(run, 0, size);
	run->handoff.fanout = (uint32_t)atoi(args->words[1]);
	if (run->handoff.fanout < 1 || run->handoff.fanout > MAX_FANOUT)
		bench_fail("FANOUT is 1 to 8");
	run->batch = args->count > 2 ? (uint32_t)atoi(args->words[2]) : BATCH;
	if (run->batch < 1 || BATCH % run->batch != 0)
		bench_fail("BATCH is 1, 2, 4, 8, 16 or 32");
	run->length = args->seconds;
	run->poller_cpu = args->cpus[2 * pair % (uint32_t)args->cpu_count];
	run->consumer_cpu =
		args->cpus[(2 * pair + 1) % (uint32_t)args->cpu_count];
	fill(run);
	run->way = find_way(args->words[0]);
	if (run->way != NULL)
		run->way->init(&run->handoff);
	return run;
}

static double rate(const struct run *run)
{
	/* relaxed: the threads were joined */
	return (double)atomic_load_explicit(&run->taken, memory_order_relaxed) /
	       run->seconds / 1e6;
}

/* Returns the rates of all pairs together. */
static double measure(const struct bench_args *args, uint32_t pairs)
{
	struct run *runs[MAX_PAIRS];
	pthread_t threads[MAX_PAIRS];
	double sum = 0;
	uint32_t i;

	for (i = 0; i < pairs; i++)
		runs[i] = make_run(args, i);
	for (i = 1; i < pairs; i++)
		threads[i] =
			bench_start(runs[i]->consumer_cpu, run_way, runs[i]);
	if (runs[0]->way != NULL)
		run_way(runs[0]);
	else if (strcmp(args->words[0], "none") == 0 && pairs == 1)
		run_none(runs[0]);
	else
		bench_fail("no such way");
	for (i = 0; i < pairs; i++) {
		if (i > 0)
			pthread_join(threads[i], NULL);
		sum += rate(runs[i]);
	}
	return sum;
}

int main(int argc, char **argv)
{
	struct bench_args args = bench_parse(argc, argv);
	uint32_t pairs = 1;
	char name[64];

	if (args.count == 4)
		pairs = (uint32_t)atoi(args.words[3]);
	if (args.count < 2 || args.count > 4 || pairs < 1 || pairs > MAX_PAIRS)
		bench_fail("usage: bench_handoff [--seconds S] "
			   "[--cpus A,B,...] lane|queue|push|ring|ringmp|spsc|"
			   "boost|moody|rwq|wfcq|none FANOUT [BATCH [PAIRS]]");
	snprintf(name, sizeof(name), "%s.%s", args.words[0], args.words[1]);
	bench_report(name, measure(&args, pairs), "Mops/s");
	return 0;
}
