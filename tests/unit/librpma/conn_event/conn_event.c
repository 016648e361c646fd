/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/* Unit tests of the events of a connection. */

#include "world.h"

#include <errno.h>

static enum rpma_conn_event event;

static int next(void)
{
	return rpma_conn_next_event(world.conn, &event);
}

static int next_of(enum rdma_cm_event_type type)
{
	event = RPMA_CONN_UNDEFINED;
	mock_cm_event(type, mock_id, NULL);
	return next();
}

MOCK_TEST(next_event__every_type)
{
	world_conn(NULL);
	ok(next_of(RDMA_CM_EVENT_ESTABLISHED));
	assert_int_equal(event, RPMA_CONN_ESTABLISHED);
	ok(next_of(RDMA_CM_EVENT_CONNECT_ERROR));
	assert_int_equal(event, RPMA_CONN_LOST);
	ok(next_of(RDMA_CM_EVENT_DEVICE_REMOVAL));
	assert_int_equal(event, RPMA_CONN_LOST);
	ok(next_of(RDMA_CM_EVENT_DISCONNECTED));
	assert_int_equal(event, RPMA_CONN_CLOSED);
	ok(next_of(RDMA_CM_EVENT_TIMEWAIT_EXIT));
	assert_int_equal(event, RPMA_CONN_CLOSED);
	ok(next_of(RDMA_CM_EVENT_REJECTED));
	assert_int_equal(event, RPMA_CONN_REJECTED);
	ok(next_of(RDMA_CM_EVENT_UNREACHABLE));
	assert_int_equal(event, RPMA_CONN_UNREACHABLE);
	mocks_reset();
	assert_int_equal(next_of(RDMA_CM_EVENT_MULTICAST_JOIN), RPMA_E_UNKNOWN);
	assert_int_equal(event, RPMA_CONN_UNDEFINED);
	expect_trace("get_cm_event ack");
	world_end();
}

MOCK_TEST(next_event__cancelled_WITH_THE_EVENT_ENDS)
{
	world_conn(NULL);
	event = RPMA_CONN_UNDEFINED;
	mock_cm_event(RDMA_CM_EVENT_ESTABLISHED, mock_id, NULL);
	ok(mock_cancelled(next));
	assert_int_equal(event, RPMA_CONN_ESTABLISHED);
	expect_trace("get_cm_event ack");
	world_end();
}

MOCK_TEST(next_event__no_event)
{
	const struct failure failures[] = {
		{"get_cm_event", 1, EAGAIN, RPMA_E_NO_EVENT, "get_cm_event"},
		{"get_cm_event", 1, ENODATA, RPMA_E_NO_EVENT, "get_cm_event"},
		{"get_cm_event", 1, EINTR, RPMA_E_AGAIN, "get_cm_event"},
		{"get_cm_event", 1, EIO, RPMA_E_PROVIDER, "get_cm_event"},
	};

	world_conn(NULL);
	EACH_FAILURE(next, failures);
	world_end();
}

static int established_with_data(void)
{
	mock_cm_event(RDMA_CM_EVENT_ESTABLISHED, mock_id, "welcome");
	return next();
}

/* An event is read once: want of memory loses the data, not the event. */
MOCK_TEST(next_event__no_memory_STILL_ESTABLISHED)
{
	struct rpma_conn_private_data data;
	struct rpma_conn_cfg *cfg = NULL;

	ok(rpma_conn_cfg_new(&cfg));
	ok(rpma_conn_cfg_set_min_rnr_timer(cfg, 12));
	world_conn(cfg);
	mocks_listen();
	mock_fail("malloc", 1, ENOMEM);
	ok(established_with_data());
	expect_said("no memory for private data");
	expect_trace("get_cm_event ack modify_qp(3, 0x8001)");
	assert_int_equal(event, RPMA_CONN_ESTABLISHED);
	ok(rpma_conn_get_private_data(world.conn, &data));
	assert_null(data.ptr);
	assert_int_equal(data.len, 0);
	ok(rpma_conn_cfg_delete(&cfg));
	world_end();
}

