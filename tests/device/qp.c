/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * Creating queue pairs, and the limits of posting: sizes, gather lists,
 * inline data, full queues, chains of which one WR is bad.
 */

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "wire.h"

static struct ibv_qp_init_attr small_attr(struct ibv_cq *cq)
{
	struct ibv_qp_init_attr attr = {
		.send_cq = cq,
		.recv_cq = cq,
		.qp_type = IBV_QPT_RC,
		.cap = {.max_send_wr = 4,
			.max_recv_wr = 4,
			.max_send_sge = 1,
			.max_recv_sge = 1},
	};

	return attr;
}

/* The device's library may give the errno negated: no one may rely on it. */
static void assert_refused(int ret, int error)
{
	assert_int_equal(abs(ret), error);
}

FX_TEST(create_qp__starts_in_reset)
{
	struct ibv_pd *pd = fx_pd();
	struct ibv_cq *cq = fx_cq(8, NULL, NULL);
	struct ibv_qp_init_attr attr = small_attr(cq);
	int tag;
	struct ibv_qp *qp;

	attr.qp_context = &tag;
	qp = fx_qp(pd, &attr);
	assert_int_equal(qp->state, IBV_QPS_RESET);
	assert_ptr_equal(qp->qp_context, &tag);
	assert_ptr_equal(qp->pd, pd);
	assert_ptr_equal(qp->context, dut.verbs);
	assert_ptr_equal(qp->send_cq, cq);
	assert_int_equal(qp->qp_type, IBV_QPT_RC);
	assert_int_not_equal(qp->qp_num, 0);
	assert_true(qp->qp_num < 1u << 24);
	assert_true(attr.cap.max_send_wr >= 4);
	assert_true(attr.cap.max_recv_wr >= 4);
	assert_true(attr.cap.max_send_sge >= 1);
	assert_true(attr.cap.max_recv_sge >= 1);
}

FX_TEST(create_qp__live_numbers_are_distinct)
{
	enum { N = 16 };
	struct ibv_pd *pd = fx_pd();
	struct ibv_qp_init_attr attr = small_attr(fx_cq(8, NULL, NULL));
	struct ibv_qp *qps[N];

	for (int i = 0; i < N; ++i) {
		qps[i] = fx_qp(pd, &attr);
		for (int j = 0; j < i; ++j)
			assert_int_not_equal(qps[i]->qp_num, qps[j]->qp_num);
	}
}

static void expect_no_qp(struct ibv_pd *pd, struct ibv_qp_init_attr *attr)
{
	errno = 0;
	assert_null(ibv_create_qp(pd, attr));
	assert_true(errno == EINVAL || errno == ENOMEM);
}

FX_TEST(create_qp__beyond_limits_refused)
{
	struct ibv_pd *pd = fx_pd();
	const struct ibv_qp_init_attr good = small_attr(fx_cq(8, NULL, NULL));
	struct ibv_qp_init_attr attr = good;

	attr.cap.max_send_wr = (uint32_t)dut.attr.max_qp_wr + 1;
	expect_no_qp(pd, &attr);
	attr = good;
	attr.cap.max_recv_wr = (uint32_t)dut.attr.max_qp_wr + 1;
	expect_no_qp(pd, &attr);
	attr = good;
	attr.cap.max_send_sge = (uint32_t)dut.attr.max_sge + 1;
	expect_no_qp(pd, &attr);
	attr = good;
	attr.cap.max_recv_sge = (uint32_t)dut.attr.max_sge + 1;
	expect_no_qp(pd, &attr);
	attr = good;
	attr.cap.max_inline_data = 1u << 24;
	expect_no_qp(pd, &attr);
}

