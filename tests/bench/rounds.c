/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * bench_rounds [--seconds S] [--cpus A,B] quiet|disturbed WHAT COUNT
 *
 * The longest round of a poller, and the effect on a busy connection of the
 * poller. WHAT happens there at once:
 *   routes   a connection with COUNT routes closes, each route has a queue
 *   backlog  a queue over its limit is emptied, and COUNT connections
 *            were refused posts to it
 *   dying    COUNT connections, all except the busy connection, are closed
 * A thread runs the poller by hand, pinned to the first CPU. "longest" is the
 * longest round in its processor time, so other programs do not count. "p99" is
 * the 99th percentile of the busy connection's writes, from the post to the
 * function that the poller calls. Both figures are printed as at least
 * FLOOR_US, the allowed time of a round of 64 items, a microsecond each with
 * all lanes: less is good enough, and twice as much is the limit of a round.
 */

#include <limits.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <time.h>

#include "bench.h"
#include "busy.h"
#include "crowd.h"
#include "stage.h"

#define FLOOR_US   64
#define MIN_S	   0.002 /* of writes each time something happens */
#define LANE	   64	 /* of the full queue */
#define LIMIT	   64
#define CROWD_LANE 8192 /* room for everything refused at once */

struct bench {
	struct stage stage;
	struct busy busy;
	uint32_t count;
	pthread_t poller;
	int cpu;

	/* routes */
	struct rpma_rt_conn_cfg *cfg;
	struct rpma_rt_queue *events;
	struct rpma_rt_queue **queues;
	struct world_pair pair;

	/* backlog, dying */
	struct crowd crowd;
	struct rpma_rt_queue *slow;
	struct rpma_rt_route **routes; /* a route to the queue for each
				        * connection of the crowd */
	uint32_t refused;
	uint32_t accepted;
};

struct what {
	const char *name;
	int times; /* times that WHAT happens */
	void (*open)(struct bench *bench);
	void (*prepare)(struct bench *bench); /* each time */
	void (*happen)(struct bench *bench);  /* on a thread; returns when
					      * over */
	void (*clean)(struct bench *bench);   /* each time */
	void (*close)(struct bench *bench);
};

/* ----------------------------------------------------------- the poller --- */

static _Atomic bool is_running;
static _Atomic bool is_watched;
static _Atomic uint64_t longest_ns;

static uint64_t cpu_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
	return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

static void run_watched(struct rpma_rt *rt)
{
	uint64_t begin = cpu_ns();
	uint64_t took;

	CHECK(rpma_rt_poller_run(rt, 0, INT_MAX) >= 0);
	took = cpu_ns() - begin;
	/* relaxed: one writer; read after watching has ended */
	if (took > atomic_load_explicit(&longest_ns, memory_order_relaxed))
		atomic_store_explicit(&longest_ns, took, memory_order_relaxed);
}

static void *poller_main(void *arg)
{
	struct bench *bench = arg;
	struct rpma_rt *rt = bench->stage.world.rt;

	bench_pin(bench->cpu);
	MUST(rpma_rt_poller_attach(rt, 0));
	/* relaxed, both flags: nothing hangs on them but when */
	while (atomic_load_explicit(&is_running, memory_order_relaxed)) {
		if (atomic_load_explicit(&is_watched, memory_order_relaxed))
			run_watched(rt);
		else
			CHECK(rpma_rt_poller_run(rt, 0, INT_MAX) >= 0);
	}
	return NULL;
}

static void watch(bool on)
{
	/* relaxed: as in poller_main() */
	atomic_store_explicit(&is_watched, on, memory_order_relaxed);
}

/* --------------------------------------------------------------- routes --- */

static void open_routes(struct bench *bench)
{
	struct rpma_rt_queue_cfg cfg = RPMA_RT_QUEUE_CFG_INIT;
	uint32_t i;

	bench->cfg = world_cfg(1, 1);
	MUST(rpma_rt_queue_new(bench->stage.world.rt, NULL, &bench->events));
	bench->queues = calloc(bench->count, sizeof(struct rpma_rt_queue *));
	CHECK(bench->queues != NULL);
	cfg.lane_size = LANE;
	for (i = 0; i < bench->count; i++)
		MUST(rpma_rt_queue_new(bench->stage.world.rt, &cfg,
				       &bench->queues[i]));
}

