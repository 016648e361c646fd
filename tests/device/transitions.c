/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * The state machine of an RC queue pair: which steps exist, which attributes
 * each needs and allows, which values are refused, and what may be posted in
 * which state.
 */

#include <errno.h>
#include <string.h>
#include "wire.h"

static const struct wire_opts opts = WIRE_DEFAULTS;

static const enum ibv_qp_state states[] = {IBV_QPS_RESET, IBV_QPS_INIT,
					   IBV_QPS_RTR,	  IBV_QPS_RTS,
					   IBV_QPS_SQD,	  IBV_QPS_ERR};

static const char *const names[] = {"RESET", "INIT", "RTR", "RTS",
				    "SQD",   "SQE",  "ERR"};

/* Rows: from; columns: to. */
static const bool legal[6][6] = {
	/*         RESET  INIT   RTR    RTS    SQD    ERR */
	/*RESET*/ {true, true, false, false, false, false},
	/*INIT*/ {true, true, true, false, false, true},
	/*RTR*/ {true, false, false, true, false, true},
	/*RTS*/ {true, false, false, true, true, true},
	/*SQD*/ {true, false, false, true, true, true},
	/*ERR*/ {true, false, false, false, false, true},
};

static void assert_state(struct ibv_qp *qp, enum ibv_qp_state state)
{
	struct ibv_qp_attr attr;
	struct ibv_qp_init_attr init;

	assert_int_equal(ibv_query_qp(qp, &attr, IBV_QP_STATE, &init), 0);
	assert_int_equal(attr.qp_state, state);
	assert_int_equal(qp->state, state);
}

/* What the step from, to needs; for a step that is none, what to needs. */
static int canonical(enum ibv_qp_state from, enum ibv_qp_state to, uint32_t qpn,
		     struct ibv_qp_attr *attr)
{
	if (to == IBV_QPS_INIT)
		return wire_to_init(&opts, attr);
	if (to == IBV_QPS_RTR)
		return wire_to_rtr(&opts, qpn, attr);
	if (to == IBV_QPS_RTS && from != IBV_QPS_RTS && from != IBV_QPS_SQD)
		return wire_to_rts(&opts, attr);
	memset(attr, 0, sizeof(*attr));
	attr->qp_state = to;
	return IBV_QP_STATE;
}

static void bring(struct ibv_qp *qp, enum ibv_qp_state state)
{
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_SQD};

	wire_move(&opts, qp, qp->qp_num,
		  state == IBV_QPS_SQD ? IBV_QPS_RTS : state);
	if (state == IBV_QPS_SQD)
		assert_int_equal(ibv_modify_qp(qp, &attr, IBV_QP_STATE), 0);
	assert_state(qp, state);
}

/* A QP that is still being drained may be left only for the error state. */
static bool may_be_draining(unsigned from, unsigned to)
{
	return states[from] == IBV_QPS_SQD && states[to] != IBV_QPS_ERR &&
	       !dut.traits->sqd_is_drained_at_once;
}

static void check_step(unsigned from, unsigned to)
{
	size_t mark = fx_mark();
	struct ibv_qp_attr attr;
	struct end e;
	int mask;
	int ret;

	wire_end(&opts, &e);
	bring(e.qp, states[from]);
	mask = canonical(states[from], states[to], e.qp->qp_num, &attr);
	ret = ibv_modify_qp(e.qp, &attr, mask);
	if (ret != (legal[from][to] ? 0 : EINVAL) &&
	    !(may_be_draining(from, to) && ret == EINVAL))
		fail_msg("%s -> %s gave %d", names[states[from]],
			 names[states[to]], ret);
	assert_state(e.qp, ret ? states[from] : states[to]);
	fx_release(mark);
}

FX_TEST(modify_qp__every_pair_of_states)
{
	for (unsigned from = 0; from < FX_COUNT(states); ++from)
		for (unsigned to = 0; to < FX_COUNT(states); ++to)
			check_step(from, to);
}

struct step {
	enum ibv_qp_state from;
	enum ibv_qp_state to;
	int allowed;   /* besides what is needed */
	int forbidden; /* some that are not */
};

static const struct step steps[] = {
	{IBV_QPS_RESET, IBV_QPS_INIT, 0,
	 IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_TIMEOUT | IBV_QP_SQ_PSN |
		 IBV_QP_RQ_PSN | IBV_QP_DEST_QPN | IBV_QP_RNR_RETRY |
		 IBV_QP_MIN_RNR_TIMER | IBV_QP_QKEY},
	{IBV_QPS_INIT, IBV_QPS_RTR, IBV_QP_ACCESS_FLAGS | IBV_QP_PKEY_INDEX,
	 IBV_QP_PORT | IBV_QP_TIMEOUT | IBV_QP_SQ_PSN | IBV_QP_RNR_RETRY |
		 IBV_QP_RETRY_CNT | IBV_QP_MAX_QP_RD_ATOMIC | IBV_QP_QKEY},
	{IBV_QPS_RTR, IBV_QPS_RTS, IBV_QP_ACCESS_FLAGS | IBV_QP_MIN_RNR_TIMER,
	 IBV_QP_PORT | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN |
		 IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_PKEY_INDEX |
		 IBV_QP_QKEY},
	{IBV_QPS_RTS, IBV_QPS_RTS, IBV_QP_ACCESS_FLAGS | IBV_QP_MIN_RNR_TIMER,
	 IBV_QP_PORT | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN |
		 IBV_QP_RQ_PSN | IBV_QP_SQ_PSN | IBV_QP_TIMEOUT |
		 IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_PKEY_INDEX},
};

