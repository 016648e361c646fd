/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/* Unit tests of shared receive queues. */

#include "world.h"

#include <errno.h>

static struct rpma_srq_cfg *cfg;

static int new_srq(void)
{
	struct rpma_srq *srq = NULL;
	int ret = rpma_srq_new(world.peer, cfg, &srq);

	assert_int_equal(srq != NULL, ret == 0);
	ok(rpma_srq_delete(&srq));
	assert_null(srq);
	return ret;
}

static int delete_srq(void)
{
	struct rpma_srq *srq = NULL;
	int ret;

	ok(rpma_srq_new(world.peer, NULL, &srq));
	ret = rpma_srq_delete(&srq);
	assert_null(srq);
	return ret;
}

#define MADE "create_srq(20, 1, 0) create_ch create_cq(20, 0) notify "
#define GONE "destroy_cq(20) destroy_ch destroy_srq"

MOCK_TEST(new__default_EACH_FAILURE)
{
	const struct failure failures[] = {
		{"malloc", 1, ENOMEM, RPMA_E_NOMEM, ""},
		{"create_srq", 1, ENOMEM, RPMA_E_PROVIDER,
		 "create_srq(20, 1, 0)"},
		{"malloc", 2, ENOMEM, RPMA_E_NOMEM,
		 "create_srq(20, 1, 0) destroy_srq"},
		{"create_ch", 1, EMFILE, RPMA_E_PROVIDER,
		 "create_srq(20, 1, 0) create_ch destroy_srq"},
		{"create_cq", 1, EINVAL, RPMA_E_PROVIDER,
		 "create_srq(20, 1, 0) create_ch create_cq(20, 0) destroy_ch "
		 "destroy_srq"},
		{"notify", 1, EIO, RPMA_E_PROVIDER, MADE GONE},
		{NULL, 0, 0, 0, MADE GONE},
	};

	cfg = NULL;
	world_peer();
	EACH_FAILURE(new_srq, failures);
	world_end();
}

MOCK_TEST(delete__EACH_FAILURE)
{
	const struct failure failures[] = {
		{"destroy_cq", 1, EIO, RPMA_E_PROVIDER, MADE GONE},
		{"destroy_ch", 1, EIO, RPMA_E_PROVIDER, MADE GONE},
		{"destroy_srq", 1, EIO, RPMA_E_PROVIDER, MADE GONE},
	};

	world_peer();
	EACH_FAILURE(delete_srq, failures);
	world_end();
}

/* For each allocation; any other error leaves the pointer alone. */
MOCK_TEST(new__no_memory_LEAVES_NULL)
{
	struct rpma_srq *srq;
	int nth;

	world_peer();
	for (nth = 1; nth <= 2; nth++) {
		srq = (void *)7;
		mock_fail("malloc", nth, ENOMEM);
		assert_int_equal(rpma_srq_new(world.peer, NULL, &srq),
				 RPMA_E_NOMEM);
		assert_null(srq);
	}
	srq = (void *)7;
	mock_fail("create_srq", 1, ENOMEM);
	assert_int_equal(rpma_srq_new(world.peer, NULL, &srq), RPMA_E_PROVIDER);
	assert_ptr_equal(srq, (void *)7);
	world_end();
}

MOCK_TEST(new__rcq_size_0_HAS_NO_CQ)
{
	struct rpma_cq *rcq = (void *)7;
	struct rpma_srq *srq = NULL;

	world_peer();
	ok(rpma_srq_cfg_new(&cfg));
	ok(rpma_srq_cfg_set_rq_size(cfg, 5));
	ok(rpma_srq_cfg_set_rcq_size(cfg, 0));
	ok(rpma_srq_new(world.peer, cfg, &srq));
	ok(rpma_srq_get_rcq(srq, &rcq));
	assert_null(rcq);
	ok(rpma_srq_delete(&srq));
	expect_trace("create_srq(5, 1, 0) destroy_srq");
	ok(rpma_srq_cfg_delete(&cfg));
	world_end();
}

