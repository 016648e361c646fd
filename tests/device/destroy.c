/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * The order of destruction: an object that others refer to is busy, one without
 * references is destroyed, and one whose handle was damaged is refused.
 */

#include <errno.h>
#include <string.h>
#include "wire.h"

FX_TEST(dealloc_pd__with_mr_EBUSY)
{
	struct ibv_pd *pd = fx_pd();
	struct ibv_mr *mr = fx_mr(pd, 4096, FX_ALL_ACCESS);

	assert_int_equal(fx_destroy(pd), EBUSY);
	assert_int_equal(fx_destroy(mr), 0);
	assert_int_equal(fx_destroy(pd), 0);
}

FX_TEST(dealloc_pd__with_qp_EBUSY)
{
	struct ibv_pd *pd = fx_pd();
	struct ibv_cq *cq = fx_cq(8, NULL, NULL);
	struct ibv_qp_init_attr attr = {.send_cq = cq,
					.recv_cq = cq,
					.qp_type = IBV_QPT_RC,
					.cap = {1, 1, 1, 1, 0}};
	struct ibv_qp *qp = fx_qp(pd, &attr);

	assert_int_equal(fx_destroy(pd), EBUSY);
	assert_int_equal(fx_destroy(qp), 0);
	assert_int_equal(fx_destroy(pd), 0);
}

FX_TEST(dealloc_pd__with_srq_EBUSY)
{
	struct ibv_pd *pd = fx_pd();
	struct ibv_srq *srq = fx_srq(pd, 4);

	assert_int_equal(fx_destroy(pd), EBUSY);
	assert_int_equal(fx_destroy(srq), 0);
	assert_int_equal(fx_destroy(pd), 0);
}

FX_TEST(destroy_cq__with_qp_EBUSY)
{
	struct end e;

	wire_end(NULL, &e);
	assert_int_equal(fx_destroy(e.scq), EBUSY);
	assert_int_equal(fx_destroy(e.rcq), EBUSY);
	assert_int_equal(fx_destroy(e.qp), 0);
	assert_int_equal(fx_destroy(e.scq), 0);
	assert_int_equal(fx_destroy(e.rcq), 0);
}

FX_TEST(destroy_cq__busy_works_on)
{
	struct wire *w = wire_new(NULL);

	assert_int_equal(fx_destroy(w->a.scq), EBUSY);
	assert_int_equal(fx_destroy(w->b.rcq), EBUSY);
	assert_int_equal(fx_destroy(w->a.pd), EBUSY);
	wire_check(w);
}

FX_TEST(destroy_srq__with_qp_EBUSY)
{
	struct wire_opts opts = WIRE_DEFAULTS;
	struct wire *w;

	opts.srq_pd = fx_pd();
	opts.srq = fx_srq(opts.srq_pd, 4);
	w = wire_new(&opts);
	assert_int_equal(fx_destroy(opts.srq), EBUSY);
	assert_int_equal(fx_destroy(w->b.qp), 0);
	assert_int_equal(fx_destroy(opts.srq), 0);
}

FX_TEST(destroy_srq__with_receives_posted)
{
	struct ibv_pd *pd = fx_pd();
	struct ibv_srq *srq = fx_srq(pd, 4);
	struct ibv_mr *mr = fx_mr(pd, 4096, FX_ALL_ACCESS);

	assert_int_equal(wire_srq_recv(srq, mr, 1), 0);
	assert_int_equal(fx_destroy(srq), 0);
}

FX_TEST(destroy_channel__with_cq_EBUSY)
{
	struct ibv_comp_channel *ch = fx_channel();
	struct ibv_cq *one = fx_cq(4, NULL, ch);
	struct ibv_cq *two = fx_cq(4, NULL, ch);

	assert_int_equal(fx_destroy(ch), EBUSY);
	assert_int_equal(fx_destroy(one), 0);
	assert_int_equal(fx_destroy(ch), EBUSY);
	assert_int_equal(fx_destroy(two), 0);
	assert_int_equal(fx_destroy(ch), 0);
}

FX_TEST(destroy_cq__with_completions_unpolled)
{
	struct wire *w = wire_new(NULL);

	assert_int_equal(wire_recv(&w->b, 1, 0, 8), 0);
	assert_int_equal(wire_send(&w->a, 2), 0);
	fx_expect(w->a.scq, 2, IBV_WC_SUCCESS);
	assert_int_equal(fx_destroy(w->b.qp), 0);
	assert_int_equal(fx_destroy(w->b.rcq), 0);
}

FX_TEST(destroy_cq__armed)
{
	struct ibv_comp_channel *ch = fx_channel();
	struct ibv_cq *cq = fx_cq(4, NULL, ch);

	assert_int_equal(ibv_req_notify_cq(cq, 0), 0);
	assert_int_equal(fx_destroy(cq), 0);
	assert_false(fx_readable(ch->fd));
}

FX_TEST(dereg_mr__while_receives_name_it)
{
	struct wire *w = wire_new(NULL);

	assert_int_equal(wire_recv(&w->b, 1, 0, 8), 0);
	assert_int_equal(fx_destroy(w->b.mr), 0);
	assert_int_equal(wire_send(&w->a, 2), 0);
	fx_expect(w->b.rcq, 1, dut.traits->bad_recv_lkey);
	fx_expect(w->a.scq, 2, IBV_WC_REM_OP_ERR);
}