/* Valid values for whatever bit is added to a step's mask. */
static void add_values(struct ibv_qp_attr *attr, uint32_t qpn)
{
	struct ibv_qp_attr rtr;

	wire_to_rtr(&opts, qpn, &rtr);
	attr->ah_attr = rtr.ah_attr;
	attr->path_mtu = rtr.path_mtu;
	attr->dest_qp_num = qpn;
	attr->max_dest_rd_atomic = 1;
	attr->max_rd_atomic = 1;
	attr->min_rnr_timer = 12;
	attr->timeout = 14;
	attr->retry_cnt = 7;
	attr->rnr_retry = 7;
	attr->port_num = 1;
	attr->qp_access_flags = FX_REMOTE_ACCESS;
}

static void try_mask(const struct step *s, int added, int removed, int want)
{
	size_t mark = fx_mark();
	struct ibv_qp_attr attr;
	struct end e;
	int mask;
	int ret;

	wire_end(&opts, &e);
	bring(e.qp, s->from);
	mask = canonical(s->from, s->to, e.qp->qp_num, &attr);
	add_values(&attr, e.qp->qp_num);
	ret = ibv_modify_qp(e.qp, &attr, (mask | added) & ~removed);
	if (ret != want)
		fail_msg("%s -> %s with %#x, without %#x: %d, not %d",
			 names[s->from], names[s->to], added, removed, ret,
			 want);
	assert_state(e.qp, ret ? s->from : s->to);
	fx_release(mark);
}

FX_TEST(modify_qp__missing_attribute_EINVAL)
{
	for (unsigned i = 0; i < FX_COUNT(steps); ++i) {
		struct ibv_qp_attr attr;
		int needed = canonical(steps[i].from, steps[i].to, 1, &attr);

		needed &= ~IBV_QP_STATE;
		for (int bit = 1; bit <= needed; bit <<= 1)
			if (needed & bit)
				try_mask(&steps[i], 0, bit, EINVAL);
	}
}

FX_TEST(modify_qp__forbidden_attribute_EINVAL)
{
	for (unsigned i = 0; i < FX_COUNT(steps); ++i)
		for (int bit = 1; bit <= steps[i].forbidden; bit <<= 1)
			if (steps[i].forbidden & bit)
				try_mask(&steps[i], bit, 0, EINVAL);
}

FX_TEST(modify_qp__optional_attributes_taken)
{
	for (unsigned i = 0; i < FX_COUNT(steps); ++i)
		try_mask(&steps[i], steps[i].allowed, 0, 0);
}

typedef void (*spoil)(struct ibv_qp_attr *attr);

static void port_0(struct ibv_qp_attr *attr)
{
	attr->port_num = 0;
}

static void port_beyond(struct ibv_qp_attr *attr)
{
	attr->port_num = (uint8_t)(dut.attr.phys_port_cnt + 1);
}

static void pkey_beyond(struct ibv_qp_attr *attr)
{
	attr->pkey_index = dut.port.pkey_tbl_len;
}

static void mtu_beyond(struct ibv_qp_attr *attr)
{
	attr->path_mtu = IBV_MTU_4096 + 1;
}

static void sgid_beyond(struct ibv_qp_attr *attr)
{
	attr->ah_attr.grh.sgid_index = 255;
}

static void no_grh(struct ibv_qp_attr *attr)
{
	attr->ah_attr.is_global = 0;
}

static void too_many_incoming(struct ibv_qp_attr *attr)
{
	attr->max_dest_rd_atomic = 255;
}

static void too_many_reads(struct ibv_qp_attr *attr)
{
	attr->max_rd_atomic = 255;
}

static void long_timeout(struct ibv_qp_attr *attr)
{
	attr->timeout = 32;
}

