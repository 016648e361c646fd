/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * shard_set.c -- shards of several threads on a device: messages between shards
 * come once and in order, with full lanes and sleeping shards all the time;
 * answers always come; connections are distributed to the shards in turn and
 * are served there; a stop of the set, or of the runtime, ends all shards.
 *
 * usage: runtime_shard_set [messages]
 */

#define _GNU_SOURCE
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <string.h>

#include "world.h"

#define SHARDS 3
#define LANE   8
#define CONNS  6

/* private to a shard and its thread; read when the thread has ended */
struct core {
	struct world_core of;
	uint64_t limit; /* posts and requests to each other shard */
	uint64_t sent[SHARDS];
	uint64_t came[SHARDS];	/* posts and requests */
	uint64_t asked[SHARDS]; /* requests sent */
	uint64_t answered[SHARDS];
	uint64_t done;		   /* finished lanes, both ways */
	struct rpma_rt_timer beat; /* of a shard that sleeps in between */
	uint64_t beats;
	uint32_t requests; /* of connections */
	uint32_t established;
	uint32_t closed;
};

struct set {
	struct world world;
	struct rpma_rt_shards *shards;
	struct core cores[SHARDS];
	_Atomic uint32_t through; /* shards with all messages */
};

static struct set set;

#define CORES &set.cores[0].of, SHARDS, sizeof(set.cores[0])

/* --------------------------------------------------------- traffic --- */

static bool is_through(const struct core *core)
{
	uint32_t i;

	for (i = 0; i < SHARDS; i++) {
		if (core->sent[i] < core->limit ||
		    core->came[i] < core->limit ||
		    core->answered[i] < core->asked[i])
			return false;
	}
	return true;
}

static uint64_t sleeps_of(const struct core *core)
{
	struct rpma_rt_shard_stats stats;

	MUST(rpma_rt_shard_get_stats(core->of.shard, &stats, sizeof(stats)));
	return stats.sleeps;
}

/* A shard that has not slept yet has more beats. */
static void look(struct core *core)
{
	if (core->done || !is_through(core) || sleeps_of(core) == 0)
		return;
	core->done = 1;
	/* release: everything counted; the last shard stops the set */
	if (atomic_fetch_add_explicit(&set.through, 1, memory_order_release) +
		    1 ==
	    SHARDS)
		MUST(rpma_rt_shards_stop(set.shards));
}

/* Sends the next message to the shard: every third message is a request. */
static int send_one(struct core *core, uint32_t to)
{
	struct rpma_rt_shard_message message = {
		.context = core->sent[to],
		.words = {core->of.index, to},
	};
	int ret;

	if (core->sent[to] % 3 == 0) {
		ret = rpma_rt_shard_request(core->of.shard, to, &message);
		if (ret == 0)
			core->asked[to]++;
	} else {
		ret = rpma_rt_shard_post(core->of.shard, to, &message);
	}
	if (ret == 0)
		core->sent[to]++;
	return ret;
}

static void send_to(struct core *core, uint32_t to)
{
	int ret = 0;

	while (ret == 0 && core->sent[to] < core->limit)
		ret = send_one(core, to);
	CHECK(ret == 0 || ret == RPMA_E_AGAIN);
}

static void on_message(struct rpma_rt_shard *shard,
		       const struct rpma_rt_shard_message *message, void *arg)
{
	struct core *core = arg;
	uint32_t from = message->from;

	CHECK(shard == core->of.shard);
	CHECK(pthread_equal(pthread_self(), core->of.thread));
	switch (message->kind) {
	case RPMA_RT_SHARD_POST:
	case RPMA_RT_SHARD_REQUEST:
		CHECK(message->context == core->came[from]);
		CHECK(message->words[0] == from);
		CHECK(message->words[1] == core->of.index);
		core->came[from]++;
		if (message->kind == RPMA_RT_SHARD_REQUEST)
			MUST(rpma_rt_shard_answer(shard, message, message));
		break;
	case RPMA_RT_SHARD_ANSWER:
		CHECK(message->context == core->answered[from] * 3);
		core->answered[from]++;
		break;
	case RPMA_RT_SHARD_WRITABLE:
		send_to(core, from);
		break;
	}
	look(core);
}

/* A shard that sends nothing for a while sleeps. */
static void on_beat(struct rpma_rt_shard *shard, struct rpma_rt_timer *timer)
{
	struct core *core = timer->arg;
	uint32_t i;

	for (i = 0; i < SHARDS; i++)
		send_to(core, i);
	core->beats++;
	look(core);
	if (!core->done)
		MUST(rpma_rt_timer_start(shard, timer, 300));
}

/* ----------------------------------------------------- connections --- */

static void on_event(struct core *core, struct rpma_rt_conn *conn,
		     enum rpma_rt_event event)
{
	int poller;

	if (event == RPMA_RT_EVENT_LISTENER_CLOSED)
		return;
	MUST(rpma_rt_conn_get_poller(conn, &poller));
	CHECK((uint32_t)poller == core->of.index);
	switch (event) {
	case RPMA_RT_EVENT_REQUEST:
		core->requests++;
		MUST(rpma_rt_conn_accept(conn, NULL));
		break;
	case RPMA_RT_EVENT_READY:
		MUST(rpma_rt_conn_connect(conn, NULL));
		break;
	case RPMA_RT_EVENT_ESTABLISHED:
		core->established++;
		/* relaxed: a count */
		atomic_fetch_add_explicit(&set.through, 1,
					  memory_order_relaxed);
		break;
	default:
		CHECK(event == RPMA_RT_EVENT_CLOSED);
		core->closed++;
		MUST(rpma_rt_conn_unref(&conn));
	}
}

