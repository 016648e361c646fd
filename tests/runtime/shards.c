/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * shards.c -- pollers of several threads. In manual mode: the functions of a
 * poller run on the owner thread of the poller, also while another thread
 * waits, and threads that wait for each other's pollers serve each other. In
 * every mode: a poller that does not answer delays only the threads that wait
 * for the poller. Sets of shards: a thread with two shards runs both pollers; a
 * thread that is refused a shard does not disturb the owner; pollers of shards
 * that have ended are run by waits.
 *
 * usage: runtime_shards [calls]
 */

#define _GNU_SOURCE
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <string.h>
#include <unistd.h>

#include "stage.h"

#define DEPTH  32
#define ROUTES 40

/* a thread, its poller, and a connection on the poller */
struct shard {
	struct stage *stage;
	int poller;
	struct world_pair pair;
	struct rpma_rt_route *route; /* to hear() */
	pthread_t thread;
	sem_t started;
	_Atomic bool is_over;
	_Atomic uint64_t calls; /* of hear() */
};

static bool is_over(struct shard *shard)
{
	/* relaxed: a wish */
	return atomic_load_explicit(&shard->is_over, memory_order_relaxed);
}

static void end(struct shard *shard)
{
	/* relaxed: as above */
	atomic_store_explicit(&shard->is_over, true, memory_order_relaxed);
}

/* ------------------------------------------------- a thread's own loop --- */

static void turn(struct stage *s, int poller)
{
	CHECK(rpma_rt_poller_run(s->world.rt, poller, DEPTH) >= 0);
}

static struct rpma_rt_conn *turn_until(struct stage *s, int poller,
				       struct rpma_rt_queue *queue,
				       enum rpma_rt_event event)
{
	struct rpma_rt_completion item;

	do
		turn(s, poller);
	while (rpma_rt_queue_poll(queue, &item, 1) == 0);
	CHECK(item.kind == RPMA_RT_EVENT && item.opcode == event);
	return (struct rpma_rt_conn *)(uintptr_t)item.context;
}

/* Connects both ends on the poller, run by the caller. */
static void connect_on(struct stage *s, int poller, struct world_pair *pair)
{
	struct rpma_rt_listener *listener;
	uint16_t port;
	char text[8];

	MUST(world_listen_at(s->world.rt, s->world.peer, s->world.addr, "0", 4,
			     s->cfg, poller, s->pq, NULL, &listener));
	MUST(rpma_rt_listener_get_port(listener, &port));
	snprintf(text, sizeof(text), "%u", port);
	MUST(world_conn_new(s->world.rt, s->world.peer, s->world.addr, text,
			    s->cfg, poller, s->aq, NULL, &pair->active));
	turn_until(s, poller, s->aq, RPMA_RT_EVENT_READY);
	MUST(rpma_rt_conn_connect(pair->active, NULL));
	pair->passive = turn_until(s, poller, s->pq, RPMA_RT_EVENT_REQUEST);
	MUST(rpma_rt_conn_accept(pair->passive, NULL));
	turn_until(s, poller, s->aq, RPMA_RT_EVENT_ESTABLISHED);
	turn_until(s, poller, s->pq, RPMA_RT_EVENT_ESTABLISHED);
	MUST(rpma_rt_listener_delete(&listener));
	turn_until(s, poller, s->pq, RPMA_RT_EVENT_LISTENER_CLOSED);
}

/* Makes an unconnected connection, as a change of user needs. */
static struct rpma_rt_conn *conn_on(struct stage *s, int poller)
{
	struct rpma_rt_conn *conn;

	MUST(world_conn_new(s->world.rt, s->world.peer, s->world.addr, "1",
			    s->cfg, poller, s->aq, NULL, &conn));
	return conn;
}

static void write_one(struct shard *shard)
{
	struct rpma_rt_wr wr = {
		.op = RPMA_RT_OP_WRITE,
		.flags = RPMA_F_COMPLETION_ALWAYS,
		.route = shard->route,
		.local = shard->stage->mr,
		.remote = shard->stage->remote,
		.remote_offset = STAGE_SIZE / 2,
		.len = 8,
	};
	int ret = world_post_send(shard->pair.active, &wr);

	/* a single poster never finds the lock taken */
	CHECK(ret == 0 || ret == RPMA_RT_E_CLOSED);
}

