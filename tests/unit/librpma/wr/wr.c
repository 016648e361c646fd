/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * Unit tests of work requests: preparing posts nothing, chains post at once,
 * and a chain with something wrong in it not at all.
 */

#include "world.h"

#include <errno.h>
#include <string.h>

#define ALWAYS RPMA_F_COMPLETION_ALWAYS

static int me;

MOCK_TEST(prepare__EVERY_64_BIT_ID_AND_NO_CALL)
{
	const uint64_t id = 0xfedcba9876543210;
	struct rpma_recv_wr recv;
	struct rpma_send_wr wr;

	world_regions(WORLD_ALL_USAGES);
	world_conn(NULL);
	ok(rpma_wr_read(world.conn, world.mr, 0, world.remote, 0, 8, ALWAYS, id,
			&wr));
	assert_int_equal(wr.wr.wr_id, id);
	assert_ptr_equal(wr.wr.sg_list, &wr.sge);
	ok(rpma_wr_write(world.conn, world.remote, 0, world.mr, 0, 8, ALWAYS,
			 id, &wr));
	assert_int_equal(wr.wr.wr_id, id);
	ok(rpma_wr_write_with_imm(world.conn, world.remote, 0, world.mr, 0, 8,
				  ALWAYS, 1, id, &wr));
	assert_int_equal(wr.wr.wr_id, id);
	ok(rpma_wr_atomic_write(world.conn, world.remote, 0, "1234567", ALWAYS,
				id, &wr));
	assert_int_equal(wr.wr.wr_id, id);
	assert_memory_equal(&wr.data, "1234567", 8);
	assert_int_equal(wr.sge.addr, (uintptr_t)&wr.data);
	ok(rpma_wr_flush(world.conn, world.remote, 0, 8,
			 RPMA_FLUSH_TYPE_VISIBILITY, ALWAYS, id, &wr));
	assert_int_equal(wr.wr.wr_id, id);
	ok(rpma_wr_send(world.conn, world.mr, 0, 8, ALWAYS, id, &wr));
	assert_int_equal(wr.wr.wr_id, id);
	ok(rpma_wr_send_with_imm(world.conn, world.mr, 0, 8, ALWAYS, 1, id,
				 &wr));
	assert_int_equal(wr.wr.wr_id, id);
	assert_int_equal(wr.native, 0);
	ok(rpma_wr_recv(world.mr, 0, 8, id, &recv));
	assert_int_equal(recv.wr.wr_id, id);
	assert_null(recv.wr.next);
	expect_trace("");
	world_end();
}

MOCK_TEST(prepare__arguments_INVAL)
{
	struct rpma_recv_wr recv;
	struct rpma_send_wr wr;

	world_regions(WORLD_ALL_USAGES);
	world_conn(NULL);
	assert_int_equal(rpma_wr_read(world.conn, world.mr, 0, world.remote, 0,
				      8, ALWAYS, 0, NULL),
			 RPMA_E_INVAL);
	assert_int_equal(rpma_wr_write(world.conn, world.remote, 0, world.mr, 0,
				       8, ALWAYS, 0, NULL),
			 RPMA_E_INVAL);
	assert_int_equal(rpma_wr_write_with_imm(world.conn, world.remote, 0,
						world.mr, 0, 8, ALWAYS, 0, 0,
						NULL),
			 RPMA_E_INVAL);
	assert_int_equal(rpma_wr_atomic_write(world.conn, world.remote, 0,
					      "1234567", ALWAYS, 0, NULL),
			 RPMA_E_INVAL);
	assert_int_equal(rpma_wr_flush(world.conn, world.remote, 0, 8, 1,
				       ALWAYS, 0, NULL),
			 RPMA_E_INVAL);
	assert_int_equal(rpma_wr_send(world.conn, NULL, 0, 0, ALWAYS, 0, NULL),
			 RPMA_E_INVAL);
	assert_int_equal(rpma_wr_send_with_imm(world.conn, NULL, 0, 0, ALWAYS,
					       0, 0, NULL),
			 RPMA_E_INVAL);
	assert_int_equal(rpma_wr_recv(NULL, 0, 0, 0, NULL), RPMA_E_INVAL);
	assert_int_equal(rpma_wr_recv(NULL, 0, 1, 0, &recv), RPMA_E_INVAL);
	assert_int_equal(rpma_wr_send(NULL, NULL, 0, 0, ALWAYS, 0, &wr),
			 RPMA_E_INVAL);
	world_end();
}

