/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * A receiver that is not ready: the sender waits and tries again, as often as
 * its retry count says, for ever at 7. No test here looks at how long.
 */

#include <sched.h>
#include <string.h>
#include "wire.h"

static struct wire *with_retries(uint8_t rnr_retry)
{
	struct wire_opts opts = WIRE_DEFAULTS;

	opts.rnr_retry = rnr_retry;
	return wire_new(&opts);
}

FX_TEST(no_retry__RNR_RETRY_EXC_ERR)
{
	struct wire *w = with_retries(0);

	assert_int_equal(wire_send(&w->a, 1), 0);
	fx_expect(w->a.scq, 1, IBV_WC_RNR_RETRY_EXC_ERR);
	assert_int_equal(wire_send(&w->a, 2), 0);
	fx_expect(w->a.scq, 2, IBV_WC_WR_FLUSH_ERR);
}

FX_TEST(few_retries__RNR_RETRY_EXC_ERR)
{
	for (uint8_t retries = 1; retries < 7; ++retries) {
		struct wire *w = with_retries(retries);

		assert_int_equal(wire_send(&w->a, 1), 0);
		fx_expect(w->a.scq, 1, IBV_WC_RNR_RETRY_EXC_ERR);
	}
}

FX_TEST(exceeded__the_rest_is_flushed)
{
	struct wire *w = with_retries(2);

	for (uint64_t i = 1; i < 6; ++i)
		assert_int_equal(wire_send(&w->a, i), 0);
	fx_expect(w->a.scq, 1, IBV_WC_RNR_RETRY_EXC_ERR);
	for (uint64_t i = 2; i < 6; ++i)
		fx_expect(w->a.scq, i, IBV_WC_WR_FLUSH_ERR);
}

FX_TEST(exceeded__receiver_is_not_harmed)
{
	struct wire *w = with_retries(0);
	struct ibv_qp_attr attr;
	struct ibv_qp_init_attr init;

	assert_int_equal(wire_send(&w->a, 1), 0);
	fx_expect(w->a.scq, 1, IBV_WC_RNR_RETRY_EXC_ERR);
	assert_int_equal(ibv_query_qp(w->b.qp, &attr, IBV_QP_STATE, &init), 0);
	assert_int_equal(attr.qp_state, IBV_QPS_RTS);
	fx_expect_empty(w->b.rcq);
}

/*
 * Long enough for many tries of 10 us, and not asserted upon. A poll in another
 * process lasts longer than a try. Each yield lets the busy threads of a loaded
 * machine run for a slice, so yields are few.
 */
static void let_it_try(const struct wire *w)
{
	int polls = w->a.qp->context == dut.verbs ? 20000 : 100;

	for (int i = 0; i < polls; ++i) {
		fx_expect_empty(w->a.scq);
		if (i % 100 == 0)
			sched_yield();
	}
}

FX_TEST(endless__completes_when_a_receive_comes)
{
	struct wire *w = with_retries(7);

	w->a.buf[0] = 66;
	assert_int_equal(wire_send(&w->a, 1), 0);
	let_it_try(w);
	assert_int_equal(wire_recv(&w->b, 2, 64, 8), 0);
	fx_expect(w->b.rcq, 2, IBV_WC_SUCCESS);
	fx_expect(w->a.scq, 1, IBV_WC_SUCCESS);
	assert_int_equal(w->b.buf[64], 66);
	wire_check(w);
}

FX_TEST(endless__many_waiting_keep_their_order)
{
	struct wire *w = with_retries(7);

	for (uint64_t i = 0; i < 16; ++i)
		assert_int_equal(wire_send(&w->a, i), 0);
	for (uint64_t i = 0; i < 16; ++i) {
		fx_expect_empty(w->a.scq);
		assert_int_equal(wire_recv(&w->b, 100 + i, 0, 8), 0);
		fx_expect(w->b.rcq, 100 + i, IBV_WC_SUCCESS);
		fx_expect(w->a.scq, i, IBV_WC_SUCCESS);
	}
}

