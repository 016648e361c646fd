/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * post.c -- posting: four threads on one connection, with some work requests
 * that want a completion on error only; credits and WRITABLE; batches taken in
 * part.
 *
 * usage: runtime_post [messages of each thread]
 */

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <string.h>

#include "stage.h"

#define THREADS	 4
#define DEPTH	 32
#define MSG_SIZE 16
#define RECVS	 256

struct post {
	struct stage stage;
	struct world_pair pair;
	uint32_t each;		  /* messages a thread */
	_Atomic uint32_t turn;	  /* grows with every WRITABLE and completion */
	_Atomic uint32_t refused; /* RPMA_E_AGAIN for want of credit */
	uint32_t writable;
	uint8_t *seen; /* by thread and number */
	uint32_t delivered;
	uint32_t received;
};

static void set_up(struct post *p, uint32_t each, uint32_t waiting)
{
	static const struct stage_cfg cfg = {
		.pollers = 1, .mode = RPMA_RT_MODE_ADAPTIVE, .depth = DEPTH};

	memset(p, 0, sizeof(*p));
	p->each = each;
	stage_open(&p->stage, &cfg);
	p->stage.cfg->rq_size = RECVS;
	p->stage.cfg->waiting = waiting;
	stage_connect(&p->stage, &p->pair);
	p->seen = calloc((size_t)THREADS * each, 1);
	CHECK(p->seen);
}

static void tear_down(struct post *p)
{
	MUST(rpma_rt_conn_close(p->pair.active));
	world_until_closed(p->stage.aq);
	world_until_closed(p->stage.pq);
	world_unref(&p->pair);
	stage_close(&p->stage);
	free(p->seen);
}

/* -------------------------------------------- four threads, one queue --- */

struct poster {
	struct post *post;
	uint32_t index;
};

/* every third work request wants no completion on success */
static int flags_of(uint32_t number)
{
	return number % 3 ? RPMA_F_COMPLETION_ALWAYS
			  : RPMA_F_COMPLETION_ON_ERROR;
}

/* Until the consumer has seen something since `turn`. */
static void wait_for_a_turn(struct post *p, uint32_t turn)
{
	/* acquire: pairs with the release in consume() */
	while (atomic_load_explicit(&p->turn, memory_order_acquire) == turn)
		sched_yield();
}

static void *post_many(void *arg)
{
	struct poster *poster = arg;
	struct post *p = poster->post;
	uint32_t number = 0;
	uint32_t turn;
	int ret;

	while (number < p->each) {
		/* acquire: before the post, so that freed room is seen */
		turn = atomic_load_explicit(&p->turn, memory_order_acquire);
		ret = rpma_rt_send(p->pair.active, p->stage.mr, 0, MSG_SIZE,
				   flags_of(number),
				   (uint64_t)poster->index * p->each + number);
		if (ret == RPMA_E_AGAIN) {
			CHECK(rpma_rt_again_reason() == RPMA_RT_AGAIN_CREDIT);
			/* relaxed: a count, read after the join */
			atomic_fetch_add_explicit(&p->refused, 1,
						  memory_order_relaxed);
			wait_for_a_turn(p, turn);
			continue;
		}
		MUST(ret);
		number++;
	}
	return NULL;
}

static void consume(struct post *p, uint32_t expected)
{
	struct rpma_rt_completion item;
	uint32_t per_thread[THREADS] = {0};
	uint32_t thread;

	while (p->delivered < expected) {
		item = world_next(p->stage.aq);
		if (item.kind == RPMA_RT_WRITABLE) {
			CHECK(item.context == (uintptr_t)p->pair.active);
			p->writable++;
		} else {
			CHECK(item.kind == RPMA_RT_COMPLETION);
			CHECK(item.status == IBV_WC_SUCCESS);
			CHECK(!p->seen[item.context]);
			p->seen[item.context] = 1;
			thread = (uint32_t)item.context / p->each;
			/* the completions of a thread come in the order of its
			 * posts */
			CHECK(item.context % p->each >= per_thread[thread]);
			per_thread[thread] =
				(uint32_t)(item.context % p->each) + 1;
			p->delivered++;
		}
		/* release: pairs with the acquires of the posters */
		atomic_fetch_add_explicit(&p->turn, 1, memory_order_release);
	}
}

