/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * conn_cfg.c -- the configuration of a connection of the runtime: the part that
 * librpma gets. Ranges: unit_runtime_cfg.
 */

#include "conn/cfg.h"

#include "rt_fake.h"

static uint32_t u32_of(int (*get)(const struct rpma_conn_cfg *cfg,
				  uint32_t *value),
		       const struct rpma_conn_cfg *cfg)
{
	uint32_t value = 0;

	ok(get(cfg, &value));
	return value;
}

static uint8_t u8_of(int (*get)(const struct rpma_conn_cfg *cfg,
				uint8_t *value),
		     const struct rpma_conn_cfg *cfg)
{
	uint8_t value = 0;

	ok(get(cfg, &value));
	return value;
}

/* Our fields over librpma's object, which has the rest. */
FAKE_TEST(read__fields_over_more)
{
	struct rpma_conn_cfg *verbs;
	struct rpma_conn_cfg *more;
	struct rt_conn_cfg cfg;
	int i;

	ok(rpma_conn_cfg_new(&more));
	ok(rpma_conn_cfg_set_sq_size(more, 7777));
	ok(rpma_conn_cfg_set_ack_timeout(more, 1));
	ok(rpma_conn_cfg_set_retry_count(more, 3));
	ok(rpma_conn_cfg_set_rnr_retry_count(more, 5));
	ok(rpma_conn_cfg_set_tos(more, 32));
	f->rt_cfg.more = more;
	f->rt_cfg.max_sge = 2;
	f->rt_cfg.max_inline = 64;
	f->rt_cfg.timeout_ms = 123;
	f->rt_cfg.min_rnr_timer = 4;
	f->rt_cfg.ack_timeout = 9;
	ok(rt_conn_cfg_read(&f->rt_cfg, f->rt, &cfg));
	f->rt_cfg.more = NULL;
	ok(rpma_conn_cfg_delete(&more)); /* was borrowed */
	ok(rt_conn_cfg_verbs(&cfg, f->device->cm->channel, &verbs));
	assert_int_equal(u32_of(rpma_conn_cfg_get_sq_size, verbs), FAKE_SQ);
	assert_int_equal(u32_of(rpma_conn_cfg_get_rq_size, verbs), FAKE_RQ);
	assert_int_equal(u32_of(rpma_conn_cfg_get_max_send_sge, verbs), 2);
	assert_int_equal(u32_of(rpma_conn_cfg_get_max_recv_sge, verbs), 2);
	assert_int_equal(u32_of(rpma_conn_cfg_get_max_inline_data, verbs), 64);
	assert_int_equal(u8_of(rpma_conn_cfg_get_min_rnr_timer, verbs), 4);
	assert_int_equal(u8_of(rpma_conn_cfg_get_ack_timeout, verbs), 9);
	assert_int_equal(u8_of(rpma_conn_cfg_get_retry_count, verbs), 3);
	assert_int_equal(u8_of(rpma_conn_cfg_get_rnr_retry_count, verbs), 5);
	ok(rpma_conn_cfg_get_timeout(verbs, &i));
	assert_int_equal(i, 123);
	ok(rpma_conn_cfg_get_tos(verbs, &i));
	assert_int_equal(i, 32);
	ok(rpma_conn_cfg_delete(&verbs));
	rt_conn_cfg_fini(&cfg);
}

static uint32_t rq_size_read(struct fake *f)
{
	struct rt_conn_cfg cfg;
	uint32_t size;

	ok(rt_conn_cfg_read(&f->rt_cfg, f->rt, &cfg));
	size = u32_of(rpma_conn_cfg_get_rq_size, cfg.verbs);
	rt_conn_cfg_fini(&cfg);
	return size;
}

static uint32_t rq_base_read(struct fake *f)
{
	struct rt_conn_cfg cfg;

	ok(rt_conn_cfg_read(&f->rt_cfg, f->rt, &cfg));
	rt_conn_cfg_fini(&cfg);
	return cfg.rq_base;
}

/* rq_size 0: room for 128; with a pool 8 are wanted at first. */
FAKE_TEST(rq_size__0_is_the_default)
{
	struct rpma_rt_pool_cfg pool_cfg = RPMA_RT_POOL_CFG_INIT;
	struct rpma_rt_pool *pool;

	f->rt_cfg.rq_size = 0;
	assert_int_equal(rq_size_read(f), 128);
	pool_cfg.peer = f->rt_cfg.peer;
	ok(rpma_rt_pool_new(f->rt, &pool_cfg, &pool));
	f->rt_cfg.pool = pool;
	assert_int_equal(rq_size_read(f), 128);
	assert_int_equal(rq_base_read(f), 8);
	f->rt_cfg.rq_size = 9;
	assert_int_equal(rq_size_read(f), 9);
	assert_int_equal(rq_base_read(f), 9);
	f->rt_cfg.pool = NULL;
	ok(rpma_rt_pool_delete(&pool));
}

FAKE_TEST(read__what_only_the_runtime_knows)
{
	struct rt_conn_cfg cfg;

	f->rt_cfg.poller = RPMA_RT_POLLER_LEAST;
	f->rt_cfg.keepalive_ms = 77;
	f->rt_cfg.backlog = 5;
	ok(rt_conn_cfg_read(&f->rt_cfg, f->rt, &cfg));
	assert_ptr_equal(cfg.peer, &fake_peer);
	assert_ptr_equal(cfg.queue, f->queue);
	assert_ptr_equal(cfg.user, f);
	assert_int_equal(cfg.poller, RPMA_RT_POLLER_LEAST);
	assert_int_equal(cfg.keepalive_ms, 77);
	assert_int_equal(cfg.backlog, 5);
	assert_true(rt_conn_cfg_srq_pollers(&cfg) == 0);
	rt_conn_cfg_fini(&cfg);
}

FAKE_TEST(read__no_memory_NOMEM)
{
	struct rpma_conn_cfg *verbs = NULL;
	struct rt_conn_cfg cfg;

	fake_fail("malloc", 1, 1);
	assert_int_equal(rt_conn_cfg_read(&f->rt_cfg, f->rt, &cfg),
			 RPMA_E_NOMEM);
	fake_fail("malloc", 1, 1);
	assert_int_equal(rt_conn_cfg_verbs(&f->listener.cfg,
					   f->device->cm->channel, &verbs),
			 RPMA_E_NOMEM);
	assert_null(verbs);
}

FAKE_TEST(read__more_names_what_is_the_runtime_s_INVAL)
{
	struct rpma_conn_cfg *more;
	struct rt_conn_cfg cfg;

	ok(rpma_conn_cfg_new(&more));
	ok(rpma_conn_cfg_set_compl_channel(more, true));
	f->rt_cfg.more = more;
	assert_int_equal(rt_conn_cfg_read(&f->rt_cfg, f->rt, &cfg),
			 RPMA_E_INVAL);
	assert_true(fake_said("rpma_rt_conn_cfg.more names a CQ"));
	f->rt_cfg.more = NULL;
	ok(rpma_conn_cfg_delete(&more));
}

TEST_MAIN()
