/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/* Unit tests of CQs. */

#include "world.h"

#include <errno.h>
#include <limits.h>

#include "cq.h"
#include "objects.h"

static int me;
static struct rpma_cq *cq;
static struct rpma_channel *channel;

/* As a connection makes its own. */
static int new_private(void)
{
	const struct rpma__cq_attr attr = {.ibv_ctx = MOCK_CTX, .cqe = 10};
	struct rpma_cq *made = NULL;
	int ret = rpma__cq_new(&attr, &made);

	assert_int_equal(made != NULL, ret == 0);
	ok(rpma__cq_delete(&made));
	assert_null(made);
	return ret;
}

static int new_on_object(void)
{
	struct rpma_cq *made = NULL;
	int ret = rpma_cq_new(MOCK_CTX, 8, channel, 0, NULL, &made);

	assert_int_equal(made != NULL, ret == 0);
	ok(rpma_cq_delete(&made));
	return ret;
}

MOCK_TEST(new__private_EACH_FAILURE)
{
	const struct failure failures[] = {
		{"malloc", 1, ENOMEM, RPMA_E_NOMEM, ""},
		{"create_ch", 1, EMFILE, RPMA_E_PROVIDER, "create_ch"},
		{"create_cq", 1, EINVAL, RPMA_E_PROVIDER,
		 "create_ch create_cq(10, 0) destroy_ch"},
		{"notify", 1, EIO, RPMA_E_PROVIDER,
		 "create_ch create_cq(10, 0) notify destroy_cq(10) "
		 "destroy_ch"},
		{NULL, 0, 0, 0,
		 "create_ch create_cq(10, 0) notify destroy_cq(10) "
		 "destroy_ch"},
	};

	EACH_FAILURE(new_private, failures);
}

MOCK_TEST(new__on_channel_object_EACH_FAILURE)
{
	const struct failure failures[] = {
		{"malloc", 1, ENOMEM, RPMA_E_NOMEM, ""},
		{"create_cq", 1, EINVAL, RPMA_E_PROVIDER,
		 "create_cq(8, context, 0)"},
		{NULL, 0, 0, 0, "create_cq(8, context, 0) destroy_cq(8)"},
	};

	ok(rpma_channel_new(MOCK_CTX, &channel));
	EACH_FAILURE(new_on_object, failures);
	ok(rpma_channel_delete(&channel));
}

static int delete_private(void)
{
	const struct rpma__cq_attr attr = {.ibv_ctx = MOCK_CTX, .cqe = 10};
	struct rpma_cq *made = NULL;
	int ret;

	ok(rpma__cq_new(&attr, &made));
	ret = rpma__cq_delete(&made);
	assert_null(made);
	return ret;
}

MOCK_TEST(delete__EACH_FAILURE)
{
	const struct failure failures[] = {
		{"destroy_cq", 1, EIO, RPMA_E_PROVIDER, NULL},
		{"destroy_ch", 1, EIO, RPMA_E_PROVIDER, NULL},
		{NULL, 0, 0, 0, NULL},
	};

	EACH_FAILURE(delete_private, failures);
}

static int delete_standalone(void)
{
	struct rpma_cq *made = NULL;
	int ret;

	ok(rpma_cq_new(MOCK_CTX, 10, NULL, 0, NULL, &made));
	ret = rpma_cq_delete(&made);
	assert_null(made);
	return ret;
}

MOCK_TEST(delete__standalone_EACH_FAILURE)
{
	const struct failure failures[] = {
		{"destroy_cq", 1, EIO, RPMA_E_PROVIDER, NULL},
		{"destroy_ch", 1, EIO, RPMA_E_PROVIDER, NULL},
		{NULL, 0, 0, 0,
		 "create_ch create_cq(10, context, 0) notify destroy_cq(10) "
		 "destroy_ch"},
	};

	EACH_FAILURE(delete_standalone, failures);
}

