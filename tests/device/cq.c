/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * Completion queues: limits, order, polling by one thread and by two,
 * resizing, overrun.
 */

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include "wire.h"

static const struct op write_op = {
	.code = IBV_WR_RDMA_WRITE, .flags = IBV_SEND_SIGNALED, .len = 8};

static void post_write(const struct end *e, uint64_t id)
{
	struct op op = write_op;

	op.id = id;
	assert_int_equal(wire_post(e, &op), 0);
}

FX_TEST(create_cq__holds_what_was_asked)
{
	int tag;
	struct ibv_comp_channel *ch = fx_channel();
	struct ibv_cq *cq = fx_cq(10, &tag, ch);

	assert_true(cq->cqe >= 10);
	assert_true(cq->cqe <= dut.attr.max_cqe);
	assert_ptr_equal(cq->cq_context, &tag);
	assert_ptr_equal(cq->channel, ch);
	assert_ptr_equal(cq->context, dut.verbs);
	fx_expect_empty(cq);
}

static void refused(int cqe, int vector)
{
	errno = 0;
	assert_null(ibv_create_cq(dut.verbs, cqe, NULL, NULL, vector));
	assert_int_equal(errno, EINVAL);
}

FX_TEST(create_cq__bad_size_EINVAL)
{
	refused(0, 0);
	refused(-1, 0);
	refused(dut.attr.max_cqe + 1, 0);
}

/* What the device says that it has, a program may have. */
FX_TEST(create_cq__as_large_as_it_can_be)
{
	struct ibv_cq *cq = fx_cq(dut.attr.max_cqe, NULL, NULL);

	assert_int_equal(cq->cqe, dut.attr.max_cqe);
	fx_expect_empty(cq);
}

FX_TEST(create_cq__bad_vector_EINVAL)
{
	refused(10, dut.verbs->num_comp_vectors);
	refused(10, -1);
}

FX_TEST(create_cq__every_vector)
{
	for (int i = 0; i < dut.verbs->num_comp_vectors && i < 8; ++i) {
		struct ibv_cq *cq = ibv_create_cq(dut.verbs, 4, NULL, NULL, i);

		assert_non_null(cq);
		assert_int_equal(ibv_destroy_cq(cq), 0);
	}
}

FX_TEST(poll_cq__in_order_of_posting)
{
	struct wire *w = wire_new(NULL);

	for (uint64_t i = 0; i < 10; ++i)
		post_write(&w->a, 100 + i);
	for (uint64_t i = 0; i < 10; ++i)
		fx_expect(w->a.scq, 100 + i, IBV_WC_SUCCESS);
	fx_expect_empty(w->a.scq);
}

FX_TEST(poll_cq__gives_at_most_what_was_asked)
{
	struct wire *w = wire_new(NULL);
	struct fx_deadline d = fx_deadline();
	struct ibv_wc wc[4];
	int got = 0;

	assert_int_equal(ibv_poll_cq(w->a.scq, 4, wc), 0);
	for (uint64_t i = 0; i < 10; ++i)
		post_write(&w->a, i);
	while (got < 10) {
		int n = ibv_poll_cq(w->a.scq, 3, wc);

		assert_in_range(n, 0, 3);
		for (int i = 0; i < n; ++i)
			assert_int_equal(wc[i].wr_id, got + i);
		got += n;
		fx_check(&d, "ten completions");
	}
	assert_int_equal(ibv_poll_cq(w->a.scq, 4, wc), 0);
}

FX_TEST(poll_cq__goes_round_its_ring)
{
	struct wire_opts opts = WIRE_DEFAULTS;
	struct wire *w;
	uint64_t id = 0;

	opts.cq_depth = 3;
	w = wire_new(&opts);
	for (int round = 0; round < 50; ++round) {
		for (int i = 0; i < 3; ++i)
			post_write(&w->a, id + (uint64_t)i);
		for (int i = 0; i < 3; ++i)
			fx_expect(w->a.scq, id++, IBV_WC_SUCCESS);
	}
}

FX_TEST(completion__describes_its_operation)
{
	struct wire *w = wire_new(NULL);
	struct ibv_wc wc;

	assert_int_equal(wire_recv(&w->b, 1, 0, 64), 0);
	assert_int_equal(wire_send(&w->a, 2), 0);
	wc = fx_expect(w->b.rcq, 1, IBV_WC_SUCCESS);
	assert_int_equal(wc.opcode, IBV_WC_RECV);
	assert_int_equal(wc.byte_len, 8);
	assert_int_equal(wc.qp_num, w->b.qp->qp_num);
	assert_int_equal(wc.wc_flags & IBV_WC_WITH_IMM, 0);
	wc = fx_expect(w->a.scq, 2, IBV_WC_SUCCESS);
	assert_int_equal(wc.opcode, IBV_WC_SEND);
	assert_int_equal(wc.qp_num, w->a.qp->qp_num);
}

#define SHARED_OPS 400

struct poller {
	struct ibv_cq *cq;
	atomic_int *seen; /* of each wr_id */
	atomic_int *total;
	int bad;
};

static void *poll_until_all(void *arg)
{
	struct poller *p = arg;
	struct ibv_wc wc;

	/* relaxed: a count; the ids are checked after the threads joined */
	while (atomic_load_explicit(p->total, memory_order_relaxed) <
	       SHARED_OPS) {
		if (ibv_poll_cq(p->cq, 1, &wc) != 1)
			continue;
		if (wc.status != IBV_WC_SUCCESS || wc.wr_id >= SHARED_OPS)
			p->bad = 1;
		else
			atomic_fetch_add_explicit(&p->seen[wc.wr_id], 1,
						  memory_order_relaxed);
		atomic_fetch_add_explicit(p->total, 1, memory_order_relaxed);
	}
	return NULL;
}

