/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * handed WAY: a program for ThreadSanitizer, whose threads hand data over only
 * by the runtime. A thread writes a job, the runtime brings the job to another
 * thread, which writes the job too. WAY says how:
 *   posted    the context of a send, to the thread that takes the completion
 *   chained   likewise, of sends posted together
 *   offered   the context of a receive, to the thread that takes the message
 *   srq       likewise, of a receive of a shared receive queue
 *   pushed    the context of a pushed message
 *   shared    likewise, to a queue of two consumers
 *   received  the bytes of a message, to the thread that takes the message
 *   future    the argument of a function of a future, on the poller's thread
 *   pool      a slot, to the thread that takes the slot after it was given back
 *   shards    the context of a message to another shard, and back; a timer
 * The ways above have no race. The ways below have a race:
 *   late      the job is written once more after it was posted
 *   reused    the buffer of a send is written before its completion
 */

#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <string.h>
#include <unistd.h>

#include "stage.h"

/* The sanitizer looks away from calls of libc by the device of unseen.c: copies
 * of memory, locks, descriptors. Suppresses no report of another device. */
__attribute__((visibility("default"))) const char *
__tsan_default_suppressions(void);
const char *__tsan_default_suppressions(void)
{
	return "called_from_lib:unseen/librpma_loopback.so";
}

#define JOBS  200
#define SIZE  512 /* of a message: longer than the bytes copied in one access */
#define DEPTH 64

struct job {
	uint64_t plain;
	struct rpma_rt_lease lease;
};

static struct stage stage;
static struct world_pair pair;
static struct job jobs[JOBS];

/* Not memset(), which gcc hides from the sanitizer. */
static void fill(void *bytes, int with)
{
	char *at = bytes;
	int i;

	for (i = 0; i < SIZE; i++)
		at[i] = (char)with;
}

static uint64_t job_new(int i)
{
	jobs[i].plain = (uint64_t)i;
	return (uintptr_t)&jobs[i];
}

static void job_done(uint64_t context)
{
	struct job *job = (struct job *)(uintptr_t)context;

	job->plain++;
	if (job->lease.pool != NULL) {
		fill(job->lease.data, 2);
		MUST(rpma_rt_lease_release(&job->lease));
	}
}

/* Takes the items of a queue, so many jobs. */
struct taker {
	pthread_t thread;
	struct rpma_rt_queue *queue;
	int jobs;
	bool is_offered; /* a message has the context of a job */
	_Atomic int taken;
};

static void take_message(const struct rpma_rt_completion *item)
{
	fill(stage.memory + item->context, 0);
	MUST(rpma_rt_recv(pair.passive, stage.mr, item->context, SIZE,
			  item->context));
}

static void *take(void *arg)
{
	struct taker *taker = arg;
	struct rpma_rt_completion item;
	int i = 0;

	while (i < taker->jobs) {
		item = world_next(taker->queue);
		if (item.kind == RPMA_RT_WRITABLE)
			continue;
		if (rpma_rt_completion_is_received(&item) && !taker->is_offered)
			take_message(&item);
		else
			job_done(item.context);
		/* relaxed: orders nothing, as taker_await() says */
		atomic_store_explicit(&taker->taken, ++i, memory_order_relaxed);
	}
	return NULL;
}

static void taker_start(struct taker *taker, struct rpma_rt_queue *queue,
			int jobs)
{
	taker->queue = queue;
	taker->jobs = jobs;
	/* relaxed: the thread does not run yet */
	atomic_store_explicit(&taker->taken, 0, memory_order_relaxed);
	MUST(pthread_create(&taker->thread, NULL, take, taker));
}

/* Waits until so many jobs were taken, and orders nothing: the calling thread
 * must not access jobs accessed by the taker. */
static void taker_await(struct taker *taker, int jobs)
{
	/* relaxed: as above */
	while (atomic_load_explicit(&taker->taken, memory_order_relaxed) < jobs)
		sched_yield();
}

static void taker_end(struct taker *taker)
{
	MUST(pthread_join(taker->thread, NULL));
}

/* the sender's half of the memory */
#define OUT (STAGE_SIZE / 2)