MOCK_TEST(new__more_than_int_IS_INT_MAX)
{
	const struct rpma__cq_attr attr = {
		.ibv_ctx = MOCK_CTX,
		.cqe = UINT32_MAX,
	};
	struct ibv_cq *ibv_cq;

	ok(rpma__cq_new(&attr, &cq));
	ok(rpma_cq_get_ibv_cq(cq, &ibv_cq));
	assert_int_equal(ibv_cq->cqe, INT_MAX);
	assert_null(ibv_cq->cq_context);
	ok(rpma__cq_delete(&cq));
}

MOCK_TEST(new__arguments_INVAL)
{
	cq = NULL;
	assert_int_equal(rpma_cq_new(NULL, 1, NULL, 0, NULL, &cq),
			 RPMA_E_INVAL);
	assert_int_equal(rpma_cq_new(MOCK_CTX, 0, NULL, 0, NULL, &cq),
			 RPMA_E_INVAL);
	assert_int_equal(rpma_cq_new(MOCK_CTX, -1, NULL, 0, NULL, &cq),
			 RPMA_E_INVAL);
	assert_int_equal(rpma_cq_new(MOCK_CTX, 1, NULL, -1, NULL, &cq),
			 RPMA_E_INVAL);
	assert_int_equal(rpma_cq_new(MOCK_CTX, 1, NULL, 2, NULL, &cq),
			 RPMA_E_INVAL);
	assert_int_equal(rpma_cq_new(MOCK_CTX, 1, NULL, 0, NULL, NULL),
			 RPMA_E_INVAL);
	assert_null(cq);
	expect_trace("");
}

/* Not ours to delete: a connection's. */
MOCK_TEST(delete__of_a_connection_INVAL)
{
	const struct rpma__cq_attr attr = {.ibv_ctx = MOCK_CTX, .cqe = 1};

	cq = NULL;
	assert_int_equal(rpma_cq_delete(NULL), RPMA_E_INVAL);
	ok(rpma_cq_delete(&cq));
	ok(rpma__cq_new(&attr, &cq));
	assert_int_equal(rpma_cq_delete(&cq), RPMA_E_INVAL);
	assert_non_null(cq);
	ok(rpma__cq_delete(&cq));
}

/* It stays, and on its channel: its events are still told. */
MOCK_TEST(delete__busy_AGAIN_AND_KEPT)
{
	struct rpma_cq *fired = NULL;
	int i;

	ok(rpma_channel_new(MOCK_CTX, &channel));
	ok(rpma_cq_new(MOCK_CTX, 1, channel, 0, NULL, &cq));
	for (i = 0; i < 2; i++) {
		struct ibv_cq *ibv_cq = NULL;
		struct mock_cq *mock;

		ok(rpma_cq_get_ibv_cq(cq, &ibv_cq));
		mock = (struct mock_cq *)ibv_cq;
		mock->users = 1;
		assert_int_equal(rpma_cq_delete(&cq), RPMA_E_AGAIN);
		mock->users = 0;
		mock_cq_event(cq);
		ok(rpma_channel_wait(channel, &fired));
		assert_ptr_equal(fired, cq);
	}
	ok(rpma_cq_claim(cq, &me));
	assert_int_equal(rpma_cq_delete(&cq), RPMA_E_CLAIMED);
	ok(rpma_cq_release(cq, &me));
	ok(rpma_cq_delete(&cq));
	ok(rpma_channel_delete(&channel));
}

static int wait_cq(void)
{
	return rpma_cq_wait(cq);
}

static int wait_cq_with_event(void)
{
	mock_cq_event(cq);
	return rpma_cq_wait(cq);
}