/* ------------------------------------------------ functions of a shard --- */

/* Each write is followed by the next, on the shard's thread and no other. */
static void hear(const struct rpma_rt_completion *cmpl, void *arg)
{
	struct shard *shard = arg;

	if (cmpl->kind == RPMA_RT_EVENT) /* ROUTE_CLOSED, in the stop */
		return;
	CHECK(pthread_equal(pthread_self(), shard->thread));
	/* relaxed: a count */
	atomic_fetch_add_explicit(&shard->calls, 1, memory_order_relaxed);
	if (!is_over(shard))
		write_one(shard);
}

static void *run_shard(void *arg)
{
	struct shard *shard = arg;
	int i;

	shard->thread = pthread_self();
	MUST(rpma_rt_poller_attach(shard->stage->world.rt,
				   (uint32_t)shard->poller));
	MUST(rpma_rt_route_open_callback(shard->pair.active, RPMA_RT_SEND_SIDE,
					 hear, shard, &shard->route));
	for (i = 0; i < DEPTH / 2; i++)
		write_one(shard);
	sem_post(&shard->started);
	while (!is_over(shard))
		turn(shard->stage, shard->poller);
	return NULL;
}

/*
 * A thread that only waits, for its own poller: the thread runs no other
 * poller.
 */
static void functions__on_their_own_thread(uint32_t calls)
{
	struct stage_cfg cfg = {
		.pollers = 2, .mode = RPMA_RT_MODE_MANUAL, .depth = DEPTH};
	struct rpma_rt_conn *conn;
	struct shard shard;
	struct stage s;
	pthread_t thread;
	uint32_t i;

	memset(&shard, 0, sizeof(shard));
	stage_open(&s, &cfg);
	shard.stage = &s;
	shard.poller = 1;
	sem_init(&shard.started, 0, 0);
	connect_on(&s, 1, &shard.pair);
	conn = conn_on(&s, 0);
	turn_until(&s, 0, s.aq, RPMA_RT_EVENT_READY);
	CHECK(!pthread_create(&thread, NULL, run_shard, &shard));
	sem_wait(&shard.started);
	/* relaxed: a count. At least as many functions of the poller run
	 * meanwhile */
	for (i = 0;
	     i < calls ||
	     atomic_load_explicit(&shard.calls, memory_order_relaxed) < calls;
	     i++)
		MUST(rpma_rt_conn_set_user(conn, &s));
	end(&shard);
	pthread_join(thread, NULL);
	/* after the end of its thread the poller is free: any thread may run
	 * the poller, as here */
	shard.thread = pthread_self();
	MUST(rpma_rt_conn_close(shard.pair.active));
	turn_until(&s, 1, s.aq, RPMA_RT_EVENT_CLOSED);
	turn_until(&s, 1, s.pq, RPMA_RT_EVENT_CLOSED);
	MUST(rpma_rt_conn_close(conn));
	turn_until(&s, 0, s.aq, RPMA_RT_EVENT_CLOSED);
	MUST(rpma_rt_conn_unref(&conn));
	world_unref(&shard.pair);
	sem_destroy(&shard.started);
	stage_close(&s);
}

/* ------------------------------------------- waiting for each other --- */

struct opener {
	struct stage *stage;
	int poller;
	struct rpma_rt_conn *own;
	struct rpma_rt_conn *other;
	pthread_barrier_t *begin;
	_Atomic int *working;
};

static void open_one(const struct opener *opener, struct rpma_rt_conn *conn)
{
	struct rpma_rt_route *route;

	MUST(rpma_rt_route_open(conn, RPMA_RT_SEND_SIDE, opener->stage->aq,
				&route));
}

static void *open_routes(void *arg)
{
	struct opener *opener = arg;
	int i;

	MUST(rpma_rt_poller_attach(opener->stage->world.rt,
				   (uint32_t)opener->poller));
	pthread_barrier_wait(opener->begin);
	for (i = 0; i < ROUTES; i++) {
		open_one(opener, opener->other);
		open_one(opener, opener->own);
	}
	/* relaxed: a count */
	atomic_fetch_sub_explicit(opener->working, 1, memory_order_relaxed);
	/* the other thread may still wait for this poller */
	while (atomic_load_explicit(opener->working, memory_order_relaxed) > 0)
		turn(opener->stage, opener->poller);
	return NULL;
}

