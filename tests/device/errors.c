/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * The work of a failed queue pair: it is flushed in order, every WR once, and
 * the other end sees the failure. Of a completion that is not a success only
 * wr_id, status, qp_num and vendor_err are valid, so the tests read no other
 * field.
 */

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include "wire.h"

/* A peer that does not answer is given up after 2 more tries, 0.07 s each. */
#define IMPATIENT                              \
	{                                      \
		.depth = 16,                   \
		.sge = 1,                      \
		.rnr_retry = 7,                \
		.retry_cnt = 2,                \
		.timeout = 14,                 \
		.min_rnr_timer = 1,            \
		.qp_access = FX_REMOTE_ACCESS, \
		.mr_access = FX_ALL_ACCESS,    \
	}

static void post_bad_write(const struct end *e, uint64_t id, unsigned flags)
{
	struct op op = {
		.code = IBV_WR_RDMA_WRITE, .id = id, .flags = flags, .len = 8};
	struct ibv_send_wr wr;
	struct ibv_send_wr *bad;
	struct ibv_sge sge;

	wire_wr(e, &op, &wr, &sge);
	wr.wr.rdma.rkey ^= 0x55;
	assert_int_equal(ibv_post_send(e->qp, &wr, &bad), 0);
}

static void post_write(const struct end *e, uint64_t id, unsigned flags)
{
	struct op op = {
		.code = IBV_WR_RDMA_WRITE, .id = id, .flags = flags, .len = 8};

	assert_int_equal(wire_post(e, &op), 0);
}

FX_TEST(flush__receives_in_order_of_posting)
{
	struct wire *w = wire_new(NULL);

	for (uint64_t i = 0; i < 16; ++i)
		assert_int_equal(wire_recv(&w->b, 200 + i, 0, 8), 0);
	wire_fail(w->b.qp);
	for (uint64_t i = 0; i < 16; ++i) {
		struct ibv_wc wc =
			fx_expect(w->b.rcq, 200 + i, IBV_WC_WR_FLUSH_ERR);

		assert_int_equal(wc.qp_num, w->b.qp->qp_num);
	}
	fx_expect_empty(w->b.rcq);
}

FX_TEST(flush__sends_after_the_failed_one)
{
	struct wire *w = wire_new(NULL);

	/* waits for a receive, so that all are queued when the second fails */
	assert_int_equal(wire_send(&w->a, 1), 0);
	post_bad_write(&w->a, 2, IBV_SEND_SIGNALED);
	for (uint64_t i = 3; i < 10; ++i)
		post_write(&w->a, i, IBV_SEND_SIGNALED);
	assert_int_equal(wire_recv(&w->b, 50, 0, 8), 0);
	fx_expect(w->a.scq, 1, IBV_WC_SUCCESS);
	fx_expect(w->a.scq, 2, IBV_WC_REM_ACCESS_ERR);
	for (uint64_t i = 3; i < 10; ++i) {
		struct ibv_wc wc = fx_expect(w->a.scq, i, IBV_WC_WR_FLUSH_ERR);

		assert_int_equal(wc.qp_num, w->a.qp->qp_num);
	}
	fx_expect_empty(w->a.scq);
}

FX_TEST(flush__unsignaled_too)
{
	struct wire *w = wire_new(NULL);

	assert_int_equal(wire_send(&w->a, 1), 0);
	post_bad_write(&w->a, 2, 0);
	post_write(&w->a, 3, 0);
	post_write(&w->a, 4, IBV_SEND_SIGNALED);
	assert_int_equal(wire_recv(&w->b, 50, 0, 8), 0);
	fx_expect(w->a.scq, 1, IBV_WC_SUCCESS);
	fx_expect(w->a.scq, 2, IBV_WC_REM_ACCESS_ERR);
	fx_expect(w->a.scq, 3, IBV_WC_WR_FLUSH_ERR);
	fx_expect(w->a.scq, 4, IBV_WC_WR_FLUSH_ERR);
}

FX_TEST(flush__both_queues_of_the_failed_initiator)
{
	struct wire *w = wire_new(NULL);

	assert_int_equal(wire_recv(&w->a, 60, 0, 8), 0);
	assert_int_equal(wire_recv(&w->a, 61, 0, 8), 0);
	post_bad_write(&w->a, 1, IBV_SEND_SIGNALED);
	fx_expect(w->a.scq, 1, IBV_WC_REM_ACCESS_ERR);
	fx_expect(w->a.rcq, 60, IBV_WC_WR_FLUSH_ERR);
	fx_expect(w->a.rcq, 61, IBV_WC_WR_FLUSH_ERR);
}

