/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * Configurations that make no connection, on a device: objects of another
 * device, or of a second context where there is only one device;
 * contradictions. And the connection of a CQ on a channel. The loopback device
 * has two devices here. In the virtual machine the other end of the link of the
 * device gets a second device, while the test runs.
 */

#include <infiniband/verbs.h>
#include <rdma/rdma_cma.h>
#include <stdio.h>
#include <stdlib.h>

#include "pair.h"

static struct ibv_context *open_another(void)
{
	struct ibv_context *mine = NULL;
	struct ibv_context *another;
	struct ibv_device **list;
	struct ibv_device *chosen;
	int count = 0;
	int i;

	ok(rpma_peer_get_ibv_context(the_peer, &mine));
	list = ibv_get_device_list(&count);
	assert_non_null(list);
	if (getenv("RPMA_TEST_VM") || getenv("RPMA_LOOPBACK_DEVICES"))
		assert_int_equal(count, 2);
	chosen = list[0];
	for (i = 0; i < count; i++) {
		if (list[i] != mine->device)
			chosen = list[i];
	}
	another = ibv_open_device(chosen);
	assert_non_null(another);
	ibv_free_device_list(list);
	return another;
}

/* Both sides refuse; a passive request refuses the other side. */
static void refuse(const struct rpma_conn_cfg *cfg)
{
	struct rpma_conn_req *req = NULL;
	struct rpma_conn *conn = NULL;
	struct rpma_ep *ep;
	char port[8];

	ep = pair_listen(port);
	assert_int_equal(rpma_conn_req_new(the_peer, the_addr, port, cfg, &req),
			 RPMA_E_INVAL);
	assert_null(req);
	ok(rpma_conn_req_new(the_peer, the_addr, port, NULL, &req));
	ok(rpma_conn_req_connect(&req, NULL, &conn));
	assert_int_equal(rpma_ep_next_conn_req(ep, cfg, &req), RPMA_E_INVAL);
	assert_null(req);
	expect_event(conn, RPMA_CONN_REJECTED);
	ok(rpma_conn_delete(&conn));
	ok(rpma_ep_shutdown(&ep));
}

TEST(conn_req__of_another_device_INVAL)
{
	struct ibv_context *another = open_another();
	struct rpma_channel *channel = NULL;
	struct rpma_conn_cfg *cfg = NULL;
	struct rpma_peer *peer = NULL;
	struct rpma_srq *srq = NULL;
	struct rpma_cq *cq = NULL;

	ok(rpma_peer_new(another, &peer));
	ok(rpma_channel_new(another, &channel));
	ok(rpma_cq_new(another, 4, NULL, 0, NULL, &cq));
	ok(rpma_srq_new(peer, NULL, &srq));

	ok(rpma_conn_cfg_new(&cfg));
	ok(rpma_conn_cfg_set_cq(cfg, cq));
	refuse(cfg);
	ok(rpma_conn_cfg_set_cq(cfg, NULL));
	ok(rpma_conn_cfg_set_rcq(cfg, cq));
	refuse(cfg);
	ok(rpma_conn_cfg_set_rcq(cfg, NULL));
	ok(rpma_conn_cfg_set_channel(cfg, channel));
	refuse(cfg);
	ok(rpma_conn_cfg_set_channel(cfg, NULL));
	ok(rpma_conn_cfg_set_srq(cfg, srq));
	refuse(cfg);
	ok(rpma_conn_cfg_delete(&cfg));

	ok(rpma_srq_delete(&srq));
	ok(rpma_cq_delete(&cq));
	ok(rpma_channel_delete(&channel));
	ok(rpma_peer_delete(&peer));
	ok(ibv_close_device(another));
}

TEST(srq_new__of_another_device_INVAL)
{
	struct ibv_context *another = open_another();
	struct rpma_srq_cfg *cfg = NULL;
	struct rpma_srq *srq = NULL;
	struct rpma_cq *cq = NULL;

	ok(rpma_cq_new(another, 4, NULL, 0, NULL, &cq));
	ok(rpma_srq_cfg_new(&cfg));
	ok(rpma_srq_cfg_set_rcq(cfg, cq));
	assert_int_equal(rpma_srq_new(the_peer, cfg, &srq), RPMA_E_INVAL);
	assert_null(srq);
	ok(rpma_srq_cfg_delete(&cfg));
	ok(rpma_cq_delete(&cq));
	ok(ibv_close_device(another));
}

/* A CQ of verbs whose context is a number, and a CQ whose context is NULL. */
TEST(cq_from_ibv_cq__strangers_INVAL)
{
	struct ibv_context *mine = NULL;
	struct rpma_cq *cq = NULL;
	struct ibv_cq *strange;
	struct pair pair;
	struct ibv_cq *ibv_cq = NULL;

	ok(rpma_peer_get_ibv_context(the_peer, &mine));
	strange = ibv_create_cq(mine, 4, (void *)7, NULL, 0);
	assert_non_null(strange);
	assert_int_equal(rpma_cq_from_ibv_cq(strange, &cq), RPMA_E_INVAL);
	ok(ibv_destroy_cq(strange));
	strange = ibv_create_cq(mine, 4, NULL, NULL, 0);
	assert_non_null(strange);
	assert_int_equal(rpma_cq_from_ibv_cq(strange, &cq), RPMA_E_INVAL);
	ok(ibv_destroy_cq(strange));
	assert_null(cq);

	/* and the CQ of a plain connection is found */
	pair_open(&pair);
	ok(rpma_cq_get_ibv_cq(cq_of(&pair.client), &ibv_cq));
	ok(rpma_cq_from_ibv_cq(ibv_cq, &cq));
	assert_ptr_equal(cq, cq_of(&pair.client));
	pair_close(&pair);
}

