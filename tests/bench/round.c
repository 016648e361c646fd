/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * bench_round [--seconds S] [--cpus A,B] WAY BATCH
 *
 * Nanoseconds per completion from the post to the consumer, a figure for each
 * of the three steps: "round" (the poller), "take" (the consumer), "post". WAY
 * is the destination of completions: "queue", "shared" (a queue of several
 * consumers), "callback" (a function), "srq" (receives of a shared receive
 * queue, to a queue), "adopted" (receives of an adopted connection), "write"
 * (sends, to a queue), "future" (receives, each with a future, polled and
 * dropped by the consumer); "bare" is an ibv_poll_cq() loop that looks at each
 * completion. A poll finds at most BATCH completions.
 *
 * Everything uses the public interface, in manual mode, on one thread: a burst
 * is posted, rounds run until the whole burst is delivered, then the burst is
 * taken. The connection is on the loopback device; once the connection stands,
 * posting and polling of the device are replaced by functions that only copy,
 * so only the work of librpma and of the runtime is left. Medians of many
 * bursts.
 */

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <infiniband/verbs.h>

#include "bench.h"
#include "stage.h"

#define COUNT	   512	 /* a burst */
#define POST_EACH  32	 /* work requests per call */
#define DEPTH	   1024	 /* of the queue pair */
#define MAX_BURSTS 20000 /* measured at most */

enum step { ROUND, TAKE, POST, STEPS };

struct bench {
	struct stage stage;
	struct rpma_rt_queue *queue; /* where the completions lead */
	struct world_pair pair;
	struct rpma_rt_route *route;
	struct rpma_rt_srq *srq;
	struct rpma_conn *plain[2]; /* adopted, and the peer */
	struct rpma_rt_adopted *adopted;
	struct rpma_rt_future futures[COUNT];
	uint64_t called;

	double ns[STEPS][MAX_BURSTS];
	size_t bursts;
};

struct way {
	const char *name;
	bool is_shared; /* the queue */
	/* the connection and other objects; NULL: without runtime */
	void (*open)(struct bench *bench);
	void (*close)(struct bench *bench);
	/* POST_EACH work requests */
	void (*post)(struct bench *bench, uint64_t context);
	bool calls; /* a function: nothing is in a queue */
	bool holds; /* futures: likewise */
};

/* ---------------------------------------------- a copying device --- */

static struct {
	struct ibv_context_ops real;
	int batch;
	uint32_t srq_qp_num; /* whose are the receives of an SRQ */
	uint64_t posted;
	uint64_t polled;
	struct ibv_wc wcs[DEPTH];
} fake;

static void complete(uint64_t wr_id, uint32_t qp_num, enum ibv_wc_opcode opcode)
{
	fake.wcs[fake.posted++ % DEPTH] = (struct ibv_wc){
		.wr_id = wr_id,
		.qp_num = qp_num,
		.opcode = opcode,
		.byte_len = 8,
	};
}

static int post_send(struct ibv_qp *qp, struct ibv_send_wr *wr,
		     struct ibv_send_wr **bad)
{
	(void)bad;
	for (; wr != NULL; wr = wr->next)
		complete(wr->wr_id, qp->qp_num, IBV_WC_RDMA_WRITE);
	return 0;
}

static int post_recv(struct ibv_qp *qp, struct ibv_recv_wr *wr,
		     struct ibv_recv_wr **bad)
{
	(void)bad;
	for (; wr != NULL; wr = wr->next)
		complete(wr->wr_id, qp->qp_num, IBV_WC_RECV);
	return 0;
}

static int post_srq_recv(struct ibv_srq *srq, struct ibv_recv_wr *wr,
			 struct ibv_recv_wr **bad)
{
	(void)srq;
	(void)bad;
	for (; wr != NULL; wr = wr->next)
		complete(wr->wr_id, fake.srq_qp_num, IBV_WC_RECV);
	return 0;
}

