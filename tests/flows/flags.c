/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * Operations that are inline, solicited or fenced, on a device: their effect on
 * the other side, and those that are refused.
 */

#include <string.h>

#include "pair.h"

#define ALWAYS	       RPMA_F_COMPLETION_ALWAYS
#define INLINE	       64 /* bytes that the connections take */
#define TOO_MANY_BYTES (1 << 20)

static void open_inline(struct pair *pair)
{
	struct rpma_conn_cfg *cfg = NULL;
	struct pair_how how = {0};

	ok(rpma_conn_cfg_new(&cfg));
	ok(rpma_conn_cfg_set_max_inline_data(cfg, INLINE));
	how.client_cfg = cfg;
	how.server_cfg = cfg;
	pair_open_how(pair, &how);
	ok(rpma_conn_cfg_delete(&cfg));
}

/* The region is the caller's again before the operation is complete. */
TEST(send__inline_BYTES_ARE_COPIED_AT_ONCE)
{
	struct pair pair;
	int i;

	open_inline(&pair);
	for (i = 0; i < 4; i++)
		ok(rpma_recv(pair.server.conn, pair.server.mr,
			     (size_t)i * INLINE, INLINE, (void *)1));
	for (i = 0; i < 4; i++) {
		memset(pair.client.mem, 'a' + i, INLINE);
		ok(rpma_send(pair.client.conn, pair.client.mr, 0, INLINE,
			     ALWAYS | RPMA_F_INLINE, (void *)2));
		memset(pair.client.mem, 'x', INLINE);
	}
	for (i = 0; i < 4; i++) {
		expect_done(&pair.client, 2, IBV_WC_SEND);
		expect_done(&pair.server, 1, IBV_WC_RECV);
		assert_int_equal(pair.server.mem[i * INLINE], 'a' + i);
		assert_int_equal(pair.server.mem[i * INLINE + INLINE - 1],
				 'a' + i);
	}
	pair_close(&pair);
}

TEST(write__inline_BYTES_ARE_COPIED_AT_ONCE)
{
	struct pair pair;

	open_inline(&pair);
	memset(pair.client.mem, 'w', INLINE);
	ok(rpma_write(pair.client.conn, pair.client.remote, 128, pair.client.mr,
		      0, INLINE, ALWAYS | RPMA_F_INLINE, (void *)3));
	memset(pair.client.mem, 'x', INLINE);
	expect_done(&pair.client, 3, IBV_WC_RDMA_WRITE);
	assert_int_equal(pair.server.mem[128], 'w');
	assert_int_equal(pair.server.mem[128 + INLINE - 1], 'w');
	/* no bytes are few enough, also of no region */
	ok(rpma_write(pair.client.conn, NULL, 0, NULL, 0, 0,
		      ALWAYS | RPMA_F_INLINE, (void *)4));
	expect_done(&pair.client, 4, IBV_WC_RDMA_WRITE);
	pair_close(&pair);
}

/* More than any device grants. The connection goes on. */
TEST(inline__too_many_bytes_INVAL)
{
	struct rpma_send_wr wr;
	struct pair pair;

	open_inline(&pair);
	assert_int_equal(rpma_send(pair.client.conn, pair.client.mr, 0,
				   TOO_MANY_BYTES, ALWAYS | RPMA_F_INLINE,
				   NULL),
			 RPMA_E_INVAL);
	assert_int_equal(rpma_wr_write(pair.client.conn, pair.client.remote, 0,
				       pair.client.mr, 0, TOO_MANY_BYTES,
				       ALWAYS | RPMA_F_INLINE, 1, &wr),
			 RPMA_E_INVAL);
	assert_int_equal(rpma_read(pair.client.conn, pair.client.mr, 0,
				   pair.client.remote, 0, 8,
				   ALWAYS | RPMA_F_INLINE, NULL),
			 RPMA_E_INVAL);
	assert_int_equal(rpma_write(pair.client.conn, pair.client.remote, 0,
				    pair.client.mr, 0, 8,
				    ALWAYS | RPMA_F_SOLICITED, NULL),
			 RPMA_E_INVAL);
	ok(rpma_write(pair.client.conn, pair.client.remote, 0, pair.client.mr,
		      0, 8, ALWAYS, (void *)5));
	expect_done(&pair.client, 5, IBV_WC_RDMA_WRITE);
	pair_close(&pair);
}

/* A pair whose server receives on a CQ of its own; it is not armed. */
static void open_solicited(struct pair *pair, struct rpma_channel **channel,
			   struct rpma_cq **rcq)
{
	struct rpma_conn_cfg *cfg = NULL;
	struct pair_how how = {0};
	struct ibv_context *ctx = NULL;

