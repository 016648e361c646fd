/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * bench_thousands [--seconds S] [--cpus A,B] COUNT
 *
 * The cost of many connections for each message: COUNT connections on two
 * pollers, half of which are closed and made anew, a connection each CHURN_NS.
 * The other half writes in turn, a write each WRITE_NS; so messages and lives
 * per second do not depend on COUNT. "p99" is the 99th percentile of these
 * writes, from the post to the consumer, which sleeps in between; "median"
 * likewise. "lives" is the number of connections made anew.
 */

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/prctl.h>

#include "bench.h"
#include "crowd.h"

#define POLLERS	    2
#define WRITE_NS    100000
#define CHURN_NS    4000000
#define MAX_SAMPLES 1000000 /* 100 s of them */
#define SIZE	    8

struct bench {
	struct world world;
	struct rpma_mr_local *mr;
	struct rpma_mr_remote *remote;
	struct rpma_rt_conn_cfg *cfg;
	struct crowd steady;
	struct crowd churning;
	_Atomic bool is_over;
	uint64_t lives;
	/* of each write: time of the post, then duration */
	uint64_t *ns;
	uint64_t posted;
	_Atomic uint64_t completed; /* by the consumer */
};

static char memory[64];

/* -------------------------------------------------------------- churning - */

/* Closes both ends of a connection, and makes another. */
static void make_anew(struct bench *bench, uint32_t i)
{
	struct crowd *crowd = &bench->churning;
	struct rpma_rt_completion item;
	struct rpma_rt_conn *conn;
	struct world_pair pair;
	int end;

	MUST(rpma_rt_conn_close(crowd->conns[i]));
	for (end = 0; end < 2; end++) {
		item = world_event(crowd->queue, RPMA_RT_EVENT_CLOSED);
		conn = (struct rpma_rt_conn *)(uintptr_t)item.context;
		MUST(rpma_rt_conn_unref(&conn));
	}
	world_connect(&bench->world, bench->cfg, RPMA_RT_POLLER_ANY,
		      crowd->queue, crowd->queue, &pair);
	crowd->conns[i] = pair.active;
	bench->lives++;
}

static void *churn_main(void *arg)
{
	struct bench *bench = arg;
	uint64_t due = bench_now_ns();
	uint32_t i = 0;

	/* relaxed: decides only the time */
	while (!atomic_load_explicit(&bench->is_over, memory_order_relaxed)) {
		make_anew(bench, i++ % (bench->churning.ends / 2));
		due += CHURN_NS;
		bench_sleep_until(due);
	}
	return NULL;
}

/* ---------------------------------------------------------------- writing - */

static void *consumer_main(void *arg)
{
	struct bench *bench = arg;
	struct rpma_rt_completion item;

	for (;;) {
		item = world_next(bench->steady.queue);
		if (item.kind == RPMA_RT_MESSAGE)
			return NULL;
		/* of a post while the previous write was outstanding */
		if (item.kind == RPMA_RT_WRITABLE)
			continue;
		CHECK(item.kind == RPMA_RT_COMPLETION &&
		      item.status == IBV_WC_SUCCESS);
		bench->ns[item.context] =
			bench_now_ns() - bench->ns[item.context];
		/* release: pairs with the acquire in write_all() */
		atomic_fetch_add_explicit(&bench->completed, 1,
					  memory_order_release);
	}
}

static void post(struct bench *bench)
{
	const struct rpma_rt_wr wr = {
		.op = RPMA_RT_OP_WRITE,
		.flags = RPMA_F_COMPLETION_ALWAYS,
		.context = bench->posted,
		.local = bench->mr,
		.remote = bench->remote,
		.remote_offset = sizeof(memory) - SIZE,
		.len = SIZE,
	};
	struct crowd *crowd = &bench->steady;
	int ret;

	bench->ns[bench->posted] = bench_now_ns();
	/* the previous write may still be outstanding: the post waits, and the
	 * time counts */
	do {
		ret = world_post_send(crowd->conns[bench->posted % crowd->ends],
				      &wr);
		if (ret == RPMA_E_AGAIN)
			bench_sleep_until(bench_now_ns() + WRITE_NS);
	} while (ret == RPMA_E_AGAIN);
	MUST(ret);
	bench->posted++;
}