static void expect_refused(const struct rpma_conn_cfg *cfg)
{
	struct rpma_conn_req *req = NULL;

	assert_int_equal(
		rpma_conn_req_new(the_peer, the_addr, "7204", cfg, &req),
		RPMA_E_INVAL);
	assert_null(req);
}

TEST(conn_req__contradictions_INVAL)
{
	struct rpma_channel *channel = NULL;
	struct rpma_conn_cfg *cfg = NULL;
	struct ibv_context *ctx = NULL;
	struct rpma_cq *cq = NULL;

	ok(rpma_peer_get_ibv_context(the_peer, &ctx));
	ok(rpma_channel_new(ctx, &channel));
	ok(rpma_cq_new(ctx, 4, NULL, 0, NULL, &cq));
	ok(rpma_conn_cfg_new(&cfg));

	/* an RCQ, and the size of another */
	ok(rpma_conn_cfg_set_rcq(cfg, cq));
	ok(rpma_conn_cfg_set_rcq_size(cfg, 4));
	expect_refused(cfg);
	ok(rpma_conn_cfg_set_rcq(cfg, NULL));
	ok(rpma_conn_cfg_set_rcq_size(cfg, 0));

	/* a channel without a CQ */
	ok(rpma_conn_cfg_set_cq(cfg, cq));
	ok(rpma_conn_cfg_set_channel(cfg, channel));
	expect_refused(cfg);
	ok(rpma_conn_cfg_set_cq(cfg, NULL));
	ok(rpma_conn_cfg_set_channel(cfg, NULL));

	/* a vector beyond the device */
	ok(rpma_conn_cfg_set_comp_vector(cfg, ctx->num_comp_vectors));
	expect_refused(cfg);

	ok(rpma_conn_cfg_delete(&cfg));
	ok(rpma_cq_delete(&cq));
	ok(rpma_channel_delete(&channel));
}

/* A reader of a channel of many connections gets the CQ's connection. */
TEST(channel__cqs_CARRY_THE_CONTEXT)
{
	struct rpma_cm_channel *cm_channel = NULL;
	struct rpma_channel *channel = NULL;
	struct rpma_conn_cfg *cfg = NULL;
	struct rpma_conn_req *req = NULL;
	struct rpma_cm_event event;
	struct ibv_context *ctx = NULL;
	struct rpma_ep *ep = NULL;
	struct rpma_conn *conn = NULL;
	struct rpma_conn *server = NULL;
	struct rpma_cq *cq = NULL;
	void *context = NULL;
	uint16_t number = 0;
	char port[8];
	int me;

	ok(rpma_peer_get_ibv_context(the_peer, &ctx));
	ok(rpma_channel_new(ctx, &channel));
	ok(rpma_cm_channel_new(&cm_channel));
	ok(rpma_conn_cfg_new(&cfg));
	ok(rpma_conn_cfg_set_channel(cfg, channel));
	ok(rpma_conn_cfg_set_rcq_size(cfg, 4));
	ok(rpma_ep_listen_ex(the_peer, the_addr, "0", 0, cm_channel, NULL,
			     &ep));
	ok(rpma_ep_get_port(ep, &number));
	snprintf(port, sizeof(port), "%u", number);
	ok(rpma_conn_req_new(the_peer, the_addr, port, NULL, &req));
	ok(rpma_conn_req_connect(&req, NULL, &conn));
	ok(rpma_cm_channel_get_event(cm_channel, &event));
	ok(rpma_conn_req_new_from_event(the_peer, &event, cfg, &me, &req));
	ok(rpma_cm_event_ack(&event));
	ok(rpma_conn_req_connect(&req, NULL, &server));

	ok(rpma_conn_get_cq(server, &cq));
	ok(rpma_cq_get_context(cq, &context));
	assert_ptr_equal(context, &me);
	ok(rpma_conn_get_rcq(server, &cq));
	ok(rpma_cq_get_context(cq, &context));
	assert_ptr_equal(context, &me);

	ok(rpma_conn_delete(&conn));
	ok(rpma_conn_delete(&server));
	ok(rpma_conn_cfg_delete(&cfg));
	ok(rpma_ep_shutdown(&ep));
	ok(rpma_cm_channel_delete(&cm_channel));
	ok(rpma_channel_delete(&channel));
}

/* The named NIC is taken; a missing NIC is an error. */
TEST(src_addr__BINDS)
{
	struct rpma_conn_cfg *cfg = NULL;
	struct pair_how how = {0};
	struct rpma_conn_req *req = NULL;
	struct rdma_cm_id *id = NULL;
	struct pair pair;

	ok(rpma_conn_cfg_new(&cfg));
	ok(rpma_conn_cfg_set_src_addr(cfg, the_addr));
	how.client_cfg = cfg;
	pair_open_how(&pair, &how);
	ok(rpma_conn_get_cm_id(pair.client.conn, &id));
	assert_memory_equal(rdma_get_local_addr(id), rdma_get_peer_addr(id), 2);
	pair_close(&pair);

	/* for documentation: no device has the address */
	ok(rpma_conn_cfg_set_src_addr(cfg, "203.0.113.77"));
	assert_int_equal(
		rpma_conn_req_new(the_peer, the_addr, "7204", cfg, &req),
		RPMA_E_PROVIDER);
	assert_null(req);
	ok(rpma_conn_cfg_delete(&cfg));
}

int main(void)
{
	const bool is_vm = getenv("RPMA_TEST_VM") != NULL;
	int ret;

	if (is_vm && system("rdma link add rxe1 type rxe netdev v1")) {
		printf("no second device could be made\n");
		return 1;
	}
	ret = pair_main("tests", tests_listed, tests_count);
	if (is_vm && system("rdma link delete rxe1"))
		return 1;
	return ret;
}
