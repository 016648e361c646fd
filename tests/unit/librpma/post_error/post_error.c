/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * Unit tests of what the log says of a post that the device refused: all that
 * is needed to find the operation, its memory and its key.
 */

#include "world.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>

#include "post_error.h"
#include "verbs_compat.h"

#define ALWAYS RPMA_F_COMPLETION_ALWAYS
#define CTX    ((void *)0x77)

static void begin(void)
{
	world_regions(WORLD_ALL_USAGES);
	world_conn(NULL);
	mocks_listen();
}

/* An address of the test's memory, as the log has it. */
static void expect_addr(const char *what, size_t offset)
{
	char part[64];

	snprintf(part, sizeof(part), "%s 0x%" PRIx64, what,
		 (uint64_t)(uintptr_t)world.mem + offset);
	expect_said(part);
}

static void refuse(const char *call, int err)
{
	mocks_reset();
	mock_fail(call, 1, err);
}

MOCK_TEST(write__refused_SAYS_BOTH_ENDS)
{
	begin();
	refuse("post_send", EINVAL);
	assert_int_equal(rpma_write(world.conn, world.remote, 8, world.mr, 16,
				    24, ALWAYS, CTX),
			 RPMA_E_PROVIDER);
	assert_int_equal(errno, EINVAL);
	expect_said("ibv_post_send(RDMA_WRITE, wr_id 0x77, send_flags 0x2, ");
	expect_addr("(RDMA_WRITE, wr_id 0x77, send_flags 0x2, addr", 16);
	expect_said("length 24, lkey 0x11");
	expect_addr("remote addr", 8);
	expect_said("rkey 0x22334455) failed: Invalid argument\n");
	world_end();
}

MOCK_TEST(send__refused_HAS_NO_REMOTE_END)
{
	begin();
	refuse("post_send", EIO);
	assert_int_equal(
		rpma_send_with_imm(world.conn, world.mr, 1, 2, ALWAYS, 3, CTX),
		RPMA_E_PROVIDER);
	expect_said("ibv_post_send(SEND_WITH_IMM, wr_id 0x77");
	expect_said("lkey 0x11) failed: ");
	refuse("post_send", EIO);
	assert_int_equal(rpma_send(world.conn, NULL, 0, 0, ALWAYS, CTX),
			 RPMA_E_PROVIDER);
	expect_said("ibv_post_send(SEND, wr_id 0x77, send_flags 0x2, no bytes) "
		    "failed: ");
	world_end();
}

MOCK_TEST(full__SAYS_WHAT_TO_DO)
{
	begin();
	refuse("post_send", ENOMEM);
	assert_int_equal(rpma_read(world.conn, world.mr, 0, world.remote, 0, 8,
				   ALWAYS, CTX),
			 RPMA_E_PROVIDER);
	expect_said("(RDMA_READ, ");
	expect_said("the queue is full: take completions first, or make "
		    "sq_size larger");
	world_end();
}

MOCK_TEST(recv__refused_SAYS_WHERE)
{
	begin();
	refuse("post_recv", EINVAL);
	assert_int_equal(rpma_recv(world.conn, world.mr, 4, 5, CTX),
			 RPMA_E_PROVIDER);
	assert_int_equal(errno, EINVAL);
	expect_addr("ibv_post_recv(wr_id 0x77, addr", 4);
	expect_said("length 5, lkey 0x11) failed: Invalid argument\n");
	world_end();
}

MOCK_TEST(srq_recv__refused_SAYS_WHERE)
{
	struct rpma_srq *srq = NULL;

	begin();
	ok(rpma_srq_new(world.peer, NULL, &srq));
	refuse("post_srq_recv", EINVAL);
	assert_int_equal(rpma_srq_recv(srq, world.mr, 4, 5, CTX),
			 RPMA_E_PROVIDER);
	expect_addr("ibv_post_srq_recv(wr_id 0x77, addr", 4);
	ok(rpma_srq_delete(&srq));
	world_end();
}

/* A chain: the one at which it stopped; a full queue is not an error of it. */
MOCK_TEST(chain__refused_SAYS_WHICH)
{
	struct rpma_send_wr *bad = NULL;
	struct rpma_send_wr wr;

	begin();
	ok(rpma_wr_atomic_fetch_add(world.conn, world.mr, 0, world.remote, 8, 1,
				    ALWAYS, 0x99, &wr));
	refuse("post_send", EINVAL);
	assert_int_equal(rpma_conn_post_send(world.conn, NULL, &wr, &bad),
			 RPMA_E_PROVIDER);
	expect_said("ibv_post_send(ATOMIC_FETCH_AND_ADD, wr_id 0x99");
	expect_addr("remote addr", 8);
	refuse("post_send", ENOMEM);
	assert_int_equal(rpma_conn_post_send(world.conn, NULL, &wr, &bad),
			 RPMA_E_AGAIN);
	assert_int_equal(mocks_said_count(), 0);
	world_end();
}

