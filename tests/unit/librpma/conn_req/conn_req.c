/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/* Unit tests of connection requests: made, connected, refused, taken back. */

#include "world.h"

#include <errno.h>

static struct rpma_conn_cfg *cfg;
static struct rpma_cm_channel *cm_channel;
static struct rpma_conn_private_data pdata = {"hello", 6};
static int me, other;

#define RESOLVED                                    \
	"getaddrinfo create_id resolve_addr(1000) " \
	"resolve_route(1000) "
#define MADE   "create_ch create_cq(10, 0) notify create_qp(10/10/1/1/8) "
#define UNMADE "destroy_qp destroy_cq(10) destroy_ch "
/* an incoming request is moved when made, an outgoing request when opened */
#define MOVED	   "create_evch migrate_id "
#define FLUSHES	   "reg_mr(8, 0x1) "
#define OPENED	   MOVED FLUSHES
#define CLOSED	   "destroy_qp dereg_mr destroy_cq(10) destroy_ch "
#define NEW_ACTIVE RESOLVED MADE "freeaddrinfo "

/* ---- the active side ---- */

static int new_req(void)
{
	struct rpma_conn_req *req = NULL;
	int ret = rpma_conn_req_new(world.peer, "host", "7204", cfg, &req);

	assert_int_equal(req != NULL, ret == 0);
	ok(rpma_conn_req_delete(&req));
	assert_null(req);
	return ret;
}

MOCK_TEST(new__EACH_FAILURE)
{
	const struct failure failures[] = {
		{"getaddrinfo", 1, ENOENT, RPMA_E_PROVIDER, "getaddrinfo"},
		{"create_id", 1, ENOMEM, RPMA_E_PROVIDER,
		 "getaddrinfo create_id freeaddrinfo"},
		{"resolve_addr", 1, ENODEV, RPMA_E_PROVIDER,
		 "getaddrinfo create_id resolve_addr(1000) destroy_id "
		 "freeaddrinfo"},
		{"resolve_route", 1, ETIMEDOUT, RPMA_E_PROVIDER,
		 RESOLVED "destroy_id freeaddrinfo"},
		{"malloc", 1, ENOMEM, RPMA_E_NOMEM,
		 RESOLVED "destroy_id freeaddrinfo"},
		{"malloc", 2, ENOMEM, RPMA_E_NOMEM,
		 RESOLVED "destroy_id freeaddrinfo"},
		{"malloc", 3, ENOMEM, RPMA_E_NOMEM,
		 RESOLVED "destroy_id freeaddrinfo"},
		{"create_ch", 1, EMFILE, RPMA_E_PROVIDER,
		 RESOLVED "create_ch destroy_id freeaddrinfo"},
		{"create_cq", 1, EINVAL, RPMA_E_PROVIDER,
		 RESOLVED "create_ch create_cq(10, 0) destroy_ch destroy_id "
			  "freeaddrinfo"},
		{"notify", 1, EIO, RPMA_E_PROVIDER,
		 RESOLVED "create_ch create_cq(10, 0) notify destroy_cq(10) "
			  "destroy_ch destroy_id freeaddrinfo"},
		{"create_qp", 1, EINVAL, RPMA_E_PROVIDER,
		 RESOLVED MADE "destroy_cq(10) destroy_ch destroy_id "
			       "freeaddrinfo"},
		{NULL, 0, 0, 0, NEW_ACTIVE UNMADE "destroy_id"},
	};

	cfg = NULL;
	world_peer();
	EACH_FAILURE_IN_ERRNO(new_req, failures);
	world_end();
}

/* Shared channel, CQ and RCQ: a channel for both. */
MOCK_TEST(new__shared_channel_EACH_FAILURE)
{
#define MADE_D                                                      \
	"create_ch create_cq(10, 0) notify create_cq(7, 0) notify " \
	"create_qp(10/10/1/1/8 rcq) "
	const struct failure failures[] = {
		{"create_ch", 1, EMFILE, RPMA_E_PROVIDER,
		 RESOLVED "create_ch destroy_id freeaddrinfo"},
		{"create_cq", 2, EINVAL, RPMA_E_PROVIDER,
		 RESOLVED "create_ch create_cq(10, 0) notify create_cq(7, 0) "
			  "destroy_cq(10) destroy_ch destroy_id freeaddrinfo"},
		{"create_qp", 1, EINVAL, RPMA_E_PROVIDER,
		 RESOLVED MADE_D "destroy_cq(7) destroy_cq(10) destroy_ch "
				 "destroy_id freeaddrinfo"},
		{NULL, 0, 0, 0,
		 RESOLVED MADE_D "freeaddrinfo destroy_qp destroy_cq(7) "
				 "destroy_cq(10) destroy_id destroy_ch"},
	};

	world_peer();
	ok(rpma_conn_cfg_new(&cfg));
	ok(rpma_conn_cfg_set_compl_channel(cfg, true));
	ok(rpma_conn_cfg_set_rcq_size(cfg, 7));
	EACH_FAILURE_IN_ERRNO(new_req, failures);
	ok(rpma_conn_cfg_delete(&cfg));
	world_end();
}

/* Private channels: each CQ has a channel. */
MOCK_TEST(new__rcq_HAS_ITS_OWN_CHANNEL)
{
	world_peer();
	ok(rpma_conn_cfg_new(&cfg));
	ok(rpma_conn_cfg_set_rcq_size(cfg, 7));
	ok(new_req());
	expect_trace(RESOLVED
		     "create_ch create_cq(10, 0) notify create_ch "
		     "create_cq(7, 0) notify create_qp(10/10/1/1/8 rcq) "
		     "freeaddrinfo destroy_qp destroy_cq(7) destroy_ch "
		     "destroy_cq(10) destroy_ch destroy_id");
	ok(rpma_conn_cfg_delete(&cfg));
	world_end();
}

