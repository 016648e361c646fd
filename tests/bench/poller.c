/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * bench_poller [--seconds S] [--cpus A,B] bare|poller|ops|added FANOUT [QPS]
 *
 * Nanoseconds per completion in the polling thread. The CQ belongs to no
 * device: its poll copies work completions out of an array, so only the work of
 * the runtime is measured. "bare" is a loop of ibv_poll_cq() that looks at each
 * completion; "poller" is rounds of the poller of the runtime, which route to
 * FANOUT queues emptied by a consumer on the other CPU; "ops" is "poller" in
 * completions per second, to compare with bench_handoff; "added" is the time of
 * "poller" beyond "bare", measured one after the other. Completions come from
 * QPS queue pairs (default 8) and 64 routes, or as many as queue pairs.
 */

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <infiniband/verbs.h>

#include "bench.h"
#include "poller/cq_pool.h"
#include "conn/ledger.h"
#include "poller/poller.h"
#include "queue/queue.h"
#include "poller/route.h"
#include "base/runtime.h"
#include "poller/round.h"

#define WCS	   8192
#define IN_FLIGHT  1024
#define ROUTES	   64
#define SIDES	   8 /* connection sides of the routes */
#define MAX_SIDES  4096
#define FIRST_QP   100
#define MAX_FANOUT 8
#define CLOCK_EACH 1024
#define TELL_EACH  128 /* taken items, as the line moves each time */

struct canned {
	struct ibv_context context;
	struct ibv_cq cq;
	struct ibv_wc wcs[WCS];
	uint64_t polled;

	/* written by the consumer: completions taken, the credit of posters */
	_Alignas(128) _Atomic uint64_t taken;
	/* written by the poller: how many there were; 0: not yet known */
	_Alignas(128) _Atomic uint64_t total;
};

struct bench {
	struct bench_args args;
	struct rpma_rt *rt;
	struct rpma_rt_queue *queues[MAX_FANOUT];
	uint32_t fanout;
	struct rt_cq rt_cq;
	struct rt_side sides[MAX_SIDES];
	uint32_t sides_count;
	uint32_t routes_count;
};

static struct canned canned;

/* Polls like a device: returns some completions; nothing while the allowed
 * number is on the way. */
static int poll_canned(struct ibv_cq *cq, int count, struct ibv_wc *wc)
{
	uint64_t at = canned.polled % WCS;

	(void)cq;
	/* acquire: taken completions give credit */
	if (canned.polled + (uint64_t)count -
		    atomic_load_explicit(&canned.taken, memory_order_acquire) >
	    IN_FLIGHT)
		return 0;
	if ((uint64_t)count > WCS - at)
		count = (int)(WCS - at);
	memcpy(wc, &canned.wcs[at], (size_t)count * sizeof(*wc));
	canned.polled += (uint64_t)count;
	return count;
}

static void init_canned(const struct bench *bench)
{
	uint32_t route;
	uint32_t i;

	canned.context.ops.poll_cq = poll_canned;
	canned.cq.context = &canned.context;
	for (i = 0; i < WCS; i++) {
		/* a fixed disorder, as in bench_handoff */
		route = (i * 2654435761u >> 7) % bench->routes_count;
		canned.wcs[i].wr_id = rt_wr_id(RT_ROUTE_FIRST + route, i + 1);
		canned.wcs[i].qp_num = FIRST_QP + route % bench->sides_count;
		canned.wcs[i].opcode = IBV_WC_RECV;
	}
}

static double run_bare(const struct bench *bench)
{
	struct ibv_wc wcs[RT_BATCH];
	double begin = bench_now();
	double end = begin + bench->args.seconds;
	uint64_t batches = 0;
	uint64_t sum = 0;
	int count;
	int i;

	bench_pin(bench->args.cpus[0]);
	do {
		count = ibv_poll_cq(&canned.cq, RT_BATCH, wcs);
		for (i = 0; i < count; i++)
			sum += wcs[i].wr_id + (wcs[i].status != IBV_WC_SUCCESS);
		/* relaxed: the same thread takes them */
		atomic_store_explicit(&canned.taken, canned.polled,
				      memory_order_relaxed);
	} while (++batches % CLOCK_EACH != 0 || bench_now() < end);
	if (sum == 0)
		bench_fail("nothing was polled");
	return bench_now() - begin;
}

static void open_queues(struct bench *bench)
{
	struct rpma_rt_cfg cfg = RPMA_RT_CFG_INIT;
	uint32_t i;

	cfg.mode = RPMA_RT_MODE_MANUAL;
	if (rpma_rt_new(&cfg, &bench->rt))
		bench_fail("no runtime");
	for (i = 0; i < bench->fanout; i++) {
		if (rpma_rt_queue_new(bench->rt, NULL, &bench->queues[i]))
			bench_fail("no queue");
	}
}

