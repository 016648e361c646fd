/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/* Unit tests of the peer: protection domain and capabilities. */

#include "mocks.h"

#include <errno.h>

#include "peer.h"

static int new_peer(void)
{
	struct rpma_peer *peer = NULL;
	int ret = rpma_peer_new(MOCK_CTX, &peer);

	assert_int_equal(peer != NULL, ret == 0);
	ok(rpma_peer_delete(&peer));
	assert_null(peer);
	return ret;
}

/* Deletes a peer whose domain does not go; the object goes all the same. */
static int delete_peer(void)
{
	struct rpma_peer *peer = NULL;
	int ret;

	ok(rpma_peer_new(MOCK_CTX, &peer));
	ret = rpma_peer_delete(&peer);
	assert_null(peer);
	return ret;
}

MOCK_TEST(new__EACH_FAILURE)
{
	const struct failure failures[] = {
		{"query_device", 1, EIO, RPMA_E_PROVIDER, "query_device"},
		{"alloc_pd", 1, ENOMEM, RPMA_E_NOMEM, "query_device alloc_pd"},
		{"alloc_pd", 1, EIO, RPMA_E_PROVIDER, "query_device alloc_pd"},
		{"alloc_pd", 1, -1, RPMA_E_UNKNOWN, "query_device alloc_pd"},
		{"malloc", 1, ENOMEM, RPMA_E_NOMEM,
		 "query_device alloc_pd dealloc_pd"},
		{NULL, 0, 0, 0, "query_device alloc_pd dealloc_pd"},
	};

	EACH_FAILURE(new_peer, failures);
}

MOCK_TEST(delete__EACH_FAILURE)
{
	const struct failure failures[] = {
		{"dealloc_pd", 1, EBUSY, RPMA_E_PROVIDER,
		 "query_device alloc_pd dealloc_pd"},
		{NULL, 0, 0, 0, "query_device alloc_pd dealloc_pd"},
	};

	EACH_FAILURE(delete_peer, failures);
}

MOCK_TEST(delete__too_early_SAYS_WHAT_GOES_FIRST)
{
	mocks_listen();
	mock_fail("dealloc_pd", 1, EBUSY);
	assert_int_equal(delete_peer(), RPMA_E_PROVIDER);
	expect_said("delete regions, connections, requests and SRQs of the "
		    "peer first");
}

MOCK_TEST(arguments__NULL_INVAL)
{
	struct rpma_peer *peer = NULL;
	struct ibv_context *ctx = NULL;

	assert_int_equal(rpma_peer_new(NULL, &peer), RPMA_E_INVAL);
	assert_int_equal(rpma_peer_new(MOCK_CTX, NULL), RPMA_E_INVAL);
	assert_int_equal(rpma_peer_delete(NULL), RPMA_E_INVAL);
	ok(rpma_peer_delete(&peer));
	assert_int_equal(rpma_peer_get_ibv_context(NULL, &ctx), RPMA_E_INVAL);
	expect_trace("");
	ok(rpma_peer_new(MOCK_CTX, &peer));
	assert_int_equal(rpma_peer_get_ibv_context(peer, NULL), RPMA_E_INVAL);
	ok(rpma_peer_get_ibv_context(peer, &ctx));
	assert_ptr_equal(ctx, MOCK_CTX);
	ok(rpma_peer_delete(&peer));
}

static int access_of(int usage)
{
	struct rpma_peer *peer = NULL;
	struct ibv_mr *mr = NULL;
	char mem[8];

	ok(rpma_peer_new(MOCK_CTX, &peer));
	ok(rpma__peer_reg_mr(peer, mem, sizeof(mem), usage, &mr));
	ok(ibv_dereg_mr(mr));
	ok(rpma_peer_delete(&peer));
	return mock_access;
}

MOCK_TEST(access__of_every_usage)
{
	const int local = IBV_ACCESS_LOCAL_WRITE;

	assert_int_equal(access_of(RPMA_MR_USAGE_READ_SRC),
			 IBV_ACCESS_REMOTE_READ);
	assert_int_equal(access_of(RPMA_MR_USAGE_READ_DST), local);
	assert_int_equal(access_of(RPMA_MR_USAGE_WRITE_SRC), local);
	assert_int_equal(access_of(RPMA_MR_USAGE_WRITE_DST),
			 local | IBV_ACCESS_REMOTE_WRITE);
	assert_int_equal(access_of(RPMA_MR_USAGE_FLUSH_TYPE_VISIBILITY),
			 IBV_ACCESS_REMOTE_READ);
	assert_int_equal(access_of(RPMA_MR_USAGE_FLUSH_TYPE_PERSISTENT),
			 IBV_ACCESS_REMOTE_READ);
	assert_int_equal(access_of(RPMA_MR_USAGE_SEND), 0);
	assert_int_equal(access_of(RPMA_MR_USAGE_RECV), local);
	assert_int_equal(access_of(RPMA_MR_USAGE_ATOMIC),
			 local | IBV_ACCESS_REMOTE_READ |
				 IBV_ACCESS_REMOTE_ATOMIC);
	assert_int_equal(access_of(0xff), local | IBV_ACCESS_REMOTE_READ |
						  IBV_ACCESS_REMOTE_WRITE);
}

MOCK_TEST(access__iwarp_READ_DST_IS_WRITTEN_FROM_OUTSIDE)
{
	struct ibv_device iwarp = {.transport_type = IBV_TRANSPORT_IWARP};
	struct ibv_device *device = MOCK_CTX->device;

	MOCK_CTX->device = &iwarp;
	assert_int_equal(access_of(RPMA_MR_USAGE_READ_DST),
			 IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
	assert_int_equal(access_of(RPMA_MR_USAGE_READ_SRC),
			 IBV_ACCESS_REMOTE_READ);
	MOCK_CTX->device = device;
}

MOCK_TEST(access__no_atomics_NOSUPP)
{
	struct rpma_peer *peer = NULL;
	struct ibv_mr *mr = NULL;
	char mem[8];

	mock_attr.orig_attr.atomic_cap = IBV_ATOMIC_NONE;
	ok(rpma_peer_new(MOCK_CTX, &peer));
	mock_attr.orig_attr.atomic_cap = IBV_ATOMIC_HCA;
	mocks_reset();
	assert_int_equal(rpma__peer_reg_mr(peer, mem, sizeof(mem),
					   RPMA_MR_USAGE_ATOMIC, &mr),
			 RPMA_E_NOSUPP);
	expect_trace("");
	ok(rpma_peer_delete(&peer));
}

TEST_MAIN()
