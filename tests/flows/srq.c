/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * The additions of node 1.4 to shared receive queues, on a device: receives of
 * several pieces, and the event when few receives are left.
 */

#include <infiniband/verbs.h>
#include <string.h>

#include "pair.h"

#define ALWAYS RPMA_F_COMPLETION_ALWAYS
#define PIECES 2

static struct ibv_context *the_context(void)
{
	struct ibv_context *ctx = NULL;

	ok(rpma_peer_get_ibv_context(the_peer, &ctx));
	return ctx;
}

/* A pair whose server receives from an SRQ, into its own CQ. */
static void open_srq(struct pair *pair, struct rpma_srq **srq)
{
	struct rpma_srq_cfg *srq_cfg = NULL;
	struct rpma_conn_cfg *cfg = NULL;
	struct pair_how how = {0};

	ok(rpma_srq_cfg_new(&srq_cfg));
	ok(rpma_srq_cfg_set_max_sge(srq_cfg, PIECES));
	ok(rpma_srq_cfg_set_rcq_size(srq_cfg, 0));
	ok(rpma_srq_new(the_peer, srq_cfg, srq));
	ok(rpma_srq_cfg_delete(&srq_cfg));
	ok(rpma_conn_cfg_new(&cfg));
	ok(rpma_conn_cfg_set_srq(cfg, *srq));
	how.server_cfg = cfg;
	pair_open_how(pair, &how);
	ok(rpma_conn_cfg_delete(&cfg));
}

static void close_srq(struct pair *pair, struct rpma_srq **srq)
{
	pair_close(pair);
	ok(rpma_srq_delete(srq));
}

TEST(post_recv__of_pieces)
{
	struct rpma_recv_wr *bad = NULL;
	struct rpma_recv_wr wr[2];
	struct rpma_sge list[PIECES];
	struct ibv_sge sge[2][PIECES];
	struct rpma_srq *srq = NULL;
	struct pair pair;
	int i;

	open_srq(&pair, &srq);
	for (i = 0; i < 2; i++) {
		size_t at = (size_t)i * 1024;

		list[0] = (struct rpma_sge){pair.server.mr, at + 512, 4};
		list[1] = (struct rpma_sge){pair.server.mr, at, 100};
		ok(rpma_wr_recv(NULL, 0, 0, (uint64_t)i, &wr[i]));
		ok(rpma_wr_recv_set_sge_list(list, PIECES, sge[i], &wr[i]));
	}
	wr[0].wr.next = &wr[1].wr;
	ok(rpma_srq_post_recv(srq, wr, &bad));
	for (i = 0; i < 2; i++) {
		const char *at = pair.server.mem + (size_t)i * 1024;

		memcpy(pair.client.mem, "headpayload", 11);
		ok(rpma_send(pair.client.conn, pair.client.mr, 0, 11, ALWAYS,
			     (void *)7));
		expect_done(&pair.client, 7, IBV_WC_SEND);
		expect_done(&pair.server, (uint64_t)i, IBV_WC_RECV);
		assert_memory_equal(at + 512, "head", 4);
		assert_memory_equal(at, "payload", 7);
	}
	close_srq(&pair, &srq);
}

/* More than any device grants, when it is made and when it is posted to. */
TEST(too_many_pieces__INVAL)
{
	enum { TOO_MANY = 1024 };
	static struct rpma_sge list[TOO_MANY];
	static struct ibv_sge sge[TOO_MANY];
	struct rpma_srq_cfg *cfg = NULL;
	struct rpma_recv_wr *bad = NULL;
	struct rpma_srq *none = NULL;
	struct rpma_srq *srq = NULL;
	struct rpma_recv_wr wr;
	struct pair pair;
	int i;

	ok(rpma_srq_cfg_new(&cfg));
	ok(rpma_srq_cfg_set_max_sge(cfg, TOO_MANY));
	assert_int_equal(rpma_srq_new(the_peer, cfg, &none), RPMA_E_INVAL);
	assert_null(none);
	ok(rpma_srq_cfg_delete(&cfg));

	open_srq(&pair, &srq);
	for (i = 0; i < TOO_MANY; i++)
		list[i] = (struct rpma_sge){pair.server.mr, 0, 1};
	ok(rpma_wr_recv(NULL, 0, 0, 1, &wr));
	ok(rpma_wr_recv_set_sge_list(list, TOO_MANY, sge, &wr));
	assert_int_equal(rpma_srq_post_recv(srq, &wr, &bad), RPMA_E_INVAL);
	assert_ptr_equal(bad, &wr);
	close_srq(&pair, &srq);
}

/* As many as the device has, which its peer knows. */
TEST(new__as_many_pieces_as_the_device_has)
{
	struct ibv_device_attr attr;
	struct rpma_srq_cfg *cfg = NULL;
	struct rpma_srq *srq = NULL;

	ok(ibv_query_device(the_context(), &attr));
	ok(rpma_srq_cfg_new(&cfg));
	ok(rpma_srq_cfg_set_max_sge(cfg, (uint32_t)attr.max_srq_sge));
	ok(rpma_srq_new(the_peer, cfg, &srq));
	ok(rpma_srq_delete(&srq));
	ok(rpma_srq_cfg_set_max_sge(cfg, (uint32_t)attr.max_srq_sge + 1));
	assert_int_equal(rpma_srq_new(the_peer, cfg, &srq), RPMA_E_INVAL);
	ok(rpma_srq_cfg_delete(&cfg));
}

static void send_to_server(struct pair *pair, int count)
{
	int i;

	for (i = 0; i < count; i++) {
		ok(rpma_send(pair->client.conn, NULL, 0, 0, ALWAYS, (void *)7));
		expect_done(&pair->client, 7, IBV_WC_SEND);
		expect_done(&pair->server, 1, IBV_WC_RECV);
	}
}

/* Waits for the event; it has to be this SRQ's. */
static void expect_limit(const struct rpma_srq *srq)
{
	struct ibv_async_event event;
	struct ibv_srq *ibv_srq = NULL;

	ok(rpma_srq_get_ibv_srq(srq, &ibv_srq));
	do {
		ok(ibv_get_async_event(the_context(), &event));
		ibv_ack_async_event(&event);
	} while (event.event_type != IBV_EVENT_SRQ_LIMIT_REACHED);
	assert_ptr_equal(event.element.srq, ibv_srq);
}

TEST(limit__EVENT_ONCE_UNTIL_SET_AGAIN)
{
	struct rpma_srq *srq = NULL;
	struct pair pair;
	int i;

	open_srq(&pair, &srq);
	for (i = 0; i < 8; i++)
		ok(rpma_srq_recv(srq, NULL, 0, 0, (void *)1));
	ok(rpma_srq_set_limit(srq, 4));
	send_to_server(&pair, 6); /* 2 are left */
	expect_limit(srq);
	send_to_server(&pair, 1);
	for (i = 0; i < 3; i++)
		ok(rpma_srq_recv(srq, NULL, 0, 0, (void *)1));
	ok(rpma_srq_set_limit(srq, 3));
	send_to_server(&pair, 2);
	expect_limit(srq);
	assert_int_equal(rpma_srq_set_limit(srq, UINT32_MAX), RPMA_E_INVAL);
	/* 0: none any more */
	ok(rpma_srq_set_limit(srq, 2));
	ok(rpma_srq_set_limit(srq, 0));
	send_to_server(&pair, 2);
	assert_false(is_readable(the_context()->async_fd));
	close_srq(&pair, &srq);
}

PAIR_MAIN()
