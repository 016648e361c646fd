/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/* endpoint.c -- synchronous identifiers and endpoints made in one call. */

#include "fixture.h"

#include <infiniband/verbs.h>
#include <pthread.h>
#include <rdma/rdma_verbs.h>
#include <stdio.h>
#include <string.h>

static struct rdma_addrinfo *info(const char *node, uint16_t port, int flags)
{
	struct rdma_addrinfo hints = {.ai_flags = flags | RAI_NUMERICHOST,
				      .ai_port_space = RDMA_PS_TCP};
	struct rdma_addrinfo *res;
	char service[8];

	snprintf(service, sizeof(service), "%u", port);
	assert_int_equal(rdma_getaddrinfo(node, service, &hints, &res), 0);
	return res;
}

static struct ibv_qp_init_attr small_qp(void)
{
	struct ibv_qp_init_attr attr = {.cap = {4, 4, 1, 1, 8}};

	return attr;
}

/* Listens, and makes QPs for its requests. */
static struct rdma_cm_id *new_server_ep(void)
{
	struct rdma_addrinfo *res = info("127.0.0.1", 0, RAI_PASSIVE);
	struct ibv_qp_init_attr attr = small_qp();
	struct rdma_cm_id *id;

	assert_int_equal(rdma_create_ep(&id, res, NULL, &attr), 0);
	assert_int_equal(rdma_listen(id, 0), 0);
	rdma_freeaddrinfo(res);
	return id;
}

static struct rdma_cm_id *new_client_ep(uint16_t port, const char *data)
{
	struct rdma_addrinfo *res = info("127.0.0.1", port, 0);
	struct ibv_qp_init_attr attr = small_qp();
	struct rdma_cm_id *id;

	if (data) {
		res->ai_connect = strdup(data);
		res->ai_connect_len = strlen(data);
	}
	assert_int_equal(rdma_create_ep(&id, res, NULL, &attr), 0);
	rdma_freeaddrinfo(res);
	return id;
}

static void *serve_one(void *arg)
{
	struct rdma_cm_id *listener = arg;
	struct rdma_cm_id *id;

	assert_int_equal(rdma_get_request(listener, &id), 0);
	assert_int_equal(id->event->event, RDMA_CM_EVENT_CONNECT_REQUEST);
	assert_memory_equal(id->event->param.conn.private_data, "frontback", 9);
	assert_non_null(id->qp);
	assert_int_equal(rdma_accept(id, NULL), 0);
	assert_int_equal(id->event->event, RDMA_CM_EVENT_ESTABLISHED);
	assert_int_equal(state_of(id), IBV_QPS_RTS);
	assert_int_equal(rdma_disconnect(id), 0);
	assert_int_equal(id->event->event, RDMA_CM_EVENT_DISCONNECTED);
	rdma_destroy_ep(id);
	return NULL;
}

/* connect, accept, disconnect each wait for their event */
TEST_WITH(endpoint__both_sides_WAIT, reset, reset)
{
	struct rdma_conn_param param = {.private_data = "back",
					.private_data_len = 4};
	struct rdma_cm_id *listener = new_server_ep();
	struct rdma_cm_id *id = new_client_ep(port_of(listener), "front");
	pthread_t thread;

	pthread_create(&thread, NULL, serve_one, listener);
	assert_int_equal(rdma_connect(id, &param), 0);
	assert_int_equal(id->event->event, RDMA_CM_EVENT_ESTABLISHED);
	assert_int_equal(state_of(id), IBV_QPS_RTS);
	assert_int_equal(rdma_disconnect(id), 0);
	assert_int_equal(id->event->event, RDMA_CM_EVENT_DISCONNECTED);
	pthread_join(thread, NULL);
	rdma_destroy_ep(id);
	rdma_destroy_ep(listener);
}

/* connect: refused */
TEST_WITH(endpoint__nobody_listens_ECONNREFUSED, reset, reset)
{
	struct rdma_cm_id *listener = new_server_ep();
	struct rdma_cm_id *id = new_client_ep(port_of(listener), NULL);

	rdma_destroy_ep(listener);
	assert_fails(rdma_connect(id, NULL), ECONNREFUSED);
	assert_int_equal(id->event->event, RDMA_CM_EVENT_REJECTED);
	rdma_destroy_ep(id);
}

/* completion queues are made with channels, and destroyed with the QP */
TEST_WITH(endpoint__no_cqs_MADE, reset, reset)
{
	struct rdma_cm_id *listener = new_server_ep();
	struct rdma_cm_id *id = new_client_ep(port_of(listener), NULL);

	assert_non_null(id->send_cq);
	assert_non_null(id->recv_cq);
	assert_ptr_equal(id->send_cq->channel, id->send_cq_channel);
	assert_ptr_equal(id->recv_cq->cq_context, id);
	assert_ptr_equal(id->qp->send_cq, id->send_cq);
	rdma_destroy_qp(id);
	assert_null(id->send_cq);
	assert_null(id->recv_cq);
	assert_null(id->send_cq_channel);
	assert_null(id->recv_cq_channel);
	rdma_destroy_ep(id);
	rdma_destroy_ep(listener);
}

/* an SRQ of the identifier is that of its QP */
TEST_WITH(endpoint__srq_USED, reset, reset)
{
	struct ibv_srq_init_attr srq = {.attr = {.max_wr = 4, .max_sge = 1}};
	struct ibv_qp_init_attr attr = small_qp();
	struct rdma_event_channel *ch = new_channel();
	struct rdma_cm_id *id = new_client(ch, 1);

	assert_int_equal(rdma_create_srq(id, NULL, &srq), 0);
	assert_non_null(id->srq);
	attr.qp_type = IBV_QPT_RC;
	assert_int_equal(rdma_create_qp(id, NULL, &attr), 0);
	assert_ptr_equal(id->qp->srq, id->srq);
	rdma_destroy_qp(id);
	rdma_destroy_srq(id);
	assert_null(id->srq);
	rdma_destroy_ep(id);
	rdma_destroy_event_channel(ch);
}

/* create_ep: leaves nothing behind when a step fails */
TEST_WITH(create_ep__port_taken_EADDRINUSE, reset, reset)
{
	struct rdma_cm_id *listener = new_server_ep();
	struct rdma_addrinfo *res =
		info("127.0.0.1", port_of(listener), RAI_PASSIVE);
	struct rdma_cm_id *id = NULL;

	assert_fails(rdma_create_ep(&id, res, NULL, NULL), EADDRINUSE);
	assert_null(id);
	assert_fails(rdma_create_ep(NULL, res, NULL, NULL), EINVAL);
	assert_fails(rdma_create_ep(&id, NULL, NULL, NULL), EINVAL);
	rdma_freeaddrinfo(res);
	rdma_destroy_ep(listener);
}

/* get_request: is for synchronous listeners */
PAIR_TEST(get_request__asynchronous_EINVAL)
{
	struct rdma_cm_id *id = NULL;

	assert_fails(rdma_get_request(p->listener, &id), EINVAL);
	assert_fails(rdma_get_request(NULL, &id), EINVAL);
}

TEST_MAIN()
