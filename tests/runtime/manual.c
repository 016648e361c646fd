/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * manual.c -- manual mode: a single thread is application, consumer and poller.
 * The thread connects, echoes, sleeps on the fd of the poller, also together
 * with the fd of the queue, changes queues, closes and stops.
 */

#include <poll.h>
#include <pthread.h>
#include <string.h>

#include "world.h"

#define DEPTH  16
#define ROUNDS 200
#define SIZE   24

struct shard {
	struct world world;
	struct rpma_rt_queue *queue;
	struct rpma_mr_local *mr;
	struct rpma_mr_remote *remote; /* the same */
	char *memory;
	int fd;
	uint64_t slept;
};

/* The next item: run rounds; nothing to do: arm and sleep on the fd. */
static struct rpma_rt_completion next(struct shard *s,
				      struct rpma_rt_queue *queue, int budget)
{
	struct pollfd fd = {.fd = s->fd, .events = POLLIN};
	struct rpma_rt_completion item;
	int done;
	int got;
	int ret;

	for (;;) {
		done = rpma_rt_poller_run(s->world.rt, 0, budget);
		CHECK(done >= 0);
		got = rpma_rt_queue_poll(queue, &item, 1);
		if (got == 1)
			return item;
		CHECK(got == 0);
		if (done > 0)
			continue;
		ret = rpma_rt_poller_arm(s->world.rt, 0);
		if (ret == 1)
			continue;
		MUST(ret);
		/* an item delivered by the look before sleeping */
		if (rpma_rt_queue_poll(queue, &item, 1) > 0)
			return item;
		s->slept++;
		CHECK(poll(&fd, 1, WORLD_PATIENCE_MS) == 1);
	}
}

static struct rpma_rt_conn *next_event(struct shard *s,
				       struct rpma_rt_queue *queue,
				       enum rpma_rt_event event)
{
	struct rpma_rt_completion item = next(s, queue, 64);

	CHECK(item.kind == RPMA_RT_EVENT && item.opcode == event);
	return (struct rpma_rt_conn *)(uintptr_t)item.context;
}

static void set_up(struct shard *s)
{
	memset(s, 0, sizeof(*s));
	world_open(&s->world);
	world_start(&s->world, 1, RPMA_RT_MODE_MANUAL);
	MUST(rpma_rt_queue_new(s->world.rt, NULL, &s->queue));
	MUST(rpma_rt_poller_get_fd(s->world.rt, 0, &s->fd));
	s->memory = aligned_alloc(4096, 4096);
	CHECK(s->memory);
	MUST(rpma_mr_reg(s->world.peer, s->memory, 4096,
			 RPMA_MR_USAGE_SEND | RPMA_MR_USAGE_RECV |
				 RPMA_MR_USAGE_WRITE_SRC |
				 RPMA_MR_USAGE_WRITE_DST,
			 &s->mr));
	s->remote = world_remote_of(s->mr);
}

static void connect_pair(struct shard *s, struct rpma_rt_queue *other,
			 struct world_pair *pair)
{
	struct rpma_rt_listener *listener;
	struct rpma_rt_conn *conn;
	int i;

	listener = world_listen(&s->world, NULL, s->queue);
	MUST(world_conn_new(s->world.rt, s->world.peer, s->world.addr,
			    s->world.port, NULL, 0, s->queue, NULL,
			    &pair->active));
	CHECK(next_event(s, s->queue, RPMA_RT_EVENT_READY) == pair->active);
	MUST(rpma_rt_conn_connect(pair->active, NULL));
	pair->passive = next_event(s, s->queue, RPMA_RT_EVENT_REQUEST);
	/* from here on items go elsewhere: requested from the poller, which
	 * this thread runs */
	MUST(rpma_rt_conn_set_queue(pair->passive, other));
	MUST(rpma_rt_conn_set_user(pair->passive, s));
	MUST(rpma_rt_conn_accept(pair->passive, NULL));
	conn = next_event(s, s->queue, RPMA_RT_EVENT_ESTABLISHED);
	CHECK(conn == pair->active);
	conn = next_event(s, other, RPMA_RT_EVENT_ESTABLISHED);
	CHECK(conn == pair->passive);
	for (i = 0; i < 8; i++)
		MUST(rpma_rt_recv(pair->passive, s->mr, 0, SIZE, 100));
	MUST(rpma_rt_listener_delete(&listener));
	next_event(s, s->queue, RPMA_RT_EVENT_LISTENER_CLOSED);
}

