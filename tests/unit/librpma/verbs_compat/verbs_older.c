/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/* Unit tests of the build for an rdma-core without native operations. */

#include "world.h"

#include <errno.h>

#include "verbs_compat.h"

MOCK_TEST(caps__NOTHING_NATIVE)
{
	struct ibv_qp_init_attr_ex attr = {.comp_mask = IBV_QP_INIT_ATTR_PD};
	struct rpma__caps caps;

	mock_attr.device_cap_flags_ex = UINT64_MAX;
	ok(rpma__caps_query(MOCK_CTX, &caps));
	mock_attr.device_cap_flags_ex = 0;
	assert_false(caps.native_atomic_write);
	assert_false(caps.native_flush);
	rpma__qp_attr_set_ops(&caps, &attr);
	assert_int_equal(attr.comp_mask, IBV_QP_INIT_ATTR_PD);
	assert_int_equal(attr.send_ops_flags, 0);
}

MOCK_TEST(access__flush_IS_NO_RIGHT_OF_ITS_OWN)
{
	assert_int_equal(rpma__access_flush(RPMA_FLUSH_TYPE_VISIBILITY), 0);
	assert_int_equal(rpma__access_flush(RPMA_FLUSH_TYPE_PERSISTENT), 0);
}

/* Nothing makes such a work request, except whoever writes one by hand. */
MOCK_TEST(post__native_EOPNOTSUPP)
{
	struct rpma_send_wr wr = {.native = RPMA__NATIVE_FLUSH};
	struct rpma_send_wr *bad = NULL;

	world_conn(NULL);
	assert_int_equal(rpma_conn_post_send(world.conn, NULL, &wr, &bad),
			 RPMA_E_PROVIDER);
	assert_ptr_equal(bad, &wr);
	expect_trace("");
	world_end();
}

TEST_MAIN()