MOCK_TEST(new__srq_RECEIVES_ARE_ITS_OWN)
{
	struct rpma_srq *srq = NULL;

	world_peer();
	ok(rpma_srq_new(world.peer, NULL, &srq));
	ok(rpma_conn_cfg_new(&cfg));
	ok(rpma_conn_cfg_set_srq(cfg, srq));
	ok(rpma_conn_cfg_set_rcq_size(cfg, 7));
	mocks_reset();
	ok(new_req());
	expect_trace(RESOLVED
		     "create_ch create_cq(10, 0) notify "
		     "create_qp(10/10/1/1/8 rcq srq) freeaddrinfo " UNMADE
		     "destroy_id");
	mocks_reset();
	ok(rpma_conn_cfg_set_compl_channel(cfg, true));
	assert_int_equal(new_req(), RPMA_E_INVAL);
	expect_trace(RESOLVED "destroy_id freeaddrinfo");
	ok(rpma_conn_cfg_delete(&cfg));
	ok(rpma_srq_delete(&srq));
	world_end();
}

MOCK_TEST(new__contradictions_INVAL)
{
	struct rpma_channel *channel = NULL;
	struct rpma_srq *srq = NULL;
	struct rpma_cq *cq = NULL;

	world_peer();
	ok(rpma_channel_new(MOCK_CTX, &channel));
	ok(rpma_cq_new(MOCK_CTX, 4, NULL, 0, NULL, &cq));
	ok(rpma_srq_new(world.peer, NULL, &srq));
	ok(rpma_conn_cfg_new(&cfg));
	ok(rpma_conn_cfg_set_compl_channel(cfg, true));
	ok(rpma_conn_cfg_set_channel(cfg, channel));
	assert_int_equal(new_req(), RPMA_E_INVAL);
	ok(rpma_conn_cfg_set_channel(cfg, NULL));
	ok(rpma_conn_cfg_set_cq(cfg, cq));
	assert_int_equal(new_req(), RPMA_E_INVAL);
	ok(rpma_conn_cfg_set_cq(cfg, NULL));
	ok(rpma_conn_cfg_set_rcq(cfg, cq));
	assert_int_equal(new_req(), RPMA_E_INVAL);
	ok(rpma_conn_cfg_set_compl_channel(cfg, false));
	ok(new_req());
	ok(rpma_conn_cfg_set_srq(cfg, srq));
	assert_int_equal(new_req(), RPMA_E_INVAL);
	ok(rpma_conn_cfg_delete(&cfg));
	ok(rpma_srq_delete(&srq));
	ok(rpma_cq_delete(&cq));
	ok(rpma_channel_delete(&channel));
	world_end();
}

/* Given CQs are used as they are and left when the request goes. */
MOCK_TEST(new__cqs_given_ARE_NOT_OWNED)
{
	struct rpma_cq *cq = NULL;
	struct rpma_cq *rcq = NULL;

	world_peer();
	ok(rpma_cq_new(MOCK_CTX, 4, NULL, 0, NULL, &cq));
	ok(rpma_cq_new(MOCK_CTX, 5, NULL, 0, NULL, &rcq));
	ok(rpma_conn_cfg_new(&cfg));
	ok(rpma_conn_cfg_set_cq(cfg, cq));
	ok(rpma_conn_cfg_set_rcq(cfg, rcq));
	mocks_reset();
	ok(new_req());
	expect_trace(RESOLVED "create_qp(10/10/1/1/8 rcq) freeaddrinfo "
			      "destroy_qp destroy_id");
	ok(rpma_cq_delete(&cq));
	ok(rpma_cq_delete(&rcq));
	ok(rpma_conn_cfg_delete(&cfg));
	world_end();
}

MOCK_TEST(new__every_value_REACHES_VERBS)
{
	struct rpma_channel *channel = NULL;

	world_peer();
	ok(rpma_channel_new(MOCK_CTX, &channel));
	ok(rpma_conn_cfg_new(&cfg));
	ok(rpma_conn_cfg_set_timeout(cfg, 5));
	ok(rpma_conn_cfg_set_cq_size(cfg, 11));
	ok(rpma_conn_cfg_set_sq_size(cfg, 12));
	ok(rpma_conn_cfg_set_rq_size(cfg, 13));
	ok(rpma_conn_cfg_set_comp_vector(cfg, 1));
	ok(rpma_conn_cfg_set_channel(cfg, channel));
	ok(rpma_conn_cfg_set_max_send_sge(cfg, 2));
	ok(rpma_conn_cfg_set_max_recv_sge(cfg, 3));
	ok(rpma_conn_cfg_set_max_inline_data(cfg, 64));
	ok(rpma_conn_cfg_set_tos(cfg, 96));
	ok(rpma_conn_cfg_set_ack_timeout(cfg, 14));
	mocks_reset();
	ok(new_req());
	expect_trace("getaddrinfo create_id set_option(0, 96) "
		     "set_option(3, 14) resolve_addr(5) resolve_route(5) "
		     "create_cq(11, context, 1) create_qp(12/13/2/3/64) "
		     "freeaddrinfo destroy_qp destroy_cq(11) destroy_id");
	assert_int_equal(mock_qp_attr.comp_mask, IBV_QP_INIT_ATTR_PD);
	assert_int_equal(mock_qp_attr.qp_type, IBV_QPT_RC);
	assert_int_equal(mock_qp_attr.sq_sig_all, 0);
	/* fields not set are zero, whichever field a provider reads */
	assert_null(mock_qp_attr.qp_context);
	assert_null(mock_qp_attr.xrcd);
	assert_null(mock_qp_attr.rwq_ind_tbl);
	assert_int_equal(mock_qp_attr.create_flags, 0);
	assert_int_equal(mock_qp_attr.max_tso_header, 0);
	assert_int_equal(mock_qp_attr.source_qpn, 0);
	assert_int_equal(mock_qp_attr.send_ops_flags, 0);
	mock_fail("set_option", 2, ENOSYS);
	assert_int_equal(new_req(), RPMA_E_PROVIDER);
	ok(rpma_conn_cfg_delete(&cfg));
	ok(rpma_channel_delete(&channel));
	world_end();
}

static int connect_active(void)
{
	struct rpma_conn_req *req = NULL;
	struct rpma_conn *conn = NULL;
	int ret;

	ok(rpma_conn_req_new(world.peer, "host", "7204", NULL, &req));
	ret = rpma_conn_req_connect(&req, &pdata, &conn);
	assert_null(req);
	assert_int_equal(conn != NULL, ret == 0);
	ok(rpma_conn_delete(&conn));
	assert_null(conn);
	return ret;
}

