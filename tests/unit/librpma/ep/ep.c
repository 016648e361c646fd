/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/* Unit tests of endpoints. */

#include "world.h"

#include <errno.h>

static struct rpma_ep *ep;
static struct rpma_cm_channel *cm_channel;

static int listen_once(void)
{
	struct rpma_ep *made = NULL;
	int ret = rpma_ep_listen(world.peer, "host", "7204", &made);

	assert_int_equal(made != NULL, ret == 0);
	ok(rpma_ep_shutdown(&made));
	assert_null(made);
	return ret;
}

#define LISTENING "create_evch create_id(evch) getaddrinfo(passive) bind_addr "

MOCK_TEST(listen__EACH_FAILURE)
{
	const struct failure failures[] = {
		{"malloc", 1, ENOMEM, RPMA_E_NOMEM, ""},
		{"create_evch", 1, EMFILE, RPMA_E_PROVIDER, "create_evch"},
		{"create_id", 1, ENOMEM, RPMA_E_PROVIDER,
		 "create_evch create_id(evch) destroy_evch"},
		{"getaddrinfo", 1, ENOENT, RPMA_E_PROVIDER,
		 "create_evch create_id(evch) getaddrinfo(passive) destroy_id "
		 "destroy_evch"},
		{"bind_addr", 1, EADDRINUSE, RPMA_E_PROVIDER,
		 LISTENING "freeaddrinfo destroy_id destroy_evch"},
		{"listen", 1, EINVAL, RPMA_E_PROVIDER,
		 LISTENING "listen(0) freeaddrinfo destroy_id destroy_evch"},
		{NULL, 0, 0, 0,
		 LISTENING "listen(0) freeaddrinfo destroy_id destroy_evch"},
	};

	world_peer();
	EACH_FAILURE_IN_ERRNO(listen_once, failures);
	world_end();
}

static int shutdown_once(void)
{
	struct rpma_ep *made = NULL;
	int ret;

	ok(rpma_ep_listen(world.peer, "host", "7204", &made));
	ret = rpma_ep_shutdown(&made);
	assert_null(made);
	return ret;
}

MOCK_TEST(shutdown__fails_PROVIDER_AND_GONE)
{
	const struct failure failures[] = {
		{"destroy_id", 1, EIO, RPMA_E_PROVIDER,
		 LISTENING "listen(0) freeaddrinfo destroy_id destroy_evch"},
	};

	world_peer();
	EACH_FAILURE(shutdown_once, failures);
	world_end();
}

static int listen_shared(void)
{
	struct rpma_ep *made = NULL;
	int ret = rpma_ep_listen_ex(world.peer, "host", "0", 5, cm_channel,
				    (void *)9, &made);

	if (ret == 0) {
		assert_ptr_equal(mock_id->context, (void *)9);
		assert_int_equal(rpma_cm_channel_delete(&cm_channel),
				 RPMA_E_AGAIN);
	}
	ok(rpma_ep_shutdown(&made));
	return ret;
}

MOCK_TEST(listen_ex__shared_EACH_FAILURE)
{
	const struct failure failures[] = {
		{"create_id", 1, ENOMEM, RPMA_E_PROVIDER, "create_id(evch)"},
		{"listen", 1, EINVAL, RPMA_E_PROVIDER,
		 "create_id(evch) getaddrinfo(passive) bind_addr listen(5) "
		 "freeaddrinfo destroy_id"},
		{NULL, 0, 0, 0,
		 "create_id(evch) getaddrinfo(passive) bind_addr listen(5) "
		 "freeaddrinfo destroy_id"},
	};

	world_peer();
	ok(rpma_cm_channel_new(&cm_channel));
	EACH_FAILURE_IN_ERRNO(listen_shared, failures);
	ok(rpma_cm_channel_delete(&cm_channel));
	world_end();
}

MOCK_TEST(shared__next_conn_req_SHARED_CHANNEL)
{
	struct rpma_conn_req *req = NULL;
	int fd = -1;

	world_peer();
	ok(rpma_cm_channel_new(&cm_channel));
	ok(rpma_ep_listen_ex(world.peer, "host", "0", 0, cm_channel, NULL,
			     &ep));
	mocks_reset();
	assert_int_equal(rpma_ep_next_conn_req(ep, NULL, &req),
			 RPMA_E_SHARED_CHANNEL);
	assert_int_equal(rpma_ep_get_fd(ep, &fd), RPMA_E_SHARED_CHANNEL);
	expect_trace("");
	ok(rpma_ep_shutdown(&ep));
	ok(rpma_cm_channel_delete(&cm_channel));
	world_end();
}

