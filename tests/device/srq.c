/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * Shared receive queues: the queue pairs that take from them, full and empty
 * ones, the limit event, and the receives that a failed queue pair leaves.
 */

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "wire.h"

struct hub {
	struct ibv_pd *pd;
	struct ibv_srq *srq;
	struct ibv_mr *mr; /* of the receives */
};

static struct hub hub_new(uint32_t max_wr)
{
	struct hub h;

	h.pd = fx_pd();
	h.srq = fx_srq(h.pd, max_wr);
	h.mr = fx_mr(h.pd, FX_BUF, FX_ALL_ACCESS);
	return h;
}

static struct wire *spoke(const struct hub *h, uint8_t rnr_retry)
{
	struct wire_opts opts = WIRE_DEFAULTS;

	opts.srq = h->srq;
	opts.srq_pd = h->pd;
	opts.rnr_retry = rnr_retry;
	return wire_new(&opts);
}

static void post(const struct hub *h, uint64_t id)
{
	assert_int_equal(wire_srq_recv(h->srq, h->mr, id), 0);
}

static void deliver(const struct wire *w, uint64_t id)
{
	assert_int_equal(wire_send(&w->a, id), 0);
	fx_expect(w->a.scq, id, IBV_WC_SUCCESS);
}

FX_TEST(query_srq__has_what_was_granted)
{
	struct hub h = hub_new(10);
	struct ibv_srq_attr attr;

	assert_ptr_equal(h.srq->pd, h.pd);
	assert_int_equal(ibv_query_srq(h.srq, &attr), 0);
	assert_true(attr.max_wr >= 10);
	assert_true(attr.max_sge >= 1);
	assert_int_equal(attr.srq_limit, 0);
}

FX_TEST(create_srq__beyond_limits_refused)
{
	struct ibv_pd *pd = fx_pd();
	struct ibv_srq_init_attr attr = {
		.attr = {.max_wr = (uint32_t)dut.attr.max_srq_wr + 1,
			 .max_sge = 1}};

	assert_null(ibv_create_srq(pd, &attr));
	attr.attr.max_wr = 10;
	attr.attr.max_sge = (uint32_t)dut.attr.max_srq_sge + 1;
	assert_null(ibv_create_srq(pd, &attr));
}

FX_TEST(srq__is_shared_by_qps)
{
	struct hub h = hub_new(16);
	struct wire *w[3];

	for (int i = 0; i < 3; ++i)
		w[i] = spoke(&h, 7);
	for (uint64_t id = 0; id < 9; ++id)
		post(&h, id);
	for (uint64_t id = 0; id < 9; ++id) {
		struct ibv_wc wc;

		deliver(w[id % 3], 100);
		wc = fx_expect(w[id % 3]->b.rcq, id, IBV_WC_SUCCESS);
		assert_int_equal(wc.qp_num, w[id % 3]->b.qp->qp_num);
		assert_int_equal(wc.byte_len, 8);
	}
}

FX_TEST(srq__empty_RNR_RETRY_EXC_ERR)
{
	struct hub h = hub_new(16);
	struct wire *w = spoke(&h, 1);

	post(&h, 1);
	deliver(w, 2);
	assert_int_equal(wire_send(&w->a, 3), 0);
	fx_expect(w->a.scq, 3, IBV_WC_RNR_RETRY_EXC_ERR);
}

FX_TEST(srq__post_wakes_a_waiting_sender)
{
	struct hub h = hub_new(16);
	struct wire *one = spoke(&h, 7);
	struct wire *two = spoke(&h, 7);

	assert_int_equal(wire_send(&one->a, 1), 0);
	assert_int_equal(wire_send(&two->a, 2), 0);
	fx_expect_empty(one->a.scq);
	post(&h, 10);
	post(&h, 11);
	fx_expect(one->a.scq, 1, IBV_WC_SUCCESS);
	fx_expect(two->a.scq, 2, IBV_WC_SUCCESS);
}