/* Only the waits themselves run a poller while both threads open routes: each
 * on the connection of the other, and both on the same connection at once. */
static void shards__wait_for_each_other(void)
{
	struct stage_cfg cfg = {
		.pollers = 2, .mode = RPMA_RT_MODE_MANUAL, .depth = DEPTH};
	struct opener openers[2];
	pthread_barrier_t begin;
	struct world_pair pairs[2];
	pthread_t threads[2];
	_Atomic int working = 2;
	struct stage s;
	int i;

	stage_open(&s, &cfg);
	pthread_barrier_init(&begin, NULL, 2);
	for (i = 0; i < 2; i++)
		connect_on(&s, i, &pairs[i]);
	for (i = 0; i < 2; i++) {
		openers[i] = (struct opener){
			&s,	i,	 pairs[i].active, pairs[!i].active,
			&begin, &working};
		CHECK(!pthread_create(&threads[i], NULL, open_routes,
				      &openers[i]));
	}
	for (i = 0; i < 2; i++)
		pthread_join(threads[i], NULL);
	for (i = 0; i < 2; i++) {
		MUST(rpma_rt_conn_close(pairs[i].active));
		turn_until(&s, i, s.aq, RPMA_RT_EVENT_CLOSED);
		turn_until(&s, i, s.pq, RPMA_RT_EVENT_CLOSED);
		world_unref(&pairs[i]);
	}
	pthread_barrier_destroy(&begin);
	stage_close(&s);
}

/* ------------------------------------------- a busy poller --- */

struct gate {
	struct shard shard;
	struct rpma_rt_conn *conn; /* of the busy poller */
	sem_t inside;
	sem_t open;
	sem_t calling;
	_Atomic pid_t caller;
};

/* A function that takes as long as the test wants. */
static void stay_inside(const struct rpma_rt_completion *cmpl, void *arg)
{
	struct gate *gate = arg;

	if (cmpl->kind != RPMA_RT_COMPLETION)
		return;
	sem_post(&gate->inside);
	sem_wait(&gate->open);
}

static void *wait_for_it(void *arg)
{
	struct gate *gate = arg;

	/* relaxed: ordered by the semaphore */
	atomic_store_explicit(&gate->caller, gettid(), memory_order_relaxed);
	sem_post(&gate->calling);
	MUST(rpma_rt_conn_set_user(gate->conn, gate));
	return NULL;
}

static char state_of(pid_t tid)
{
	char text[64];
	char state = '?';
	FILE *file;

	snprintf(text, sizeof(text), "/proc/self/task/%d/stat", (int)tid);
	file = fopen(text, "r");
	CHECK(file);
	CHECK(fscanf(file, "%*d %*s %c", &state) == 1);
	fclose(file);
	return state;
}

/*
 * Waits until the caller sleeps in its call: for the poller, or with a lock
 * held.
 */
static void wait_until_it_waits(struct gate *gate)
{
	sem_wait(&gate->calling);
	/* relaxed: ordered by the semaphore */
	while (state_of(atomic_load_explicit(&gate->caller,
					     memory_order_relaxed)) != 'S')
		sched_yield();
}