static void write_all(struct bench *bench, double seconds)
{
	uint64_t begin = bench_now_ns();
	uint64_t due = begin;

	while (bench_now_ns() - begin < (uint64_t)(seconds * 1e9) ||
	       bench->posted == 0) {
		if (bench->posted == MAX_SAMPLES)
			bench_fail("fewer seconds: there is no more room");
		post(bench);
		due += WRITE_NS;
		bench_sleep_until(due);
	}
	/* acquire: pairs with the release of the consumer, with the times */
	while (atomic_load_explicit(&bench->completed, memory_order_acquire) <
	       bench->posted)
		bench_sleep_until(bench_now_ns() + WRITE_NS);
}

/* ------------------------------------------------------------------------- */

static void measure(struct bench *bench, double seconds)
{
	pthread_t consumer, churner;

	prctl(PR_SET_TIMERSLACK, 1ul);
	CHECK(!pthread_create(&consumer, NULL, consumer_main, bench));
	CHECK(!pthread_create(&churner, NULL, churn_main, bench));
	write_all(bench, seconds);
	/* relaxed: as in churn_main() */
	atomic_store_explicit(&bench->is_over, true, memory_order_relaxed);
	pthread_join(churner, NULL);
	MUST(rpma_rt_queue_push(bench->steady.queue,
				&(struct rpma_rt_completion){0}));
	pthread_join(consumer, NULL);
}

static void open_all(struct bench *bench, uint32_t count)
{
	struct rpma_rt_queue_cfg cfg = RPMA_RT_QUEUE_CFG_INIT;

	world_open(&bench->world);
	world_start(&bench->world, POLLERS, RPMA_RT_MODE_ADAPTIVE);
	MUST(rpma_mr_reg(bench->world.peer, memory, sizeof(memory),
			 RPMA_MR_USAGE_WRITE_SRC | RPMA_MR_USAGE_WRITE_DST,
			 &bench->mr));
	bench->remote = world_remote_of(bench->mr);
	bench->cfg = world_cfg(1, 1);
	bench->ns = calloc(MAX_SAMPLES, sizeof(*bench->ns));
	CHECK(bench->ns != NULL);
	crowd_open(&bench->steady, &bench->world, RPMA_RT_POLLER_ANY,
		   count / 2 * 2, &cfg);
	crowd_open(&bench->churning, &bench->world, RPMA_RT_POLLER_ANY,
		   count / 2 * 2, &cfg);
}

static void close_all(struct bench *bench)
{
	crowd_close(&bench->steady);
	crowd_close(&bench->churning);
	crowd_end(&bench->steady);
	crowd_end(&bench->churning);
	MUST(rpma_mr_remote_delete(&bench->remote));
	MUST(rpma_mr_dereg(&bench->mr));
	MUST(rpma_rt_stop(bench->world.rt));
	world_close(&bench->world);
	free(bench->cfg);
	free(bench->ns);
}

int main(int argc, char **argv)
{
	struct bench_args args = bench_parse(argc, argv);
	static struct bench bench;
	int count;

	if (args.count != 1)
		bench_fail("usage: bench_thousands [--seconds S] [--cpus A,B] "
			   "COUNT");
	count = atoi(args.words[0]);
	if (count < 4)
		bench_fail("COUNT is at least 4");
	open_all(&bench, (uint32_t)count);
	measure(&bench, args.seconds);
	bench_report("p99", bench_percentile(bench.ns, bench.posted, 0.99),
		     "us");
	bench_report("median", bench_percentile(bench.ns, bench.posted, 0.5),
		     "us");
	bench_report("lives", (double)bench.lives, "");
	close_all(&bench);
	return 0;
}
