/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/* Unit tests of the connection configuration: every field the same way. */

#include "mocks.h"

#include <errno.h>

#include "conn_cfg.h"

static struct rpma_conn_cfg *cfg;

static int new_cfg(void)
{
	struct rpma_conn_cfg *made = (void *)7;
	int ret = rpma_conn_cfg_new(&made);

	/* NULL also if it fails, unlike other out-parameters */
	assert_int_equal(made != NULL, ret == 0);
	ok(rpma_conn_cfg_delete(&made));
	assert_null(made);
	return ret;
}

MOCK_TEST(new__no_memory_NOMEM)
{
	const struct failure failures[] = {
		{"malloc", 1, ENOMEM, RPMA_E_NOMEM, ""},
		{NULL, 0, 0, 0, ""},
	};

	EACH_FAILURE(new_cfg, failures);
	assert_int_equal(rpma_conn_cfg_new(NULL), RPMA_E_INVAL);
	assert_int_equal(rpma_conn_cfg_delete(NULL), RPMA_E_INVAL);
}

MOCK_TEST(fields__defaults)
{
	struct rpma__conn_cfg values;

	rpma__conn_cfg_read(NULL, &values);
	assert_int_equal(values.timeout, 1000);
	assert_int_equal(values.cq_size, 10);
	assert_int_equal(values.rcq_size, 0);
	assert_int_equal(values.sq_size, 10);
	assert_int_equal(values.rq_size, 10);
	assert_false(values.compl_channel);
	assert_null(values.srq);
	assert_null(values.cq);
	assert_null(values.rcq);
	assert_null(values.channel);
	assert_null(values.cm_channel);
	assert_int_equal(values.comp_vector, 0);
	assert_int_equal(values.max_send_sge, 1);
	assert_int_equal(values.max_recv_sge, 1);
	assert_int_equal(values.max_inline_data, 8);
	assert_int_equal(values.responder_resources, 255);
	assert_int_equal(values.initiator_depth, 255);
	assert_int_equal(values.retry_count, 7);
	assert_int_equal(values.rnr_retry_count, 7);
	assert_int_equal(values.min_rnr_timer, 255);
	assert_int_equal(values.ack_timeout, 255);
	assert_int_equal(values.tos, -1);
}

/* A new object has the values that no object means. */
MOCK_TEST(fields__new_HAS_THE_DEFAULTS)
{
	struct rpma__conn_cfg defaults;
	struct rpma__conn_cfg values;

	ok(rpma_conn_cfg_new(&cfg));
	rpma__conn_cfg_read(NULL, &defaults);
	rpma__conn_cfg_read(cfg, &values);
#define CHECK(name, type, initial, is_valid, range) \
	assert_true(values.name == defaults.name);
	RPMA__CONN_CFG_FIELDS(CHECK)
#undef CHECK
	ok(rpma_conn_cfg_delete(&cfg));
}

MOCK_TEST(fields__NULL_INVAL)
{
	ok(rpma_conn_cfg_new(&cfg));
#define CHECK(name, type, initial, is_valid, range)                   \
	{                                                             \
		type v = initial;                                     \
		assert_int_equal(rpma_conn_cfg_get_##name(cfg, NULL), \
				 RPMA_E_INVAL);                       \
		assert_int_equal(rpma_conn_cfg_get_##name(NULL, &v),  \
				 RPMA_E_INVAL);                       \
		assert_int_equal(rpma_conn_cfg_set_##name(NULL, v),   \
				 RPMA_E_INVAL);                       \
		assert_true(v == (type)(initial));                    \
	}
	RPMA__CONN_CFG_FIELDS(CHECK)
#undef CHECK
	ok(rpma_conn_cfg_delete(&cfg));
}

