/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * bench_teardown [--seconds S] [--cpus A,B] quiet|disturbed COUNT
 *
 * The 99th percentile, over the writes of one busy connection, of the time
 * from the call that posts to the completion in its consumer's hands; COUNT
 * other connections of the same poller stand by, or are all torn down
 * meanwhile on a device whose calls to modify and to destroy sleep for a
 * millisecond, as a kernel's do. Writes are posted by the clock, not when the
 * one before has completed: else a poller that stands still would be seen by
 * one write, and the rest would wait unmeasured. The runtime's defaults: its
 * poller, like the consumer, spins for a while and sleeps; nothing is pinned
 * to --cpus.
 */

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <time.h>

#include "bench.h"
#include "rpma_loopback.h"
#include "stage.h"

#define PERIOD_NS   200000 /* between bursts */
#define BURST	    8
#define DEPTH	    4096    /* 100 ms of them */
#define MAX_SAMPLES 4000000 /* 100 s of them */
#define KERNEL_NS   1000000

struct bench {
	struct stage stage;
	struct world_pair busy;
	struct rpma_rt_queue *others;
	uint32_t others_count;
	struct rpma_rt_conn **active;
	_Atomic uint32_t closed;

	/* of each write: when it was posted, then what it took */
	uint64_t *ns;
	uint64_t posted; /* the poster's */
};

static uint64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

static void sleep_until(uint64_t ns)
{
	const struct timespec at = {.tv_sec = (time_t)(ns / 1000000000),
				    .tv_nsec = (long)(ns % 1000000000)};

	while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &at, NULL))
		;
}

/* What a kernel adds to these calls. */
static void as_a_kernel(enum rpma_loopback_point point, const void *object,
			void *arg)
{
	(void)object;
	(void)arg;
	if (point == RPMA_LOOPBACK_MODIFY || point == RPMA_LOOPBACK_DESTROY)
		sleep_until(now_ns() + KERNEL_NS);
}

/* ----------------------------------------------------------- the others --- */

static void connect_others(struct bench *bench)
{
	struct rpma_rt_conn_cfg *cfg = world_cfg(1, 1);
	struct world_pair pair;
	uint32_t i;

	MUST(rpma_rt_queue_new(bench->stage.world.rt, NULL, &bench->others));
	bench->active = calloc(bench->others_count / 2 + 1,
			       sizeof(struct rpma_rt_conn *));
	CHECK(bench->active != NULL);
	for (i = 0; i < bench->others_count / 2; i++) {
		world_connect(&bench->stage.world, cfg, 0, bench->others,
			      bench->others, &pair);
		bench->active[i] = pair.active;
	}
	MUST(rpma_rt_conn_cfg_delete(&cfg));
}

/* Both ends of each close; their consumer has nothing else to do. */
static void *bury_main(void *arg)
{
	struct bench *bench = arg;
	struct rpma_rt_completion item;
	struct rpma_rt_conn *conn;
	uint32_t i;

	for (i = 0; i < bench->others_count / 2 * 2; i++) {
		item = world_event(bench->others, RPMA_RT_EVENT_CLOSED);
		conn = (struct rpma_rt_conn *)(uintptr_t)item.context;
		MUST(rpma_rt_conn_put(&conn));
		/* relaxed: only the count matters */
		atomic_fetch_add_explicit(&bench->closed, 1,
					  memory_order_relaxed);
	}
	return NULL;
}

static void close_others(struct bench *bench, pthread_t *thread)
{
	uint32_t i;

	CHECK(pthread_create(thread, NULL, bury_main, bench) == 0);
	for (i = 0; i < bench->others_count / 2; i++)
		MUST(rpma_rt_conn_close(bench->active[i]));
}

static bool are_closed(struct bench *bench)
{
	/* relaxed: as above */
	return atomic_load_explicit(&bench->closed, memory_order_relaxed) ==
	       bench->others_count / 2 * 2;
}

/* -------------------------------------------------- the busy connection --- */

static void *consumer_main(void *arg)
{
	struct bench *bench = arg;
	struct rpma_rt_completion items[BURST];
	uint64_t now;
	int got;
	int i;

	for (;;) {
		MUST(rpma_rt_queue_wait(bench->stage.aq, -1, BURST, items,
					&got));
		now = now_ns();
		for (i = 0; i < got; i++) {
			if (items[i].kind == RPMA_RT_MESSAGE)
				return NULL;
			if (items[i].kind == RPMA_RT_WRITABLE)
				continue;
			CHECK(items[i].kind == RPMA_RT_COMPLETION);
			CHECK(items[i].status == IBV_WC_SUCCESS);
			bench->ns[items[i].context] =
				now - bench->ns[items[i].context];
		}
	}
}

