/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * Many clients in threads of their own against one server in the test's
 * thread: every client is served, every connection ends at both ends, and no
 * event is of a connection that is gone.
 */

#include <arpa/inet.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include "cm.h"

#define CLIENTS	    4
#define CONNECTIONS 8 /* of each client, one after the other */

struct client {
	uint16_t port;
	struct ibv_pd *pd; /* NULL until the first connection */
	struct ibv_cq *cq;
	struct ibv_mr *mr;
	uint8_t buf[64];
	const char *failed; /* the step, or NULL */
};

/* Takes the next event and says whether it is of the type. */
static bool take(struct rdma_event_channel *ch, enum rdma_cm_event_type type)
{
	struct rdma_cm_event *event;
	bool same;

	if (rdma_get_cm_event(ch, &event))
		return false;
	same = event->event == type;
	rdma_ack_cm_event(event);
	return same;
}

static const char *resolve(struct rdma_cm_id *id, uint16_t port)
{
	struct sockaddr_in addr = cm_addr(port);

	if (rdma_resolve_addr(id, NULL, (struct sockaddr *)&addr, 5000) ||
	    !take(id->channel, RDMA_CM_EVENT_ADDR_RESOLVED))
		return "rdma_resolve_addr";
	if (rdma_resolve_route(id, 5000) ||
	    !take(id->channel, RDMA_CM_EVENT_ROUTE_RESOLVED))
		return "rdma_resolve_route";
	return NULL;
}

static const char *make_queues(struct client *c, struct rdma_cm_id *id)
{
	struct ibv_qp_init_attr attr = {.qp_type = IBV_QPT_RC,
					.cap = {2, 2, 1, 1, 0}};

	if (!c->pd) {
		c->pd = ibv_alloc_pd(id->verbs);
		c->cq = ibv_create_cq(id->verbs, 8, NULL, NULL, 0);
		if (!c->pd || !c->cq)
			return "ibv_create_cq";
		c->mr = ibv_reg_mr(c->pd, c->buf, sizeof(c->buf),
				   IBV_ACCESS_LOCAL_WRITE);
		if (!c->mr)
			return "ibv_reg_mr";
	}
	attr.send_cq = c->cq;
	attr.recv_cq = c->cq;
	return rdma_create_qp(id, c->pd, &attr) ? "rdma_create_qp" : NULL;
}

static const char *send_one(struct client *c, struct rdma_cm_id *id)
{
	struct ibv_sge sge = {(uintptr_t)c->buf, 8, c->mr->lkey};
	struct ibv_send_wr wr = {.sg_list = &sge,
				 .num_sge = 1,
				 .opcode = IBV_WR_SEND,
				 .send_flags = IBV_SEND_SIGNALED};
	struct ibv_send_wr *bad;
	struct ibv_wc wc;
	int n;

	if (ibv_post_send(id->qp, &wr, &bad))
		return "ibv_post_send";
	while ((n = ibv_poll_cq(c->cq, 1, &wc)) == 0)
		;
	return n == 1 && wc.status == IBV_WC_SUCCESS ? NULL : "the send";
}

static const char *talk(struct client *c, struct rdma_cm_id *id)
{
	struct rdma_conn_param param = cm_param(NULL, 0);
	const char *failed = make_queues(c, id);

	if (failed)
		return failed;
	if (rdma_connect(id, &param) ||
	    !take(id->channel, RDMA_CM_EVENT_ESTABLISHED))
		failed = "rdma_connect";
	if (!failed)
		failed = send_one(c, id);
	if (!failed && (rdma_disconnect(id) ||
			!take(id->channel, RDMA_CM_EVENT_DISCONNECTED)))
		failed = "rdma_disconnect";
	rdma_destroy_qp(id);
	return failed;
}

static const char *connect_once(struct client *c)
{
	struct rdma_event_channel *ch = rdma_create_event_channel();
	struct rdma_cm_id *id;
	const char *failed;

	if (!ch)
		return "rdma_create_event_channel";
	if (rdma_create_id(ch, &id, NULL, RDMA_PS_TCP)) {
		rdma_destroy_event_channel(ch);
		return "rdma_create_id";
	}
	failed = resolve(id, c->port);
	if (!failed)
		failed = talk(c, id);
	if (rdma_destroy_id(id) && !failed)
		failed = "rdma_destroy_id";
	rdma_destroy_event_channel(ch);
	return failed;
}

