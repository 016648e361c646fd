/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * remote_windows.c -- memory windows that one process binds and another one
 * uses, until it or the owner takes them away.
 */

#include "meet.h"

#define VIEW 50000u /* bytes of the window: four parts, from the beginning */

enum { OWNER, USER };

static const struct meet_opts patient = {.rnr_retry = 7};

/* --- the owner's window */

struct view {
	struct meet *m;
	struct ibv_mr *mr;
	struct ibv_mw *mw;
};

static struct ibv_mw_bind_info info(struct view *v, uint64_t length)
{
	return (struct ibv_mw_bind_info){
		.mr = v->mr,
		.addr = (uintptr_t)v->m->mem,
		.length = length,
		.mw_access_flags = IBV_ACCESS_REMOTE_WRITE,
	};
}

static void bind_verb(struct view *v, uint64_t length)
{
	struct ibv_mw_bind bind = {
		.wr_id = 1,
		.send_flags = IBV_SEND_SIGNALED,
		.bind_info = info(v, length),
	};

	assert_int_equal(ibv_bind_mw(v->m->end.qp, v->mw, &bind), 0);
	end_expect(&v->m->end, 1, IBV_WC_SUCCESS);
}

static void bind_request(struct view *v)
{
	struct ibv_send_wr *bad,
		wr = {
			.wr_id = 1,
			.opcode = IBV_WR_BIND_MW,
			.send_flags = IBV_SEND_SIGNALED,
			.bind_mw = {.mw = v->mw,
				    .rkey = ibv_inc_rkey(v->mw->rkey),
				    .bind_info = info(v, VIEW)},
		};

	assert_int_equal(ibv_post_send(v->m->end.qp, &wr, &bad), 0);
	end_expect(&v->m->end, 1, IBV_WC_SUCCESS);
	v->mw->rkey = wr.bind_mw.rkey;
}

static void view_open(struct view *v, struct meet *m, enum ibv_mw_type type)
{
	v->m = m;
	v->mr = ibv_reg_mr(m->end.pd, m->mem, MEET_SIZE,
			   IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_MW_BIND);
	v->mw = ibv_alloc_mw(m->end.pd, type);
	assert_non_null(v->mr);
	assert_non_null(v->mw);
	if (type == IBV_MW_TYPE_1)
		bind_verb(v, VIEW);
	else
		bind_request(v);
}

static void view_close(struct view *v)
{
	assert_int_equal(ibv_dealloc_mw(v->mw), 0);
	assert_int_equal(ibv_dereg_mr(v->mr), 0);
}

/* --- both */

/* The owner gives the window's key, and the user writes with it. */
static void tell_key(struct meet *m, uint32_t rkey)
{
	const struct meet_side mine = {m->end.qp->qp_num, rkey,
				       (uintptr_t)m->mem};

	two_swap(m->self, &mine, &m->other, sizeof(mine));
}

static void write_with(struct meet *m, uint32_t to, enum ibv_wc_status status)
{
	meet_fill(m, 0, VIEW, 5);
	assert_int_equal(meet_post(m, IBV_WR_RDMA_WRITE, 2, 0, VIEW, to, 0), 0);
	end_expect(&m->end, 2, status);
}

static void unbound_by_the_owner(const struct two_process *self)
{
	struct meet m = {0};
	struct view v;

	meet_begin(&m, self, &patient);
	if (self->number == OWNER)
		view_open(&v, &m, IBV_MW_TYPE_1);
	tell_key(&m, self->number == OWNER ? v.mw->rkey : 0);
	if (self->number == USER)
		write_with(&m, 0, IBV_WC_SUCCESS);
	two_wait(self);
	if (self->number == OWNER) {
		meet_check(&m, 0, VIEW, 5);
		bind_verb(&v, 0);
	}
	two_wait(self);
	if (self->number == USER)
		write_with(&m, 0, IBV_WC_REM_ACCESS_ERR);
	two_wait(self);
	if (self->number == OWNER)
		view_close(&v);
	meet_end(&m);
}

static void beyond_its_end(const struct two_process *self)
{
	struct meet m = {0};
	struct view v;

	meet_begin(&m, self, &patient);
	if (self->number == OWNER)
		view_open(&v, &m, IBV_MW_TYPE_2);
	tell_key(&m, self->number == OWNER ? v.mw->rkey : 0);
	if (self->number == USER)
		write_with(&m, 1, IBV_WC_REM_ACCESS_ERR);
	two_wait(self);
	if (self->number == OWNER) {
		/* nothing of it: the whole is looked at with the first part */
		for (uint32_t i = 0; i < VIEW; i++)
			assert_int_equal(m.mem[i], 0);
		view_close(&v);
	}
	meet_end(&m);
}

static void send_with_inv(struct meet *m)
{
	struct ibv_send_wr *bad, wr = {
					 .wr_id = 3,
					 .opcode = IBV_WR_SEND_WITH_INV,
					 .send_flags = IBV_SEND_SIGNALED,
					 .invalidate_rkey = m->other.rkey,
				 };

	assert_int_equal(ibv_post_send(m->end.qp, &wr, &bad), 0);
	end_expect(&m->end, 3, IBV_WC_SUCCESS);
}

static void expect_invalidated(struct view *v)
{
	struct ibv_wc wc;

	while (!ibv_poll_cq(v->m->end.cq, 1, &wc))
		;
	assert_int_equal(wc.status, IBV_WC_SUCCESS);
	assert_true(wc.wc_flags & IBV_WC_WITH_INV);
	assert_int_equal(wc.invalidated_rkey, v->mw->rkey);
}

static void invalidated_by_the_user(const struct two_process *self)
{
	struct meet m = {0};
	struct view v;

	meet_begin(&m, self, &patient);
	if (self->number == OWNER) {
		view_open(&v, &m, IBV_MW_TYPE_2);
		assert_int_equal(meet_recv(&m, 4, 0, 8), 0);
	}
	tell_key(&m, self->number == OWNER ? v.mw->rkey : 0);
	if (self->number == USER) {
		write_with(&m, 0, IBV_WC_SUCCESS);
		send_with_inv(&m);
		write_with(&m, 0, IBV_WC_REM_ACCESS_ERR);
	} else {
		expect_invalidated(&v);
	}
	two_wait(self);
	if (self->number == OWNER) {
		meet_check(&m, 0, VIEW, 5);
		view_close(&v);
	}
	meet_end(&m);
}

/* --- tests */

static void run(two_body_fn *body)
{
	struct two_process p[2] = {0};

	two_run(p, body);
}

TEST(window__unbound_by_its_owner_REM_ACCESS_ERR)
{
	run(unbound_by_the_owner);
}

TEST(window__beyond_its_end_REM_ACCESS_ERR)
{
	run(beyond_its_end);
}

TEST(window__invalidated_by_its_user_REM_ACCESS_ERR)
{
	run(invalidated_by_the_user);
}

TEST_MAIN()