static void chain_of(struct rpma_send_wr *wr, int count)
{
	int i;

	for (i = 0; i < count; i++) {
		ok(rpma_wr_send(world.conn, NULL, 0, 0, ALWAYS, (uint64_t)i,
				&wr[i]));
		if (i)
			wr[i - 1].wr.next = &wr[i].wr;
	}
}

MOCK_TEST(post_send__chain_ONE_DOORBELL)
{
	struct rpma_send_wr wr[4];
	struct rpma_send_wr *bad = (void *)7;

	world_conn(NULL);
	chain_of(wr, 4);
	ok(rpma_conn_post_send(world.conn, NULL, wr, &bad));
	expect_trace("post_send(4)");
	assert_int_equal(mock_sent_count, 4);
	assert_int_equal(mock_sent[3].wr_id, 3);
	assert_ptr_equal(bad, (void *)7);
	/* the chain is as it was */
	assert_ptr_equal(wr[0].wr.next, &wr[1]);
	world_end();
}

MOCK_TEST(post_send__refused_SAYS_WHERE)
{
	struct rpma_send_wr wr[2];
	struct rpma_send_wr *bad = NULL;

	world_conn(NULL);
	chain_of(wr, 2);
	mock_fail("post_send", 1, ENOMEM);
	assert_int_equal(rpma_conn_post_send(world.conn, NULL, wr, &bad),
			 RPMA_E_AGAIN);
	assert_ptr_equal(bad, &wr[0]);
	mock_fail("post_send", 1, EINVAL);
	assert_int_equal(rpma_conn_post_send(world.conn, NULL, wr, &bad),
			 RPMA_E_PROVIDER);
	world_end();
}

MOCK_TEST(post_recv__chain)
{
	struct rpma_recv_wr wr[2];
	struct rpma_recv_wr *bad = NULL;

	world_conn(NULL);
	ok(rpma_wr_recv(NULL, 0, 0, 1, &wr[0]));
	ok(rpma_wr_recv(NULL, 0, 0, 2, &wr[1]));
	wr[0].wr.next = &wr[1].wr;
	ok(rpma_conn_post_recv(world.conn, NULL, wr, &bad));
	assert_int_equal(mock_received_count, 2);
	mock_fail("post_recv", 1, ENOMEM);
	assert_int_equal(rpma_conn_post_recv(world.conn, NULL, wr, &bad),
			 RPMA_E_AGAIN);
	assert_ptr_equal(bad, &wr[0]);
	mock_fail("post_recv", 1, EINVAL);
	assert_int_equal(rpma_conn_post_recv(world.conn, NULL, wr, &bad),
			 RPMA_E_PROVIDER);
	world_end();
}

/* Whatever lay there before, reserved words of what is prepared are 0. */
MOCK_TEST(prepare__reserved_words_CLEARED)
{
	const uint64_t zero[2] = {0};
	struct rpma_recv_wr recv;
	struct rpma_send_wr wr;

	world_regions(WORLD_ALL_USAGES);
	world_conn(NULL);
	memset(&recv, 0xa5, sizeof(recv));
	ok(rpma_wr_recv(world.mr, 0, 8, 1, &recv));
	assert_memory_equal(recv.reserved, zero, sizeof(zero));
#define CLEARED(prepare)                                              \
	do {                                                          \
		memset(&wr, 0xa5, sizeof(wr));                        \
		ok(prepare);                                          \
		assert_memory_equal(wr.reserved, zero, sizeof(zero)); \
	} while (0)
	CLEARED(rpma_wr_read(world.conn, world.mr, 0, world.remote, 0, 8,
			     ALWAYS, 1, &wr));
	CLEARED(rpma_wr_write(world.conn, world.remote, 0, world.mr, 0, 8,
			      ALWAYS, 1, &wr));
	CLEARED(rpma_wr_write_with_imm(world.conn, world.remote, 0, world.mr, 0,
				       8, ALWAYS, 1, 1, &wr));
	CLEARED(rpma_wr_atomic_write(world.conn, world.remote, 0, "1234567",
				     ALWAYS, 1, &wr));
	CLEARED(rpma_wr_flush(world.conn, world.remote, 0, 8,
			      RPMA_FLUSH_TYPE_VISIBILITY, ALWAYS, 1, &wr));
	CLEARED(rpma_wr_send(world.conn, world.mr, 0, 8, ALWAYS, 1, &wr));
	CLEARED(rpma_wr_send_with_imm(world.conn, world.mr, 0, 8, ALWAYS, 1, 1,
				      &wr));
	CLEARED(rpma_wr_atomic_cmp_swp(world.conn, world.mr, 0, world.remote, 0,
				       1, 2, ALWAYS, 1, &wr));
	CLEARED(rpma_wr_atomic_fetch_add(world.conn, world.mr, 0, world.remote,
					 0, 1, ALWAYS, 1, &wr));
	world_end();
}