/* Each object, again and again: a leak of identifiers would show. */
FX_TEST(objects__made_and_destroyed_many_times)
{
	for (int i = 0; i < 200; ++i) {
		size_t mark = fx_mark();
		struct end e;

		wire_end(NULL, &e);
		fx_srq(e.pd, 4);
		fx_release(mark);
	}
}

#define DAMAGE 0x5a5a0000u

static void assert_refused(int ret)
{
	assert_true(ret == EINVAL || ret == ENOENT || ret == EBADF);
}

FX_TEST(damaged_pd__refused)
{
	struct ibv_pd *pd = fx_pd();
	void *p = fx_alloc(4096);
	struct ibv_mr *mr;

	pd->handle ^= DAMAGE;
	mr = ibv_reg_mr(pd, p, 4096, FX_ALL_ACCESS);
	assert_refused(ibv_dealloc_pd(pd));
	pd->handle ^= DAMAGE;
	assert_null(mr);
	assert_int_equal(fx_destroy(pd), 0);
}

FX_TEST(damaged_mr__refused)
{
	struct ibv_mr *mr = fx_mr(fx_pd(), 4096, FX_ALL_ACCESS);

	mr->handle ^= DAMAGE;
	assert_refused(fx_destroy(mr));
	mr->handle ^= DAMAGE;
	assert_int_equal(fx_destroy(mr), 0);
}

FX_TEST(damaged_cq__refused)
{
	struct ibv_cq *cq = fx_cq(4, NULL, NULL);
	struct ibv_qp_init_attr attr = {.send_cq = cq,
					.recv_cq = cq,
					.qp_type = IBV_QPT_RC,
					.cap = {1, 1, 1, 1, 0}};
	struct ibv_qp *qp;

	cq->handle ^= DAMAGE;
	qp = ibv_create_qp(fx_pd(), &attr);
	assert_refused(fx_destroy(cq));
	cq->handle ^= DAMAGE;
	assert_null(qp);
	assert_int_equal(fx_destroy(cq), 0);
}

FX_TEST(damaged_qp__refused)
{
	struct wire *w = wire_new_at(NULL, false, true);
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_ERR};
	int modified;

	w->a.qp->handle ^= DAMAGE;
	modified = ibv_modify_qp(w->a.qp, &attr, IBV_QP_STATE);
	assert_refused(fx_destroy(w->a.qp));
	w->a.qp->handle ^= DAMAGE;
	assert_refused(modified);
	wire_check(w);
}

static int undo_mw(void *p)
{
	return ibv_dealloc_mw(p);
}

/* The bind may stand in the queue, and is executed by nobody. */
FX_TEST(damaged_qp__bind_refused)
{
	struct wire_opts opts = WIRE_DEFAULTS;
	struct ibv_mw_bind bind = {.wr_id = 1};
	struct ibv_mw *mw;
	struct wire *w;

	fx_need(dut.attr.device_cap_flags & IBV_DEVICE_MEM_WINDOW,
		"the device has no memory windows of type 1");
	opts.mr_access |= IBV_ACCESS_MW_BIND;
	w = wire_new_at(&opts, false, true);
	mw = ibv_alloc_mw(w->a.pd, IBV_MW_TYPE_1);
	assert_non_null(mw);
	fx_keep(mw, undo_mw);
	bind.bind_info = (struct ibv_mw_bind_info){
		.mr = w->a.mr,
		.addr = (uintptr_t)w->a.buf,
		.length = 64,
		.mw_access_flags = IBV_ACCESS_REMOTE_READ,
	};
	w->a.qp->handle ^= DAMAGE;
	assert_refused(ibv_bind_mw(w->a.qp, mw, &bind));
	w->a.qp->handle ^= DAMAGE;
}

FX_TEST(damaged_srq__refused)
{
	struct ibv_srq *srq = fx_srq(fx_pd(), 4);
	struct ibv_srq_attr attr;
	int queried;

	srq->handle ^= DAMAGE;
	queried = ibv_query_srq(srq, &attr);
	assert_refused(fx_destroy(srq));
	srq->handle ^= DAMAGE;
	assert_refused(queried);
	assert_int_equal(fx_destroy(srq), 0);
}

/* Errno too says what was wrong with it. */
FX_TEST(damaged_cq__arm_refused)
{
	struct ibv_comp_channel *ch = fx_channel();
	struct ibv_cq *cq = fx_cq(4, NULL, ch);
	int ret;

	errno = 0;
	cq->handle ^= DAMAGE;
	ret = ibv_req_notify_cq(cq, 0);
	cq->handle ^= DAMAGE;
	assert_refused(ret);
	assert_int_equal(errno, ret);
}

FX_TEST(damaged_pd__says_so_in_errno)
{
	struct ibv_pd *pd = fx_pd();
	int ret;

	errno = 0;
	pd->handle ^= DAMAGE;
	ret = ibv_dealloc_pd(pd);
	pd->handle ^= DAMAGE;
	assert_refused(ret);
	assert_int_equal(errno, ret);
}

FX_TEST(busy_pd__says_so_in_errno)
{
	struct ibv_pd *pd = fx_pd();

	fx_srq(pd, 4);
	errno = 0;
	assert_int_equal(fx_destroy(pd), EBUSY);
	assert_int_equal(errno, EBUSY);
}

FX_MAIN("destroy")
