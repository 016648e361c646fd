/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * The additions of librpma 1.4, on a device: channel objects, CQs of the
 * program, claims, requests that do not block, configuration, chains, separate
 * steps of closing.
 */

#include <errno.h>
#include <pthread.h>
#include <rdma/rdma_cma.h>
#include <string.h>

#include "pair.h"

#define SIGNALED RPMA_F_COMPLETION_ALWAYS
#define SILENT	 RPMA_F_COMPLETION_ON_ERROR
#define QUEUE	 10 /* the default size of the queues of a connection */

static int me, other; /* owners */

static struct ibv_context *context(void)
{
	struct ibv_context *ctx = NULL;

	ok(rpma_peer_get_ibv_context(the_peer, &ctx));
	return ctx;
}

/* A server whose CQs are where cfg says, and a plain client. */
static void open_server(struct pair *pair, const struct rpma_conn_cfg *cfg)
{
	struct pair_how how = {.server_cfg = cfg};

	pair_open_how(pair, &how);
}

static void message(struct pair *pair)
{
	ok(rpma_send(pair->client.conn, NULL, 0, 0, SIGNALED, NULL));
}

static void channel__two_cqs_TELLS_WHICH(void **state)
{
	struct rpma_channel *channel = NULL;
	struct rpma_cq *first = NULL;
	struct rpma_cq *second = NULL;
	struct rpma_cq *fired = NULL;
	struct rpma_conn_cfg *cfg = NULL;
	struct rpma_cq *same = NULL;
	struct ibv_cq *ibv_cq = NULL;
	void *its_context = NULL;
	struct ibv_wc wc;
	struct pair pair;
	int fd = -1;

	(void)state;
	ok(rpma_channel_new(context(), &channel));
	ok(rpma_cq_new(context(), 16, channel, 0, &me, &first));
	ok(rpma_cq_new(context(), 16, channel, 0, &other, &second));
	ok(rpma_cq_get_context(second, &its_context));
	assert_ptr_equal(its_context, &other);
	ok(rpma_cq_get_ibv_cq(second, &ibv_cq));
	ok(rpma_cq_from_ibv_cq(ibv_cq, &same));
	assert_ptr_equal(same, second);
	ok(rpma_channel_get_fd(channel, &fd));
	set_nonblocking(fd);
	assert_int_equal(rpma_channel_wait(channel, &fired),
			 RPMA_E_NO_COMPLETION);

	ok(rpma_conn_cfg_new(&cfg));
	ok(rpma_conn_cfg_set_cq(cfg, first));
	ok(rpma_conn_cfg_set_rcq(cfg, second));
	open_server(&pair, cfg);
	assert_int_equal(rpma_cq_delete(&second), RPMA_E_AGAIN);
	assert_non_null(second);
	ok(rpma_recv(pair.server.conn, NULL, 0, 0, NULL));
	ok(rpma_cq_arm(first, false));
	ok(rpma_cq_arm(second, false));
	message(&pair);
	wait_readable(fd);
	ok(rpma_channel_wait(channel, &fired));
	assert_ptr_equal(fired, second);
	ok(rpma_cq_get_wc(second, 1, &wc, NULL));
	assert_int_equal(wc.opcode, IBV_WC_RECV);
	pair_close(&pair);

	assert_int_equal(rpma_channel_delete(&channel), RPMA_E_AGAIN);
	assert_non_null(channel);
	ok(rpma_cq_delete(&first));
	ok(rpma_cq_delete(&second));
	ok(rpma_channel_delete(&channel));
	ok(rpma_conn_cfg_delete(&cfg));
}