/* Binds routes like conn.c, to a CQ unknown to any device. */
static void open_routes(struct bench *bench, struct rt_poller *poller)
{
	struct rt_route_entry *entry;
	uint32_t i;

	bench->rt_cq.ibv_cq = &canned.cq;
	CDS_INIT_LIST_HEAD(&bench->rt_cq.sweeping);
	CDS_INIT_LIST_HEAD(&bench->rt_cq.draining);
	bench->rt_cq.routes =
		calloc(RT_ROUTE_COUNT, sizeof(*bench->rt_cq.routes));
	if (bench->rt_cq.routes == NULL)
		bench_fail("no memory");
	for (i = 0; i < bench->sides_count; i++)
		rt_side_mark(&bench->sides[i], RT_SIDE_HEALTHY);
	for (i = 0; i < bench->routes_count; i++) {
		entry = &bench->rt_cq.routes[RT_ROUTE_FIRST + i];
		entry->lane = rt_queue_lane(bench->queues[i % bench->fanout], 0,
					    &poller->bell);
		if (entry->lane == NULL)
			bench_fail("no lane");
		entry->user = bench;
		entry->side = &bench->sides[i % bench->sides_count];
		entry->qp_key = rt_qp_key(FIRST_QP + i % bench->sides_count);
	}
	poller->cqs = calloc(1, sizeof(struct rt_cq *));
	if (poller->cqs == NULL)
		bench_fail("no memory");
	poller->cqs[0] = &bench->rt_cq;
	poller->cqs_count = 1;
	poller->cqs_max = 1;
}

static void *consumer_main(void *arg)
{
	struct bench *bench = arg;
	struct rpma_rt_completion cmpl[RT_BATCH];
	uint64_t taken = 0;
	uint64_t told = 0;
	uint32_t i = 0;
	int got;

	/* acquire: the end of the poller's run */
	while (taken == 0 ||
	       atomic_load_explicit(&canned.total, memory_order_acquire) !=
		       taken) {
		got = rpma_rt_queue_poll(bench->queues[i], cmpl, RT_BATCH);
		if (got > 0)
			taken += (uint64_t)got;
		if (taken - told >= TELL_EACH || (got <= 0 && taken != told)) {
			told = taken;
			/* release: they have been handled */
			atomic_store_explicit(&canned.taken, taken,
					      memory_order_release);
		}
		if (++i == bench->fanout)
			i = 0;
	}
	return NULL;
}

static double run_poller(struct bench *bench)
{
	struct rt_poller *poller;
	pthread_t consumer;
	uint64_t rounds = 0;
	double seconds;
	double begin;

	open_queues(bench);
	poller = &bench->rt->pollers[0];
	poller->threaded = true; /* this thread does nothing else */
	open_routes(bench, poller);
	consumer = bench_start(bench->args.cpus[1], consumer_main, bench);
	bench_pin(bench->args.cpus[0]);
	begin = bench_now();
	do {
		rt_round_run(poller, RT_BATCH);
	} while (++rounds % CLOCK_EACH != 0 ||
		 bench_now() - begin < bench->args.seconds);
	seconds = bench_now() - begin;
	/* release: to the consumer, which ends */
	atomic_store_explicit(&canned.total, canned.polled,
			      memory_order_release);
	pthread_join(consumer, NULL);
	return seconds;
}

/* Returns the ns per completion. */
static double measure_bare(struct bench *bench)
{
	double ns = run_bare(bench) * 1e9 / (double)canned.polled;

	canned.polled = 0;
	/* relaxed: no other thread yet */
	atomic_store_explicit(&canned.taken, 0, memory_order_relaxed);
	return ns;
}

int main(int argc, char **argv)
{
	static struct bench bench;
	char name[32];
	double bare = 0;
	double seconds;

	bench.args = bench_parse(argc, argv);
	if (bench.args.count != 2 && bench.args.count != 3)
		bench_fail("usage: bench_poller [--seconds S] [--cpus A,B] "
			   "bare|poller|ops|added FANOUT [QPS]");
	bench.fanout = (uint32_t)atoi(bench.args.words[1]);
	if (bench.fanout < 1 || bench.fanout > MAX_FANOUT)
		bench_fail("FANOUT is 1 to 8");
	bench.sides_count = SIDES;
	if (bench.args.count == 3)
		bench.sides_count = (uint32_t)atoi(bench.args.words[2]);
	if (bench.sides_count < 1 || bench.sides_count > MAX_SIDES)
		bench_fail("QPS is 1 to 4096");
	bench.routes_count =
		bench.sides_count > ROUTES ? bench.sides_count : ROUTES;
	init_canned(&bench);
	if (strcmp(bench.args.words[0], "added") == 0)
		bare = measure_bare(&bench);
	if (strcmp(bench.args.words[0], "bare") == 0)
		seconds = run_bare(&bench);
	else
		seconds = run_poller(&bench);
	snprintf(name, sizeof(name), "%s.%u", bench.args.words[0],
		 bench.fanout);
	if (strcmp(bench.args.words[0], "ops") == 0)
		bench_report(name, (double)canned.polled / seconds / 1e6,
			     "Mops/s");
	else
		bench_report(name, seconds * 1e9 / (double)canned.polled - bare,
			     "ns");
	return 0;
}
