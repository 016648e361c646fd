/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/* Unit tests of CM event channels and copies of their events. */

#include "world.h"

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

MOCK_TEST(new__EACH_FAILURE)
{
	const struct failure failures[] = {
		{"malloc", 1, ENOMEM, RPMA_E_NOMEM, ""},
		{"create_evch", 1, EMFILE, RPMA_E_PROVIDER, "create_evch"},
		{NULL, 0, 0, 0, "create_evch destroy_evch"},
	};

	EACH_FAILURE(new_channel, failures);
}

MOCK_TEST(delete__id_on_it_AGAIN_AND_KEPT)
{
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

/* Takes a request that arrives on the channel, of an endpoint that is gone. */
static struct rpma_conn_req *take_req(const struct rpma_conn_cfg *cfg)
{
	struct rpma_conn_req *req = NULL;
	struct rpma_cm_event event;

	mock_cm_event(RDMA_CM_EVENT_CONNECT_REQUEST, mock_new_id(), NULL);
	ok(rpma_cm_channel_get_event(channel, &event));
	ok(rpma_conn_req_new_from_event(world.peer, &event, cfg, NULL, &req));
	ok(rpma_cm_event_ack(&event));
	mocks_reset();
	return req;
}

MOCK_TEST(delete__request_of_the_channel_COUNTS_OR_IS_ELSEWHERE)
{
	struct rpma_conn_cfg *cfg = NULL;
	struct rpma_conn_req *req;

	world_peer();
	ok(rpma_cm_channel_new(&channel));
	ok(rpma_conn_cfg_new(&cfg));
	ok(rpma_conn_cfg_set_cm_channel(cfg, channel));
	req = take_req(cfg);
	assert_int_equal(rpma_cm_channel_delete(&channel), RPMA_E_AGAIN);
	ok(rpma_conn_req_delete(&req));
	req = take_req(NULL);
	/* no id is left on the channel: the mock looks */
	ok(rpma_cm_channel_delete(&channel));
	ok(rpma_conn_req_connect(&req, NULL, &world.conn));
	expect_trace("destroy_evch reg_mr(8, 0x1) accept");
	ok(rpma_conn_cfg_delete(&cfg));
	world_end();
}

MOCK_TEST(get_event__errors_ARE_TOLD_APART)
{
	const struct failure failures[] = {
		{"get_cm_event", 1, EAGAIN, RPMA_E_NO_EVENT, "get_cm_event"},
		{"get_cm_event", 1, ENODATA, RPMA_E_NO_EVENT, "get_cm_event"},
		{"get_cm_event", 1, EINTR, RPMA_E_AGAIN, "get_cm_event"},
		{"get_cm_event", 1, EIO, RPMA_E_PROVIDER, "get_cm_event"},
	};

	ok(rpma_cm_channel_new(&channel));
	EACH_FAILURE(get_event, failures);
	ok(rpma_cm_channel_delete(&channel));
}

MOCK_TEST(get_event__COPIES_AND_ACKS_NOT)
{
	struct rdma_cm_id id = {.context = (void *)9};
	struct rpma_cm_event event;
	char data[] = "private";

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
	assert_int_equal(event.responder_resources, MOCK_RESPONDER_RESOURCES);
	assert_int_equal(event.initiator_depth, MOCK_INITIATOR_DEPTH);
	assert_non_null(event.raw);
	ok(rpma_cm_event_ack(&event));
	assert_null(event.raw);
	ok(rpma_cm_event_ack(&event));
	expect_trace("get_cm_event ack");
	ok(rpma_cm_channel_delete(&channel));
}

MOCK_TEST(get_event__others_HAVE_NO_DATA)
{
	struct rpma_cm_event event;
	struct rdma_cm_id id = {0};

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
MOCK_TEST(get_event__request_HAS_THE_LISTENERS_CONTEXT)
{
	struct rdma_cm_id listener = {.context = (void *)9};
	struct rdma_cm_id *id = mock_new_id();
	struct rpma_cm_event event;

	ok(rpma_cm_channel_new(&channel));
	mock_listener = &listener;
	mock_cm_event(RDMA_CM_EVENT_CONNECT_REQUEST, id, NULL);
	ok(rpma_cm_channel_get_event(channel, &event));
	assert_ptr_equal(event.context, (void *)9);
	assert_ptr_equal(event.id, id);
	assert_int_equal(event.private_data_len, 0);
	ok(rpma_cm_event_reject(&event, NULL));
	ok(rpma_cm_event_ack(&event));
	ok(rpma_cm_channel_delete(&channel));
}

static struct rpma_conn_private_data words = {"full", 5};

static int reject(void)
{
	struct rpma_cm_event event = {
		.type = RDMA_CM_EVENT_CONNECT_REQUEST,
		.id = mock_new_id(),
	};
	int ret = rpma_cm_event_reject(&event, &words);

	/* taken, whatever came of it */
	assert_null(event.id);
	assert_int_equal(rpma_cm_event_reject(&event, &words), RPMA_E_INVAL);
	return ret;
}

/* Nothing is made of the request; the other side is refused at once. */
MOCK_TEST(event_reject__EACH_FAILURE)
{
	const struct failure failures[] = {
		{"reject", 1, ENOMEM, RPMA_E_PROVIDER,
		 "reject(full) destroy_id"},
		/* too long for the device: refused without */
		{"reject", 1, EINVAL, RPMA_E_PROVIDER,
		 "reject(full) reject destroy_id"},
		{"destroy_id", 1, EINVAL, RPMA_E_PROVIDER,
		 "reject(full) destroy_id"},
		{NULL, 0, 0, 0, "reject(full) destroy_id"},
	};

	EACH_FAILURE(reject, failures);
}

MOCK_TEST(event_reject__peer_has_given_up_DONE)
{
	struct rpma_cm_event event = {
		.type = RDMA_CM_EVENT_CONNECT_REQUEST,
		.id = mock_new_id(),
	};

	mock_fail("reject", 1, EINVAL);
	ok(rpma_cm_event_reject(&event, NULL));
	assert_null(event.id);
	expect_trace("reject destroy_id");
}

MOCK_TEST(event_reject__arguments_INVAL)
{
	struct rpma_conn_private_data nothing = {NULL, 5};
	struct rpma_cm_event event = {.type = RDMA_CM_EVENT_CONNECT_REQUEST};
	struct rdma_cm_id id = {0};
	size_t i;

	assert_int_equal(rpma_cm_event_reject(NULL, NULL), RPMA_E_INVAL);
	assert_int_equal(rpma_cm_event_reject(&event, NULL), RPMA_E_INVAL);
	event.id = &id;
	assert_int_equal(rpma_cm_event_reject(&event, &nothing), RPMA_E_INVAL);
	event.type = RDMA_CM_EVENT_ESTABLISHED;
	assert_int_equal(rpma_cm_event_reject(&event, NULL), RPMA_E_INVAL);
	event.type = RDMA_CM_EVENT_CONNECT_REQUEST;
	for (i = 0; i < sizeof(event.reserved); i++) {
		event.reserved[i] = 1;
		assert_int_equal(rpma_cm_event_reject(&event, NULL),
				 RPMA_E_INVAL);
		event.reserved[i] = 0;
	}
	assert_ptr_equal(event.id, &id);
	expect_trace("");
}

/* Whoever is handed an event with something reserved in it refuses it. */
MOCK_TEST(reserved__not_0_INVAL)
{
	struct rpma_cm_event event = {.reserved = {1}};
	struct rpma_conn_cfg *cfg = NULL;
	struct rpma_conn_req *req = NULL;
	struct rpma_conn_req *new_req = NULL;
	enum rpma_conn_event conn_event;
	struct rdma_cm_id id = {0};

	ok(rpma_cm_channel_new(&channel));
	ok(rpma_conn_cfg_new(&cfg));
	ok(rpma_conn_cfg_set_cm_channel(cfg, channel));
	world_conn(cfg);
	ok(rpma_conn_req_new_async(world.peer, "host", "7204", cfg, NULL,
				   &req));
	event.id = mock_id;
	event.type = RDMA_CM_EVENT_ADDR_RESOLVED;
	assert_int_equal(rpma_conn_req_advance(req, &event), RPMA_E_INVAL);
	ok(rpma_conn_get_cm_id(world.conn, &event.id));
	event.type = RDMA_CM_EVENT_ESTABLISHED;
	assert_int_equal(
		rpma_conn_handle_event(world.conn, &event, &conn_event),
		RPMA_E_INVAL);
	event.id = &id;
	event.type = RDMA_CM_EVENT_CONNECT_REQUEST;
	assert_int_equal(rpma_conn_req_new_from_event(world.peer, &event, NULL,
						      NULL, &new_req),
			 RPMA_E_INVAL);
	/* the request is as it was */
	event = (struct rpma_cm_event){
		.type = RDMA_CM_EVENT_ADDR_RESOLVED,
	};
	ok(rpma_conn_req_get_cm_id(req, &event.id));
	assert_int_equal(rpma_conn_req_advance(req, &event), RPMA_E_AGAIN);
	ok(rpma_conn_req_delete(&req));
	world_end();
	ok(rpma_conn_cfg_delete(&cfg));
	/* an acknowledgement must not fail */
	mock_cm_event(RDMA_CM_EVENT_ADDR_CHANGE, NULL, NULL);
	ok(rpma_cm_channel_get_event(channel, &event));
	event.reserved[0] = 1;
	mocks_reset();
	ok(rpma_cm_event_ack(&event));
	expect_trace("ack");
	ok(rpma_cm_channel_delete(&channel));
}

MOCK_TEST(arguments__INVAL)
{
	struct rpma_cm_event event;
	int fd = -1;

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

TEST_MAIN()