MOCK_TEST(connect__active_EACH_FAILURE)
{
	const struct failure failures[] = {
		{"create_evch", 1, EMFILE, RPMA_E_PROVIDER,
		 NEW_ACTIVE "create_evch " UNMADE "destroy_id"},
		{"migrate_id", 1, EIO, RPMA_E_PROVIDER,
		 NEW_ACTIVE "create_evch migrate_id destroy_evch " UNMADE
			    "destroy_id"},
		{"malloc", 4, ENOMEM, RPMA_E_NOMEM,
		 NEW_ACTIVE "create_evch migrate_id " UNMADE
			    "destroy_id destroy_evch"},
		{"reg_mr", 1, ENOMEM, RPMA_E_PROVIDER,
		 NEW_ACTIVE OPENED UNMADE "destroy_id destroy_evch"},
		{"connect", 1, ENETUNREACH, RPMA_E_PROVIDER,
		 NEW_ACTIVE OPENED "connect " CLOSED "destroy_id destroy_evch"},
		{NULL, 0, 0, 0,
		 NEW_ACTIVE OPENED "connect " CLOSED "destroy_id destroy_evch"},
	};

	world_peer();
	EACH_FAILURE_IN_ERRNO(connect_active, failures);
	assert_int_equal(mock_conn_param.private_data_len, 6);
	assert_int_equal(mock_conn_param.responder_resources, 255);
	assert_int_equal(mock_conn_param.initiator_depth, 255);
	assert_int_equal(mock_conn_param.flow_control, 1);
	assert_int_equal(mock_conn_param.retry_count, 7);
	assert_int_equal(mock_conn_param.rnr_retry_count, 7);
	world_end();
}

/* ---- the passive side ---- */

static struct rpma_conn_req *take(void)
{
	struct rpma_cm_event event = {
		.type = RDMA_CM_EVENT_CONNECT_REQUEST,
		.id = mock_new_id(),
		.private_data_len = 6,
		.private_data = "hello",
	};
	struct rpma_conn_req *req = NULL;

	ok(rpma_conn_req_new_from_event(world.peer, &event, cfg, &me, &req));
	assert_ptr_equal(event.id->context, &me);
	mocks_reset();
	return req;
}

static int accept_passive(void)
{
	struct rpma_cm_event event = {
		.type = RDMA_CM_EVENT_CONNECT_REQUEST,
		.id = mock_new_id(),
	};
	struct rpma_conn_req *req = NULL;
	struct rpma_conn *conn = NULL;
	int ret;

	ok(rpma_conn_req_new_from_event(world.peer, &event, NULL, NULL, &req));
	ret = rpma_conn_req_connect(&req, &pdata, &conn);
	assert_null(req);
	assert_int_equal(conn != NULL, ret == 0);
	ok(rpma_conn_delete(&conn));
	return ret;
}

/* The id can get its events before the id is accepted; a failure refuses. */
MOCK_TEST(connect__passive_EACH_FAILURE)
{
	const struct failure failures[] = {
		{"reg_mr", 1, ENOMEM, RPMA_E_PROVIDER,
		 MADE OPENED UNMADE "reject destroy_id destroy_evch"},
		{"accept", 1, EINVAL, RPMA_E_PROVIDER,
		 MADE OPENED "accept " CLOSED "reject destroy_id destroy_evch"},
		{NULL, 0, 0, 0,
		 MADE OPENED "accept " CLOSED "destroy_id destroy_evch"},
	};

	world_peer();
	EACH_FAILURE_IN_ERRNO(accept_passive, failures);
	world_end();
}

MOCK_TEST(connect__limits_of_the_cfg_ARE_ASKED_FOR)
{
	struct rpma_conn_req *req;

	world_peer();
	ok(rpma_conn_cfg_new(&cfg));
	ok(rpma_conn_cfg_set_responder_resources(cfg, 1));
	ok(rpma_conn_cfg_set_initiator_depth(cfg, 2));
	ok(rpma_conn_cfg_set_retry_count(cfg, 3));
	ok(rpma_conn_cfg_set_rnr_retry_count(cfg, 4));
	req = take();
	ok(rpma_conn_req_connect(&req, NULL, &world.conn));
	assert_int_equal(mock_conn_param.responder_resources, 1);
	assert_int_equal(mock_conn_param.initiator_depth, 2);
	assert_int_equal(mock_conn_param.retry_count, 3);
	assert_int_equal(mock_conn_param.rnr_retry_count, 4);
	assert_int_equal(mock_conn_param.private_data_len, 0);
	assert_null(mock_conn_param.private_data);
	ok(rpma_conn_cfg_delete(&cfg));
	world_end();
}

/* The queue pair can send as soon as the request is accepted. */
MOCK_TEST(connect__passive_SETS_THE_RNR_TIMER)
{
	struct rpma_conn_req *req;

	world_peer();
	ok(rpma_conn_cfg_new(&cfg));
	ok(rpma_conn_cfg_set_min_rnr_timer(cfg, 12));
	req = take();
	ok(rpma_conn_req_connect(&req, NULL, &world.conn));
	expect_trace(FLUSHES "accept modify_qp(3, 0x8001)");
	assert_int_equal(mock_qp_modified.min_rnr_timer, 12);
	ok(rpma_conn_cfg_delete(&cfg));
	world_end();
}