static void channel__cq_of_a_stranger_UNKNOWN(void **state)
{
	struct ibv_comp_channel *ibv_channel = NULL;
	struct rpma_channel *channel = NULL;
	struct rpma_cq *fired = NULL;
	struct rpma_conn_cfg *cfg = NULL;
	struct rpma_cq *cq = NULL;
	struct ibv_cq *stranger;
	struct pair pair;
	struct ibv_qp *qp = NULL;
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_INIT};
	struct ibv_qp_init_attr init;

	(void)state;
	ok(rpma_channel_new(context(), &channel));
	ok(rpma_channel_get_ibv_channel(channel, &ibv_channel));
	ok(rpma_cq_new(context(), 16, channel, 0, NULL, &cq));
	stranger = ibv_create_cq(context(), 4, (void *)7, ibv_channel, 0);
	assert_non_null(stranger);
	ok(ibv_req_notify_cq(stranger, 0));

	/* a separate QP whose receive is flushed makes the event */
	ok(rpma_conn_cfg_new(&cfg));
	open_server(&pair, cfg);
	ok(rpma_conn_get_qp(pair.server.conn, &qp));
	init = (struct ibv_qp_init_attr){
		.send_cq = stranger,
		.recv_cq = stranger,
		.cap = {1, 1, 1, 1, 0},
		.qp_type = IBV_QPT_RC,
	};
	qp = ibv_create_qp(qp->pd, &init);
	assert_non_null(qp);
	attr.port_num = 1;
	ok(ibv_modify_qp(qp, &attr,
			 IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT |
				 IBV_QP_ACCESS_FLAGS));
	ok(ibv_post_recv(qp, &(struct ibv_recv_wr){0},
			 &(struct ibv_recv_wr *){NULL}));
	attr.qp_state = IBV_QPS_ERR;
	ok(ibv_modify_qp(qp, &attr, IBV_QP_STATE));

	assert_int_equal(rpma_channel_wait(channel, &fired), RPMA_E_UNKNOWN);
	assert_null(fired);
	ok(ibv_destroy_qp(qp));
	/* hangs if the event was not acknowledged */
	ok(ibv_destroy_cq(stranger));
	pair_close(&pair);
	ok(rpma_cq_delete(&cq));
	ok(rpma_channel_delete(&channel));
	ok(rpma_conn_cfg_delete(&cfg));
}

static void cq__given_to_two_connections_SERVES_BOTH(void **state)
{
	struct rpma_conn_cfg *cfg = NULL;
	struct rpma_cq *cq = NULL;
	uint32_t qp_num[2];
	struct ibv_wc wc[2];
	struct pair pair[2];
	int i;

	(void)state;
	ok(rpma_cq_new(context(), 64, NULL, 0, NULL, &cq));
	ok(rpma_conn_cfg_new(&cfg));
	ok(rpma_conn_cfg_set_cq(cfg, cq));
	for (i = 0; i < 2; i++) {
		open_server(&pair[i], cfg);
		ok(rpma_conn_get_qp_num(pair[i].server.conn, &qp_num[i]));
		ok(rpma_recv(pair[i].server.conn, NULL, 0, 0, NULL));
		message(&pair[i]);
		wc[i] = next_wc(cq);
		assert_int_equal(wc[i].qp_num, qp_num[i]);
	}
	for (i = 0; i < 2; i++)
		pair_close(&pair[i]);
	ok(rpma_cq_delete(&cq));
	ok(rpma_conn_cfg_delete(&cfg));
}

static void srq__given_rcq_TAKES_RECEIVES(void **state)
{
	struct rpma_srq_cfg *srq_cfg = NULL;
	struct rpma_conn_cfg *cfg = NULL;
	struct ibv_srq *ibv_srq = NULL;
	struct rpma_srq *srq = NULL;
	struct rpma_recv_wr wr[2];
	struct rpma_recv_wr *bad = NULL;
	struct rpma_cq *cq = NULL;
	struct pair pair;
	int i;

	(void)state;
	ok(rpma_cq_new(context(), 64, NULL, 0, NULL, &cq));
	ok(rpma_srq_cfg_new(&srq_cfg));
	ok(rpma_srq_cfg_set_rcq(srq_cfg, cq));
	ok(rpma_srq_new(the_peer, srq_cfg, &srq));
	ok(rpma_srq_get_ibv_srq(srq, &ibv_srq));
	assert_non_null(ibv_srq);
	ok(rpma_conn_cfg_new(&cfg));
	ok(rpma_conn_cfg_set_srq(cfg, srq));
	open_server(&pair, cfg);
	for (i = 0; i < 2; i++)
		ok(rpma_wr_recv(NULL, 0, 0, 60 + (uint64_t)i, &wr[i]));
	wr[0].wr.next = &wr[1].wr;
	ok(rpma_srq_post_recv(srq, wr, &bad));
	for (i = 0; i < 2; i++) {
		message(&pair);
		assert_int_equal(next_wc(cq).wr_id, 60 + (uint64_t)i);
	}
	pair_close(&pair);
	ok(rpma_srq_delete(&srq));
	ok(rpma_srq_cfg_delete(&srq_cfg));
	ok(rpma_conn_cfg_delete(&cfg));
	ok(rpma_cq_delete(&cq));
}

