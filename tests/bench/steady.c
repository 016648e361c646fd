/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/* steady.c -- see steady.h. */

#include "steady.h"

#include <stdlib.h>

#include "bench.h"

#define SIZE 8

static char memory[64];

static void *consumer_main(void *arg)
{
	struct steady *steady = arg;
	struct rpma_rt_completion item;

	for (;;) {
		item = world_next(steady->crowd.queue);
		if (item.kind == RPMA_RT_MESSAGE)
			return NULL;
		/* of a post that found its write before still out */
		if (item.kind == RPMA_RT_WRITABLE)
			continue;
		CHECK(item.kind == RPMA_RT_COMPLETION &&
		      item.status == IBV_WC_SUCCESS);
		steady->ns[item.context] =
			bench_now_ns() - steady->ns[item.context];
		/* release: pairs with the acquire in steady_write() */
		atomic_fetch_add_explicit(&steady->completed, 1,
					  memory_order_release);
	}
}

static void post(struct steady *steady)
{
	const struct rpma_rt_wr wr = {
		.op = RPMA_RT_OP_WRITE,
		.flags = RPMA_F_COMPLETION_ALWAYS,
		.context = steady->posted,
		.local = steady->mr,
		.remote = steady->remote,
		.remote_offset = sizeof(memory) - SIZE,
		.len = SIZE,
	};
	struct crowd *crowd = &steady->crowd;
	int ret;

	steady->ns[steady->posted] = bench_now_ns();
	/* the write before may be out still: the post waits, and the time
	 * counts */
	do {
		ret = world_post_send(
			crowd->conns[steady->posted % crowd->ends], &wr);
		if (ret == RPMA_E_AGAIN)
			bench_sleep_until(bench_now_ns() + STEADY_NS);
	} while (ret == RPMA_E_AGAIN);
	MUST(ret);
	steady->posted++;
}

static bool is_through(const _Atomic bool *is_over)
{
	/* relaxed: nothing hangs on it but when */
	return is_over == NULL ||
	       atomic_load_explicit(is_over, memory_order_relaxed);
}

void steady_write(struct steady *steady, double seconds,
		  const _Atomic bool *is_over)
{
	uint64_t begin = bench_now_ns();
	uint64_t first = steady->posted;
	uint64_t due = begin;

	while (bench_now_ns() - begin < (uint64_t)(seconds * 1e9) ||
	       steady->posted == first || !is_through(is_over)) {
		if (steady->posted == STEADY_MAX)
			bench_fail("fewer seconds: there is no more room");
		post(steady);
		due += STEADY_NS;
		bench_sleep_until(due);
	}
	/* acquire: pairs with the release of the consumer, with the times */
	while (atomic_load_explicit(&steady->completed, memory_order_acquire) <
	       steady->posted)
		bench_sleep_until(bench_now_ns() + STEADY_NS);
}

double steady_percentile(struct steady *steady, uint64_t from, double share)
{
	return bench_percentile(steady->ns + from, steady->posted - from,
				share);
}

void steady_open(struct steady *steady, struct world *world, uint32_t ends)
{
	struct rpma_rt_queue_cfg cfg = RPMA_RT_QUEUE_CFG_INIT;

	MUST(rpma_mr_reg(world->peer, memory, sizeof(memory),
			 RPMA_MR_USAGE_WRITE_SRC | RPMA_MR_USAGE_WRITE_DST,
			 &steady->mr));
	steady->remote = world_remote_of(steady->mr);
	steady->ns = calloc(STEADY_MAX, sizeof(*steady->ns));
	CHECK(steady->ns != NULL);
	crowd_open(&steady->crowd, world, RPMA_RT_POLLER_ANY, ends, &cfg);
	CHECK(!pthread_create(&steady->consumer, NULL, consumer_main, steady));
}

void steady_close(struct steady *steady)
{
	MUST(rpma_rt_queue_push(steady->crowd.queue,
				&(struct rpma_rt_completion){0}));
	pthread_join(steady->consumer, NULL);
	crowd_close(&steady->crowd);
	crowd_end(&steady->crowd);
	MUST(rpma_mr_remote_delete(&steady->remote));
	MUST(rpma_mr_dereg(&steady->mr));
	free(steady->ns);
}
