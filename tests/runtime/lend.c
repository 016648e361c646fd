/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * lend.c -- a poller of adaptive mode that shares its CPU, whose rounds a
 * waiting consumer runs: each yield takes so long that other threads seem to
 * want the CPU.
 */

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <string.h>
#include <unistd.h>

#include "world.h"
#include "yields.h"

#define AWAY_NS UINT64_C(20000) /* of each yield */
#define SPIN_US 1000000		/* no consumer here spins so long */
#define DEPTH	16
#define ROUNDS	1000
#define TIMES	4 /* of each case */
#define IN_ROW	8 /* messages without a sleep: a poller was lent */
#define SIZE	64

struct scene {
	struct world world;
	struct rpma_rt_queue *queue; /* the messages' */
	struct rpma_rt_queue *other; /* the sends' */
	struct rpma_rt_conn_cfg *cfg;
	struct world_pair pair;
	struct rpma_mr_local *mr;
	struct rpma_rt_route *route; /* to note() */
	char memory[SIZE];
	pthread_t program;
	_Atomic uint32_t calls;
};

/* --------------------------------------------------------------- steps --- */

static struct rpma_rt_queue *new_queue(struct world *w)
{
	struct rpma_rt_queue_cfg cfg = RPMA_RT_QUEUE_CFG_INIT;
	struct rpma_rt_queue *queue;

	cfg.spin_us = SPIN_US;
	MUST(rpma_rt_queue_new(w->rt, &cfg, &queue));
	return queue;
}

static void start(struct scene *s)
{
	memset(s, 0, sizeof(*s));
	world_open(&s->world);
	world_start(&s->world, 1, RPMA_RT_MODE_ADAPTIVE);
	s->program = pthread_self();
	s->queue = new_queue(&s->world);
	s->other = new_queue(&s->world);
	s->cfg = world_cfg(DEPTH, DEPTH);
	MUST(rpma_mr_reg(s->world.peer, s->memory, SIZE,
			 RPMA_MR_USAGE_SEND | RPMA_MR_USAGE_RECV, &s->mr));
	world_connect(&s->world, s->cfg, 0, s->other, s->queue, &s->pair);
}

static void finish(struct scene *s)
{
	struct rpma_rt_completion item;

	MUST(rpma_rt_stop(s->world.rt));
	while (rpma_rt_queue_poll(s->queue, &item, 1) > 0)
		;
	while (rpma_rt_queue_poll(s->other, &item, 1) > 0)
		;
	world_unref(&s->pair);
	MUST(rpma_rt_queue_delete(&s->queue));
	MUST(rpma_rt_queue_delete(&s->other));
	MUST(rpma_mr_dereg(&s->mr));
	world_close(&s->world);
	free(s->cfg);
}

static void send_one(struct scene *s, int flags)
{
	MUST(rpma_rt_recv(s->pair.passive, s->mr, 0, SIZE, 0));
	MUST(rpma_rt_send(s->pair.active, s->mr, 0, SIZE, flags, 0));
}

static void take_one(struct rpma_rt_queue *queue)
{
	struct rpma_rt_completion item = world_next(queue);

	CHECK(item.kind == RPMA_RT_COMPLETION);
	CHECK(item.status == IBV_WC_SUCCESS);
}

static uint64_t sleeps_of(const struct rpma_rt_queue *queue)
{
	struct rpma_rt_queue_stats stats;

	MUST(rpma_rt_queue_get_stats(queue, &stats, sizeof(stats)));
	return stats.sleeps;
}

/* Sends messages awaited by the calling thread, until a poller was lent:
 * several messages came in a row without a sleep of the consumer. */
static void serve(struct scene *s)
{
	uint64_t sleeps = sleeps_of(s->queue);
	int in_row = 0;

	while (in_row < IN_ROW) {
		send_one(s, RPMA_F_COMPLETION_ON_ERROR);
		take_one(s->queue);
		in_row = sleeps_of(s->queue) == sleeps ? in_row + 1 : 0;
		sleeps = sleeps_of(s->queue);
	}
}

