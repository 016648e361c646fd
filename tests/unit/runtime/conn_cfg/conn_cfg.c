/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * conn_cfg.c -- what a connection of the runtime is made with.
 */

#include "conn/cfg.h"

#include "rt_fake.h"

static void new__invalid_INVAL(void **state)
{
	struct rpma_rt_conn_cfg *cfg = NULL;
	struct fake *f = *state;

	assert_int_equal(rpma_rt_conn_cfg_new(NULL), RPMA_E_INVAL);
	assert_int_equal(rpma_rt_conn_cfg_delete(NULL), RPMA_E_INVAL);
	ok(rpma_rt_conn_cfg_delete(&cfg));
	assert_int_equal(rpma_rt_conn_cfg_set_conn_cfg(NULL, f->cfg),
			 RPMA_E_INVAL);
}

static void new__no_memory_NOMEM(void **state)
{
	struct rpma_rt_conn_cfg *cfg = NULL;

	(void)state;
	fake_fail("malloc", 1, 1);
	assert_int_equal(rpma_rt_conn_cfg_new(&cfg), RPMA_E_NOMEM);
	assert_null(cfg);
}

static void set_conn_cfg__what_is_the_runtime_s_INVAL(void **state)
{
	struct fake *f = *state;
	struct rpma_rt_conn_cfg *cfg;
	struct rt_cq_user user = {.room = 1};
	struct rt_cq *cq = NULL;

	ok(rpma_rt_conn_cfg_new(&cfg));
	pthread_mutex_lock(&f->rt->lock);
	ok(rt_cq_pool_reserve(f->poller, &fake_ctx, &user, &cq));
	pthread_mutex_unlock(&f->rt->lock);
	ok(rpma_conn_cfg_set_cq(f->cfg, cq->cq));
	assert_int_equal(rpma_rt_conn_cfg_set_conn_cfg(cfg, f->cfg),
			 RPMA_E_INVAL);
	ok(rpma_conn_cfg_set_cq(f->cfg, NULL));
	ok(rpma_conn_cfg_set_cm_channel(f->cfg, f->device->cm->channel));
	assert_int_equal(rpma_rt_conn_cfg_set_conn_cfg(cfg, f->cfg),
			 RPMA_E_INVAL);
	ok(rpma_conn_cfg_set_cm_channel(f->cfg, NULL));
	ok(rpma_conn_cfg_set_compl_channel(f->cfg, true));
	assert_int_equal(rpma_rt_conn_cfg_set_conn_cfg(cfg, f->cfg),
			 RPMA_E_INVAL);
	assert_null(cfg->conn_cfg);
	ok(rpma_rt_conn_cfg_delete(&cfg));
	fake_round(f);
}

static void set_conn_cfg__again_replaces_and_NULL_takes_back(void **state)
{
	struct fake *f = *state;
	struct rpma_rt_conn_cfg *cfg;
	uint32_t size;

	ok(rpma_rt_conn_cfg_new(&cfg));
	ok(rpma_rt_conn_cfg_set_conn_cfg(cfg, f->cfg));
	ok(rpma_conn_cfg_set_sq_size(f->cfg, 77));
	ok(rpma_conn_cfg_get_sq_size(cfg->conn_cfg, &size));
	assert_int_equal(size, FAKE_SQ);
	ok(rpma_rt_conn_cfg_set_conn_cfg(cfg, f->cfg));
	ok(rpma_conn_cfg_get_sq_size(cfg->conn_cfg, &size));
	assert_int_equal(size, 77);
	fake_fail("malloc", 1, 1);
	assert_int_equal(rpma_rt_conn_cfg_set_conn_cfg(cfg, f->cfg),
			 RPMA_E_NOMEM);
	assert_non_null(cfg->conn_cfg);
	ok(rpma_rt_conn_cfg_set_conn_cfg(cfg, NULL));
	assert_null(cfg->conn_cfg);
	ok(rpma_rt_conn_cfg_delete(&cfg));
}