/* The log has every requested number, and the limits of the device. */
MOCK_TEST(new__qp_refused_NAMES_LIMITS)
{
	const int max_qp_wr = mock_attr.orig_attr.max_qp_wr;
	const int max_sge = mock_attr.orig_attr.max_sge;

	mock_attr.orig_attr.max_qp_wr = 4711;
	mock_attr.orig_attr.max_sge = 17;
	world_peer();
	cfg = NULL;
	ok(rpma_conn_cfg_new(&cfg));
	ok(rpma_conn_cfg_set_sq_size(cfg, 12));
	ok(rpma_conn_cfg_set_rq_size(cfg, 13));
	ok(rpma_conn_cfg_set_max_send_sge(cfg, 2));
	ok(rpma_conn_cfg_set_max_recv_sge(cfg, 3));
	ok(rpma_conn_cfg_set_max_inline_data(cfg, 4000));
	mocks_reset();
	mocks_listen();
	mock_fail("create_qp", 1, EINVAL);
	assert_int_equal(new_req(), RPMA_E_PROVIDER);
	expect_said("(12 send, 13 receive work requests, 2 and 3 pieces each, "
		    "4000 inline bytes) failed");
	expect_said("at most 4711 work requests and 17 pieces");
	ok(rpma_conn_cfg_delete(&cfg));
	ok(rpma_log_set_function(RPMA_LOG_USE_DEFAULT_FUNCTION));
	world_end();
	mock_attr.orig_attr.max_qp_wr = max_qp_wr;
	mock_attr.orig_attr.max_sge = max_sge;
}

static int new_from_event(void)
{
	struct rpma_cm_event event = {
		.type = RDMA_CM_EVENT_CONNECT_REQUEST,
		.id = mock_new_id(),
		.private_data_len = 3,
	};
	struct rpma_conn_req *req = NULL;
	int ret = rpma_conn_req_new_from_event(world.peer, &event, cfg, NULL,
					       &req);

	assert_int_equal(req != NULL, ret == 0);
	ok(rpma_conn_req_delete(&req));
	return ret;
}

MOCK_TEST(new_from_event__EACH_FAILURE)
{
	const struct failure failures[] = {
		{"malloc", 1, ENOMEM, RPMA_E_NOMEM, "reject destroy_id"},
		{"malloc", 2, ENOMEM, RPMA_E_NOMEM, "reject destroy_id"},
		{"malloc", 3, ENOMEM, RPMA_E_NOMEM, "reject destroy_id"},
		{"create_qp", 1, EINVAL, RPMA_E_PROVIDER,
		 MADE "destroy_cq(10) destroy_ch reject destroy_id"},
		{"create_evch", 1, EMFILE, RPMA_E_PROVIDER,
		 MADE "create_evch " UNMADE "reject destroy_id"},
		{"migrate_id", 1, EIO, RPMA_E_PROVIDER,
		 MADE MOVED "destroy_evch " UNMADE "reject destroy_id"},
		{NULL, 0, 0, 0,
		 MADE MOVED UNMADE "reject destroy_id destroy_evch"},
	};

	cfg = NULL;
	world_peer();
	EACH_FAILURE_IN_ERRNO(new_from_event, failures);
	world_end();
}

MOCK_TEST(new_from_event__options_fail_REFUSED)
{
	const struct failure failures[] = {
		{"set_option", 1, ENOSYS, RPMA_E_PROVIDER,
		 "set_option(0, 96) reject destroy_id"},
	};

	world_peer();
	ok(rpma_conn_cfg_new(&cfg));
	ok(rpma_conn_cfg_set_tos(cfg, 96));
	EACH_FAILURE_IN_ERRNO(new_from_event, failures);
	ok(rpma_conn_cfg_delete(&cfg));
	world_end();
}

MOCK_TEST(new_from_event__arguments_INVAL)
{
	struct rpma_cm_event event = {.type = RDMA_CM_EVENT_ESTABLISHED};
	struct rpma_conn_req *req = NULL;
	struct rdma_cm_id id = {0};

	world_peer();
	event.id = &id;
	assert_int_equal(rpma_conn_req_new_from_event(world.peer, &event, NULL,
						      NULL, &req),
			 RPMA_E_INVAL);
	event.type = RDMA_CM_EVENT_CONNECT_REQUEST;
	assert_int_equal(
		rpma_conn_req_new_from_event(NULL, &event, NULL, NULL, &req),
		RPMA_E_INVAL);
	assert_int_equal(rpma_conn_req_new_from_event(world.peer, NULL, NULL,
						      NULL, &req),
			 RPMA_E_INVAL);
	assert_int_equal(rpma_conn_req_new_from_event(world.peer, &event, NULL,
						      NULL, NULL),
			 RPMA_E_INVAL);
	event.id = NULL;
	assert_int_equal(rpma_conn_req_new_from_event(world.peer, &event, NULL,
						      NULL, &req),
			 RPMA_E_INVAL);
	expect_trace("");
	world_end();
}

MOCK_TEST(delete__passive_FIRST_ERROR_ALL_GONE)
{
	const char *calls[] = {"destroy_cq", "destroy_ch", "reject",
			       "destroy_id"};
	size_t i;

	cfg = NULL;
	world_peer();
	for (i = 0; i < sizeof(calls) / sizeof(calls[0]); i++) {
		struct rpma_conn_req *req = take();

		mock_fail(calls[i], 1, EIO);
		assert_int_equal(rpma_conn_req_delete(&req), RPMA_E_PROVIDER);
		assert_null(req);
		expect_trace(UNMADE "reject destroy_id destroy_evch");
	}
	world_end();
}

MOCK_TEST(delete__passive_peer_has_given_up_DONE)
{
	struct rpma_conn_req *req;

	cfg = NULL;
	world_peer();
	req = take();
	mock_fail("reject", 1, EINVAL);
	ok(rpma_conn_req_delete(&req));
	assert_null(req);
	expect_trace(UNMADE "reject destroy_id destroy_evch");
	world_end();
}

/* The words are too many for the device: the peer is refused without words. */
MOCK_TEST(reject__words_fail_REFUSED_WITHOUT)
{
	struct rpma_conn_req *req;

	cfg = NULL;
	world_peer();
	req = take();
	mock_fail("reject", 1, EINVAL);
	pdata.len = 5;
	assert_int_equal(rpma_conn_req_reject(&req, &pdata), RPMA_E_PROVIDER);
	pdata.len = 6;
	assert_null(req);
	expect_trace(UNMADE "reject(hello) reject destroy_id destroy_evch");
	world_end();
}