/* Without credits it waits, and the time counts. */
static void post(struct bench *bench, uint64_t context)
{
	int ret;

	bench->ns[context] = now_ns();
	do {
		ret = rpma_rt_write(bench->busy.active, bench->stage.remote, 0,
				    bench->stage.mr, 64, 8,
				    RPMA_F_COMPLETION_ALWAYS, context);
		if (ret == RPMA_E_AGAIN)
			sleep_until(now_ns() + PERIOD_NS);
	} while (ret == RPMA_E_AGAIN);
	MUST(ret);
}

/* Until the time is over, and until the others are gone if they are going. */
static void post_by_the_clock(struct bench *bench, double seconds,
			      bool disturbed)
{
	uint64_t begin = now_ns();
	uint64_t due = begin;
	int i;

	while (now_ns() - begin < (uint64_t)(seconds * 1e9) ||
	       (disturbed && !are_closed(bench))) {
		if (bench->posted + BURST > MAX_SAMPLES)
			bench_fail("the others are not torn down in time");
		for (i = 0; i < BURST; i++)
			post(bench, bench->posted++);
		due += PERIOD_NS;
		sleep_until(due);
	}
}

/* ------------------------------------------------------------------------- */

static int compare(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a;
	uint64_t y = *(const uint64_t *)b;

	return (x > y) - (x < y);
}

static double percentile(struct bench *bench, double share)
{
	if (bench->posted == 0)
		bench_fail("nothing was posted");
	qsort(bench->ns, bench->posted, sizeof(*bench->ns), compare);
	return (double)bench->ns[(uint64_t)((double)bench->posted * share)] /
	       1e3;
}

static void drain(struct bench *bench, pthread_t consumer)
{
	struct rpma_rt_queue_stats stats;

	/* a message overtakes completions */
	do {
		sleep_until(now_ns() + KERNEL_NS);
		MUST(rpma_rt_get_queue_stats(bench->stage.aq, &stats));
	} while (stats.taken < bench->posted);
	MUST(rpma_rt_queue_push(bench->stage.aq, 0, NULL, 0, 0));
	pthread_join(consumer, NULL);
}

static void measure(struct bench *bench, double seconds, bool disturbed)
{
	pthread_t consumer;
	pthread_t burier;

	prctl(PR_SET_TIMERSLACK, 1ul);
	rpma_loopback_set_hook(as_a_kernel, NULL);
	CHECK(pthread_create(&consumer, NULL, consumer_main, bench) == 0);
	if (disturbed)
		close_others(bench, &burier);
	post_by_the_clock(bench, seconds, disturbed);
	drain(bench, consumer);
	rpma_loopback_set_hook(NULL, NULL);
	if (!disturbed)
		close_others(bench, &burier);
	pthread_join(burier, NULL);
}

int main(int argc, char **argv)
{
	const struct stage_cfg cfg = {
		.pollers = 1, .mode = RPMA_RT_MODE_ADAPTIVE, .depth = DEPTH};
	struct bench_args args = bench_parse(argc, argv);
	static struct bench bench;
	bool disturbed;

	if (args.count != 2)
		bench_fail("usage: bench_teardown [--seconds S] [--cpus A,B] "
			   "quiet|disturbed COUNT");
	disturbed = strcmp(args.words[0], "disturbed") == 0;
	bench.others_count = (uint32_t)atoi(args.words[1]);
	bench.ns = calloc(MAX_SAMPLES, sizeof(*bench.ns));
	CHECK(bench.ns != NULL);
	stage_open(&bench.stage, &cfg);
	stage_connect(&bench.stage, &bench.busy);
	connect_others(&bench);
	measure(&bench, args.seconds, disturbed);
	bench_report(args.words[0], percentile(&bench, 0.99), "us");
	bench_report("median", percentile(&bench, 0.5), "us");
	bench_report("longest", percentile(&bench, 0.99999), "us");
	bench_report("writes", (double)bench.posted, "");

	stage_disconnect(&bench.stage, &bench.busy);
	MUST(rpma_rt_queue_delete(&bench.others));
	stage_close(&bench.stage);
	free(bench.active);
	free(bench.ns);
	return 0;
}