struct waiter {
	struct rpma_cq *cq;
	int ret;
};

static void *wait_cq(void *arg)
{
	struct waiter *waiter = arg;

	/* refused while the other has the claim, until the waiter gets in */
	do
		waiter->ret = rpma_cq_wait(waiter->cq);
	while (waiter->ret == RPMA_E_SHARED_CHANNEL);
	return NULL;
}

/* The claim is refused while the waiter is inside. */
static void claim__somebody_waits_AGAIN(void **state)
{
	struct waiter waiter = {0};
	pthread_t thread;
	struct pair pair;

	(void)state;
	pair_open(&pair);
	waiter.cq = cq_of(&pair.server);
	ok(rpma_recv(pair.server.conn, NULL, 0, 0, NULL));
	pthread_create(&thread, NULL, wait_cq, &waiter);
	/* until the waiter is inside, the claim succeeds */
	while (rpma_cq_claim(waiter.cq, &me) == 0)
		ok(rpma_cq_release(waiter.cq, &me));
	assert_int_equal(rpma_cq_claim(waiter.cq, &me), RPMA_E_AGAIN);
	message(&pair);
	pthread_join(thread, NULL);
	assert_int_equal(waiter.ret, 0);
	ok(rpma_cq_claim(waiter.cq, &me));
	ok(rpma_cq_claim(waiter.cq, &me));
	assert_int_equal(rpma_cq_claim(waiter.cq, &other), RPMA_E_CLAIMED);
	assert_int_equal(rpma_cq_release(waiter.cq, &other), RPMA_E_CLAIMED);
	ok(rpma_cq_release(waiter.cq, &me));
	pair_close(&pair);
}

/* ---- requests that do not block ---- */

/* Both ends on one CM channel, each known by its context. */
struct async {
	struct rpma_cm_channel *cm_channel;
	struct rpma_conn_cfg *cfg;
	struct rpma_ep *ep;
	char port[8];
	struct rpma_conn_req *client_req;
	struct rpma_conn_req *server_req;
	struct rpma_conn *client;
	struct rpma_conn *server;
};

static void async_open(struct async *async)
{
	uint16_t port = 0;
	int fd = -1;

	*async = (struct async){0};
	ok(rpma_cm_channel_new(&async->cm_channel));
	ok(rpma_cm_channel_get_fd(async->cm_channel, &fd));
	assert_true(fd >= 0);
	ok(rpma_conn_cfg_new(&async->cfg));
	ok(rpma_conn_cfg_set_cm_channel(async->cfg, async->cm_channel));
	ok(rpma_ep_listen_ex(the_peer, the_addr, "0", 4, async->cm_channel,
			     &async->ep, &async->ep));
	ok(rpma_ep_get_port(async->ep, &port));
	assert_int_not_equal(port, 0);
	snprintf(async->port, sizeof(async->port), "%u", port);
	assert_int_equal(rpma_ep_get_fd(async->ep, &fd), RPMA_E_SHARED_CHANNEL);
	assert_int_equal(
		rpma_ep_next_conn_req(async->ep, NULL, &async->server_req),
		RPMA_E_SHARED_CHANNEL);
}

static void async_close(struct async *async)
{
	assert_int_equal(rpma_cm_channel_delete(&async->cm_channel),
			 RPMA_E_AGAIN);
	ok(rpma_conn_req_delete(&async->client_req));
	ok(rpma_conn_req_delete(&async->server_req));
	ok(rpma_conn_delete(&async->client));
	ok(rpma_conn_delete(&async->server));
	ok(rpma_ep_shutdown(&async->ep));
	ok(rpma_conn_cfg_delete(&async->cfg));
	ok(rpma_cm_channel_delete(&async->cm_channel));
	assert_null(async->cm_channel);
}

static void next_event(struct async *async, void *from,
		       struct rpma_cm_event *event)
{
	ok(rpma_cm_channel_get_event(async->cm_channel, event));
	assert_ptr_equal(event->context, from);
}

