/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * Shards, their messages and timers; see bad_input.c.
 */

#include "bad_input.h"

#include "shard/shard.h"

/* Another run, inside of one. */
static void run_again(struct rpma_rt_shard *shard,
		      const struct rpma_rt_completion *item, void *arg)
{
	(void)item;
	(void)arg;
	BAD_SAYS("shard 0 is run already", RPMA_RT_E_BUSY, rpma_rt_shard_run,
		 shard, 0);
}

static void hear_timer(struct rpma_rt_shard *shard, struct rpma_rt_timer *timer)
{
	(void)shard;
	(void)timer;
}

static struct rpma_rt_shards_cfg shards_cfg(void)
{
	struct rpma_rt_shards_cfg cfg = fake_shards_cfg();

	cfg.item_fn = run_again;
	return cfg;
}

static struct rpma_rt *manual_runtime(void)
{
	struct rpma_rt_cfg cfg = RPMA_RT_CFG_INIT;
	struct rpma_rt *rt = NULL;

	cfg.mode = RPMA_RT_MODE_MANUAL;
	cfg.pollers = 2;
	ok(rpma_rt_new(&cfg, &rt));
	return rt;
}

void configurations_of_shards(void **state)
{
	void *args[2] = {NULL, NULL};
	struct rpma_rt *rt = manual_runtime();
	struct rpma_rt_shards_cfg cfg = shards_cfg();
	struct rpma_rt *threads = NULL;

	(void)state;
	BAD(RPMA_E_INVAL, rpma_rt_shards_cfg_init, NULL, sizeof(cfg));
	BAD(RPMA_E_INVAL, rpma_rt_shards_cfg_init, (void *)&out, 0);
	BAD(RPMA_E_INVAL, rpma_rt_shards_cfg_init, (void *)&out,
	    sizeof(cfg) - 1);
	BAD(RPMA_E_INVAL, rpma_rt_shards_cfg_init, (void *)&out, 4097);
	NULLS(rpma_rt_shards_new, rt, &cfg, &out.shards);
#define WRONG(field, value)                                                  \
	do {                                                                 \
		cfg = shards_cfg();                                          \
		cfg.field = value;                                           \
		BAD_SAYS(#field, RPMA_E_INVAL, rpma_rt_shards_new, rt, &cfg, \
			 &out.shards);                                       \
	} while (0)
	WRONG(size, 0);
	WRONG(size, sizeof(cfg) - 1);
	WRONG(lane_size, 1);
	WRONG(lane_size, 3);
	WRONG(lane_size, 131072);
	WRONG(spin_us, 1000001);
	WRONG(arg_count, 2);
	WRONG(args, args);
	WRONG(item_fn, NULL);
	WRONG(message_fn, NULL);
	WRONG(reserved[3], 1);
	cfg = shards_cfg();
	cfg.args = args;
	cfg.arg_count = 1;
	BAD_SAYS("arg_count", RPMA_E_INVAL, rpma_rt_shards_new, rt, &cfg,
		 &out.shards);
#undef WRONG
	cfg = shards_cfg();
	ok(rpma_rt_new(NULL, &threads));
	BAD_SAYS("RPMA_RT_MODE_MANUAL", RPMA_E_NOSUPP, rpma_rt_shards_new,
		 threads, &cfg, &out.shards);
	ok(rpma_rt_delete(&threads));
	ok(rpma_rt_delete(&rt));
}

/* The calls with all that they refuse, but in a stop. */
static void refuse_all(struct rpma_rt_shards *shards,
		       struct rpma_rt_shard *shard)
{
	struct rpma_rt_shard_message message = {0};
	struct rpma_rt_conn_cfg conn_cfg = RPMA_RT_CONN_CFG_INIT;
	struct rpma_rt_timer timer = {.fn = NULL};
	struct rpma_rt_timer none = {.fn = hear_timer};
	struct rpma_rt_timer set = {.fn = hear_timer};
	struct rpma_rt_shard *other = NULL;

