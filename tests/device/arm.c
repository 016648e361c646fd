/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * The completions that wake an armed CQ, and how often. A test that wants no
 * event looks once, after the completion was seen: it can overlook a late
 * event, it cannot fail by being slow.
 */

#include "wire.h"

enum arming {
	NOT_ARMED,
	ANY,
	SOLICITED,
	ANY_THEN_SOLICITED,
	SOLICITED_THEN_ANY,
	ARMINGS
};
enum completion {
	PLAIN_RECV,
	SOLICITED_RECV,
	SOLICITED_IMM,
	FLUSHED_RECV,
	PLAIN_SEND,
	FAILED_SEND,
	COMPLETIONS
};

static const char *const arming_names[] = {"not armed", "any", "solicited",
					   "any then solicited",
					   "solicited then any"};
static const char *const completion_names[] = {
	"plain recv",	"solicited recv",  "solicited write with imm",
	"flushed recv", "successful send", "failed send"};

static void arm(struct ibv_cq *cq, int solicited_only)
{
	assert_int_equal(ibv_req_notify_cq(cq, solicited_only), 0);
}

static void arm_as(struct ibv_cq *cq, enum arming how)
{
	if (how == SOLICITED || how == SOLICITED_THEN_ANY)
		arm(cq, 1);
	if (how == ANY || how == ANY_THEN_SOLICITED ||
	    how == SOLICITED_THEN_ANY)
		arm(cq, 0);
	if (how == ANY_THEN_SOLICITED)
		arm(cq, 1);
}

static void deliver(struct wire *w, enum ibv_wr_opcode code, unsigned flags)
{
	struct op op = {.code = code, .id = 2, .flags = flags, .len = 8};

	op.flags |= IBV_SEND_SIGNALED;
	assert_int_equal(wire_post(&w->a, &op), 0);
	fx_drain(w->b.rcq, 1);
	fx_drain(w->a.scq, 1);
}

static void fail_a_send(struct wire *w)
{
	struct ibv_send_wr wr;
	struct ibv_send_wr *bad;
	struct ibv_sge sge;
	struct op op = {.code = IBV_WR_RDMA_WRITE,
			.id = 3,
			.flags = IBV_SEND_SIGNALED,
			.len = 8};

	wire_wr(&w->a, &op, &wr, &sge);
	wr.wr.rdma.rkey ^= 0x55;
	assert_int_equal(ibv_post_send(w->a.qp, &wr, &bad), 0);
	fx_expect(w->a.scq, 3, IBV_WC_REM_ACCESS_ERR);
}

static void complete(struct wire *w, enum completion kind)
{
	switch (kind) {
	case PLAIN_RECV:
	case PLAIN_SEND:
		deliver(w, IBV_WR_SEND, 0);
		break;
	case SOLICITED_RECV:
		deliver(w, IBV_WR_SEND, IBV_SEND_SOLICITED);
		break;
	case SOLICITED_IMM:
		deliver(w, IBV_WR_RDMA_WRITE_WITH_IMM, IBV_SEND_SOLICITED);
		break;
	case FLUSHED_RECV:
		wire_fail(w->b.qp);
		fx_expect(w->b.rcq, 1, IBV_WC_WR_FLUSH_ERR);
		break;
	default:
		fail_a_send(w);
		break;
	}
}

static bool is_woken(enum arming how, enum completion kind)
{
	if (how == NOT_ARMED)
		return false;
	if (how != SOLICITED)
		return true;
	if (kind == FAILED_SEND || kind == FLUSHED_RECV)
		return dut.traits->error_is_solicited;
	return kind == SOLICITED_RECV || kind == SOLICITED_IMM;
}