static int poll_cq(struct ibv_cq *cq, int count, struct ibv_wc *wc)
{
	uint64_t at = fake.polled % DEPTH;
	uint64_t there = fake.posted - fake.polled;

	(void)cq;
	if (count > fake.batch)
		count = fake.batch;
	if ((uint64_t)count > there)
		count = (int)there;
	if ((uint64_t)count > DEPTH - at)
		count = (int)(DEPTH - at);
	memcpy(wc, &fake.wcs[at], (size_t)count * sizeof(*wc));
	fake.polled += (uint64_t)count;
	return count;
}

static void replace_device(struct ibv_context *ctx)
{
	fake.real = ctx->ops;
	ctx->ops.post_send = post_send;
	ctx->ops.post_recv = post_recv;
	ctx->ops.post_srq_recv = post_srq_recv;
	ctx->ops.poll_cq = poll_cq;
}

/* ---------------------------------------------------------- the pollers --- */

static _Atomic bool pumping;

static void *pump_main(void *arg)
{
	struct bench *bench = arg;
	int done;

	MUST(rpma_rt_poller_attach(bench->stage.world.rt, 0));
	/* relaxed: only the flag matters */
	while (atomic_load_explicit(&pumping, memory_order_relaxed)) {
		done = rpma_rt_poller_run(bench->stage.world.rt, 0, DEPTH);
		CHECK(done >= 0);
		/* the waiting thread may be on the same CPU, in real time */
		if (done == 0)
			sched_yield();
	}
	return NULL;
}

/* Runs the poller while fn connects, or closes, and waits for events. */
static void pump(struct bench *bench, void (*fn)(struct bench *bench))
{
	pthread_t thread;

	MUST(rpma_rt_poller_release(bench->stage.world.rt, 0));
	/* relaxed: seen by a thread created later */
	atomic_store_explicit(&pumping, true, memory_order_relaxed);
	CHECK(pthread_create(&thread, NULL, pump_main, bench) == 0);
	fn(bench);
	/* relaxed: only the flag matters */
	atomic_store_explicit(&pumping, false, memory_order_relaxed);
	pthread_join(thread, NULL);
	MUST(rpma_rt_poller_attach(bench->stage.world.rt, 0));
}

/* ------------------------------------------------------------- the ways --- */

static void open_pair(struct bench *bench)
{
	stage_connect(&bench->stage, &bench->pair);
}

static void close_pair(struct bench *bench)
{
	stage_disconnect(&bench->stage, &bench->pair);
}

static void open_queue(struct bench *bench)
{
	open_pair(bench);
	MUST(rpma_rt_route_open(bench->pair.active, RPMA_RT_RECV_SIDE,
				bench->queue, &bench->route));
}

static void close_queue(struct bench *bench)
{
	close_pair(bench);
	world_event(bench->queue, RPMA_RT_EVENT_ROUTE_CLOSED);
}

static void post_recvs(struct bench *bench, uint64_t context)
{
	struct rpma_rt_recv_wr wrs[POST_EACH];
	int i;

	for (i = 0; i < POST_EACH; i++) {
		rpma_rt_prep_recv(&wrs[i], bench->stage.mr, 0, 64,
				  context + (uint64_t)i);
		wrs[i].route = bench->route;
	}
	MUST_ANSWER(POST_EACH,
		    rpma_rt_post_recv(bench->pair.active, wrs, POST_EACH));
}

static void open_write(struct bench *bench)
{
	open_pair(bench);
	MUST(rpma_rt_route_open(bench->pair.active, RPMA_RT_SEND_SIDE,
				bench->queue, &bench->route));
}

static void post_writes(struct bench *bench, uint64_t context)
{
	struct rpma_rt_wr wrs[POST_EACH];
	int i;

	for (i = 0; i < POST_EACH; i++) {
		rpma_rt_prep_write(&wrs[i], bench->stage.remote, 0,
				   bench->stage.mr, 0, 8, 0,
				   context + (uint64_t)i);
		wrs[i].route = bench->route;
	}
	MUST_ANSWER(POST_EACH,
		    rpma_rt_post_send(bench->pair.active, wrs, POST_EACH));
}

