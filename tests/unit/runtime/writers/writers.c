/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * Shards that have met write no cache line together but those of their lanes:
 * three threads send posts, requests and answers through full lanes, with
 * timers and sleep in between, and each store of the runtime is noted. A push
 * into another shard's queue, which does write together, is found.
 */

#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

#include "../../../cases.h"
#include "rpma_rt.h"
#include "note.h"
#include "shard/shard.h"

#define ok(call) assert_int_equal(call, 0)

#define SHARDS 3
#define LANE   16
#define WARM   1000
#define MANY   50000

struct core {
	struct rpma_rt_shard *shard;
	struct rpma_rt_queue *pushed; /* into that queue, once; or NULL */
	struct rpma_rt_timer beat;
	pthread_t thread;
	unsigned index;
	uint64_t came;
	bool is_warm;
	bool is_over;
};

static struct core cores[SHARDS];
static struct rpma_rt_shards *shards;
static _Atomic unsigned warm;
static _Atomic unsigned over;

/* The last one goes on with the next part for all. */
static bool is_last(_Atomic unsigned *count)
{
	/* seq_cst: simple */
	return atomic_fetch_add_explicit(count, 1, memory_order_seq_cst) + 1 ==
	       SHARDS;
}

static void look(struct core *core)
{
	if (!core->is_warm && core->came >= WARM) {
		core->is_warm = true;
		if (is_last(&warm))
			note_stores(true);
	}
	if (!core->is_over && core->came >= MANY) {
		core->is_over = true;
		if (is_last(&over)) {
			note_stores(false);
			ok(rpma_rt_shards_stop(shards));
		}
	}
}

static void request(struct core *core, uint32_t to)
{
	struct rpma_rt_shard_message message = {0};
	int ret = rpma_rt_shard_request(core->shard, to, &message);

	assert_true(ret == 0 || ret == RPMA_E_AGAIN || ret == RPMA_RT_E_CLOSED);
}

static void send_all(struct core *core)
{
	struct rpma_rt_shard_message message = {0};
	uint32_t to;
	int ret;

	for (to = 0; to < SHARDS; to++) {
		do
			ret = rpma_rt_shard_post(core->shard, to, &message);
		while (ret == 0);
		request(core, to);
	}
}

static void on_beat(struct rpma_rt_shard *shard, struct rpma_rt_timer *timer)
{
	struct core *core = timer->arg;

	send_all(core);
	ok(rpma_rt_timer_start(shard, timer, 200));
	/* seq_cst: simple */
	if (core->pushed != NULL &&
	    atomic_load_explicit(&warm, memory_order_seq_cst) == SHARDS) {
		ok(rpma_rt_queue_push(core->pushed,
				      &(struct rpma_rt_completion){0}));
		core->pushed = NULL;
	}
}

static void on_message(struct rpma_rt_shard *shard,
		       const struct rpma_rt_shard_message *message, void *arg)
{
	struct rpma_rt_shard_message next = {0};
	struct core *core = arg;

	core->came++;
	if (message->kind == RPMA_RT_SHARD_REQUEST)
		ok(rpma_rt_shard_answer(shard, message, &next));
	else if (message->kind == RPMA_RT_SHARD_ANSWER)
		request(core, message->from);
	look(core);
}

static void on_item(struct rpma_rt_shard *shard,
		    const struct rpma_rt_completion *item, void *arg)
{
	(void)shard;
	(void)item;
	(void)arg;
}

static void *core_main(void *arg)
{
	struct core *core = arg;

	note_thread(core->index + 1);
	ok(rpma_rt_timer_start(core->shard, &core->beat, 0));
	while (rpma_rt_shard_run(core->shard, -1) >= 0)
		;
	return NULL;
}

static void except_lanes(void)
{
	const struct rt_shard_lane *lane;
	uint32_t i;

	for (i = 0; i < SHARDS * SHARDS; i++) {
		lane = shards->lanes[i];
		assert_non_null(lane);
		note_except(lane,
			    sizeof(*lane) + 2 * LANE * sizeof(lane->slots[0]));
	}
}

/* Each lane is made before the threads are. */
static void meet(void)
{
	struct rpma_rt_shard_message message = {0};
	uint32_t from, to;

	for (from = 0; from < SHARDS; from++) {
		for (to = 0; to < SHARDS; to++)
			ok(rpma_rt_shard_request(cores[from].shard, to,
						 &message));
	}
}

static void run(bool is_control)
{
	struct rpma_rt_shards_cfg cfg = RPMA_RT_SHARDS_CFG_INIT;
	struct rpma_rt_cfg rt_cfg = RPMA_RT_CFG_INIT;
	struct rpma_rt *rt = NULL;
	void *args[SHARDS];
	unsigned i;

	note_forget();
	memset(cores, 0, sizeof(cores));
	/* seq_cst, both: simple */
	atomic_store_explicit(&warm, 0, memory_order_seq_cst);
	atomic_store_explicit(&over, 0, memory_order_seq_cst);
	rt_cfg.mode = RPMA_RT_MODE_MANUAL;
	rt_cfg.pollers = SHARDS;
	ok(rpma_rt_new(&rt_cfg, &rt));
	for (i = 0; i < SHARDS; i++)
		args[i] = &cores[i];
	cfg.lane_size = LANE;
	cfg.spin_us = 5;
	cfg.item_fn = on_item;
	cfg.message_fn = on_message;
	cfg.args = args;
	cfg.arg_count = SHARDS;
	ok(rpma_rt_shards_new(rt, &cfg, &shards));
	for (i = 0; i < SHARDS; i++) {
		ok(rpma_rt_shards_get(shards, i, &cores[i].shard));
		cores[i].index = i;
		cores[i].beat.fn = on_beat;
		cores[i].beat.arg = &cores[i];
	}
	if (is_control)
		ok(rpma_rt_shard_get_queue(cores[1].shard, &cores[0].pushed));
	meet();
	except_lanes();
	for (i = 0; i < SHARDS; i++)
		ok(pthread_create(&cores[i].thread, NULL, core_main,
				  &cores[i]));
	for (i = 0; i < SHARDS; i++)
		ok(pthread_join(cores[i].thread, NULL));
	ok(rpma_rt_shards_delete(&shards));
	ok(rpma_rt_delete(&rt));
}

TEST(shards__write_no_line_TOGETHER)
{
	run(false);
	assert_true(note_count() > MANY);
	assert_int_equal(note_conflicts(), 0);
}

TEST(push__writes_lines_TOGETHER)
{
	run(true);
	assert_true(note_conflicts() > 0);
}

TEST_MAIN()