MOCK_TEST(wait__EACH_FAILURE)
{
	const struct failure no_event[] = {
		{"get_cq_event", 1, EAGAIN, RPMA_E_NO_COMPLETION,
		 "get_cq_event"},
		{"get_cq_event", 1, EINTR, RPMA_E_NO_COMPLETION,
		 "get_cq_event"},
		{"get_cq_event", 1, 12345, RPMA_E_NO_COMPLETION,
		 "get_cq_event"},
		{"get_cq_event", 1, EIO, RPMA_E_PROVIDER, "get_cq_event"},
	};
	const struct failure event[] = {
		{"notify", 1, EIO, RPMA_E_PROVIDER,
		 "get_cq_event ack_cq(1) notify"},
		{NULL, 0, 0, 0, "get_cq_event ack_cq(1) notify"},
	};

	ok(rpma_cq_new(MOCK_CTX, 1, NULL, 0, NULL, &cq));
	EACH_FAILURE(wait_cq, no_event);
	EACH_FAILURE(wait_cq_with_event, event);
	/* whoever waited has left */
	ok(rpma_cq_claim(cq, &me));
	ok(rpma_cq_release(cq, &me));
	ok(rpma_cq_delete(&cq));
	assert_int_equal(rpma_cq_wait(NULL), RPMA_E_INVAL);
}

static int wait_event(void)
{
	return rpma_cq_wait_event(cq);
}

/* Three events, one acknowledgement; what arms is the caller. */
MOCK_TEST(wait_event__ONE_ACK_FOR_MANY)
{
	const struct failure no_event[] = {
		{"get_cq_event", 1, EAGAIN, RPMA_E_NO_COMPLETION,
		 "get_cq_event"},
		{"get_cq_event", 1, EINTR, RPMA_E_NO_COMPLETION,
		 "get_cq_event"},
		{"get_cq_event", 1, EIO, RPMA_E_PROVIDER, "get_cq_event"},
	};
	int i;

	ok(rpma_cq_new(MOCK_CTX, 1, NULL, 0, NULL, &cq));
	EACH_FAILURE(wait_event, no_event);
	mocks_reset();
	for (i = 0; i < 3; i++) {
		mock_cq_event(cq);
		ok(rpma_cq_wait_event(cq));
	}
	/* whoever waited has left */
	ok(rpma_cq_claim(cq, &me));
	assert_int_equal(rpma_cq_wait_event(cq), RPMA_E_SHARED_CHANNEL);
	ok(rpma_cq_release(cq, &me));
	ok(rpma_cq_arm(cq, false));
	ok(rpma_cq_ack(cq, 3));
	expect_trace("get_cq_event get_cq_event get_cq_event notify ack_cq(3)");
	ok(rpma_cq_delete(&cq));
	assert_int_equal(rpma_cq_wait_event(NULL), RPMA_E_INVAL);
}

/* Else the CQ of verbs would wait for them for ever. */
MOCK_TEST(delete__events_not_acknowledged_AGAIN)
{
	ok(rpma_cq_new(MOCK_CTX, 1, NULL, 0, NULL, &cq));
	mock_cq_event(cq);
	ok(rpma_cq_wait_event(cq));
	mock_cq_event(cq);
	ok(rpma_cq_wait_event(cq));
	mocks_reset();
	assert_int_equal(rpma_cq_delete(&cq), RPMA_E_AGAIN);
	ok(rpma_cq_ack(cq, 1));
	assert_int_equal(rpma_cq_delete(&cq), RPMA_E_AGAIN);
	expect_trace("ack_cq(1)");
	ok(rpma_cq_ack(cq, 1));
	ok(rpma_cq_delete(&cq));
	assert_null(cq);
}

/* What was read from the raw channel, the library does not count. */
MOCK_TEST(ack__of_raw_events_COUNTS_NOTHING)
{
	struct ibv_cq *ibv_cq = NULL;
	struct ibv_cq *from = NULL;
	void *context;

	ok(rpma_cq_new(MOCK_CTX, 1, NULL, 0, NULL, &cq));
	ok(rpma_cq_get_ibv_cq(cq, &ibv_cq));
	mock_cq_event(cq);
	ok(ibv_get_cq_event(ibv_cq->channel, &from, &context));
	ok(rpma_cq_ack(cq, 1));
	mock_cq_event(cq);
	ok(rpma_cq_wait_event(cq));
	assert_int_equal(rpma_cq_delete(&cq), RPMA_E_AGAIN);
	ok(rpma_cq_ack(cq, 1));
	ok(rpma_cq_delete(&cq));
}