static int next_req(void)
{
	struct rpma_conn_req *req = NULL;
	int ret = rpma_ep_next_conn_req(ep, NULL, &req);

	assert_int_equal(req != NULL, ret == 0);
	ok(rpma_conn_req_delete(&req));
	return ret;
}

static int take_req(void)
{
	mock_cm_event(RDMA_CM_EVENT_CONNECT_REQUEST, mock_new_id(), "data");
	return next_req();
}

#define TAKEN  "get_cm_event create_ch create_cq(10, 0) "
#define REFUSE "ack reject destroy_id"

/* A request that fails is refused, and leaves nothing here. */
MOCK_TEST(next_conn_req__EACH_FAILURE)
{
	const struct failure failures[] = {
		{"malloc", 1, ENOMEM, RPMA_E_NOMEM, "get_cm_event " REFUSE},
		{"malloc", 2, ENOMEM, RPMA_E_NOMEM, "get_cm_event " REFUSE},
		{"malloc", 3, ENOMEM, RPMA_E_NOMEM, "get_cm_event " REFUSE},
		{"malloc", 4, ENOMEM, RPMA_E_NOMEM, "get_cm_event " REFUSE},
		{"create_ch", 1, EMFILE, RPMA_E_PROVIDER,
		 "get_cm_event create_ch " REFUSE},
		{"create_cq", 1, EINVAL, RPMA_E_PROVIDER,
		 TAKEN "destroy_ch " REFUSE},
		{"notify", 1, EIO, RPMA_E_PROVIDER,
		 TAKEN "notify destroy_cq(10) destroy_ch " REFUSE},
		{"create_qp", 1, EINVAL, RPMA_E_PROVIDER,
		 TAKEN "notify create_qp(10/10/1/1/8) destroy_cq(10) "
		       "destroy_ch " REFUSE},
		{"create_evch", 1, EMFILE, RPMA_E_PROVIDER,
		 TAKEN "notify create_qp(10/10/1/1/8) create_evch destroy_qp "
		       "destroy_cq(10) destroy_ch " REFUSE},
		{"migrate_id", 1, EIO, RPMA_E_PROVIDER,
		 TAKEN "notify create_qp(10/10/1/1/8) create_evch migrate_id "
		       "destroy_evch destroy_qp destroy_cq(10) "
		       "destroy_ch " REFUSE},
		/* as if it had failed before */
		{"ack", 1, EINVAL, RPMA_E_PROVIDER,
		 TAKEN "notify create_qp(10/10/1/1/8) create_evch migrate_id "
		       "ack destroy_qp destroy_cq(10) destroy_ch reject "
		       "destroy_id destroy_evch"},
		{NULL, 0, 0, 0,
		 TAKEN "notify create_qp(10/10/1/1/8) create_evch migrate_id "
		       "ack destroy_qp destroy_cq(10) destroy_ch reject "
		       "destroy_id destroy_evch"},
	};

	world_peer();
	ok(rpma_ep_listen(world.peer, "host", "7204", &ep));
	EACH_FAILURE_IN_ERRNO(take_req, failures);
	ok(rpma_ep_shutdown(&ep));
	world_end();
}

MOCK_TEST(next_conn_req__cancelled_WITH_THE_EVENT_ENDS)
{
	world_peer();
	ok(rpma_ep_listen(world.peer, "host", "7204", &ep));
	mock_cm_event(RDMA_CM_EVENT_CONNECT_REQUEST, mock_new_id(), NULL);
	mocks_reset();
	ok(mock_cancelled(next_req));
	expect_trace(TAKEN "notify create_qp(10/10/1/1/8) create_evch "
			   "migrate_id ack destroy_qp destroy_cq(10) "
			   "destroy_ch reject destroy_id destroy_evch");
	ok(rpma_ep_shutdown(&ep));
	world_end();
}

/* Takes a request whose endpoint is gone before the request is answered. */
static struct rpma_conn_req *outlive_ep(const struct rpma_conn_cfg *cfg)
{
	struct rpma_conn_req *req = NULL;

	ok(rpma_ep_listen(world.peer, "host", "7204", &ep));
	mock_cm_event(RDMA_CM_EVENT_CONNECT_REQUEST, mock_new_id(), NULL);
	ok(rpma_ep_next_conn_req(ep, cfg, &req));
	/* no id is left on the channel: the mock looks */
	ok(rpma_ep_shutdown(&ep));
	mocks_reset();
	return req;
}

