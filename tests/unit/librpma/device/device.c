/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * Unit tests of objects given to objects of another device: refused before any
 * use, with a message that names both devices.
 */

#include "world.h"

#include <string.h>

#include "device.h"

/* The last error, which is a line, is this; none: "". */
static void expect_logged(const char *text)
{
	size_t length = strcspn(mocks_said(), "\n");

	if (strlen(text) != length || strncmp(mocks_said(), text, length) != 0)
		fail_msg("\"%s\" is in the log", mocks_said());
	mocks_listen();
}

static void stop_listening(void)
{
	ok(rpma_log_set_function(RPMA_LOG_USE_DEFAULT_FUNCTION));
	ok(rpma_log_set_threshold(RPMA_LOG_THRESHOLD, RPMA_LOG_DISABLED));
}

/* What a request with this configuration answers; nothing of it is made. */
static void refuse_request(const struct rpma_conn_cfg *cfg, const char *text)
{
	struct rpma_conn_req *req = NULL;
	int live = mocks_live();

	mocks_reset();
	assert_int_equal(
		rpma_conn_req_new(world.peer, "host", "7204", cfg, &req),
		RPMA_E_INVAL);
	assert_null(req);
	assert_int_equal(mocks_live(), live);
	expect_trace("getaddrinfo create_id resolve_addr(1000) "
		     "resolve_route(1000) destroy_id freeaddrinfo");
	expect_logged(text);
}

#define WANTED(what)                                                     \
	what " is of device other0, the connection of mock0: both have " \
	     "to be made on one context"

MOCK_TEST(conn_req__of_another_device_INVAL)
{
	struct rpma_channel *channel = NULL;
	struct rpma_conn_cfg *cfg = NULL;
	struct rpma_peer *peer = NULL;
	struct rpma_srq *srq = NULL;
	struct rpma_cq *cq = NULL;

	world_peer();
	ok(rpma_peer_new(MOCK_OTHER_CTX, &peer));
	ok(rpma_channel_new(MOCK_OTHER_CTX, &channel));
	ok(rpma_cq_new(MOCK_OTHER_CTX, 4, NULL, 0, NULL, &cq));
	ok(rpma_srq_new(peer, NULL, &srq));
	mocks_listen();

	ok(rpma_conn_cfg_new(&cfg));
	ok(rpma_conn_cfg_set_cq(cfg, cq));
	refuse_request(cfg, WANTED("the CQ"));
	ok(rpma_conn_cfg_set_cq(cfg, NULL));
	ok(rpma_conn_cfg_set_rcq(cfg, cq));
	refuse_request(cfg, WANTED("the RCQ"));
	ok(rpma_conn_cfg_set_rcq(cfg, NULL));
	ok(rpma_conn_cfg_set_channel(cfg, channel));
	refuse_request(cfg, WANTED("the channel"));
	ok(rpma_conn_cfg_set_channel(cfg, NULL));
	ok(rpma_conn_cfg_set_srq(cfg, srq));
	refuse_request(cfg, WANTED("the SRQ"));
	ok(rpma_conn_cfg_delete(&cfg));

	stop_listening();
	ok(rpma_srq_delete(&srq));
	ok(rpma_cq_delete(&cq));
	ok(rpma_channel_delete(&channel));
	ok(rpma_peer_delete(&peer));
	world_end();
}

MOCK_TEST(srq_new__of_another_device_INVAL)
{
	struct rpma_channel *channel = NULL;
	struct rpma_srq_cfg *cfg = NULL;
	struct rpma_srq *srq = NULL;
	struct rpma_cq *cq = NULL;

	world_peer();
	ok(rpma_channel_new(MOCK_OTHER_CTX, &channel));
	ok(rpma_cq_new(MOCK_OTHER_CTX, 4, NULL, 0, NULL, &cq));
	mocks_reset();
	mocks_listen();
	ok(rpma_srq_cfg_new(&cfg));
	ok(rpma_srq_cfg_set_rcq(cfg, cq));
	assert_int_equal(rpma_srq_new(world.peer, cfg, &srq), RPMA_E_INVAL);
	expect_logged("the RCQ is of device other0, the SRQ of mock0: both "
		      "have to be made on one context");
	ok(rpma_srq_cfg_set_rcq(cfg, NULL));
	ok(rpma_srq_cfg_set_channel(cfg, channel));
	assert_int_equal(rpma_srq_new(world.peer, cfg, &srq), RPMA_E_INVAL);
	expect_logged("the channel is of device other0, the SRQ of mock0: "
		      "both have to be made on one context");
	assert_null(srq);
	expect_trace("");
	ok(rpma_srq_cfg_delete(&cfg));
	stop_listening();
	ok(rpma_cq_delete(&cq));
	ok(rpma_channel_delete(&channel));
	world_end();
}

MOCK_TEST(cq_new__channel_of_another_device_INVAL)
{
	struct rpma_channel *channel = NULL;
	struct rpma_cq *cq = NULL;

	ok(rpma_channel_new(MOCK_OTHER_CTX, &channel));
	mocks_reset();
	mocks_listen();
	assert_int_equal(rpma_cq_new(MOCK_CTX, 4, channel, 0, NULL, &cq),
			 RPMA_E_INVAL);
	expect_trace("");
	expect_logged("the channel is of device other0, the CQ of mock0: both "
		      "have to be made on one context");
	stop_listening();
	ok(rpma_channel_delete(&channel));
}

/* A second context of one device is another, and the words say which it is. */
MOCK_TEST(check__opened_twice_INVAL)
{
	struct ibv_context again = *MOCK_CTX;

	mocks_listen();
	ok(rpma__device_check("the SRQ", MOCK_CTX, "the RCQ", MOCK_CTX));
	expect_logged("");
	assert_int_equal(
		rpma__device_check("the SRQ", MOCK_CTX, "the RCQ", &again),
		RPMA_E_INVAL);
	expect_logged("the RCQ is of device mock0, opened another time, the "
		      "SRQ of mock0: both have to be made on one context");
	stop_listening();
}

TEST_MAIN()