/* Advances the request of the client until there is a QP. */
static void async_resolve(struct async *async)
{
	struct rpma_cm_event event;
	struct ibv_qp *qp = NULL;
	int ret;

	ok(rpma_conn_req_new_async(the_peer, the_addr, async->port, async->cfg,
				   &async->client, &async->client_req));
	do {
		assert_int_equal(rpma_conn_req_get_qp(async->client_req, &qp),
				 RPMA_E_AGAIN);
		assert_int_equal(rpma_conn_req_connect(&async->client_req, NULL,
						       &async->client),
				 RPMA_E_AGAIN);
		next_event(async, &async->client, &event);
		ret = rpma_conn_req_advance(async->client_req, &event);
		ok(rpma_cm_event_ack(&event));
		assert_null(event.raw);
	} while (ret == RPMA_E_AGAIN);
	assert_int_equal(ret, 0);
	ok(rpma_conn_req_get_qp(async->client_req, &qp));
}

static void async_connect(struct async *async)
{
	struct rpma_conn_private_data hello = {"hello", 6};
	struct rpma_cm_event event;

	async_resolve(async);
	ok(rpma_conn_req_connect(&async->client_req, &hello, &async->client));
	next_event(async, &async->ep, &event);
	assert_int_equal(event.type, RDMA_CM_EVENT_CONNECT_REQUEST);
	assert_string_equal((char *)event.private_data, "hello");
	ok(rpma_conn_req_new_from_event(the_peer, &event, async->cfg,
					&async->server, &async->server_req));
	ok(rpma_cm_event_ack(&event));
}

static void async__both_on_one_channel_ESTABLISHED(void **state)
{
	struct rpma_conn_private_data welcome = {"welcome", 8};
	struct rpma_conn_private_data data;
	enum rpma_conn_event conn_event;
	struct rpma_cm_event event;
	struct rpma_conn *conn;
	struct async async;
	struct ibv_wc wc;
	struct rpma_cq *cq = NULL;
	int established = 0;
	int fd = -1;

	(void)state;
	async_open(&async);
	async_connect(&async);
	ok(rpma_conn_req_get_private_data(async.server_req, &data));
	assert_string_equal(data.ptr, "hello");
	ok(rpma_conn_req_post_recv(async.server_req, NULL,
				   &(struct rpma_recv_wr){.wr = {.wr_id = 5}},
				   &(struct rpma_recv_wr *){NULL}));
	ok(rpma_conn_req_connect(&async.server_req, &welcome, &async.server));
	while (established < 2) {
		ok(rpma_cm_channel_get_event(async.cm_channel, &event));
		conn = *(struct rpma_conn **)event.context;
		ok(rpma_conn_handle_event(conn, &event, &conn_event));
		ok(rpma_cm_event_ack(&event));
		assert_int_equal(conn_event, RPMA_CONN_ESTABLISHED);
		established++;
	}
	ok(rpma_conn_get_private_data(async.client, &data));
	assert_string_equal(data.ptr, "welcome");
	assert_int_equal(rpma_conn_get_event_fd(async.client, &fd),
			 RPMA_E_SHARED_CHANNEL);
	assert_int_equal(rpma_conn_next_event(async.client, &conn_event),
			 RPMA_E_SHARED_CHANNEL);
	assert_int_equal(
		rpma_conn_handle_event(async.client, &event, &conn_event),
		event.id == NULL ? RPMA_E_INVAL : RPMA_E_INVAL);

	ok(rpma_send(async.client, NULL, 0, 0, SIGNALED, NULL));
	ok(rpma_conn_get_cq(async.server, &cq));
	wc = next_wc(cq);
	assert_int_equal(wc.wr_id, 5);
	ok(rpma_conn_disconnect(async.client));
	next_event(&async, &async.server, &event);
	ok(rpma_conn_handle_event(async.server, &event, &conn_event));
	ok(rpma_cm_event_ack(&event));
	assert_int_equal(conn_event, RPMA_CONN_CLOSED);
	async_close(&async);
}

static void async__rejected_BRINGS_THE_REASON(void **state)
{
	struct rpma_conn_private_data reason = {"too many", 9};
	enum rpma_conn_event conn_event;
	struct rpma_cm_event event;
	struct async async;

	(void)state;
	async_open(&async);
	async_connect(&async);
	ok(rpma_conn_req_reject(&async.server_req, &reason));
	assert_null(async.server_req);
	next_event(&async, &async.client, &event);
	assert_int_equal(event.type, RDMA_CM_EVENT_REJECTED);
	assert_true(event.private_data_len >= 9);
	assert_string_equal((char *)event.private_data, "too many");
	ok(rpma_conn_handle_event(async.client, &event, &conn_event));
	assert_int_equal(conn_event, RPMA_CONN_REJECTED);
	ok(rpma_cm_event_ack(&event));
	async_close(&async);
}