FX_TEST(poll_cq__two_threads_share_without_loss)
{
	struct wire *w = wire_new_at(NULL, false, true);
	struct fx_deadline d = fx_deadline();
	static atomic_int seen[SHARED_OPS];
	static atomic_int total;
	struct poller p[2];
	pthread_t t[2];

	for (int i = 0; i < 2; ++i) {
		p[i] = (struct poller){w->a.scq, seen, &total, 0};
		assert_int_equal(
			pthread_create(&t[i], NULL, poll_until_all, &p[i]), 0);
	}
	for (int i = 0; i < SHARED_OPS; ++i) {
		post_write(&w->a, (uint64_t)i);
		/* relaxed: bounds what is outstanding, orders nothing */
		while (i - atomic_load_explicit(&total, memory_order_relaxed) >
		       8)
			fx_check(&d, "a completion in another thread");
	}
	for (int i = 0; i < 2; ++i)
		assert_int_equal(pthread_join(t[i], NULL), 0);
	assert_int_equal(p[0].bad + p[1].bad, 0);
	for (int i = 0; i < SHARED_OPS; ++i)
		assert_int_equal(
			atomic_load_explicit(&seen[i], memory_order_relaxed),
			1);
}

FX_TEST(resize_cq__keeps_completions)
{
	struct wire_opts opts = WIRE_DEFAULTS;
	struct wire *w;
	int ret;

	opts.depth = 64;
	opts.cq_depth = 8;
	w = wire_new(&opts);
	for (uint64_t i = 0; i < 6; ++i)
		post_write(&w->a, i);
	post_write(&w->b, 0);
	fx_drain(w->b.scq, 1);
	ret = ibv_resize_cq(w->a.scq, 40);
	fx_need(ret != EOPNOTSUPP && ret != ENOSYS,
		"the device does not resize CQs");
	assert_int_equal(ret, 0);
	assert_true(w->a.scq->cqe >= 40);
	for (uint64_t i = 6; i < 40; ++i)
		post_write(&w->a, i);
	for (uint64_t i = 0; i < 40; ++i)
		fx_expect(w->a.scq, i, IBV_WC_SUCCESS);
}

FX_TEST(resize_cq__beyond_limit_EINVAL)
{
	struct ibv_cq *cq = fx_cq(8, NULL, NULL);
	int ret = ibv_resize_cq(cq, dut.attr.max_cqe + 1);

	fx_need(ret != EOPNOTSUPP && ret != ENOSYS,
		"the device does not resize CQs");
	assert_int_equal(ret, EINVAL);
}

FX_TEST(one_cq__for_both_queues)
{
	struct ibv_cq *cq = fx_cq(16, NULL, NULL);
	struct end e;

	wire_self(&e, cq);
	assert_int_equal(wire_recv(&e, 1, 64, 64), 0);
	assert_int_equal(wire_send(&e, 2), 0);
	fx_drain(cq, 2);
	fx_expect_empty(cq);
}

/* End b overruns its queue, which it sends to. */
static struct wire *overrun(int *capacity)
{
	struct wire_opts opts = WIRE_DEFAULTS;
	struct ibv_async_event event;
	struct wire *w;

	opts.depth = 64;
	opts.cq_depth = 4;
	w = wire_new(&opts);
	*capacity = w->b.scq->cqe;
	assert_true(*capacity < 32);
	for (uint64_t i = 0; i < 64; ++i) {
		struct op op = write_op;

		op.id = i;
		/* the QP may have failed by now: then it refuses or flushes */
		if (wire_post(&w->b, &op))
			break;
	}
	event = fx_expect_async(dut.verbs, IBV_EVENT_CQ_ERR);
	assert_ptr_equal(event.element.cq, w->b.scq);
	return w;
}

FX_TEST(overrun__raises_CQ_ERR)
{
	int capacity;
	struct wire *w = overrun(&capacity);

	assert_int_equal(fx_destroy(w->b.qp), 0);
	assert_int_equal(fx_destroy(w->b.scq), 0);
}

FX_TEST(overrun__invents_no_completion)
{
	int capacity;
	struct wire *w = overrun(&capacity);
	struct ibv_wc wc;
	int n = 0;

	while (ibv_poll_cq(w->b.scq, 1, &wc) == 1) {
		assert_in_range(wc.wr_id, 0, 63);
		++n;
	}
	assert_in_range(n, 0, 64);
}

FX_TEST(overrun__other_cqs_live)
{
	struct wire *w = wire_new(NULL);
	int capacity;

	overrun(&capacity);
	wire_check(w);
}

FX_TEST(overrun__cq_gives_nothing_any_more)
{
	struct wire *other = wire_new(NULL);
	struct wire *w;
	struct ibv_wc wc;
	int capacity;

	fx_need(dut.traits->overrun_kills_cq,
		"the device drops the completion and goes on with the CQ");
	w = overrun(&capacity);
	while (ibv_poll_cq(w->b.scq, 1, &wc) == 1)
		;
	wire_send(&w->b, 900);
	wire_check(other);
	assert_true(ibv_poll_cq(w->b.scq, 1, &wc) <= 0);
}

FX_MAIN("cq")