MOCK_TEST(atomic_cmp_swp__AS_VERBS_WANT_IT)
{
	struct rpma_send_wr wr;
	struct rpma_send_wr *bad = NULL;

	world_regions(WORLD_ALL_USAGES);
	world_conn(NULL);
	ok(rpma_wr_atomic_cmp_swp(world.conn, world.mr, 16, world.remote, 8, 3,
				  4, ALWAYS | RPMA_F_FENCE, 77, &wr));
	ok(rpma_conn_post_send(world.conn, NULL, &wr, &bad));
	expect_trace("post_send");
	assert_int_equal(mock_sent[0].opcode, IBV_WR_ATOMIC_CMP_AND_SWP);
	assert_int_equal(mock_sent[0].wr_id, 77);
	assert_int_equal(mock_sent[0].send_flags,
			 IBV_SEND_SIGNALED | IBV_SEND_FENCE);
	assert_int_equal(mock_sent[0].wr.atomic.remote_addr,
			 (uintptr_t)world.mem + 8);
	assert_int_equal(mock_sent[0].wr.atomic.rkey, mock_mr->rkey);
	assert_int_equal(mock_sent[0].wr.atomic.compare_add, 3);
	assert_int_equal(mock_sent[0].wr.atomic.swap, 4);
	assert_int_equal(mock_sent[0].num_sge, 1);
	assert_int_equal(mock_sent_sge[0].addr, (uintptr_t)world.mem + 16);
	assert_int_equal(mock_sent_sge[0].length, 8);
	assert_int_equal(mock_sent_sge[0].lkey, mock_mr->lkey);
	world_end();
}

MOCK_TEST(atomic_fetch_add__AS_VERBS_WANT_IT)
{
	struct rpma_send_wr wr;
	struct rpma_send_wr *bad = NULL;

	world_regions(WORLD_ALL_USAGES);
	world_conn(NULL);
	ok(rpma_wr_atomic_fetch_add(world.conn, world.mr, 16, world.remote, 8,
				    5, RPMA_F_COMPLETION_ON_ERROR, 77, &wr));
	ok(rpma_conn_post_send(world.conn, NULL, &wr, &bad));
	assert_int_equal(mock_sent[0].opcode, IBV_WR_ATOMIC_FETCH_AND_ADD);
	assert_int_equal(mock_sent[0].send_flags, 0);
	assert_int_equal(mock_sent[0].wr.atomic.remote_addr,
			 (uintptr_t)world.mem + 8);
	assert_int_equal(mock_sent[0].wr.atomic.compare_add, 5);
	assert_int_equal(mock_sent_sge[0].addr, (uintptr_t)world.mem + 16);
	world_end();
}

static int cmp_swp(size_t dst_offset)
{
	struct rpma_send_wr wr;

	return rpma_wr_atomic_cmp_swp(world.conn, world.mr, 0, world.remote,
				      dst_offset, 1, 2, ALWAYS, 1, &wr);
}

static int fetch_add(size_t dst_offset)
{
	struct rpma_send_wr wr;

	return rpma_wr_atomic_fetch_add(world.conn, world.mr, 0, world.remote,
					dst_offset, 1, ALWAYS, 1, &wr);
}

/* The address counts, not where in its region it is. */
MOCK_TEST(atomics__not_aligned_INVAL)
{
	world_regions(WORLD_ALL_USAGES);
	world_conn(NULL);
	ok(cmp_swp(8));
	ok(fetch_add(8));
	assert_int_equal(cmp_swp(4), RPMA_E_INVAL);
	assert_int_equal(fetch_add(7), RPMA_E_INVAL);
	world_end();
}