/* A hook: the queue is full, and the provider says so in errno. */
static void fill_queue(const char *call)
{
	(void)call;
	errno = ENOMEM;
}

/* Posts by each call that posts; returns the error of each chain. */
static int post_chains(struct rpma_srq *srq)
{
	struct rpma_send_wr *bad = NULL;
	struct rpma_recv_wr *bad_recv = NULL;
	struct rpma_recv_wr recv;
	struct rpma_send_wr wr;
	int ret;

	ok(rpma_wr_send(world.conn, NULL, 0, 0, ALWAYS, 1, &wr));
	ok(rpma_wr_recv(NULL, 0, 0, 1, &recv));
	errno = EACCES;
	ret = rpma_conn_post_send(world.conn, NULL, &wr, &bad);
	assert_ptr_equal(bad, &wr);
	assert_int_equal(
		rpma_conn_post_recv(world.conn, NULL, &recv, &bad_recv), ret);
	assert_ptr_equal(bad_recv, &recv);
	assert_int_equal(rpma_srq_post_recv(srq, &recv, &bad_recv), ret);
	return ret;
}

/* The results of verbs that mean err, by each provider. */
static void refuse_each(int result)
{
	mocks_reset();
	mock_fail("post_send", 1, result);
	mock_fail("post_recv", 1, result);
	mock_fail("post_srq_recv", 1, result);
}

MOCK_TEST(negative_errno__IS_AN_ERRNO)
{
	struct rpma_srq *srq = NULL;

	begin();
	ok(rpma_srq_new(world.peer, NULL, &srq));
	refuse_each(-ENOMEM);
	assert_int_equal(post_chains(srq), RPMA_E_AGAIN);
	assert_int_equal(mocks_said_count(), 0);
	refuse_each(-EINVAL);
	assert_int_equal(post_chains(srq), RPMA_E_PROVIDER);
	assert_int_equal(errno, EINVAL);
	refuse("post_send", -EINVAL);
	errno = EACCES;
	assert_int_equal(rpma_send(world.conn, NULL, 0, 0, ALWAYS, CTX),
			 RPMA_E_PROVIDER);
	assert_int_equal(errno, EINVAL);
	expect_said("failed: Invalid argument\n");
	refuse("post_recv", -ENOMEM);
	assert_int_equal(rpma_recv(world.conn, NULL, 0, 0, CTX),
			 RPMA_E_PROVIDER);
	assert_int_equal(errno, ENOMEM);
	expect_said("the queue is full");
	/* -1: the provider has set errno */
	mock_hook = fill_queue;
	refuse_each(-1);
	assert_int_equal(post_chains(srq), RPMA_E_AGAIN);
	mock_hook = NULL;
	ok(rpma_srq_delete(&srq));
	world_end();
}

MOCK_TEST(opcodes__EACH_BY_NAME)
{
	static const struct {
		enum ibv_wr_opcode opcode;
		uint32_t native;
		const char *name;
	} rows[] = {
		{IBV_WR_RDMA_WRITE, 0, "(RDMA_WRITE, "},
		{IBV_WR_RDMA_WRITE_WITH_IMM, 0, "(RDMA_WRITE_WITH_IMM, "},
		{IBV_WR_SEND, 0, "(SEND, "},
		{IBV_WR_SEND_WITH_IMM, 0, "(SEND_WITH_IMM, "},
		{IBV_WR_RDMA_READ, 0, "(RDMA_READ, "},
		{IBV_WR_ATOMIC_CMP_AND_SWP, 0, "(ATOMIC_CMP_AND_SWP, "},
		{IBV_WR_ATOMIC_FETCH_AND_ADD, 0, "(ATOMIC_FETCH_AND_ADD, "},
		{IBV_WR_TSO, 0, "(?, "},
		{IBV_WR_RDMA_WRITE, RPMA__NATIVE_ATOMIC_WRITE,
		 "ibv_wr_complete(ATOMIC_WRITE, "},
		{IBV_WR_RDMA_READ, RPMA__NATIVE_FLUSH,
		 "ibv_wr_complete(FLUSH, wr_id 0x0, send_flags 0x0, length 9"},
	};
	struct ibv_sge two[2] = {{.addr = 5, .length = 6, .lkey = 7}};

	begin();
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct rpma_send_wr wr = {
			.wr = {.opcode = rows[i].opcode,
			       .sg_list = two,
			       .num_sge = 2},
			.sge = {.length = 9},
			.native = rows[i].native,
		};

		mocks_reset();
		assert_int_equal(rpma__send_refused(&wr, EIO), RPMA_E_PROVIDER);
		expect_said(rows[i].name);
		if (rows[i].native != RPMA__NATIVE_FLUSH)
			expect_said("addr 0x5, length 6, lkey 0x7, and more");
	}
	world_end();
}

TEST_MAIN()