static void call(const struct rpma_rt_completion *cmpl, void *arg)
{
	struct bench *bench = arg;

	if (cmpl->kind == RPMA_RT_COMPLETION)
		bench->called += cmpl->status == IBV_WC_SUCCESS;
}

static void open_callback(struct bench *bench)
{
	open_pair(bench);
	MUST(rpma_rt_route_open_callback(bench->pair.active, RPMA_RT_RECV_SIDE,
					 call, bench, &bench->route));
}

static void open_srq(struct bench *bench)
{
	struct rpma_rt_srq_cfg srq_cfg = RPMA_RT_SRQ_CFG_INIT;
	struct rpma_rt_conn_cfg *cfg = world_cfg(DEPTH, 1);

	srq_cfg.peer = bench->stage.world.peer;
	srq_cfg.queue = bench->queue;
	MUST(rpma_rt_srq_new(bench->stage.world.rt, &srq_cfg, &bench->srq));
	cfg->srqs = &bench->srq;
	cfg->srq_count = 1;
	world_connect(&bench->stage.world, cfg, 0, bench->stage.aq,
		      bench->stage.pq, &bench->pair);
	free(cfg);
	MUST(rpma_rt_conn_get_qp_num(bench->pair.active, &fake.srq_qp_num));
	MUST(rpma_rt_route_open(bench->pair.active, RPMA_RT_RECV_SIDE,
				bench->queue, &bench->route));
}

static void close_srq(struct bench *bench)
{
	close_queue(bench);
	MUST(rpma_rt_srq_delete(&bench->srq));
	world_event(bench->queue, RPMA_RT_EVENT_SRQ_CLOSED);
}

static void post_srq_recvs(struct bench *bench, uint64_t context)
{
	struct rpma_rt_recv_wr wrs[POST_EACH];
	int i;

	for (i = 0; i < POST_EACH; i++)
		rpma_rt_prep_recv(&wrs[i], bench->stage.mr, 0, 64,
				  context + (uint64_t)i);
	MUST_ANSWER(POST_EACH,
		    rpma_rt_srq_post_recv(bench->srq, wrs, POST_EACH));
}

static void connect_plain(struct bench *bench, const struct rpma_conn_cfg *cfg)
{
	const struct world *w = &bench->stage.world;
	struct rpma_conn_req *req;
	struct rpma_ep *ep;
	enum rpma_conn_event event;
	uint16_t port;
	char text[8];
	int i;

	MUST(rpma_ep_listen_ex(w->peer, w->addr, "0", 1, NULL, NULL, &ep));
	MUST(rpma_ep_get_port(ep, &port));
	snprintf(text, sizeof(text), "%u", port);
	MUST(rpma_conn_req_new(w->peer, w->addr, text, cfg, &req));
	MUST(rpma_conn_req_connect(&req, NULL, &bench->plain[0]));
	MUST(rpma_ep_next_conn_req(ep, NULL, &req));
	MUST(rpma_conn_req_connect(&req, NULL, &bench->plain[1]));
	for (i = 0; i < 2; i++) {
		MUST(rpma_conn_next_event(bench->plain[i], &event));
		CHECK(event == RPMA_CONN_ESTABLISHED);
	}
	MUST(rpma_ep_shutdown(&ep));
}

static void open_adopted(struct bench *bench)
{
	struct rpma_conn_cfg *cfg;

	MUST(rpma_conn_cfg_new(&cfg));
	MUST(rpma_conn_cfg_set_rq_size(cfg, DEPTH));
	MUST(rpma_conn_cfg_set_cq_size(cfg, DEPTH));
	connect_plain(bench, cfg);
	MUST(rpma_conn_cfg_delete(&cfg));
	MUST(rpma_rt_adopt(bench->stage.world.rt, bench->plain[0], 0,
			   bench->queue, NULL, &bench->adopted));
}

