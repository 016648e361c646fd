/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * bench_posters [--seconds S] [--cpus A,B] rt|spin|mutex THREADS [spinning]
 *
 * Millions of completions per second in THREADS threads, of writes of 8 bytes
 * posted by all threads on one connection: each thread has DEPTH writes
 * outstanding, and the completion of a write goes to the poster. This is a
 * server whose workers answer on one connection.
 *   rt     the runtime: a busy poller; a route and a queue for each thread
 *   spin   by hand: a spinlock round ibv_post_send(), a thread that polls the
 *          CQ, a ring of one producer and one consumer for each thread
 *   mutex  likewise with a pthread mutex in place of the spinlock
 * The poller runs on A, the threads on B, on the other CPUs of the process, on
 * A, and so on. Where a CPU has several of the threads, a poster without a
 * completion gives the CPU up, unless the word "spinning" says otherwise: a
 * poster that spins takes the poller's time, and the figure is the scheduler's.
 */

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "bench.h"
#include "pair.h"
#include "base/order.h"

#define DEPTH	8   /* outstanding writes of a thread */
#define THREADS 64  /* at most */
#define RING	256 /* completions for a thread; never full */
#define SQ	1024
#define TAKE	32 /* completions at a time */
#define LOOK	64 /* rounds between two looks at the clock */
#define LINE	64 /* bytes of the memory for each thread */

struct ring {
	_Alignas(RT_APART) _Atomic uint32_t tail; /* the polling thread's */
	_Alignas(RT_APART) _Atomic uint32_t head; /* the poster's */
	_Alignas(RT_APART) uint32_t status[RING];
};

struct poster {
	_Alignas(RT_APART) pthread_t thread;
	int number;
	int outstanding;
	uint64_t done;
	/* rt */
	struct rpma_rt_queue *queue;
	struct rpma_rt_route *route;
	/* by hand */
	struct ring ring;
};

struct run {
	struct bench_args args;
	int posters;
	bool yields; /* posters without a completion */
	struct stage stage;
	struct rpma_rt_conn *conn;
	/* by hand */
	struct pair_bare ends[2];
	uint32_t rkey;
	uint64_t remote_addr;
	pthread_t polling;
	void (*enter)(void);
	void (*leave)(void);
	double end; /* of the posters; each looks at the clock by itself */
	_Alignas(RT_APART) _Atomic bool begun;
	_Alignas(RT_APART) _Atomic bool over;
};

static struct run run;
static struct poster posters[THREADS];

static bool is_over(void)
{
	/* relaxed: only ends loops */
	return atomic_load_explicit(&run.over, memory_order_relaxed);
}

/* ---------------------------------------------------------- the runtime --- */

static void rt_post(struct poster *p)
{
	const struct rpma_rt_wr wr = {
		.op = RPMA_RT_OP_WRITE,
		.flags = RPMA_F_COMPLETION_ALWAYS,
		.route = p->route,
		.local = run.stage.mr,
		.local_offset = (size_t)(p->number % 32) * LINE,
		.remote = run.stage.remote,
		.remote_offset = (size_t)(32 + p->number % 32) * LINE,
		.len = 8,
		.context = (uint64_t)p->number};
	int ret;

	while (p->outstanding < DEPTH) {
		ret = rpma_rt_post_send(run.conn, &wr, 1);
		if (ret == RPMA_E_AGAIN)
			return; /* another look at the completions first */
		CHECK(ret == 1);
		p->outstanding++;
	}
}

static void rt_take(struct poster *p)
{
	struct rpma_rt_completion items[TAKE];
	int got = rpma_rt_queue_poll(p->queue, items, TAKE);
	int i;

	CHECK(got >= 0);
	for (i = 0; i < got; i++) {
		if (items[i].kind == RPMA_RT_WRITABLE)
			continue;
		CHECK(items[i].kind == RPMA_RT_COMPLETION &&
		      items[i].status == IBV_WC_SUCCESS &&
		      items[i].context == (uint64_t)p->number);
		p->outstanding--;
		p->done++;
	}
}

static void rt_open(void)
{
	const int32_t cpu = run.args.cpus[0];
	const struct stage_cfg cfg = {.pollers = 1,
				      .mode = RPMA_RT_MODE_BUSY,
				      .cpus = &cpu,
				      .depth = SQ};
	struct world_pair pair;
	int i;

	stage_open(&run.stage, &cfg);
	stage_connect(&run.stage, &pair);
	run.conn = pair.active;
	for (i = 0; i < run.posters; i++) {
		MUST(rpma_rt_queue_new(run.stage.world.rt, NULL,
				       &posters[i].queue));
		MUST(rpma_rt_route_open(run.conn, RPMA_RT_SEND_SIDE,
					posters[i].queue, &posters[i].route));
	}
}

/* -------------------------------------------------------------- by hand --- */

static pthread_spinlock_t spin;
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;

static void spin_enter(void)
{
	pthread_spin_lock(&spin);
}

static void spin_leave(void)
{
	pthread_spin_unlock(&spin);
}

static void mutex_enter(void)
{
	pthread_mutex_lock(&mutex);
}

static void mutex_leave(void)
{
	pthread_mutex_unlock(&mutex);
}

