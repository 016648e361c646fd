/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/* Unit tests of waiting on the shared channel of a connection. */

#include "world.h"

#include <errno.h>

static int me;
static struct rpma_cq *cq;
static struct rpma_cq *rcq;

static void begin(void)
{
	struct rpma_conn_cfg *cfg = NULL;

	ok(rpma_conn_cfg_new(&cfg));
	ok(rpma_conn_cfg_set_compl_channel(cfg, true));
	ok(rpma_conn_cfg_set_rcq_size(cfg, 7));
	world_conn(cfg);
	ok(rpma_conn_cfg_delete(&cfg));
	ok(rpma_conn_get_cq(world.conn, &cq));
	ok(rpma_conn_get_rcq(world.conn, &rcq));
}

static int wait_for_nothing(void)
{
	struct rpma_cq *fired = (void *)7;
	bool is_rcq = true;
	int ret = rpma_conn_wait(world.conn, 0, &fired, &is_rcq);

	assert_ptr_equal(fired, (void *)7);
	assert_true(is_rcq);
	return ret;
}

MOCK_TEST(wait__no_event)
{
	const struct failure failures[] = {
		{"get_cq_event", 1, EAGAIN, RPMA_E_NO_COMPLETION,
		 "get_cq_event"},
		{"get_cq_event", 1, EINTR, RPMA_E_NO_COMPLETION,
		 "get_cq_event"},
		{"get_cq_event", 1, EIO, RPMA_E_PROVIDER, "get_cq_event"},
	};

	begin();
	EACH_FAILURE(wait_for_nothing, failures);
	/* whoever waited has left both */
	ok(rpma_cq_claim(cq, &me));
	ok(rpma_cq_claim(rcq, &me));
	ok(rpma_cq_release(cq, &me));
	ok(rpma_cq_release(rcq, &me));
	world_end();
}

MOCK_TEST(wait__event_SAYS_WHOSE)
{
	struct rpma_cq *fired = NULL;
	bool is_rcq = false;

	begin();
	mock_cq_event(rcq);
	ok(rpma_conn_wait(world.conn, 99, &fired, &is_rcq));
	assert_ptr_equal(fired, rcq);
	assert_true(is_rcq);
	expect_trace("get_cq_event ack_cq(1) notify");
	mock_cq_event(cq);
	ok(rpma_conn_wait(world.conn, 0, &fired, &is_rcq));
	assert_ptr_equal(fired, cq);
	assert_false(is_rcq);
	mock_cq_event(rcq);
	ok(rpma_conn_wait(world.conn, 0, &fired, NULL));
	assert_ptr_equal(fired, rcq);
	world_end();
}

/* Deleting the connection acknowledges what nobody has. */
MOCK_TEST(wait_event__NOT_ACKED_NOT_ARMED)
{
	struct rpma_cq *fired = NULL;
	bool is_rcq = false;

	begin();
	mock_cq_event(rcq);
	ok(rpma_conn_wait_event(world.conn, &fired, &is_rcq));
	assert_ptr_equal(fired, rcq);
	assert_true(is_rcq);
	mock_cq_event(cq);
	ok(rpma_conn_wait_event(world.conn, &fired, NULL));
	assert_ptr_equal(fired, cq);
	mock_cq_event(rcq);
	ok(rpma_conn_wait_event(world.conn, &fired, &is_rcq));
	expect_trace("get_cq_event get_cq_event get_cq_event");
	mocks_reset();
	ok(rpma_cq_ack(rcq, 1));
	expect_trace("ack_cq(1)");
	/* whoever waited has left */
	ok(rpma_cq_claim(cq, &me));
	fired = (void *)7;
	assert_int_equal(rpma_conn_wait_event(world.conn, &fired, &is_rcq),
			 RPMA_E_SHARED_CHANNEL);
	assert_ptr_equal(fired, (void *)7);
	ok(rpma_cq_release(cq, &me));
	mocks_reset();
	ok(rpma_conn_delete(&world.conn));
	expect_trace("destroy_qp dereg_mr ack_cq(1) destroy_cq(7) ack_cq(1) "
		     "destroy_cq(10) destroy_id destroy_ch destroy_evch");
	world_end();
}