static void busy_poller__others_go_on(void)
{
	struct stage_cfg cfg = {.pollers = 2, .depth = DEPTH};
	struct rpma_rt_queue *queue;
	struct rpma_rt_route *route;
	struct rpma_rt_conn *conn;
	struct gate gate;
	struct stage s;
	pthread_t thread;

	memset(&gate, 0, sizeof(gate));
	stage_open(&s, &cfg);
	sem_init(&gate.inside, 0, 0);
	sem_init(&gate.open, 0, 0);
	sem_init(&gate.calling, 0, 0);
	world_connect(&s.world, s.cfg, 1, s.aq, s.pq, &gate.shard.pair);
	gate.conn = conn_on(&s, 1);
	world_event(s.aq, RPMA_RT_EVENT_READY);
	conn = conn_on(&s, 0);
	world_event(s.aq, RPMA_RT_EVENT_READY);
	gate.shard.stage = &s;
	MUST(rpma_rt_route_open_callback(gate.shard.pair.active,
					 RPMA_RT_SEND_SIDE, stay_inside, &gate,
					 &gate.shard.route));
	write_one(&gate.shard);
	sem_wait(&gate.inside);
	CHECK(!pthread_create(&thread, NULL, wait_for_it, &gate));
	wait_until_it_waits(&gate);
	/* a call that hangs here never returns */
	alarm(WORLD_PATIENCE_MS / 1000);
	MUST(rpma_rt_queue_new(s.world.rt, NULL, &queue));
	MUST(rpma_rt_conn_set_user(conn, &gate));
	MUST(rpma_rt_route_open(conn, RPMA_RT_SEND_SIDE, queue, &route));
	alarm(0);
	sem_post(&gate.open);
	pthread_join(thread, NULL);
	MUST(rpma_rt_conn_close(conn));
	world_event(s.aq, RPMA_RT_EVENT_CLOSED);
	MUST(rpma_rt_conn_close(gate.conn));
	world_event(s.aq, RPMA_RT_EVENT_CLOSED);
	world_event(queue, RPMA_RT_EVENT_ROUTE_CLOSED);
	MUST(rpma_rt_queue_delete(&queue));
	MUST(rpma_rt_conn_unref(&conn));
	MUST(rpma_rt_conn_unref(&gate.conn));
	stage_disconnect(&s, &gate.shard.pair);
	stage_close(&s);
	sem_destroy(&gate.inside);
	sem_destroy(&gate.open);
	sem_destroy(&gate.calling);
}

/* -------------------------------------------------- sets of shards --- */

static void no_item(struct rpma_rt_shard *shard,
		    const struct rpma_rt_completion *item, void *arg)
{
	(void)shard;
	(void)item;
	(void)arg;
	abort();
}

static void no_message(struct rpma_rt_shard *shard,
		       const struct rpma_rt_shard_message *message, void *arg)
{
	(void)shard;
	(void)message;
	(void)arg;
	abort();
}

/* Makes a set with a shard for each poller of the stage. */
static struct rpma_rt_shards *set_open(struct stage *s,
				       const struct stage_cfg *stage_cfg)
{
	struct rpma_rt_shards_cfg cfg = RPMA_RT_SHARDS_CFG_INIT;
	struct rpma_rt_shards *shards;

	stage_open(s, stage_cfg);
	cfg.item_fn = no_item;
	cfg.message_fn = no_message;
	MUST(rpma_rt_shards_new(s->world.rt, &cfg, &shards));
	return shards;
}

static struct rpma_rt_shards *set_open_one(struct stage *s,
					   struct rpma_rt_shard **shard)
{
	static const struct stage_cfg stage_cfg = {
		.pollers = 1, .mode = RPMA_RT_MODE_MANUAL, .depth = DEPTH};
	struct rpma_rt_shards *shards = set_open(s, &stage_cfg);

	MUST(rpma_rt_shards_get(shards, 0, shard));
	return shards;
}

static void set_end(struct rpma_rt_shards *shards, struct rpma_rt_shard *shard)
{
	int ret;

	MUST(rpma_rt_shards_stop(shards));
	do
		ret = rpma_rt_shard_run(shard, 0);
	while (ret >= 0);
	CHECK(ret == RPMA_RT_E_CLOSED);
}

/* a thread whose call for another thread's shard is being refused */
static struct {
	sem_t refused;
	sem_t go_on;
} stranger;

static void log_refusal(enum rpma_log_level level, const char *file,
			const int line, const char *function,
			const char *format, ...)
{
	(void)level;
	(void)file;
	(void)line;
	(void)function;
	(void)format;
	sem_post(&stranger.refused);
	sem_wait(&stranger.go_on);
}

static void *run_of_stranger(void *arg)
{
	CHECK(rpma_rt_shard_run(arg, 0) == RPMA_RT_E_BUSY);
	return NULL;
}

