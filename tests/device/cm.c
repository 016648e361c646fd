/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * Connections through rdma_cm for the tests. Runs in cmocka's thread.
 */

#include <arpa/inet.h>
#include <errno.h>
#include <string.h>
#include "cm.h"

#define RESOLVE_MS 60000
#define DEPTH	   16

static int undo_channel(void *p)
{
	rdma_destroy_event_channel(p);
	return 0;
}

static int undo_id(void *p)
{
	return rdma_destroy_id(p);
}

void cm_keep_id(struct rdma_cm_id *id)
{
	fx_keep(id, undo_id);
}

struct rdma_event_channel *cm_channel(void)
{
	struct rdma_event_channel *ch = rdma_create_event_channel();

	assert_non_null(ch);
	fx_keep(ch, undo_channel);
	return ch;
}

struct rdma_cm_id *cm_id(struct rdma_event_channel *channel)
{
	struct rdma_cm_id *id;

	assert_int_equal(rdma_create_id(channel, &id, NULL, RDMA_PS_TCP), 0);
	cm_keep_id(id);
	return id;
}

struct cm_seen cm_next(struct rdma_event_channel *channel)
{
	struct rdma_cm_event *event;
	struct cm_seen seen = {0};

	fx_wait_readable(channel->fd, "an rdma_cm event");
	assert_int_equal(rdma_get_cm_event(channel, &event), 0);
	seen.type = event->event;
	seen.status = event->status;
	seen.id = event->id;
	seen.listen_id = event->listen_id;
	seen.param = event->param.conn;
	seen.ud = event->param.ud;
	if (seen.param.private_data && seen.param.private_data_len)
		memcpy(seen.data, seen.param.private_data,
		       seen.param.private_data_len);
	seen.param.private_data = NULL;
	assert_int_equal(rdma_ack_cm_event(event), 0);
	return seen;
}

struct cm_seen cm_expect(struct rdma_event_channel *channel,
			 enum rdma_cm_event_type type)
{
	struct cm_seen seen = cm_next(channel);

	if (seen.type != type)
		fail_msg("%s (%d), not %s", rdma_event_str(seen.type),
			 seen.status, rdma_event_str(type));
	return seen;
}

struct sockaddr_in cm_addr(uint16_t port)
{
	struct sockaddr_in addr = dut.addr;

	addr.sin_port = htons(port);
	return addr;
}

uint16_t cm_port(struct rdma_cm_id *id)
{
	return ntohs(rdma_get_src_port(id));
}

static struct rdma_cm_id *listen_at(struct rdma_event_channel *channel,
				    struct sockaddr *addr)
{
	struct rdma_cm_id *id = cm_id(channel);

	assert_int_equal(rdma_bind_addr(id, addr), 0);
	assert_int_equal(rdma_listen(id, 64), 0);
	assert_int_not_equal(cm_port(id), 0);
	return id;
}

struct rdma_cm_id *cm_listen(struct rdma_event_channel *channel)
{
	struct sockaddr_in addr = cm_addr(0);

	return listen_at(channel, (struct sockaddr *)&addr);
}

static void resolve_at(struct rdma_cm_id *id, struct sockaddr *addr)
{
	assert_int_equal(rdma_resolve_addr(id, NULL, addr, RESOLVE_MS), 0);
	cm_expect(id->channel, RDMA_CM_EVENT_ADDR_RESOLVED);
	assert_int_equal(rdma_resolve_route(id, RESOLVE_MS), 0);
	cm_expect(id->channel, RDMA_CM_EVENT_ROUTE_RESOLVED);
}

void cm_resolve(struct rdma_cm_id *id, uint16_t port)
{
	struct sockaddr_in addr = cm_addr(port);

	resolve_at(id, (struct sockaddr *)&addr);
}

static int undo_pd(void *p)
{
	return ibv_dealloc_pd(p);
}

static int undo_cq(void *p)
{
	return ibv_destroy_cq(p);
}

static int undo_qp(void *p)
{
	struct cm_end *end = p;

	rdma_destroy_qp(end->id);
	return 0;
}

void cm_make_qp(struct cm_end *end)
{
	struct ibv_qp_init_attr attr = {.qp_type = end->id->qp_type,
					.cap = {.max_send_wr = DEPTH,
						.max_recv_wr = DEPTH,
						.max_send_sge = 1,
						.max_recv_sge = 1}};

	end->pd = ibv_alloc_pd(end->id->verbs);
	assert_non_null(end->pd);
	fx_keep(end->pd, undo_pd);
	end->mr = fx_mr(end->pd, 4096, FX_ALL_ACCESS);
	end->cq = ibv_create_cq(end->id->verbs, 2 * DEPTH, NULL, NULL, 0);
	assert_non_null(end->cq);
	fx_keep(end->cq, undo_cq);
	attr.send_cq = end->cq;
	attr.recv_cq = end->cq;
	assert_int_equal(rdma_create_qp(end->id, end->pd, &attr), 0);
	fx_keep(end, undo_qp);
}