FX_TEST(waiting__holds_up_what_follows)
{
	struct wire *w = with_retries(7);
	struct op write = {.code = IBV_WR_RDMA_WRITE,
			   .id = 2,
			   .flags = IBV_SEND_SIGNALED,
			   .len = 8,
			   .to = 512};

	w->a.buf[0] = 77;
	assert_int_equal(wire_send(&w->a, 1), 0);
	assert_int_equal(wire_post(&w->a, &write), 0);
	let_it_try(w);
	assert_int_equal(w->b.buf[512], 0);
	assert_int_equal(wire_recv(&w->b, 3, 0, 8), 0);
	fx_expect(w->a.scq, 1, IBV_WC_SUCCESS);
	fx_expect(w->a.scq, 2, IBV_WC_SUCCESS);
	assert_int_equal(w->b.buf[512], 77);
}

FX_TEST(waiting__other_direction_flows)
{
	struct wire *w = with_retries(7);

	assert_int_equal(wire_send(&w->a, 1), 0);
	for (int i = 0; i < 10; ++i) {
		assert_int_equal(wire_recv(&w->a, 5, 64, 8), 0);
		assert_int_equal(wire_send(&w->b, 6), 0);
		fx_expect(w->a.rcq, 5, IBV_WC_SUCCESS);
		fx_expect(w->b.scq, 6, IBV_WC_SUCCESS);
	}
	fx_expect_empty(w->a.scq);
	assert_int_equal(wire_recv(&w->b, 2, 64, 8), 0);
	fx_expect(w->a.scq, 1, IBV_WC_SUCCESS);
}

FX_TEST(write_with_imm__needs_a_receive)
{
	struct wire *w = with_retries(1);
	struct op op = {.code = IBV_WR_RDMA_WRITE_WITH_IMM,
			.id = 1,
			.flags = IBV_SEND_SIGNALED,
			.len = 8,
			.imm = 1};

	assert_int_equal(wire_post(&w->a, &op), 0);
	fx_expect(w->a.scq, 1, IBV_WC_RNR_RETRY_EXC_ERR);
}

FX_TEST(one_sided__needs_no_receive)
{
	static const enum ibv_wr_opcode codes[] = {
		IBV_WR_RDMA_WRITE, IBV_WR_RDMA_READ,
		IBV_WR_ATOMIC_FETCH_AND_ADD, IBV_WR_ATOMIC_CMP_AND_SWP};
	struct wire *w = with_retries(0);

	for (unsigned i = 0; i < FX_COUNT(codes); ++i) {
		struct op op = {.code = codes[i],
				.id = i,
				.flags = IBV_SEND_SIGNALED,
				.len = 8};

		assert_int_equal(wire_post(&w->a, &op), 0);
		fx_expect(w->a.scq, i, IBV_WC_SUCCESS);
	}
}

FX_TEST(waiting__destroyed_receiver_fails_the_sender)
{
	struct wire_opts opts = WIRE_DEFAULTS;
	struct wire *w;

	opts.retry_cnt = 2;
	opts.timeout = 16;
	w = wire_new(&opts);
	assert_int_equal(wire_send(&w->a, 1), 0);
	let_it_try(w);
	assert_int_equal(fx_destroy(w->b.qp), 0);
	fx_expect(w->a.scq, 1, IBV_WC_RETRY_EXC_ERR);
}

FX_TEST(waiting__sender_can_be_destroyed)
{
	struct wire *w = with_retries(7);
	bool is_split;

	assert_int_equal(wire_send(&w->a, 1), 0);
	let_it_try(w);
	is_split = w->a.qp->context != dut.verbs;
	assert_int_equal(fx_destroy(w->a.qp), 0);
	assert_int_equal(wire_recv(&w->b, 2, 0, 8), 0);
	/* from another process its last try may be on the way yet */
	if (!is_split)
		fx_expect_empty(w->b.rcq);
}

/* With an impatient receiver too, retries end only when they are used up. */
FX_TEST(timers__every_code_is_taken)
{
	static const uint8_t codes[] = {1, 2, 5, 12};

	for (unsigned i = 0; i < FX_COUNT(codes); ++i) {
		struct wire_opts opts = WIRE_DEFAULTS;
		struct wire *w;

		opts.rnr_retry = 1;
		opts.min_rnr_timer = codes[i];
		w = wire_new(&opts);
		assert_int_equal(wire_send(&w->a, 1), 0);
		fx_expect(w->a.scq, 1, IBV_WC_RNR_RETRY_EXC_ERR);
	}
}

FX_MAIN("rnr")
