/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * bench_trip [--seconds S] [--cpus A,B] WHAT
 *
 * The cost of a round trip with one message in flight at each of its ends, both
 * run by one thread on the loopback device, which executes a send during the
 * post. WHAT:
 *   echo    "bare" with verbs, "shard" with the runtime in manual mode, in ns;
 *           "added" by the runtime
 *   pieces  a send of 64 and 4,096 bytes with librpma: "pieces" as two, "copy"
 *           copied into one first, in ns, and their "ratio"
 * The two compared ways take turns of a thousand trips; medians.
 */

#include <stdlib.h>
#include <string.h>

#include "bench.h"
#include "pair.h"

#define DEPTH  16
#define SIZE   64   /* bytes of a message */
#define BODY   4096 /* and of a second piece */
#define TRIPS  1000 /* in a slice */
#define SLICES 20000

/* The memory of both pieces: no copy has a source and a destination alike in
 * the last 12 bits. */
#define BOTH (5 * BODY + 1024)

struct trip {
	struct stage stage;
	struct world_pair pair;
	struct pair_bare bare[2];
	char *memory; /* of the pieces: header, body, both */
	struct rpma_mr_local *mr;
	double ns[2][SLICES]; /* an end */
	double added[SLICES];
	size_t slices;
};

/* ----------------------------------------------------------------- bare --- */

static struct ibv_sge recv_sge = {.length = SIZE};
static struct ibv_recv_wr recv_wr = {.sg_list = &recv_sge, .num_sge = 1};
static struct ibv_sge send_sge = {.length = SIZE};
static struct ibv_send_wr send_wr = {
	.sg_list = &send_sge, .num_sge = 1, .opcode = IBV_WR_SEND};

static inline void bare_recv(struct pair_bare *end)
{
	struct ibv_recv_wr *bad;

	CHECK(ibv_post_recv(end->qp, &recv_wr, &bad) == 0);
}

/* Sends; every fourth completion tells that the sends before are done too. */
static inline void bare_send(struct pair_bare *end, uint64_t number)
{
	struct ibv_send_wr *bad;

	send_wr.send_flags = number % 4 == 0 ? IBV_SEND_SIGNALED : 0;
	CHECK(ibv_post_send(end->qp, &send_wr, &bad) == 0);
}

/* Takes the next message, and completions of sends in between. */
static inline void bare_take(struct pair_bare *end)
{
	struct ibv_wc wcs[4];
	int came = 0;
	int got;
	int i;

	while (came == 0) {
		got = ibv_poll_cq(end->cq, 4, wcs);
		for (i = 0; i < got; i++) {
			CHECK(wcs[i].status == IBV_WC_SUCCESS);
			came += wcs[i].opcode == IBV_WC_RECV;
		}
	}
	CHECK(came == 1);
}

static void bare_trips(struct trip *t, int trips)
{
	struct pair_bare *a = &t->bare[0];
	struct pair_bare *b = &t->bare[1];

	while (trips-- > 0) {
		bare_send(a, (uint64_t)trips);
		bare_take(b);
		bare_recv(b);
		bare_send(b, (uint64_t)trips);
		bare_take(a);
		bare_recv(a);
	}
}

static void open_bare(struct trip *t)
{
	pair_bare_open(&t->stage, DEPTH, t->bare);
	recv_sge.addr = (uintptr_t)t->stage.memory;
	recv_sge.lkey = t->bare[0].lkey;
	send_sge.addr = (uintptr_t)t->stage.memory + SIZE;
	send_sge.lkey = t->bare[0].lkey;
}

/* ---------------------------------------------------------- the runtime --- */

static inline void shard_recv(struct trip *t, struct rpma_rt_conn *conn)
{
	MUST(rpma_rt_recv(conn, t->stage.mr, 0, SIZE, 7));
}

static inline void shard_send(struct trip *t, struct rpma_rt_conn *conn)
{
	MUST(rpma_rt_send(conn, t->stage.mr, SIZE, SIZE,
			  RPMA_F_COMPLETION_ON_ERROR, 8));
}

/* Works like a shard: runs the poller and looks into the queue. */
static inline void shard_take(struct trip *t, uint32_t poller,
			      struct rpma_rt_queue *queue)
{
	struct rpma_rt_completion items[4];
	int got;

	do {
		CHECK(rpma_rt_poller_run(t->stage.world.rt, poller, 32) >= 0);
		got = rpma_rt_queue_poll(queue, items, 4);
	} while (got == 0);
	CHECK(got == 1 && items[0].context == 7 &&
	      items[0].status == IBV_WC_SUCCESS);
}

static void shard_trips(struct trip *t, int trips)
{
	struct rpma_rt_conn *a = t->pair.active;
	struct rpma_rt_conn *b = t->pair.passive;

	while (trips-- > 0) {
		shard_send(t, a);
		shard_take(t, 1, t->stage.pq);
		shard_recv(t, b);
		shard_send(t, b);
		shard_take(t, 0, t->stage.aq);
		shard_recv(t, a);
	}
}

/* --------------------------------------------------------------- pieces --- */

/* The receiving end. */
static inline void take_both(struct trip *t)
{
	struct rpma_conn *conn = t->bare[1].conn;

	bare_take(&t->bare[1]);
	MUST(rpma_recv(conn, t->mr, 3 * BODY + 2048, SIZE + BODY, NULL));
}