/* A CQ that is given is used, and left when the SRQ goes. */
MOCK_TEST(new__rcq_given_IS_NOT_OWNED)
{
	struct rpma_srq *srq = NULL;
	struct rpma_cq *rcq = NULL;
	struct rpma_cq *cq = NULL;

	world_peer();
	ok(rpma_cq_new(MOCK_CTX, 4, NULL, 0, NULL, &cq));
	ok(rpma_srq_cfg_new(&cfg));
	ok(rpma_srq_cfg_set_rcq(cfg, cq));
	mocks_reset();
	ok(rpma_srq_new(world.peer, cfg, &srq));
	ok(rpma_srq_get_rcq(srq, &rcq));
	assert_ptr_equal(rcq, cq);
	ok(rpma_srq_delete(&srq));
	expect_trace("create_srq(20, 1, 0) destroy_srq");
	ok(rpma_cq_delete(&cq));
	ok(rpma_srq_cfg_delete(&cfg));
	world_end();
}

MOCK_TEST(new__on_channel_object_IS_UNARMED)
{
	struct rpma_channel *channel = NULL;

	world_peer();
	ok(rpma_channel_new(MOCK_CTX, &channel));
	ok(rpma_srq_cfg_new(&cfg));
	ok(rpma_srq_cfg_set_channel(cfg, channel));
	mocks_reset();
	ok(new_srq());
	expect_trace("create_srq(20, 1, 0) create_cq(20, context, 0) "
		     "destroy_cq(20) destroy_srq");
	ok(rpma_channel_delete(&channel));
	ok(rpma_srq_cfg_delete(&cfg));
	world_end();
}

static struct rpma_srq *the_srq;

static int recv_on_srq(void)
{
	return rpma_srq_recv(the_srq, world.mr, 8, 16, (void *)77);
}

MOCK_TEST(recv__EACH_FAILURE)
{
	const struct failure failures[] = {
		{"post_srq_recv", 1, ENOMEM, RPMA_E_PROVIDER, "post_srq_recv"},
		{NULL, 0, 0, 0, "post_srq_recv"},
	};

	world_regions(WORLD_ALL_USAGES);
	ok(rpma_srq_new(world.peer, NULL, &the_srq));
	EACH_FAILURE(recv_on_srq, failures);
	assert_int_equal(mock_received[0].wr_id, 77);
	assert_int_equal(mock_received[0].num_sge, 1);
	assert_int_equal(mock_received_sge[0].addr, world.mem + 8);
	assert_int_equal(mock_received_sge[0].length, 16);
	ok(rpma_srq_recv(the_srq, NULL, 0, 0, NULL));
	assert_int_equal(mock_received[0].num_sge, 0);
	assert_int_equal(rpma_srq_recv(NULL, NULL, 0, 0, NULL), RPMA_E_INVAL);
	assert_int_equal(rpma_srq_recv(the_srq, NULL, 1, 0, NULL),
			 RPMA_E_INVAL);
	assert_int_equal(rpma_srq_recv(the_srq, NULL, 0, 1, NULL),
			 RPMA_E_INVAL);
	ok(rpma_srq_delete(&the_srq));
	world_end();
}

MOCK_TEST(post_recv__chain)
{
	struct rpma_recv_wr wr[2];
	struct rpma_recv_wr *bad = NULL;

	world_peer();
	ok(rpma_srq_new(world.peer, NULL, &the_srq));
	ok(rpma_wr_recv(NULL, 0, 0, 1, &wr[0]));
	ok(rpma_wr_recv(NULL, 0, 0, 2, &wr[1]));
	wr[0].wr.next = &wr[1].wr;
	ok(rpma_srq_post_recv(the_srq, wr, &bad));
	assert_int_equal(mock_received_count, 2);
	mock_fail("post_srq_recv", 1, ENOMEM);
	assert_int_equal(rpma_srq_post_recv(the_srq, wr, &bad), RPMA_E_AGAIN);
	assert_ptr_equal(bad, wr);
	mock_fail("post_srq_recv", 1, EINVAL);
	assert_int_equal(rpma_srq_post_recv(the_srq, wr, &bad),
			 RPMA_E_PROVIDER);
	assert_int_equal(rpma_srq_post_recv(NULL, wr, &bad), RPMA_E_INVAL);
	assert_int_equal(rpma_srq_post_recv(the_srq, NULL, &bad), RPMA_E_INVAL);
	assert_int_equal(rpma_srq_post_recv(the_srq, wr, NULL), RPMA_E_INVAL);
	ok(rpma_srq_delete(&the_srq));
	world_end();
}