static void close_adopted(struct bench *bench)
{
	MUST(rpma_rt_adopted_release(&bench->adopted));
	MUST(rpma_conn_delete(&bench->plain[0]));
	MUST(rpma_conn_delete(&bench->plain[1]));
}

static void post_adopted(struct bench *bench, uint64_t context)
{
	int i;

	for (i = 0; i < POST_EACH; i++)
		MUST(rpma_recv(
			bench->plain[0], bench->stage.mr, 0, 64,
			(const void *)(uintptr_t)(context + (uint64_t)i)));
}

static void open_future(struct bench *bench)
{
	bench->stage.cfg->futures = DEPTH;
	open_pair(bench);
}

static void post_futures(struct bench *bench, uint64_t context)
{
	struct rpma_rt_recv_wr wrs[POST_EACH];
	int i;

	for (i = 0; i < POST_EACH; i++) {
		rpma_rt_prep_recv(&wrs[i], bench->stage.mr, 0, 64,
				  context + (uint64_t)i);
		wrs[i].future = &bench->futures[context + (uint64_t)i];
	}
	MUST_ANSWER(POST_EACH,
		    rpma_rt_post_recv(bench->pair.active, wrs, POST_EACH));
}

static void post_bare(struct bench *bench, uint64_t context)
{
	int i;

	(void)bench;
	for (i = 0; i < POST_EACH; i++)
		complete(context + (uint64_t)i, 1, IBV_WC_RECV);
}

static const struct way ways[] = {
	{"bare", false, NULL, NULL, post_bare, false, false},
	{"queue", false, open_queue, close_queue, post_recvs, false, false},
	{"shared", true, open_queue, close_queue, post_recvs, false, false},
	{"callback", false, open_callback, close_pair, post_recvs, true, false},
	{"srq", false, open_srq, close_srq, post_srq_recvs, false, false},
	{"adopted", false, open_adopted, close_adopted, post_adopted, false,
	 false},
	{"write", false, open_write, close_queue, post_writes, false, false},
	{"future", false, open_future, close_pair, post_futures, false, true},
};

static const struct way *find_way(const char *name)
{
	size_t i;

	for (i = 0; i < sizeof(ways) / sizeof(ways[0]); i++) {
		if (strcmp(ways[i].name, name) == 0)
			return &ways[i];
	}
	bench_fail("WAY is bare, queue, shared, callback, srq, adopted, write, "
		   "future");
}

/* ------------------------------------------------------------ measuring --- */

static void run_bare(struct ibv_cq *cq)
{
	struct ibv_wc wcs[32];
	uint64_t sum = 0;
	int count;
	int i;

	while (fake.polled != fake.posted) {
		count = ibv_poll_cq(cq, 32, wcs);
		for (i = 0; i < count; i++)
			sum += wcs[i].wr_id + (wcs[i].status != IBV_WC_SUCCESS);
	}
	CHECK(sum != 0);
}

static void run_rounds(struct bench *bench)
{
	while (fake.polled != fake.posted)
		CHECK(rpma_rt_poller_run(bench->stage.world.rt, 0, 32) >= 0);
}

/* Takes the rest of the burst; each completion was made at the post. */
static void take(struct bench *bench)
{
	struct rpma_rt_completion items[32];
	int left = COUNT;
	int got;
	int i;

	while (left > 0) {
		got = rpma_rt_queue_poll(bench->queue, items, 32);
		CHECK(got > 0);
		for (i = 0; i < got; i++)
			CHECK(items[i].kind == RPMA_RT_COMPLETION &&
			      items[i].status == IBV_WC_SUCCESS &&
			      items[i].context == (uint64_t)(COUNT - left + i));
		left -= got;
	}
}