static void ping(struct shard *s, struct world_pair *pair,
		 struct rpma_rt_queue *other, int budget)
{
	struct rpma_rt_completion item;
	int i;

	for (i = 0; i < ROUNDS; i++) {
		MUST(rpma_rt_send(pair->active, s->mr, 64, SIZE,
				  RPMA_F_COMPLETION_ALWAYS, (uint64_t)i));
		item = next(s, s->queue, budget);
		CHECK(item.context == (uint64_t)i && item.status == 0);
		item = next(s, other, budget);
		CHECK(item.context == 100 && item.user == s &&
		      item.byte_len == SIZE);
		MUST(rpma_rt_recv(pair->passive, s->mr, 0, SIZE, 100));
	}
}

/* --------------------------------------------- both fds in one loop --- */

static bool is_readable(int fd)
{
	struct pollfd pollfd = {.fd = fd, .events = POLLIN};

	return poll(&pollfd, 1, 0) == 1;
}

static struct rpma_rt_poller_stats stats_of(struct shard *s)
{
	struct rpma_rt_poller_stats stats;

	MUST(rpma_rt_poller_get_stats(s->world.rt, 0, &stats, sizeof(stats)));
	return stats;
}

static uint64_t delivered(struct shard *s)
{
	return stats_of(s).delivered;
}

static void write_one(struct shard *s, struct world_pair *pair)
{
	MUST(rpma_rt_write(pair->active, s->remote, 0, s->mr, 64, SIZE,
			   RPMA_F_COMPLETION_ALWAYS, 7));
}

/*
 * Runs rounds until the posted item is delivered; the queue was armed before.
 */
static void deliver_one(struct shard *s, struct world_pair *pair)
{
	uint64_t before = delivered(s);

	write_one(s, pair);
	do
		CHECK(rpma_rt_poller_run(s->world.rt, 0, 1) >= 0);
	while (delivered(s) == before);
}

/* Arms until both have no work. */
static void arm_both(struct shard *s)
{
	struct rpma_rt_completion item;

	while (rpma_rt_queue_arm(s->queue) != 0 ||
	       rpma_rt_poller_arm(s->world.rt, 0) != 0)
		CHECK(rpma_rt_queue_poll(s->queue, &item, 1) == 0);
}

static void take_one(struct shard *s)
{
	struct rpma_rt_completion item;

	MUST_ANSWER(1, rpma_rt_queue_poll(s->queue, &item, 1));
	CHECK(item.context == 7 && item.status == 0);
}

/* Items of a round of this thread may make the fd of the queue readable or not:
 * either the fd is readable, or the poller is not armed before the items were
 * taken. */
static void arm__delivered_by_own_round_NOT_SLEPT_ON(struct shard *s,
						     struct world_pair *pair)
{
	int fd;
	int i;

	MUST(rpma_rt_queue_get_fd(s->queue, &fd));
	for (i = 0; i < ROUNDS; i++) {
		arm_both(s);
		CHECK(!is_readable(fd));
		deliver_one(s, pair);
		deliver_one(s, pair);
		CHECK(is_readable(fd) ||
		      rpma_rt_poller_arm(s->world.rt, 0) == 1);
		take_one(s);
		CHECK(is_readable(fd) ||
		      rpma_rt_poller_arm(s->world.rt, 0) == 1);
		take_one(s);
	}
	arm_both(s);
	/* items of others are told */
	MUST(rpma_rt_queue_push(s->queue,
				&(struct rpma_rt_completion){.context = 7}));
	CHECK(is_readable(fd));
	take_one(s);
}

