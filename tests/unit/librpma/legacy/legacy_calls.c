/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/* Unit tests of the calls from before 1.0 that wait, and the atomic write. */

#include "world.h"

#include <errno.h>

#include "fork.h"
#include "librpma_legacy.h"

#define ALWAYS	 RPMA_F_COMPLETION_ALWAYS
#define ON_ERROR RPMA_F_COMPLETION_ON_ERROR
#define CTX	 ((void *)0x1111222233334444)

static int me;
static struct rpma_cq *cq;

static void begin(void)
{
	world_regions(WORLD_ALL_USAGES);
	world_conn(NULL);
	ok(rpma_conn_get_cq(world.conn, &cq));
}

static int wait_conn(void)
{
	return rpma_conn_completion_wait(world.conn);
}

static int prepare_conn(void)
{
	return rpma_conn_prepare_completions(world.conn);
}

static int get_conn(void)
{
	struct rpma_completion cmpl;

	return rpma_conn_completion_get(world.conn, &cmpl);
}

static int wait_with_event(void)
{
	mock_cq_event(cq);
	return rpma_conn_completion_wait(world.conn);
}

MOCK_TEST(wait__EACH_FAILURE)
{
	const struct failure no_event[] = {
		{"get_cq_event", 1, EAGAIN, RPMA_E_NO_COMPLETION,
		 "get_cq_event"},
		{"get_cq_event", 1, EIO, RPMA_E_PROVIDER, "get_cq_event"},
	};
	const struct failure event[] = {
		{"notify", 1, EIO, RPMA_E_PROVIDER,
		 "get_cq_event ack_cq(1) notify"},
		{NULL, 0, 0, 0, "get_cq_event ack_cq(1) notify"},
	};

	begin();
	EACH_FAILURE(wait_conn, no_event);
	EACH_FAILURE(prepare_conn, no_event);
	EACH_FAILURE(wait_with_event, event);
	mock_cq_event(cq);
	ok(prepare_conn());
	expect_trace("get_cq_event ack_cq(1) notify");
	world_end();
	assert_int_equal(wait_conn(), RPMA_E_INVAL);
	assert_int_equal(prepare_conn(), RPMA_E_INVAL);
}

MOCK_TEST(fd__THAT_OF_THE_CQ)
{
	int expected = -1;
	int fd = -1;

	begin();
	assert_int_equal(rpma_conn_get_completion_fd(NULL, &fd), RPMA_E_INVAL);
	assert_int_equal(rpma_conn_get_completion_fd(world.conn, NULL),
			 RPMA_E_INVAL);
	assert_int_equal(fd, -1);
	ok(rpma_cq_get_fd(cq, &expected));
	ok(rpma_conn_get_completion_fd(world.conn, &fd));
	assert_int_equal(fd, expected);
	world_end();
}

/* Whoever has claimed the connection or its CQ waits for its completions. */
static void expect_shared(void)
{
	int fd = -1;

	assert_int_equal(wait_conn(), RPMA_E_SHARED_CHANNEL);
	assert_int_equal(prepare_conn(), RPMA_E_SHARED_CHANNEL);
	assert_int_equal(rpma_conn_get_completion_fd(world.conn, &fd),
			 RPMA_E_SHARED_CHANNEL);
	assert_int_equal(fd, -1);
	/* an argument is looked at first */
	assert_int_equal(rpma_conn_get_completion_fd(world.conn, NULL),
			 RPMA_E_INVAL);
	expect_trace("");
}

MOCK_TEST(wait__claimed_SHARED_CHANNEL)
{
	begin();
	ok(rpma_conn_claim(world.conn, &me));
	expect_shared();
	ok(rpma_conn_release(world.conn, &me));
	ok(rpma_cq_claim(cq, &me));
	expect_shared();
	ok(rpma_cq_release(cq, &me));
	world_end();
}

/* One channel for CQ and RCQ: waiting could bring the other's event. */
MOCK_TEST(wait__shared_channel_POLLS_ONLY)
{
	struct rpma_conn_cfg *cfg = NULL;
	int shared_fd = -1;
	int fd = -1;

	ok(rpma_conn_cfg_new(&cfg));
	ok(rpma_conn_cfg_set_compl_channel(cfg, true));
	ok(rpma_conn_cfg_set_rcq_size(cfg, 7));
	world_conn(cfg);
	ok(rpma_conn_cfg_delete(&cfg));
	assert_int_equal(wait_conn(), RPMA_E_SHARED_CHANNEL);
	assert_int_equal(prepare_conn(), RPMA_E_SHARED_CHANNEL);
	ok(rpma_conn_get_compl_fd(world.conn, &shared_fd));
	ok(rpma_conn_get_completion_fd(world.conn, &fd));
	assert_int_equal(fd, shared_fd);
	assert_int_equal(get_conn(), RPMA_E_NO_COMPLETION);
	world_end();
}