MOCK_TEST(reject__SAYS_WHY)
{
	struct rpma_conn_private_data nothing = {0};
	struct rpma_conn_req *req;

	cfg = NULL;
	world_peer();
	req = take();
	assert_int_equal(rpma_conn_req_reject(&req, &nothing), RPMA_E_INVAL);
	assert_non_null(req);
	ok(rpma_conn_req_claim(req, &me));
	assert_int_equal(rpma_conn_req_reject(&req, &pdata), RPMA_E_CLAIMED);
	ok(rpma_conn_req_release(req, &me));
	pdata.len = 5;
	ok(rpma_conn_req_reject(&req, &pdata));
	pdata.len = 6;
	assert_null(req);
	expect_trace(UNMADE "reject(hello) destroy_id destroy_evch");
	assert_int_equal(rpma_conn_req_reject(NULL, NULL), RPMA_E_INVAL);
	assert_int_equal(rpma_conn_req_reject(&req, NULL), RPMA_E_INVAL);
	req = take();
	ok(rpma_conn_req_reject(&req, NULL));
	expect_trace(UNMADE "reject destroy_id destroy_evch");
	world_end();
}

MOCK_TEST(reject__active_INVAL_NOTHING_DONE)
{
	struct rpma_conn_req *req = NULL;

	world_peer();
	ok(rpma_conn_req_new(world.peer, "host", "1", NULL, &req));
	mocks_reset();
	assert_int_equal(rpma_conn_req_reject(&req, NULL), RPMA_E_INVAL);
	assert_non_null(req);
	expect_trace("");
	ok(rpma_conn_req_delete(&req));
	world_end();
}

MOCK_TEST(private_data__passive_IS_WHAT_CAME)
{
	struct rpma_conn_private_data data;
	struct rpma_conn_req *req;

	cfg = NULL;
	world_peer();
	req = take();
	ok(rpma_conn_req_get_private_data(req, &data));
	assert_int_equal(data.len, 6);
	assert_string_equal(data.ptr, "hello");
	assert_int_equal(rpma_conn_req_get_private_data(NULL, &data),
			 RPMA_E_INVAL);
	assert_int_equal(rpma_conn_req_get_private_data(req, NULL),
			 RPMA_E_INVAL);
	ok(rpma_conn_req_delete(&req));
	world_end();
}

/* ---- connect: wrong arguments ---- */

MOCK_TEST(connect__bad_arguments_CONSUME_THE_REQUEST)
{
	struct rpma_conn_private_data no_ptr = {NULL, 5};
	struct rpma_conn_private_data no_len = {"x", 0};
	struct rpma_conn_req *req = NULL;
	struct rpma_conn *conn = NULL;

	cfg = NULL;
	world_peer();
	assert_int_equal(rpma_conn_req_connect(NULL, NULL, &conn),
			 RPMA_E_INVAL);
	assert_int_equal(rpma_conn_req_connect(&req, NULL, &conn),
			 RPMA_E_INVAL);
	req = take();
	assert_int_equal(rpma_conn_req_connect(&req, NULL, NULL), RPMA_E_INVAL);
	assert_null(req);
	expect_trace(UNMADE "reject destroy_id destroy_evch");
	req = take();
	assert_int_equal(rpma_conn_req_connect(&req, &no_ptr, &conn),
			 RPMA_E_INVAL);
	assert_null(req);
	ok(rpma_conn_req_new(world.peer, "host", "1", NULL, &req));
	mocks_reset();
	assert_int_equal(rpma_conn_req_connect(&req, &no_len, &conn),
			 RPMA_E_INVAL);
	assert_null(req);
	expect_trace(UNMADE "destroy_id");
	assert_null(conn);
	world_end();
}

MOCK_TEST(new__arguments_INVAL)
{
	struct rpma_conn_req *req = NULL;

	world_peer();
	assert_int_equal(rpma_conn_req_new(NULL, "h", "1", NULL, &req),
			 RPMA_E_INVAL);
	assert_int_equal(rpma_conn_req_new(world.peer, NULL, "1", NULL, &req),
			 RPMA_E_INVAL);
	assert_int_equal(rpma_conn_req_new(world.peer, "h", NULL, NULL, &req),
			 RPMA_E_INVAL);
	assert_int_equal(rpma_conn_req_new(world.peer, "h", "1", NULL, NULL),
			 RPMA_E_INVAL);
	assert_int_equal(rpma_conn_req_delete(NULL), RPMA_E_INVAL);
	ok(rpma_conn_req_delete(&req));
	expect_trace("");
	world_end();
}

static struct rpma_conn_req *the_req;

static int recv_on_req(void)
{
	return rpma_conn_req_recv(the_req, world.mr, 4, 8, &me);
}

MOCK_TEST(recv__EACH_FAILURE)
{
	const struct failure failures[] = {
		{"post_recv", 1, ENOMEM, RPMA_E_PROVIDER, "post_recv"},
		{NULL, 0, 0, 0, "post_recv"},
	};

	cfg = NULL;
	world_regions(WORLD_ALL_USAGES);
	the_req = take();
	EACH_FAILURE_IN_ERRNO(recv_on_req, failures);
	assert_int_equal(mock_received[0].wr_id, (uintptr_t)&me);
	assert_int_equal(rpma_conn_req_recv(NULL, world.mr, 0, 8, NULL),
			 RPMA_E_INVAL);
	/* there is no form without bytes here */
	assert_int_equal(rpma_conn_req_recv(the_req, NULL, 0, 0, NULL),
			 RPMA_E_INVAL);
	ok(rpma_conn_req_delete(&the_req));
	world_end();
}

