/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * Datagrams by rdma_cm: a client that asks a server for its queue pair gets
 * what it needs to send to it, or hears why not; and multicast groups that an
 * id joins and leaves.
 */

#include <arpa/inet.h>
#include <errno.h>
#include <string.h>
#include <unistd.h>
#include "cm.h"

#define RESOLVE_MS 60000
#define REQ_DATA   180 /* bytes of private data */
#define REP_DATA   136
#define GRH	   40
#define GROUP_QPN  0xffffffu

/* Why a request is refused: the status of UNREACHABLE. */
enum {
	NO_LISTENER = 1,
	REJECTED = 2,
};

static struct rdma_cm_id *ud_id(struct rdma_event_channel *channel)
{
	struct rdma_cm_id *id;
	int ret = rdma_create_id(channel, &id, NULL, RDMA_PS_UDP);

	fx_need(!ret || errno != EOPNOTSUPP, "rdma_cm has no datagrams");
	assert_int_equal(ret, 0);
	cm_keep_id(id);
	assert_int_equal(id->qp_type, IBV_QPT_UD);
	return id;
}

static void bind_id(struct rdma_cm_id *id)
{
	struct sockaddr_in addr = cm_addr(0);

	assert_int_equal(rdma_bind_addr(id, (struct sockaddr *)&addr), 0);
}

/* An end; bound to the device, with a QP. */
static struct cm_end *end_new(void)
{
	struct cm_end *end = fx_alloc(sizeof(*end));

	end->channel = cm_channel();
	end->id = ud_id(end->channel);
	return end;
}

static struct cm_end *end_open(void)
{
	struct cm_end *end = end_new();

	bind_id(end->id);
	cm_make_qp(end);
	return end;
}

/* A listener, and a client resolved, with a QP. */
static struct cm_link *link_init(void)
{
	struct cm_link *l = fx_alloc(sizeof(*l));

	l->server.channel = cm_channel();
	l->client.channel = cm_channel();
	l->listener = ud_id(l->server.channel);
	bind_id(l->listener);
	assert_int_equal(rdma_listen(l->listener, 8), 0);
	l->client.id = ud_id(l->client.channel);
	cm_resolve(l->client.id, cm_port(l->listener));
	cm_make_qp(&l->client);
	return l;
}

static int undo_ah(void *p)
{
	return ibv_destroy_ah(p);
}

/* A datagram to where an event says; it leaves no completion. */
static void mail(const struct cm_end *from, const struct cm_seen *to,
		 uint64_t id)
{
	struct ibv_ah_attr attr = to->ud.ah_attr;
	struct ibv_ah *ah = ibv_create_ah(from->pd, &attr);
	struct ibv_sge sge = {(uintptr_t)from->mr->addr + 1024, 8,
			      from->mr->lkey};
	struct ibv_send_wr *bad, wr = {
					 .wr_id = id,
					 .sg_list = &sge,
					 .num_sge = 1,
					 .opcode = IBV_WR_SEND_WITH_IMM,
					 .imm_data = htonl((uint32_t)id),
				 };

	assert_non_null(ah);
	fx_keep(ah, undo_ah);
	wr.wr.ud.ah = ah;
	wr.wr.ud.remote_qpn = to->ud.qp_num;
	wr.wr.ud.remote_qkey = to->ud.qkey;
	assert_int_equal(ibv_post_send(from->id->qp, &wr, &bad), 0);
}

static void gets(const struct cm_end *end, uint64_t id, uint32_t imm)
{
	struct ibv_wc wc = fx_expect(end->cq, id, IBV_WC_SUCCESS);

	assert_int_equal(wc.byte_len, GRH + 8);
	assert_int_equal(ntohl(wc.imm_data), imm);
}

FX_TEST(create_qp__is_ready_to_send)
{
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr;
	struct cm_end *end = end_open();

	assert_int_equal(ibv_query_qp(end->id->qp, &attr,
				      IBV_QP_STATE | IBV_QP_QKEY, &init),
			 0);
	assert_int_equal(attr.qp_state, IBV_QPS_RTS);
	assert_int_equal(attr.qkey, RDMA_UDP_QKEY);
}