/* Sends a job; a post without room is tried again. */
static void send_job(uint64_t context)
{
	int ret;

	while ((ret = rpma_rt_send(pair.active, stage.mr, OUT, SIZE,
				   RPMA_F_COMPLETION_ALWAYS, context)) ==
	       RPMA_E_AGAIN)
		sched_yield();
	MUST(ret);
}

/* A taker of messages, with two receives posted. */
static void receiver_start(struct taker *taker)
{
	uint64_t i;

	for (i = 0; i < 2; i++)
		MUST(rpma_rt_recv(pair.passive, stage.mr, i * SIZE, SIZE,
				  i * SIZE));
	taker_start(taker, stage.pq, JOBS);
}

static void post_jobs(bool is_late, bool is_reused)
{
	struct taker sent = {0}, received = {0};
	int i;

	receiver_start(&received);
	taker_start(&sent, stage.aq, JOBS);
	for (i = 0; i < JOBS; i++) {
		send_job(job_new(i));
		if (is_reused) {
			taker_await(&received, i + 1);
			fill(stage.memory + OUT, i);
		}
		if (is_late) {
			taker_await(&sent, i + 1);
			jobs[i].plain = 0;
		}
	}
	taker_end(&sent);
	taker_end(&received);
}

static void way_chained(void)
{
	struct taker sent = {0}, received = {0};
	struct rpma_rt_wr wrs[2];
	int i;

	receiver_start(&received);
	taker_start(&sent, stage.aq, JOBS);
	for (i = 0; i < JOBS; i += 2) {
		rpma_rt_prep_send(&wrs[0], stage.mr, OUT, SIZE,
				  RPMA_F_COMPLETION_ALWAYS, job_new(i));
		rpma_rt_prep_send(&wrs[1], stage.mr, OUT, SIZE,
				  RPMA_F_COMPLETION_ALWAYS, job_new(i + 1));
		MUST_ANSWER(2, rpma_rt_post_send(pair.active, wrs, 2));
		taker_await(&sent, i + 2);
	}
	taker_end(&sent);
	taker_end(&received);
}

static _Atomic int offered;

/* Sends a message for each receive. A send orders nothing done by the main
 * thread, which is unknown to this thread. */
static void *send_offered(void *arg)
{
	int i;

	(void)arg;
	for (i = 0; i < JOBS; i++) {
		/* relaxed: orders nothing */
		while (atomic_load_explicit(&offered, memory_order_relaxed) <=
		       i)
			sched_yield();
		send_job(1);
		stage_completion(stage.aq, 1, IBV_WC_SUCCESS);
	}
	return NULL;
}

static struct rpma_rt_srq *srq;

static void srq_open(void)
{
	struct rpma_rt_srq_cfg cfg = RPMA_RT_SRQ_CFG_INIT;

	cfg.peer = stage.world.peer;
	cfg.queue = stage.pq;
	MUST(rpma_rt_srq_new(stage.world.rt, &cfg, &srq));
	stage.cfg->srqs = &srq;
	stage.cfg->srq_count = 1;
}

static void offer_job(uint64_t context)
{
	struct rpma_rt_recv_wr wr;

	if (srq == NULL) {
		MUST(rpma_rt_recv(pair.passive, stage.mr, 0, SIZE, context));
		return;
	}
	rpma_rt_prep_recv(&wr, stage.mr, 0, SIZE, context);
	MUST_ANSWER(1, rpma_rt_srq_post_recv(srq, &wr, 1));
}

static void way_offered(void)
{
	struct taker taker = {.is_offered = true};
	pthread_t sender;
	int i;

	taker_start(&taker, stage.pq, JOBS);
	MUST(pthread_create(&sender, NULL, send_offered, NULL));
	for (i = 0; i < JOBS; i++) {
		offer_job(job_new(i));
		/* relaxed: orders nothing */
		atomic_store_explicit(&offered, i + 1, memory_order_relaxed);
		taker_await(&taker, i + 1);
	}
	taker_end(&taker);
	MUST(pthread_join(sender, NULL));
}

static void way_posted(void)
{
	post_jobs(false, false);
}

static void way_late(void)
{
	post_jobs(true, false);
}

static void way_reused(void)
{
	post_jobs(false, true);
}

