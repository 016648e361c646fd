/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * Posting through ibv_wr_start, the builders and ibv_wr_complete: every
 * operation, batches, inline data and gather lists, abort, and batches that
 * cannot be posted as a whole.
 */

#include <arpa/inet.h>
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <string.h>
#include "wire.h"

#define SEND_OPS                                                          \
	(IBV_QP_EX_WITH_RDMA_WRITE | IBV_QP_EX_WITH_RDMA_WRITE_WITH_IMM | \
	 IBV_QP_EX_WITH_SEND | IBV_QP_EX_WITH_SEND_WITH_IMM |             \
	 IBV_QP_EX_WITH_RDMA_READ | IBV_QP_EX_WITH_ATOMIC_CMP_AND_SWP |   \
	 IBV_QP_EX_WITH_ATOMIC_FETCH_AND_ADD)

/* Its end a posts by ibv_wr_*. */
static struct wire *wire_ex(uint32_t depth, struct ibv_qp_ex **ex)
{
	struct wire_opts opts = WIRE_DEFAULTS;

	opts.depth = depth;
	opts.sge = 4;
	opts.inline_size = 64;
	return wire_new_ex(&opts, SEND_OPS, ex);
}

static void start(struct ibv_qp_ex *ex, uint64_t id, unsigned flags)
{
	ibv_wr_start(ex);
	ex->wr_id = id;
	ex->wr_flags = flags;
}

static void set_sge(struct ibv_qp_ex *ex, const struct end *e, uint32_t at,
		    uint32_t len)
{
	ibv_wr_set_sge(ex, e->mr->lkey, (uintptr_t)e->buf + at, len);
}

FX_TEST(wr__send)
{
	struct ibv_qp_ex *ex;
	struct wire *w = wire_ex(8, &ex);

	memcpy(w->a.buf, "one", 4);
	assert_int_equal(wire_recv(&w->b, 1, 64, 64), 0);
	start(ex, 2, IBV_SEND_SIGNALED);
	ibv_wr_send(ex);
	set_sge(ex, &w->a, 0, 4);
	assert_int_equal(ibv_wr_complete(ex), 0);
	fx_expect(w->b.rcq, 1, IBV_WC_SUCCESS);
	fx_expect(w->a.scq, 2, IBV_WC_SUCCESS);
	assert_string_equal((char *)w->b.buf + 64, "one");
}

FX_TEST(wr__send_with_imm)
{
	struct ibv_qp_ex *ex;
	struct wire *w = wire_ex(8, &ex);
	struct ibv_wc wc;

	assert_int_equal(wire_recv(&w->b, 1, 64, 64), 0);
	start(ex, 2, IBV_SEND_SIGNALED);
	ibv_wr_send_imm(ex, htonl(0x11223344));
	set_sge(ex, &w->a, 0, 4);
	assert_int_equal(ibv_wr_complete(ex), 0);
	wc = fx_expect(w->b.rcq, 1, IBV_WC_SUCCESS);
	assert_int_equal(ntohl(wc.imm_data), 0x11223344);
	fx_expect(w->a.scq, 2, IBV_WC_SUCCESS);
}

FX_TEST(wr__write_and_write_with_imm)
{
	struct ibv_qp_ex *ex;
	struct wire *w = wire_ex(8, &ex);
	uint64_t to = (uintptr_t)w->b.buf + 512;
	struct ibv_wc wc;

	memset(w->a.buf, 5, 8);
	assert_int_equal(wire_recv(&w->b, 1, 64, 64), 0);
	start(ex, 2, IBV_SEND_SIGNALED);
	ibv_wr_rdma_write(ex, w->b.mr->rkey, to);
	set_sge(ex, &w->a, 0, 8);
	ex->wr_id = 3;
	ibv_wr_rdma_write_imm(ex, w->b.mr->rkey, to + 64, htonl(77));
	set_sge(ex, &w->a, 0, 8);
	assert_int_equal(ibv_wr_complete(ex), 0);
	fx_expect(w->a.scq, 2, IBV_WC_SUCCESS);
	fx_expect(w->a.scq, 3, IBV_WC_SUCCESS);
	wc = fx_expect(w->b.rcq, 1, IBV_WC_SUCCESS);
	assert_int_equal(wc.opcode, IBV_WC_RECV_RDMA_WITH_IMM);
	assert_int_equal(ntohl(wc.imm_data), 77);
	assert_int_equal(w->b.buf[512], 5);
	assert_int_equal(w->b.buf[576 + 7], 5);
}