MOCK_TEST(claimed__ANSWERS_SHARED_CHANNEL)
{
	struct ibv_wc wc;
	int fd = -1;

	ok(rpma_cq_new(MOCK_CTX, 1, NULL, 0, NULL, &cq));
	ok(rpma_cq_get_fd(cq, &fd));
	assert_int_equal(fd, 50);
	ok(rpma_cq_claim(cq, &me));
	mocks_reset();
	assert_int_equal(rpma_cq_wait(cq), RPMA_E_SHARED_CHANNEL);
	assert_int_equal(rpma_cq_get_fd(cq, &fd), RPMA_E_SHARED_CHANNEL);
	assert_int_equal(rpma_cq_get_wc(cq, 1, &wc, NULL),
			 RPMA_E_SHARED_CHANNEL);
	expect_trace("");
	ok(rpma_cq_release(cq, &me));
	ok(rpma_cq_delete(&cq));
	assert_int_equal(rpma_cq_claim(NULL, &me), RPMA_E_INVAL);
	assert_int_equal(rpma_cq_release(NULL, &me), RPMA_E_INVAL);
	assert_int_equal(rpma_cq_get_fd(NULL, &fd), RPMA_E_INVAL);
}

MOCK_TEST(claim__arguments_INVAL)
{
	int fd = -1;

	ok(rpma_cq_new(MOCK_CTX, 1, NULL, 0, NULL, &cq));
	assert_int_equal(rpma_cq_claim(cq, NULL), RPMA_E_INVAL);
	assert_int_equal(rpma_cq_release(cq, NULL), RPMA_E_INVAL);
	assert_int_equal(rpma_cq_release(cq, &me), RPMA_E_INVAL);
	assert_int_equal(rpma_cq_get_fd(cq, NULL), RPMA_E_INVAL);
	assert_int_equal(fd, -1);
	ok(rpma_cq_delete(&cq));
}

MOCK_TEST(on_channel_object__POLLS_ONLY)
{
	struct ibv_wc wc;
	int fd = -1;

	ok(rpma_channel_new(MOCK_CTX, &channel));
	ok(rpma_cq_new(MOCK_CTX, 1, channel, 0, NULL, &cq));
	assert_int_equal(rpma_cq_wait(cq), RPMA_E_SHARED_CHANNEL);
	assert_int_equal(rpma_cq_wait_event(cq), RPMA_E_SHARED_CHANNEL);
	assert_int_equal(rpma_cq_get_fd(cq, &fd), RPMA_E_SHARED_CHANNEL);
	assert_int_equal(rpma_cq_get_wc(cq, 1, &wc, NULL),
			 RPMA_E_NO_COMPLETION);
	ok(rpma_cq_delete(&cq));
	ok(rpma_channel_delete(&channel));
}

MOCK_TEST(get_wc__every_answer)
{
	struct ibv_wc wc[4];
	int got = 7;

	ok(rpma_cq_new(MOCK_CTX, 1, NULL, 0, NULL, &cq));
	mock_poll_answer = 0;
	assert_int_equal(rpma_cq_get_wc(cq, 4, wc, &got), RPMA_E_NO_COMPLETION);
	mock_poll_answer = -1;
	mocks_listen();
	assert_int_equal(rpma_cq_get_wc(cq, 4, wc, &got), RPMA_E_PROVIDER);
	expect_said("the CQ is of no use any more, because of an overrun or "
		    "a lost device");
	mock_poll_answer = 5;
	assert_int_equal(rpma_cq_get_wc(cq, 4, wc, &got), RPMA_E_UNKNOWN);
	assert_int_equal(got, 7);
	mock_poll_answer = 3;
	ok(rpma_cq_get_wc(cq, 4, wc, &got));
	assert_int_equal(got, 3);
	assert_int_equal(wc[2].wr_id, 3);
	mock_poll_answer = 1;
	ok(rpma_cq_get_wc(cq, 1, wc, NULL));
	mock_poll_answer = 0;
	assert_int_equal(rpma_cq_get_wc(NULL, 1, wc, NULL), RPMA_E_INVAL);
	assert_int_equal(rpma_cq_get_wc(cq, 1, NULL, NULL), RPMA_E_INVAL);
	assert_int_equal(rpma_cq_get_wc(cq, 0, wc, &got), RPMA_E_INVAL);
	assert_int_equal(rpma_cq_get_wc(cq, -1, wc, &got), RPMA_E_INVAL);
	assert_int_equal(rpma_cq_get_wc(cq, 2, wc, NULL), RPMA_E_INVAL);
	ok(rpma_cq_delete(&cq));
}

