/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * bench_rest [--seconds S] [--cpus A,B] CONNECTIONS
 *
 * What the first completion on a CQ waits that has left the round, beside the
 * completion on a CQ in the round (doc/protocols/channel.md). CONNECTIONS on
 * one poller of manual mode, which the measuring thread runs. A send completes;
 * AWAKE or RESTING rounds without a completion follow; then the next send of
 * the same connection is posted, and the time from the end of the post until
 * its completion is taken counts. "rest" and "awake" are the medians over S
 * seconds and all connections in turn, "more" is the difference.
 */

#include <stdlib.h>

#include "bench.h"
#include "pair.h"

#define DEPTH	128
#define SIZE	64
#define AWAKE	8    /* fewer than a CQ's empty polls before its rest */
#define RESTING 1000 /* more than those, and one CQ a round */
#define STRIDE	97   /* connections from a sample to the next */
#define MAX	100000

struct bench {
	struct stage stage;
	struct world_pair *pairs;
	uint32_t count;
	uint64_t ns[2][MAX]; /* of AWAKE, of RESTING */
	uint32_t samples;
};

static void empty_rounds(struct bench *bench, int rounds)
{
	while (rounds-- > 0)
		CHECK(rpma_rt_poller_run(bench->stage.world.rt, 0, 32) == 0);
}

static void take(struct rpma_rt *rt, int poller, struct rpma_rt_queue *queue)
{
	struct rpma_rt_completion item;

	do
		MUST(rpma_rt_poller_run(rt, poller, 32) < 0);
	while (rpma_rt_queue_poll(queue, &item, 1) == 0);
	CHECK(item.kind == RPMA_RT_COMPLETION && item.status == IBV_WC_SUCCESS);
}

/* One message; returns the nanoseconds until the sender has the completion. */
static uint64_t send_one(struct bench *bench, const struct world_pair *pair)
{
	struct stage *s = &bench->stage;
	uint64_t begin, end;

	MUST(rpma_rt_recv(pair->passive, s->mr, 0, SIZE, 7));
	MUST(rpma_rt_send(pair->active, s->mr, SIZE, SIZE,
			  RPMA_F_COMPLETION_ALWAYS, 8));
	begin = bench_now_ns();
	take(s->world.rt, 0, s->aq);
	end = bench_now_ns();
	take(s->world.rt, 1, s->pq);
	return end - begin;
}

static void sample(struct bench *bench)
{
	uint32_t i =
		(uint32_t)((uint64_t)bench->samples * STRIDE % bench->count);
	static const int rounds[2] = {AWAKE, RESTING};
	int way;

	for (way = 0; way < 2; way++) {
		send_one(bench, &bench->pairs[i]);
		empty_rounds(bench, rounds[way]);
		bench->ns[way][bench->samples] =
			send_one(bench, &bench->pairs[i]);
	}
	bench->samples++;
}

static void open_all(struct bench *bench)
{
	uint32_t i;

	pair_stage_open(&bench->stage, DEPTH);
	bench->pairs = calloc(bench->count, sizeof(*bench->pairs));
	CHECK(bench->pairs != NULL);
	for (i = 0; i < bench->count; i++)
		pair_connect(&bench->stage, bench->stage.cfg, &bench->pairs[i]);
}

int main(int argc, char **argv)
{
	struct bench_args args = bench_parse(argc, argv);
	static struct bench bench;
	double awake, rest;
	uint64_t end;

	if (args.count != 1 || atoi(args.words[0]) < 1)
		bench_fail("usage: bench_rest [--seconds S] [--cpus A,B] "
			   "CONNECTIONS");
	bench.count = (uint32_t)atoi(args.words[0]);
	open_all(&bench);
	end = bench_now_ns() + (uint64_t)(args.seconds * 1e9);
	do
		sample(&bench);
	while (bench.samples < MAX && bench_now_ns() < end);
	awake = bench_percentile(bench.ns[0], bench.samples, 0.5);
	rest = bench_percentile(bench.ns[1], bench.samples, 0.5);
	bench_report("more", rest - awake, "us");
	bench_report("rest", rest, "us");
	bench_report("awake", awake, "us");
	fflush(stdout);
	_Exit(0); /* the connections stay */
}