static void async__deleted_at_once_LEAVES_NOTHING(void **state)
{
	struct async async;

	(void)state;
	async_open(&async);
	ok(rpma_conn_req_new_async(the_peer, the_addr, async.port, async.cfg,
				   NULL, &async.client_req));
	ok(rpma_conn_req_delete(&async.client_req));
	async_close(&async);
}

static void reject__own_request_INVAL(void **state)
{
	struct async async;

	(void)state;
	async_open(&async);
	async_resolve(&async);
	assert_int_equal(rpma_conn_req_reject(&async.client_req, NULL),
			 RPMA_E_INVAL);
	assert_non_null(async.client_req);
	async_close(&async);
}

/*
 * A synchronous request may have the events of its connection on a CM channel.
 */
static void cm_channel__of_a_blocking_request(void **state)
{
	enum rpma_conn_event conn_event;
	struct rpma_conn_req *req = NULL;
	struct rpma_conn *server = NULL;
	struct rpma_cm_event event;
	struct async async;
	struct rpma_ep *ep;
	char port[8];

	(void)state;
	async_open(&async);
	ep = pair_listen(port);
	ok(rpma_conn_req_new(the_peer, the_addr, port, async.cfg, &req));
	ok(rpma_conn_req_connect(&req, NULL, &async.client));
	ok(rpma_ep_next_conn_req(ep, NULL, &req));
	ok(rpma_conn_req_connect(&req, NULL, &server));
	ok(rpma_cm_channel_get_event(async.cm_channel, &event));
	ok(rpma_conn_handle_event(async.client, &event, &conn_event));
	ok(rpma_cm_event_ack(&event));
	assert_int_equal(conn_event, RPMA_CONN_ESTABLISHED);
	expect_event(server, RPMA_CONN_ESTABLISHED);
	assert_int_equal(rpma_conn_handle_event(server, &event, &conn_event),
			 RPMA_E_NOT_SHARED_CHNL);
	ok(rpma_conn_delete(&server));
	ok(rpma_ep_shutdown(&ep));
	async_close(&async);
}

/* ---- configuration ---- */

static void cfg__values_REACH_THE_QP(void **state)
{
	struct ibv_qp_init_attr init;
	struct rpma_conn_cfg *cfg = NULL;
	struct pair_how how = {0};
	struct ibv_qp *qp = NULL;
	struct ibv_qp_attr attr;
	struct pair pair;
	struct side *side;

	(void)state;
	ok(rpma_conn_cfg_new(&cfg));
	ok(rpma_conn_cfg_set_max_send_sge(cfg, 2));
	ok(rpma_conn_cfg_set_max_recv_sge(cfg, 2));
	ok(rpma_conn_cfg_set_max_inline_data(cfg, 32));
	ok(rpma_conn_cfg_set_responder_resources(cfg, 1));
	ok(rpma_conn_cfg_set_initiator_depth(cfg, 1));
	ok(rpma_conn_cfg_set_retry_count(cfg, 5));
	ok(rpma_conn_cfg_set_rnr_retry_count(cfg, 3));
	ok(rpma_conn_cfg_set_min_rnr_timer(cfg, 12));
	ok(rpma_conn_cfg_set_ack_timeout(cfg, 16));
	how.client_cfg = cfg;
	how.server_cfg = cfg;
	pair_open_how(&pair, &how);
	for (side = &pair.client; side;
	     side = side == &pair.client ? &pair.server : NULL) {
		ok(rpma_conn_get_qp(side->conn, &qp));
		ok(ibv_query_qp(qp, &attr,
				IBV_QP_CAP | IBV_QP_MIN_RNR_TIMER |
					IBV_QP_TIMEOUT |
					IBV_QP_MAX_QP_RD_ATOMIC |
					IBV_QP_MAX_DEST_RD_ATOMIC,
				&init));
		assert_true(attr.cap.max_send_sge >= 2);
		assert_true(attr.cap.max_recv_sge >= 2);
		assert_true(attr.cap.max_inline_data >= 32);
		assert_int_equal(attr.min_rnr_timer, 12);
		assert_int_equal(attr.max_rd_atomic, 1);
		assert_int_equal(attr.max_dest_rd_atomic, 1);
		assert_int_equal(attr.timeout, 16);
	}
	/* the passive side takes both from the request */
	ok(rpma_conn_get_qp(pair.client.conn, &qp));
	ok(ibv_query_qp(qp, &attr, IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY, &init));
	assert_int_equal(attr.retry_cnt, 5);
	pair_close(&pair);
	ok(rpma_conn_cfg_delete(&cfg));
}