FX_TEST(flush__both_queues_of_the_failed_responder)
{
	struct wire *w = wire_new(NULL);

	assert_int_equal(wire_recv(&w->b, 60, 0, 8), 0);
	post_bad_write(&w->a, 1, IBV_SEND_SIGNALED);
	fx_expect(w->a.scq, 1, IBV_WC_REM_ACCESS_ERR);
	fx_expect(w->b.rcq, 60, IBV_WC_WR_FLUSH_ERR);
}

FX_TEST(flush__of_a_waiting_send)
{
	struct wire *w = wire_new(NULL);

	for (uint64_t i = 1; i <= 5; ++i)
		assert_int_equal(wire_send(&w->a, i), 0);
	wire_fail(w->a.qp);
	for (uint64_t i = 1; i <= 5; ++i)
		fx_expect(w->a.scq, i, IBV_WC_WR_FLUSH_ERR);
	fx_expect_empty(w->a.scq);
}

FX_TEST(drain__marker_comes_last)
{
	struct wire *w = wire_new(NULL);

	for (uint64_t i = 1; i <= 5; ++i)
		assert_int_equal(wire_recv(&w->a, i, 0, 8), 0);
	wire_fail(w->a.qp);
	assert_int_equal(wire_recv(&w->a, 6, 0, 8), 0);
	assert_int_equal(wire_send(&w->a, 7), 0);
	for (uint64_t i = 1; i <= 6; ++i)
		fx_expect(w->a.rcq, i, IBV_WC_WR_FLUSH_ERR);
	fx_expect(w->a.scq, 7, IBV_WC_WR_FLUSH_ERR);
}

FX_TEST(reset__drops_work_without_completion)
{
	struct wire *w = wire_new(NULL);

	for (uint64_t i = 1; i <= 5; ++i)
		assert_int_equal(wire_recv(&w->b, i, 0, 8), 0);
	wire_reset(w->b.qp);
	fx_expect_empty(w->b.rcq);
	wire_reset(w->a.qp);
	wire_move(NULL, w->a.qp, w->b.qp->qp_num, IBV_QPS_RTS);
	wire_move(NULL, w->b.qp, w->a.qp->qp_num, IBV_QPS_RTS);
	wire_check(w);
	fx_expect_empty(w->b.rcq);
}

FX_TEST(failed__other_pairs_live)
{
	struct wire *one = wire_new(NULL);
	struct wire *two = wire_new(NULL);

	post_bad_write(&one->a, 1, IBV_SEND_SIGNALED);
	fx_expect(one->a.scq, 1, IBV_WC_REM_ACCESS_ERR);
	wire_check(two);
}

FX_TEST(peer_in_error__sender_fails)
{
	struct wire_opts opts = IMPATIENT;
	struct wire *w = wire_new(&opts);

	assert_int_equal(wire_recv(&w->b, 1, 0, 8), 0);
	wire_fail(w->b.qp);
	fx_expect(w->b.rcq, 1, IBV_WC_WR_FLUSH_ERR);
	assert_int_equal(wire_send(&w->a, 2), 0);
	fx_expect(w->a.scq, 2, IBV_WC_RETRY_EXC_ERR);
	assert_int_equal(wire_send(&w->a, 3), 0);
	fx_expect(w->a.scq, 3, IBV_WC_WR_FLUSH_ERR);
}

FX_TEST(peer_destroyed__sender_fails)
{
	struct wire_opts opts = IMPATIENT;
	struct wire *w = wire_new(&opts);

	assert_int_equal(fx_destroy(w->b.qp), 0);
	assert_int_equal(wire_send(&w->a, 2), 0);
	fx_expect(w->a.scq, 2, IBV_WC_RETRY_EXC_ERR);
}

FX_TEST(peer_not_there_yet__sender_fails)
{
	struct wire_opts opts = IMPATIENT;
	struct end a;
	struct end b;

	fx_far();
	wire_end(&opts, &a);
	fx_near();
	wire_end(&opts, &b);
	a.peer = &b;
	wire_move(&opts, a.qp, b.qp->qp_num, IBV_QPS_RTS);
	assert_int_equal(wire_send(&a, 2), 0);
	fx_expect(a.scq, 2, IBV_WC_RETRY_EXC_ERR);
}

/* The peer believes it is connected to another QP than the sender. */
FX_TEST(peer_of_another__sender_fails)
{
	struct wire_opts opts = IMPATIENT;
	struct wire *w = wire_new(&opts);
	struct end stranger;

	wire_end(&opts, &stranger);
	stranger.peer = &w->b;
	wire_move(&opts, stranger.qp, w->b.qp->qp_num, IBV_QPS_RTS);
	assert_int_equal(wire_recv(&w->b, 1, 0, 8), 0);
	assert_int_equal(wire_send(&stranger, 2), 0);
	fx_need(dut.traits->checks_source_qp,
		"packets do not carry the number of their source QP");
	fx_expect(stranger.scq, 2, IBV_WC_RETRY_EXC_ERR);
	fx_expect_empty(w->b.rcq);
}

