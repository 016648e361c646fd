/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * Connecting with rdma_cm: resolving, private data both ways, rejection,
 * no listener, the order of events, data before and after.
 */

#include <arpa/inet.h>
#include <errno.h>
#include <string.h>
#include "cm.h"

/* The status of a rejection by the server, and without a listener. */
#define REJ_CONSUMER	    28
#define REJ_INVALID_SERVICE 8
/* How much private data each message carries at most over RDMA_PS_TCP. */
#define REQUEST_DATA 56
#define ACCEPT_DATA  196
#define REJECT_DATA  148

static const uint8_t *pattern(void)
{
	static uint8_t data[256];

	for (unsigned i = 0; i < sizeof(data); ++i)
		data[i] = (uint8_t)(i + 1);
	return data;
}

FX_TEST(link__carries_messages)
{
	struct cm_link *l = cm_link_new();

	cm_check(l);
	cm_check(l);
	cm_hang_up(l);
}

FX_TEST(resolve__fills_the_id)
{
	struct rdma_cm_id *listener = cm_listen(cm_channel());
	struct rdma_cm_id *id = cm_id(cm_channel());
	struct sockaddr_in *peer;

	assert_null(id->verbs);
	cm_resolve(id, cm_port(listener));
	assert_non_null(id->verbs);
	assert_string_equal(ibv_get_device_name(id->verbs->device),
			    ibv_get_device_name(dut.verbs->device));
	assert_int_equal(id->port_num, 1);
	assert_int_equal(id->ps, RDMA_PS_TCP);
	peer = (struct sockaddr_in *)rdma_get_peer_addr(id);
	assert_int_equal(peer->sin_family, AF_INET);
	assert_int_equal(peer->sin_addr.s_addr, dut.addr.sin_addr.s_addr);
	assert_int_equal(ntohs(rdma_get_dst_port(id)), cm_port(listener));
	peer = (struct sockaddr_in *)rdma_get_local_addr(id);
	assert_int_equal(peer->sin_family, AF_INET);
}

static void request__carries_private_data(uint8_t len)
{
	size_t mark = fx_mark();
	struct cm_link *l = cm_link_init();
	struct cm_seen seen = cm_request(l, pattern(), len);

	assert_true(seen.param.private_data_len >= len);
	assert_memory_equal(seen.data, pattern(), len);
	assert_int_equal(rdma_reject(l->server.id, NULL, 0), 0);
	cm_expect(l->client.channel, RDMA_CM_EVENT_REJECTED);
	fx_release(mark);
}

FX_TEST(connect__private_data_arrives)
{
	request__carries_private_data(1);
	request__carries_private_data(20);
	request__carries_private_data(REQUEST_DATA);
}

FX_TEST(connect__too_much_private_data_refused)
{
	struct cm_link *l = cm_link_init();
	struct rdma_conn_param param = cm_param(pattern(), REQUEST_DATA + 1);

	assert_int_equal(rdma_connect(l->client.id, &param), -1);
	assert_int_equal(errno, EINVAL);
}

FX_TEST(accept__private_data_arrives)
{
	static const uint8_t lengths[] = {1, 30, ACCEPT_DATA};

	for (unsigned i = 0; i < FX_COUNT(lengths); ++i) {
		size_t mark = fx_mark();
		struct cm_link *l = cm_link_init();
		struct cm_seen seen;

		cm_request(l, NULL, 0);
		cm_make_qp(&l->server);
		cm_accept(l, pattern(), lengths[i]);
		seen = cm_expect(l->client.channel, RDMA_CM_EVENT_ESTABLISHED);
		assert_true(seen.param.private_data_len >= lengths[i]);
		assert_memory_equal(seen.data, pattern(), lengths[i]);
		cm_expect(l->server.channel, RDMA_CM_EVENT_ESTABLISHED);
		cm_hang_up(l);
		fx_release(mark);
	}
}

FX_TEST(reject__status_and_private_data_arrive)
{
	static const uint8_t lengths[] = {0, 1, 30, REJECT_DATA};

	for (unsigned i = 0; i < FX_COUNT(lengths); ++i) {
		size_t mark = fx_mark();
		struct cm_link *l = cm_link_init();
		struct cm_seen seen;

		cm_request(l, NULL, 0);
		assert_int_equal(
			rdma_reject(l->server.id, pattern(), lengths[i]), 0);
		seen = cm_expect(l->client.channel, RDMA_CM_EVENT_REJECTED);
		assert_int_equal(seen.status, REJ_CONSUMER);
		assert_true(seen.param.private_data_len >= lengths[i]);
		assert_memory_equal(seen.data, pattern(), lengths[i]);
		fx_release(mark);
	}
}