static void on_item(struct rpma_rt_shard *shard,
		    const struct rpma_rt_completion *item, void *arg)
{
	struct core *core = arg;

	CHECK(shard == core->of.shard);
	CHECK(pthread_equal(pthread_self(), core->of.thread));
	if (item->kind == RPMA_RT_EVENT)
		on_event(core, (struct rpma_rt_conn *)(uintptr_t)item->context,
			 (enum rpma_rt_event)item->opcode);
}

/* ----------------------------------------------------- the threads --- */

static void *core_main(void *arg)
{
	struct core *core = arg;
	int ret;

	do
		ret = rpma_rt_shard_run(core->of.shard, -1);
	while (ret >= 0);
	CHECK(ret == RPMA_RT_E_CLOSED);
	return NULL;
}

static void open_set(uint64_t limit)
{
	struct rpma_rt_shards_cfg cfg = RPMA_RT_SHARDS_CFG_INIT;
	uint32_t i;

	memset(&set, 0, sizeof(set));
	world_open(&set.world);
	world_start(&set.world, SHARDS, RPMA_RT_MODE_MANUAL);
	cfg.lane_size = LANE;
	cfg.spin_us = 5;
	cfg.item_fn = on_item;
	cfg.message_fn = on_message;
	set.shards = world_shards(&set.world, &cfg, CORES);
	for (i = 0; i < SHARDS; i++)
		set.cores[i].limit = limit;
}

static void start_threads(void)
{
	world_cores_start(CORES, core_main);
}

static void join_threads(void)
{
	world_cores_join(CORES);
}

static void close_set(void)
{
	MUST(rpma_rt_shards_delete(&set.shards));
	world_close(&set.world);
}

/* ------------------------------------------------------- the tests --- */

static void messages__come_ONCE_IN_ORDER(uint64_t limit)
{
	struct rpma_rt_shard_stats stats;
	uint64_t refused = 0;
	uint32_t i;

	open_set(limit);
	for (i = 0; i < SHARDS; i++) {
		set.cores[i].beat.fn = on_beat;
		set.cores[i].beat.arg = &set.cores[i];
		MUST(rpma_rt_timer_start(set.cores[i].of.shard,
					 &set.cores[i].beat, 0));
	}
	start_threads();
	join_threads();
	for (i = 0; i < SHARDS; i++) {
		CHECK(is_through(&set.cores[i]));
		MUST(rpma_rt_shard_get_stats(set.cores[i].of.shard, &stats,
					     sizeof(stats)));
		CHECK(stats.unanswered == 0 && stats.owed == 0);
		refused += stats.refused;
	}
	CHECK(refused > 0);
	close_set();
}

static void connect_all(uint16_t port)
{
	struct rpma_rt_conn_cfg cfg = RPMA_RT_CONN_CFG_INIT;
	struct rpma_rt_conn *conn;
	char text[8];
	uint32_t i;

	snprintf(text, sizeof(text), "%u", port);
	cfg.peer = set.world.peer;
	for (i = 0; i < CONNS; i++) {
		cfg.poller = (int32_t)(i % SHARDS);
		MUST(rpma_rt_shard_get_queue(set.cores[i % SHARDS].of.shard,
					     &cfg.queue));
		MUST(rpma_rt_conn_new(set.world.rt, set.world.addr, text, &cfg,
				      &conn));
	}
}

static void connections__are_DEALT(void)
{
	struct rpma_rt_conn_cfg cfg = RPMA_RT_CONN_CFG_INIT;
	struct rpma_rt_listener *listener;
	uint16_t port;
	uint32_t i;

	open_set(0);
	start_threads();
	cfg.peer = set.world.peer;
	MUST(rpma_rt_shards_deal(set.shards, &cfg));
	MUST(rpma_rt_listen(set.world.rt, set.world.addr, "0", &cfg,
			    &listener));
	MUST(rpma_rt_listener_get_port(listener, &port));
	connect_all(port);
	/* relaxed: a count; both ends */
	while (atomic_load_explicit(&set.through, memory_order_relaxed) <
	       2 * CONNS)
		sched_yield();
	MUST(rpma_rt_listener_delete(&listener));
	/* a stop of the runtime stops the shards */
	MUST(rpma_rt_stop(set.world.rt));
	join_threads();
	for (i = 0; i < SHARDS; i++) {
		CHECK(set.cores[i].requests == CONNS / SHARDS);
		CHECK(set.cores[i].established == 2 * CONNS / SHARDS);
		CHECK(set.cores[i].closed == 2 * CONNS / SHARDS);
	}
	close_set();
}

int main(int argc, char **argv)
{
	uint64_t limit = argc > 1 ? strtoull(argv[1], NULL, 10) : 10000;

	messages__come_ONCE_IN_ORDER(limit);
	connections__are_DEALT();
	return 0;
}