FX_TEST(srq__full_ENOMEM)
{
	struct hub h = hub_new(8);
	struct ibv_srq_attr attr;
	uint64_t n = 0;
	int ret;

	assert_int_equal(ibv_query_srq(h.srq, &attr), 0);
	while ((ret = wire_srq_recv(h.srq, h.mr, n)) == 0)
		assert_true(++n < 4 * (attr.max_wr + 1));
	assert_int_equal(ret, ENOMEM);
	assert_true(n >= 8);
}

FX_TEST(srq__too_many_sge_EINVAL)
{
	struct hub h = hub_new(8);
	struct ibv_sge sge[64] = {{(uintptr_t)h.mr->addr, 8, h.mr->lkey}};
	struct ibv_recv_wr wr[2] = {
		{.wr_id = 1, .next = &wr[1], .sg_list = sge, .num_sge = 1},
		{.wr_id = 2, .sg_list = sge, .num_sge = 64}};
	struct ibv_recv_wr *bad = NULL;

	assert_int_equal(abs(ibv_post_srq_recv(h.srq, wr, &bad)), EINVAL);
	assert_ptr_equal(bad, &wr[1]);
}

FX_TEST(post_recv__on_a_qp_of_an_srq_EINVAL)
{
	struct hub h = hub_new(8);
	struct wire *w = spoke(&h, 7);

	assert_int_equal(abs(wire_recv(&w->b, 1, 0, 8)), EINVAL);
}

FX_TEST(limit__event_once)
{
	struct hub h = hub_new(16);
	struct wire *w = spoke(&h, 7);
	struct ibv_srq_attr attr = {.srq_limit = 4};
	struct ibv_async_event event;

	for (uint64_t i = 0; i < 8; ++i)
		post(&h, i);
	assert_int_equal(ibv_modify_srq(h.srq, &attr, IBV_SRQ_LIMIT), 0);
	assert_int_equal(ibv_query_srq(h.srq, &attr), 0);
	assert_int_equal(attr.srq_limit, 4);
	for (uint64_t i = 0; i < 6; ++i)
		deliver(w, i);
	event = fx_expect_async(dut.verbs, IBV_EVENT_SRQ_LIMIT_REACHED);
	assert_ptr_equal(event.element.srq, h.srq);
	assert_int_equal(ibv_query_srq(h.srq, &attr), 0);
	assert_int_equal(attr.srq_limit, 0);
	deliver(w, 7);
	assert_false(fx_readable(dut.verbs->async_fd));
}

FX_TEST(limit__armed_again)
{
	struct hub h = hub_new(16);
	struct wire *w = spoke(&h, 7);

	for (uint64_t i = 0; i < 3; ++i) {
		struct ibv_srq_attr attr = {.srq_limit = 2};

		post(&h, i);
		post(&h, i);
		assert_int_equal(ibv_modify_srq(h.srq, &attr, IBV_SRQ_LIMIT),
				 0);
		deliver(w, 1);
		fx_expect_async(dut.verbs, IBV_EVENT_SRQ_LIMIT_REACHED);
		deliver(w, 2);
	}
}

FX_TEST(limit__above_size_refused)
{
	struct hub h = hub_new(16);
	struct ibv_srq_attr attr = {.srq_limit =
					    (uint32_t)dut.attr.max_srq_wr + 1};

	assert_int_equal(ibv_modify_srq(h.srq, &attr, IBV_SRQ_LIMIT), EINVAL);
}

FX_TEST(failed_qp__leaves_receives_to_others)
{
	struct hub h = hub_new(16);
	struct wire *one = spoke(&h, 7);
	struct wire *two = spoke(&h, 7);

	for (uint64_t i = 0; i < 3; ++i)
		post(&h, i);
	wire_fail(one->b.qp);
	for (uint64_t i = 0; i < 3; ++i) {
		deliver(two, 10);
		fx_expect(two->b.rcq, i, IBV_WC_SUCCESS);
	}
	fx_expect_empty(one->b.rcq);
}

FX_TEST(failed_qp__LAST_WQE_REACHED)
{
	struct hub h = hub_new(16);
	struct wire *w = spoke(&h, 7);
	struct ibv_async_event event;

	fx_need(dut.traits->last_wqe_event,
		"the device raises no LAST_WQE_REACHED");
	post(&h, 1);
	deliver(w, 2);
	wire_fail(w->b.qp);
	event = fx_expect_async(dut.verbs, IBV_EVENT_QP_LAST_WQE_REACHED);
	assert_ptr_equal(event.element.qp, w->b.qp);
	fx_expect(w->b.rcq, 1, IBV_WC_SUCCESS);
}