/* A waiting call may stand between the arm and the sleep: items delivered by
 * its rounds are told. */
static void queue_wait__delivered_by_its_round_READABLE(
	struct shard *s, struct world_pair *pair, struct rpma_rt_queue *other)
{
	struct rpma_rt_completion item;
	uint64_t before;
	int fd;

	MUST(rpma_rt_queue_get_fd(s->queue, &fd));
	arm_both(s);
	before = delivered(s);
	write_one(s, pair);
	do
		CHECK(rpma_rt_queue_wait(other, &item, 1, 0) == 0);
	while (delivered(s) == before);
	CHECK(is_readable(fd));
	take_one(s);
	/* and the loop goes on as before */
	arm__delivered_by_own_round_NOT_SLEPT_ON(s, pair);
}

/* A poller without an owner is no longer armed by its former thread. */
static void release__delivered_by_own_round_READABLE(struct shard *s,
						     struct world_pair *pair)
{
	int fd;

	MUST(rpma_rt_queue_get_fd(s->queue, &fd));
	MUST(rpma_rt_poller_attach(s->world.rt, 0));
	arm_both(s);
	deliver_one(s, pair);
	MUST(rpma_rt_poller_release(s->world.rt, 0));
	CHECK(is_readable(fd));
	take_one(s);
}

static void *run_it(void *arg)
{
	struct shard *s = arg;

	CHECK(rpma_rt_poller_run(s->world.rt, 0, 1) >= 0);
	return NULL;
}

static void *attach_it(void *arg)
{
	struct shard *s = arg;

	MUST(rpma_rt_poller_attach(s->world.rt, 0));
	return NULL;
}

/* A poller served by another thread in between is not armed either. */
static void poller_run__on_another_thread_READABLE(struct shard *s,
						   struct world_pair *pair)
{
	pthread_t thread;
	int fd;

	MUST(rpma_rt_queue_get_fd(s->queue, &fd));
	arm_both(s);
	deliver_one(s, pair);
	CHECK(!pthread_create(&thread, NULL, run_it, s));
	CHECK(!pthread_join(thread, NULL));
	CHECK(is_readable(fd));
	take_one(s);
}

/* A wait that runs rounds, and an arm of both. */
static void wake__ends_the_wait_and_the_sleep(struct shard *s)
{
	struct rpma_rt_completion item;
	int fd;

	MUST(rpma_rt_queue_wake(s->queue));
	MUST_ANSWER(0, rpma_rt_queue_wait(s->queue, &item, 1, -1));
	MUST(rpma_rt_queue_get_fd(s->queue, &fd));
	arm_both(s);
	MUST(rpma_rt_queue_wake(s->queue));
	CHECK(is_readable(fd));
	MUST_ANSWER(1, rpma_rt_queue_arm(s->queue));
	MUST_ANSWER(0, rpma_rt_queue_arm(s->queue));
}

/* A wait that would run rounds for a second, before it slept: millions. */
static void wake__ends_the_wait_that_SPINS(struct shard *s)
{
	struct rpma_rt_queue_cfg cfg = RPMA_RT_QUEUE_CFG_INIT;
	struct rpma_rt_completion item;
	struct rpma_rt_queue *queue;
	uint64_t before;

	cfg.spin_us = 1000000;
	MUST(rpma_rt_queue_new(s->world.rt, &cfg, &queue));
	MUST(rpma_rt_poller_attach(s->world.rt, 0));
	MUST(rpma_rt_queue_wake(queue));
	before = stats_of(s).polls;
	MUST_ANSWER(0, rpma_rt_queue_wait(queue, &item, 1, -1));
	CHECK(stats_of(s).polls - before < 10);
	MUST(rpma_rt_poller_release(s->world.rt, 0));
	MUST(rpma_rt_queue_delete(&queue));
}