/* The queue pair has no receives of its own. */
FX_TEST(create_qp__with_srq_receive_limits_IGNORED)
{
	struct ibv_pd *pd = fx_pd();
	struct ibv_qp_init_attr attr = small_attr(fx_cq(8, NULL, NULL));

	attr.srq = fx_srq(pd, 4);
	attr.cap.max_recv_wr = (uint32_t)dut.attr.max_qp_wr + 1;
	attr.cap.max_recv_sge = (uint32_t)dut.attr.max_sge + 1;
	fx_qp(pd, &attr);
}

FX_TEST(create_qp__at_limits)
{
	struct ibv_pd *pd = fx_pd();
	struct ibv_qp_init_attr attr = small_attr(fx_cq(8, NULL, NULL));

	attr.cap.max_send_wr = (uint32_t)dut.attr.max_qp_wr;
	fx_qp(pd, &attr);
	attr = small_attr(attr.send_cq);
	attr.cap.max_recv_wr = (uint32_t)dut.attr.max_qp_wr;
	fx_qp(pd, &attr);
}

/* A granted inline length is a promise, also where none was asked for. */
FX_TEST(create_qp__inline_as_granted)
{
	struct wire *w = wire_new(NULL);
	struct op op = {.code = IBV_WR_SEND,
			.id = 1,
			.flags = IBV_SEND_SIGNALED | IBV_SEND_INLINE};

	assert_true(w->a.cap.max_inline_data >= 16);
	op.len = w->a.cap.max_inline_data;
	assert_int_equal(wire_recv(&w->b, 2, 0, op.len), 0);
	assert_int_equal(wire_post(&w->a, &op), 0);
	fx_expect(w->a.scq, 1, IBV_WC_SUCCESS);
	assert_int_equal(fx_expect(w->b.rcq, 2, IBV_WC_SUCCESS).byte_len,
			 op.len);
}

FX_TEST(create_qp__unknown_type_refused)
{
	struct ibv_pd *pd = fx_pd();
	struct ibv_cq *cq = fx_cq(8, NULL, NULL);
	struct ibv_qp_init_attr attr = small_attr(cq);

	attr.qp_type = (enum ibv_qp_type)77;
	errno = 0;
	assert_null(ibv_create_qp(pd, &attr));
	assert_true(errno == EINVAL || errno == EOPNOTSUPP);
}

/* A receiver that lets its sender wait keeps the send queue occupied. */
static struct wire *stuck_wire(struct wire_opts *opts)
{
	opts->min_rnr_timer = 20; /* 10 ms, again and again */
	opts->rnr_retry = 7;
	return wire_new(opts);
}

FX_TEST(post_send__full_ENOMEM)
{
	struct wire_opts opts = WIRE_DEFAULTS;
	struct ibv_send_wr wr;
	struct ibv_send_wr *bad = NULL;
	struct ibv_sge sge;
	struct op op = {.code = IBV_WR_SEND, .len = 8};
	struct wire *w;
	uint32_t posted = 0;
	int ret;

	opts.depth = 8;
	w = stuck_wire(&opts);
	wire_wr(&w->a, &op, &wr, &sge);
	while ((ret = ibv_post_send(w->a.qp, &wr, &bad)) == 0)
		assert_true(++posted < 4 * (w->a.cap.max_send_wr + 1));
	assert_int_equal(ret, ENOMEM);
	assert_ptr_equal(bad, &wr);
	assert_true(posted >= 8);
	assert_true(posted >= w->a.cap.max_send_wr);
}

FX_TEST(post_send__again_after_full)
{
	struct wire_opts opts = WIRE_DEFAULTS;
	struct wire *w;
	uint64_t posted = 0;

	opts.depth = 8;
	opts.cq_depth = 64;
	w = stuck_wire(&opts);
	while (wire_send(&w->a, posted) == 0)
		++posted;
	for (uint64_t i = 0; i < posted; ++i) {
		assert_int_equal(wire_recv(&w->b, i, 0, 8), 0);
		fx_expect(w->a.scq, i, IBV_WC_SUCCESS);
		fx_expect(w->b.rcq, i, IBV_WC_SUCCESS);
	}
	wire_check(w);
}