/* set, get; and what the library reads */
#define ACCEPTS(name, type, value)                                \
	{                                                         \
		struct rpma__conn_cfg values;                     \
		type got = 0;                                     \
		ok(rpma_conn_cfg_set_##name(cfg, (type)(value))); \
		ok(rpma_conn_cfg_get_##name(cfg, &got));          \
		assert_true(got == (type)(value));                \
		rpma__conn_cfg_read(cfg, &values);                \
		assert_true(values.name == got);                  \
	}

#define REFUSES(name, type, value)                                             \
	{                                                                      \
		type before;                                                   \
		type after;                                                    \
		ok(rpma_conn_cfg_get_##name(cfg, &before));                    \
		assert_int_equal(rpma_conn_cfg_set_##name(cfg, (type)(value)), \
				 RPMA_E_INVAL);                                \
		ok(rpma_conn_cfg_get_##name(cfg, &after));                     \
		assert_true(before == after);                                  \
	}

MOCK_TEST(fields__of_1_3)
{
	ok(rpma_conn_cfg_new(&cfg));
	ACCEPTS(timeout, int, 0);
	ACCEPTS(timeout, int, INT32_MAX);
	REFUSES(timeout, int, -1);
	ACCEPTS(cq_size, uint32_t, 0);
	ACCEPTS(cq_size, uint32_t, UINT32_MAX);
	ACCEPTS(rcq_size, uint32_t, 0);
	ACCEPTS(rcq_size, uint32_t, UINT32_MAX);
	ACCEPTS(sq_size, uint32_t, 0);
	ACCEPTS(sq_size, uint32_t, UINT32_MAX);
	ACCEPTS(rq_size, uint32_t, 0);
	ACCEPTS(rq_size, uint32_t, UINT32_MAX);
	ACCEPTS(compl_channel, bool, true);
	ACCEPTS(compl_channel, bool, false);
	/* never followed, cannot be unset */
	ACCEPTS(srq, struct rpma_srq *, 0xcd12);
	REFUSES(srq, struct rpma_srq *, 0);
	ok(rpma_conn_cfg_delete(&cfg));
}

MOCK_TEST(fields__of_1_4)
{
	ok(rpma_conn_cfg_new(&cfg));
	ACCEPTS(cq, struct rpma_cq *, 0xcd12);
	ACCEPTS(cq, struct rpma_cq *, 0);
	ACCEPTS(rcq, struct rpma_cq *, 0xcd12);
	ACCEPTS(rcq, struct rpma_cq *, 0);
	ACCEPTS(channel, struct rpma_channel *, 0xcd12);
	ACCEPTS(channel, struct rpma_channel *, 0);
	ACCEPTS(cm_channel, struct rpma_cm_channel *, 0xcd12);
	ACCEPTS(cm_channel, struct rpma_cm_channel *, 0);
	ACCEPTS(comp_vector, int, 3);
	REFUSES(comp_vector, int, -1);
	ACCEPTS(max_send_sge, uint32_t, 1);
	REFUSES(max_send_sge, uint32_t, 0);
	ACCEPTS(max_recv_sge, uint32_t, 1);
	REFUSES(max_recv_sge, uint32_t, 0);
	ACCEPTS(max_inline_data, uint32_t, 8);
	REFUSES(max_inline_data, uint32_t, 7);
	ACCEPTS(responder_resources, uint8_t, 0);
	ACCEPTS(initiator_depth, uint8_t, 0);
	ACCEPTS(retry_count, uint8_t, 0);
	REFUSES(retry_count, uint8_t, 8);
	ACCEPTS(rnr_retry_count, uint8_t, 7);
	REFUSES(rnr_retry_count, uint8_t, 8);
	ACCEPTS(min_rnr_timer, uint8_t, 31);
	REFUSES(min_rnr_timer, uint8_t, 32);
	REFUSES(min_rnr_timer, uint8_t, 254);
	ACCEPTS(min_rnr_timer, uint8_t, RPMA_MIN_RNR_TIMER_UNSET);
	ACCEPTS(ack_timeout, uint8_t, 0);
	REFUSES(ack_timeout, uint8_t, 32);
	ACCEPTS(ack_timeout, uint8_t, RPMA_ACK_TIMEOUT_UNSET);
	ACCEPTS(tos, int, 0);
	ACCEPTS(tos, int, 255);
	REFUSES(tos, int, 256);
	REFUSES(tos, int, -2);
	ACCEPTS(tos, int, RPMA_TOS_UNSET);
	ok(rpma_conn_cfg_delete(&cfg));
}

TEST_MAIN()