	NULLS(rpma_rt_shards_get, shards, 0, &out.shard);
	BAD_SAYS("0..1", RPMA_E_INVAL, rpma_rt_shards_get, shards, 2,
		 &out.shard);
	NULLS(rpma_rt_shards_deal, shards, &conn_cfg);
	NULLS(rpma_rt_shard_get_queue, shard, &out.queue);
	NULLS(rpma_rt_shard_get_stats, shard, &out.shard_stats,
	      sizeof(out.shard_stats));
	BAD(RPMA_E_INVAL, rpma_rt_shard_run, NULL, 0);
	BAD_SAYS("timeout_ms", RPMA_E_INVAL, rpma_rt_shard_run, shard, -2);
	NULLS(rpma_rt_shard_post, shard, 1, &message);
	BAD_SAYS("0..1", RPMA_E_INVAL, rpma_rt_shard_post, shard, 2, &message);
	NULLS(rpma_rt_shard_request, shard, 1, &message);
	BAD_SAYS("0..1", RPMA_E_INVAL, rpma_rt_shard_request, shard, UINT32_MAX,
		 &message);
	NULLS(rpma_rt_shard_answer, shard, &message, &message);
	BAD_SAYS("no request", RPMA_E_INVAL, rpma_rt_shard_answer, shard,
		 &message, &message);
	message.from = 2;
	BAD_SAYS("0..1", RPMA_E_INVAL, rpma_rt_shard_answer, shard, &message,
		 &message);
	NULLS(rpma_rt_timer_start, shard, &none, 0);
	BAD_SAYS("fn", RPMA_E_INVAL, rpma_rt_timer_start, shard, &timer, 0);
	NULLS(rpma_rt_timer_cancel, shard, &none);
	BAD(0, rpma_rt_timer_cancel, shard, &none);
	ok(rpma_rt_shards_get(shards, 1, &other));
	ok(rpma_rt_timer_start(other, &set, UINT64_MAX));
	BAD_SAYS("another shard", RPMA_E_INVAL, rpma_rt_timer_start, shard,
		 &set, 0);
	BAD_SAYS("another shard", RPMA_E_INVAL, rpma_rt_timer_cancel, shard,
		 &set);
	ok(rpma_rt_timer_cancel(other, &set) - 1);
	BAD(RPMA_E_INVAL, rpma_rt_shards_stop, NULL);
}

static void refuse_another_thread(struct rpma_rt_shard *shard)
{
	struct rpma_rt_shard_message message = {0};
	struct rpma_rt_timer timer = {.fn = hear_timer};
	uint64_t mine = rt_shard_thread(shard);

#define OTHER(...) BAD_SAYS("another thread", RPMA_E_INVAL, __VA_ARGS__)
	/* relaxed, here and below: one thread */
	atomic_store_explicit(&shard->thread, mine + 1, memory_order_relaxed);
	OTHER(rpma_rt_shard_post, shard, 0, &message);
	OTHER(rpma_rt_shard_request, shard, 0, &message);
	OTHER(rpma_rt_shard_answer, shard, &message, &message);
	OTHER(rpma_rt_timer_start, shard, &timer, 0);
	OTHER(rpma_rt_timer_cancel, shard, &timer);
	atomic_store_explicit(&shard->thread, mine, memory_order_relaxed);
#undef OTHER
}

static void refuse_in_a_round(struct rpma_rt *rt, struct rpma_rt_shards *shards,
			      struct rpma_rt_shard *shard)
{
	struct rpma_rt_shards_cfg cfg = shards_cfg();

#define ROUND(...) BAD_SAYS("another thread", RPMA_RT_E_THREAD, __VA_ARGS__)
	ok(rt_poller_enter(&rt->pollers[1]));
	ROUND(rpma_rt_shards_new, rt, &cfg, &out.shards);
	ROUND(rpma_rt_shards_delete, &shards);
	ROUND(rpma_rt_shard_run, shard, 0);
	rt_poller_leave(&rt->pollers[1]);
#undef ROUND
}