/* What the user may hold a pointer to stays. */
MOCK_TEST(next_event__ack_fails_PROVIDER_AND_DATA_STAYS)
{
	struct rpma_conn_private_data before;
	struct rpma_conn_private_data after;

	world_conn(NULL);
	ok(established_with_data());
	ok(rpma_conn_get_private_data(world.conn, &before));
	assert_int_equal(before.len, 8);
	assert_string_equal(before.ptr, "welcome");
	mock_fail("ack", 1, EINVAL);
	assert_int_equal(next_of(RDMA_CM_EVENT_DISCONNECTED), RPMA_E_PROVIDER);
	assert_int_equal(event, RPMA_CONN_UNDEFINED);
	ok(rpma_conn_get_private_data(world.conn, &after));
	assert_ptr_equal(after.ptr, before.ptr);
	world_end();
}

MOCK_TEST(next_event__second_data_DOES_NOT_REPLACE)
{
	struct rpma_conn_private_data data;

	world_conn(NULL);
	ok(established_with_data());
	mock_cm_event(RDMA_CM_EVENT_ESTABLISHED, mock_id, "another");
	ok(next());
	ok(rpma_conn_get_private_data(world.conn, &data));
	assert_string_equal(data.ptr, "welcome");
	world_end();
}

static int refused_with_data(void)
{
	event = RPMA_CONN_UNDEFINED;
	mock_cm_status = 28;
	mock_cm_event(RDMA_CM_EVENT_REJECTED, mock_id, "no room");
	return next();
}

MOCK_TEST(next_event__refused_DATA_AND_STATUS)
{
	struct rpma_conn_private_data data;
	int status = 7;

	world_conn(NULL);
	assert_int_equal(rpma_conn_get_event_status(world.conn, &status),
			 RPMA_E_AGAIN);
	assert_int_equal(status, 7);
	ok(refused_with_data());
	assert_int_equal(event, RPMA_CONN_REJECTED);
	ok(rpma_conn_get_private_data(world.conn, &data));
	assert_int_equal(data.len, 8);
	assert_string_equal(data.ptr, "no room");
	ok(rpma_conn_get_event_status(world.conn, &status));
	assert_int_equal(status, 28);
	/* of the last event */
	ok(next_of(RDMA_CM_EVENT_TIMEWAIT_EXIT));
	ok(rpma_conn_get_event_status(world.conn, &status));
	assert_int_equal(status, 0);
	/* what is no event of the connection changes nothing */
	mock_cm_status = 5;
	assert_int_equal(next_of(RDMA_CM_EVENT_MULTICAST_JOIN), RPMA_E_UNKNOWN);
	ok(rpma_conn_get_event_status(world.conn, &status));
	assert_int_equal(status, 0);
	world_end();
}

MOCK_TEST(next_event__no_memory_STILL_REFUSED)
{
	struct rpma_conn_private_data data;
	int status = 0;

	world_conn(NULL);
	mock_fail("malloc", 1, ENOMEM);
	ok(refused_with_data());
	assert_int_equal(event, RPMA_CONN_REJECTED);
	ok(rpma_conn_get_private_data(world.conn, &data));
	assert_null(data.ptr);
	ok(rpma_conn_get_event_status(world.conn, &status));
	assert_int_equal(status, 28);
	world_end();
}

/* An accepted connection keeps its private data; a program may point to it. */
MOCK_TEST(next_event__refused_later_DOES_NOT_REPLACE)
{
	struct rpma_conn_private_data data;

	world_conn(NULL);
	ok(established_with_data());
	ok(refused_with_data());
	ok(rpma_conn_get_private_data(world.conn, &data));
	assert_string_equal(data.ptr, "welcome");
	world_end();
}

MOCK_TEST(get_event_status__arguments_INVAL)
{
	int status;

	world_conn(NULL);
	assert_int_equal(rpma_conn_get_event_status(NULL, &status),
			 RPMA_E_INVAL);
	assert_int_equal(rpma_conn_get_event_status(world.conn, NULL),
			 RPMA_E_INVAL);
	world_end();
}

