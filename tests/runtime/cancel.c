/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * cancel.c -- a thread is cancelled (pthread_cancel(), deferred) inside the
 * library: asleep in a wait, alone or among several; while posting; while a
 * call is refused and the log is written; inside a function called by a round
 * of manual mode. The thread ends, and leaves no lock taken, no place used and
 * no wake-up lost: others go on at once.
 */

#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <unistd.h>

#include "stage.h"

#ifdef __SANITIZE_ADDRESS__
/* Frames left by a cancelled thread stay poisoned, and the sanitizer would
 * report the frames at the end of the thread. */
const char *__asan_default_options(void);
__attribute__((visibility("default"))) const char *__asan_default_options(void)
{
	return "use_sigaltstack=0";
}
#endif

#define ROUNDS 200
#define DEPTH  16

/* Cancels the thread, which must end as cancelled. */
static void cancel(pthread_t thread)
{
	void *result;

	CHECK(pthread_cancel(thread) == 0);
	CHECK(pthread_join(thread, &result) == 0);
	CHECK(result == PTHREAD_CANCELED);
}

static pthread_t start(void *(*fn)(void *arg), void *arg)
{
	pthread_t thread;

	CHECK(pthread_create(&thread, NULL, fn, arg) == 0);
	return thread;
}

/* Lets the other thread come anywhere; the same for the same seed. */
static void drift(uint32_t *seed)
{
	usleep(world_roll(seed, 1000));
}

/* ------------------------------------------------------ after a sleep --- */

#define CUTS 3000

/* a thread that sleeps in a wait, then does something uncancelled */
struct cut {
	struct rpma_rt_queue *queue;
	_Atomic bool is_uncancelled;
	_Atomic bool was_cut;
};

static void note_cut(void *arg)
{
	struct cut *cut = arg;

	/* relaxed, both: the thread is joined before the look */
	if (atomic_load_explicit(&cut->is_uncancelled, memory_order_relaxed))
		atomic_store_explicit(&cut->was_cut, true,
				      memory_order_relaxed);
}

static void *wait_then_work(void *arg)
{
	struct rpma_rt_completion item;
	struct cut *cut = arg;
	int before;

	pthread_cleanup_push(note_cut, cut);
	while (rpma_rt_queue_wait(cut->queue, &item, 1, -1) >= 0) {
		pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &before);
		/* relaxed, both: read by this thread */
		atomic_store_explicit(&cut->is_uncancelled, true,
				      memory_order_relaxed);
		usleep(20); /* asynchronous, as in each wait of the C library */
		atomic_store_explicit(&cut->is_uncancelled, false,
				      memory_order_relaxed);
		pthread_setcancelstate(before, NULL);
	}
	pthread_cleanup_pop(0);
	return NULL;
}

/* A cancellation that meets the end of the sleep ends the thread in the wait or
 * later, but not while the thread is uncancelled. */
static void wait__cancelled_at_the_end_ENDS_WHERE_CANCELLED(struct rpma_rt *rt,
							    uint32_t *seed)
{
	struct cut cut = {NULL};
	pthread_t thread;
	int i;

	MUST(rpma_rt_queue_new(rt, NULL, &cut.queue));
	for (i = 0; i < CUTS; i++) {
		thread = start(wait_then_work, &cut);
		usleep(world_roll(seed, 60));
		MUST(rpma_rt_queue_wake(cut.queue));
		cancel(thread);
		/* relaxed: the thread is joined */
		CHECK(!atomic_load_explicit(&cut.was_cut,
					    memory_order_relaxed));
	}
	MUST(rpma_rt_queue_delete(&cut.queue));
}

/* ------------------------------------------------------------ a queue --- */

/* a consumer that counts items */
struct consumer {
	struct rpma_rt_queue *queue;
	_Atomic uint32_t *taken;
};