static void copy__is_its_own(void **state)
{
	struct fake *f = *state;
	struct rpma_rt_conn_cfg *copy;
	int n;

	ok(rt_conn_cfg_copy(&f->rt_cfg, &copy));
	assert_ptr_not_equal(copy->conn_cfg, f->cfg);
	ok(rpma_rt_conn_cfg_delete(&copy));
	ok(rt_conn_cfg_copy(NULL, &copy));
	assert_null(copy->conn_cfg);
	ok(rpma_rt_conn_cfg_delete(&copy));
	for (n = 1; n <= 2; n++) {
		fake_fail("malloc", n, 1);
		assert_int_equal(rt_conn_cfg_copy(&f->rt_cfg, &copy),
				 RPMA_E_NOMEM);
	}
}

static void verbs__every_value(void **state)
{
	struct rpma_conn_cfg *copy;
	struct fake *f = *state;
	struct rpma_cm_channel *cm;
	uint32_t u32;
	uint8_t u8;
	int i;

	ok(rpma_conn_cfg_set_timeout(f->cfg, 123));
	ok(rpma_conn_cfg_set_max_inline_data(f->cfg, 64));
	ok(rpma_conn_cfg_set_retry_count(f->cfg, 3));
	ok(rpma_conn_cfg_set_rnr_retry_count(f->cfg, 5));
	ok(rpma_conn_cfg_set_ack_timeout(f->cfg, 9));
	ok(rpma_conn_cfg_set_tos(f->cfg, 32));
	ok(rt_conn_cfg_verbs(&f->rt_cfg, f->device->cm->channel, &copy));
	ok(rpma_conn_cfg_get_timeout(copy, &i));
	assert_int_equal(i, 123);
	ok(rpma_conn_cfg_get_sq_size(copy, &u32));
	assert_int_equal(u32, FAKE_SQ);
	ok(rpma_conn_cfg_get_rq_size(copy, &u32));
	assert_int_equal(u32, FAKE_RQ);
	ok(rpma_conn_cfg_get_max_inline_data(copy, &u32));
	assert_int_equal(u32, 64);
	ok(rpma_conn_cfg_get_retry_count(copy, &u8));
	assert_int_equal(u8, 3);
	ok(rpma_conn_cfg_get_rnr_retry_count(copy, &u8));
	assert_int_equal(u8, 5);
	ok(rpma_conn_cfg_get_ack_timeout(copy, &u8));
	assert_int_equal(u8, 9);
	ok(rpma_conn_cfg_get_tos(copy, &i));
	assert_int_equal(i, 32);
	ok(rpma_conn_cfg_get_cm_channel(copy, &cm));
	assert_ptr_equal(cm, f->device->cm->channel);
	ok(rpma_conn_cfg_delete(&copy));
}

static void verbs__none_the_defaults(void **state)
{
	struct fake *f = *state;
	struct rpma_conn_cfg *defaults;
	struct rpma_conn_cfg *copy;
	uint32_t want;
	uint32_t size;

	ok(rpma_conn_cfg_new(&defaults));
	ok(rpma_conn_cfg_get_sq_size(defaults, &want));
	ok(rt_conn_cfg_verbs(NULL, f->device->cm->channel, &copy));
	ok(rpma_conn_cfg_get_sq_size(copy, &size));
	assert_int_equal(size, want);
	ok(rpma_conn_cfg_delete(&copy));
	ok(rpma_conn_cfg_delete(&defaults));
	fake_fail("malloc", 1, 1);
	assert_int_equal(rt_conn_cfg_verbs(NULL, f->device->cm->channel, &copy),
			 RPMA_E_NOMEM);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		fake_test(new__invalid_INVAL),
		fake_test(new__no_memory_NOMEM),
		fake_test(set_conn_cfg__what_is_the_runtime_s_INVAL),
		fake_test(set_conn_cfg__again_replaces_and_NULL_takes_back),
		fake_test(copy__is_its_own),
		fake_test(verbs__every_value),
		fake_test(verbs__none_the_defaults),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
