/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * SEND and RECV: payload, immediate data, sizes from nothing to a mebibyte,
 * gather and scatter, inline data, order, both directions at once.
 */

#include <arpa/inet.h>
#include <stdlib.h>
#include <string.h>
#include "wire.h"

#define LARGE (1u << 20)

static void fill(uint8_t *p, size_t n, unsigned seed)
{
	for (size_t i = 0; i < n; ++i)
		p[i] = (uint8_t)(i * 31 + (i >> 8) + seed);
}

FX_TEST(send__carries_payload_and_length)
{
	static const uint32_t lengths[] = {1,	 2,    7,    8,	   9,
					   63,	 64,   255,  256,  1023,
					   1024, 1025, 4095, 4096, FX_BUF};
	struct wire *w = wire_new(NULL);

	for (unsigned i = 0; i < FX_COUNT(lengths); ++i) {
		struct op op = {.code = IBV_WR_SEND,
				.id = 2,
				.flags = IBV_SEND_SIGNALED,
				.len = lengths[i]};
		struct ibv_wc wc;

		fill(w->a.buf, FX_BUF, i);
		memset(w->b.buf, 0xee, FX_BUF);
		assert_int_equal(wire_recv(&w->b, 1, 0, FX_BUF), 0);
		assert_int_equal(wire_post(&w->a, &op), 0);
		wc = fx_expect(w->b.rcq, 1, IBV_WC_SUCCESS);
		assert_int_equal(wc.byte_len, op.len);
		assert_memory_equal(w->a.buf, w->b.buf, op.len);
		if (op.len < FX_BUF)
			assert_int_equal(w->b.buf[op.len], 0xee);
		fx_expect(w->a.scq, 2, IBV_WC_SUCCESS);
	}
}

FX_TEST(send__immediate_in_network_order)
{
	struct wire *w = wire_new(NULL);
	struct op op = {.code = IBV_WR_SEND_WITH_IMM,
			.id = 2,
			.flags = IBV_SEND_SIGNALED,
			.len = 8,
			.imm = 0x01020304};
	struct ibv_wc wc;

	assert_int_equal(wire_recv(&w->b, 1, 0, 64), 0);
	assert_int_equal(wire_post(&w->a, &op), 0);
	wc = fx_expect(w->b.rcq, 1, IBV_WC_SUCCESS);
	assert_int_equal(wc.opcode, IBV_WC_RECV);
	assert_int_equal(wc.wc_flags & IBV_WC_WITH_IMM, IBV_WC_WITH_IMM);
	assert_int_equal(ntohl(wc.imm_data), 0x01020304);
	assert_int_equal(wc.byte_len, 8);
}

FX_TEST(send__of_nothing_completes)
{
	struct wire *w = wire_new(NULL);
	struct op op = {
		.code = IBV_WR_SEND, .id = 2, .flags = IBV_SEND_SIGNALED};
	struct ibv_wc wc;

	assert_int_equal(wire_recv(&w->b, 1, 0, 0), 0);
	assert_int_equal(wire_post(&w->a, &op), 0);
	wc = fx_expect(w->b.rcq, 1, IBV_WC_SUCCESS);
	assert_int_equal(wc.byte_len, 0);
	fx_expect(w->a.scq, 2, IBV_WC_SUCCESS);
}

FX_TEST(send__of_nothing_carries_immediate)
{
	struct wire *w = wire_new(NULL);
	struct ibv_sge sge = {0};
	struct ibv_send_wr wr = {.wr_id = 2,
				 .sg_list = &sge,
				 .num_sge = 0,
				 .opcode = IBV_WR_SEND_WITH_IMM,
				 .imm_data = htonl(9),
				 .send_flags = IBV_SEND_SIGNALED};
	struct ibv_send_wr *bad;
	struct ibv_wc wc;

	assert_int_equal(wire_recv(&w->b, 1, 0, 0), 0);
	assert_int_equal(ibv_post_send(w->a.qp, &wr, &bad), 0);
	wc = fx_expect(w->b.rcq, 1, IBV_WC_SUCCESS);
	assert_int_equal(ntohl(wc.imm_data), 9);
}

FX_TEST(send__a_mebibyte)
{
	struct wire *w = wire_new(NULL);
	struct ibv_mr *from = fx_mr(w->a.pd, LARGE, FX_ALL_ACCESS);
	struct ibv_mr *to = fx_mr(w->b.pd, LARGE, FX_ALL_ACCESS);
	struct ibv_sge ssge = {(uintptr_t)from->addr, LARGE, from->lkey};
	struct ibv_sge rsge = {(uintptr_t)to->addr, LARGE, to->lkey};
	struct ibv_send_wr swr = {.wr_id = 2,
				  .sg_list = &ssge,
				  .num_sge = 1,
				  .opcode = IBV_WR_SEND,
				  .send_flags = IBV_SEND_SIGNALED};
	struct ibv_recv_wr rwr = {.wr_id = 1, .sg_list = &rsge, .num_sge = 1};
	struct ibv_send_wr *sbad;
	struct ibv_recv_wr *rbad;
	struct ibv_wc wc;

	fill(from->addr, LARGE, 5);
	assert_int_equal(ibv_post_recv(w->b.qp, &rwr, &rbad), 0);
	assert_int_equal(ibv_post_send(w->a.qp, &swr, &sbad), 0);
	wc = fx_expect(w->b.rcq, 1, IBV_WC_SUCCESS);
	assert_int_equal(wc.byte_len, LARGE);
	fx_expect(w->a.scq, 2, IBV_WC_SUCCESS);
	assert_int_equal(memcmp(from->addr, to->addr, LARGE), 0);
}

