/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * shard_race.c -- shards woken only by one another: no timer, no connection, no
 * time to spin. A message wakes a sleeping shard; a refused sender is called
 * when there is room; an answer behind a full lane has room; and a stop at any
 * time loses no accepted message.
 *
 * A wake-up that is lost, or never sent, is a hang.
 *
 * usage: runtime_shard_race [messages [seed]]
 */

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <string.h>
#include <time.h>

#include "world.h"

#define SHARDS 3
#define LANE   8
#define STOPS  20 /* in the middle of traffic */
#define WAKES  300

/* private to a shard and its thread; read when the thread has ended */
struct core {
	struct world_core of;
	uint32_t seed;
	uint64_t sent[SHARDS]; /* posts and requests, by the other shard */
	uint64_t came[SHARDS];
	uint64_t asked[SHARDS]; /* requests sent */
	uint64_t answered[SHARDS];
	uint64_t replied[SHARDS]; /* answers sent */
	struct rpma_rt_shard_message kept[2 * LANE];
	uint32_t kept_count;
};

static struct {
	struct world world;
	struct rpma_rt_shards *shards;
	struct core cores[SHARDS];
	rpma_rt_shard_message_fn *on_message;
	uint64_t limit;
	bool is_one_way;	/* posts of shard 0 to shard 1 only */
	uint64_t slept[SHARDS]; /* of the shard with the token */
	uint32_t seed;
	_Atomic uint32_t through; /* shards with all messages */
	_Atomic uint64_t traffic; /* messages, roughly */
} set;

#define CORES &set.cores[0].of, SHARDS, sizeof(set.cores[0])

/* The others get further, or not. */
static void dawdle(struct core *core)
{
	uint32_t turns = world_roll(&core->seed, 64);

	if (turns == 0)
		sched_yield();
	while (turns-- > 0)
		atomic_signal_fence(memory_order_seq_cst); /* a loop stays */
}

/* ----------------------------------------------------------- the set --- */

static void on_message(struct rpma_rt_shard *shard,
		       const struct rpma_rt_shard_message *message, void *arg)
{
	const struct core *core = arg;

	CHECK(shard == core->of.shard);
	set.on_message(shard, message, arg);
}

static void on_item(struct rpma_rt_shard *shard,
		    const struct rpma_rt_completion *item, void *arg)
{
	(void)shard;
	(void)item;
	(void)arg;
	CHECK(false);
}

static void *core_main(void *arg)
{
	struct core *core = arg;
	int ret;

	do {
		dawdle(core);
		ret = rpma_rt_shard_run(core->of.shard, -1);
	} while (ret >= 0);
	CHECK(ret == RPMA_RT_E_CLOSED);
	return NULL;
}

static void open_set(rpma_rt_shard_message_fn *fn)
{
	struct rpma_rt_shards_cfg cfg = RPMA_RT_SHARDS_CFG_INIT;
	uint32_t i;

	world_start(&set.world, SHARDS, RPMA_RT_MODE_MANUAL);
	memset(set.cores, 0, sizeof(set.cores));
	set.on_message = fn;
	/* relaxed, both: no thread runs */
	atomic_store_explicit(&set.through, 0, memory_order_relaxed);
	atomic_store_explicit(&set.traffic, 0, memory_order_relaxed);
	cfg.lane_size = LANE;
	cfg.spin_us = 0;
	cfg.item_fn = on_item;
	cfg.message_fn = on_message;
	set.shards = world_shards(&set.world, &cfg, CORES);
	for (i = 0; i < SHARDS; i++)
		set.cores[i].seed = world_roll(&set.seed, 1 << 20);
}

static void start(void)
{
	world_cores_start(CORES, core_main);
}

static void join(void)
{
	world_cores_join(CORES);
}

static void close_set(void)
{
	MUST(rpma_rt_shards_delete(&set.shards));
	MUST(rpma_rt_delete(&set.world.rt));
}