MOCK_TEST(shutdown__before_a_request_is_answered_LEAVES_THE_REQUEST)
{
	struct rpma_cm_channel *channel = NULL;
	struct rpma_conn_cfg *cfg = NULL;
	struct rpma_conn_req *req;

	world_peer();
	req = outlive_ep(NULL);
	ok(rpma_conn_req_connect(&req, NULL, &world.conn));
	expect_trace("reg_mr(8, 0x1) accept");
	ok(rpma_conn_delete(&world.conn));
	req = outlive_ep(NULL);
	ok(rpma_conn_req_delete(&req));
	/* a CM channel of the configuration */
	ok(rpma_cm_channel_new(&channel));
	ok(rpma_conn_cfg_new(&cfg));
	ok(rpma_conn_cfg_set_cm_channel(cfg, channel));
	req = outlive_ep(cfg);
	assert_int_equal(rpma_cm_channel_delete(&channel), RPMA_E_AGAIN);
	ok(rpma_conn_req_connect(&req, NULL, &world.conn));
	expect_trace("reg_mr(8, 0x1) accept");
	ok(rpma_conn_delete(&world.conn));
	ok(rpma_conn_cfg_delete(&cfg));
	ok(rpma_cm_channel_delete(&channel));
	world_end();
}

MOCK_TEST(next_conn_req__no_event)
{
	const struct failure failures[] = {
		{"get_cm_event", 1, EAGAIN, RPMA_E_NO_EVENT, "get_cm_event"},
		{"get_cm_event", 1, ENODATA, RPMA_E_NO_EVENT, "get_cm_event"},
		{"get_cm_event", 1, EINTR, RPMA_E_AGAIN, "get_cm_event"},
		{"get_cm_event", 1, EIO, RPMA_E_PROVIDER, "get_cm_event"},
	};

	world_peer();
	ok(rpma_ep_listen(world.peer, "host", "7204", &ep));
	EACH_FAILURE_IN_ERRNO(next_req, failures);
	ok(rpma_ep_shutdown(&ep));
	world_end();
}

MOCK_TEST(next_conn_req__another_event_INVAL)
{
	struct rdma_cm_id id = {0};

	world_peer();
	ok(rpma_ep_listen(world.peer, "host", "7204", &ep));
	mocks_reset();
	mock_cm_event(RDMA_CM_EVENT_ESTABLISHED, &id, NULL);
	assert_int_equal(next_req(), RPMA_E_INVAL);
	expect_trace("get_cm_event ack");
	ok(rpma_ep_shutdown(&ep));
	world_end();
}

MOCK_TEST(arguments__INVAL)
{
	struct rpma_conn_req *req = NULL;
	uint16_t port = 0;
	int fd = -1;

	world_peer();
	ep = NULL;
	assert_int_equal(rpma_ep_listen(NULL, "host", "1", &ep), RPMA_E_INVAL);
	assert_int_equal(rpma_ep_listen(world.peer, NULL, "1", &ep),
			 RPMA_E_INVAL);
	assert_int_equal(rpma_ep_listen(world.peer, "host", NULL, &ep),
			 RPMA_E_INVAL);
	assert_int_equal(rpma_ep_listen(world.peer, "host", "1", NULL),
			 RPMA_E_INVAL);
	assert_int_equal(
		rpma_ep_listen_ex(world.peer, "host", "1", -1, NULL, NULL, &ep),
		RPMA_E_INVAL);
	assert_int_equal(rpma_ep_shutdown(NULL), RPMA_E_INVAL);
	ok(rpma_ep_shutdown(&ep));
	assert_int_equal(rpma_ep_get_fd(NULL, &fd), RPMA_E_INVAL);
	assert_int_equal(rpma_ep_get_port(NULL, &port), RPMA_E_INVAL);
	assert_int_equal(rpma_ep_next_conn_req(NULL, NULL, &req), RPMA_E_INVAL);
	expect_trace("");
	ok(rpma_ep_listen(world.peer, "host", "1", &ep));
	assert_int_equal(rpma_ep_get_fd(ep, NULL), RPMA_E_INVAL);
	assert_int_equal(rpma_ep_get_port(ep, NULL), RPMA_E_INVAL);
	assert_int_equal(rpma_ep_next_conn_req(ep, NULL, NULL), RPMA_E_INVAL);
	ok(rpma_ep_get_fd(ep, &fd));
	assert_true(fd > 0);
	ok(rpma_ep_get_port(ep, &port));
	assert_int_equal(port, 4791);
	ok(rpma_ep_shutdown(&ep));
	world_end();
}

TEST_MAIN()