MOCK_TEST(atomics__device_has_none_NOSUPP)
{
	mock_attr.orig_attr.atomic_cap = IBV_ATOMIC_NONE;
	world_regions(WORLD_ALL_USAGES);
	mock_attr.orig_attr.atomic_cap = IBV_ATOMIC_HCA;
	world_conn(NULL);
	assert_int_equal(cmp_swp(0), RPMA_E_NOSUPP);
	assert_int_equal(fetch_add(0), RPMA_E_NOSUPP);
	world_end();
}

/* Three pieces in the order given, in a connection that takes three. */
MOCK_TEST(set_sge_list__PIECES_IN_ORDER)
{
	struct rpma_conn_cfg *cfg = NULL;
	struct rpma_sge list[3];
	struct ibv_sge sge[3];
	struct rpma_send_wr wr;
	struct rpma_send_wr *bad = NULL;
	int i;

	ok(rpma_conn_cfg_new(&cfg));
	ok(rpma_conn_cfg_set_max_send_sge(cfg, 3));
	world_regions(WORLD_ALL_USAGES);
	world_conn(cfg);
	for (i = 0; i < 3; i++)
		list[i] = (struct rpma_sge){world.mr, (size_t)(2 - i) * 8,
					    (size_t)i + 1};
	ok(rpma_wr_send(world.conn, NULL, 0, 0, ALWAYS, 7, &wr));
	ok(rpma_wr_set_sge_list(list, 3, sge, &wr));
	ok(rpma_conn_post_send(world.conn, NULL, &wr, &bad));
	assert_int_equal(mock_sent[0].num_sge, 3);
	for (i = 0; i < 3; i++) {
		assert_int_equal(mock_sent[0].sg_list[i].addr,
				 (uintptr_t)world.mem + list[i].offset);
		assert_int_equal(mock_sent[0].sg_list[i].length, list[i].len);
		assert_int_equal(mock_sent[0].sg_list[i].lkey, mock_mr->lkey);
	}
	ok(rpma_wr_read(world.conn, world.mr, 0, world.remote, 0, 8, ALWAYS, 7,
			&wr));
	ok(rpma_wr_set_sge_list(list, 2, sge, &wr));
	assert_int_equal(wr.wr.num_sge, 2);
	ok(rpma_wr_write(world.conn, world.remote, 0, world.mr, 0, 8, ALWAYS, 7,
			 &wr));
	ok(rpma_wr_set_sge_list(list, 2, sge, &wr));
	ok(rpma_conn_cfg_delete(&cfg));
	world_end();
}

MOCK_TEST(recv_set_sge_list__PIECES_IN_ORDER)
{
	struct rpma_conn_cfg *cfg = NULL;
	struct rpma_recv_wr *bad = NULL;
	struct rpma_recv_wr wr;
	struct rpma_sge list[2];
	struct ibv_sge sge[2];

	ok(rpma_conn_cfg_new(&cfg));
	ok(rpma_conn_cfg_set_max_recv_sge(cfg, 2));
	world_regions(WORLD_ALL_USAGES);
	world_conn(cfg);
	list[0] = (struct rpma_sge){world.mr, 32, 16};
	list[1] = (struct rpma_sge){world.mr, 0, 8};
	ok(rpma_wr_recv(NULL, 0, 0, 7, &wr));
	ok(rpma_wr_recv_set_sge_list(list, 2, sge, &wr));
	ok(rpma_conn_post_recv(world.conn, NULL, &wr, &bad));
	assert_int_equal(mock_received[0].num_sge, 2);
	assert_int_equal(mock_received[0].sg_list[0].addr,
			 (uintptr_t)world.mem + 32);
	assert_int_equal(mock_received[0].sg_list[1].length, 8);
	ok(rpma_conn_cfg_delete(&cfg));
	world_end();
}