static void cfg__contradiction_INVAL(void **state)
{
	struct rpma_channel *channel = NULL;
	struct rpma_conn_req *req = NULL;
	struct rpma_conn_cfg *cfg = NULL;

	(void)state;
	ok(rpma_channel_new(context(), &channel));
	ok(rpma_conn_cfg_new(&cfg));
	ok(rpma_conn_cfg_set_channel(cfg, channel));
	ok(rpma_conn_cfg_set_compl_channel(cfg, true));
	assert_int_equal(
		rpma_conn_req_new(the_peer, the_addr, "7204", cfg, &req),
		RPMA_E_INVAL);
	assert_null(req);
	assert_int_equal(rpma_conn_req_new_async(the_peer, the_addr, "7204",
						 cfg, NULL, &req),
			 RPMA_E_INVAL);
	ok(rpma_conn_cfg_delete(&cfg));
	ok(rpma_channel_delete(&channel));
}

/* ---- claimed connections ---- */

static void claim__request_PASSES_TO_THE_CONNECTION(void **state)
{
	struct rpma_conn_req *req = NULL;
	struct rpma_conn *conn = NULL;
	struct rpma_ep *ep;
	char port[8];
	char mem[8];
	struct rpma_mr_local *mr = NULL;

	(void)state;
	ep = pair_listen(port);
	ok(rpma_mr_reg(the_peer, mem, sizeof(mem), RPMA_MR_USAGE_RECV, &mr));
	ok(rpma_conn_req_new(the_peer, the_addr, port, NULL, &req));
	ok(rpma_conn_req_claim(req, &me));
	assert_int_equal(rpma_conn_req_claim(req, &other), RPMA_E_CLAIMED);
	assert_int_equal(rpma_conn_req_delete(&req), RPMA_E_CLAIMED);
	assert_non_null(req);
	assert_int_equal(rpma_conn_req_recv(req, mr, 0, 8, NULL),
			 RPMA_E_SHARED_CHANNEL);
	ok(rpma_conn_req_connect(&req, NULL, &conn));
	assert_int_equal(rpma_conn_claim(conn, &other), RPMA_E_CLAIMED);
	assert_int_equal(rpma_conn_delete(&conn), RPMA_E_CLAIMED);
	assert_non_null(conn);
	ok(rpma_conn_release(conn, &me));
	/* taken and refused, or the next listener at the port would get the
	 * request */
	ok(rpma_ep_next_conn_req(ep, NULL, &req));
	ok(rpma_conn_req_delete(&req));
	expect_event(conn, RPMA_CONN_REJECTED);
	ok(rpma_conn_delete(&conn));
	ok(rpma_mr_dereg(&mr));
	ok(rpma_ep_shutdown(&ep));
}