MOCK_TEST(claim__KEEPS_OTHERS_OUT)
{
	struct rpma_recv_wr wr;
	struct rpma_recv_wr *bad = NULL;
	struct rpma_conn_req *req;

	cfg = NULL;
	world_regions(WORLD_ALL_USAGES);
	req = take();
	ok(rpma_wr_recv(NULL, 0, 0, 5, &wr));
	ok(rpma_conn_req_claim(req, &me));
	assert_int_equal(rpma_conn_req_claim(req, &other), RPMA_E_CLAIMED);
	assert_int_equal(rpma_conn_req_release(req, &other), RPMA_E_CLAIMED);
	assert_int_equal(rpma_conn_req_recv(req, world.mr, 0, 8, NULL),
			 RPMA_E_SHARED_CHANNEL);
	assert_int_equal(rpma_conn_req_post_recv(req, NULL, &wr, &bad),
			 RPMA_E_SHARED_CHANNEL);
	ok(rpma_conn_req_post_recv(req, &me, &wr, &bad));
	assert_int_equal(rpma_conn_req_delete(&req), RPMA_E_CLAIMED);
	assert_non_null(req);
	ok(rpma_conn_req_connect(&req, NULL, &world.conn));
	assert_int_equal(rpma_conn_claim(world.conn, &other), RPMA_E_CLAIMED);
	ok(rpma_conn_release(world.conn, &me));
	assert_int_equal(rpma_conn_req_claim(NULL, &me), RPMA_E_INVAL);
	assert_int_equal(rpma_conn_req_release(NULL, &me), RPMA_E_INVAL);
	assert_int_equal(rpma_conn_req_post_recv(NULL, NULL, &wr, &bad),
			 RPMA_E_INVAL);
	world_end();
}

/* The owner of a CQ polls the CQ, so the request of the CQ stays. */
MOCK_TEST(claim__of_an_owned_cq_KEEPS_THE_REQUEST)
{
	struct rpma_conn *conn = NULL;
	struct rpma_conn_req *req;
	struct ibv_qp *qp;
	struct rpma_cq *cq[2];
	size_t i;

	world_peer();
	ok(rpma_conn_cfg_new(&cfg));
	ok(rpma_conn_cfg_set_rcq_size(cfg, 7));
	req = take();
	ok(rpma_conn_req_get_qp(req, &qp));
	ok(rpma_cq_from_ibv_cq(qp->send_cq, &cq[0]));
	ok(rpma_cq_from_ibv_cq(qp->recv_cq, &cq[1]));
	for (i = 0; i < 2; i++) {
		ok(rpma_cq_claim(cq[i], &me));
		assert_int_equal(rpma_conn_req_delete(&req), RPMA_E_CLAIMED);
		assert_int_equal(rpma_conn_req_reject(&req, NULL),
				 RPMA_E_CLAIMED);
		assert_int_equal(rpma_conn_req_connect(&req, NULL, &conn),
				 RPMA_E_CLAIMED);
		assert_int_equal(rpma_conn_req_connect(&req, NULL, NULL),
				 RPMA_E_CLAIMED);
		assert_non_null(req);
		ok(rpma_cq_release(cq[i], &me));
	}
	expect_trace("");
	ok(rpma_conn_req_delete(&req));
	ok(rpma_conn_cfg_delete(&cfg));
	world_end();
}

MOCK_TEST(steps__qp_to_err_then_destroyed)
{
	struct rpma_conn *conn = NULL;
	struct ibv_qp *qp = NULL;
	struct rpma_conn_req *req;
	struct rdma_cm_id *id = NULL;

	cfg = NULL;
	world_peer();
	req = take();
	ok(rpma_conn_req_get_cm_id(req, &id));
	ok(rpma_conn_req_get_qp(req, &qp));
	assert_ptr_equal(id->qp, qp);
	ok(rpma_conn_req_qp_to_err(req, NULL));
	ok(rpma_conn_req_destroy_qp(req, NULL));
	ok(rpma_conn_req_destroy_qp(req, NULL));
	ok(rpma_conn_req_qp_to_err(req, NULL));
	assert_int_equal(rpma_conn_req_get_qp(req, &qp), RPMA_E_INVAL);
	assert_int_equal(rpma_conn_req_connect(&req, NULL, &conn),
			 RPMA_E_INVAL);
	assert_null(req);
	expect_trace("modify_qp(6, 0x1) destroy_qp destroy_cq(10) destroy_ch "
		     "reject destroy_id destroy_evch");
	assert_int_equal(rpma_conn_req_qp_to_err(NULL, NULL), RPMA_E_INVAL);
	assert_int_equal(rpma_conn_req_destroy_qp(NULL, NULL), RPMA_E_INVAL);
	assert_int_equal(rpma_conn_req_get_qp(NULL, &qp), RPMA_E_INVAL);
	assert_int_equal(rpma_conn_req_get_cm_id(NULL, &id), RPMA_E_INVAL);
	world_end();
}

/* ---- requests that do not block ---- */

static void async_begin(void)
{
	world_peer();
	ok(rpma_cm_channel_new(&cm_channel));
	ok(rpma_conn_cfg_new(&cfg));
	ok(rpma_conn_cfg_set_cm_channel(cfg, cm_channel));
	mocks_reset();
}

static void async_end(void)
{
	ok(rpma_cm_channel_delete(&cm_channel));
	ok(rpma_conn_cfg_delete(&cfg));
	world_end();
}

static int advance(struct rpma_conn_req *req, int type)
{
	const struct rpma_cm_event event = {.type = type, .id = mock_id};

	return rpma_conn_req_advance(req, &event);
}

static int new_async(void)
{
	struct rpma_conn_req *req = NULL;
	int ret = rpma_conn_req_new_async(world.peer, "host", "7204", cfg, &me,
					  &req);
	int err;

	if (ret == 0)
		ret = advance(req, RDMA_CM_EVENT_ADDR_RESOLVED);
	if (ret == RPMA_E_AGAIN)
		ret = advance(req, RDMA_CM_EVENT_ROUTE_RESOLVED);
	err = errno;
	ok(rpma_conn_req_delete(&req));
	errno = err;
	return ret;
}

#define STARTED "getaddrinfo create_id(evch) resolve_addr(1000) freeaddrinfo "

