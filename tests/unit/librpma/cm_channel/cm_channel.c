/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/* Unit tests of CM event channels and copies of their events. */

#include "mocks.h"

#include <errno.h>
#include <string.h>

#include "cm_channel.h"

static struct rpma_cm_channel *channel;

static int new_channel(void)
{
	struct rpma_cm_channel *made = NULL;
	int ret = rpma_cm_channel_new(&made);

	assert_int_equal(made != NULL, ret == 0);
	ok(rpma_cm_channel_delete(&made));
	assert_null(made);
	return ret;
}

static void new__EACH_FAILURE(void **state)
{
	const struct failure failures[] = {
		{"malloc", 1, ENOMEM, RPMA_E_NOMEM, ""},
		{"create_evch", 1, EMFILE, RPMA_E_PROVIDER, "create_evch"},
		{NULL, 0, 0, 0, "create_evch destroy_evch"},
	};

	(void)state;
	EACH_FAILURE(new_channel, failures);
}

static void delete__id_on_it_AGAIN_AND_KEPT(void **state)
{
	(void)state;
	ok(rpma_cm_channel_new(&channel));
	rpma__cm_channel_get(channel);
	assert_int_equal(rpma_cm_channel_delete(&channel), RPMA_E_AGAIN);
	assert_non_null(channel);
	rpma__cm_channel_put(channel);
	ok(rpma_cm_channel_delete(&channel));
}

static int get_event(void)
{
	struct rpma_cm_event event = {.raw = (void *)7};
	int ret = rpma_cm_channel_get_event(channel, &event);

	assert_ptr_equal(event.raw, (void *)7);
	return ret;
}

static void get_event__errors_ARE_TOLD_APART(void **state)
{
	const struct failure failures[] = {
		{"get_cm_event", 1, EAGAIN, RPMA_E_NO_EVENT, "get_cm_event"},
		{"get_cm_event", 1, ENODATA, RPMA_E_NO_EVENT, "get_cm_event"},
		{"get_cm_event", 1, EINTR, RPMA_E_AGAIN, "get_cm_event"},
		{"get_cm_event", 1, EIO, RPMA_E_PROVIDER, "get_cm_event"},
	};

	(void)state;
	ok(rpma_cm_channel_new(&channel));
	EACH_FAILURE(get_event, failures);
	ok(rpma_cm_channel_delete(&channel));
}

static void get_event__COPIES_AND_ACKS_NOT(void **state)
{
	struct rdma_cm_id id = {.context = (void *)9};
	struct rpma_cm_event event;
	char data[] = "private";

	(void)state;
	ok(rpma_cm_channel_new(&channel));
	mocks_reset();
	mock_cm_event(RDMA_CM_EVENT_ESTABLISHED, &id, data);
	ok(rpma_cm_channel_get_event(channel, &event));
	memset(data, 'x', sizeof(data));
	expect_trace("get_cm_event");
	assert_int_equal(event.type, RDMA_CM_EVENT_ESTABLISHED);
	assert_ptr_equal(event.id, &id);
	assert_ptr_equal(event.context, (void *)9);
	assert_int_equal(event.private_data_len, 8);
	assert_string_equal((char *)event.private_data, "private");
	assert_non_null(event.raw);
	ok(rpma_cm_event_ack(&event));
	assert_null(event.raw);
	ok(rpma_cm_event_ack(&event));
	expect_trace("get_cm_event ack");
	ok(rpma_cm_channel_delete(&channel));
}

static void get_event__others_HAVE_NO_DATA(void **state)
{
	struct rpma_cm_event event;
	struct rdma_cm_id id = {0};

	(void)state;
	ok(rpma_cm_channel_new(&channel));
	mock_cm_event(RDMA_CM_EVENT_DISCONNECTED, &id, "rubbish");
	ok(rpma_cm_channel_get_event(channel, &event));
	assert_int_equal(event.private_data_len, 0);
	mock_fail("ack", 1, EINVAL);
	assert_int_equal(rpma_cm_event_ack(&event), RPMA_E_PROVIDER);
	assert_null(event.raw);
	ok(rpma_cm_channel_delete(&channel));
}

/* The new id has no context yet: the event says whose listener it came to. */
static void get_event__request_HAS_THE_LISTENERS_CONTEXT(void **state)
{
	struct rdma_cm_id listener = {.context = (void *)9};
	struct rdma_cm_id id = {0};
	struct rpma_cm_event event;

	(void)state;
	ok(rpma_cm_channel_new(&channel));
	mock_listener = &listener;
	mock_cm_event(RDMA_CM_EVENT_CONNECT_REQUEST, &id, NULL);
	ok(rpma_cm_channel_get_event(channel, &event));
	assert_ptr_equal(event.context, (void *)9);
	assert_ptr_equal(event.id, &id);
	assert_int_equal(event.private_data_len, 0);
	ok(rpma_cm_event_ack(&event));
	ok(rpma_cm_channel_delete(&channel));
}

static void arguments__INVAL(void **state)
{
	struct rpma_cm_event event;
	int fd = -1;

	(void)state;
	channel = NULL;
	assert_int_equal(rpma_cm_channel_new(NULL), RPMA_E_INVAL);
	assert_int_equal(rpma_cm_channel_delete(NULL), RPMA_E_INVAL);
	ok(rpma_cm_channel_delete(&channel));
	assert_int_equal(rpma_cm_channel_get_fd(NULL, &fd), RPMA_E_INVAL);
	assert_int_equal(rpma_cm_channel_get_event(NULL, &event), RPMA_E_INVAL);
	assert_int_equal(rpma_cm_event_ack(NULL), RPMA_E_INVAL);
	expect_trace("");
	ok(rpma_cm_channel_new(&channel));
	assert_int_equal(rpma_cm_channel_get_fd(channel, NULL), RPMA_E_INVAL);
	assert_int_equal(rpma_cm_channel_get_event(channel, NULL),
			 RPMA_E_INVAL);
	ok(rpma_cm_channel_get_fd(channel, &fd));
	assert_int_equal(fd, 60);
	ok(rpma_cm_channel_delete(&channel));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		mock_test(new__EACH_FAILURE),
		mock_test(delete__id_on_it_AGAIN_AND_KEPT),
		mock_test(get_event__errors_ARE_TOLD_APART),
		mock_test(get_event__COPIES_AND_ACKS_NOT),
		mock_test(get_event__others_HAVE_NO_DATA),
		mock_test(get_event__request_HAS_THE_LISTENERS_CONTEXT),
		mock_test(arguments__INVAL),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