/* A thread sleeps on the descriptor of a poller without an owner. A delivering
 * round of another thread, and an owner, make the descriptor readable; the
 * poller stays armed where the round found nothing. */
static void poller_fd__rung_by_another_thread(struct shard *s,
					      struct world_pair *pair)
{
	pthread_t thread;
	int i;

	for (i = 0; i < 2; i++) {
		arm_both(s);
		CHECK(!pthread_create(&thread, NULL, run_it, s));
		CHECK(!pthread_join(thread, NULL));
		write_one(s, pair);
		if (i == 1) { /* and no thread runs the poller */
			CHECK(!pthread_create(&thread, NULL, run_it, s));
			CHECK(!pthread_join(thread, NULL));
		}
		while (!is_readable(s->fd))
			;
		CHECK(next(s, s->queue, 1).context == 7);
	}
	arm_both(s);
	CHECK(!pthread_create(&thread, NULL, attach_it, s));
	CHECK(!pthread_join(thread, NULL));
	CHECK(is_readable(s->fd));
}

static void expect_refusals(struct shard *s)
{

	CHECK(rpma_rt_poller_run(s->world.rt, 0, 0) == RPMA_E_INVAL);
	CHECK(rpma_rt_poller_run(s->world.rt, 1, 1) == RPMA_E_INVAL);
	CHECK(rpma_rt_poller_arm(s->world.rt, UINT32_MAX) == RPMA_E_INVAL);
}

static void drain(struct rpma_rt_queue *queue, uint32_t *closed)
{
	struct rpma_rt_completion item;

	while (rpma_rt_queue_poll(queue, &item, 1) > 0)
		*closed += item.kind == RPMA_RT_EVENT &&
			   item.opcode == RPMA_RT_EVENT_CLOSED;
}

int main(void)
{
	struct rpma_rt_queue *other;
	struct world_pair pairs[2];
	uint32_t closed = 0;
	struct shard s;
	int i;

	set_up(&s);
	expect_refusals(&s);
	MUST(rpma_rt_queue_new(s.world.rt, NULL, &other));
	connect_pair(&s, other, &pairs[0]);
	connect_pair(&s, other, &pairs[1]);
	ping(&s, &pairs[0], other, 1);
	ping(&s, &pairs[1], other, 64);
	arm__delivered_by_own_round_NOT_SLEPT_ON(&s, &pairs[0]);
	queue_wait__delivered_by_its_round_READABLE(&s, &pairs[0], other);
	release__delivered_by_own_round_READABLE(&s, &pairs[0]);
	poller_run__on_another_thread_READABLE(&s, &pairs[0]);
	poller_fd__rung_by_another_thread(&s, &pairs[0]);
	wake__ends_the_wait_that_SPINS(&s);
	wake__ends_the_wait_and_the_sleep(&s);
	MUST(rpma_rt_conn_close(pairs[0].active));
	CHECK(next_event(&s, s.queue, RPMA_RT_EVENT_CLOSED) == pairs[0].active);
	/* the rest dies with the runtime, run by the stop itself */
	MUST(rpma_rt_stop(s.world.rt));
	CHECK(rpma_rt_poller_run(s.world.rt, 0, 1) == RPMA_RT_E_CLOSED);
	drain(s.queue, &closed);
	drain(other, &closed);
	CHECK(closed == 3);
	for (i = 0; i < 2; i++) {
		world_unref(&pairs[i]);
	}
	MUST(rpma_rt_queue_delete(&s.queue));
	MUST(rpma_rt_queue_delete(&other));
	MUST(rpma_mr_remote_delete(&s.remote));
	MUST(rpma_mr_dereg(&s.mr));
	free(s.memory);
	world_close(&s.world);
	printf("ok, slept %lu times\n", (unsigned long)s.slept);
	return 0;
}