MOCK_TEST(post_recv__one_is_wrong_NONE_IS_POSTED)
{
	struct rpma_recv_wr wr[2];
	struct rpma_recv_wr *bad = NULL;

	world_peer();
	ok(rpma_srq_new(world.peer, NULL, &the_srq));
	ok(rpma_wr_recv(NULL, 0, 0, 1, &wr[0]));
	ok(rpma_wr_recv(NULL, 0, 0, 2, &wr[1]));
	wr[0].wr.next = &wr[1].wr;
	mocks_reset();
	wr[1].reserved[0] = 1;
	assert_int_equal(rpma_srq_post_recv(the_srq, wr, &bad), RPMA_E_INVAL);
	assert_ptr_equal(bad, wr);
	wr[1].reserved[0] = 0;
	wr[1].wr.num_sge = 2;
	assert_int_equal(rpma_srq_post_recv(the_srq, wr, &bad), RPMA_E_INVAL);
	expect_trace("");
	ok(rpma_srq_delete(&the_srq));
	world_end();
}

MOCK_TEST(post_recv__pieces_AS_MANY_AS_ASKED_FOR)
{
	struct rpma_sge list[3];
	struct rpma_recv_wr *bad = NULL;
	struct rpma_recv_wr wr;
	struct ibv_sge sge[3];
	int i;

	world_regions(WORLD_ALL_USAGES);
	ok(rpma_srq_cfg_new(&cfg));
	ok(rpma_srq_cfg_set_max_sge(cfg, 2));
	ok(rpma_srq_new(world.peer, cfg, &the_srq));
	ok(rpma_srq_cfg_delete(&cfg));
	assert_int_equal(mock_srq_attr.attr.max_sge, 2);
	for (i = 0; i < 3; i++)
		list[i] = (struct rpma_sge){world.mr, (size_t)i * 8, 8};
	ok(rpma_wr_recv(NULL, 0, 0, 1, &wr));
	ok(rpma_wr_recv_set_sge_list(list, 2, sge, &wr));
	mocks_reset();
	ok(rpma_srq_post_recv(the_srq, &wr, &bad));
	expect_trace("post_srq_recv");
	assert_int_equal(mock_received[0].num_sge, 2);
	mocks_reset();
	ok(rpma_wr_recv_set_sge_list(list, 3, sge, &wr));
	assert_int_equal(rpma_srq_post_recv(the_srq, &wr, &bad), RPMA_E_INVAL);
	assert_ptr_equal(bad, &wr);
	expect_trace("");
	ok(rpma_srq_delete(&the_srq));
	world_end();
}

/* The device has 4. One is not looked at: 1.3 asks for it whatever there is. */
MOCK_TEST(new__more_pieces_than_the_device_INVAL)
{
	const int has = mock_attr.orig_attr.max_srq_sge;
	struct rpma_srq *srq = NULL;

	world_peer();
	ok(rpma_srq_cfg_new(&cfg));
	assert_int_equal(rpma_srq_cfg_set_max_sge(cfg, 0), RPMA_E_INVAL);
	ok(rpma_srq_cfg_set_max_sge(cfg, (uint32_t)has));
	ok(new_srq());
	mocks_reset();
	ok(rpma_srq_cfg_set_max_sge(cfg, (uint32_t)has + 1));
	assert_int_equal(rpma_srq_new(world.peer, cfg, &srq), RPMA_E_INVAL);
	ok(rpma_srq_cfg_set_max_sge(cfg, UINT32_MAX));
	assert_int_equal(rpma_srq_new(world.peer, cfg, &srq), RPMA_E_INVAL);
	assert_null(srq);
	expect_trace("");
	ok(rpma_srq_cfg_delete(&cfg));
	world_end();

	mock_attr.orig_attr.max_srq_sge = 0;
	world_peer();
	ok(new_srq());
	world_end();
	mock_attr.orig_attr.max_srq_sge = has;
}