static void refused_stranger__owner_GOES_ON(void)
{
	struct rpma_rt_shards *shards;
	struct rpma_rt_shard *shard;
	struct stage s;
	pthread_t thread;

	shards = set_open_one(&s, &shard);
	sem_init(&stranger.refused, 0, 0);
	sem_init(&stranger.go_on, 0, 0);
	MUST_ANSWER(0, rpma_rt_shard_run(shard, 0));
	MUST(rpma_log_set_function(log_refusal));
	CHECK(!pthread_create(&thread, NULL, run_of_stranger, shard));
	sem_wait(&stranger.refused);
	MUST_ANSWER(0, rpma_rt_shard_run(shard, 0));
	sem_post(&stranger.go_on);
	pthread_join(thread, NULL);
	MUST(rpma_log_set_function(RPMA_LOG_USE_DEFAULT_FUNCTION));
	set_end(shards, shard);
	MUST(rpma_rt_shards_delete(&shards));
	stage_close(&s);
	sem_destroy(&stranger.refused);
	sem_destroy(&stranger.go_on);
}

/* The set lives on, and its shard does not run its poller any more. */
static void ended_shards__waits_RUN_THE_POLLER(void)
{
	struct rpma_rt_shards *shards;
	struct rpma_rt_shard *shard;
	struct world_pair pair;
	struct stage s;

	shards = set_open_one(&s, &shard);
	set_end(shards, shard);
	world_connect(&s.world, s.cfg, 0, s.aq, s.pq, &pair);
	stage_disconnect(&s, &pair);
	MUST(rpma_rt_shards_delete(&shards));
	stage_close(&s);
}

/* a call that needs a poller of the thread inside rpma_rt_shard_run() */
static struct {
	struct rpma_rt_conn *conn;
	struct rpma_rt_queue *queue; /* of the shard that is run */
	_Atomic bool has_returned;
} call;

static void *make_the_call(void *arg)
{
	MUST(rpma_rt_conn_set_user(call.conn, arg));
	/* relaxed: a wish; the wake orders */
	atomic_store_explicit(&call.has_returned, true, memory_order_relaxed);
	MUST(rpma_rt_queue_wake(call.queue));
	return NULL;
}

/* A thread has two shards, and waits in one of them. */
static void two_shards__a_wait_RUNS_BOTH_POLLERS(void)
{
	static const struct stage_cfg stage_cfg = {
		.pollers = 2, .mode = RPMA_RT_MODE_MANUAL, .depth = DEPTH};
	struct rpma_rt_shard *shard[2];
	struct rpma_rt_shards *shards;
	int ret[2] = {0, 0};
	struct stage s;
	pthread_t thread;
	uint32_t i;

	shards = set_open(&s, &stage_cfg);
	for (i = 0; i < 2; i++) {
		MUST(rpma_rt_shards_get(shards, i, &shard[i]));
		MUST_ANSWER(0, rpma_rt_shard_run(shard[i], 0));
	}
	call.conn = conn_on(&s, 1);
	world_event(s.aq, RPMA_RT_EVENT_READY);
	MUST(rpma_rt_shard_get_queue(shard[0], &call.queue));
	CHECK(!pthread_create(&thread, NULL, make_the_call, &call));
	/* relaxed: as above */
	while (!atomic_load_explicit(&call.has_returned, memory_order_relaxed))
		CHECK(rpma_rt_shard_run(shard[0], -1) >= 0);
	pthread_join(thread, NULL);
	MUST(rpma_rt_conn_close(call.conn));
	world_event(s.aq, RPMA_RT_EVENT_CLOSED);
	MUST(rpma_rt_conn_unref(&call.conn));
	MUST(rpma_rt_shards_stop(shards));
	while (ret[0] >= 0 || ret[1] >= 0) {
		for (i = 0; i < 2; i++)
			ret[i] = rpma_rt_shard_run(shard[i], 0);
	}
	MUST(rpma_rt_shards_delete(&shards));
	stage_close(&s);
}

int main(int argc, char **argv)
{
	uint32_t calls = argc > 1 ? (uint32_t)atoi(argv[1]) : 2000;

	functions__on_their_own_thread(calls);
	shards__wait_for_each_other();
	busy_poller__others_go_on();
	two_shards__a_wait_RUNS_BOTH_POLLERS();
	refused_stranger__owner_GOES_ON();
	ended_shards__waits_RUN_THE_POLLER();
	printf("ok\n");
	return 0;
}
