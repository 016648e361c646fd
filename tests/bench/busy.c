/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/* busy.c -- a connection that writes by the clock; see busy.h. */

#include "busy.h"

#include <stdlib.h>

#include "bench.h"

#define PERIOD_NS   200000 /* between bursts */
#define BURST	    8
#define MAX_SAMPLES 4000000 /* 100 s of them */

void busy_open(struct busy *busy, struct stage *stage)
{
	*busy = (struct busy){.stage = stage};
	busy->ns = calloc(MAX_SAMPLES, sizeof(*busy->ns));
	CHECK(busy->ns != NULL);
	stage_connect(stage, &busy->pair);
}

static void *consumer_main(void *arg)
{
	struct busy *busy = arg;
	struct rpma_rt_completion items[BURST];
	uint64_t now;
	int got;
	int i;

	for (;;) {
		MUST(rpma_rt_queue_wait(busy->stage->aq, -1, BURST, items,
					&got));
		now = bench_now_ns();
		for (i = 0; i < got; i++) {
			if (items[i].kind == RPMA_RT_MESSAGE)
				return NULL;
			if (items[i].kind == RPMA_RT_WRITABLE)
				continue;
			CHECK(items[i].kind == RPMA_RT_COMPLETION);
			CHECK(items[i].status == IBV_WC_SUCCESS);
			busy->ns[items[i].context] =
				now - busy->ns[items[i].context];
		}
	}
}

void busy_start(struct busy *busy)
{
	CHECK(pthread_create(&busy->consumer, NULL, consumer_main, busy) == 0);
}

/* Without credits it waits, and the time counts. */
static void post(struct busy *busy, uint64_t context)
{
	int ret;

	busy->ns[context] = bench_now_ns();
	do {
		ret = rpma_rt_write(busy->pair.active, busy->stage->remote, 0,
				    busy->stage->mr, 64, 8,
				    RPMA_F_COMPLETION_ALWAYS, context);
		if (ret == RPMA_E_AGAIN)
			bench_sleep_until(bench_now_ns() + PERIOD_NS);
	} while (ret == RPMA_E_AGAIN);
	MUST(ret);
}

void busy_write(struct busy *busy, double seconds, bool (*is_over)(void *arg),
		void *arg)
{
	uint64_t begin = bench_now_ns();
	uint64_t due = begin;
	int i;

	while (bench_now_ns() - begin < (uint64_t)(seconds * 1e9) ||
	       (is_over != NULL && !is_over(arg))) {
		if (busy->posted + BURST > MAX_SAMPLES)
			bench_fail("what happens beside it takes too long");
		for (i = 0; i < BURST; i++)
			post(busy, busy->posted++);
		due += PERIOD_NS;
		bench_sleep_until(due);
	}
}

void busy_stop(struct busy *busy)
{
	struct rpma_rt_queue_stats stats;

	/* a message overtakes completions */
	do {
		bench_sleep_until(bench_now_ns() + 1000000);
		MUST(rpma_rt_get_queue_stats(busy->stage->aq, &stats));
	} while (stats.taken < busy->posted);
	MUST(rpma_rt_queue_push(busy->stage->aq, 0, NULL, 0, 0));
	pthread_join(busy->consumer, NULL);
}

double busy_percentile(struct busy *busy, double share)
{
	return bench_percentile(busy->ns, busy->posted, share);
}

void busy_close(struct busy *busy)
{
	stage_disconnect(busy->stage, &busy->pair);
	free(busy->ns);
}
