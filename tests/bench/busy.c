/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/* busy.c -- a connection that writes by the clock; see busy.h. */

#include "busy.h"

#include <stdlib.h>

#include "bench.h"

#define PERIOD_NS   200000 /* between bursts */
#define BURST	    8
#define MAX_SAMPLES 4000000 /* 100 s of them */

/* The consumer has it. */
static void complete(struct busy *busy, const struct rpma_rt_completion *item,
		     uint64_t now)
{
	if (item->kind != RPMA_RT_COMPLETION)
		return;
	CHECK(item->status == IBV_WC_SUCCESS);
	busy->ns[item->context] = now - busy->ns[item->context];
	/* release: pairs with the acquire in busy_stop() */
	atomic_fetch_add_explicit(&busy->completed, 1, memory_order_release);
}

static void on_completion(const struct rpma_rt_completion *item, void *arg)
{
	complete(arg, item, bench_now_ns());
}

void busy_open(struct busy *busy, struct stage *stage, bool to_function)
{
	*busy = (struct busy){.stage = stage};
	busy->ns = calloc(MAX_SAMPLES, sizeof(*busy->ns));
	CHECK(busy->ns != NULL);
	stage_connect(stage, &busy->pair);
	if (to_function)
		MUST(rpma_rt_route_open_callback(
			busy->pair.active, RPMA_RT_SEND_SIDE, on_completion,
			busy, &busy->route));
}

static void *consumer_main(void *arg)
{
	struct busy *busy = arg;
	struct rpma_rt_completion items[BURST];
	uint64_t now;
	int got;
	int i;

	for (;;) {
		got = rpma_rt_queue_wait(busy->stage->aq, items, BURST, -1);
		CHECK(got > 0);
		now = bench_now_ns();
		for (i = 0; i < got; i++) {
			if (items[i].kind == RPMA_RT_MESSAGE)
				return NULL;
			complete(busy, &items[i], now);
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
	const struct rpma_rt_wr wr = {
		.op = RPMA_RT_OP_WRITE,
		.flags = RPMA_F_COMPLETION_ALWAYS,
		.context = context,
		.route = busy->route,
		.local = busy->stage->mr,
		.local_offset = 64,
		.remote = busy->stage->remote,
		.len = 8,
	};
	int ret;

	busy->ns[context] = bench_now_ns();
	do {
		ret = world_post_send(busy->pair.active, &wr);
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

	do {
		if (busy->posted + BURST > MAX_SAMPLES)
			bench_fail("what happens beside it takes too long");
		for (i = 0; i < BURST; i++)
			post(busy, busy->posted++);
		due += PERIOD_NS;
		bench_sleep_until(due);
	} while (bench_now_ns() - begin < (uint64_t)(seconds * 1e9) ||
		 (is_over != NULL && !is_over(arg)));
}

void busy_stop(struct busy *busy)
{
	/* a message overtakes completions. acquire: pairs with the release in
	 * complete(), with the times */
	while (atomic_load_explicit(&busy->completed, memory_order_acquire) <
	       busy->posted)
		bench_sleep_until(bench_now_ns() + 1000000);
	MUST(rpma_rt_queue_push(busy->stage->aq,
				&(struct rpma_rt_completion){0}));
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