/* What is refused leaves the work request and the caller's elements alone. */
MOCK_TEST(set_sge_list__arguments_INVAL)
{
	struct rpma_sge list[2];
	struct rpma_recv_wr recv;
	struct rpma_send_wr wr;
	struct ibv_sge sge[2];

	world_regions(WORLD_ALL_USAGES);
	world_conn(NULL);
	list[0] = (struct rpma_sge){world.mr, 0, 8};
	list[1] = list[0];
	ok(rpma_wr_send(world.conn, world.mr, 0, 8, ALWAYS, 7, &wr));
	ok(rpma_wr_recv(world.mr, 0, 8, 7, &recv));
	memset(sge, 0xa5, sizeof(sge));
#define REFUSED(list, count, sge)                                             \
	do {                                                                  \
		assert_int_equal(rpma_wr_set_sge_list(list, count, sge, &wr), \
				 RPMA_E_INVAL);                               \
		assert_int_equal(                                             \
			rpma_wr_recv_set_sge_list(list, count, sge, &recv),   \
			RPMA_E_INVAL);                                        \
	} while (0)
	REFUSED(NULL, 1, sge);
	REFUSED(list, 0, sge);
	REFUSED(list, -1, sge);
	REFUSED(list, 2, NULL);
	list[1].len = (size_t)UINT32_MAX + 1;
	REFUSED(list, 2, sge);
	list[1] = (struct rpma_sge){NULL, 0, 8};
	REFUSED(list, 2, sge);
	assert_int_equal(rpma_wr_set_sge_list(list, 1, sge, NULL),
			 RPMA_E_INVAL);
	assert_int_equal(rpma_wr_recv_set_sge_list(list, 1, sge, NULL),
			 RPMA_E_INVAL);
	assert_ptr_equal(wr.wr.sg_list, &wr.sge);
	assert_ptr_equal(recv.wr.sg_list, &recv.sge);
	assert_int_equal(sge[0].length, 0xa5a5a5a5);
	world_end();
}

/* Their bytes are 8 that the library chose. */
MOCK_TEST(set_sge_list__of_flush_or_atomic_INVAL)
{
	struct rpma_send_wr wr;
	struct rpma_sge list;
	struct ibv_sge sge;

	world_regions(WORLD_ALL_USAGES);
	world_conn(NULL);
	list = (struct rpma_sge){world.mr, 0, 8};
	ok(rpma_wr_flush(world.conn, world.remote, 0, 8,
			 RPMA_FLUSH_TYPE_VISIBILITY, ALWAYS, 1, &wr));
	assert_int_equal(rpma_wr_set_sge_list(&list, 1, &sge, &wr),
			 RPMA_E_INVAL);
	ok(rpma_wr_atomic_write(world.conn, world.remote, 0, "1234567", ALWAYS,
				1, &wr));
	assert_int_equal(rpma_wr_set_sge_list(&list, 1, &sge, &wr),
			 RPMA_E_INVAL);
	ok(rpma_wr_atomic_cmp_swp(world.conn, world.mr, 0, world.remote, 0, 1,
				  2, ALWAYS, 1, &wr));
	assert_int_equal(rpma_wr_set_sge_list(&list, 1, &sge, &wr),
			 RPMA_E_INVAL);
	ok(rpma_wr_atomic_fetch_add(world.conn, world.mr, 0, world.remote, 0, 1,
				    ALWAYS, 1, &wr));
	assert_int_equal(rpma_wr_set_sge_list(&list, 1, &sge, &wr),
			 RPMA_E_INVAL);
	/* what is native is none of ours either */
	ok(rpma_wr_send(world.conn, NULL, 0, 0, ALWAYS, 1, &wr));
	wr.native = 1;
	assert_int_equal(rpma_wr_set_sge_list(&list, 1, &sge, &wr),
			 RPMA_E_INVAL);
	world_end();
}

/* The last of a chain is wrong: the first is not posted either. */
MOCK_TEST(post_send__one_is_wrong_NONE_IS_POSTED)
{
	struct rpma_send_wr *bad = NULL;
	struct rpma_send_wr wr[3];

	world_conn(NULL);
	chain_of(wr, 3);
	wr[2].reserved[0] = 1;
	assert_int_equal(rpma_conn_post_send(world.conn, NULL, wr, &bad),
			 RPMA_E_INVAL);
	assert_ptr_equal(bad, &wr[0]);
	wr[2].reserved[0] = 0;
	wr[1].reserved[1] = 1;
	assert_int_equal(rpma_conn_post_send(world.conn, NULL, wr, &bad),
			 RPMA_E_INVAL);
	wr[1].reserved[1] = 0;
	wr[2].wr.num_sge = 2;
	assert_int_equal(rpma_conn_post_send(world.conn, NULL, wr, &bad),
			 RPMA_E_INVAL);
	wr[2].wr.num_sge = -1;
	assert_int_equal(rpma_conn_post_send(world.conn, NULL, wr, &bad),
			 RPMA_E_INVAL);
	expect_trace("");
	wr[2].wr.num_sge = 0;
	ok(rpma_conn_post_send(world.conn, NULL, wr, &bad));
	world_end();
}

