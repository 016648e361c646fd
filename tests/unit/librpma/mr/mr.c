/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/* Unit tests of registering memory. */

#include "world.h"

#include <errno.h>

#include "peer.h"

static int reg(void)
{
	struct rpma_mr_local *mr = NULL;
	char mem[32];
	int ret = rpma_mr_reg(world.peer, mem, sizeof(mem),
			      RPMA_MR_USAGE_READ_SRC, &mr);

	assert_int_equal(mr != NULL, ret == 0);
	ok(rpma_mr_dereg(&mr));
	return ret;
}

static int dereg(void)
{
	struct rpma_mr_local *mr = NULL;
	char mem[32];
	int ret;

	ok(rpma_mr_reg(world.peer, mem, sizeof(mem), RPMA_MR_USAGE_READ_SRC,
		       &mr));
	ret = rpma_mr_dereg(&mr);
	assert_null(mr);
	return ret;
}

static void reg__EACH_FAILURE(void **state)
{
	const struct failure failures[] = {
		{"malloc", 1, ENOMEM, RPMA_E_NOMEM, ""},
		{"reg_mr", 1, ENOMEM, RPMA_E_PROVIDER, "reg_mr(32, 0x4)"},
		{"reg_mr", 1, EOPNOTSUPP, RPMA_E_PROVIDER, "reg_mr(32, 0x4)"},
		{NULL, 0, 0, 0, "reg_mr(32, 0x4) dereg_mr"},
	};

	(void)state;
	world_peer();
	EACH_FAILURE(reg, failures);
	world_end();
}

/* Memory that cannot be pinned is tried once more, if the device can. */
static void reg__odp_EACH_FAILURE(void **state)
{
	const struct failure failures[] = {
		{"reg_mr", 1, EOPNOTSUPP, 0,
		 "reg_mr(32, 0x4) reg_mr(32, 0x44) dereg_mr"},
		{"reg_mr", 1, EINVAL, RPMA_E_PROVIDER, "reg_mr(32, 0x4)"},
	};

	(void)state;
	world_peer();
	world.peer->caps.odp = true;
	EACH_FAILURE(reg, failures);
	mock_fail("reg_mr", 1, EOPNOTSUPP);
	mock_fail("reg_mr", 2, EOPNOTSUPP);
	assert_int_equal(reg(), RPMA_E_PROVIDER);
	expect_trace("reg_mr(32, 0x4) reg_mr(32, 0x44)");
	world_end();
}

static void dereg__fails_PROVIDER(void **state)
{
	const struct failure failures[] = {
		{"dereg_mr", 1, EINVAL, RPMA_E_PROVIDER, NULL},
		{NULL, 0, 0, 0, NULL},
	};

	(void)state;
	world_peer();
	EACH_FAILURE(dereg, failures);
	world_end();
}

static void reg__arguments_INVAL(void **state)
{
	struct rpma_mr_local *mr = NULL;
	char mem[8];

	(void)state;
	world_peer();
	assert_int_equal(rpma_mr_reg(NULL, mem, 8, 1, &mr), RPMA_E_INVAL);
	assert_int_equal(rpma_mr_reg(world.peer, NULL, 8, 1, &mr),
			 RPMA_E_INVAL);
	assert_int_equal(rpma_mr_reg(world.peer, mem, 0, 1, &mr), RPMA_E_INVAL);
	assert_int_equal(rpma_mr_reg(world.peer, mem, 8, 0, &mr), RPMA_E_INVAL);
	assert_int_equal(rpma_mr_reg(world.peer, mem, 8, 0x100, &mr),
			 RPMA_E_INVAL);
	assert_int_equal(rpma_mr_reg(world.peer, mem, 8, -1, &mr),
			 RPMA_E_INVAL);
	assert_int_equal(rpma_mr_reg(world.peer, mem, 8, 1, NULL),
			 RPMA_E_INVAL);
	assert_int_equal(rpma_mr_dereg(NULL), RPMA_E_INVAL);
	ok(rpma_mr_dereg(&mr));
	expect_trace("");
	world_end();
}

static void getters__AGREE(void **state)
{
	uint32_t lkey = 0;
	size_t size = 0;
	void *ptr = NULL;

	(void)state;
	world_regions(WORLD_ALL_USAGES);
	ok(rpma_mr_get_ptr(world.mr, &ptr));
	ok(rpma_mr_get_size(world.mr, &size));
	ok(rpma_mr_get_lkey(world.mr, &lkey));
	assert_ptr_equal(ptr, world.mem);
	assert_int_equal(size, sizeof(world.mem));
	assert_int_equal(lkey, 0x11);
	assert_int_equal(rpma_mr_get_ptr(NULL, &ptr), RPMA_E_INVAL);
	assert_int_equal(rpma_mr_get_ptr(world.mr, NULL), RPMA_E_INVAL);
	assert_int_equal(rpma_mr_get_size(NULL, &size), RPMA_E_INVAL);
	assert_int_equal(rpma_mr_get_size(world.mr, NULL), RPMA_E_INVAL);
	assert_int_equal(rpma_mr_get_lkey(NULL, &lkey), RPMA_E_INVAL);
	assert_int_equal(rpma_mr_get_lkey(world.mr, NULL), RPMA_E_INVAL);
	world_end();
}

static int advise(void)
{
	return rpma_mr_advise(world.mr, 8, 16, 1, 2);
}

static void advise__EACH_FAILURE(void **state)
{
	const struct failure failures[] = {
		{"advise_mr", 1, EOPNOTSUPP, RPMA_E_NOSUPP, NULL},
		{"advise_mr", 1, EFAULT, RPMA_E_INVAL, NULL},
		{"advise_mr", 1, EINVAL, RPMA_E_INVAL, NULL},
		{"advise_mr", 1, ENOMEM, RPMA_E_PROVIDER, NULL},
		{NULL, 0, 0, 0, "advise_mr(1, 2, 16 bytes)"},
	};

	(void)state;
	world_regions(WORLD_ALL_USAGES);
	EACH_FAILURE(advise, failures);
	assert_int_equal(rpma_mr_advise(NULL, 0, 8, 0, 0), RPMA_E_INVAL);
	world_end();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		mock_test(reg__EACH_FAILURE),
		mock_test(reg__odp_EACH_FAILURE),
		mock_test(dereg__fails_PROVIDER),
		mock_test(reg__arguments_INVAL),
		mock_test(getters__AGREE),
		mock_test(advise__EACH_FAILURE),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