MOCK_TEST(async__EACH_FAILURE)
{
	const struct failure failures[] = {
		{"getaddrinfo", 1, ENOENT, RPMA_E_PROVIDER, "getaddrinfo"},
		{"create_id", 1, ENOMEM, RPMA_E_PROVIDER,
		 "getaddrinfo create_id(evch) freeaddrinfo"},
		{"malloc", 1, ENOMEM, RPMA_E_NOMEM,
		 "getaddrinfo create_id(evch) destroy_id freeaddrinfo"},
		{"malloc", 2, ENOMEM, RPMA_E_NOMEM,
		 "getaddrinfo create_id(evch) destroy_id freeaddrinfo"},
		{"resolve_addr", 1, ENODEV, RPMA_E_PROVIDER,
		 "getaddrinfo create_id(evch) resolve_addr(1000) destroy_id "
		 "freeaddrinfo"},
		{"resolve_route", 1, ENODEV, RPMA_E_PROVIDER,
		 STARTED "resolve_route(1000) destroy_id"},
		{"create_qp", 1, EINVAL, RPMA_E_PROVIDER,
		 STARTED "resolve_route(1000) " MADE
			 "destroy_cq(10) destroy_ch destroy_id"},
		{NULL, 0, 0, 0,
		 STARTED "resolve_route(1000) " MADE UNMADE "destroy_id"},
	};

	async_begin();
	EACH_FAILURE_IN_ERRNO(new_async, failures);
	async_end();
}

/* Before the address is resolved, as by rpma_conn_req_new(). */
MOCK_TEST(async__options_and_source_EACH_FAILURE)
{
	const struct failure failures[] = {
		{"set_option", 1, ENOSYS, RPMA_E_PROVIDER,
		 "getaddrinfo create_id(evch) set_option(0, 96) destroy_id "
		 "freeaddrinfo"},
		{"set_option", 2, ENOSYS, RPMA_E_PROVIDER,
		 "getaddrinfo create_id(evch) set_option(0, 96) "
		 "set_option(3, 14) destroy_id freeaddrinfo"},
		{"bind_addr", 1, EADDRNOTAVAIL, RPMA_E_PROVIDER,
		 "getaddrinfo create_id(evch) set_option(0, 96) "
		 "set_option(3, 14) getaddrinfo(passive)(no service) bind_addr "
		 "freeaddrinfo destroy_id freeaddrinfo"},
		{NULL, 0, 0, 0,
		 "getaddrinfo create_id(evch) set_option(0, 96) "
		 "set_option(3, 14) getaddrinfo(passive)(no service) bind_addr "
		 "freeaddrinfo resolve_addr(1000) freeaddrinfo "
		 "resolve_route(1000) " MADE UNMADE "destroy_id"},
	};

	async_begin();
	ok(rpma_conn_cfg_set_tos(cfg, 96));
	ok(rpma_conn_cfg_set_ack_timeout(cfg, 14));
	ok(rpma_conn_cfg_set_src_addr(cfg, "here"));
	EACH_FAILURE_IN_ERRNO(new_async, failures);
	async_end();
}

MOCK_TEST(async__not_ready_AGAIN)
{
	struct rpma_conn_req *req = NULL;
	struct rpma_conn *conn = NULL;
	struct ibv_qp *qp = NULL;
	struct rpma_recv_wr wr;
	struct rpma_recv_wr *bad = NULL;

	async_begin();
	world_regions(WORLD_ALL_USAGES);
	ok(rpma_wr_recv(NULL, 0, 0, 0, &wr));
	ok(rpma_conn_req_new_async(world.peer, "h", "1", cfg, &me, &req));
	assert_ptr_equal(mock_id->context, &me);
	mocks_reset();
	assert_int_equal(rpma_conn_req_get_qp(req, &qp), RPMA_E_AGAIN);
	assert_int_equal(rpma_conn_req_recv(req, world.mr, 0, 1, NULL),
			 RPMA_E_AGAIN);
	assert_int_equal(rpma_conn_req_post_recv(req, NULL, &wr, &bad),
			 RPMA_E_AGAIN);
	assert_ptr_equal(bad, &wr);
	assert_int_equal(rpma_conn_req_connect(&req, NULL, &conn),
			 RPMA_E_AGAIN);
	ok(rpma_conn_req_qp_to_err(req, NULL));
	ok(rpma_conn_req_destroy_qp(req, NULL));
	expect_trace("");
	assert_int_equal(advance(req, RDMA_CM_EVENT_ADDR_RESOLVED),
			 RPMA_E_AGAIN);
	assert_int_equal(rpma_conn_req_connect(&req, NULL, &conn),
			 RPMA_E_AGAIN);
	ok(advance(req, RDMA_CM_EVENT_ROUTE_RESOLVED));
	ok(rpma_conn_req_connect(&req, NULL, &conn));
	expect_trace("resolve_route(1000) " MADE "reg_mr(8, 0x1) connect");
	assert_int_equal(rpma_cm_channel_delete(&cm_channel), RPMA_E_AGAIN);
	ok(rpma_conn_delete(&conn));
	async_end();
}

MOCK_TEST(async__error_event_FAILS)
{
	const int types[] = {
		RDMA_CM_EVENT_ADDR_ERROR,
		RDMA_CM_EVENT_ROUTE_ERROR,
		RDMA_CM_EVENT_ROUTE_RESOLVED,
		RDMA_CM_EVENT_DEVICE_REMOVAL,
	};
	struct rpma_conn_req *req = NULL;
	struct rpma_conn *conn = NULL;
	size_t i;

	async_begin();
	for (i = 0; i < sizeof(types) / sizeof(types[0]); i++) {
		ok(rpma_conn_req_new_async(world.peer, "h", "1", cfg, NULL,
					   &req));
		mocks_reset();
		mocks_listen();
		assert_int_equal(advance(req, types[i]), RPMA_E_PROVIDER);
		expect_said("rdma_resolve_addr() failed: ");
		ok(rpma_conn_req_delete(&req));
	}
	ok(rpma_conn_req_new_async(world.peer, "h", "1", cfg, NULL, &req));
	assert_int_equal(advance(req, RDMA_CM_EVENT_ADDR_RESOLVED),
			 RPMA_E_AGAIN);
	mocks_reset();
	assert_int_equal(advance(req, RDMA_CM_EVENT_ROUTE_ERROR),
			 RPMA_E_PROVIDER);
	expect_said("rdma_resolve_route() failed: ");
	ok(rpma_conn_req_delete(&req));
	ok(rpma_conn_req_new_async(world.peer, "h", "1", cfg, NULL, &req));
	assert_int_equal(advance(req, RDMA_CM_EVENT_ADDR_ERROR),
			 RPMA_E_PROVIDER);
	assert_int_equal(rpma_conn_req_connect(&req, NULL, &conn),
			 RPMA_E_INVAL);
	assert_null(req);
	async_end();
}