FX_TEST(post_recv__full_ENOMEM)
{
	struct wire *w = wire_new(NULL);
	uint32_t posted = 0;
	int ret;

	while ((ret = wire_recv(&w->b, posted, 0, 8)) == 0)
		assert_true(++posted < 4 * (w->b.cap.max_recv_wr + 1));
	assert_int_equal(ret, ENOMEM);
	assert_true(posted >= 16);
	assert_int_equal(wire_send(&w->a, 1), 0);
	fx_expect(w->b.rcq, 0, IBV_WC_SUCCESS);
	assert_int_equal(wire_recv(&w->b, posted, 0, 8), 0);
}

FX_TEST(post_send__too_many_sge_EINVAL)
{
	struct wire *w = wire_new(NULL);
	struct ibv_sge sge[64];
	struct ibv_send_wr wr = {.num_sge = 64,
				 .sg_list = sge,
				 .opcode = IBV_WR_SEND,
				 .send_flags = IBV_SEND_SIGNALED};
	struct ibv_send_wr *bad = NULL;

	for (int i = 0; i < 64; ++i)
		sge[i] =
			(struct ibv_sge){(uintptr_t)w->a.buf, 1, w->a.mr->lkey};
	assert_refused(ibv_post_send(w->a.qp, &wr, &bad), EINVAL);
	assert_ptr_equal(bad, &wr);
	wire_check(w);
}

FX_TEST(post_recv__too_many_sge_EINVAL)
{
	struct wire *w = wire_new(NULL);
	struct ibv_sge sge[64];
	struct ibv_recv_wr wr = {.num_sge = 64, .sg_list = sge};
	struct ibv_recv_wr *bad = NULL;

	for (int i = 0; i < 64; ++i)
		sge[i] =
			(struct ibv_sge){(uintptr_t)w->a.buf, 1, w->a.mr->lkey};
	assert_refused(ibv_post_recv(w->a.qp, &wr, &bad), EINVAL);
	assert_ptr_equal(bad, &wr);
	wire_check(w);
}

FX_TEST(post_send__too_long_inline_EINVAL)
{
	struct wire_opts opts = WIRE_DEFAULTS;
	struct wire *w;
	struct op op = {.code = IBV_WR_SEND,
			.flags = IBV_SEND_SIGNALED | IBV_SEND_INLINE};

	opts.inline_size = 64;
	w = wire_new(&opts);
	op.len = w->a.cap.max_inline_data + 1;
	assert_true(op.len <= FX_BUF);
	assert_refused(wire_post(&w->a, &op), EINVAL);
	fx_expect_empty(w->a.scq);
	wire_check(w);
}

FX_TEST(post_send__misaligned_atomic_fails)
{
	struct wire *w = wire_new(NULL);
	struct op op = {.code = IBV_WR_ATOMIC_FETCH_AND_ADD,
			.id = 1,
			.flags = IBV_SEND_SIGNALED,
			.len = 8,
			.to = 12};
	int ret = wire_post(&w->a, &op);
	struct ibv_wc wc;

	if (ret) {
		assert_refused(ret, EINVAL);
		wire_check(w);
		return;
	}
	wc = fx_wait(w->a.scq);
	assert_int_equal(wc.wr_id, 1);
	assert_true(wc.status == IBV_WC_REM_INV_REQ_ERR ||
		    wc.status == IBV_WC_LOC_QP_OP_ERR);
}

FX_TEST(post_send__unknown_opcode_never_succeeds)
{
	struct wire *w = wire_new(NULL);
	struct op op = {.code = (enum ibv_wr_opcode)99,
			.id = 1,
			.flags = IBV_SEND_SIGNALED,
			.len = 8};

	fx_need(dut.traits->post_checks_opcode,
		"the device's post takes any opcode");
	assert_refused(wire_post(&w->a, &op), EINVAL);
	wire_check(w);
}