	ok(rpma_peer_get_ibv_context(the_peer, &ctx));
	ok(rpma_channel_new(ctx, channel));
	ok(rpma_cq_new(ctx, 8, *channel, 0, NULL, rcq));
	ok(rpma_conn_cfg_new(&cfg));
	ok(rpma_conn_cfg_set_rcq(cfg, *rcq));
	how.server_cfg = cfg;
	pair_open_how(pair, &how);
	ok(rpma_conn_cfg_delete(&cfg));
}

/* The server's next receive; polled, for there may be no event. */
static void poll_received(struct rpma_cq *rcq, uint64_t context)
{
	struct ibv_wc wc;
	int ret;

	do
		ret = rpma_cq_get_wc(rcq, 1, &wc, NULL);
	while (ret == RPMA_E_NO_COMPLETION);
	ok(ret);
	assert_int_equal(wc.status, IBV_WC_SUCCESS);
	assert_int_equal(wc.wr_id, context);
}

TEST(send__solicited_WAKES_WHO_WAITS_FOR_THOSE)
{
	struct rpma_channel *channel = NULL;
	struct rpma_cq *rcq = NULL;
	struct rpma_cq *from = NULL;
	struct pair pair;
	int fd = -1;

	open_solicited(&pair, &channel, &rcq);
	ok(rpma_channel_get_fd(channel, &fd));
	ok(rpma_cq_arm(rcq, true));
	ok(rpma_recv(pair.server.conn, NULL, 0, 0, (void *)1));
	ok(rpma_recv(pair.server.conn, NULL, 0, 0, (void *)2));
	ok(rpma_recv(pair.server.conn, NULL, 0, 0, (void *)3));

	ok(rpma_send(pair.client.conn, NULL, 0, 0, ALWAYS, (void *)4));
	expect_done(&pair.client, 4, IBV_WC_SEND);
	poll_received(rcq, 1);
	assert_false(is_readable(fd));

	ok(rpma_send(pair.client.conn, NULL, 0, 0, ALWAYS | RPMA_F_SOLICITED,
		     (void *)5));
	expect_done(&pair.client, 5, IBV_WC_SEND);
	ok(rpma_channel_wait(channel, &from));
	assert_ptr_equal(from, rcq);
	poll_received(rcq, 2);

	ok(rpma_cq_arm(rcq, true));
	ok(rpma_write_with_imm(pair.client.conn, NULL, 0, NULL, 0, 0,
			       ALWAYS | RPMA_F_SOLICITED, 7, (void *)6));
	expect_done(&pair.client, 6, IBV_WC_RDMA_WRITE);
	ok(rpma_channel_wait(channel, &from));
	poll_received(rcq, 3);

	pair_close(&pair);
	ok(rpma_cq_delete(&rcq));
	ok(rpma_channel_delete(&channel));
}

/* What is sent is what the read before it has brought. */
TEST(send__fenced_AFTER_THE_READ)
{
	struct pair pair;
	int i;

	pair_open(&pair);
	for (i = 0; i < 8; i++) {
		memset(pair.server.mem + 512, 'A' + i, 512);
		ok(rpma_recv(pair.server.conn, pair.server.mr, 1024, 512,
			     (void *)1));
		ok(rpma_read(pair.client.conn, pair.client.mr, 0,
			     pair.client.remote, 512, 512, ALWAYS, (void *)2));
		ok(rpma_send(pair.client.conn, pair.client.mr, 0, 512,
			     ALWAYS | RPMA_F_FENCE, (void *)3));
		expect_done(&pair.client, 2, IBV_WC_RDMA_READ);
		expect_done(&pair.client, 3, IBV_WC_SEND);
		expect_done(&pair.server, 1, IBV_WC_RECV);
		assert_int_equal(pair.server.mem[1024], 'A' + i);
		assert_int_equal(pair.server.mem[1535], 'A' + i);
	}
	/* a flush and an atomic write may be fenced, too */
	ok(rpma_flush(pair.client.conn, pair.client.remote, 0, 8,
		      RPMA_FLUSH_TYPE_VISIBILITY, ALWAYS | RPMA_F_FENCE,
		      (void *)4));
	assert_int_equal(next_wc(cq_of(&pair.client)).wr_id, 4);
	ok(rpma_atomic_write(pair.client.conn, pair.client.remote, 0, "1234567",
			     ALWAYS | RPMA_F_FENCE, (void *)5));
	assert_int_equal(next_wc(cq_of(&pair.client)).wr_id, 5);
	pair_close(&pair);
}

PAIR_MAIN()