/* The sge of one size at each end of pieces that do not meet. */
static int cut(const struct end *e, struct ibv_sge *sge, uint32_t total,
	       uint32_t piece, uint32_t stride)
{
	int n = 0;

	for (uint32_t done = 0; done < total; done += piece, ++n) {
		uint32_t left = total - done;

		sge[n].addr = (uintptr_t)e->buf + (uint32_t)n * stride;
		sge[n].length = left < piece ? left : piece;
		sge[n].lkey = e->mr->lkey;
	}
	return n;
}

FX_TEST(send__gathers_and_scatters)
{
	struct wire_opts opts = WIRE_DEFAULTS;
	struct ibv_sge from[4];
	struct ibv_sge to[4];
	struct ibv_send_wr swr = {.wr_id = 2,
				  .sg_list = from,
				  .opcode = IBV_WR_SEND,
				  .send_flags = IBV_SEND_SIGNALED};
	struct ibv_recv_wr rwr = {.wr_id = 1, .sg_list = to};
	struct ibv_send_wr *sbad;
	struct ibv_recv_wr *rbad;
	struct wire *w;

	opts.sge = 4;
	w = wire_new(&opts);
	fill(w->a.buf, FX_BUF, 3);
	swr.num_sge = cut(&w->a, from, 1000, 300, 512);
	rwr.num_sge = cut(&w->b, to, 1000, 270, 1024);
	assert_int_equal(ibv_post_recv(w->b.qp, &rwr, &rbad), 0);
	assert_int_equal(ibv_post_send(w->a.qp, &swr, &sbad), 0);
	assert_int_equal(fx_expect(w->b.rcq, 1, IBV_WC_SUCCESS).byte_len, 1000);
	for (uint32_t i = 0; i < 1000; ++i)
		assert_int_equal(w->b.buf[i / 270 * 1024 + i % 270],
				 w->a.buf[i / 300 * 512 + i % 300]);
	assert_int_equal(w->b.buf[270], 0);
}

FX_TEST(send__with_as_many_sge_as_granted)
{
	struct wire_opts opts = WIRE_DEFAULTS;
	struct ibv_sge sge[256];
	struct ibv_send_wr swr = {.wr_id = 2,
				  .sg_list = sge,
				  .opcode = IBV_WR_SEND,
				  .send_flags = IBV_SEND_SIGNALED};
	struct ibv_send_wr *bad;
	struct wire *w;
	int n;

	opts.sge = (uint32_t)dut.attr.max_sge;
	opts.depth = 4;
	assert_in_range(opts.sge, 1, 256);
	w = wire_new(&opts);
	fill(w->a.buf, FX_BUF, 1);
	n = cut(&w->a, sge, opts.sge * 3, 3, 3);
	assert_int_equal(n, opts.sge);
	swr.num_sge = n;
	assert_int_equal(wire_recv(&w->b, 1, 0, FX_BUF), 0);
	assert_int_equal(ibv_post_send(w->a.qp, &swr, &bad), 0);
	fx_expect(w->b.rcq, 1, IBV_WC_SUCCESS);
	assert_memory_equal(w->b.buf, w->a.buf, opts.sge * 3);
}

FX_TEST(inline__buffer_is_free_at_return)
{
	struct wire_opts opts = WIRE_DEFAULTS;
	struct wire *w;
	uint8_t data[32];

	opts.inline_size = sizeof(data);
	w = wire_new(&opts);
	for (unsigned i = 0; i < 8; ++i)
		assert_int_equal(wire_recv(&w->b, i, i * 64, sizeof(data)), 0);
	for (unsigned i = 0; i < 8; ++i) {
		/* the key of inline data is not looked at */
		struct ibv_sge sge = {(uintptr_t)data, sizeof(data), 0xdead};
		struct ibv_send_wr wr = {.wr_id = i,
					 .sg_list = &sge,
					 .num_sge = 1,
					 .opcode = IBV_WR_SEND,
					 .send_flags = IBV_SEND_SIGNALED |
						       IBV_SEND_INLINE};
		struct ibv_send_wr *bad;

		memset(data, (int)i + 1, sizeof(data));
		assert_int_equal(ibv_post_send(w->a.qp, &wr, &bad), 0);
		memset(data, 0xff, sizeof(data));
	}
	fx_drain(w->a.scq, 8);
	fx_drain(w->b.rcq, 8);
	for (unsigned i = 0; i < 8; ++i) {
		assert_int_equal(w->b.buf[i * 64], i + 1);
		assert_int_equal(w->b.buf[i * 64 + 31], i + 1);
	}
}