static inline void post_one(struct trip *t, struct rpma_send_wr *wr)
{
	struct rpma_send_wr *bad;
	struct ibv_wc wc;

	MUST(rpma_conn_post_send(t->bare[0].conn, NULL, wr, &bad));
	CHECK(ibv_poll_cq(t->bare[0].cq, 1, &wc) == 1 &&
	      wc.status == IBV_WC_SUCCESS);
}

static void send_pieces(struct trip *t, int trips)
{
	const struct rpma_sge list[] = {{t->mr, 0, SIZE}, {t->mr, BODY, BODY}};
	struct rpma_send_wr wr;
	struct ibv_sge sge[2];

	while (trips-- > 0) {
		MUST(rpma_wr_send(t->bare[0].conn, t->mr, 0, SIZE,
				  RPMA_F_COMPLETION_ALWAYS, 1, &wr));
		MUST(rpma_wr_set_sge_list(list, 2, sge, &wr));
		post_one(t, &wr);
		take_both(t);
	}
}

static void send_copy(struct trip *t, int trips)
{
	struct rpma_send_wr wr;
	char *both = t->memory + BOTH;

	while (trips-- > 0) {
		memcpy(both, t->memory, SIZE);
		memcpy(both + SIZE, t->memory + BODY, BODY);
		MUST(rpma_wr_send(t->bare[0].conn, t->mr, BOTH, SIZE + BODY,
				  RPMA_F_COMPLETION_ALWAYS, 1, &wr));
		post_one(t, &wr);
		take_both(t);
	}
}

/* ------------------------------------------------------------ measuring --- */

typedef void trips_fn(struct trip *t, int trips);

/* Returns the nanoseconds of a trip. */
static double slice(struct trip *t, trips_fn *fn)
{
	double begin = bench_now();

	fn(t, TRIPS);
	return (bench_now() - begin) * 1e9 / TRIPS;
}

/* ends: of a trip, which share the time */
static void measure(struct trip *t, trips_fn *const fns[2], int ends,
		    double seconds)
{
	double end = bench_now() + seconds;
	int first;
	int i;

	(void)slice(t, fns[0]);
	(void)slice(t, fns[1]);
	do {
		first = (int)(t->slices % 2);
		for (i = 0; i < 2; i++)
			t->ns[i ^ first][t->slices] =
				slice(t, fns[i ^ first]) / ends;
		t->added[t->slices] = t->ns[1][t->slices] - t->ns[0][t->slices];
		t->slices++;
	} while (bench_now() < end && t->slices < SLICES);
}

static int compare(const void *a, const void *b)
{
	double left = *(const double *)a, right = *(const double *)b;

	return left < right ? -1 : left > right;
}

static double median(const struct trip *t, double *values)
{
	qsort(values, t->slices, sizeof(*values), compare);
	return values[t->slices / 2];
}

static void report(struct trip *t, const char *first, const char *second,
		   bool has_ratio)
{
	double base = median(t, t->ns[0]);
	double other = median(t, t->ns[1]);

	bench_report(first, base, "ns");
	bench_report(second, other, "ns");
	bench_report("added", median(t, t->added), "ns");
	if (has_ratio)
		bench_report("ratio", other / base, "x");
}

static void run_echo(struct trip *t, double seconds)
{
	trips_fn *const fns[] = {bare_trips, shard_trips};

	open_bare(t);
	pair_connect(&t->stage, t->stage.cfg, &t->pair);
	bare_recv(&t->bare[0]);
	bare_recv(&t->bare[1]);
	shard_recv(t, t->pair.active);
	shard_recv(t, t->pair.passive);
	measure(t, fns, 2, seconds);
	pair_disconnect(&t->stage, &t->pair);
	pair_bare_close(t->bare);
	report(t, "bare", "shard", false);
}

static void run_pieces(struct trip *t, double seconds)
{
	trips_fn *const fns[] = {send_copy, send_pieces};

	open_bare(t);
	t->memory = aligned_alloc(BODY, 7 * BODY);
	CHECK(t->memory);
	memset(t->memory, 1, 7 * BODY);
	MUST(rpma_mr_reg(t->stage.world.peer, t->memory, 7 * BODY,
			 RPMA_MR_USAGE_SEND | RPMA_MR_USAGE_RECV, &t->mr));
	MUST(rpma_recv(t->bare[1].conn, t->mr, 3 * BODY + 2048, SIZE + BODY,
		       NULL));
	measure(t, fns, 1, seconds);
	pair_bare_close(t->bare);
	MUST(rpma_mr_dereg(&t->mr));
	free(t->memory);
	report(t, "copy", "pieces", true);
}

int main(int argc, char **argv)
{
	struct bench_args args = bench_parse(argc, argv);
	const char *what = args.count == 1 ? args.words[0] : "";
	static struct trip t;

	/* before the device is asked for */
	setenv("RPMA_LOOPBACK_MODE", "inline", 1);
	pair_stage_open(&t.stage, DEPTH);
	bench_pin(args.cpus[0]);
	if (strcmp(what, "echo") == 0)
		run_echo(&t, args.seconds);
	else if (strcmp(what, "pieces") == 0)
		run_pieces(&t, args.seconds);
	else
		bench_fail("usage: bench_trip [--seconds S] [--cpus A,B] "
			   "echo|pieces");
	stage_close(&t.stage);
	return 0;
}