static void hand_post(struct poster *p)
{
	struct ibv_sge sge = {.addr = (uintptr_t)run.stage.memory +
				      (size_t)(p->number % 32) * LINE,
			      .length = 8,
			      .lkey = run.ends[0].lkey};
	struct ibv_send_wr *bad;
	struct ibv_send_wr wr = {
		.wr_id = (uint64_t)p->number,
		.sg_list = &sge,
		.num_sge = 1,
		.opcode = IBV_WR_RDMA_WRITE,
		.send_flags = IBV_SEND_SIGNALED,
		.wr.rdma = {.remote_addr = run.remote_addr +
					   (size_t)(p->number % 32) * LINE,
			    .rkey = run.rkey}};
	int ret;

	while (p->outstanding < DEPTH) {
		run.enter();
		ret = ibv_post_send(run.ends[0].qp, &wr, &bad);
		run.leave();
		CHECK(ret == 0);
		p->outstanding++;
	}
}

static void hand_take(struct poster *p)
{
	struct ring *ring = &p->ring;
	/* relaxed: written by this thread */
	uint32_t head = atomic_load_explicit(&ring->head, memory_order_relaxed);
	/* acquire: the statuses */
	uint32_t tail = atomic_load_explicit(&ring->tail, memory_order_acquire);

	for (; head != tail; head++) {
		CHECK(ring->status[head % RING] == IBV_WC_SUCCESS);
		p->outstanding--;
		p->done++;
	}
	/* release: the statuses are read */
	atomic_store_explicit(&ring->head, head, memory_order_release);
}

static void *hand_poll(void *arg)
{
	struct ibv_wc wcs[TAKE];
	struct ring *ring;
	uint32_t tail;
	int got;
	int i;

	(void)arg;
	while (!is_over()) {
		got = ibv_poll_cq(run.ends[0].cq, TAKE, wcs);
		CHECK(got >= 0);
		for (i = 0; i < got; i++) {
			ring = &posters[wcs[i].wr_id].ring;
			/* relaxed: written by this thread */
			tail = atomic_load_explicit(&ring->tail,
						    memory_order_relaxed);
			ring->status[tail % RING] = wcs[i].status;
			/* release: the status */
			atomic_store_explicit(&ring->tail, tail + 1,
					      memory_order_release);
		}
	}
	return NULL;
}

static void hand_open(void)
{
	const struct stage_cfg cfg = {
		.pollers = 1, .mode = RPMA_RT_MODE_MANUAL, .depth = SQ};
	struct rpma_send_wr wr; /* for the key and the address */

	stage_open(&run.stage, &cfg);
	pair_bare_open(&run.stage, SQ, run.ends);
	MUST(rpma_wr_write(run.ends[0].conn, run.stage.remote,
			   (size_t)32 * LINE, run.stage.mr, 0, 8,
			   RPMA_F_COMPLETION_ALWAYS, 0, &wr));
	run.rkey = wr.wr.wr.rdma.rkey;
	run.remote_addr = wr.wr.wr.rdma.remote_addr;
	run.polling = bench_start(run.args.cpus[0], hand_poll, NULL);
}

/* ----------------------------------------------------------------- both --- */

static void (*post)(struct poster *);
static void (*take)(struct poster *);

static void *poster_run(void *arg)
{
	struct poster *p = arg;
	uint64_t rounds = 0;
	uint64_t done;

	/* acquire: everything made by main() */
	while (!atomic_load_explicit(&run.begun, memory_order_acquire))
		sched_yield();
	while (++rounds % LOOK != 0 || bench_now() < run.end) {
		done = p->done;
		post(p);
		take(p);
		if (run.yields && p->done == done)
			sched_yield();
	}
	return NULL;
}

static double measure(void)
{
	uint64_t done = 0;
	int i;

	for (i = 0; i < run.posters; i++) {
		posters[i].number = i;
		posters[i].thread =
			bench_start(run.args.cpus[(i + 1) % run.args.cpu_count],
				    poster_run, &posters[i]);
	}
	run.end = bench_now() + run.args.seconds;
	/* release: to the posters, which begin */
	atomic_store_explicit(&run.begun, true, memory_order_release);
	for (i = 0; i < run.posters; i++) {
		CHECK(pthread_join(posters[i].thread, NULL) == 0);
		done += posters[i].done;
	}
	/* relaxed: only ends loops */
	atomic_store_explicit(&run.over, true, memory_order_relaxed);
	return (double)done / run.args.seconds / 1e6;
}

int main(int argc, char **argv)
{
	const char *way;

	run.args = bench_parse(argc, argv);
	if (run.args.count != 2 && run.args.count != 3)
		bench_fail("usage: bench_posters [--seconds S] [--cpus A,B] "
			   "rt|spin|mutex THREADS [spinning]");
	way = run.args.words[0];
	run.posters = atoi(run.args.words[1]);
	if (run.posters < 1 || run.posters > THREADS)
		bench_fail("1 to 64 threads");
	run.yields = run.posters >= run.args.cpu_count && run.args.count == 2;
	post = hand_post;
	take = hand_take;
	if (strcmp(way, "rt") == 0) {
		post = rt_post;
		take = rt_take;
		rt_open();
	} else if (strcmp(way, "spin") == 0) {
		CHECK(pthread_spin_init(&spin, PTHREAD_PROCESS_PRIVATE) == 0);
		run.enter = spin_enter;
		run.leave = spin_leave;
		hand_open();
	} else if (strcmp(way, "mutex") == 0) {
		run.enter = mutex_enter;
		run.leave = mutex_leave;
		hand_open();
	} else {
		bench_fail("no such way");
	}
	bench_report(way, measure(), "Mops/s");
	fflush(stdout);
	_exit(0); /* writes are outstanding, and no thread waits for the
		   * completions */
}