FX_TEST(wr__read_and_atomics)
{
	struct ibv_qp_ex *ex;
	struct wire *w = wire_ex(8, &ex);
	uint64_t word = (uintptr_t)w->b.buf;
	uint64_t got[3];
	uint64_t five = 5;

	memcpy(w->b.buf, &five, sizeof(five));
	start(ex, 1, IBV_SEND_SIGNALED);
	ibv_wr_rdma_read(ex, w->b.mr->rkey, word);
	set_sge(ex, &w->a, 0, 8);
	ex->wr_id = 2;
	ibv_wr_atomic_fetch_add(ex, w->b.mr->rkey, word, 2);
	set_sge(ex, &w->a, 8, 8);
	ex->wr_id = 3;
	ibv_wr_atomic_cmp_swp(ex, w->b.mr->rkey, word, 7, 9);
	set_sge(ex, &w->a, 16, 8);
	assert_int_equal(ibv_wr_complete(ex), 0);
	for (uint64_t i = 1; i <= 3; ++i)
		fx_expect(w->a.scq, i, IBV_WC_SUCCESS);
	memcpy(got, w->a.buf, sizeof(got));
	assert_true(got[0] == 5 && got[1] == 5 && got[2] == 7);
	assert_int_equal(w->b.buf[0], 9);
}

FX_TEST(wr__inline_data)
{
	struct ibv_qp_ex *ex;
	struct wire *w = wire_ex(8, &ex);
	char text[] = "inline";
	struct ibv_data_buf list[2] = {{text, 2}, {text + 2, 5}};

	fx_need(dut.traits->wr_inline,
		"the device's library sends an empty message instead");
	assert_int_equal(wire_recv(&w->b, 1, 0, 64), 0);
	assert_int_equal(wire_recv(&w->b, 2, 64, 64), 0);
	start(ex, 3, IBV_SEND_SIGNALED | IBV_SEND_INLINE);
	ibv_wr_send(ex);
	ibv_wr_set_inline_data(ex, text, sizeof(text));
	ibv_wr_send(ex);
	ibv_wr_set_inline_data_list(ex, 2, list);
	memset(text, 'x', sizeof(text));
	assert_int_equal(ibv_wr_complete(ex), 0);
	fx_drain(w->b.rcq, 2);
	fx_drain(w->a.scq, 2);
	assert_string_equal((char *)w->b.buf, "inline");
	assert_string_equal((char *)w->b.buf + 64, "inline");
}

FX_TEST(wr__gather_list)
{
	struct ibv_qp_ex *ex;
	struct wire *w = wire_ex(8, &ex);
	struct ibv_sge list[3];

	memcpy(w->a.buf, "gather", 7);
	for (uint32_t i = 0; i < 3; ++i)
		list[i] = (struct ibv_sge){(uintptr_t)w->a.buf + i * 2,
					   i < 2 ? 2 : 3, w->a.mr->lkey};
	assert_int_equal(wire_recv(&w->b, 1, 0, 64), 0);
	start(ex, 2, IBV_SEND_SIGNALED);
	ibv_wr_send(ex);
	ibv_wr_set_sge_list(ex, 3, list);
	assert_int_equal(ibv_wr_complete(ex), 0);
	fx_expect(w->b.rcq, 1, IBV_WC_SUCCESS);
	assert_string_equal((char *)w->b.buf, "gather");
}

FX_TEST(wr__abort_posts_nothing)
{
	struct ibv_qp_ex *ex;
	struct wire *w = wire_ex(4, &ex);

	for (int i = 0; i < 20; ++i) {
		start(ex, 2, IBV_SEND_SIGNALED);
		ibv_wr_rdma_write(ex, w->b.mr->rkey, (uintptr_t)w->b.buf);
		set_sge(ex, &w->a, 0, 8);
		ibv_wr_abort(ex);
	}
	wire_check(w);
	fx_expect_empty(w->a.scq);
}