static void *run_client(void *arg)
{
	struct client *c = arg;

	for (int i = 0; i < CONNECTIONS && !c->failed; ++i)
		c->failed = connect_once(c);
	if (c->mr)
		ibv_dereg_mr(c->mr);
	if (c->cq)
		ibv_destroy_cq(c->cq);
	if (c->pd)
		ibv_dealloc_pd(c->pd);
	return NULL;
}

struct server {
	struct rdma_cm_id *listener;
	struct ibv_pd *pd;
	struct ibv_cq *cq;
	struct ibv_mr *mr;
	int requests;
	int established;
	int disconnected;
	int received;
};

static void serve_request(struct server *s, struct rdma_cm_id *id)
{
	struct ibv_qp_init_attr attr = {.send_cq = s->cq,
					.recv_cq = s->cq,
					.qp_type = IBV_QPT_RC,
					.cap = {2, 2, 1, 1, 0}};
	struct rdma_conn_param param = cm_param(NULL, 0);
	struct ibv_sge sge = {(uintptr_t)s->mr->addr, 64, s->mr->lkey};
	struct ibv_recv_wr wr = {.sg_list = &sge, .num_sge = 1};
	struct ibv_recv_wr *bad;

	assert_int_equal(rdma_create_qp(id, s->pd, &attr), 0);
	assert_int_equal(ibv_post_recv(id->qp, &wr, &bad), 0);
	assert_int_equal(rdma_accept(id, &param), 0);
	++s->requests;
}

static void serve_event(struct server *s, const struct cm_seen *seen)
{
	switch (seen->type) {
	case RDMA_CM_EVENT_CONNECT_REQUEST:
		assert_ptr_equal(seen->listen_id, s->listener);
		serve_request(s, seen->id);
		break;
	case RDMA_CM_EVENT_ESTABLISHED:
		++s->established;
		break;
	case RDMA_CM_EVENT_DISCONNECTED:
		rdma_destroy_qp(seen->id);
		assert_int_equal(rdma_destroy_id(seen->id), 0);
		++s->disconnected;
		break;
	default:
		fail_msg("%s", rdma_event_str(seen->type));
	}
}

static void count_received(struct server *s)
{
	struct ibv_wc wc;

	while (ibv_poll_cq(s->cq, 1, &wc) == 1)
		s->received += wc.status == IBV_WC_SUCCESS;
}

static void server_init(struct server *s)
{
	memset(s, 0, sizeof(*s));
	s->listener = cm_listen(cm_channel());
	s->pd = ibv_alloc_pd(s->listener->verbs);
	assert_non_null(s->pd);
	fx_keep_pd(s->pd);
	s->mr = fx_mr(s->pd, 4096, IBV_ACCESS_LOCAL_WRITE);
	s->cq = ibv_create_cq(s->listener->verbs, 256, NULL, NULL, 0);
	assert_non_null(s->cq);
	fx_keep_cq(s->cq);
}

FX_TEST(clients__in_threads_are_all_served)
{
	struct client *clients = fx_alloc(CLIENTS * sizeof(*clients));
	struct server s;
	pthread_t t[CLIENTS];

	server_init(&s);
	for (int i = 0; i < CLIENTS; ++i) {
		clients[i].port = cm_port(s.listener);
		assert_int_equal(
			pthread_create(&t[i], NULL, run_client, &clients[i]),
			0);
	}
	while (s.disconnected < CLIENTS * CONNECTIONS) {
		struct cm_seen seen = cm_next(s.listener->channel);

		/* before the QP goes: its completions may go with it */
		count_received(&s);
		serve_event(&s, &seen);
	}
	for (int i = 0; i < CLIENTS; ++i) {
		assert_int_equal(pthread_join(t[i], NULL), 0);
		if (clients[i].failed)
			fail_msg("client %d: %s", i, clients[i].failed);
	}
	assert_int_equal(s.requests, CLIENTS * CONNECTIONS);
	if (dut.traits->established_comes_first)
		assert_int_equal(s.established, CLIENTS * CONNECTIONS);
	else
		assert_in_range(s.established, 1, CLIENTS * CONNECTIONS);
	assert_int_equal(s.received, CLIENTS * CONNECTIONS);
	assert_false(fx_readable(s.listener->channel->fd));
}

FX_TEST(links__side_by_side)
{
	enum { N = 16 };
	struct cm_link *links[N];

	for (int i = 0; i < N; ++i)
		links[i] = cm_link_new();
	for (int i = 0; i < N; ++i)
		cm_check(links[i]);
	for (int i = 0; i < N; i += 2)
		cm_hang_up(links[i]);
	for (int i = 1; i < N; i += 2)
		cm_check(links[i]);
}

FX_MAIN("cm_load")
