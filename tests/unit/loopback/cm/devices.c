/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * devices.c -- two devices in one process: which of them an address leads to,
 * and a connection from one to the other.
 */

#include "fixture.h"

#include <string.h>

/* The device of an identifier that is bound to ip. */
static struct ibv_device *device_of(const char *ip)
{
	struct rdma_event_channel *ch = new_channel();
	struct rdma_cm_id *id = new_id(ch);
	struct sockaddr_in addr = v4(ip, 0);
	struct ibv_device *device;

	assert_int_equal(rdma_bind_addr(id, SA(addr)), 0);
	assert_non_null(id->verbs);
	device = id->verbs->device;
	assert_int_equal(rdma_destroy_id(id), 0);
	rdma_destroy_event_channel(ch);
	return device;
}

/* bind: the third number of an address 127.a.b.c, modulo two */
TEST_WITH(bind__address_CHOOSES_THE_DEVICE, reset, reset)
{
	struct ibv_device **list;
	int n;

	list = ibv_get_device_list(&n);
	assert_non_null(list);
	assert_int_equal(n, 2);
	assert_ptr_equal(device_of("127.0.0.1"), list[0]);
	assert_ptr_equal(device_of("127.0.1.1"), list[1]);
	assert_ptr_equal(device_of("127.0.2.1"), list[0]);
	assert_ptr_equal(device_of("127.1.1.5"), list[1]);
	ibv_free_device_list(list);
}

/* devices: each is known by a name, a GUID and a GID of its own */
TEST_WITH(devices__names_and_gids_DIFFER, reset, reset)
{
	struct ibv_context **list;
	struct ibv_device *a, *b;
	union ibv_gid gids[2];
	int n;

	list = rdma_get_devices(&n);
	assert_non_null(list);
	assert_int_equal(n, 2);
	a = list[0]->device;
	b = list[1]->device;
	assert_string_not_equal(ibv_get_device_name(a), ibv_get_device_name(b));
	assert_true(ibv_get_device_guid(a) != ibv_get_device_guid(b));
	assert_int_equal(ibv_query_gid(list[0], 1, 0, &gids[0]), 0);
	assert_int_equal(ibv_query_gid(list[1], 1, 0, &gids[1]), 0);
	assert_memory_not_equal(&gids[0], &gids[1], sizeof(gids[0]));
	rdma_free_devices(list);
}

/* The client of p is replaced by one on the second device. */
static void move_client(struct pair *p)
{
	struct sockaddr_in src = v4("127.0.1.1", 0);
	struct sockaddr_in dst = v4("127.0.0.1", port_of(p->listener));

	drop_qp(p->client, p->ccq);
	assert_int_equal(rdma_destroy_id(p->client), 0);
	p->client = new_id(p->cch);
	assert_int_equal(
		rdma_resolve_addr(p->client, SA(src), SA(dst), TIMEOUT_MS), 0);
	take_event(p->cch, RDMA_CM_EVENT_ADDR_RESOLVED);
	assert_int_equal(rdma_resolve_route(p->client, TIMEOUT_MS), 0);
	take_event(p->cch, RDMA_CM_EVENT_ROUTE_RESOLVED);
	p->ccq = add_qp(p->client);
}

static void accept_client(struct pair *p)
{
	struct rdma_cm_event *event;

	assert_int_equal(rdma_connect(p->client, NULL), 0);
	event = next_event(p->lch, RDMA_CM_EVENT_CONNECT_REQUEST);
	p->server = event->id;
	assert_int_equal(rdma_ack_cm_event(event), 0);
	p->scq = add_qp(p->server);
	assert_int_equal(rdma_accept(p->server, NULL), 0);
	take_event(p->cch, RDMA_CM_EVENT_ESTABLISHED);
	take_event(p->lch, RDMA_CM_EVENT_ESTABLISHED);
}

static struct ibv_wc wait_wc(struct ibv_cq *cq)
{
	struct ibv_wc wc;
	int n;

	while ((n = ibv_poll_cq(cq, 1, &wc)) == 0)
		;
	assert_int_equal(n, 1);
	return wc;
}

/* connect: devices reach each other, as on one network */
PAIR_TEST(connect__to_the_other_device_MESSAGE_ARRIVES)
{
	struct ibv_send_wr send = {
		.opcode = IBV_WR_SEND_WITH_IMM,
		.send_flags = IBV_SEND_SIGNALED,
		.imm_data = 7,
	};
	struct ibv_recv_wr recv = {.wr_id = 1};
	struct ibv_send_wr *bad;
	struct ibv_recv_wr *bad_recv;
	struct ibv_wc wc;

	move_client(p);
	accept_client(p);
	assert_ptr_not_equal(p->client->verbs->device,
			     p->server->verbs->device);
	assert_int_equal(ibv_post_recv(p->server->qp, &recv, &bad_recv), 0);
	assert_int_equal(ibv_post_send(p->client->qp, &send, &bad), 0);
	assert_int_equal(wait_wc(p->ccq).status, IBV_WC_SUCCESS);
	wc = wait_wc(p->scq);
	assert_int_equal(wc.status, IBV_WC_SUCCESS);
	assert_int_equal(wc.imm_data, 7);
}

TEST_MAIN()