/* Completions of a destroyed QP may stay in its CQ or vanish: both happen. */
FX_TEST(destroy_qp__with_work_queued)
{
	struct wire *w = wire_new(NULL);
	struct ibv_wc wc[32];
	int n;

	for (uint64_t i = 0; i < 8; ++i) {
		assert_int_equal(wire_recv(&w->a, 100 + i, 0, 8), 0);
		assert_int_equal(wire_send(&w->a, i), 0);
	}
	assert_int_equal(fx_destroy(w->a.qp), 0);
	n = ibv_poll_cq(w->a.scq, 32, wc);
	assert_in_range(n, 0, 8);
	n = ibv_poll_cq(w->a.rcq, 32, wc);
	assert_in_range(n, 0, 8);
}

struct loader {
	const struct end *end;
	struct ibv_send_wr wr; /* names what may be gone by the time of use */
	struct ibv_sge sge;
	atomic_bool started;
	enum ibv_wc_status last;
	int bad;
};

/* Posts and polls until a failure; reports instead of asserting. */
static void *load_until_failure(void *arg)
{
	struct loader *l = arg;
	struct ibv_send_wr *bad;
	struct ibv_wc wc = {.status = IBV_WC_SUCCESS};

	while (wc.status == IBV_WC_SUCCESS && !l->bad) {
		l->bad = ibv_post_send(l->end->qp, &l->wr, &bad);
		while (!l->bad && ibv_poll_cq(l->end->scq, 1, &wc) == 0)
			;
		/* release: nothing but the flag; pairs with run_under_load() */
		atomic_store_explicit(&l->started, true, memory_order_release);
	}
	l->last = wc.status;
	return NULL;
}

static enum ibv_wc_status run_under_load(struct wire *w,
					 void (*act)(struct wire *w))
{
	struct op op = {.code = IBV_WR_RDMA_WRITE,
			.flags = IBV_SEND_SIGNALED,
			.len = 1024};
	struct loader loader = {.end = &w->a};
	struct fx_deadline d = fx_deadline();
	pthread_t t;

	wire_wr(&w->a, &op, &loader.wr, &loader.sge);
	assert_int_equal(pthread_create(&t, NULL, load_until_failure, &loader),
			 0);
	/* acquire: pairs with the loader's release */
	while (!atomic_load_explicit(&loader.started, memory_order_acquire))
		fx_check(&d, "the first completion of the load");
	act(w);
	assert_int_equal(pthread_join(t, NULL), 0);
	assert_int_equal(loader.bad, 0);
	return loader.last;
}

static void destroy_peer(struct wire *w)
{
	assert_int_equal(fx_destroy(w->b.qp), 0);
}

static void fail_peer(struct wire *w)
{
	wire_fail(w->b.qp);
}

static void fail_self(struct wire *w)
{
	wire_fail(w->a.qp);
}

static void dereg_at_peer(struct wire *w)
{
	assert_int_equal(fx_destroy(w->b.mr), 0);
}

FX_TEST(load__destroyed_peer_RETRY_EXC_ERR)
{
	struct wire_opts opts = IMPATIENT;

	for (int i = 0; i < 5; ++i) {
		size_t mark = fx_mark();

		assert_int_equal(run_under_load(wire_new(&opts), destroy_peer),
				 IBV_WC_RETRY_EXC_ERR);
		fx_release(mark);
	}
}

FX_TEST(load__failed_peer_RETRY_EXC_ERR)
{
	struct wire_opts opts = IMPATIENT;

	assert_int_equal(run_under_load(wire_new(&opts), fail_peer),
			 IBV_WC_RETRY_EXC_ERR);
}

FX_TEST(load__failed_self_WR_FLUSH_ERR)
{
	for (int i = 0; i < 5; ++i) {
		size_t mark = fx_mark();

		assert_int_equal(run_under_load(wire_new(NULL), fail_self),
				 IBV_WC_WR_FLUSH_ERR);
		fx_release(mark);
	}
}

/* The device may not touch the memory after ibv_dereg_mr has returned. */
FX_TEST(load__deregistered_region_REM_ACCESS_ERR)
{
	for (int i = 0; i < 5; ++i) {
		size_t mark = fx_mark();
		struct wire *w = wire_new(NULL);

		memset(w->a.buf, 0x11, 1024);
		assert_int_equal(run_under_load(w, dereg_at_peer),
				 IBV_WC_REM_ACCESS_ERR);
		fx_release(mark);
	}
}

FX_MAIN("errors")
