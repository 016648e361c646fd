/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * A failed send of an unreliable queue pair: it ends the send queue alone, in
 * the state SQE. What was posted behind it is flushed, receives go on, and the
 * queue pair goes back to RTS. Each test runs for UC and for UD.
 */

#include <arpa/inet.h>
#include <errno.h>
#include <string.h>
#include "office.h"

#define LEN 64u

/* Two ends of one type: of a connection, or each with a way to the other. */
struct pair {
	enum ibv_qp_type type;
	struct end *a;
	struct end *b;
	struct wire *w;
	struct post_office offices[2];
};

static struct pair pair; /* the fixture: of the test that runs */

static void pair_open(enum ibv_qp_type type)
{
	struct wire_opts opts = WIRE_DEFAULTS;

	memset(&pair, 0, sizeof(pair));
	pair.type = type;
	if (type == IBV_QPT_UC) {
		opts.is_uc = true;
		pair.w = wire_new(&opts);
		pair.a = &pair.w->a;
		pair.b = &pair.w->b;
		return;
	}
	office_open_two(&pair.offices[0], &pair.offices[1]);
	pair.a = &pair.offices[0].e;
	pair.b = &pair.offices[1].e;
}

static int post(const struct end *from, const struct end *to, uint64_t id,
		uint32_t lkey)
{
	struct ibv_sge sge = {(uintptr_t)from->buf, LEN, lkey};
	struct ibv_send_wr *bad, wr = {
					 .wr_id = id,
					 .sg_list = &sge,
					 .num_sge = 1,
					 .opcode = IBV_WR_SEND_WITH_IMM,
					 .send_flags = IBV_SEND_SIGNALED,
					 .imm_data = htonl((uint32_t)id),
				 };

	if (pair.type == IBV_QPT_UD) {
		wr.wr.ud.ah = pair.offices[from == pair.b].ah;
		wr.wr.ud.remote_qpn = to->qp->qp_num;
		wr.wr.ud.remote_qkey = OFFICE_QKEY;
	}
	return ibv_post_send(from->qp, &wr, &bad);
}

static void post_good(const struct end *from, const struct end *to, uint64_t id)
{
	assert_int_equal(post(from, to, id, from->mr->lkey), 0);
}

/* A send that reads what is nobody's. */
static void post_bad(uint64_t id)
{
	assert_int_equal(post(pair.a, pair.b, id, pair.a->mr->lkey ^ 0x5500),
			 0);
}

static void post_recv(const struct end *end, uint64_t id)
{
	assert_int_equal(wire_recv(end, id, 512, OFFICE_GRH + LEN), 0);
}

static void assert_state(enum ibv_qp_state state)
{
	struct ibv_qp_attr attr;
	struct ibv_qp_init_attr init;

	assert_int_equal(ibv_query_qp(pair.a->qp, &attr, IBV_QP_STATE, &init),
			 0);
	assert_int_equal(attr.qp_state, state);
	assert_int_equal(pair.a->qp->state, state);
}

static int modify(enum ibv_qp_state to, int mask)
{
	struct ibv_qp_attr attr = {.qp_state = to,
				   .cur_qp_state = IBV_QPS_SQE,
				   .qkey = OFFICE_QKEY,
				   .qp_access_flags = FX_REMOTE_ACCESS,
				   .port_num = 1};

	return ibv_modify_qp(pair.a->qp, &attr, IBV_QP_STATE | mask);
}

/* End a in SQE, with nothing left to poll. */
static void fail_send(enum ibv_qp_type type)
{
	pair_open(type);
	fx_need(dut.traits->has_sqe,
		"the device knows no SQE: the queue pair goes to ERR");
	post_bad(1);
	fx_expect(pair.a->scq, 1, dut.traits->bad_gather);
	assert_state(IBV_QPS_SQE);
}

static const enum ibv_qp_type types[] = {IBV_QPT_UC, IBV_QPT_UD};

/* Runs the test for each type, with what it makes gone in between. */
static void for_each_type(void (*test)(enum ibv_qp_type type))
{
	for (unsigned i = 0; i < FX_COUNT(types); ++i) {
		size_t mark = fx_mark();

		test(types[i]);
		fx_release(mark);
	}
}