static void prepare_routes(struct bench *bench)
{
	struct rpma_rt_route *route;
	uint32_t i;

	world_connect(&bench->stage.world, bench->cfg, 0, bench->events,
		      bench->events, &bench->pair);
	for (i = 0; i < bench->count; i++)
		MUST(rpma_rt_route_open(bench->pair.active, RPMA_RT_RECV_SIDE,
					bench->queues[i], &route));
}

static void close_the_connection(struct bench *bench)
{
	MUST(rpma_rt_conn_close(bench->pair.active));
	world_event(bench->events, RPMA_RT_EVENT_CLOSED);
	world_event(bench->events, RPMA_RT_EVENT_CLOSED);
}

static void clean_routes(struct bench *bench)
{
	uint32_t i;

	for (i = 0; i < bench->count; i++)
		world_event(bench->queues[i], RPMA_RT_EVENT_ROUTE_CLOSED);
	MUST(rpma_rt_conn_unref(&bench->pair.active));
	MUST(rpma_rt_conn_unref(&bench->pair.passive));
}

static void close_routes(struct bench *bench)
{
	uint32_t i;

	for (i = 0; i < bench->count; i++)
		MUST(rpma_rt_queue_delete(&bench->queues[i]));
	MUST(rpma_rt_queue_delete(&bench->events));
	free(bench->cfg);
	free(bench->queues);
}

/* -------------------------------------------------------------- backlog --- */

static void open_slow_queue(struct bench *bench)
{
	struct rpma_rt_queue_cfg cfg = RPMA_RT_QUEUE_CFG_INIT;

	cfg.lane_size = LANE;
	cfg.backlog_limit = LIMIT;
	MUST(rpma_rt_queue_new(bench->stage.world.rt, &cfg, &bench->slow));
}

static void open_backlog(struct bench *bench)
{
	struct rpma_rt_queue_cfg cfg = RPMA_RT_QUEUE_CFG_INIT;
	uint32_t i;

	cfg.lane_size = CROWD_LANE;
	crowd_open(&bench->crowd, &bench->stage.world, 0, bench->count, &cfg);
	open_slow_queue(bench);
	bench->routes = calloc(bench->count, sizeof(struct rpma_rt_route *));
	CHECK(bench->routes != NULL);
	for (i = 0; i < bench->crowd.ends; i++)
		MUST(rpma_rt_route_open(bench->crowd.conns[i],
					RPMA_RT_SEND_SIDE, bench->slow,
					&bench->routes[i]));
}

static uint64_t items_inside(struct bench *bench)
{
	struct rpma_rt_queue_stats stats;

	MUST(rpma_rt_queue_get_stats(bench->slow, &stats, sizeof(stats)));
	return stats.backlog;
}

/* Each posts once: the first ones fill the queue, the others are refused. */
static void prepare_backlog(struct bench *bench)
{
	struct rpma_rt_wr wr = {
		.op = RPMA_RT_OP_WRITE,
		.flags = RPMA_F_COMPLETION_ALWAYS,
		.local = bench->stage.mr,
		.remote = bench->stage.remote,
		.len = 8,
	};
	uint32_t i;
	int ret;

	bench->accepted = 0;
	bench->refused = 0;
	for (i = 0; i < bench->crowd.ends; i++) {
		wr.route = bench->routes[i];
		ret = world_post_send(bench->crowd.conns[i], &wr);
		if (ret == 0) {
			bench->accepted++;
			/* the poller comes so far, and fills the queue */
			while (bench->accepted % LANE == 0 &&
			       items_inside(bench) < bench->accepted)
				sched_yield();
			continue;
		}
		CHECK(ret == RPMA_E_AGAIN &&
		      rpma_rt_again_reason() == RPMA_RT_AGAIN_BACKLOG);
		bench->refused++;
	}
	if (bench->refused == 0)
		bench_fail("the backlog holds nobody up: more connections");
}

static void empty_the_queue(struct bench *bench)
{
	uint32_t i;

	for (i = 0; i < bench->accepted; i++)
		CHECK(world_next(bench->slow).kind == RPMA_RT_COMPLETION);
	for (i = 0; i < bench->refused; i++)
		CHECK(world_next(bench->crowd.queue).kind == RPMA_RT_WRITABLE);
}

static void close_backlog(struct bench *bench)
{
	uint32_t i;

	crowd_close(&bench->crowd);
	for (i = 0; i < bench->crowd.ends; i++)
		world_event(bench->slow, RPMA_RT_EVENT_ROUTE_CLOSED);
	crowd_end(&bench->crowd);
	MUST(rpma_rt_queue_delete(&bench->slow));
	free(bench->routes);
}

/* ---------------------------------------------------------------- dying --- */

