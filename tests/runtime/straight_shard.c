/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * straight_shard.c -- completions that come to a shard in the round of its own
 * poller: each once and in order, beside messages of the program, and not
 * before the messages that were sent earlier.
 */

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <string.h>

#include "stage.h"

#define DEPTH 64

struct turns {
	struct stage s;
	struct world_pair pair;
	struct rpma_rt_shards *shards;
	struct rpma_rt_shard *own, *other;
	struct rpma_rt_queue *queue; /* of the own shard */
	pthread_t thread;	     /* of the other shard */
	uint64_t next;		     /* context of the next completion */
	int pushed;		     /* messages of the program that came */
	int closed;		     /* events of routes */
	bool waits;		     /* on_item() waits for `heard` */
	/* sent to the other shard, and come there */
	uint64_t told;
	_Atomic uint64_t heard;
};

static void on_item(struct rpma_rt_shard *shard,
		    const struct rpma_rt_completion *item, void *arg)
{
	struct turns *t = arg;

	CHECK(shard == t->own);
	if (item->kind == RPMA_RT_MESSAGE) {
		t->pushed++;
		return;
	}
	if (item->kind == RPMA_RT_EVENT) {
		CHECK(item->opcode == RPMA_RT_EVENT_ROUTE_CLOSED);
		t->closed++;
		return;
	}
	CHECK(item->status == 0 && item->context == t->next);
	t->next++;
	/* acquire: pairs with the release in on_message() */
	while (t->waits &&
	       atomic_load_explicit(&t->heard, memory_order_acquire) < t->told)
		sched_yield();
}

static void on_message(struct rpma_rt_shard *shard,
		       const struct rpma_rt_shard_message *message, void *arg)
{
	struct turns *t = arg;

	CHECK(shard == t->other && message->kind == RPMA_RT_SHARD_POST);
	/* release: pairs with the acquire in on_item() */
	atomic_fetch_add_explicit(&t->heard, 1, memory_order_release);
}

static void *other_main(void *arg)
{
	struct turns *t = arg;
	int ret;

	do
		ret = rpma_rt_shard_run(t->other, -1);
	while (ret >= 0);
	CHECK(ret == RPMA_RT_E_CLOSED);
	return NULL;
}

static void set_up(struct turns *t)
{
	const struct stage_cfg cfg = {
		.pollers = 2, .mode = RPMA_RT_MODE_MANUAL, .depth = DEPTH};
	struct rpma_rt_shards_cfg set = RPMA_RT_SHARDS_CFG_INIT;
	void *args[2] = {t, t};

	memset(t, 0, sizeof(*t));
	stage_open(&t->s, &cfg);
	stage_connect(&t->s, &t->pair);
	set.spin_us = 5;
	set.item_fn = on_item;
	set.message_fn = on_message;
	set.args = args;
	set.arg_count = 2;
	MUST(rpma_rt_shards_new(t->s.world.rt, &set, &t->shards));
	MUST(rpma_rt_shards_get(t->shards, 0, &t->own));
	MUST(rpma_rt_shards_get(t->shards, 1, &t->other));
	MUST(rpma_rt_shard_get_queue(t->own, &t->queue));
	MUST(rpma_rt_conn_set_queue(t->pair.active, t->queue));
	world_event(t->s.aq, RPMA_RT_EVENT_ROUTE_CLOSED);
	CHECK(pthread_create(&t->thread, NULL, other_main, t) == 0);
}

/* Runs a turn; returns how much the turn has done. */
static uint64_t turn(struct turns *t, int timeout_ms)
{
	int ret = rpma_rt_shard_run(t->own, timeout_ms);

	CHECK(ret >= 0);
	return (uint64_t)ret;
}

static void tear_down(struct turns *t)
{
	int ret;

	MUST(rpma_rt_conn_set_queue(t->pair.active, t->s.aq));
	while (t->closed == 0)
		turn(t, -1);
	MUST(rpma_rt_shards_stop(t->shards));
	do
		ret = rpma_rt_shard_run(t->own, -1);
	while (ret >= 0);
	CHECK(ret == RPMA_RT_E_CLOSED);
	CHECK(pthread_join(t->thread, NULL) == 0);
	MUST(rpma_rt_shards_delete(&t->shards));
	stage_disconnect(&t->s, &t->pair);
	stage_close(&t->s);
}

/* Posts writes with the contexts from `first` on. */
static void post(struct turns *t, uint64_t first, uint64_t count)
{
	struct rpma_rt_wr wr;
	uint64_t i;

	for (i = 0; i < count; i++) {
		rpma_rt_prep_write(&wr, t->s.remote, 0, t->s.mr, 64, 8,
				   RPMA_F_COMPLETION_ALWAYS, first + i);
		MUST(world_post_send(t->pair.active, &wr));
	}
}

/* Runs the shard until all completions before `end` have come. Returns how much
 * the turns have done. */
static uint64_t run_until(struct turns *t, uint64_t end, int timeout_ms)
{
	uint64_t done = 0;

	while (t->next < end)
		done += turn(t, timeout_ms);
	return done;
}

static uint64_t items_of(struct turns *t)
{
	struct rpma_rt_shard_stats stats;

	MUST(rpma_rt_shard_get_stats(t->own, &stats, sizeof(stats)));
	return stats.items;
}

/* With and without sleeps: the round after a sleep is another one. */
static void run__completions_ONCE_IN_ORDER(struct turns *t, int timeout_ms)
{
	const uint64_t items = items_of(t);
	const uint64_t first = t->next;
	uint64_t done = 0;
	uint64_t count;

	for (count = 1; count <= DEPTH; count++) {
		post(t, t->next, count);
		done += run_until(t, t->next + count, timeout_ms);
	}
	CHECK(done >= t->next - first);
	CHECK(items_of(t) - items == t->next - first);
	CHECK(turn(t, 0) == 0);
}

/* Messages of the program come through the queue, and so does everything with
 * them. */
static void run__beside_pushed_messages_ONCE_IN_ORDER(struct turns *t)
{
	const struct rpma_rt_completion pushed = {0};
	const uint64_t items = items_of(t);
	const uint64_t first = t->next;
	int i;

	t->pushed = 0;
	for (i = 0; i < DEPTH; i++) {
		post(t, t->next, 3);
		if (i % 2 == 0)
			MUST(rpma_rt_queue_push(t->queue, &pushed));
		run_until(t, t->next + 3, 0);
	}
	while (t->pushed < DEPTH / 2)
		turn(t, 0);
	CHECK(t->pushed == DEPTH / 2);
	CHECK(items_of(t) - items == t->next - first + DEPTH / 2);
}

/* A function may wait for the effect of a message that was sent before the run
 * that calls the function. */
static void run__message_sent_before_HANDED_OVER_first(struct turns *t)
{
	const struct rpma_rt_shard_message message = {0};
	int i;

	t->waits = true;
	for (i = 0; i < 200; i++) {
		post(t, t->next, 1);
		MUST(rpma_rt_shard_post(t->own, 1, &message));
		t->told++;
		run_until(t, t->next + 1, 0);
	}
	t->waits = false;
}

int main(void)
{
	struct turns t;

	set_up(&t);
	run__completions_ONCE_IN_ORDER(&t, 0);
	run__completions_ONCE_IN_ORDER(&t, -1);
	run__beside_pushed_messages_ONCE_IN_ORDER(&t);
	run__message_sent_before_HANDED_OVER_first(&t);
	tear_down(&t);
	return 0;
}