/* The buffer is the sender's again when the completion was taken. */
static void way_received(void)
{
	struct taker received = {0};
	int i;

	receiver_start(&received);
	for (i = 0; i < JOBS; i++) {
		fill(stage.memory + OUT, i);
		send_job(1);
		stage_completion(stage.aq, 1, IBV_WC_SUCCESS);
	}
	taker_end(&received);
}

static void way_pushed(void)
{
	struct taker taker = {0};
	int i;

	taker_start(&taker, stage.aq, JOBS);
	for (i = 0; i < JOBS; i++)
		MUST(rpma_rt_queue_push(
			stage.aq,
			&(struct rpma_rt_completion){.context = job_new(i)}));
	taker_end(&taker);
}

static void way_shared(void)
{
	struct rpma_rt_queue_cfg cfg = RPMA_RT_QUEUE_CFG_INIT;
	struct rpma_rt_queue *queue;
	struct taker takers[2] = {0};
	int i;

	cfg.shared = 1;
	MUST(rpma_rt_queue_new(stage.world.rt, &cfg, &queue));
	for (i = 0; i < 2; i++)
		taker_start(&takers[i], queue, JOBS / 2);
	for (i = 0; i < JOBS; i++)
		MUST(rpma_rt_queue_push(queue, &(struct rpma_rt_completion){
						       .context = job_new(i)}));
	for (i = 0; i < 2; i++)
		taker_end(&takers[i]);
	MUST(rpma_rt_queue_delete(&queue));
}

/* On the poller's thread. */
static void on_sent(const struct rpma_rt_completion *cmpl, void *arg)
{
	CHECK(rpma_rt_completion_is_ok(cmpl));
	((struct job *)arg)->plain++;
	MUST(rpma_rt_queue_push(stage.aq, &(struct rpma_rt_completion){
						  .context = (uintptr_t)arg}));
}

static void way_future(void)
{
	struct rpma_rt_completion cmpl;
	struct rpma_rt_future future;
	struct rpma_rt_wr wr;
	int i;

	for (i = 0; i < JOBS; i++) {
		MUST(rpma_rt_recv(pair.passive, stage.mr, 0, SIZE, 0));
		rpma_rt_prep_send(&wr, stage.mr, STAGE_SIZE / 2, SIZE, 0, 0);
		wr.future = &future;
		job_new(i);
		MUST_ANSWER(1, rpma_rt_post_send(pair.active, &wr, 1));
		MUST(rpma_rt_future_then(&future, on_sent, &jobs[i]));
		CHECK(rpma_rt_future_wait(&future, &cmpl, -1) == 1);
		cmpl = world_next(stage.aq);
		job_done(cmpl.context);
		rpma_rt_future_drop(&future);
		world_next(stage.pq);
	}
}

static void way_pool(void)
{
	struct rpma_rt_pool_cfg cfg = RPMA_RT_POOL_CFG_INIT;
	struct rpma_rt_pool *pool;
	struct taker taker = {0};
	int i;

	cfg.peer = stage.world.peer;
	cfg.count = 4;
	cfg.slot_size = SIZE;
	MUST(rpma_rt_pool_new(stage.world.rt, &cfg, &pool));
	taker_start(&taker, stage.aq, JOBS);
	for (i = 0; i < JOBS; i++) {
		job_new(i);
		while (rpma_rt_pool_take(pool, &jobs[i].lease) == RPMA_E_AGAIN)
			sched_yield();
		fill(jobs[i].lease.data, 1);
		MUST(rpma_rt_queue_push(
			stage.aq, &(struct rpma_rt_completion){
					  .context = (uintptr_t)&jobs[i]}));
	}
	taker_end(&taker);
	MUST(rpma_rt_pool_delete(&pool));
}

/* --------------------------------------------------------------- shards --- */

static struct rpma_rt_shards *shards;
static int jobs_back;

/* Shard 0, in its first turn: posts all jobs to shard 1. */
static void on_timer(struct rpma_rt_shard *shard, struct rpma_rt_timer *timer)
{
	struct rpma_rt_shard_message message = {0};
	int i;

	CHECK(*(int *)timer->arg == JOBS);
	for (i = 0; i < JOBS; i++) {
		message.context = job_new(i);
		MUST(rpma_rt_shard_request(shard, 1, &message));
	}
}