FX_TEST(connect__tells_where_to_send)
{
	struct rdma_conn_param param;
	struct cm_link *l = link_init();
	struct cm_seen seen;

	seen = cm_request(l, "from here", 10);
	assert_int_equal(seen.ud.private_data_len, REQ_DATA);
	assert_string_equal((char *)seen.data, "from here");
	assert_int_equal(l->server.id->qp_type, IBV_QPT_UD);
	cm_make_qp(&l->server);
	param = cm_param("to there", 9);
	assert_int_equal(rdma_accept(l->server.id, &param), 0);
	seen = cm_expect(l->client.channel, RDMA_CM_EVENT_ESTABLISHED);
	assert_int_equal(seen.status, 0);
	assert_int_equal(seen.ud.private_data_len, REP_DATA);
	assert_string_equal((char *)seen.data, "to there");
	assert_int_equal(seen.ud.qp_num, l->server.id->qp->qp_num);
	assert_int_equal(seen.ud.qkey, RDMA_UDP_QKEY);
	assert_int_equal(seen.ud.ah_attr.is_global, 1);
	assert_int_equal(seen.ud.ah_attr.port_num, 1);
	assert_memory_equal(&seen.ud.ah_attr.grh.dgid, &dut.gid, 16);
	cm_post_recv(&l->server, 1);
	mail(&l->client, &seen, 2);
	gets(&l->server, 1, 2);
	/* there is nothing to keep up or to end */
	assert_int_equal(rdma_disconnect(l->client.id), 0);
	assert_false(fx_readable(l->server.channel->fd));
	assert_false(fx_readable(l->client.channel->fd));
}

FX_TEST(connect__reject_UNREACHABLE)
{
	struct cm_link *l = link_init();
	struct cm_seen seen;

	cm_request(l, NULL, 0);
	assert_int_equal(rdma_reject(l->server.id, "no", 3), 0);
	seen = cm_expect(l->client.channel, RDMA_CM_EVENT_UNREACHABLE);
	assert_int_equal(seen.status, REJECTED);
	assert_string_equal((char *)seen.data, "no");
}

FX_TEST(connect__nobody_listens_UNREACHABLE)
{
	struct cm_link *l = link_init();
	struct rdma_conn_param param = cm_param(NULL, 0);

	assert_int_equal(fx_destroy(l->listener), 0);
	assert_int_equal(rdma_connect(l->client.id, &param), 0);
	assert_int_equal(
		cm_expect(l->client.channel, RDMA_CM_EVENT_UNREACHABLE).status,
		NO_LISTENER);
}

FX_TEST(connect__listener_destroyed_UNREACHABLE)
{
	struct cm_link *l = link_init();
	struct rdma_conn_param param = cm_param(NULL, 0);

	assert_int_equal(rdma_connect(l->client.id, &param), 0);
	fx_wait_readable(l->server.channel->fd, "the request");
	assert_int_equal(fx_destroy(l->listener), 0);
	assert_int_equal(
		cm_expect(l->client.channel, RDMA_CM_EVENT_UNREACHABLE).status,
		REJECTED);
}

/* The server is not told that its client has gone. */
FX_TEST(accept__client_gone_succeeds)
{
	struct cm_link *l = link_init();
	struct rdma_conn_param param = cm_param(NULL, 0);

	cm_request(l, NULL, 0);
	cm_destroy(&l->client);
	cm_make_qp(&l->server);
	assert_int_equal(rdma_accept(l->server.id, &param), 0);
	assert_false(fx_readable(l->server.channel->fd));
}

FX_TEST(private_data__too_long_EINVAL)
{
	static const uint8_t data[REQ_DATA + 1];
	struct cm_link *l = link_init();
	struct rdma_conn_param param = cm_param(data, REQ_DATA + 1);

	assert_int_equal(rdma_connect(l->client.id, &param), -1);
	assert_int_equal(errno, EINVAL);
	cm_request(l, data, REQ_DATA);
}

FX_TEST(port_spaces__have_their_own_ports)
{
	struct rdma_cm_id *tcp = cm_listen(cm_channel());
	struct rdma_cm_id *udp = ud_id(cm_channel());
	struct sockaddr_in addr = cm_addr(cm_port(tcp));

	assert_int_equal(rdma_bind_addr(udp, (struct sockaddr *)&addr), 0);
	assert_int_equal(rdma_listen(udp, 1), 0);
}

/* --- multicast */

/* One of 16 that no other process has at the same time, as good as surely. */
static struct sockaddr_in group(uint8_t n)
{
	struct sockaddr_in addr = {.sin_family = AF_INET};
	uint32_t own = ((uint32_t)getpid() & 0x7ffff) << 4;

	addr.sin_addr.s_addr = htonl(0xef800000u | own | n);
	return addr;
}

static int join(struct rdma_cm_id *id, struct sockaddr_in addr, void *context)
{
	return rdma_join_multicast(id, (struct sockaddr *)&addr, context);
}

static int leave(struct rdma_cm_id *id, struct sockaddr_in addr)
{
	return rdma_leave_multicast(id, (struct sockaddr *)&addr);
}

static struct cm_seen joined(const struct cm_end *end, struct sockaddr_in addr)
{
	assert_int_equal(join(end->id, addr, NULL), 0);
	return cm_expect(end->channel, RDMA_CM_EVENT_MULTICAST_JOIN);
}

