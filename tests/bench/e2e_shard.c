/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/* The form of shards: a function for each item, posts between two runs. */

#include "e2e_rt.h"

static struct rpma_rt_shards *shards;

static void on_item(struct rpma_rt_shard *shard,
		    const struct rpma_rt_completion *item, void *arg)
{
	(void)shard;
	(void)arg;
	e2e_rt_item(item);
}

static void on_message(struct rpma_rt_shard *shard,
		       const struct rpma_rt_shard_message *message, void *arg)
{
	(void)shard;
	(void)message;
	(void)arg;
}

static struct rpma_rt_shard *shard_of(uint32_t number)
{
	struct rpma_rt_shard *shard;

	MUST(rpma_rt_shards_get(shards, number, &shard));
	return shard;
}

static void open_shards(struct e2e *e2e)
{
	struct rpma_rt_shards_cfg cfg = RPMA_RT_SHARDS_CFG_INIT;
	struct rpma_rt_queue *queue;
	uint32_t i;

	e2e_rt_open(e2e, RPMA_RT_MODE_MANUAL);
	cfg.item_fn = on_item;
	cfg.message_fn = on_message;
	MUST(rpma_rt_shards_new(e2e_rt.world.rt, &cfg, &shards));
	for (i = 0; i < e2e->thread_count; i++) {
		MUST(rpma_rt_shard_get_queue(shard_of(i), &queue));
		e2e->threads[i].form = queue;
	}
	e2e_rt_connect(e2e, e2e_rt_post);
}

static void run_shard(struct e2e *e2e, struct e2e_thread *thread)
{
	struct rpma_rt_shard *shard = shard_of(thread->number);
	int got;

	e2e_begin(e2e, thread);
	do {
		e2e_post_all(thread, e2e_rt_post);
		do {
			got = rpma_rt_shard_run(shard, 0);
			if (got < 0)
				bench_fail("rpma_rt_shard_run");
		} while (e2e_polls_again(e2e, got));
	} while (!e2e_is_over(e2e, thread));
}

const struct e2e_form e2e_shard = {
	.name = "shard",
	.open = open_shards,
	.run = run_shard,
};