static void refuse_forked(struct rpma_rt *rt, struct rpma_rt_shards *shards,
			  struct rpma_rt_shard *shard)
{
	struct rpma_rt_shards_cfg cfg = shards_cfg();
	struct rpma_rt_conn_cfg conn_cfg = RPMA_RT_CONN_CFG_INIT;
	struct rpma_rt_shard_message message = {0};
	struct rpma_rt_timer timer = {.fn = hear_timer};

#define FORKED(...) BAD_SAYS("fork()", RPMA_RT_E_FORKED, __VA_ARGS__)
	rt->fork_generation++;
	FORKED(rpma_rt_shards_new, rt, &cfg, &out.shards);
	FORKED(rpma_rt_shards_get, shards, 0, &out.shard);
	FORKED(rpma_rt_shards_deal, shards, &conn_cfg);
	FORKED(rpma_rt_shards_stop, shards);
	FORKED(rpma_rt_shards_delete, &shards);
	FORKED(rpma_rt_shard_get_queue, shard, &out.queue);
	FORKED(rpma_rt_shard_get_stats, shard, &out.shard_stats,
	       sizeof(out.shard_stats));
	FORKED(rpma_rt_shard_run, shard, 0);
	FORKED(rpma_rt_shard_post, shard, 0, &message);
	FORKED(rpma_rt_shard_request, shard, 0, &message);
	FORKED(rpma_rt_shard_answer, shard, &message, &message);
	FORKED(rpma_rt_timer_start, shard, &timer, 0);
	FORKED(rpma_rt_timer_cancel, shard, &timer);
	rt->fork_generation--;
#undef FORKED
}

static void refuse_stopped(struct rpma_rt_shards *shards,
			   struct rpma_rt_shard *shard)
{
	struct rpma_rt_shard_message message = {0};
	struct rpma_rt_shard *other = NULL;
	int ret = 0;
	int i;

	BAD(0, rpma_rt_shards_stop, shards);
	BAD(0, rpma_rt_shards_stop, shards);
	BAD(0, rpma_rt_shard_run, shard, 0);
	BAD_SAYS("stopped", RPMA_RT_E_CLOSED, rpma_rt_shard_post, shard, 0,
		 &message);
	BAD_SAYS("stopped", RPMA_RT_E_CLOSED, rpma_rt_shard_request, shard, 0,
		 &message);
	ok(rpma_rt_shards_get(shards, 1, &other));
	for (i = 0; i < 10; i++) {
		ret = rpma_rt_shard_run(shard, 0);
		ret += rpma_rt_shard_run(other, 0);
	}
	assert_int_equal(ret, 2 * RPMA_RT_E_CLOSED);
	BAD_SAYS("nothing to do", RPMA_RT_E_CLOSED, rpma_rt_shard_run, shard,
		 0);
	/* a request that its receiver kept for so long */
	message.kind = RPMA_RT_SHARD_REQUEST;
	shard->out[0].owed = 1;
	BAD_SAYS("too late", RPMA_RT_E_CLOSED, rpma_rt_shard_answer, shard,
		 &message, &message);
	shard->out[0].owed = 0;
}

void shards(void **state)
{
	struct rpma_rt *rt = manual_runtime();
	struct rpma_rt_shards_cfg cfg = shards_cfg();
	struct rpma_rt_shards *set = NULL;
	struct rpma_rt_shard *shard = NULL;
	struct rpma_rt_queue *queue = NULL;

	(void)state;
	DELETES(rpma_rt_shards_delete, rpma_rt_shards);
	ok(rpma_rt_shards_new(rt, &cfg, &set));
	ok(rpma_rt_shards_get(set, 0, &shard));
	refuse_all(set, shard);
	ok(rpma_rt_shard_get_queue(shard, &queue));
	ok(rpma_rt_queue_push(queue, &(struct rpma_rt_completion){0}));
	ok(rpma_rt_shard_run(shard, 0) - 1);
	refuse_another_thread(shard);
	refuse_in_a_round(rt, set, shard);
	refuse_forked(rt, set, shard);
	/* relaxed: another thread would do it; there is none here */
	atomic_store_explicit(&shard->runner, 1, memory_order_relaxed);
	BAD_SAYS("runs shard 0", RPMA_RT_E_BUSY, rpma_rt_shards_delete, &set);
	atomic_store_explicit(&shard->runner, 0, memory_order_relaxed);
	refuse_stopped(set, shard);
	ok(rpma_rt_shards_delete(&set));
	ok(rpma_rt_delete(&rt));
}