FX_TEST(join__tells_where_to_send)
{
	const struct sockaddr_in addr = group(1);
	union ibv_gid gid = {.raw = {[10] = 0xff, 0xff}};
	struct rdma_cm_event *event;
	struct cm_end *end = end_open();
	int context;

	memcpy(gid.raw + 12, &addr.sin_addr, 4);
	assert_int_equal(join(end->id, addr, &context), 0);
	assert_int_equal(rdma_get_cm_event(end->channel, &event), 0);
	assert_int_equal(event->event, RDMA_CM_EVENT_MULTICAST_JOIN);
	assert_int_equal(event->status, 0);
	assert_ptr_equal(event->id, end->id);
	assert_ptr_equal(event->param.ud.private_data, &context);
	assert_int_equal(event->param.ud.qp_num, GROUP_QPN);
	assert_int_equal(event->param.ud.qkey, RDMA_UDP_QKEY);
	assert_int_equal(event->param.ud.ah_attr.is_global, 1);
	assert_memory_equal(&event->param.ud.ah_attr.grh.dgid, &gid, 16);
	assert_int_equal(event->param.ud.ah_attr.grh.sgid_index, dut.gid_index);
	assert_int_equal(rdma_ack_cm_event(event), 0);
	assert_int_equal(leave(end->id, addr), 0);
}

FX_TEST(join__members_get_what_is_sent)
{
	const struct sockaddr_in addr = group(2);
	struct cm_seen seen;
	struct cm_end *a = end_open();
	struct cm_end *b = end_open();

	joined(a, addr);
	seen = joined(b, addr);
	cm_post_recv(a, 1);
	cm_post_recv(b, 2);
	mail(b, &seen, 7);
	gets(a, 1, 7);
	gets(b, 2, 7);
	assert_int_equal(leave(a->id, addr), 0);
	assert_int_equal(leave(b->id, addr), 0);
}

FX_TEST(leave__ends_it)
{
	const struct sockaddr_in addr = group(3);
	struct cm_end *a = end_open();
	struct cm_end *b = end_open();
	struct cm_seen seen;

	joined(a, addr);
	seen = joined(b, addr);
	assert_int_equal(leave(a->id, addr), 0);
	assert_int_equal(leave(a->id, addr), -1);
	assert_int_equal(errno, EADDRNOTAVAIL);
	cm_post_recv(a, 1);
	cm_post_recv(b, 2);
	mail(b, &seen, 7);
	gets(b, 2, 7);
	fx_expect_empty(a->cq);
	assert_int_equal(leave(b->id, addr), 0);
}

FX_TEST(leave__before_the_event_is_read)
{
	const struct sockaddr_in addr = group(4);
	struct cm_end *end = end_open();

	assert_int_equal(join(end->id, addr, NULL), 0);
	fx_wait_readable(end->channel->fd, "MULTICAST_JOIN");
	assert_int_equal(leave(end->id, addr), 0);
	assert_false(fx_readable(end->channel->fd));
}

FX_TEST(join__what_cannot)
{
	struct rdma_cm_id *tcp = cm_id(cm_channel());
	struct cm_end *end = end_new();

	assert_int_equal(join(end->id, group(5), NULL), -1);
	assert_int_equal(errno, EINVAL);
	bind_id(tcp);
	assert_int_equal(join(tcp, group(5), NULL), -1);
	assert_int_equal(errno, EINVAL);
}

FX_TEST(join__not_a_group_MULTICAST_ERROR)
{
	struct cm_end *end = end_open();
	struct cm_seen seen;

	assert_int_equal(join(end->id, cm_addr(0), NULL), 0);
	seen = cm_expect(end->channel, RDMA_CM_EVENT_MULTICAST_ERROR);
	assert_int_not_equal(seen.status, 0);
}

FX_TEST(join__without_a_qp)
{
	struct cm_end *end = end_new();

	bind_id(end->id);
	joined(end, group(6));
	assert_int_equal(leave(end->id, group(6)), 0);
}

FX_TEST(join__by_an_address_resolved)
{
	struct sockaddr_in src = cm_addr(0);
	struct sockaddr_in addr = group(7);
	struct cm_end *end = end_new();

	assert_int_equal(rdma_resolve_addr(end->id, (struct sockaddr *)&src,
					   (struct sockaddr *)&addr,
					   RESOLVE_MS),
			 0);
	cm_expect(end->channel, RDMA_CM_EVENT_ADDR_RESOLVED);
	cm_make_qp(end);
	joined(end, addr);
	assert_int_equal(leave(end->id, addr), 0);
}

FX_MAIN("cm_ud")
