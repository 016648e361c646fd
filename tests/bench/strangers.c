/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * bench_strangers [--seconds S] [--cpus A,B] quiet|disturbed COUNT MS PLACE
 *
 * Measures whether calls wait for unrelated connections. COUNT connections of
 * the first poller of the first runtime, on the first device, stand by or die;
 * each ibv_destroy_qp() takes MS milliseconds. Meanwhile four threads, each
 * once a millisecond: "connect" (to READY), "queue_new" (and delete),
 * "set_user", "post" (a write, to its completion). PLACE is where:
 *   conn     the same poller, other connections
 *   poller   another poller of the runtime
 *   device   another device, another poller
 *   runtime  another runtime of the process, the same device
 * The program prints the 99th percentile of each. A call due while an earlier
 * call was waiting counts from the due time, and a call still waiting at the
 * end counts too: calls are made by the clock, not after the last call.
 */

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>

#include "bench.h"
#include "crowd.h"
#include "rpma_loopback.h"
#include "stage.h"

#define PERIOD_NS   1000000 /* between two calls of a thread */
#define MAX_SAMPLES 2000    /* of a thread; each connects once */
#define DEPTH	    16
#define NAP_NS	    100000

struct bench;

struct op {
	const char *name;
	void (*run)(struct bench *bench);
	struct bench *bench;
	pthread_t thread;
	uint64_t *ns;
	uint64_t count;
};

struct bench {
	struct stage stage; /* the first runtime, the first device */
	struct crowd victims;

	/* the place of the strangers: a view of separate objects, or of the
	 * objects of the stage */
	struct world place;
	int poller;
	struct rpma_rt_conn_cfg *cfg;
	struct rpma_mr_local *mr;
	struct rpma_mr_remote *remote;
	struct rpma_rt_queue *ready; /* of "connect" and "set_user" */
	struct rpma_rt_queue *posts; /* of "post" */
	struct world_pair pair;
	struct rpma_rt_conn **conns; /* ready, not to be connected */
	uint32_t conns_count;
	char memory[128];
	uint64_t end_ns;
};

/* ------------------------------------------------------ the slow device --- */

static uint64_t destroy_ns;
static _Atomic bool has_begun; /* a queue pair is being destroyed */
static _Atomic bool is_over;   /* no need to be slow any more */

/* In the window only queue pairs are destroyed, and only victims'. */
static void be_slow(enum rpma_loopback_point point, const void *object,
		    void *arg)
{
	uint64_t end = bench_now_ns() + destroy_ns;
	uint64_t now;

	(void)object;
	(void)arg;
	if (point != RPMA_LOOPBACK_DESTROY)
		return;
	/* relaxed, both flags: nothing hangs on them but when */
	atomic_store_explicit(&has_begun, true, memory_order_relaxed);
	while ((now = bench_now_ns()) < end &&
	       !atomic_load_explicit(&is_over, memory_order_relaxed))
		bench_sleep_until(end - now < 10000000 ? end : now + 10000000);
}

/* ------------------------------------------------------- the four calls --- */

static void run_connect(struct bench *bench)
{
	struct rpma_rt_conn **conn = &bench->conns[bench->conns_count];

	MUST(world_conn_new(bench->place.rt, bench->place.peer,
			    bench->place.addr, "7204", bench->cfg,
			    bench->poller, bench->ready, NULL, conn));
	bench->conns_count++;
	world_event(bench->ready, RPMA_RT_EVENT_READY);
}

static void run_queue_new(struct bench *bench)
{
	struct rpma_rt_queue *queue;

	MUST(rpma_rt_queue_new(bench->place.rt, NULL, &queue));
	MUST(rpma_rt_queue_delete(&queue));
}

static void run_set_user(struct bench *bench)
{
	/* the first connection existed before the threads */
	MUST(rpma_rt_conn_set_user(bench->conns[0], bench));
}

static void run_post(struct bench *bench)
{
	MUST(rpma_rt_write(bench->pair.active, bench->remote, 0, bench->mr, 64,
			   8, RPMA_F_COMPLETION_ALWAYS, 1));
	stage_completion(bench->posts, 1, IBV_WC_SUCCESS);
}

static struct op ops[] = {
	{.name = "connect", .run = run_connect},
	{.name = "queue_new", .run = run_queue_new},
	{.name = "set_user", .run = run_set_user},
	{.name = "post", .run = run_post},
};

#define OPS (sizeof(ops) / sizeof(ops[0]))

static void *op_main(void *arg)
{
	struct op *op = arg;
	uint64_t end = op->bench->end_ns;
	/* not all at the same moment */
	uint64_t due = bench_now_ns() + (uint64_t)(op - ops) * PERIOD_NS / OPS;
	uint64_t begin;
	uint64_t now;

	/* once at least, however late this thread began */
	for (; op->count == 0 || (due < end && op->count < MAX_SAMPLES);
	     due += PERIOD_NS) {
		begin = due;
		now = bench_now_ns();
		if (now < due) {
			bench_sleep_until(due);
			begin = bench_now_ns();
		}
		if (now < end || op->count == 0)
			op->run(op->bench);
		op->ns[op->count++] = bench_now_ns() - begin;
	}
	return NULL;
}

static void run_ops(struct bench *bench, double seconds)
{
	size_t i;

	bench->end_ns = bench_now_ns() + (uint64_t)(seconds * 1e9);
	for (i = 0; i < OPS; i++)
		CHECK(pthread_create(&ops[i].thread, NULL, op_main, &ops[i]) ==
		      0);
	/* a thread waiting for the slow device waits until the end */
	bench_sleep_until(bench->end_ns);
	/* relaxed: see be_slow() */
	atomic_store_explicit(&is_over, true, memory_order_relaxed);
	for (i = 0; i < OPS; i++)
		pthread_join(ops[i].thread, NULL);
}