FX_TEST(srq__of_another_pd_allowed_or_EINVAL)
{
	struct hub h = hub_new(8);
	struct ibv_cq *cq = fx_cq(8, NULL, NULL);
	struct ibv_qp_init_attr attr = {
		.send_cq = cq,
		.recv_cq = cq,
		.srq = h.srq,
		.qp_type = IBV_QPT_RC,
		.cap = {.max_send_wr = 1, .max_send_sge = 1}};
	struct ibv_qp *qp = ibv_create_qp(fx_pd(), &attr);

	/* allowed: a QP may be in another domain than its SRQ */
	if (qp)
		assert_int_equal(ibv_destroy_qp(qp), 0);
	else
		assert_int_equal(errno, EINVAL);
}

FX_TEST(resize__keeps_receives)
{
	struct hub h = hub_new(8);
	struct wire *w = spoke(&h, 7);
	struct ibv_srq_attr attr = {.max_wr = 64};
	int ret;

	for (uint64_t i = 0; i < 6; ++i)
		post(&h, i);
	ret = ibv_modify_srq(h.srq, &attr, IBV_SRQ_MAX_WR);
	fx_need(dut.attr.device_cap_flags & IBV_DEVICE_SRQ_RESIZE,
		"the device does not resize SRQs");
	assert_int_equal(ret, 0);
	for (uint64_t i = 6; i < 60; ++i)
		post(&h, i);
	for (uint64_t i = 0; i < 60; ++i) {
		deliver(w, 10);
		fx_expect(w->b.rcq, i, IBV_WC_SUCCESS);
	}
}

FX_TEST(resize__below_what_is_posted_refused)
{
	struct hub h = hub_new(64);
	struct wire *w = spoke(&h, 7);
	struct ibv_srq_attr attr = {.max_wr = 4};

	fx_need(dut.attr.device_cap_flags & IBV_DEVICE_SRQ_RESIZE,
		"the device does not resize SRQs");
	for (uint64_t i = 0; i < 40; ++i)
		post(&h, i);
	assert_int_not_equal(ibv_modify_srq(h.srq, &attr, IBV_SRQ_MAX_WR), 0);
	for (uint64_t i = 0; i < 40; ++i) {
		deliver(w, 10);
		fx_expect(w->b.rcq, i, IBV_WC_SUCCESS);
	}
}

FX_TEST(resize__beyond_limit_refused)
{
	struct hub h = hub_new(8);
	struct ibv_srq_attr attr = {.max_wr =
					    (uint32_t)dut.attr.max_srq_wr + 1};

	fx_need(dut.attr.device_cap_flags & IBV_DEVICE_SRQ_RESIZE,
		"the device does not resize SRQs");
	assert_int_not_equal(ibv_modify_srq(h.srq, &attr, IBV_SRQ_MAX_WR), 0);
}

/* Up and down, with receives that go round the end of the ring. */
FX_TEST(resize__again_and_again)
{
	static const uint32_t sizes[] = {8, 64, 5, 33, 6, 128, 7};
	struct hub h = hub_new(16);
	struct wire *w = spoke(&h, 7);
	uint64_t in = 0;
	uint64_t out = 0;

	fx_need(dut.attr.device_cap_flags & IBV_DEVICE_SRQ_RESIZE,
		"the device does not resize SRQs");
	for (int i = 0; i < 70; ++i) {
		struct ibv_srq_attr attr = {.max_wr =
						    sizes[i % FX_COUNT(sizes)]};

		while (in - out < 5)
			post(&h, in++);
		assert_int_equal(ibv_modify_srq(h.srq, &attr, IBV_SRQ_MAX_WR),
				 0);
		for (int k = 0; k < 3; ++k) {
			deliver(w, 10);
			fx_expect(w->b.rcq, out++, IBV_WC_SUCCESS);
		}
	}
}

FX_MAIN("srq")