/* --------------------------------------------------------------- cases --- */

/* A consumer beside other threads waits without a sleep. */
static void consumer_SERVES(struct scene *s)
{
	uint64_t sleeps;
	int i;

	start(s);
	serve(s);
	sleeps = sleeps_of(s->queue);
	for (i = 0; i < ROUNDS; i++) {
		send_one(s, RPMA_F_COMPLETION_ON_ERROR);
		take_one(s->queue);
	}
	/* some: this thread may not be scheduled for a while */
	CHECK(sleeps_of(s->queue) - sleeps < ROUNDS / 4);
	finish(s);
}

/* A consumer that never waits again finds its items by polling. */
static void poll_after_wait_FINDS(struct scene *s)
{
	struct rpma_rt_completion item;
	int i;

	start(s);
	for (i = 0; i < TIMES; i++) {
		serve(s);
		send_one(s, RPMA_F_COMPLETION_ON_ERROR);
		while (rpma_rt_queue_poll(s->queue, &item, 1) == 0)
			;
	}
	finish(s);
}

static void *wait_for_other(void *arg)
{
	struct scene *s = arg;

	take_one(s->other);
	return NULL;
}

/* A consumer of another queue gets its items, whatever the first does. */
static void other_consumer_GETS(struct scene *s)
{
	pthread_t thread;
	int i;

	start(s);
	for (i = 0; i < TIMES; i++) {
		serve(s);
		CHECK(pthread_create(&thread, NULL, wait_for_other, s) == 0);
		send_one(s, RPMA_F_COMPLETION_ALWAYS);
		if (i % 2 == 0)
			take_one(s->queue);
		CHECK(pthread_join(thread, NULL) == 0);
		if (i % 2 != 0)
			take_one(s->queue);
	}
	finish(s);
}

static void note(const struct rpma_rt_completion *item, void *arg)
{
	struct scene *s = arg;

	(void)item;
	CHECK(!pthread_equal(pthread_self(), s->program));
	/* release: pairs with the acquire in function_RUNS_on_poller() */
	atomic_fetch_add_explicit(&s->calls, 1, memory_order_release);
}

static void call(struct scene *s)
{
	const struct rpma_rt_wr wr = {
		.op = RPMA_RT_OP_SEND,
		.flags = RPMA_F_COMPLETION_ALWAYS,
		.route = s->route,
	};

	MUST(rpma_rt_recv(s->pair.passive, s->mr, 0, SIZE, 0));
	MUST(world_post_send(s->pair.active, &wr));
}

/* Functions run on the poller's thread, in between messages of a consumer. */
static void function_RUNS_on_poller(struct scene *s)
{
	uint32_t i;

	start(s);
	MUST(rpma_rt_route_open_callback(s->pair.active, RPMA_RT_SEND_SIDE,
					 note, s, &s->route));
	for (i = 1; i <= TIMES; i++) {
		serve(s);
		call(s);
		take_one(s->queue);
		/* acquire: pairs with the release in note() */
		while (atomic_load_explicit(&s->calls, memory_order_acquire) <
		       i)
			usleep(100);
	}
	finish(s);
}

/* A call that waits for the poller gets an answer. */
static void change_IS_answered(struct scene *s)
{
	int i;

	start(s);
	for (i = 0; i < TIMES; i++) {
		serve(s);
		MUST(rpma_rt_conn_set_queue(s->pair.passive, s->queue));
	}
	finish(s);
}

int main(void)
{
	static struct scene scene;

	yields_take(AWAY_NS);
	/* a device without threads, which would wait for a CPU as well */
	setenv("RPMA_LOOPBACK_MODE", "inline", 1);
	consumer_SERVES(&scene);
	poll_after_wait_FINDS(&scene);
	other_consumer_GETS(&scene);
	function_RUNS_on_poller(&scene);
	change_IS_answered(&scene);
	printf("ok\n");
	return 0;
}