/* The other end: takes every message, always with receives to spare. */
static void *receive_all(void *arg)
{
	struct post *p = arg;
	struct rpma_rt_completion item;
	uint32_t i;

	for (i = 0; i < RECVS; i++)
		MUST(rpma_rt_recv(p->pair.passive, p->stage.mr, 0, MSG_SIZE,
				  i));
	while (p->received < THREADS * p->each) {
		item = world_next(p->stage.pq);
		CHECK(item.kind == RPMA_RT_COMPLETION &&
		      item.status == IBV_WC_SUCCESS);
		p->received++;
		MUST(rpma_rt_recv(p->pair.passive, p->stage.mr, 0, MSG_SIZE,
				  item.context));
	}
	return NULL;
}

static uint32_t wanted(const struct post *p)
{
	uint32_t count = 0;
	uint32_t i;

	for (i = 0; i < p->each; i++)
		count += flags_of(i) == RPMA_F_COMPLETION_ALWAYS;
	return THREADS * count;
}

static void post__four_threads(uint32_t each)
{
	struct poster posters[THREADS];
	pthread_t threads[THREADS];
	pthread_t receiver;
	uint32_t refused;
	struct post p;
	uint32_t i;

	set_up(&p, each, 4); /* so that posts are refused now and then */
	CHECK(!pthread_create(&receiver, NULL, receive_all, &p));
	for (i = 0; i < THREADS; i++) {
		posters[i] = (struct poster){&p, i};
		CHECK(!pthread_create(&threads[i], NULL, post_many,
				      &posters[i]));
	}
	consume(&p, wanted(&p));
	for (i = 0; i < THREADS; i++)
		CHECK(!pthread_join(threads[i], NULL));
	CHECK(!pthread_join(receiver, NULL));
	/* relaxed: the posters are joined */
	refused = atomic_load_explicit(&p.refused, memory_order_relaxed);
	printf("delivered %u, refused %u, writable %u\n", p.delivered, refused,
	       p.writable);
	CHECK(p.writable <= refused); /* never without a refusal */
	tear_down(&p);
}

/* ----------------------------------------------- one thread, by count --- */

/*
 * Fills the queue; the batch is taken in part; a single WRITABLE, then again.
 */
static void post__batch_beyond_credit_A_PART(void)
{
	struct rpma_rt_wr wrs[DEPTH + 8];
	struct rpma_rt_completion item;
	uint32_t writable = 0;
	struct post p;
	int i;

	set_up(&p, DEPTH + 8, RPMA_RT_NO_WAITING);
	for (i = 0; i < DEPTH + 8; i++)
		wrs[i] = (struct rpma_rt_wr){.op = RPMA_RT_OP_SEND,
					     .flags = RPMA_F_COMPLETION_ALWAYS,
					     .context = (uint64_t)i,
					     .local = p.stage.mr,
					     .len = MSG_SIZE};
	/* no receives at the other end: nothing can complete */
	MUST_ANSWER(DEPTH, rpma_rt_post_send(p.pair.active, wrs, DEPTH + 8));
	CHECK(rpma_rt_again_reason() == RPMA_RT_AGAIN_CREDIT);
	/* refused once more: still a single WRITABLE */
	CHECK(rpma_rt_post_send(p.pair.active, &wrs[DEPTH], 1) == RPMA_E_AGAIN);
	for (i = 0; i < DEPTH; i++)
		MUST(rpma_rt_recv(p.pair.passive, p.stage.mr, 0, MSG_SIZE, 0));
	for (i = 0; i < DEPTH;) {
		item = world_next(p.stage.aq);
		if (item.kind == RPMA_RT_WRITABLE)
			writable++;
		else
			CHECK(item.context == (uint64_t)i++);
	}
	if (writable == 0) {
		item = world_next(p.stage.aq);
		CHECK(item.kind == RPMA_RT_WRITABLE);
		writable++;
	}
	CHECK(writable == 1);
	MUST_ANSWER(8, rpma_rt_post_send(p.pair.active, &wrs[DEPTH], 8));
	CHECK(rpma_rt_again_reason() == RPMA_RT_AGAIN_NONE);
	tear_down(&p);
}

int main(int argc, char **argv)
{
	/* an emulated machine has a fraction of the speed */
	uint32_t each = getenv("RPMA_TEST_VM") ? 2000 : 20000;

	if (argc > 1)
		each = (uint32_t)atoi(argv[1]);
	post__batch_beyond_credit_A_PART();
	post__four_threads(each);
	printf("ok\n");
	return 0;
}