static int set_limit(void)
{
	return rpma_srq_set_limit(the_srq, 7);
}

MOCK_TEST(set_limit__EACH_FAILURE)
{
	const struct failure failures[] = {
		{"modify_srq", 1, EOPNOTSUPP, RPMA_E_NOSUPP,
		 "modify_srq(7, 2)"},
		{"modify_srq", 1, ENOSYS, RPMA_E_NOSUPP, "modify_srq(7, 2)"},
		{"modify_srq", 1, EINVAL, RPMA_E_PROVIDER, "modify_srq(7, 2)"},
		{NULL, 0, 0, 0, "modify_srq(7, 2)"},
	};

	world_peer();
	ok(rpma_srq_new(world.peer, NULL, &the_srq));
	EACH_FAILURE(set_limit, failures);
	mocks_reset();
	ok(rpma_srq_set_limit(the_srq, 20));
	ok(rpma_srq_set_limit(the_srq, 0));
	assert_int_equal(rpma_srq_set_limit(the_srq, 21), RPMA_E_INVAL);
	assert_int_equal(rpma_srq_set_limit(NULL, 1), RPMA_E_INVAL);
	expect_trace("modify_srq(20, 2) modify_srq(0, 2)");
	ok(rpma_srq_delete(&the_srq));
	world_end();
}

/* Its RCQ goes with it, so not while somebody polls that. */
MOCK_TEST(delete__rcq_claimed_CLAIMED)
{
	struct rpma_srq *srq = NULL;
	struct rpma_cq *rcq = NULL;
	int me;

	world_peer();
	ok(rpma_srq_new(world.peer, NULL, &srq));
	ok(rpma_srq_get_rcq(srq, &rcq));
	ok(rpma_cq_claim(rcq, &me));
	assert_int_equal(rpma_srq_delete(&srq), RPMA_E_CLAIMED);
	assert_non_null(srq);
	ok(rpma_cq_release(rcq, &me));
	ok(rpma_srq_delete(&srq));
	world_end();
}

MOCK_TEST(arguments__INVAL)
{
	struct ibv_srq *ibv_srq = NULL;
	struct rpma_srq *srq = NULL;
	struct rpma_cq *rcq = NULL;

	world_peer();
	assert_int_equal(rpma_srq_new(NULL, NULL, &srq), RPMA_E_INVAL);
	assert_int_equal(rpma_srq_new(world.peer, NULL, NULL), RPMA_E_INVAL);
	assert_int_equal(rpma_srq_delete(NULL), RPMA_E_INVAL);
	ok(rpma_srq_delete(&srq));
	expect_trace("");
	assert_int_equal(rpma_srq_get_rcq(NULL, &rcq), RPMA_E_INVAL);
	assert_int_equal(rpma_srq_get_ibv_srq(NULL, &ibv_srq), RPMA_E_INVAL);
	ok(rpma_srq_new(world.peer, NULL, &srq));
	assert_int_equal(rpma_srq_get_rcq(srq, NULL), RPMA_E_INVAL);
	assert_int_equal(rpma_srq_get_ibv_srq(srq, NULL), RPMA_E_INVAL);
	ok(rpma_srq_get_ibv_srq(srq, &ibv_srq));
	assert_ptr_equal(ibv_srq->context, MOCK_CTX);
	ok(rpma_srq_delete(&srq));
	world_end();
}

TEST_MAIN()