MOCK_TEST(post_recv__one_is_wrong_NONE_IS_POSTED)
{
	struct rpma_recv_wr *bad = NULL;
	struct rpma_recv_wr wr[2];

	world_conn(NULL);
	ok(rpma_wr_recv(NULL, 0, 0, 1, &wr[0]));
	ok(rpma_wr_recv(NULL, 0, 0, 2, &wr[1]));
	wr[0].wr.next = &wr[1].wr;
	wr[1].reserved[1] = 1;
	assert_int_equal(rpma_conn_post_recv(world.conn, NULL, wr, &bad),
			 RPMA_E_INVAL);
	assert_ptr_equal(bad, &wr[0]);
	wr[1].reserved[1] = 0;
	wr[1].wr.num_sge = 2;
	assert_int_equal(rpma_conn_post_recv(world.conn, NULL, wr, &bad),
			 RPMA_E_INVAL);
	expect_trace("");
	world_end();
}

MOCK_TEST(post__only_the_owner)
{
	struct rpma_send_wr wr;
	struct rpma_send_wr *bad = NULL;
	struct rpma_recv_wr recv;
	struct rpma_recv_wr *bad_recv = NULL;

	world_conn(NULL);
	chain_of(&wr, 1);
	ok(rpma_wr_recv(NULL, 0, 0, 1, &recv));
	assert_int_equal(rpma_conn_post_send(world.conn, &me, &wr, &bad),
			 RPMA_E_SHARED_CHANNEL);
	ok(rpma_conn_claim(world.conn, &me));
	assert_int_equal(rpma_conn_post_send(world.conn, NULL, &wr, &bad),
			 RPMA_E_SHARED_CHANNEL);
	assert_ptr_equal(bad, &wr);
	assert_int_equal(rpma_conn_post_recv(world.conn, &wr, &recv, &bad_recv),
			 RPMA_E_SHARED_CHANNEL);
	assert_ptr_equal(bad_recv, &recv);
	ok(rpma_conn_post_send(world.conn, &me, &wr, &bad));
	ok(rpma_conn_post_recv(world.conn, &me, &recv, &bad_recv));
	ok(rpma_conn_release(world.conn, &me));
	world_end();
}

MOCK_TEST(post__arguments_INVAL)
{
	struct rpma_send_wr wr;
	struct rpma_send_wr *bad = NULL;
	struct rpma_recv_wr recv;
	struct rpma_recv_wr *bad_recv = NULL;

	world_conn(NULL);
	chain_of(&wr, 1);
	ok(rpma_wr_recv(NULL, 0, 0, 1, &recv));
	assert_int_equal(rpma_conn_post_send(NULL, NULL, &wr, &bad),
			 RPMA_E_INVAL);
	assert_int_equal(rpma_conn_post_send(world.conn, NULL, NULL, &bad),
			 RPMA_E_INVAL);
	assert_int_equal(rpma_conn_post_send(world.conn, NULL, &wr, NULL),
			 RPMA_E_INVAL);
	assert_int_equal(rpma_conn_post_recv(NULL, NULL, &recv, &bad_recv),
			 RPMA_E_INVAL);
	assert_int_equal(rpma_conn_post_recv(world.conn, NULL, NULL, &bad_recv),
			 RPMA_E_INVAL);
	assert_int_equal(rpma_conn_post_recv(world.conn, NULL, &recv, NULL),
			 RPMA_E_INVAL);
	ok(rpma_conn_destroy_qp(world.conn, NULL));
	assert_int_equal(rpma_conn_post_send(world.conn, NULL, &wr, &bad),
			 RPMA_E_INVAL);
	assert_int_equal(
		rpma_conn_post_recv(world.conn, NULL, &recv, &bad_recv),
		RPMA_E_INVAL);
	world_end();
}

TEST_MAIN()