MOCK_TEST(wait_event__strange_cq_UNKNOWN_AND_ACKED)
{
	struct rpma_cq *fired = (void *)7;

	begin();
	mock_cq_event(NULL);
	assert_int_equal(rpma_conn_wait_event(world.conn, &fired, NULL),
			 RPMA_E_UNKNOWN);
	expect_trace("get_cq_event ack_cq(1)");
	assert_ptr_equal(fired, (void *)7);
	mock_fail("get_cq_event", 1, EAGAIN);
	assert_int_equal(rpma_conn_wait_event(world.conn, &fired, NULL),
			 RPMA_E_NO_COMPLETION);
	assert_int_equal(rpma_conn_wait_event(NULL, &fired, NULL),
			 RPMA_E_INVAL);
	assert_int_equal(rpma_conn_wait_event(world.conn, NULL, NULL),
			 RPMA_E_INVAL);
	world_end();
}

/* The completions are there, so it has to be known where. */
MOCK_TEST(wait__arm_fails_PROVIDER_AND_SAYS_WHOSE)
{
	struct rpma_cq *fired = NULL;
	bool is_rcq = false;

	begin();
	mock_cq_event(rcq);
	mock_fail("notify", 1, EIO);
	assert_int_equal(rpma_conn_wait(world.conn, 0, &fired, &is_rcq),
			 RPMA_E_PROVIDER);
	assert_ptr_equal(fired, rcq);
	assert_true(is_rcq);
	expect_trace("get_cq_event ack_cq(1) notify");
	world_end();
}

MOCK_TEST(wait__strange_cq_UNKNOWN_AND_ACKED)
{
	begin();
	mocks_listen();
	mock_cq_event(NULL);
	assert_int_equal(wait_for_nothing(), RPMA_E_UNKNOWN);
	expect_said("ibv_get_cq_event() returned an event of a CQ of another "
		    "connection");
	expect_trace("get_cq_event ack_cq(1)");
	world_end();
}

MOCK_TEST(wait__claimed_SHARED_CHANNEL)
{
	struct rpma_cq *claimed[2];
	int fd = -1;
	int i;

	begin();
	claimed[0] = cq;
	claimed[1] = rcq;
	for (i = 0; i < 2; i++) {
		ok(rpma_cq_claim(claimed[i], &me));
		assert_int_equal(wait_for_nothing(), RPMA_E_SHARED_CHANNEL);
		assert_int_equal(rpma_conn_get_compl_fd(world.conn, &fd),
				 RPMA_E_SHARED_CHANNEL);
		ok(rpma_cq_release(claimed[i], &me));
	}
	ok(rpma_conn_claim(world.conn, &me));
	assert_int_equal(wait_for_nothing(), RPMA_E_SHARED_CHANNEL);
	ok(rpma_conn_release(world.conn, &me));
	expect_trace("");
	ok(rpma_conn_get_compl_fd(world.conn, &fd));
	assert_true(fd > 0);
	world_end();
}

MOCK_TEST(wait__not_shared_NOT_SHARED_CHNL)
{
	int fd = -1;

	world_conn(NULL);
	assert_int_equal(wait_for_nothing(), RPMA_E_NOT_SHARED_CHNL);
	assert_int_equal(rpma_conn_wait_event(world.conn, &cq, NULL),
			 RPMA_E_NOT_SHARED_CHNL);
	assert_int_equal(rpma_conn_get_compl_fd(world.conn, &fd),
			 RPMA_E_NOT_SHARED_CHNL);
	expect_trace("");
	world_end();
}

MOCK_TEST(arguments__INVAL)
{
	struct rpma_cq *fired = NULL;
	int fd = -1;

	begin();
	assert_int_equal(rpma_conn_wait(NULL, 0, &fired, NULL), RPMA_E_INVAL);
	assert_int_equal(rpma_conn_wait(world.conn, 0, NULL, NULL),
			 RPMA_E_INVAL);
	assert_int_equal(rpma_conn_get_compl_fd(NULL, &fd), RPMA_E_INVAL);
	assert_int_equal(rpma_conn_get_compl_fd(world.conn, NULL),
			 RPMA_E_INVAL);
	expect_trace("");
	world_end();
}

TEST_MAIN()