MOCK_TEST(next_event__established_SETS_THE_RNR_TIMER)
{
	struct rpma_conn_cfg *cfg = NULL;

	ok(rpma_conn_cfg_new(&cfg));
	ok(rpma_conn_cfg_set_min_rnr_timer(cfg, 12));
	world_conn(cfg);
	ok(next_of(RDMA_CM_EVENT_ESTABLISHED));
	expect_trace("get_cm_event ack modify_qp(3, 0x8001)");
	assert_int_equal(mock_qp_modified.min_rnr_timer, 12);
	/* it works all the same */
	mock_fail("modify_qp", 1, EINVAL);
	ok(next_of(RDMA_CM_EVENT_ESTABLISHED));
	ok(rpma_conn_destroy_qp(world.conn, NULL));
	ok(next_of(RDMA_CM_EVENT_ESTABLISHED));
	ok(rpma_conn_cfg_delete(&cfg));
	world_end();
}

MOCK_TEST(handle_event__of_a_cm_channel)
{
	struct rpma_cm_event cm_event = {
		.type = RDMA_CM_EVENT_ESTABLISHED,
		.private_data = "hi",
		.private_data_len = 3,
	};
	struct rpma_cm_channel *cm_channel = NULL;
	struct rpma_conn_private_data data;
	struct rpma_conn_cfg *cfg = NULL;
	int fd = -1;

	ok(rpma_cm_channel_new(&cm_channel));
	ok(rpma_conn_cfg_new(&cfg));
	ok(rpma_conn_cfg_set_cm_channel(cfg, cm_channel));
	world_conn(cfg);
	assert_int_equal(next(), RPMA_E_SHARED_CHANNEL);
	assert_int_equal(rpma_conn_get_event_fd(world.conn, &fd),
			 RPMA_E_SHARED_CHANNEL);
	expect_trace("");
	assert_int_equal(rpma_conn_handle_event(world.conn, &cm_event, &event),
			 RPMA_E_INVAL);
	cm_event.id = mock_id;
	ok(rpma_conn_handle_event(world.conn, &cm_event, &event));
	assert_int_equal(event, RPMA_CONN_ESTABLISHED);
	ok(rpma_conn_get_private_data(world.conn, &data));
	assert_string_equal(data.ptr, "hi");
	cm_event.type = RDMA_CM_EVENT_MULTICAST_JOIN;
	assert_int_equal(rpma_conn_handle_event(world.conn, &cm_event, &event),
			 RPMA_E_UNKNOWN);
	assert_int_equal(rpma_conn_handle_event(NULL, &cm_event, &event),
			 RPMA_E_INVAL);
	assert_int_equal(rpma_conn_handle_event(world.conn, NULL, &event),
			 RPMA_E_INVAL);
	assert_int_equal(rpma_conn_handle_event(world.conn, &cm_event, NULL),
			 RPMA_E_INVAL);
	world_end();
	ok(rpma_cm_channel_delete(&cm_channel));
	ok(rpma_conn_cfg_delete(&cfg));
}

MOCK_TEST(handle_event__own_channel_NOT_SHARED_CHNL)
{
	struct rpma_cm_event cm_event = {.type = RDMA_CM_EVENT_ESTABLISHED};

	world_conn(NULL);
	cm_event.id = mock_id;
	assert_int_equal(rpma_conn_handle_event(world.conn, &cm_event, &event),
			 RPMA_E_NOT_SHARED_CHNL);
	world_end();
}

MOCK_TEST(arguments__INVAL)
{
	int fd = -1;

	world_conn(NULL);
	assert_int_equal(rpma_conn_next_event(NULL, &event), RPMA_E_INVAL);
	assert_int_equal(rpma_conn_next_event(world.conn, NULL), RPMA_E_INVAL);
	assert_int_equal(rpma_conn_get_event_fd(NULL, &fd), RPMA_E_INVAL);
	assert_int_equal(rpma_conn_get_event_fd(world.conn, NULL),
			 RPMA_E_INVAL);
	expect_trace("");
	ok(rpma_conn_get_event_fd(world.conn, &fd));
	assert_true(fd > 0);
	world_end();
}

TEST_MAIN()