static void finish(void)
{
	join();
	close_set();
}

/* Counts the calling shard as finished; the last shard stops the set. */
static void is_through(uint32_t shards)
{
	/* relaxed: a count */
	if (atomic_fetch_add_explicit(&set.through, 1, memory_order_relaxed) +
		    1 ==
	    shards)
		MUST(rpma_rt_shards_stop(set.shards));
}

static void send_one(struct core *core, uint32_t to, bool is_request, int *ret)
{
	struct rpma_rt_shard_message message = {
		.context = core->sent[to],
		.words = {core->of.index, ~core->sent[to]},
	};

	*ret = is_request ? rpma_rt_shard_request(core->of.shard, to, &message)
			  : rpma_rt_shard_post(core->of.shard, to, &message);
	if (*ret != 0)
		return;
	core->sent[to]++;
	core->asked[to] += is_request;
}

/* Asserts that a message is the next message of its sender. */
static void take_one(struct core *core,
		     const struct rpma_rt_shard_message *message)
{
	uint32_t from = message->from;

	CHECK(message->context == core->came[from]);
	CHECK(message->words[0] == from);
	CHECK(message->words[1] == ~message->context);
	core->came[from]++;
	dawdle(core);
	/* still the same: the sender has not used its slot again */
	CHECK(message->words[1] == ~message->context);
}

/* ------------------------------------------------------------ a wake --- */

static uint64_t sleeps_of(const struct core *core)
{
	struct rpma_rt_shard_stats stats;

	MUST(rpma_rt_shard_get_stats(core->of.shard, &stats, sizeof(stats)));
	return stats.sleeps;
}

/* A token goes round; all other shards sleep. The next shard gets the token
 * when the next shard has gone to sleep since passing the token on. */
static void on_token(struct rpma_rt_shard *shard,
		     const struct rpma_rt_shard_message *message, void *arg)
{
	struct rpma_rt_shard_message token = *message;
	struct core *core = arg;
	uint32_t to = (core->of.index + 1) % SHARDS;

	(void)shard;
	CHECK(message->kind == RPMA_RT_SHARD_POST);
	if (++token.context == WAKES) {
		MUST(rpma_rt_shards_stop(set.shards));
		return;
	}
	set.slept[core->of.index] = sleeps_of(core);
	while (sleeps_of(&set.cores[to]) == set.slept[to])
		sched_yield();
	MUST(rpma_rt_shard_post(core->of.shard, to, &token));
}

static void message__wakes_a_SLEEPER(void)
{
	struct rpma_rt_shard_message token = {0};
	uint32_t i;

	open_set(on_token);
	memset(set.slept, 0, sizeof(set.slept));
	MUST(rpma_rt_shard_post(set.cores[0].of.shard, 1, &token));
	start();
	join();
	for (i = 0; i < SHARDS; i++)
		CHECK(sleeps_of(&set.cores[i]) > 0);
	close_set();
}

/* -------------------------------------------------------------- room --- */

static void flood(struct core *core, uint32_t to)
{
	int ret = 0;

	while (ret == 0 && core->sent[to] < set.limit)
		send_one(core, to, !set.is_one_way && core->sent[to] % 3 == 0,
			 &ret);
	CHECK(ret == 0 || ret == RPMA_E_AGAIN);
}

/* A refused sender goes on when told, and at no other time. */
static void on_flood(struct rpma_rt_shard *shard,
		     const struct rpma_rt_shard_message *message, void *arg)
{
	struct core *core = arg;
	uint32_t from = message->from;

	if (message->kind == RPMA_RT_SHARD_WRITABLE) {
		flood(core, from);
		return;
	}
	if (message->kind == RPMA_RT_SHARD_ANSWER) {
		CHECK(message->context == 3 * core->answered[from]);
		core->answered[from]++;
		return;
	}
	take_one(core, message);
	if (message->kind == RPMA_RT_SHARD_REQUEST)
		MUST(rpma_rt_shard_answer(shard, message, message));
	if (core->came[from] == set.limit)
		is_through(set.is_one_way ? 1 : 2);
}