static void failed(enum ibv_qp_type type)
{
	pair_open(type);
	post_bad(1);
	fx_expect(pair.a->scq, 1, dut.traits->bad_gather);
	assert_state(dut.traits->has_sqe ? IBV_QPS_SQE : IBV_QPS_ERR);
}

FX_TEST(send__that_fails_breaks_its_queue)
{
	for_each_type(failed);
}

static void flushed(enum ibv_qp_type type)
{
	fail_send(type);
	post_good(pair.a, pair.b, 2);
	post_good(pair.a, pair.b, 3);
	fx_expect(pair.a->scq, 2, IBV_WC_WR_FLUSH_ERR);
	fx_expect(pair.a->scq, 3, IBV_WC_WR_FLUSH_ERR);
	assert_state(IBV_QPS_SQE);
}

FX_TEST(send__in_sqe_is_flushed)
{
	for_each_type(flushed);
}

static void receives(enum ibv_qp_type type)
{
	pair_open(type);
	post_recv(pair.a, 10);
	fx_need(dut.traits->has_sqe,
		"the device knows no SQE: the queue pair goes to ERR");
	post_bad(1);
	fx_expect(pair.a->scq, 1, dut.traits->bad_gather);
	post_recv(pair.a, 11);
	fx_expect_empty(pair.a->rcq);
	for (uint64_t id = 10; id < 12; ++id) {
		post_good(pair.b, pair.a, id);
		fx_expect(pair.b->scq, id, IBV_WC_SUCCESS);
		fx_expect(pair.a->rcq, id, IBV_WC_SUCCESS);
	}
	assert_state(IBV_QPS_SQE);
}

FX_TEST(receive__goes_on_in_sqe)
{
	for_each_type(receives);
}

static void returns_to_rts(enum ibv_qp_type type)
{
	int allowed = IBV_QP_CUR_STATE |
		      (type == IBV_QPT_UD ? IBV_QP_QKEY : IBV_QP_ACCESS_FLAGS);

	fail_send(type);
	assert_int_equal(modify(IBV_QPS_RTS, allowed), 0);
	assert_state(IBV_QPS_RTS);
	post_recv(pair.b, 20);
	post_good(pair.a, pair.b, 2);
	fx_expect(pair.a->scq, 2, IBV_WC_SUCCESS);
	fx_expect(pair.b->rcq, 20, IBV_WC_SUCCESS);
}

FX_TEST(modify_qp__from_sqe_to_rts)
{
	for_each_type(returns_to_rts);
}

static void others(enum ibv_qp_type type)
{
	fail_send(type);
	assert_int_equal(modify(IBV_QPS_INIT,
				IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY),
			 EINVAL);
	assert_int_equal(modify(IBV_QPS_RTR, 0), EINVAL);
	assert_int_equal(modify(IBV_QPS_SQD, 0), EINVAL);
	assert_int_equal(modify(IBV_QPS_SQE, 0), EINVAL);
	assert_int_equal(modify(IBV_QPS_RTS, IBV_QP_SQ_PSN), EINVAL);
	assert_state(IBV_QPS_SQE);
	assert_int_equal(modify(IBV_QPS_ERR, 0), 0);
	assert_state(IBV_QPS_ERR);
}

FX_TEST(modify_qp__from_sqe_to_others)
{
	for_each_type(others);
}

static void resets(enum ibv_qp_type type)
{
	fail_send(type);
	assert_int_equal(modify(IBV_QPS_RESET, 0), 0);
	assert_state(IBV_QPS_RESET);
}

FX_TEST(modify_qp__from_sqe_to_reset)
{
	for_each_type(resets);
}

/* No program asks for SQE. */
static void asks(enum ibv_qp_type type)
{
	pair_open(type);
	assert_int_equal(modify(IBV_QPS_SQE, 0), EINVAL);
	assert_state(IBV_QPS_RTS);
}

FX_TEST(modify_qp__to_sqe_EINVAL)
{
	for_each_type(asks);
}

FX_MAIN("sqe")
