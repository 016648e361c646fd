/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * straight_take.c -- rpma_rt_poller_take(): a round and a poll of a queue in a
 * single call. What the call says of other work, and that the call runs no
 * other poller, takes no wake, ends the sleep of an armed poller, and ends as
 * both calls do. Order and number of completions: straight.c.
 */

#include <pthread.h>
#include <string.h>

#include "stage.h"

#define DEPTH 64

struct takes {
	struct stage s;
	struct world_pair pair;
	struct rpma_rt_completion items[DEPTH];
	bool busy;
};

static void set_up(struct takes *t, int pollers)
{
	const struct stage_cfg cfg = {.pollers = pollers,
				      .mode = RPMA_RT_MODE_MANUAL,
				      .depth = DEPTH};

	memset(t, 0, sizeof(*t));
	stage_open(&t->s, &cfg);
	stage_connect(&t->s, &t->pair);
	MUST(rpma_rt_poller_attach(t->s.world.rt, 0));
}

static void tear_down(struct takes *t)
{
	stage_disconnect(&t->s, &t->pair);
	stage_close(&t->s);
}

static int take(struct takes *t, struct rpma_rt_queue *queue)
{
	return rpma_rt_poller_take(t->s.world.rt, 0, queue, t->items, DEPTH,
				   &t->busy);
}

static void post(struct takes *t, struct rpma_rt_route *route, uint64_t context)
{
	struct rpma_rt_wr wr;

	rpma_rt_prep_write(&wr, t->s.remote, 0, t->s.mr, 64, 8,
			   RPMA_F_COMPLETION_ALWAYS, context);
	wr.route = route;
	MUST(world_post_send(t->pair.active, &wr));
}

/* The next item of the active end is the completion with the context. */
static void take_one(struct takes *t, uint64_t context)
{
	int got;

	do {
		got = take(t, t->s.aq);
	} while (got == 0);
	CHECK(got == 1 && t->busy);
	CHECK(t->items[0].status == 0 && t->items[0].context == context);
}

static void idle(struct takes *t)
{
	do {
		MUST(take(t, t->s.aq));
	} while (t->busy);
}

static void called(const struct rpma_rt_completion *item, void *arg)
{
	int *calls = arg;

	*calls += item->kind == RPMA_RT_COMPLETION;
}

/* A program that sleeps when nothing is done sees the work of functions, and of
 * other queues. */
static void take__of_other_work_BUSY(struct takes *t)
{
	struct rpma_rt_route *route;
	int calls = 0;

	MUST(rpma_rt_route_open_callback(t->pair.active, RPMA_RT_SEND_SIDE,
					 called, &calls, &route));
	idle(t);
	post(t, route, 0);
	do {
		MUST(take(t, t->s.aq));
		CHECK(t->busy == (calls > 0));
	} while (calls == 0);
	idle(t);
	post(t, NULL, 7);
	do {
		MUST(take(t, t->s.pq));
	} while (!t->busy);
	MUST_ANSWER(1, rpma_rt_queue_poll(t->s.aq, t->items, DEPTH));
	CHECK(t->items[0].context == 7);
	MUST(rpma_rt_route_close(route, NULL));
	idle(t); /* ROUTE_CLOSED goes to the function */
}

/* A message of another thread is no work of the round. */
static void take__message_FOUND(struct takes *t)
{
	const struct rpma_rt_completion pushed = {.context = 9};

	idle(t);
	MUST(rpma_rt_queue_push(t->s.aq, &pushed));
	MUST_ANSWER(1, take(t, t->s.aq));
	CHECK(t->items[0].kind == RPMA_RT_MESSAGE);
	CHECK(t->items[0].context == 9);
}

static void take__armed_poller_TAKES(struct takes *t)
{
	uint64_t i;

	for (i = 0; i < 3; i++) {
		idle(t);
		MUST(rpma_rt_poller_arm(t->s.world.rt, 0));
		post(t, NULL, i);
		take_one(t, i);
	}
}

/* A wake is for a sleep: arming tells of the wake, a take does not. */
static void take__wake_STAYS(struct takes *t)
{
	struct rpma_rt_queue_cfg cfg = RPMA_RT_QUEUE_CFG_INIT;
	struct rpma_rt_queue *queue;
	int shared;
	int fd;

	for (shared = 0; shared < 2; shared++) {
		cfg.shared = shared;
		MUST(rpma_rt_queue_new(t->s.world.rt, &cfg, &queue));
		MUST(rpma_rt_queue_get_fd(queue, &fd));
		MUST(rpma_rt_queue_wake(queue));
		MUST(take(t, queue));
		MUST(take(t, queue));
		MUST_ANSWER(1, rpma_rt_queue_arm(queue));
		MUST(rpma_rt_queue_delete(&queue));
	}
}