/* No message goes back: nothing but the room wakes the sender. */
static void posts__one_way_are_TOLD_of_room(void)
{
	set.is_one_way = true;
	open_set(on_flood);
	flood(&set.cores[0], 1);
	start();
	finish();
	CHECK(set.cores[0].sent[1] == set.limit);
}

static void refused__is_TOLD_of_room(void)
{
	set.is_one_way = false;
	open_set(on_flood);
	flood(&set.cores[0], 1);
	flood(&set.cores[1], 0);
	start();
	finish();
	CHECK(set.cores[0].sent[1] == set.limit);
	CHECK(set.cores[1].answered[0] == set.cores[1].asked[0]);
}

/* ------------------------------------------------------ late answers --- */

/* The receiver keeps requests, fills the lane with posts, then answers. */
static void answer_kept(struct core *core)
{
	int ret = 0;
	uint32_t i;

	while (ret == 0)
		send_one(core, 0, false, &ret);
	CHECK(ret == RPMA_E_AGAIN);
	for (i = 0; i < core->kept_count; i++)
		MUST(rpma_rt_shard_answer(core->of.shard, &core->kept[i],
					  &core->kept[i]));
	core->kept_count = 0;
}

static void ask(struct core *core)
{
	int ret = 0;

	while (ret == 0 && core->sent[1] < set.limit)
		send_one(core, 1, true, &ret);
	CHECK(ret == 0 || ret == RPMA_E_AGAIN);
}

static void on_late(struct rpma_rt_shard *shard,
		    const struct rpma_rt_shard_message *message, void *arg)
{
	struct core *core = arg;

	(void)shard;
	switch (message->kind) {
	case RPMA_RT_SHARD_REQUEST:
		take_one(core, message);
		/* no more are under way than there are credits */
		CHECK(core->kept_count < LANE);
		core->kept[core->kept_count++] = *message;
		if (core->kept_count == LANE)
			answer_kept(core);
		break;
	case RPMA_RT_SHARD_POST:
		take_one(core, message);
		break;
	case RPMA_RT_SHARD_ANSWER:
		CHECK(message->context == core->answered[1]);
		if (++core->answered[1] == set.limit)
			is_through(1);
		break;
	default:
		if (core->of.index == 0)
			ask(core);
	}
}

static void answer__late_has_ROOM(void)
{
	open_set(on_late);
	ask(&set.cores[0]);
	start();
	finish();
	CHECK(set.cores[0].came[1] == set.cores[1].sent[0]);
}

/* ----------------------------------------------------------- credits --- */

/* The receiver keeps requests, and answers nothing. */
static void on_kept(struct rpma_rt_shard *shard,
		    const struct rpma_rt_shard_message *message, void *arg)
{
	struct core *core = arg;

	(void)shard;
	if (message->kind == RPMA_RT_SHARD_REQUEST) {
		take_one(core, message);
		CHECK(core->kept_count < LANE);
		core->kept[core->kept_count++] = *message;
	} else if (message->kind == RPMA_RT_SHARD_ANSWER) {
		core->answered[1]++;
	}
}

/* The calling thread runs all shards to their end. */
static void run_to_the_end(void)
{
	uint32_t closed = 0;
	uint32_t i;
	int ret;

	while (closed != (1 << SHARDS) - 1) {
		for (i = 0; i < SHARDS; i++) {
			if (closed & (1U << i))
				continue;
			ret = rpma_rt_shard_run(set.cores[i].of.shard, 0);
			CHECK(ret >= 0 || ret == RPMA_RT_E_CLOSED);
			if (ret < 0)
				closed |= 1U << i;
		}
	}
}

/* The lane is empty, but its room is not for the sender to use: one thread has
 * all shards, so the receiver has certainly finished with the lane. */