static void *consume(void *arg)
{
	const struct consumer *consumer = arg;
	struct rpma_rt_completion item;
	int ret;

	while ((ret = rpma_rt_queue_wait(consumer->queue, &item, 1, -1)) >= 0)
		/* relaxed: a count */
		atomic_fetch_add_explicit(consumer->taken, (uint32_t)ret,
					  memory_order_relaxed);
	CHECK(ret == RPMA_RT_E_CLOSED);
	return NULL;
}

static uint32_t count(_Atomic uint32_t *taken)
{
	/* relaxed: a count */
	return atomic_load_explicit(taken, memory_order_relaxed);
}

static void await(_Atomic uint32_t *taken, uint32_t wanted)
{
	uint64_t end = world_now_ms() + WORLD_PATIENCE_MS;

	while (count(taken) != wanted) {
		CHECK(world_now_ms() < end);
		usleep(100);
	}
}

/* The next consumer takes the items. */
static void wait__alone_the_next_consumer_goes_on(struct rpma_rt *rt,
						  uint32_t *seed)
{
	struct rpma_rt_completion item;
	struct rpma_rt_queue *queue;
	_Atomic uint32_t taken = 0;
	struct consumer consumer = {.taken = &taken};

	MUST(rpma_rt_queue_new(rt, NULL, &queue));
	consumer.queue = queue;
	for (uint32_t i = 0; i < ROUNDS; i++) {
		pthread_t thread = start(consume, &consumer);

		drift(seed);
		if (i % 2)
			MUST(rpma_rt_queue_push(
				queue,
				&(struct rpma_rt_completion){.context = i}));
		cancel(thread);
		if (i % 2 && count(&taken) == 0)
			MUST_ANSWER(1, rpma_rt_queue_wait(queue, &item, 1,
							  WORLD_PATIENCE_MS));
		/* relaxed: a count */
		atomic_store_explicit(&taken, 0, memory_order_relaxed);
		MUST_ANSWER(0, rpma_rt_queue_poll(queue, &item, 1));
	}
	MUST(rpma_rt_queue_delete(&queue));
}

/* A wake-up of the cancelled thread goes to another thread. */
static void wait__shared_no_wake_up_is_lost(struct rpma_rt *rt, uint32_t *seed)
{
	struct rpma_rt_queue_cfg cfg = RPMA_RT_QUEUE_CFG_INIT;
	_Atomic uint32_t taken = 0;
	struct consumer consumer = {.taken = &taken};
	struct rpma_rt_queue *queue;

	cfg.shared = 1;
	cfg.spin_us = 0;
	MUST(rpma_rt_queue_new(rt, &cfg, &queue));
	consumer.queue = queue;
	for (uint32_t i = 0; i < ROUNDS; i++) {
		/* the first to sleep is the first to be woken */
		pthread_t goes = start(consume, &consumer);
		pthread_t stays;

		drift(seed);
		stays = start(consume, &consumer);
		drift(seed);
		MUST(rpma_rt_queue_push(
			queue, &(struct rpma_rt_completion){.context = i}));
		cancel(goes);
		await(&taken, i + 1);
		cancel(stays);
	}
	MUST(rpma_rt_queue_delete(&queue));
}

/* ----------------------------------------------------------- a future --- */

static void *wait_for(void *arg)
{
	struct rpma_rt_completion item;

	(void)!rpma_rt_future_wait(arg, &item, -1);
	return NULL;
}

static void wait__future_it_completes_for_others(struct stage *s,
						 uint32_t *seed)
{
	struct rpma_rt_future future;
	struct rpma_rt_completion item;
	struct world_pair pair;

	s->cfg->futures = 1;
	stage_connect(s, &pair);
	MUST(rpma_rt_conn_future(pair.active, RPMA_RT_EVENT_CLOSED, &future));
	for (int i = 0; i < ROUNDS; i++) {
		pthread_t thread = start(wait_for, &future);

		drift(seed);
		cancel(thread);
	}
	MUST(rpma_rt_conn_close(pair.active));
	MUST_ANSWER(1, rpma_rt_future_wait(&future, &item, WORLD_PATIENCE_MS));
	MUST(rpma_rt_future_drop(&future));
	while (rpma_rt_queue_wait(s->pq, &item, 1, WORLD_PATIENCE_MS) == 1 &&
	       rpma_rt_completion_event(&item) != RPMA_RT_EVENT_CLOSED)
		;
	while (rpma_rt_queue_poll(s->aq, &item, 1) == 1)
		;
	world_unref(&pair);
}