FX_TEST(connect__no_listener_REJECTED)
{
	struct cm_link *l = cm_link_init();
	struct rdma_conn_param param = cm_param(NULL, 0);
	struct cm_seen seen;

	assert_int_equal(fx_destroy(l->listener), 0);
	assert_int_equal(rdma_connect(l->client.id, &param), 0);
	seen = cm_expect(l->client.channel, RDMA_CM_EVENT_REJECTED);
	assert_int_equal(seen.status, REJ_INVALID_SERVICE);
	assert_ptr_equal(seen.id, l->client.id);
}

FX_TEST(connect__not_resolved_EINVAL)
{
	struct rdma_cm_id *id = cm_id(cm_channel());
	struct rdma_conn_param param = cm_param(NULL, 0);

	fx_need(dut.traits->cm_checks_state,
		"the library follows the device an id has not yet");
	param.qp_num = 7;
	assert_int_equal(rdma_connect(id, &param), -1);
	assert_int_equal(errno, EINVAL);
}

FX_TEST(resolve_route__before_address_EINVAL)
{
	struct rdma_cm_id *id = cm_id(cm_channel());

	fx_need(dut.traits->cm_checks_state,
		"the library follows the device an id has not yet");
	assert_int_equal(rdma_resolve_route(id, 1000), -1);
	assert_int_equal(errno, EINVAL);
}

/* TEST-NET-3 is no host's. The device chooses among the errors. */
FX_TEST(resolve_addr__of_nobody_fails)
{
	struct rdma_cm_id *id = cm_id(cm_channel());
	struct sockaddr_in addr = {.sin_family = AF_INET, .sin_port = htons(7)};
	struct cm_seen seen;

	inet_aton("203.0.113.77", &addr.sin_addr);
	if (rdma_resolve_addr(id, NULL, (struct sockaddr *)&addr, 2000)) {
		assert_true(errno == ENETUNREACH || errno == EHOSTUNREACH ||
			    errno == ENODEV || errno == EADDRNOTAVAIL);
		return;
	}
	seen = cm_expect(id->channel, RDMA_CM_EVENT_ADDR_ERROR);
	assert_true(seen.status < 0);
}

FX_TEST(request__negotiates_depths)
{
	struct cm_link *l = cm_link_init();
	struct rdma_conn_param param = cm_param(NULL, 0);
	struct cm_seen seen;

	param.responder_resources = 3;
	param.initiator_depth = 2;
	assert_int_equal(rdma_connect(l->client.id, &param), 0);
	seen = cm_expect(l->server.channel, RDMA_CM_EVENT_CONNECT_REQUEST);
	cm_keep_id(seen.id);
	/* from the reader's point of view */
	assert_int_equal(seen.param.responder_resources, 2);
	assert_int_equal(seen.param.initiator_depth, 3);
	assert_int_equal(seen.param.rnr_retry_count, 7);
	assert_int_equal(seen.param.qp_num, l->client.id->qp->qp_num);
	assert_non_null(seen.id->verbs);
	assert_int_equal(rdma_reject(seen.id, NULL, 0), 0);
	cm_expect(l->client.channel, RDMA_CM_EVENT_REJECTED);
}

FX_TEST(request_id__has_the_context_of_its_listener)
{
	struct cm_link *l = cm_link_init();
	int tag;
	struct cm_seen seen;

	l->listener->context = &tag;
	seen = cm_request(l, NULL, 0);
	assert_ptr_equal(seen.id->context, &tag);
	assert_ptr_equal(seen.id->channel, l->server.channel);
	assert_int_equal(rdma_reject(seen.id, NULL, 0), 0);
}

/* The server posts the receive before the accept, for an early message. */
FX_TEST(recv__before_accept_gets_the_first_message)
{
	struct cm_link *l = cm_link_init();

	cm_request(l, NULL, 0);
	cm_make_qp(&l->server);
	cm_post_recv(&l->server, 5);
	cm_post_recv(&l->client, 6);
	cm_accept(l, NULL, 0);
	cm_expect(l->client.channel, RDMA_CM_EVENT_ESTABLISHED);
	cm_post_send(&l->client, 7);
	fx_expect(l->server.cq, 5, IBV_WC_SUCCESS);
	fx_expect(l->client.cq, 7, IBV_WC_SUCCESS);
	cm_expect(l->server.channel, RDMA_CM_EVENT_ESTABLISHED);
	cm_post_send(&l->server, 8);
	fx_expect(l->client.cq, 6, IBV_WC_SUCCESS);
	fx_expect(l->server.cq, 8, IBV_WC_SUCCESS);
}

