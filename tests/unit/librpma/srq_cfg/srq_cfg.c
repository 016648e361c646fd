/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/* Unit tests of the configuration of an SRQ. */

#include "mocks.h"

#include <errno.h>

#include "srq_cfg.h"

static int new_cfg(void)
{
	struct rpma_srq_cfg *made = (void *)7;
	int ret = rpma_srq_cfg_new(&made);

	assert_int_equal(made != NULL, ret == 0);
	ok(rpma_srq_cfg_delete(&made));
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
	assert_int_equal(rpma_srq_cfg_new(NULL), RPMA_E_INVAL);
	assert_int_equal(rpma_srq_cfg_delete(NULL), RPMA_E_INVAL);
}

MOCK_TEST(fields__defaults)
{
	struct rpma__srq_cfg values;

	rpma__srq_cfg_read(NULL, &values);
	assert_int_equal(values.rq_size, 20);
	assert_int_equal(values.rcq_size, 20);
	assert_null(values.rcq);
	assert_null(values.channel);
	assert_int_equal(values.max_sge, 1);
}

MOCK_TEST(fields__set_then_get_AND_NULL)
{
	struct rpma_srq_cfg *cfg = NULL;
	struct rpma__srq_cfg values;

	ok(rpma_srq_cfg_new(&cfg));
#define CHECK(name, type, initial, is_valid, range)                  \
	{                                                            \
		type v = initial;                                    \
		ok(rpma_srq_cfg_get_##name(cfg, &v));                \
		assert_true(v == (type)(initial));                   \
		ok(rpma_srq_cfg_set_##name(cfg, (type)(0xcd15)));    \
		ok(rpma_srq_cfg_get_##name(cfg, &v));                \
		assert_true(v == (type)(0xcd15));                    \
		rpma__srq_cfg_read(cfg, &values);                    \
		assert_true(values.name == v);                       \
		v = (type)(0);                                       \
		assert_int_equal(rpma_srq_cfg_set_##name(cfg, v),    \
				 (is_valid) ? 0 : RPMA_E_INVAL);     \
		assert_int_equal(rpma_srq_cfg_set_##name(NULL, v),   \
				 RPMA_E_INVAL);                      \
		assert_int_equal(rpma_srq_cfg_get_##name(NULL, &v),  \
				 RPMA_E_INVAL);                      \
		assert_int_equal(rpma_srq_cfg_get_##name(cfg, NULL), \
				 RPMA_E_INVAL);                      \
	}
	RPMA__SRQ_CFG_FIELDS(CHECK)
#undef CHECK
	ok(rpma_srq_cfg_delete(&cfg));
}

TEST_MAIN()