void cm_destroy(struct cm_end *end)
{
	assert_int_equal(fx_destroy(end), 0);
	assert_int_equal(fx_destroy(end->id), 0);
	end->id = NULL;
}

struct rdma_conn_param cm_param(const void *data, uint8_t len)
{
	struct rdma_conn_param param = {
		.private_data = data,
		.private_data_len = len,
		.responder_resources = 1,
		.initiator_depth = 1,
		.retry_count = 7,
		.rnr_retry_count = 7,
	};

	return param;
}

/* The listener gets a port, and the client resolves it at the same address. */
static struct cm_link *link_init_at(struct sockaddr *addr)
{
	struct cm_link *l = fx_alloc(sizeof(*l));

	l->server.channel = cm_channel();
	l->client.channel = cm_channel();
	l->listener = listen_at(l->server.channel, addr);
	l->client.id = cm_id(l->client.channel);
	resolve_at(l->client.id, rdma_get_local_addr(l->listener));
	cm_make_qp(&l->client);
	return l;
}

struct cm_link *cm_link_init(void)
{
	struct sockaddr_in addr = cm_addr(0);

	return link_init_at((struct sockaddr *)&addr);
}

struct cm_seen cm_request(struct cm_link *l, const void *data, uint8_t len)
{
	struct rdma_conn_param param = cm_param(data, len);
	struct cm_seen seen;

	assert_int_equal(rdma_connect(l->client.id, &param), 0);
	seen = cm_expect(l->server.channel, RDMA_CM_EVENT_CONNECT_REQUEST);
	assert_ptr_equal(seen.listen_id, l->listener);
	l->server.id = seen.id;
	cm_keep_id(seen.id);
	return seen;
}

void cm_accept(struct cm_link *l, const void *data, uint8_t len)
{
	struct rdma_conn_param param = cm_param(data, len);

	assert_int_equal(rdma_accept(l->server.id, &param), 0);
}

void cm_established(struct cm_link *l)
{
	struct cm_seen seen;

	cm_expect(l->client.channel, RDMA_CM_EVENT_ESTABLISHED);
	seen = cm_expect(l->server.channel, RDMA_CM_EVENT_ESTABLISHED);
	assert_ptr_equal(seen.id, l->server.id);
}

struct cm_link *cm_link_new_at(struct sockaddr *addr)
{
	struct cm_link *l = link_init_at(addr);

	cm_request(l, NULL, 0);
	cm_make_qp(&l->server);
	cm_accept(l, NULL, 0);
	cm_established(l);
	return l;
}

struct cm_link *cm_link_new(void)
{
	struct sockaddr_in addr = cm_addr(0);

	return cm_link_new_at((struct sockaddr *)&addr);
}

void cm_hang_up(struct cm_link *l)
{
	assert_int_equal(rdma_disconnect(l->client.id), 0);
	cm_expect(l->server.channel, RDMA_CM_EVENT_DISCONNECTED);
	/* the answer, without which the client may wait for its time-out */
	assert_int_equal(rdma_disconnect(l->server.id), 0);
	cm_expect(l->client.channel, RDMA_CM_EVENT_DISCONNECTED);
}

void cm_post_recv(const struct cm_end *end, uint64_t id)
{
	struct ibv_sge sge = {(uintptr_t)end->mr->addr, 64, end->mr->lkey};
	struct ibv_recv_wr wr = {.wr_id = id, .sg_list = &sge, .num_sge = 1};
	struct ibv_recv_wr *bad;

	assert_int_equal(ibv_post_recv(end->id->qp, &wr, &bad), 0);
}

void cm_post_send(const struct cm_end *end, uint64_t id)
{
	struct ibv_sge sge = {(uintptr_t)end->mr->addr + 64, 8, end->mr->lkey};
	struct ibv_send_wr wr = {.wr_id = id,
				 .sg_list = &sge,
				 .num_sge = 1,
				 .opcode = IBV_WR_SEND,
				 .send_flags = IBV_SEND_SIGNALED};
	struct ibv_send_wr *bad;

	assert_int_equal(ibv_post_send(end->id->qp, &wr, &bad), 0);
}

static void check_direction(const struct cm_end *from, const struct cm_end *to)
{
	cm_post_recv(to, 801);
	cm_post_send(from, 802);
	fx_expect(to->cq, 801, IBV_WC_SUCCESS);
	fx_expect(from->cq, 802, IBV_WC_SUCCESS);
}

void cm_check(struct cm_link *l)
{
	check_direction(&l->client, &l->server);
	check_direction(&l->server, &l->client);
}