MOCK_TEST(async__arguments_INVAL)
{
	struct rpma_cm_event event = {.type = RDMA_CM_EVENT_ADDR_RESOLVED};
	struct rpma_conn_req *req = NULL;
	struct rpma_conn_cfg *empty = NULL;

	async_begin();
	ok(rpma_conn_cfg_new(&empty));
	assert_int_equal(
		rpma_conn_req_new_async(NULL, "h", "1", cfg, NULL, &req),
		RPMA_E_INVAL);
	assert_int_equal(
		rpma_conn_req_new_async(world.peer, NULL, "1", cfg, NULL, &req),
		RPMA_E_INVAL);
	assert_int_equal(
		rpma_conn_req_new_async(world.peer, "h", NULL, cfg, NULL, &req),
		RPMA_E_INVAL);
	assert_int_equal(
		rpma_conn_req_new_async(world.peer, "h", "1", NULL, NULL, &req),
		RPMA_E_INVAL);
	assert_int_equal(rpma_conn_req_new_async(world.peer, "h", "1", empty,
						 NULL, &req),
			 RPMA_E_INVAL);
	assert_int_equal(
		rpma_conn_req_new_async(world.peer, "h", "1", cfg, NULL, NULL),
		RPMA_E_INVAL);
	expect_trace("");
	ok(rpma_conn_req_new_async(world.peer, "h", "1", cfg, NULL, &req));
	assert_int_equal(rpma_conn_req_advance(req, NULL), RPMA_E_INVAL);
	assert_int_equal(rpma_conn_req_advance(NULL, &event), RPMA_E_INVAL);
	/* another's event */
	assert_int_equal(rpma_conn_req_advance(req, &event), RPMA_E_INVAL);
	ok(rpma_conn_req_delete(&req));
	ok(rpma_conn_cfg_delete(&empty));
	async_end();
}

/* A passive request that died meanwhile refuses no other side. */
MOCK_TEST(advance__passive_lost_IS_NOT_REFUSED)
{
	struct rpma_cm_event event = {.type = RDMA_CM_EVENT_DISCONNECTED};
	struct rpma_conn_req *req;

	cfg = NULL;
	world_peer();
	req = take();
	ok(rpma_conn_req_get_cm_id(req, &event.id));
	mocks_listen();
	assert_int_equal(rpma_conn_req_advance(req, &event), RPMA_E_PROVIDER);
	expect_said("rpma_conn_req_advance() failed: ");
	ok(rpma_conn_req_delete(&req));
	expect_trace(UNMADE "destroy_id destroy_evch");
	world_end();
}

static void refused(const struct rpma_conn_cfg *cfg)
{
	struct rpma_conn_req *contradiction = NULL;

	mocks_reset();
	assert_int_equal(rpma_conn_req_new(world.peer, "host", "7204", cfg,
					   &contradiction),
			 RPMA_E_INVAL);
	assert_null(contradiction);
	expect_trace("getaddrinfo create_id resolve_addr(1000) "
		     "resolve_route(1000) destroy_id freeaddrinfo");
}

/* Settings that contradict other settings. */
MOCK_TEST(new__more_contradictions_INVAL)
{
	struct rpma_channel *a_channel = NULL;
	struct rpma_conn_cfg *cfg = NULL;
	struct rpma_cq *a_cq = NULL;

	world_peer();
	ok(rpma_channel_new(MOCK_CTX, &a_channel));
	ok(rpma_cq_new(MOCK_CTX, 4, NULL, 0, NULL, &a_cq));
	ok(rpma_conn_cfg_new(&cfg));
	ok(rpma_conn_cfg_set_rcq(cfg, a_cq));
	ok(rpma_conn_cfg_set_rcq_size(cfg, 4));
	refused(cfg);
	ok(rpma_conn_cfg_set_rcq_size(cfg, 0));
	ok(rpma_conn_cfg_set_cq(cfg, a_cq));
	ok(rpma_conn_cfg_set_channel(cfg, a_channel));
	refused(cfg);
	ok(rpma_conn_cfg_set_rcq(cfg, NULL));
	refused(cfg);
	ok(rpma_conn_cfg_set_cq(cfg, NULL));
	ok(rpma_conn_cfg_set_comp_vector(cfg, 2));
	refused(cfg);
	/* no CQ is made: the vector is not used */
	ok(rpma_conn_cfg_set_channel(cfg, NULL));
	ok(rpma_conn_cfg_set_cq(cfg, a_cq));
	world_conn(cfg);
	world_end();
	ok(rpma_conn_cfg_delete(&cfg));
	ok(rpma_cq_delete(&a_cq));
	ok(rpma_channel_delete(&a_channel));
}

static struct rpma_conn_cfg *src_cfg;

static int new_from_source(void)
{
	struct rpma_conn_req *from_source = NULL;
	int ret = rpma_conn_req_new(world.peer, "host", "7204", src_cfg,
				    &from_source);

	ok(rpma_conn_req_delete(&from_source));
	return ret;
}

/* The id is bound before the other side's address is resolved. */
MOCK_TEST(new__src_addr_EACH_FAILURE)
{
	const char *bound = "getaddrinfo create_id "
			    "getaddrinfo(passive)(no service) bind_addr "
			    "freeaddrinfo destroy_id freeaddrinfo";
	const struct failure failures[] = {
		{"getaddrinfo", 2, EINVAL, RPMA_E_PROVIDER,
		 "getaddrinfo create_id getaddrinfo(passive)(no service) "
		 "destroy_id freeaddrinfo"},
		{"bind_addr", 1, EADDRNOTAVAIL, RPMA_E_PROVIDER, bound},
		{NULL, 0, 0, 0, NULL},
	};

	world_peer();
	ok(rpma_conn_cfg_new(&src_cfg));
	ok(rpma_conn_cfg_set_src_addr(src_cfg, "here"));
	EACH_FAILURE_IN_ERRNO(new_from_source, failures);
	ok(rpma_conn_cfg_delete(&src_cfg));
	world_end();
}

TEST_MAIN()
