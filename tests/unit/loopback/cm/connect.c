/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/* connect.c -- the handshake, its events, its data and its parameters. */

#include "fixture.h"

#include <infiniband/verbs.h>
#include <string.h>

#define LINK_STATUS_CONSUMER 28

/* connect: events arrive in order, QPs reach RTS, data is padded */
PAIR_TEST(connect__private_data_PADDED)
{
	struct rdma_conn_param creq = {.private_data = "hello",
				       .private_data_len = 6};
	struct rdma_conn_param crep = {.private_data = "world!",
				       .private_data_len = 7};
	uint8_t zeros[REP_PRIV] = {0};
	struct rdma_cm_event *event;

	assert_int_equal(rdma_connect(p->client, &creq), 0);
	event = next_event(p->lch, RDMA_CM_EVENT_CONNECT_REQUEST);
	assert_int_equal(event->param.conn.private_data_len, REQ_PRIV);
	assert_memory_equal(event->param.conn.private_data, "hello", 6);
	assert_memory_equal((const char *)event->param.conn.private_data + 6,
			    zeros, REQ_PRIV - 6);
	assert_int_equal(event->param.conn.qp_num, p->client->qp->qp_num);
	p->server = event->id;
	rdma_ack_cm_event(event);
	p->scq = add_qp(p->server);
	assert_int_equal(state_of(p->server), IBV_QPS_INIT);
	assert_int_equal(rdma_accept(p->server, &crep), 0);
	assert_int_equal(state_of(p->server), IBV_QPS_RTS);
	assert_int_equal(state_of(p->client), IBV_QPS_INIT);
	assert_quiet(p->lch);
	event = next_event(p->cch, RDMA_CM_EVENT_ESTABLISHED);
	assert_int_equal(state_of(p->client), IBV_QPS_RTS);
	assert_int_equal(event->param.conn.private_data_len, REP_PRIV);
	assert_memory_equal(event->param.conn.private_data, "world!", 7);
	assert_memory_equal((const char *)event->param.conn.private_data + 7,
			    zeros, REP_PRIV - 7);
	assert_int_equal(event->param.conn.qp_num, p->server->qp->qp_num);
	rdma_ack_cm_event(event);
	take_event(p->lch, RDMA_CM_EVENT_ESTABLISHED);
}

/* connect: what one side can start, the other answers */
PAIR_TEST(connect__depths_CROSSED)
{
	struct rdma_conn_param creq = {.responder_resources = 3,
				       .initiator_depth = 5,
				       .retry_count = 6,
				       .rnr_retry_count = 2};
	struct rdma_conn_param crep = {.responder_resources = 4,
				       .initiator_depth = 2,
				       .rnr_retry_count = 1};
	struct ibv_qp_init_attr init;
	struct rdma_cm_event *event;
	struct ibv_qp_attr attr;

	assert_int_equal(rdma_connect(p->client, &creq), 0);
	event = next_event(p->lch, RDMA_CM_EVENT_CONNECT_REQUEST);
	assert_int_equal(event->param.conn.responder_resources, 5);
	assert_int_equal(event->param.conn.initiator_depth, 3);
	assert_int_equal(event->param.conn.retry_count, 6);
	assert_int_equal(event->param.conn.rnr_retry_count, 2);
	p->server = event->id;
	rdma_ack_cm_event(event);
	p->scq = add_qp(p->server);
	assert_int_equal(rdma_accept(p->server, &crep), 0);
	assert_int_equal(ibv_query_qp(p->server->qp, &attr, 0xffff, &init), 0);
	assert_int_equal(attr.max_dest_rd_atomic, 4);
	assert_int_equal(attr.max_rd_atomic, 2);
	assert_int_equal(attr.retry_cnt, 6);
	assert_int_equal(attr.rnr_retry, 2);
	assert_int_equal(attr.dest_qp_num, p->client->qp->qp_num);
	event = next_event(p->cch, RDMA_CM_EVENT_ESTABLISHED);
	assert_int_equal(event->param.conn.responder_resources, 2);
	assert_int_equal(event->param.conn.initiator_depth, 4);
	rdma_ack_cm_event(event);
	assert_int_equal(ibv_query_qp(p->client->qp, &attr, 0xffff, &init), 0);
	assert_int_equal(attr.max_dest_rd_atomic, 2);
	assert_int_equal(attr.max_rd_atomic, 4);
	assert_int_equal(attr.retry_cnt, 6);
	assert_int_equal(attr.rnr_retry, 1);
	assert_int_equal(attr.dest_qp_num, p->server->qp->qp_num);
}

/* connect: "as much as the device can" is what the device can */
PAIR_TEST(connect__max_depths_LIMITED)
{
	struct rdma_conn_param param = {.responder_resources =
						RDMA_MAX_RESP_RES,
					.initiator_depth = RDMA_MAX_INIT_DEPTH};
	struct ibv_device_attr dev;
	struct rdma_cm_event *event;

	assert_int_equal(ibv_query_device(p->client->verbs, &dev), 0);
	assert_int_equal(rdma_connect(p->client, &param), 0);
	event = next_event(p->lch, RDMA_CM_EVENT_CONNECT_REQUEST);
	assert_int_equal(event->param.conn.responder_resources,
			 dev.max_qp_init_rd_atom);
	assert_int_equal(event->param.conn.initiator_depth, dev.max_qp_rd_atom);
	p->server = event->id;
	rdma_ack_cm_event(event);
}