/* --------------------------------------------------------------- places --- */

static void other_device(struct world *place)
{
	place->addr = "127.0.1.1";
	MUST(rpma_utils_get_ibv_context(
		place->addr, RPMA_UTIL_IBV_CONTEXT_LOCAL, &place->ibv_ctx));
	MUST(rpma_peer_new(place->ibv_ctx, &place->peer));
}

static void choose_place(struct bench *bench, const char *name)
{
	bench->place = bench->stage.world;
	if (strcmp(name, "conn") == 0)
		return;
	bench->poller = 1;
	if (strcmp(name, "poller") == 0)
		return;
	if (strcmp(name, "device") == 0)
		other_device(&bench->place);
	else if (strcmp(name, "runtime") == 0)
		world_start(&bench->place, 2, RPMA_RT_MODE_ADAPTIVE);
	else
		bench_fail("PLACE is conn, poller, device, runtime");
	CHECK(bench->place.rt != bench->stage.world.rt ||
	      bench->place.ibv_ctx != bench->stage.world.ibv_ctx);
}

static void leave_place(struct bench *bench)
{
	if (bench->place.rt != bench->stage.world.rt)
		MUST(rpma_rt_delete(&bench->place.rt));
	if (bench->place.peer != bench->stage.world.peer)
		MUST(rpma_peer_delete(&bench->place.peer));
}

static void open_strangers(struct bench *bench)
{
	struct world *place = &bench->place;
	size_t i;

	for (i = 0; i < OPS; i++) {
		ops[i].bench = bench;
		ops[i].ns = calloc(MAX_SAMPLES, sizeof(*ops[i].ns));
		CHECK(ops[i].ns != NULL);
	}
	bench->conns = calloc(MAX_SAMPLES, sizeof(struct rpma_rt_conn *));
	CHECK(bench->conns != NULL);
	bench->cfg = world_cfg(DEPTH, DEPTH);
	MUST(rpma_mr_reg(place->peer, bench->memory, sizeof(bench->memory),
			 RPMA_MR_USAGE_WRITE_SRC | RPMA_MR_USAGE_WRITE_DST,
			 &bench->mr));
	bench->remote = world_remote_of(bench->mr);
	MUST(rpma_rt_queue_new(place->rt, NULL, &bench->ready));
	MUST(rpma_rt_queue_new(place->rt, NULL, &bench->posts));
	world_connect(place, bench->cfg, bench->poller, bench->posts,
		      bench->posts, &bench->pair);
	run_connect(bench);
}

static void close_strangers(struct bench *bench)
{
	uint32_t i;

	for (i = 0; i < bench->conns_count; i++)
		MUST(rpma_rt_conn_close(bench->conns[i]));
	for (i = 0; i < bench->conns_count; i++)
		world_event(bench->ready, RPMA_RT_EVENT_CLOSED);
	for (i = 0; i < bench->conns_count; i++)
		MUST(rpma_rt_conn_unref(&bench->conns[i]));
	MUST(rpma_rt_conn_close(bench->pair.active));
	for (i = 0; i < 2; i++)
		world_event(bench->posts, RPMA_RT_EVENT_CLOSED);
	MUST(rpma_rt_conn_unref(&bench->pair.active));
	MUST(rpma_rt_conn_unref(&bench->pair.passive));
	MUST(rpma_rt_queue_delete(&bench->ready));
	MUST(rpma_rt_queue_delete(&bench->posts));
	MUST(rpma_mr_remote_delete(&bench->remote));
	MUST(rpma_mr_dereg(&bench->mr));
	free(bench->cfg);
	leave_place(bench);
	free(bench->conns);
}

/* ------------------------------------------------------------------------- */

static void measure(struct bench *bench, double seconds, bool disturbed)
{
	prctl(PR_SET_TIMERSLACK, 1ul);
	rpma_loopback_set_hook(be_slow, NULL);
	if (disturbed) {
		crowd_close(&bench->victims);
		/* relaxed: see be_slow() */
		while (!atomic_load_explicit(&has_begun, memory_order_relaxed))
			bench_sleep_until(bench_now_ns() + NAP_NS);
	}
	run_ops(bench, seconds);
	rpma_loopback_set_hook(NULL, NULL);
	if (!disturbed)
		crowd_close(&bench->victims);
	crowd_end(&bench->victims);
}

int main(int argc, char **argv)
{
	const struct stage_cfg cfg = {
		.pollers = 2, .mode = RPMA_RT_MODE_ADAPTIVE, .depth = DEPTH};
	struct bench_args args = bench_parse(argc, argv);
	static struct bench bench;
	size_t i;

	if (args.count != 4)
		bench_fail("usage: bench_strangers [--seconds S] [--cpus A,B] "
			   "quiet|disturbed COUNT MS PLACE");
	/* before the device is first used; 127.0.1.1 is the second's */
	setenv("RPMA_LOOPBACK_DEVICES", "2", 1);
	destroy_ns = strtoull(args.words[2], NULL, 10) * 1000000;
	stage_open(&bench.stage, &cfg);
	crowd_open(&bench.victims, &bench.stage.world, 0,
		   (uint32_t)atoi(args.words[1]), NULL);
	choose_place(&bench, args.words[3]);
	open_strangers(&bench);
	measure(&bench, args.seconds, strcmp(args.words[0], "disturbed") == 0);
	close_strangers(&bench);
	for (i = 0; i < OPS; i++) {
		bench_report(ops[i].name,
			     bench_percentile(ops[i].ns, ops[i].count, 0.99),
			     "us");
		free(ops[i].ns);
	}
	stage_close(&bench.stage);
	return 0;
}