FX_TEST(inline__while_the_receiver_is_not_ready)
{
	struct wire_opts opts = WIRE_DEFAULTS;
	struct op op = {.code = IBV_WR_SEND,
			.id = 2,
			.flags = IBV_SEND_SIGNALED | IBV_SEND_INLINE,
			.len = 16};
	struct wire *w;

	opts.inline_size = 16;
	w = wire_new(&opts);
	memset(w->a.buf, 0x11, 16);
	assert_int_equal(wire_post(&w->a, &op), 0);
	memset(w->a.buf, 0xff, 16);
	assert_int_equal(wire_recv(&w->b, 1, 0, 16), 0);
	fx_expect(w->b.rcq, 1, IBV_WC_SUCCESS);
	fx_expect(w->a.scq, 2, IBV_WC_SUCCESS);
	assert_int_equal(w->b.buf[0], 0x11);
	assert_int_equal(w->b.buf[15], 0x11);
}

FX_TEST(inline__gathers)
{
	struct wire_opts opts = WIRE_DEFAULTS;
	struct ibv_sge sge[2];
	struct ibv_send_wr wr = {.sg_list = sge,
				 .num_sge = 2,
				 .opcode = IBV_WR_SEND,
				 .send_flags =
					 IBV_SEND_SIGNALED | IBV_SEND_INLINE};
	struct ibv_send_wr *bad;
	struct wire *w;

	opts.inline_size = 32;
	opts.sge = 2;
	w = wire_new(&opts);
	sge[0] = (struct ibv_sge){(uintptr_t)"hello, ", 7, 0};
	sge[1] = (struct ibv_sge){(uintptr_t)"world", 6, 0};
	assert_int_equal(wire_recv(&w->b, 1, 0, 64), 0);
	assert_int_equal(ibv_post_send(w->a.qp, &wr, &bad), 0);
	fx_expect(w->b.rcq, 1, IBV_WC_SUCCESS);
	assert_string_equal((char *)w->b.buf, "hello, world");
}

FX_TEST(sends__arrive_in_order)
{
	struct wire_opts opts = WIRE_DEFAULTS;
	struct wire *w;

	opts.depth = 64;
	opts.inline_size = 8;
	w = wire_new(&opts);
	for (uint32_t i = 0; i < 64; ++i)
		assert_int_equal(wire_recv(&w->b, i, i * 8, 8), 0);
	for (uint32_t i = 0; i < 64; ++i) {
		struct op op = {.code = IBV_WR_SEND,
				.id = i,
				.flags = IBV_SEND_SIGNALED | IBV_SEND_INLINE,
				.len = 8};

		memcpy(w->a.buf, &i, sizeof(i));
		assert_int_equal(wire_post(&w->a, &op), 0);
	}
	for (uint32_t i = 0; i < 64; ++i) {
		uint32_t got;

		fx_expect(w->b.rcq, i, IBV_WC_SUCCESS);
		memcpy(&got, w->b.buf + i * 8, sizeof(got));
		assert_int_equal(got, i);
		fx_expect(w->a.scq, i, IBV_WC_SUCCESS);
	}
}

FX_TEST(send_completion__means_delivered)
{
	struct wire *w = wire_new(NULL);

	w->a.buf[0] = 42;
	assert_int_equal(wire_recv(&w->b, 1, 0, 8), 0);
	assert_int_equal(wire_send(&w->a, 2), 0);
	fx_expect(w->a.scq, 2, IBV_WC_SUCCESS);
	/* the buffer is the sender's again, whatever the receiver has seen */
	w->a.buf[0] = 43;
	fx_expect(w->b.rcq, 1, IBV_WC_SUCCESS);
	assert_int_equal(w->b.buf[0], 42);
}

FX_TEST(sends__both_ways_at_once)
{
	struct wire *w = wire_new(NULL);

	for (int i = 0; i < 200; ++i) {
		assert_int_equal(wire_recv(&w->a, 1, 64, 8), 0);
		assert_int_equal(wire_recv(&w->b, 1, 64, 8), 0);
		assert_int_equal(wire_send(&w->a, 2), 0);
		assert_int_equal(wire_send(&w->b, 2), 0);
		fx_expect(w->a.rcq, 1, IBV_WC_SUCCESS);
		fx_expect(w->b.rcq, 1, IBV_WC_SUCCESS);
		fx_expect(w->a.scq, 2, IBV_WC_SUCCESS);
		fx_expect(w->b.scq, 2, IBV_WC_SUCCESS);
	}
}

FX_TEST(self_connection__delivers)
{
	struct end e;

	wire_end(NULL, &e);
	e.peer = &e;
	wire_move(NULL, e.qp, e.qp->qp_num, IBV_QPS_RTS);
	e.buf[0] = 9;
	assert_int_equal(wire_recv(&e, 1, 64, 8), 0);
	assert_int_equal(wire_send(&e, 2), 0);
	fx_expect(e.rcq, 1, IBV_WC_SUCCESS);
	fx_expect(e.scq, 2, IBV_WC_SUCCESS);
	assert_int_equal(e.buf[64], 9);
}

FX_MAIN("send")