/* connect: more than the device can do is refused */
PAIR_TEST(connect__depths_too_large_EINVAL)
{
	struct rdma_conn_param res = {.responder_resources = 200};
	struct rdma_conn_param depth = {.initiator_depth = 200};

	assert_fails(rdma_connect(p->client, &res), EINVAL);
	assert_fails(rdma_connect(p->client, &depth), EINVAL);
	assert_quiet(p->lch);
}

/* accept: too much private data is refused, and so is the client */
REQUEST_TEST(accept__private_data_197_REJECTS)
{
	char data[REP_PRIV + 1] = {0};
	struct rdma_conn_param param = {.private_data = data,
					.private_data_len = sizeof(data)};

	assert_fails(rdma_accept(p->server, &param), EINVAL);
	assert_int_equal(state_of(p->server), IBV_QPS_ERR);
	take_status(p->cch, RDMA_CM_EVENT_REJECTED, LINK_STATUS_CONSUMER);
	assert_int_equal(state_of(p->client), IBV_QPS_ERR);
}

/* reject: the client hears why, with data; a second time there is nothing */
REQUEST_TEST(reject__private_data_REJECTED_28)
{
	char data[REJ_PRIV + 1] = "no";
	struct rdma_cm_event *event;

	assert_fails(rdma_reject(p->server, data, REJ_PRIV + 1), EINVAL);
	assert_int_equal(rdma_reject(p->server, data, REJ_PRIV), 0);
	assert_fails(rdma_reject(p->server, data, 3), EINVAL);
	event = next_event(p->cch, RDMA_CM_EVENT_REJECTED);
	assert_int_equal(event->status, LINK_STATUS_CONSUMER);
	assert_int_equal(event->param.conn.private_data_len, REJ_PRIV);
	assert_string_equal(event->param.conn.private_data, "no");
	rdma_ack_cm_event(event);
	assert_int_equal(state_of(p->client), IBV_QPS_ERR);
	assert_quiet(p->lch);
}

/* establish: an id without QP sees the answer and confirms it itself */
PAIR_TEST(establish__no_qp_ESTABLISHED)
{
	struct rdma_conn_param param = {.qp_num = 77};
	struct rdma_cm_event *event;

	drop_qp(p->client, p->ccq);
	assert_int_equal(rdma_connect(p->client, &param), 0);
	event = next_event(p->lch, RDMA_CM_EVENT_CONNECT_REQUEST);
	assert_int_equal(event->param.conn.qp_num, 77);
	p->server = event->id;
	rdma_ack_cm_event(event);
	assert_fails(rdma_establish(p->client), EINVAL);
	param.qp_num = 78;
	assert_int_equal(rdma_accept(p->server, &param), 0);
	event = next_event(p->cch, RDMA_CM_EVENT_CONNECT_RESPONSE);
	assert_int_equal(event->param.conn.qp_num, 78);
	rdma_ack_cm_event(event);
	assert_quiet(p->lch);
	assert_int_equal(rdma_establish(p->client), 0);
	take_event(p->lch, RDMA_CM_EVENT_ESTABLISHED);
	assert_fails(rdma_establish(p->client), EINVAL);
}

/* establish: with a QP the library does it */
REQUEST_TEST(establish__with_qp_EINVAL)
{
	assert_fails(rdma_establish(p->client), EINVAL);
}

/* notify: data came before the client's last word: established, once */
REQUEST_TEST(notify__comm_est_ESTABLISHED_once)
{
	assert_fails(rdma_notify(p->server, IBV_EVENT_COMM_EST), EINVAL);
	assert_int_equal(rdma_accept(p->server, NULL), 0);
	assert_fails(rdma_notify(p->server, IBV_EVENT_PATH_MIG), EINVAL);
	assert_int_equal(rdma_notify(p->server, IBV_EVENT_COMM_EST), 0);
	take_event(p->lch, RDMA_CM_EVENT_ESTABLISHED);
	assert_fails(rdma_notify(p->server, IBV_EVENT_COMM_EST), EISCONN);
	take_event(p->cch, RDMA_CM_EVENT_ESTABLISHED);
	assert_quiet(p->lch);
}

/* a request inherits context, channel, addresses and device */
PAIR_TEST(request__new_id_INHERITS)
{
	struct rdma_cm_event *event;

	p->listener->context = p;
	assert_int_equal(rdma_connect(p->client, NULL), 0);
	event = next_event(p->lch, RDMA_CM_EVENT_CONNECT_REQUEST);
	p->server = event->id;
	assert_ptr_equal(p->server->context, p);
	assert_ptr_equal(p->server->channel, p->lch);
	assert_ptr_equal(p->server->verbs, p->listener->verbs);
	assert_ptr_equal(p->server->pd, p->listener->pd);
	assert_int_equal(p->server->port_num, 1);
	assert_int_equal(p->server->ps, RDMA_PS_TCP);
	assert_int_equal(p->server->qp_type, IBV_QPT_RC);
	assert_int_equal(rdma_get_src_port(p->server),
			 rdma_get_src_port(p->listener));
	assert_int_equal(rdma_get_dst_port(p->server),
			 rdma_get_src_port(p->client));
	assert_int_equal(p->server->route.num_paths, 1);
	/* the listener waits for the acknowledgement, the server does not */
	assert_int_equal(rdma_destroy_id(p->server), 0);
	p->server = NULL;
	take_status(p->cch, RDMA_CM_EVENT_REJECTED, LINK_STATUS_CONSUMER);
	rdma_ack_cm_event(event);
}

TEST_MAIN()