static void check_arming(enum arming how, enum completion kind)
{
	size_t mark = fx_mark();
	struct wire *w = wire_new(NULL);
	bool of_send = kind == PLAIN_SEND || kind == FAILED_SEND;
	struct end *e = of_send ? &w->a : &w->b;
	struct ibv_cq *cq = of_send ? e->scq : e->rcq;

	assert_int_equal(wire_recv(&w->b, 1, 0, 64), 0);
	arm_as(cq, how);
	complete(w, kind);
	if (is_woken(how, kind))
		fx_expect_event(e->channel, cq);
	else if (fx_readable(e->channel->fd))
		fail_msg("an event of a CQ armed for: %s, of: %s",
			 arming_names[how], completion_names[kind]);
	assert_false(fx_readable(e->channel->fd));
	fx_release(mark);
}

static void check_armings(enum completion kind)
{
	for (int how = NOT_ARMED; how < ARMINGS; ++how)
		check_arming((enum arming)how, kind);
}

FX_TEST(arm__plain_recv)
{
	check_armings(PLAIN_RECV);
}

FX_TEST(arm__solicited_recv)
{
	check_armings(SOLICITED_RECV);
}

FX_TEST(arm__solicited_write_with_imm)
{
	check_armings(SOLICITED_IMM);
}

FX_TEST(arm__flushed_recv)
{
	check_armings(FLUSHED_RECV);
}

FX_TEST(arm__successful_send)
{
	check_armings(PLAIN_SEND);
}

FX_TEST(arm__failed_send)
{
	check_armings(FAILED_SEND);
}

static void message(struct wire *w)
{
	assert_int_equal(wire_recv(&w->b, 1, 0, 64), 0);
	assert_int_equal(wire_send(&w->a, 2), 0);
	fx_expect(w->a.scq, 2, IBV_WC_SUCCESS);
	fx_expect(w->b.rcq, 1, IBV_WC_SUCCESS);
}

FX_TEST(arm__is_one_shot)
{
	struct wire *w = wire_new(NULL);

	for (int i = 0; i < 5; ++i) {
		arm(w->b.rcq, 0);
		message(w);
		message(w);
		message(w);
		fx_expect_event(w->b.channel, w->b.rcq);
		assert_false(fx_readable(w->b.channel->fd));
	}
}

FX_TEST(arm__twice_is_one_event)
{
	struct wire *w = wire_new(NULL);

	arm(w->b.rcq, 0);
	arm(w->b.rcq, 0);
	message(w);
	message(w);
	fx_expect_event(w->b.channel, w->b.rcq);
	assert_false(fx_readable(w->b.channel->fd));
}

FX_TEST(arm__again_before_the_event_is_read)
{
	struct wire *w = wire_new(NULL);

	arm(w->b.rcq, 0);
	message(w);
	fx_wait_readable(w->b.channel->fd, "the first event");
	arm(w->b.rcq, 0);
	message(w);
	fx_expect_event(w->b.channel, w->b.rcq);
	fx_expect_event(w->b.channel, w->b.rcq);
	assert_false(fx_readable(w->b.channel->fd));
}

/* With a completion there already, an event may come; a poll must see it. */
FX_TEST(arm__after_the_completion_poll_finds_it)
{
	struct wire *w = wire_new(NULL);

	assert_int_equal(wire_recv(&w->b, 1, 0, 64), 0);
	assert_int_equal(wire_send(&w->a, 2), 0);
	fx_expect(w->a.scq, 2, IBV_WC_SUCCESS);
	arm(w->b.rcq, 0);
	fx_expect(w->b.rcq, 1, IBV_WC_SUCCESS);
	if (fx_readable(w->b.channel->fd))
		fx_expect_event(w->b.channel, w->b.rcq);
	else
		message(w);
}

FX_TEST(event__may_find_the_queue_empty)
{
	struct wire *w = wire_new(NULL);

	arm(w->b.rcq, 0);
	message(w);
	fx_expect_event(w->b.channel, w->b.rcq);
	fx_expect_empty(w->b.rcq);
	arm(w->b.rcq, 0);
	message(w);
	fx_expect_event(w->b.channel, w->b.rcq);
}

FX_MAIN("arm")