MOCK_TEST(arm__as_told)
{
	ok(rpma_cq_new(MOCK_CTX, 1, NULL, 0, NULL, &cq));
	mocks_reset();
	ok(rpma_cq_arm(cq, true));
	ok(rpma_cq_arm(cq, false));
	expect_trace("notify(solicited) notify");
	mock_fail("notify", 1, EIO);
	assert_int_equal(rpma_cq_arm(cq, false), RPMA_E_PROVIDER);
	assert_int_equal(rpma_cq_arm(NULL, false), RPMA_E_INVAL);
	ok(rpma_cq_delete(&cq));
}

MOCK_TEST(raw__ack_context_and_back)
{
	struct rpma_cq *same = NULL;
	struct ibv_cq *ibv_cq = NULL;
	struct ibv_cq empty = {0};
	void *context = NULL;

	ok(rpma_cq_new(MOCK_CTX, 1, NULL, 0, &me, &cq));
	ok(rpma_cq_get_context(cq, &context));
	assert_ptr_equal(context, &me);
	ok(rpma_cq_get_ibv_cq(cq, &ibv_cq));
	ok(rpma_cq_from_ibv_cq(ibv_cq, &same));
	assert_ptr_equal(same, cq);
	/* whatever a stranger's context is, nobody goes there */
	empty.cq_context = (void *)7;
	assert_int_equal(rpma_cq_from_ibv_cq(&empty, &same), RPMA_E_INVAL);
	empty.cq_context = cq;
	assert_int_equal(rpma_cq_from_ibv_cq(&empty, &same), RPMA_E_INVAL);
	assert_int_equal(rpma_cq_from_ibv_cq(NULL, &same), RPMA_E_INVAL);
	assert_int_equal(rpma_cq_from_ibv_cq(ibv_cq, NULL), RPMA_E_INVAL);
	assert_int_equal(rpma_cq_get_context(NULL, &context), RPMA_E_INVAL);
	assert_int_equal(rpma_cq_get_context(cq, NULL), RPMA_E_INVAL);
	assert_int_equal(rpma_cq_get_ibv_cq(NULL, &ibv_cq), RPMA_E_INVAL);
	assert_int_equal(rpma_cq_get_ibv_cq(cq, NULL), RPMA_E_INVAL);
	assert_int_equal(rpma_cq_ack(NULL, 1), RPMA_E_INVAL);
	mocks_reset();
	ok(rpma_cq_ack(cq, 0));
	expect_trace("ack_cq(0)");
	ok(rpma_cq_delete(&cq));
	assert_int_equal(rpma_cq_from_ibv_cq(ibv_cq, &same), RPMA_E_INVAL);
}

/* A deletion that did not happen: it is found again. */
MOCK_TEST(from_ibv_cq__delete_refused_FOUND)
{
	struct rpma_conn_cfg *cfg = NULL;
	struct ibv_cq *ibv_cq = NULL;
	struct rpma_cq *same = NULL;
	struct rpma_cq *cq = NULL;

	ok(rpma_cq_new(MOCK_CTX, 4, NULL, 0, NULL, &cq));
	ok(rpma_cq_get_ibv_cq(cq, &ibv_cq));
	ok(rpma_conn_cfg_new(&cfg));
	ok(rpma_conn_cfg_set_cq(cfg, cq));
	world_conn(cfg);
	assert_int_equal(rpma_cq_delete(&cq), RPMA_E_AGAIN);
	ok(rpma_cq_from_ibv_cq(ibv_cq, &same));
	assert_ptr_equal(same, cq);
	world_end();
	ok(rpma_cq_delete(&cq));
	ok(rpma_conn_cfg_delete(&cfg));
}

TEST_MAIN()