/* ------------------------------------------------------------ posting --- */

struct poster {
	struct stage *stage;
	struct world_pair pair;
};

/* Sends and is refused by turns. */
static void *post(void *arg)
{
	const struct poster *poster = arg;
	struct rpma_rt_completion item;

	for (;;) {
		pthread_testcancel();
		(void)!rpma_rt_recv(poster->pair.passive, poster->stage->mr, 0,
				    64, 0);
		(void)!rpma_rt_send(poster->pair.active, poster->stage->mr, 64,
				    64, RPMA_F_COMPLETION_ON_ERROR, 0);
		(void)!rpma_rt_send(poster->pair.active, NULL, 0, 64, 0, 0);
		/* librpma's log has no limit to lines in a second */
		(void)!rpma_mr_get_ptr(NULL, NULL);
		(void)!rpma_rt_queue_poll(poster->stage->pq, &item, 1);
	}
	return NULL;
}

static void post__others_post_and_are_refused(struct stage *s, uint32_t *seed)
{
	struct poster poster = {.stage = s};
	struct rpma_rt_completion item;
	int before = dup(STDERR_FILENO);
	int null = open("/dev/null", O_WRONLY | O_CLOEXEC);

	CHECK(before >= 0 && null >= 0);
	stage_connect(s, &poster.pair);
	CHECK(dup2(null, STDERR_FILENO) >= 0);
	for (int i = 0; i < ROUNDS; i++) {
		pthread_t thread = start(post, &poster);

		drift(seed);
		cancel(thread);
		/* of this thread, which is never cancelled */
		CHECK(rpma_rt_send(poster.pair.active, NULL, 0, 64, 0, 0) ==
		      RPMA_E_INVAL);
		while (rpma_rt_send(poster.pair.active, s->mr, 64, 64,
				    RPMA_F_COMPLETION_ON_ERROR,
				    0) == RPMA_E_AGAIN) {
			(void)!rpma_rt_recv(poster.pair.passive, s->mr, 0, 64,
					    0);
			while (rpma_rt_queue_poll(s->pq, &item, 1) == 1)
				;
			while (rpma_rt_queue_poll(s->aq, &item, 1) == 1)
				CHECK(item.kind == RPMA_RT_WRITABLE);
		}
	}
	CHECK(dup2(before, STDERR_FILENO) >= 0);
	close(null);
	close(before);
	MUST(rpma_rt_conn_close(poster.pair.active));
	world_unref(&poster.pair);
}

/* ------------------------------------------------------- librpma's CQ --- */

static void *wait_for_cq(void *arg)
{
	(void)!rpma_cq_wait(arg);
	return NULL;
}

static void wait__cq_may_be_claimed(struct stage *s, uint32_t *seed)
{
	struct rpma_cq *cq;

	MUST(rpma_cq_new(s->world.ibv_ctx, 8, NULL, 0, NULL, &cq));
	for (int i = 0; i < ROUNDS; i++) {
		pthread_t thread = start(wait_for_cq, cq);

		drift(seed);
		cancel(thread);
		MUST(rpma_cq_claim(cq, s));
		MUST(rpma_cq_release(cq, s));
	}
	MUST(rpma_cq_delete(&cq));
}

/* -------------------------------------------------------- manual mode --- */

/* how far call() has come; rounds behind the test call call(), too */
static _Atomic enum { NOT_CALLED, CALLED, ASKED } stage;