static void request__without_CREDIT_is_refused(void)
{
	struct core *asker = &set.cores[0];
	struct core *receiver = &set.cores[1];
	uint32_t i;

	open_set(on_kept);
	ask(asker);
	CHECK(asker->asked[1] == LANE);
	while (receiver->kept_count < LANE) {
		CHECK(rpma_rt_shard_run(asker->of.shard, 0) >= 0);
		CHECK(rpma_rt_shard_run(receiver->of.shard, 0) >= 0);
	}
	ask(asker);
	CHECK(asker->asked[1] == LANE);
	for (i = 0; i < LANE; i++)
		MUST(rpma_rt_shard_answer(receiver->of.shard,
					  &receiver->kept[i],
					  &receiver->kept[i]));
	MUST(rpma_rt_shards_stop(set.shards));
	run_to_the_end();
	CHECK(asker->answered[1] == LANE);
	close_set();
}

/* -------------------------------------------------------------- stop --- */

static void send_some(struct core *core)
{
	uint32_t to;
	int ret;

	for (to = 0; to < SHARDS; to++) {
		send_one(core, to, world_roll(&core->seed, 2) == 0, &ret);
		CHECK(ret == 0 || ret == RPMA_E_AGAIN ||
		      ret == RPMA_RT_E_CLOSED);
	}
}

static void on_any(struct rpma_rt_shard *shard,
		   const struct rpma_rt_shard_message *message, void *arg)
{
	struct core *core = arg;
	uint32_t from = message->from;
	int ret;

	/* relaxed: a hint to the stopping thread */
	atomic_fetch_add_explicit(&set.traffic, 1, memory_order_relaxed);
	if (message->kind == RPMA_RT_SHARD_ANSWER) {
		core->answered[from]++;
	} else if (message->kind != RPMA_RT_SHARD_WRITABLE) {
		take_one(core, message);
		if (message->kind == RPMA_RT_SHARD_REQUEST) {
			ret = rpma_rt_shard_answer(shard, message, message);
			CHECK(ret == 0);
			core->replied[from]++;
		}
	}
	send_some(core);
}

/* Asserts that accepted messages were delivered, and answers came back. */
static void check_totals(void)
{
	const struct core *cores = set.cores;
	uint32_t i;
	uint32_t j;

	for (i = 0; i < SHARDS; i++) {
		for (j = 0; j < SHARDS; j++) {
			CHECK(cores[i].sent[j] == cores[j].came[i]);
			CHECK(cores[i].answered[j] == cores[j].replied[i]);
			CHECK(cores[i].answered[j] == cores[i].asked[j]);
		}
	}
}

static void stop__in_the_middle_LOSES_NOTHING(void)
{
	uint64_t after = world_roll(&set.seed, 3000);
	uint32_t i;

	open_set(on_any);
	for (i = 0; i < SHARDS; i++)
		send_some(&set.cores[i]);
	start();
	/* relaxed: any time will do */
	while (atomic_load_explicit(&set.traffic, memory_order_relaxed) < after)
		sched_yield();
	MUST(rpma_rt_shards_stop(set.shards));
	finish();
	check_totals();
}

int main(int argc, char **argv)
{
	int i;

	set.limit = argc > 1 ? strtoull(argv[1], NULL, 10) : 3000;
	set.limit -= set.limit % LANE;
	set.seed = argc > 2 ? (uint32_t)strtoul(argv[2], NULL, 10)
			    : (uint32_t)time(NULL);
	printf("seed %u\n", set.seed);
	world_open(&set.world);
	message__wakes_a_SLEEPER();
	posts__one_way_are_TOLD_of_room();
	refused__is_TOLD_of_room();
	answer__late_has_ROOM();
	request__without_CREDIT_is_refused();
	for (i = 0; i < STOPS; i++)
		stop__in_the_middle_LOSES_NOTHING();
	world_close(&set.world);
	return 0;
}
