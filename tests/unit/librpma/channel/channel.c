/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/* Unit tests of completion channel objects. */

#include "world.h"

#include <errno.h>
#include <pthread.h>
#include <semaphore.h>
#include <string.h>

static struct rpma_channel *channel;

static int new_channel(void)
{
	struct rpma_channel *made = NULL;
	int ret = rpma_channel_new(MOCK_CTX, &made);

	assert_int_equal(made != NULL, ret == 0);
	ok(rpma_channel_delete(&made));
	assert_null(made);
	return ret;
}

static int delete_channel(void)
{
	struct rpma_channel *made = NULL;
	int ret;

	ok(rpma_channel_new(MOCK_CTX, &made));
	ret = rpma_channel_delete(&made);
	assert_null(made);
	return ret;
}

MOCK_TEST(new__EACH_FAILURE)
{
	const struct failure failures[] = {
		{"malloc", 1, ENOMEM, RPMA_E_NOMEM, ""},
		{"create_ch", 1, EMFILE, RPMA_E_PROVIDER, "create_ch"},
		{NULL, 0, 0, 0, "create_ch destroy_ch"},
	};

	EACH_FAILURE(new_channel, failures);
}

MOCK_TEST(delete__fails_PROVIDER)
{
	const struct failure failures[] = {
		{"destroy_ch", 1, EIO, RPMA_E_PROVIDER, "create_ch destroy_ch"},
	};

	EACH_FAILURE(delete_channel, failures);
}

MOCK_TEST(delete__cq_on_it_AGAIN_AND_KEPT)
{
	struct rpma_cq *cq = NULL;

	ok(rpma_channel_new(MOCK_CTX, &channel));
	ok(rpma_cq_new(MOCK_CTX, 4, channel, 0, NULL, &cq));
	assert_int_equal(rpma_channel_delete(&channel), RPMA_E_AGAIN);
	assert_non_null(channel);
	ok(rpma_cq_delete(&cq));
	ok(rpma_channel_delete(&channel));
}

MOCK_TEST(arguments__INVAL)
{
	struct ibv_comp_channel *ibv_channel = NULL;
	struct rpma_cq *cq = NULL;
	int fd = -1;

	channel = NULL;
	assert_int_equal(rpma_channel_new(NULL, &channel), RPMA_E_INVAL);
	assert_int_equal(rpma_channel_new(MOCK_CTX, NULL), RPMA_E_INVAL);
	assert_int_equal(rpma_channel_delete(NULL), RPMA_E_INVAL);
	ok(rpma_channel_delete(&channel));
	assert_int_equal(rpma_channel_get_fd(NULL, &fd), RPMA_E_INVAL);
	assert_int_equal(rpma_channel_wait(NULL, &cq), RPMA_E_INVAL);
	expect_trace("");
	ok(rpma_channel_new(MOCK_CTX, &channel));
	assert_int_equal(rpma_channel_get_fd(channel, NULL), RPMA_E_INVAL);
	assert_int_equal(rpma_channel_wait(channel, NULL), RPMA_E_INVAL);
	assert_int_equal(rpma_channel_get_ibv_channel(channel, NULL),
			 RPMA_E_INVAL);
	assert_int_equal(rpma_channel_get_ibv_channel(NULL, &ibv_channel),
			 RPMA_E_INVAL);
	ok(rpma_channel_get_fd(channel, &fd));
	ok(rpma_channel_get_ibv_channel(channel, &ibv_channel));
	assert_int_equal(fd, ibv_channel->fd);
	ok(rpma_channel_delete(&channel));
}

/* As many as it takes for the list to grow, in no order of address. */
MOCK_TEST(wait__of_many_SAYS_WHICH)
{
	struct rpma_cq *cqs[40] = {NULL};
	struct rpma_cq *fired;
	const int count = sizeof(cqs) / sizeof(cqs[0]);
	int i;

	ok(rpma_channel_new(MOCK_CTX, &channel));
	for (i = 0; i < count; i++)
		ok(rpma_cq_new(MOCK_CTX, i + 1, channel, 0, NULL, &cqs[i]));
	/* every third goes again */
	for (i = 0; i < count; i += 3)
		ok(rpma_cq_delete(&cqs[i]));
	for (i = 0; i < count; i++) {
		if (cqs[i] == NULL)
			continue;
		mock_cq_event(cqs[i]);
		fired = NULL;
		ok(rpma_channel_wait(channel, &fired));
		assert_ptr_equal(fired, cqs[i]);
	}
	for (i = 0; i < count; i++)
		ok(rpma_cq_delete(&cqs[i]));
	ok(rpma_channel_delete(&channel));
}