FX_TEST(chain__bad_wr_is_the_first_refused)
{
	struct wire *w = wire_new(NULL);
	struct ibv_send_wr wr[4];
	struct ibv_send_wr *bad = NULL;
	struct ibv_sge sge[4];
	struct ibv_sge many[64] = {{0}};

	for (int i = 0; i < 4; ++i) {
		struct op op = {.code = IBV_WR_RDMA_WRITE,
				.id = 50 + (uint64_t)i,
				.flags = IBV_SEND_SIGNALED,
				.at = 8 * (uint32_t)i,
				.len = 8,
				.to = 8 * (uint32_t)i};

		w->a.buf[8 * i] = (uint8_t)(i + 1);
		wire_wr(&w->a, &op, &wr[i], &sge[i]);
		wr[i].next = i < 3 ? &wr[i + 1] : NULL;
	}
	wr[2].sg_list = many;
	wr[2].num_sge = FX_COUNT(many);
	assert_refused(ibv_post_send(w->a.qp, wr, &bad), EINVAL);
	assert_ptr_equal(bad, &wr[2]);
	fx_expect(w->a.scq, 50, IBV_WC_SUCCESS);
	fx_expect(w->a.scq, 51, IBV_WC_SUCCESS);
	wire_check(w);
	fx_expect_empty(w->a.scq);
	assert_int_equal(w->b.buf[8], 2);
	assert_int_equal(w->b.buf[16], 0);
	assert_int_equal(w->b.buf[24], 0);
}

FX_TEST(chain__receive_bad_wr_is_the_first_refused)
{
	struct wire *w = wire_new(NULL);
	struct ibv_sge sge[64] = {{(uintptr_t)w->b.buf, 8, w->b.mr->lkey}};
	struct ibv_recv_wr wr[3];
	struct ibv_recv_wr *bad = NULL;

	for (int i = 0; i < 3; ++i)
		wr[i] = (struct ibv_recv_wr){.wr_id = 60 + (uint64_t)i,
					     .next = i < 2 ? &wr[i + 1] : NULL,
					     .sg_list = sge,
					     .num_sge = i == 1 ? 64 : 1};
	assert_refused(ibv_post_recv(w->b.qp, wr, &bad), EINVAL);
	assert_ptr_equal(bad, &wr[1]);
	assert_int_equal(wire_send(&w->a, 1), 0);
	fx_expect(w->b.rcq, 60, IBV_WC_SUCCESS);
	fx_expect(w->a.scq, 1, IBV_WC_SUCCESS);
	wire_check(w);
}

FX_TEST(unsignaled__complete_by_a_later_signaled)
{
	struct wire_opts opts = WIRE_DEFAULTS;
	struct wire *w;

	opts.depth = 8;
	w = wire_new(&opts);
	for (uint64_t i = 1; i <= 10 * 8; ++i) {
		struct op op = {.code = IBV_WR_RDMA_WRITE,
				.id = i,
				.flags = i % 8 ? 0 : IBV_SEND_SIGNALED,
				.len = 8};

		assert_int_equal(wire_post(&w->a, &op), 0);
		if (i % 8 == 0)
			fx_expect(w->a.scq, i, IBV_WC_SUCCESS);
	}
	fx_expect_empty(w->a.scq);
}

FX_TEST(sq_sig_all__every_wr_completes)
{
	struct wire_opts opts = WIRE_DEFAULTS;
	struct wire *w;
	struct op op = {.code = IBV_WR_RDMA_WRITE, .len = 8};

	opts.sig_all = 1;
	w = wire_new(&opts);
	for (op.id = 1; op.id < 5; ++op.id)
		assert_int_equal(wire_post(&w->a, &op), 0);
	for (uint64_t i = 1; i < 5; ++i)
		fx_expect(w->a.scq, i, IBV_WC_SUCCESS);
}

FX_MAIN("qp")