/* Stays in the function until the thread is cancelled. */
static void call(const struct rpma_rt_completion *item, void *arg)
{
	unsigned int is = NOT_CALLED;

	(void)item;
	(void)arg;
	/* relaxed, all accesses of the stage: each is a step on the way, and
	 * orders nothing */
	if (!atomic_compare_exchange_strong_explicit(&stage, &is, CALLED,
						     memory_order_relaxed,
						     memory_order_relaxed))
		return;
	while (atomic_load_explicit(&stage, memory_order_relaxed) == CALLED)
		sched_yield();
	pthread_testcancel(); /* as any write of a program */
}

static void *run(void *arg)
{
	struct rpma_rt *rt = arg;

	while (rpma_rt_poller_run(rt, 0, 64) >= 0)
		pthread_testcancel();
	return NULL;
}

/* The poller of a thread cancelled in a function is free for any thread. */
static void run__in_a_function_the_poller_is_free(struct stage *s)
{
	void *result;
	struct rpma_rt_route *route;
	struct rpma_rt_wr wr;
	struct world_pair pair;

	MUST(rpma_rt_poller_attach(s->world.rt, 0));
	stage_connect(s, &pair);
	MUST(rpma_rt_route_open_callback(pair.active, RPMA_RT_SEND_SIDE, call,
					 NULL, &route));
	MUST(rpma_rt_poller_release(s->world.rt, 0));
	for (int i = 0; i < ROUNDS; i++) {
		pthread_t thread;

		/* relaxed: see call() */
		atomic_store_explicit(&stage, NOT_CALLED, memory_order_relaxed);
		thread = start(run, s->world.rt);
		rpma_rt_prep_write(&wr, s->remote, 0, s->mr, 64, 64,
				   RPMA_F_COMPLETION_ALWAYS, 0);
		wr.route = route;
		MUST_ANSWER(1, rpma_rt_post_send(pair.active, &wr, 1));
		/* relaxed: see call() */
		while (atomic_load_explicit(&stage, memory_order_relaxed) ==
		       NOT_CALLED)
			sched_yield();
		CHECK(pthread_cancel(thread) == 0);
		/* relaxed: see call() */
		atomic_store_explicit(&stage, ASKED, memory_order_relaxed);
		CHECK(pthread_join(thread, &result) == 0);
		CHECK(result == PTHREAD_CANCELED);
		/* the cancelled thread is inside no more */
		CHECK(rpma_rt_poller_run(s->world.rt, 0, 64) >= 0);
	}
	MUST(rpma_rt_conn_close(pair.active));
	world_unref(&pair);
}

/* Stops; items are left in the queues. */
static void end(struct stage *s)
{
	struct rpma_rt_completion item;

	MUST(rpma_rt_stop(s->world.rt));
	while (rpma_rt_queue_poll(s->aq, &item, 1) > 0)
		;
	while (rpma_rt_queue_poll(s->pq, &item, 1) > 0)
		;
	stage_close(s);
}

int main(int argc, char **argv)
{
	static const struct stage_cfg cfg = {
		.pollers = 1, .mode = RPMA_RT_MODE_EVENT, .depth = DEPTH};
	static const struct stage_cfg manual = {
		.pollers = 1, .mode = RPMA_RT_MODE_MANUAL, .depth = DEPTH};
	uint32_t seed = argc > 1 ? (uint32_t)atoi(argv[1]) : 1;
	struct stage s;

	printf("seed %u\n", seed);
	stage_open(&s, &cfg);
	wait__cancelled_at_the_end_ENDS_WHERE_CANCELLED(s.world.rt, &seed);
	wait__alone_the_next_consumer_goes_on(s.world.rt, &seed);
	wait__shared_no_wake_up_is_lost(s.world.rt, &seed);
	wait__future_it_completes_for_others(&s, &seed);
	wait__cq_may_be_claimed(&s, &seed);
	post__others_post_and_are_refused(&s, &seed);
	end(&s);
	stage_open(&s, &manual);
	run__in_a_function_the_poller_is_free(&s);
	end(&s);
	printf("ok\n");
	return 0;
}
