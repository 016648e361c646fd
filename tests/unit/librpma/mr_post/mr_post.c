/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/* Unit tests of addresses, keys and lengths of work requests. */

#include "world.h"

#include <string.h>

#include "mr_post.h"

MOCK_TEST(send_flags__of_every_flag)
{
	assert_int_equal(rpma__send_flags(RPMA_F_COMPLETION_ON_ERROR), 0);
	assert_int_equal(rpma__send_flags(RPMA_F_COMPLETION_ALWAYS),
			 IBV_SEND_SIGNALED);
	assert_int_equal(rpma__send_flags(2), IBV_SEND_SIGNALED);
	assert_int_equal(rpma__send_flags(4), 0);
}

MOCK_TEST(fill__part_of_a_region)
{
	struct rpma_sge part = {.offset = 8, .len = 16};
	struct rpma_send_wr wr;
	struct rpma_recv_wr recv;

	world_regions(WORLD_ALL_USAGES);
	part.mr = world.mr;
	memset(&wr, 0xff, sizeof(wr));
	memset(&recv, 0xff, sizeof(recv));
	rpma__mr_fill_rdma(&wr, IBV_WR_RDMA_READ, &part, world.remote, 32, 1,
			   5);
	assert_null(wr.wr.next);
	assert_int_equal(wr.native, 0);
	assert_int_equal(wr.wr.num_sge, 1);
	assert_ptr_equal(wr.wr.sg_list, &wr.sge);
	assert_int_equal(wr.sge.addr, (uintptr_t)world.mem + 8);
	assert_int_equal(wr.sge.length, 16);
	assert_int_equal(wr.sge.lkey, 0x11);
	assert_int_equal(wr.wr.wr.rdma.remote_addr, (uintptr_t)world.mem + 32);
	assert_int_equal(wr.wr.wr.rdma.rkey, 0x22334455);
	rpma__mr_fill_recv(&recv, &part, 6);
	assert_null(recv.wr.next);
	assert_ptr_equal(recv.wr.sg_list, &recv.sge);
	assert_int_equal(recv.sge.addr, (uintptr_t)world.mem + 8);
	assert_int_equal(recv.wr.wr_id, 6);
	world_end();
}

/* As 1.3: what does not fit is cut. */
MOCK_TEST(fill__length_IS_32_BITS)
{
	struct rpma_sge part = {.len = (1ULL << 32) + 5};
	struct rpma_send_wr wr;

	world_regions(WORLD_ALL_USAGES);
	part.mr = world.mr;
	rpma__mr_fill_send(&wr, IBV_WR_SEND, &part, 1, 0);
	assert_int_equal(wr.sge.length, 5);
	world_end();
}

MOCK_TEST(fill__no_region_NO_ELEMENT)
{
	const struct rpma_sge none = {0};
	struct rpma_send_wr wr;
	struct rpma_recv_wr recv;

	rpma__mr_fill_rdma(&wr, IBV_WR_RDMA_WRITE, &none, NULL, 0, 1, 0);
	assert_int_equal(wr.wr.num_sge, 0);
	assert_null(wr.wr.sg_list);
	assert_int_equal(wr.wr.wr.rdma.remote_addr, 0);
	rpma__mr_fill_recv(&recv, &none, 0);
	assert_int_equal(recv.wr.num_sge, 0);
	assert_null(recv.wr.sg_list);
}

TEST_MAIN()