FX_TEST(qp_states__follow_the_connection)
{
	struct cm_link *l = cm_link_init();

	assert_int_equal(l->client.id->qp->state, IBV_QPS_INIT);
	cm_request(l, NULL, 0);
	cm_make_qp(&l->server);
	assert_int_equal(l->server.id->qp->state, IBV_QPS_INIT);
	cm_accept(l, NULL, 0);
	assert_int_equal(l->server.id->qp->state, IBV_QPS_RTS);
	cm_established(l);
	assert_int_equal(l->client.id->qp->state, IBV_QPS_RTS);
	assert_int_equal(rdma_disconnect(l->client.id), 0);
	assert_int_equal(l->client.id->qp->state, IBV_QPS_ERR);
}

/* A client with a QP of its own: CONNECT_RESPONSE, then establish. */
FX_TEST(establish__by_hand)
{
	struct cm_link *l = cm_link_init();
	struct ibv_qp_init_attr init = {.send_cq = l->client.cq,
					.recv_cq = l->client.cq,
					.qp_type = IBV_QPT_RC,
					.cap = {4, 4, 1, 1, 0}};
	struct rdma_conn_param param = cm_param(NULL, 0);
	static const enum ibv_qp_state states[] = {IBV_QPS_INIT, IBV_QPS_RTR,
						   IBV_QPS_RTS};
	struct ibv_qp *qp;

	assert_int_equal(fx_destroy(&l->client), 0);
	qp = fx_qp(l->client.pd, &init);
	param.qp_num = qp->qp_num;
	assert_int_equal(rdma_connect(l->client.id, &param), 0);
	l->server.id =
		cm_expect(l->server.channel, RDMA_CM_EVENT_CONNECT_REQUEST).id;
	cm_keep_id(l->server.id);
	cm_make_qp(&l->server);
	cm_accept(l, NULL, 0);
	cm_expect(l->client.channel, RDMA_CM_EVENT_CONNECT_RESPONSE);
	for (unsigned i = 0; i < FX_COUNT(states); ++i) {
		struct ibv_qp_attr attr = {.qp_state = states[i]};
		int mask;

		assert_int_equal(rdma_init_qp_attr(l->client.id, &attr, &mask),
				 0);
		assert_int_equal(ibv_modify_qp(qp, &attr, mask), 0);
	}
	assert_int_equal(rdma_establish(l->client.id), 0);
	cm_expect(l->server.channel, RDMA_CM_EVENT_ESTABLISHED);
	cm_post_send(&l->server, 1);
	assert_int_equal(rdma_disconnect(l->client.id), 0);
	cm_expect(l->server.channel, RDMA_CM_EVENT_DISCONNECTED);
	assert_int_equal(rdma_disconnect(l->server.id), 0);
	cm_expect(l->client.channel, RDMA_CM_EVENT_DISCONNECTED);
	fx_expect(l->server.cq, 1, IBV_WC_WR_FLUSH_ERR);
}

/* Moves a QP made by hand as far as the id says. Returns the first PSN of the
 * QP's requests. */
static uint32_t move_by_hand(struct rdma_cm_id *id, struct ibv_qp *qp)
{
	static const enum ibv_qp_state states[] = {IBV_QPS_INIT, IBV_QPS_RTR,
						   IBV_QPS_RTS};
	struct ibv_qp_attr attr;
	int mask;

	for (unsigned i = 0; i < FX_COUNT(states); ++i) {
		attr = (struct ibv_qp_attr){.qp_state = states[i]};
		assert_int_equal(rdma_init_qp_attr(id, &attr, &mask), 0);
		assert_int_equal(ibv_modify_qp(qp, &attr, mask), 0);
	}
	return attr.sq_psn;
}

/* Returns the first PSN of the requests for the id. */
static uint32_t expected_psn(struct rdma_cm_id *id)
{
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_RTR};
	int mask;

	assert_int_equal(rdma_init_qp_attr(id, &attr, &mask), 0);
	return attr.rq_psn;
}

/*
 * A server that manages its QP itself moves the QP to RTS before the accept,
 * and the first message of the server arrives.
 */