static void *other_main(void *arg)
{
	struct takes *t = arg;

	MUST_ANSWER(RPMA_RT_E_BUSY, take(t, t->s.aq));
	return NULL;
}

static void take__of_another_thread_BUSY(struct takes *t)
{
	pthread_t thread;

	CHECK(pthread_create(&thread, NULL, other_main, t) == 0);
	CHECK(pthread_join(thread, NULL) == 0);
}

static uint64_t polls_of(struct takes *t, uint32_t poller)
{
	struct rpma_rt_poller_stats stats;

	MUST(rpma_rt_poller_get_stats(t->s.world.rt, poller, &stats,
				      sizeof(stats)));
	return stats.polls;
}

/* The thread has two pollers, of which each fills a queue. */
static void take__two_pollers_THE_NAMED_RUNS(void)
{
	struct world_pair other;
	struct takes t;
	uint64_t polls;

	set_up(&t, 2);
	world_connect(&t.s.world, t.s.cfg, 1, t.s.pq, t.s.pq, &other);
	MUST(rpma_rt_poller_attach(t.s.world.rt, 1));
	idle(&t);
	polls = polls_of(&t, 1);
	post(&t, NULL, 1);
	take_one(&t, 1);
	idle(&t);
	CHECK(polls_of(&t, 1) == polls);
	MUST(rpma_rt_conn_close(other.active));
	world_event(t.s.pq, RPMA_RT_EVENT_CLOSED);
	world_event(t.s.pq, RPMA_RT_EVENT_CLOSED);
	world_unref(&other);
	tear_down(&t);
}

/* A thread with two pollers, for whose waits the lane is never empty. */
static void wait__lane_never_empty_RUNS_ALL_POLLERS(void)
{
	const int waits = 20;
	struct world_pair other;
	struct takes t;
	uint64_t polls;
	int i;

	set_up(&t, 2);
	world_connect(&t.s.world, t.s.cfg, 1, t.s.pq, t.s.pq, &other);
	MUST(rpma_rt_poller_attach(t.s.world.rt, 1));
	idle(&t);
	for (i = 0; i < 2; i++) {
		post(&t, NULL, 1);
		while (rpma_rt_poller_run(t.s.world.rt, 0, DEPTH) == 0)
			;
	}
	polls = polls_of(&t, 1);
	for (i = 0; i < waits; i++) {
		post(&t, NULL, 1);
		while (rpma_rt_poller_run(t.s.world.rt, 0, DEPTH) == 0)
			;
		CHECK(rpma_rt_queue_wait(t.s.aq, t.items, 1, -1) == 1);
	}
	CHECK(polls_of(&t, 1) - polls >= (uint64_t)waits);
	for (i = 0; i < 2; i++)
		CHECK(rpma_rt_queue_wait(t.s.aq, t.items, 1, -1) == 1);
	MUST(rpma_rt_conn_close(other.active));
	world_event(t.s.pq, RPMA_RT_EVENT_CLOSED);
	world_event(t.s.pq, RPMA_RT_EVENT_CLOSED);
	world_unref(&other);
	tear_down(&t);
}

static void take__after_a_stop_REST_THEN_CLOSED(void)
{
	struct rpma_rt_completion item;
	struct takes t;
	int taken = 0;
	int got;
	int i;

	set_up(&t, 1);
	for (i = 0; i < 3; i++)
		post(&t, NULL, (uint64_t)i);
	MUST(rpma_rt_stop(t.s.world.rt));
	while ((got = take(&t, t.s.aq)) >= 0) {
		for (i = 0; i < got; i++)
			taken += t.items[i].kind == RPMA_RT_COMPLETION;
	}
	CHECK(got == RPMA_RT_E_CLOSED && taken == 3);
	while (rpma_rt_queue_poll(t.s.pq, &item, 1) == 1)
		;
	world_unref(&t.pair);
	stage_close(&t.s);
}

int main(void)
{
	struct takes t;

	set_up(&t, 1);
	take__of_other_work_BUSY(&t);
	take__message_FOUND(&t);
	take__armed_poller_TAKES(&t);
	take__wake_STAYS(&t);
	take__of_another_thread_BUSY(&t);
	tear_down(&t);
	take__two_pollers_THE_NAMED_RUNS();
	wait__lane_never_empty_RUNS_ALL_POLLERS();
	take__after_a_stop_REST_THEN_CLOSED();
	puts("ok");
	return 0;
}