static void on_message(struct rpma_rt_shard *shard,
		       const struct rpma_rt_shard_message *message, void *arg)
{
	(void)arg;
	job_done(message->context);
	if (message->kind == RPMA_RT_SHARD_REQUEST)
		MUST(rpma_rt_shard_answer(shard, message, message));
	else if (++jobs_back == JOBS)
		MUST(rpma_rt_shards_stop(shards));
}

static void on_item(struct rpma_rt_shard *shard,
		    const struct rpma_rt_completion *item, void *arg)
{
	(void)shard;
	(void)item;
	(void)arg;
}

static void *run_shard(void *shard)
{
	int ret;

	while ((ret = rpma_rt_shard_run(shard, -1)) >= 0)
		;
	CHECK(ret == RPMA_RT_E_CLOSED);
	return NULL;
}

static void way_shards(void)
{
	struct rpma_rt_shards_cfg cfg = RPMA_RT_SHARDS_CFG_INIT;
	int all = JOBS;
	struct rpma_rt_timer timer = {.fn = on_timer, .arg = &all};
	struct rpma_rt_shard *both[2];
	pthread_t thread;
	uint32_t i;

	cfg.item_fn = on_item;
	cfg.message_fn = on_message;
	MUST(rpma_rt_shards_new(stage.world.rt, &cfg, &shards));
	for (i = 0; i < 2; i++)
		MUST(rpma_rt_shards_get(shards, i, &both[i]));
	MUST(pthread_create(&thread, NULL, run_shard, both[1]));
	MUST(rpma_rt_timer_start(both[0], &timer, 0));
	run_shard(both[0]);
	MUST(pthread_join(thread, NULL));
	MUST(rpma_rt_stop(stage.world.rt));
	MUST(rpma_rt_shards_delete(&shards));
}

static const struct way {
	const char *name;
	void (*run)(void);
} ways[] = {
	{"posted", way_posted},	    {"chained", way_chained},
	{"offered", way_offered},   {"srq", way_offered},
	{"pushed", way_pushed},	    {"shared", way_shared},
	{"received", way_received}, {"future", way_future},
	{"pool", way_pool},	    {"shards", way_shards},
	{"late", way_late},	    {"reused", way_reused},
};

/* Takes items until the event; remaining receives come back ahead of CLOSED. */
static void take_until(struct rpma_rt_queue *queue, int event)
{
	struct rpma_rt_completion item;

	do {
		item = world_next(queue);
	} while ((int)rpma_rt_completion_event(&item) != event);
}

static void srq_close(void)
{
	MUST(rpma_rt_srq_delete(&srq));
	take_until(stage.pq, RPMA_RT_EVENT_SRQ_CLOSED);
}

static void disconnect(void)
{
	MUST(rpma_rt_conn_close(pair.active));
	take_until(stage.aq, RPMA_RT_EVENT_CLOSED);
	take_until(stage.pq, RPMA_RT_EVENT_CLOSED);
	MUST(rpma_rt_conn_unref(&pair.active));
	MUST(rpma_rt_conn_unref(&pair.passive));
}

/* Dumps; a dump waits for a lock in a special way. */
static void dump(void)
{
	int fd = open("/dev/null", O_WRONLY);

	CHECK(fd >= 0);
	MUST(rpma_rt_dump(stage.world.rt, fd, RPMA_RT_DUMP_HUMAN));
	close(fd);
}

int main(int argc, char **argv)
{
	const struct stage_cfg cfg = {.pollers = 1, .depth = DEPTH};
	const struct stage_cfg manual = {
		.pollers = 2, .depth = DEPTH, .mode = RPMA_RT_MODE_MANUAL};
	const struct way *way = ways;

	CHECK(argc == 2);
	while (strcmp(way->name, argv[1]) != 0)
		CHECK(++way < ways + sizeof(ways) / sizeof(ways[0]));
	if (way->run == way_shards) {
		stage_open(&stage, &manual);
		way->run();
	} else {
		stage_open(&stage, &cfg);
		stage.cfg->futures = 4;
		if (strcmp(way->name, "srq") == 0)
			srq_open();
		stage_connect(&stage, &pair);
		way->run();
		dump();
		disconnect();
		if (srq != NULL)
			srq_close();
	}
	stage_close(&stage);
	return 0;
}