/* Reads, writes, sends, flushes and atomic writes, one after the other. */
static void chain__every_operation_COMPLETES_IN_ORDER(void **state)
{
	const char atom[8] = "atomic!";
	struct rpma_send_wr wr[7];
	struct rpma_send_wr *bad = NULL;
	struct rpma_recv_wr recv[3];
	struct rpma_recv_wr *bad_recv = NULL;
	struct rpma_conn *conn;
	struct pair pair;
	int i;

	(void)state;
	pair_open(&pair);
	conn = pair.client.conn;
	ok(rpma_conn_claim(conn, &me));
	for (i = 0; i < 3; i++) {
		ok(rpma_wr_recv(NULL, 0, 0, (uint64_t)i, &recv[i]));
		recv[i].wr.next = i < 2 ? &recv[i + 1].wr : NULL;
	}
	ok(rpma_wr_recv(pair.server.mr, 512, 16, 0, &recv[0]));
	recv[0].wr.next = &recv[1].wr;
	ok(rpma_conn_post_recv(pair.server.conn, NULL, recv, &bad_recv));

	strcpy(pair.client.mem, "chained");
	ok(rpma_wr_write(conn, pair.client.remote, 0, pair.client.mr, 0, 8,
			 SILENT, 1ULL << 63, &wr[0]));
	ok(rpma_wr_flush(conn, pair.client.remote, 0, 8,
			 RPMA_FLUSH_TYPE_VISIBILITY, SIGNALED, 1, &wr[1]));
	ok(rpma_wr_atomic_write(conn, pair.client.remote, 8, atom, SIGNALED, 2,
				&wr[2]));
	ok(rpma_wr_read(conn, pair.client.mr, 256, pair.client.remote, 0, 16,
			SIGNALED, 3, &wr[3]));
	ok(rpma_wr_send(conn, pair.client.mr, 0, 8, SIGNALED, 4, &wr[4]));
	ok(rpma_wr_send_with_imm(conn, NULL, 0, 0, SIGNALED, 99, 5, &wr[5]));
	ok(rpma_wr_write_with_imm(conn, pair.client.remote, 64, pair.client.mr,
				  0, 8, SIGNALED, 98, 6, &wr[6]));
	for (i = 0; i < 6; i++)
		wr[i].wr.next = &wr[i + 1].wr;
	assert_int_equal(rpma_conn_post_send(conn, NULL, wr, &bad),
			 RPMA_E_SHARED_CHANNEL);
	assert_int_equal(rpma_conn_post_send(conn, &other, wr, &bad),
			 RPMA_E_SHARED_CHANNEL);
	ok(rpma_conn_post_send(conn, &me, wr, &bad));
	for (i = 1; i < 7; i++) {
		struct ibv_wc wc = next_wc(cq_of(&pair.client));

		assert_int_equal(wc.status, IBV_WC_SUCCESS);
		assert_int_equal(wc.wr_id, (uint64_t)i);
	}
	assert_string_equal(pair.server.mem, "chained");
	assert_string_equal(pair.server.mem + 64, "chained");
	assert_string_equal(pair.server.mem + 512, "chained");
	assert_string_equal(pair.client.mem + 256, "chained");
	assert_string_equal(pair.client.mem + 256 + 8, "atomic!");
	for (i = 0; i < 3; i++)
		assert_int_equal(next_wc(cq_of(&pair.server)).wr_id,
				 (uint64_t)i);
	ok(rpma_conn_release(conn, &me));
	pair_close(&pair);
}

/*
 * Room for some of the chain: the first work requests are posted, and the first
 * refused is named.
 */
static void chain__queue_full_AGAIN(void **state)
{
	struct rpma_send_wr wr[4 * QUEUE];
	struct rpma_send_wr *bad = NULL;
	struct ibv_qp_init_attr init;
	struct ibv_qp *qp = NULL;
	struct ibv_qp_attr attr;
	struct pair pair;
	size_t room;
	size_t i;

	(void)state;
	pair_open(&pair);
	ok(rpma_conn_get_qp(pair.client.conn, &qp));
	ok(ibv_query_qp(qp, &attr, IBV_QP_CAP, &init));
	room = attr.cap.max_send_wr;
	if (room >= sizeof(wr) / sizeof(wr[0])) {
		print_message("skipped: the queue is larger than the chain\n");
		pair_close(&pair);
		skip();
	}
	/* no thread polls, so no work request leaves the queue */
	for (i = 0; i < sizeof(wr) / sizeof(wr[0]); i++) {
		ok(rpma_wr_write(pair.client.conn, pair.client.remote, 0,
				 pair.client.mr, 0, 1, SILENT, i, &wr[i]));
		if (i > 0)
			wr[i - 1].wr.next = &wr[i].wr;
	}
	wr[i - 1].wr.next = NULL;
	assert_int_equal(rpma_conn_post_send(pair.client.conn, NULL, wr, &bad),
			 RPMA_E_AGAIN);
	assert_non_null(bad);
	assert_true(bad->wr.wr_id >= QUEUE);
	pair_close(&pair);
}