FX_TEST(modify_qp__bad_value_refused)
{
	static const struct {
		const char *name;
		enum ibv_qp_state from;
		enum ibv_qp_state to;
		spoil spoiler;
		bool not_by_all; /* some devices take the value */
	} cases[] = {
		{"port 0", IBV_QPS_RESET, IBV_QPS_INIT, port_0, false},
		{"no such port", IBV_QPS_RESET, IBV_QPS_INIT, port_beyond,
		 false},
		{"no such pkey", IBV_QPS_RESET, IBV_QPS_INIT, pkey_beyond,
		 true},
		{"no such mtu", IBV_QPS_INIT, IBV_QPS_RTR, mtu_beyond, false},
		{"no such gid", IBV_QPS_INIT, IBV_QPS_RTR, sgid_beyond, false},
		{"no grh", IBV_QPS_INIT, IBV_QPS_RTR, no_grh, false},
		{"responder depth", IBV_QPS_INIT, IBV_QPS_RTR,
		 too_many_incoming, true},
		{"initiator depth", IBV_QPS_RTR, IBV_QPS_RTS, too_many_reads,
		 false},
		{"timeout", IBV_QPS_RTR, IBV_QPS_RTS, long_timeout, false},
	};

	assert_true(dut.attr.max_qp_rd_atom < 255);
	for (unsigned i = 0; i < FX_COUNT(cases); ++i) {
		size_t mark = fx_mark();
		struct ibv_qp_attr attr;
		struct end e;
		int mask;

		if (cases[i].not_by_all && !dut.traits->checks_all_values)
			continue;
		wire_end(&opts, &e);
		bring(e.qp, cases[i].from);
		mask = canonical(cases[i].from, cases[i].to, e.qp->qp_num,
				 &attr);
		cases[i].spoiler(&attr);
		if (ibv_modify_qp(e.qp, &attr, mask) == 0)
			fail_msg("taken: %s", cases[i].name);
		assert_state(e.qp, cases[i].from);
		fx_release(mark);
	}
}

FX_TEST(reset__makes_the_pair_usable_again)
{
	struct wire *w = wire_new(NULL);

	for (int i = 0; i < 3; ++i) {
		wire_check(w);
		wire_fail(w->a.qp);
		wire_fail(w->b.qp);
		wire_reset(w->a.qp);
		wire_reset(w->b.qp);
		wire_move(NULL, w->a.qp, w->b.qp->qp_num, IBV_QPS_RTS);
		wire_move(NULL, w->b.qp, w->a.qp->qp_num, IBV_QPS_RTS);
	}
	wire_check(w);
}

FX_TEST(post_recv__in_init_is_used_later)
{
	struct end a;
	struct end b;

	fx_far();
	wire_end(NULL, &a);
	fx_near();
	wire_end(NULL, &b);
	a.peer = &b;
	b.peer = &a;
	wire_move(NULL, b.qp, a.qp->qp_num, IBV_QPS_INIT);
	assert_int_equal(wire_recv(&b, 5, 0, 64), 0);
	wire_reset(b.qp);
	wire_move(NULL, b.qp, a.qp->qp_num, IBV_QPS_INIT);
	assert_int_equal(wire_recv(&b, 6, 0, 64), 0);
	wire_reset(b.qp);
	wire_move(NULL, b.qp, a.qp->qp_num, IBV_QPS_RTR);
	assert_int_equal(wire_recv(&b, 7, 0, 64), 0);
	wire_move(NULL, a.qp, b.qp->qp_num, IBV_QPS_RTS);
	assert_int_equal(wire_send(&a, 8), 0);
	fx_expect(b.rcq, 7, IBV_WC_SUCCESS);
	fx_expect(a.scq, 8, IBV_WC_SUCCESS);
	fx_expect_empty(b.rcq);
}

FX_TEST(post__in_a_state_that_forbids_it_EINVAL)
{
	static const enum ibv_qp_state early[] = {IBV_QPS_RESET, IBV_QPS_INIT,
						  IBV_QPS_RTR};

	fx_need(dut.traits->post_checks_state,
		"the device's post does not look at the state");
	for (unsigned i = 0; i < FX_COUNT(early); ++i) {
		size_t mark = fx_mark();
		struct end e;

		wire_end(NULL, &e);
		e.peer = &e;
		bring(e.qp, early[i]);
		assert_int_equal(wire_send(&e, 1), EINVAL);
		assert_int_equal(wire_recv(&e, 2, 0, 8),
				 early[i] == IBV_QPS_RESET ? EINVAL : 0);
		fx_release(mark);
	}
}

FX_TEST(post__in_error_state_is_flushed)
{
	struct wire *w = wire_new(NULL);

	wire_fail(w->a.qp);
	assert_int_equal(wire_recv(&w->a, 1, 0, 8), 0);
	assert_int_equal(wire_send(&w->a, 2), 0);
	fx_expect(w->a.rcq, 1, IBV_WC_WR_FLUSH_ERR);
	fx_expect(w->a.scq, 2, IBV_WC_WR_FLUSH_ERR);
}

FX_TEST(min_rnr_timer__changes_while_connected)
{
	struct wire *w = wire_new(NULL);
	struct ibv_qp_attr attr = {.min_rnr_timer = 14};
	struct ibv_qp_init_attr init;

	assert_int_equal(ibv_modify_qp(w->a.qp, &attr, IBV_QP_MIN_RNR_TIMER),
			 0);
	assert_int_equal(
		ibv_query_qp(w->a.qp, &attr, IBV_QP_MIN_RNR_TIMER, &init), 0);
	assert_int_equal(attr.min_rnr_timer, 14);
	wire_check(w);
}

FX_MAIN("transitions")