MOCK_TEST(wait__channel_object_POLLS_ONLY)
{
	struct rpma_channel *channel = NULL;
	struct rpma_conn_cfg *cfg = NULL;
	int fd = -1;

	ok(rpma_channel_new(MOCK_CTX, &channel));
	ok(rpma_conn_cfg_new(&cfg));
	ok(rpma_conn_cfg_set_channel(cfg, channel));
	world_conn(cfg);
	ok(rpma_conn_cfg_delete(&cfg));
	assert_int_equal(wait_conn(), RPMA_E_SHARED_CHANNEL);
	assert_int_equal(prepare_conn(), RPMA_E_SHARED_CHANNEL);
	assert_int_equal(rpma_conn_get_completion_fd(world.conn, &fd),
			 RPMA_E_SHARED_CHANNEL);
	assert_int_equal(get_conn(), RPMA_E_NO_COMPLETION);
	world_end();
	ok(rpma_channel_delete(&channel));
}

static int do_write_atomic(void)
{
	return rpma_write_atomic(world.conn, world.remote, 16, world.mr, 3,
				 ALWAYS, CTX);
}

MOCK_TEST(write_atomic__POSTS_EIGHT_BYTES_FENCED)
{
	begin();
	ok(do_write_atomic());
	assert_int_equal(mock_sent_count, 1);
	assert_int_equal(mock_sent[0].opcode, IBV_WR_RDMA_WRITE);
	assert_int_equal(mock_sent[0].wr_id, (uintptr_t)CTX);
	assert_int_equal(mock_sent[0].send_flags,
			 IBV_SEND_FENCE | IBV_SEND_SIGNALED);
	assert_int_equal(mock_sent[0].num_sge, 1);
	assert_int_equal(mock_sent_sge[0].addr, (uintptr_t)world.mem + 3);
	assert_int_equal(mock_sent_sge[0].length, 8);
	assert_int_equal(mock_sent_sge[0].lkey, 0x11);
	assert_int_equal(mock_sent[0].wr.rdma.remote_addr,
			 (uintptr_t)world.mem + 16);
	assert_int_equal(mock_sent[0].wr.rdma.rkey, 0x22334455);
	ok(rpma_write_atomic(world.conn, world.remote, 0, world.mr, 0, ON_ERROR,
			     NULL));
	assert_int_equal(mock_sent[0].send_flags, IBV_SEND_FENCE);
	world_end();
}

MOCK_TEST(write_atomic__arguments_INVAL)
{
	struct rpma_conn *conn;

	begin();
	conn = world.conn;
	assert_int_equal(rpma_write_atomic(NULL, world.remote, 0, world.mr, 0,
					   ALWAYS, NULL),
			 RPMA_E_INVAL);
	assert_int_equal(
		rpma_write_atomic(conn, NULL, 0, world.mr, 0, ALWAYS, NULL),
		RPMA_E_INVAL);
	assert_int_equal(
		rpma_write_atomic(conn, world.remote, 0, NULL, 0, ALWAYS, NULL),
		RPMA_E_INVAL);
	assert_int_equal(
		rpma_write_atomic(conn, NULL, 0, NULL, 0, ALWAYS, NULL),
		RPMA_E_INVAL);
	assert_int_equal(
		rpma_write_atomic(conn, world.remote, 0, world.mr, 0, 0, NULL),
		RPMA_E_INVAL);
	assert_int_equal(rpma_write_atomic(conn, world.remote, 4, world.mr, 0,
					   ALWAYS, NULL),
			 RPMA_E_INVAL);
	expect_trace("");
	world_end();
}

MOCK_TEST(write_atomic__EACH_FAILURE)
{
	const struct failure failures[] = {
		{"post_send", 1, ENOMEM, RPMA_E_PROVIDER, NULL},
		{"post_send", 1, EIO, RPMA_E_PROVIDER, NULL},
		{NULL, 0, 0, 0, NULL},
	};

	begin();
	EACH_FAILURE(do_write_atomic, failures);
	ok(rpma_conn_claim(world.conn, &me));
	assert_int_equal(do_write_atomic(), RPMA_E_SHARED_CHANNEL);
	ok(rpma_conn_release(world.conn, &me));
	ok(rpma_conn_destroy_qp(world.conn, NULL));
	assert_int_equal(do_write_atomic(), RPMA_E_INVAL);
	world_end();
}

/* Claimed or not: the owner is the parent's. */
MOCK_TEST(inherited__FORKED)
{
	struct rpma_completion cmpl;
	int fd = -1;

	begin();
	ok(rpma_conn_claim(world.conn, &me));
	/* relaxed: one thread */
	atomic_fetch_add_explicit(&rpma__forks, 1, memory_order_relaxed);
	assert_int_equal(wait_conn(), RPMA_E_FORKED);
	assert_int_equal(prepare_conn(), RPMA_E_FORKED);
	assert_int_equal(get_conn(), RPMA_E_FORKED);
	assert_int_equal(rpma_conn_next_completion(world.conn, &cmpl),
			 RPMA_E_FORKED);
	assert_int_equal(rpma_cq_get_completion(cq, &cmpl), RPMA_E_FORKED);
	assert_int_equal(rpma_conn_get_completion_fd(world.conn, &fd),
			 RPMA_E_FORKED);
	assert_int_equal(do_write_atomic(), RPMA_E_FORKED);
	expect_trace("");
	/* relaxed: as above; the parent again, which can clean up */
	atomic_fetch_sub_explicit(&rpma__forks, 1, memory_order_relaxed);
	ok(rpma_conn_release(world.conn, &me));
	world_end();
}

TEST_MAIN()