static void steps__qp_first_REST_LATER(void **state)
{
	struct rpma_send_wr wr;
	struct rpma_send_wr *bad = NULL;
	struct ibv_qp *qp = NULL;
	uint32_t qp_num = 0;
	struct ibv_wc wc;
	struct pair pair;

	(void)state;
	pair_open(&pair);
	ok(rpma_conn_claim(pair.server.conn, &me));
	ok(rpma_conn_post_recv(pair.server.conn, &me,
			       &(struct rpma_recv_wr){.wr = {.wr_id = 7}},
			       &(struct rpma_recv_wr *){NULL}));
	assert_int_equal(rpma_conn_qp_to_err(pair.server.conn, &other),
			 RPMA_E_CLAIMED);
	assert_int_equal(rpma_conn_destroy_qp(pair.server.conn, NULL),
			 RPMA_E_CLAIMED);
	ok(rpma_conn_qp_to_err(pair.server.conn, &me));
	ok(rpma_conn_qp_to_err(pair.server.conn, &me));
	wc = next_wc(cq_of(&pair.server));
	assert_int_equal(wc.wr_id, 7);
	assert_int_equal(wc.status, IBV_WC_WR_FLUSH_ERR);
	ok(rpma_conn_destroy_qp(pair.server.conn, &me));
	ok(rpma_conn_destroy_qp(pair.server.conn, &me));
	ok(rpma_conn_qp_to_err(pair.server.conn, &me));

	assert_int_equal(rpma_conn_get_qp(pair.server.conn, &qp), RPMA_E_INVAL);
	assert_int_equal(rpma_conn_get_qp_num(pair.server.conn, &qp_num),
			 RPMA_E_INVAL);
	ok(rpma_wr_send(pair.server.conn, NULL, 0, 0, SIGNALED, 0, &wr));
	assert_int_equal(rpma_conn_post_send(pair.server.conn, &me, &wr, &bad),
			 RPMA_E_INVAL);
	assert_int_equal(rpma_recv(pair.server.conn, NULL, 0, 0, NULL),
			 RPMA_E_INVAL);
	/* the CQ is there, and empty */
	assert_int_equal(rpma_cq_get_wc(cq_of(&pair.server), 1, &wc, NULL),
			 RPMA_E_NO_COMPLETION);
	ok(rpma_conn_release(pair.server.conn, &me));
	pair_close(&pair);
}

static void steps__request(void **state)
{
	struct rpma_conn_req *req = NULL;
	struct rpma_conn *conn = NULL;
	struct rdma_cm_id *id = NULL;

	(void)state;
	ok(rpma_conn_req_new(the_peer, the_addr, "7204", NULL, &req));
	ok(rpma_conn_req_get_cm_id(req, &id));
	assert_non_null(id->qp);
	ok(rpma_conn_req_qp_to_err(req, NULL));
	ok(rpma_conn_req_destroy_qp(req, NULL));
	assert_null(id->qp);
	ok(rpma_conn_req_destroy_qp(req, NULL));
	assert_int_equal(rpma_conn_req_connect(&req, NULL, &conn),
			 RPMA_E_INVAL);
	assert_null(req);
}

static void accessors__AGREE(void **state)
{
	struct rdma_cm_id *id = NULL;
	struct ibv_qp *qp = NULL;
	uint32_t lkey = 0;
	struct pair pair;

	(void)state;
	pair_open(&pair);
	ok(rpma_conn_get_cm_id(pair.client.conn, &id));
	ok(rpma_conn_get_qp(pair.client.conn, &qp));
	assert_ptr_equal(id->qp, qp);
	assert_ptr_equal(qp->context, context());
	ok(rpma_mr_get_lkey(pair.client.mr, &lkey));
	pair_close(&pair);
}

static const struct CMUnitTest rpma14[] = {
	cmocka_unit_test(channel__two_cqs_TELLS_WHICH),
	cmocka_unit_test(channel__cq_of_a_stranger_UNKNOWN),
	cmocka_unit_test(cq__given_to_two_connections_SERVES_BOTH),
	cmocka_unit_test(srq__given_rcq_TAKES_RECEIVES),
	cmocka_unit_test(claim__somebody_waits_AGAIN),
	cmocka_unit_test(async__both_on_one_channel_ESTABLISHED),
	cmocka_unit_test(async__rejected_BRINGS_THE_REASON),
	cmocka_unit_test(async__deleted_at_once_LEAVES_NOTHING),
	cmocka_unit_test(reject__own_request_INVAL),
	cmocka_unit_test(cm_channel__of_a_blocking_request),
	cmocka_unit_test(cfg__values_REACH_THE_QP),
	cmocka_unit_test(cfg__contradiction_INVAL),
	cmocka_unit_test(claim__request_PASSES_TO_THE_CONNECTION),
	cmocka_unit_test(chain__every_operation_COMPLETES_IN_ORDER),
	cmocka_unit_test(chain__queue_full_AGAIN),
	cmocka_unit_test(steps__qp_first_REST_LATER),
	cmocka_unit_test(steps__request),
	cmocka_unit_test(accessors__AGREE),
};

int main(void)
{
	return PAIR_RUN(rpma14);
}