static void open_dying(struct bench *bench)
{
	crowd_open(&bench->crowd, &bench->stage.world, 0, bench->count, NULL);
}

/* Closes the crowd; crowd_end() sees the last close. */
static void close_the_crowd(struct bench *bench)
{
	crowd_close(&bench->crowd);
	crowd_end(&bench->crowd);
}

/* ------------------------------------------------------------------------- */

static const struct what known[] = {
	{"routes", 5, open_routes, prepare_routes, close_the_connection,
	 clean_routes, close_routes},
	{"backlog", 5, open_backlog, prepare_backlog, empty_the_queue, NULL,
	 close_backlog},
	{"dying", 1, open_dying, NULL, close_the_crowd, NULL, NULL},
};

static const struct what *find_what(const char *name)
{
	size_t i;

	for (i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
		if (strcmp(known[i].name, name) == 0)
			return &known[i];
	}
	bench_fail("WHAT is routes, backlog, dying");
}

struct happening {
	const struct what *what;
	struct bench *bench;
	_Atomic bool is_over;
};

static void *happen_main(void *arg)
{
	struct happening *h = arg;

	h->what->happen(h->bench);
	/* relaxed: decides only the time */
	atomic_store_explicit(&h->is_over, true, memory_order_relaxed);
	return NULL;
}

static bool is_over(void *arg)
{
	struct happening *h = arg;

	/* relaxed: as above */
	return atomic_load_explicit(&h->is_over, memory_order_relaxed);
}

/* Lets WHAT happen once; the busy connection writes meanwhile if measured. */
static void happen(struct bench *bench, const struct what *what, bool measured)
{
	struct happening h = {.what = what, .bench = bench};
	pthread_t thread;

	if (what->prepare != NULL)
		what->prepare(bench);
	watch(measured);
	CHECK(pthread_create(&thread, NULL, happen_main, &h) == 0);
	if (measured)
		busy_write(&bench->busy, MIN_S, is_over, &h);
	pthread_join(thread, NULL);
	watch(false);
	if (what->clean != NULL)
		what->clean(bench);
}

static void measure(struct bench *bench, const struct what *what,
		    double seconds, bool disturbed)
{
	int i;

	prctl(PR_SET_TIMERSLACK, 1ul);
	busy_start(&bench->busy);
	if (!disturbed) {
		watch(true);
		busy_write(&bench->busy, seconds, NULL, NULL);
		watch(false);
	}
	for (i = 0; i < (disturbed ? what->times : 1); i++)
		happen(bench, what, disturbed);
	busy_stop(&bench->busy);
}

static double at_least_floor(double us)
{
	return us > FLOOR_US ? us : FLOOR_US;
}

static void report(struct bench *bench)
{
	/* relaxed: no longer watched */
	double longest =
		(double)atomic_load_explicit(&longest_ns, memory_order_relaxed);

	bench_report("p99", at_least_floor(busy_percentile(&bench->busy, 0.99)),
		     "us");
	bench_report("longest", at_least_floor(longest / 1e3), "us");
	bench_report("median", busy_percentile(&bench->busy, 0.5), "us");
	bench_report("writes", (double)bench->busy.posted, "count");
}

int main(int argc, char **argv)
{
	const struct stage_cfg cfg = {
		.pollers = 1, .mode = RPMA_RT_MODE_MANUAL, .depth = BUSY_DEPTH};
	struct bench_args args = bench_parse(argc, argv);
	static struct bench bench;
	const struct what *what;

	if (args.count != 3)
		bench_fail("usage: bench_rounds [--seconds S] [--cpus A,B] "
			   "quiet|disturbed WHAT COUNT");
	what = find_what(args.words[1]);
	bench.count = (uint32_t)atoi(args.words[2]);
	bench.cpu = args.cpus[0];
	stage_open(&bench.stage, &cfg);
	/* relaxed: seen by a thread created later */
	atomic_store_explicit(&is_running, true, memory_order_relaxed);
	CHECK(pthread_create(&bench.poller, NULL, poller_main, &bench) == 0);
	busy_open(&bench.busy, &bench.stage, true);
	what->open(&bench);
	measure(&bench, what, args.seconds,
		strcmp(args.words[0], "disturbed") == 0);
	if (what->close != NULL)
		what->close(&bench);
	report(&bench);
	busy_close(&bench.busy);
	/* relaxed: as in poller_main() */
	atomic_store_explicit(&is_running, false, memory_order_relaxed);
	pthread_join(bench.poller, NULL);
	stage_close(&bench.stage);
	return 0;
}
