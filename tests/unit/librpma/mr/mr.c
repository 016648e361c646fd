/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/* Unit tests of registering memory. */

#include "world.h"

#include <endian.h>
#include <errno.h>
#include <string.h>

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

MOCK_TEST(reg__EACH_FAILURE)
{
	const struct failure failures[] = {
		{"malloc", 1, ENOMEM, RPMA_E_NOMEM, ""},
		{"reg_mr", 1, ENOMEM, RPMA_E_PROVIDER, "reg_mr(32, 0x4)"},
		{"reg_mr", 1, EOPNOTSUPP, RPMA_E_PROVIDER, "reg_mr(32, 0x4)"},
		{NULL, 0, 0, 0, "reg_mr(32, 0x4) dereg_mr"},
	};

	world_peer();
	EACH_FAILURE(reg, failures);
	world_end();
}

/* Memory that cannot be pinned is tried once more, if the device can. */
MOCK_TEST(reg__odp_EACH_FAILURE)
{
	const struct failure failures[] = {
		{"reg_mr", 1, EOPNOTSUPP, 0,
		 "reg_mr(32, 0x4) reg_mr(32, 0x44) dereg_mr"},
		{"reg_mr", 1, EINVAL, RPMA_E_PROVIDER, "reg_mr(32, 0x4)"},
	};

	world_peer();
	world.peer->caps.odp = true;
	EACH_FAILURE(reg, failures);
	mock_fail("reg_mr", 1, EOPNOTSUPP);
	mock_fail("reg_mr", 2, EOPNOTSUPP);
	assert_int_equal(reg(), RPMA_E_PROVIDER);
	expect_trace("reg_mr(32, 0x4) reg_mr(32, 0x44)");
	world_end();
}

MOCK_TEST(dereg__fails_PROVIDER)
{
	const struct failure failures[] = {
		{"dereg_mr", 1, EINVAL, RPMA_E_PROVIDER, NULL},
		{NULL, 0, 0, 0, NULL},
	};

	world_peer();
	EACH_FAILURE(dereg, failures);
	world_end();
}

static struct ibv_mr *the_ibv_mr;

static int from_ibv_mr(void)
{
	struct rpma_mr_local *mr = NULL;
	int ret = rpma_mr_from_ibv_mr(world.peer, the_ibv_mr, 0x1000,
				      RPMA_MR_USAGE_WRITE_DST, &mr);

	assert_int_equal(mr != NULL, ret == 0);
	ok(rpma_mr_dereg(&mr));
	return ret;
}

/* The ibv_mr is neither made nor destroyed by it. */
MOCK_TEST(from_ibv_mr__EACH_FAILURE)
{
	const struct failure failures[] = {
		{"malloc", 1, ENOMEM, RPMA_E_NOMEM, ""},
		{NULL, 0, 0, 0, ""},
	};
	struct ibv_pd *pd = NULL;
	char mem[8];

	world_peer();
	ok(rpma_peer_get_ibv_pd(world.peer, &pd));
	the_ibv_mr =
		ibv_reg_mr(pd, mem, sizeof(mem), IBV_ACCESS_RELAXED_ORDERING);
	assert_non_null(the_ibv_mr);
	EACH_FAILURE(from_ibv_mr, failures);
	ok(ibv_dereg_mr(the_ibv_mr));
	world_end();
}

/* Work requests and descriptors begin at the iova, whatever addr is. */
MOCK_TEST(from_ibv_mr__iova_IS_WHERE_IT_BEGINS)
{
	struct rpma_mr_local *mr = NULL;
	struct rpma_recv_wr wr;
	struct ibv_pd *pd = NULL;
	uint64_t first = 0;
	uint32_t lkey = 0;
	void *ptr = NULL;
	size_t size = 0;
	char desc[21];
	char mem[8];

	world_peer();
	ok(rpma_peer_get_ibv_pd(world.peer, &pd));
	the_ibv_mr = ibv_reg_mr(pd, mem, sizeof(mem), IBV_ACCESS_LOCAL_WRITE);
	ok(rpma_mr_from_ibv_mr(world.peer, the_ibv_mr, 0x1000,
			       RPMA_MR_USAGE_RECV, &mr));
	ok(rpma_wr_recv(mr, 2, 4, 1, &wr));
	assert_int_equal(wr.sge.addr, 0x1002);
	assert_int_equal(wr.sge.lkey, the_ibv_mr->lkey);
	ok(rpma_mr_get_descriptor(mr, desc));
	memcpy(&first, desc, sizeof(first));
	assert_int_equal(le64toh(first), 0x1000);
	ok(rpma_mr_get_ptr(mr, &ptr));
	assert_ptr_equal(ptr, mem);
	ok(rpma_mr_get_size(mr, &size));
	assert_int_equal(size, sizeof(mem));
	ok(rpma_mr_get_lkey(mr, &lkey));
	assert_int_equal(lkey, the_ibv_mr->lkey);
	ok(rpma_mr_dereg(&mr));
	ok(ibv_dereg_mr(the_ibv_mr));
	world_end();
}

MOCK_TEST(from_ibv_mr__another_domain_INVAL)
{
	struct rpma_peer *another = NULL;
	struct rpma_mr_local *mr = NULL;
	struct ibv_pd *pd = NULL;
	char mem[8];

	world_peer();
	ok(rpma_peer_new(MOCK_CTX, &another));
	ok(rpma_peer_get_ibv_pd(another, &pd));
	the_ibv_mr = ibv_reg_mr(pd, mem, sizeof(mem), 0);
	assert_int_equal(rpma_mr_from_ibv_mr(world.peer, the_ibv_mr, 0,
					     RPMA_MR_USAGE_SEND, &mr),
			 RPMA_E_INVAL);
	assert_null(mr);
	ok(ibv_dereg_mr(the_ibv_mr));
	ok(rpma_peer_delete(&another));
	world_end();
}

MOCK_TEST(reg__arguments_INVAL)
{
	struct rpma_mr_local *mr = NULL;
	char mem[8];

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

MOCK_TEST(getters__AGREE)
{
	uint32_t lkey = 0;
	size_t size = 0;
	void *ptr = NULL;

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

MOCK_TEST(advise__EACH_FAILURE)
{
	const struct failure failures[] = {
		{"advise_mr", 1, EOPNOTSUPP, RPMA_E_NOSUPP, NULL},
		{"advise_mr", 1, EFAULT, RPMA_E_INVAL, NULL},
		{"advise_mr", 1, EINVAL, RPMA_E_INVAL, NULL},
		{"advise_mr", 1, ENOMEM, RPMA_E_PROVIDER, NULL},
		{NULL, 0, 0, 0, "advise_mr(1, 2, 16 bytes)"},
	};

	world_regions(WORLD_ALL_USAGES);
	EACH_FAILURE(advise, failures);
	assert_int_equal(rpma_mr_advise(NULL, 0, 8, 0, 0), RPMA_E_INVAL);
	world_end();
}

TEST_MAIN()
