/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * bench_thousands [--seconds S] [--cpus A,B] COUNT
 *
 * The cost of many connections for each message: COUNT connections on two
 * pollers, half of which are closed and made anew, a connection each CHURN_NS.
 * The other half writes in turn, a write each STEADY_NS; so messages and lives
 * per second do not depend on COUNT. "p99" is the 99th percentile of these
 * writes, from the post to the consumer, which sleeps in between; "median"
 * likewise. "lives" is the number of connections made anew.
 */

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/prctl.h>

#include "bench.h"
#include "steady.h"

#define POLLERS	 2
#define CHURN_NS 4000000

struct bench {
	struct world world;
	struct rpma_rt_conn_cfg *cfg;
	struct steady steady;
	struct crowd churning;
	_Atomic bool is_over;
	uint64_t lives;
};

/* -------------------------------------------------------------- churning - */

/* Closes both ends of a connection and makes another in its place. */
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

	/* relaxed: nothing hangs on it but when */
	while (!atomic_load_explicit(&bench->is_over, memory_order_relaxed)) {
		make_anew(bench, i++ % (bench->churning.ends / 2));
		due += CHURN_NS;
		bench_sleep_until(due);
	}
	return NULL;
}

/* ------------------------------------------------------------------------- */

static void measure(struct bench *bench, double seconds)
{
	pthread_t churner;

	prctl(PR_SET_TIMERSLACK, 1ul);
	CHECK(!pthread_create(&churner, NULL, churn_main, bench));
	steady_write(&bench->steady, seconds, NULL);
	/* relaxed: as in churn_main() */
	atomic_store_explicit(&bench->is_over, true, memory_order_relaxed);
	pthread_join(churner, NULL);
}

static void open_all(struct bench *bench, uint32_t count)
{
	struct rpma_rt_queue_cfg cfg = RPMA_RT_QUEUE_CFG_INIT;

	world_open(&bench->world);
	world_start(&bench->world, POLLERS, RPMA_RT_MODE_ADAPTIVE);
	bench->cfg = world_cfg(1, 1);
	steady_open(&bench->steady, &bench->world, count / 2 * 2);
	crowd_open(&bench->churning, &bench->world, RPMA_RT_POLLER_ANY,
		   count / 2 * 2, &cfg);
}

static void close_all(struct bench *bench)
{
	steady_close(&bench->steady);
	crowd_close(&bench->churning);
	crowd_end(&bench->churning);
	MUST(rpma_rt_stop(bench->world.rt));
	world_close(&bench->world);
	free(bench->cfg);
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
	bench_report("p99", steady_percentile(&bench.steady, 0, 0.99), "us");
	bench_report("median", steady_percentile(&bench.steady, 0, 0.5), "us");
	bench_report("lives", (double)bench.lives, "count");
	close_all(&bench);
	return 0;
}