static void take_futures(struct bench *bench)
{
	struct rpma_rt_completion item;
	uint64_t i;

	for (i = 0; i < COUNT; i++) {
		MUST_ANSWER(1, rpma_rt_future_poll(&bench->futures[i], &item));
		CHECK(item.status == IBV_WC_SUCCESS && item.context == i);
		MUST(rpma_rt_future_drop(&bench->futures[i]));
	}
}

/* Posts, delivers, takes; the seconds of each. */
static void burst(struct bench *bench, const struct way *way, struct ibv_cq *cq,
		  double seconds[STEPS])
{
	double begin = bench_now();
	uint64_t i;

	for (i = 0; i < COUNT; i += POST_EACH)
		way->post(bench, i);
	seconds[POST] = bench_now() - begin;
	begin = bench_now();
	if (way->open == NULL)
		run_bare(cq);
	else
		run_rounds(bench);
	seconds[ROUND] = bench_now() - begin;
	begin = bench_now();
	if (way->holds)
		take_futures(bench);
	else if (way->open != NULL && !way->calls)
		take(bench);
	seconds[TAKE] = bench_now() - begin;
}

static void measure(struct bench *bench, const struct way *way, double seconds)
{
	struct ibv_cq cq = {.context = bench->stage.world.ibv_ctx};
	double end = bench_now() + seconds;
	double took[STEPS];
	int step;

	burst(bench, way, &cq, took);
	bench->called = 0;
	do {
		burst(bench, way, &cq, took);
		for (step = 0; step < STEPS; step++)
			bench->ns[step][bench->bursts] =
				took[step] * 1e9 / COUNT;
		bench->bursts++;
	} while (bench_now() < end && bench->bursts < MAX_BURSTS);
	if (way->calls)
		CHECK(bench->called == bench->bursts * COUNT);
}

static int compare(const void *a, const void *b)
{
	double left = *(const double *)a, right = *(const double *)b;

	return left < right ? -1 : left > right;
}

static void report(struct bench *bench, const char *name, enum step step)
{
	qsort(bench->ns[step], bench->bursts, sizeof(double), compare);
	bench_report(name, bench->ns[step][bench->bursts / 2], "ns");
}

static void open_stage(struct bench *bench, const struct way *way)
{
	const struct stage_cfg cfg = {
		.pollers = 1, .mode = RPMA_RT_MODE_MANUAL, .depth = DEPTH};
	struct rpma_rt_queue_cfg queue_cfg = RPMA_RT_QUEUE_CFG_INIT;

	stage_open(&bench->stage, &cfg);
	MUST(rpma_rt_poller_attach(bench->stage.world.rt, 0));
	queue_cfg.shared = way->is_shared;
	MUST(rpma_rt_queue_new(bench->stage.world.rt, &queue_cfg,
			       &bench->queue));
	if (way->open != NULL)
		pump(bench, way->open);
}

static void close_stage(struct bench *bench, const struct way *way)
{
	if (way->close != NULL)
		pump(bench, way->close);
	MUST(rpma_rt_queue_delete(&bench->queue));
	stage_close(&bench->stage);
}

int main(int argc, char **argv)
{
	struct bench_args args = bench_parse(argc, argv);
	static struct bench bench;
	const struct way *way;

	if (args.count != 2)
		bench_fail("usage: bench_round [--seconds S] [--cpus A,B] "
			   "WAY BATCH");
	way = find_way(args.words[0]);
	fake.batch = atoi(args.words[1]);
	if (fake.batch < 1 || fake.batch > 32)
		bench_fail("BATCH is 1 to 32");
	open_stage(&bench, way);
	bench_pin(args.cpus[0]);
	replace_device(bench.stage.world.ibv_ctx);
	measure(&bench, way, args.seconds);
	bench.stage.world.ibv_ctx->ops = fake.real;
	close_stage(&bench, way);
	report(&bench, "round", ROUND);
	report(&bench, "take", TAKE);
	report(&bench, "post", POST);
	return 0;
}