FX_TEST(accept__behind_a_move_to_rts_by_hand)
{
	struct cm_link *l = cm_link_init();
	struct ibv_qp_init_attr init = {.qp_type = IBV_QPT_RC,
					.cap = {4, 4, 1, 1, 0}};
	struct rdma_conn_param param = cm_param(NULL, 0);
	struct ibv_sge sge;
	struct ibv_send_wr *bad, wr = {.wr_id = 2,
				       .sg_list = &sge,
				       .num_sge = 1,
				       .opcode = IBV_WR_SEND,
				       .send_flags = IBV_SEND_SIGNALED};
	struct ibv_mr *mr;
	struct ibv_qp *qp;
	uint32_t psn;

	cm_post_recv(&l->client, 1);
	cm_request(l, NULL, 0);
	init.send_cq = init.recv_cq = fx_cq(8, NULL, NULL);
	l->server.pd = fx_pd();
	mr = fx_mr(l->server.pd, 64, FX_ALL_ACCESS);
	qp = fx_qp(l->server.pd, &init);
	psn = move_by_hand(l->server.id, qp);
	param.qp_num = qp->qp_num;
	assert_int_equal(rdma_accept(l->server.id, &param), 0);
	cm_established(l);
	assert_int_equal(expected_psn(l->client.id), psn);
	sge = (struct ibv_sge){(uintptr_t)mr->addr, 8, mr->lkey};
	assert_int_equal(ibv_post_send(qp, &wr, &bad), 0);
	fx_expect(l->client.cq, 1, IBV_WC_SUCCESS);
	fx_expect(init.send_cq, 2, IBV_WC_SUCCESS);
	cm_hang_up(l);
}

/* Without a channel every step ends before its call returns. */
FX_TEST(synchronous_ids__connect)
{
	struct rdma_event_channel *ch = cm_channel();
	struct rdma_cm_id *listener = cm_listen(ch);
	struct rdma_cm_id *id = cm_id(NULL);
	struct sockaddr_in addr = cm_addr(cm_port(listener));

	assert_int_equal(
		rdma_resolve_addr(id, NULL, (struct sockaddr *)&addr, 5000), 0);
	assert_non_null(id->event);
	assert_int_equal(id->event->event, RDMA_CM_EVENT_ADDR_RESOLVED);
	assert_int_equal(rdma_resolve_route(id, 5000), 0);
	assert_int_equal(id->event->event, RDMA_CM_EVENT_ROUTE_RESOLVED);
	assert_non_null(id->verbs);
}

FX_TEST(get_cm_event__nonblocking_EAGAIN)
{
	struct rdma_event_channel *ch = cm_channel();
	struct rdma_cm_event *event;

	fx_nonblock(ch->fd);
	assert_int_equal(rdma_get_cm_event(ch, &event), -1);
	assert_int_equal(errno, EAGAIN);
}

FX_TEST(getaddrinfo__resolves_and_creates)
{
	struct rdma_addrinfo hints = {.ai_port_space = RDMA_PS_TCP};
	struct rdma_addrinfo *res;
	char text[INET_ADDRSTRLEN];
	struct sockaddr_in *dst;

	inet_ntop(AF_INET, &dut.addr.sin_addr, text, sizeof(text));
	assert_int_equal(rdma_getaddrinfo(text, "7471", &hints, &res), 0);
	assert_int_equal(res->ai_family, AF_INET);
	assert_int_equal(res->ai_port_space, RDMA_PS_TCP);
	dst = (struct sockaddr_in *)res->ai_dst_addr;
	assert_non_null(dst);
	assert_int_equal(dst->sin_addr.s_addr, dut.addr.sin_addr.s_addr);
	assert_int_equal(ntohs(dst->sin_port), 7471);
	rdma_freeaddrinfo(res);
	hints.ai_flags = RAI_PASSIVE;
	assert_int_equal(rdma_getaddrinfo(text, "7471", &hints, &res), 0);
	assert_non_null(res->ai_src_addr);
	rdma_freeaddrinfo(res);
}

FX_TEST(getaddrinfo__no_such_name_fails)
{
	struct rdma_addrinfo hints = {.ai_flags = RAI_NUMERICHOST,
				      .ai_port_space = RDMA_PS_TCP};
	struct rdma_addrinfo *res;

	assert_int_not_equal(
		rdma_getaddrinfo("not an address", "7471", &hints, &res), 0);
}

FX_MAIN("cm_connect")