FX_TEST(wr__too_many_for_the_queue_post_nothing)
{
	struct ibv_qp_ex *ex;
	struct wire *w = wire_ex(4, &ex);
	int ret;

	start(ex, 2, IBV_SEND_SIGNALED);
	for (uint32_t i = 0; i < 4 * (w->a.cap.max_send_wr + 1); ++i) {
		ibv_wr_rdma_write(ex, w->b.mr->rkey, (uintptr_t)w->b.buf);
		set_sge(ex, &w->a, 0, 8);
	}
	ret = ibv_wr_complete(ex);
	assert_true(ret == ENOMEM || ret == ENOSPC);
	wire_check(w);
	fx_expect_empty(w->a.scq);
}

FX_TEST(wr__mixes_with_post_send)
{
	struct ibv_qp_ex *ex;
	struct wire *w = wire_ex(8, &ex);
	struct op op = {.code = IBV_WR_RDMA_WRITE,
			.flags = IBV_SEND_SIGNALED,
			.len = 8};

	for (uint64_t i = 0; i < 20; i += 2) {
		op.id = i;
		assert_int_equal(wire_post(&w->a, &op), 0);
		start(ex, i + 1, IBV_SEND_SIGNALED);
		ibv_wr_rdma_write(ex, w->b.mr->rkey, (uintptr_t)w->b.buf);
		set_sge(ex, &w->a, 0, 8);
		assert_int_equal(ibv_wr_complete(ex), 0);
		fx_expect(w->a.scq, i, IBV_WC_SUCCESS);
		fx_expect(w->a.scq, i + 1, IBV_WC_SUCCESS);
	}
}

/* The thread that builds a batch may poll, and gets the completions before. */
FX_TEST(wr__earlier_batch_completes_while_the_next_is_open)
{
	struct ibv_qp_ex *ex;
	struct wire *w = wire_ex(8, &ex);

	for (uint64_t i = 0; i < 20; ++i) {
		start(ex, i, IBV_SEND_SIGNALED);
		ibv_wr_rdma_write(ex, w->b.mr->rkey, (uintptr_t)w->b.buf);
		set_sge(ex, &w->a, 0, 4096);
		assert_int_equal(ibv_wr_complete(ex), 0);
		start(ex, 99, IBV_SEND_SIGNALED);
		ibv_wr_rdma_write(ex, w->b.mr->rkey, (uintptr_t)w->b.buf);
		set_sge(ex, &w->a, 0, 8);
		fx_expect(w->a.scq, i, IBV_WC_SUCCESS);
		ibv_wr_abort(ex);
	}
	fx_expect_empty(w->a.scq);
}

static void *post_one(void *arg)
{
	struct wire *w = arg;
	const struct op op = {.code = IBV_WR_RDMA_WRITE,
			      .flags = IBV_SEND_SIGNALED,
			      .id = 2,
			      .len = 8};
	intptr_t ret = wire_post(&w->a, &op);

	return (void *)ret;
}

FX_TEST(wr__another_thread_posts_behind_the_open_batch)
{
	struct ibv_qp_ex *ex;
	struct wire *w = wire_ex(8, &ex);
	pthread_t thread;
	void *ret;

	for (int i = 0; i < 20; ++i) {
		start(ex, 1, IBV_SEND_SIGNALED);
		ibv_wr_rdma_write(ex, w->b.mr->rkey, (uintptr_t)w->b.buf);
		set_sge(ex, &w->a, 0, 8);
		assert_int_equal(pthread_create(&thread, NULL, post_one, w), 0);
		sched_yield();
		assert_int_equal(ibv_wr_complete(ex), 0);
		assert_int_equal(pthread_join(thread, &ret), 0);
		assert_null(ret);
		fx_expect(w->a.scq, 1, IBV_WC_SUCCESS);
		fx_expect(w->a.scq, 2, IBV_WC_SUCCESS);
	}
}

FX_TEST(wr__bad_key_fails)
{
	struct ibv_qp_ex *ex;
	struct wire *w = wire_ex(8, &ex);

	start(ex, 2, IBV_SEND_SIGNALED);
	ibv_wr_rdma_write(ex, w->b.mr->rkey ^ 0x55, (uintptr_t)w->b.buf);
	set_sge(ex, &w->a, 0, 8);
	assert_int_equal(ibv_wr_complete(ex), 0);
	fx_expect(w->a.scq, 2, IBV_WC_REM_ACCESS_ERR);
}

FX_TEST(wr__needs_its_operations_asked_for)
{
	struct end e;

	wire_end(NULL, &e);
	assert_null(ibv_qp_to_qp_ex(e.qp));
}

FX_MAIN("wr")