/* One event, acknowledged; nothing is armed. */
MOCK_TEST(wait__ACKS_AND_ARMS_NOT)
{
	struct rpma_cq *fired = NULL;
	struct rpma_cq *cq = NULL;

	ok(rpma_channel_new(MOCK_CTX, &channel));
	ok(rpma_cq_new(MOCK_CTX, 4, channel, 1, NULL, &cq));
	expect_trace("create_ch create_cq(4, context, 1)");
	mocks_reset();
	mock_cq_event(cq);
	ok(rpma_channel_wait(channel, &fired));
	expect_trace("get_cq_event ack_cq(1)");
	ok(rpma_cq_delete(&cq));
	ok(rpma_channel_delete(&channel));
}

static int wait_channel(void)
{
	struct rpma_cq *cq = (void *)7;
	int ret = rpma_channel_wait(channel, &cq);

	assert_ptr_equal(cq, (void *)7);
	return ret;
}

MOCK_TEST(wait__errors_ARE_TOLD_APART)
{
	const struct failure failures[] = {
		{"get_cq_event", 1, EAGAIN, RPMA_E_NO_COMPLETION,
		 "get_cq_event"},
		{"get_cq_event", 1, EINTR, RPMA_E_AGAIN, "get_cq_event"},
		{"get_cq_event", 1, EIO, RPMA_E_PROVIDER, "get_cq_event"},
		{"get_cq_event", 1, EBADF, RPMA_E_PROVIDER, "get_cq_event"},
	};

	ok(rpma_channel_new(MOCK_CTX, &channel));
	EACH_FAILURE(wait_channel, failures);
	mock_fail("get_cq_event", 1, EIO);
	errno = 0;
	(void)wait_channel();
	assert_int_equal(errno, EIO);
	ok(rpma_channel_delete(&channel));
}

MOCK_TEST(wait__strange_cq_UNKNOWN_AND_ACKED)
{
	ok(rpma_channel_new(MOCK_CTX, &channel));
	mocks_reset();
	mocks_listen();
	mock_strange_cq.cq_context = (void *)1;
	mock_cq_event(NULL);
	assert_int_equal(wait_channel(), RPMA_E_UNKNOWN);
	expect_said("ibv_get_cq_event() returned an event of a CQ of another "
		    "library");
	expect_trace("get_cq_event ack_cq(1)");
	ok(rpma_channel_delete(&channel));
}

static struct rpma_cq *read_cq;
static int read_ret;
static pthread_t reader;
static sem_t acked;

static void *read_event(void *arg)
{
	read_ret = rpma_channel_wait(channel, &read_cq);
	return arg;
}

/* A reader takes an event while the device is asked to destroy the CQ. */
static void read_while_destroyed(const char *call)
{
	if (strcmp(call, "ack_cq") == 0)
		(void)sem_post(&acked);
	if (strcmp(call, "destroy_cq"))
		return;
	ok(pthread_create(&reader, NULL, read_event, NULL));
	ok(sem_wait(&acked));
}

MOCK_TEST(wait__during_a_refused_delete_GETS_THE_CQ)
{
	struct rpma_conn_cfg *cfg = NULL;
	struct rpma_cq *cq = NULL;

	ok(sem_init(&acked, 0, 0));
	ok(rpma_channel_new(MOCK_CTX, &channel));
	ok(rpma_cq_new(MOCK_CTX, 4, channel, 0, NULL, &cq));
	ok(rpma_conn_cfg_new(&cfg));
	ok(rpma_conn_cfg_set_cq(cfg, cq));
	world_conn(cfg);
	mock_cq_event(cq);
	mock_hook = read_while_destroyed;
	assert_int_equal(rpma_cq_delete(&cq), RPMA_E_AGAIN);
	ok(pthread_join(reader, NULL));
	mock_hook = NULL;
	ok(read_ret);
	assert_ptr_equal(read_cq, cq);
	expect_trace("destroy_cq(4) get_cq_event ack_cq(1)");
	world_end();
	ok(rpma_cq_delete(&cq));
	ok(rpma_conn_cfg_delete(&cfg));
	ok(rpma_channel_delete(&channel));
	ok(sem_destroy(&acked));
}

TEST_MAIN()
