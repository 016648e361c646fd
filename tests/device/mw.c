/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * Memory windows of type 1 and 2B: a bound window opens memory to the other
 * end, and no longer after another bind, an invalidation by either end or its
 * deallocation; and binds that must fail. End b binds, end a uses.
 */

#include <errno.h>
#include <string.h>
#include "wire.h"

#define AT  1024u /* where in its region b binds, */
#define LEN 512u  /* and how much */

static int undo_mw(void *p)
{
	return ibv_dealloc_mw(p);
}

static struct ibv_mw *mw_of(struct ibv_pd *pd, enum ibv_mw_type type)
{
	unsigned need = type == IBV_MW_TYPE_1 ? IBV_DEVICE_MEM_WINDOW
					      : IBV_DEVICE_MEM_WINDOW_TYPE_2B;
	struct ibv_mw *mw;

	fx_need(dut.attr.device_cap_flags & need,
		"the device has no memory windows of this type");
	mw = ibv_alloc_mw(pd, type);
	assert_non_null(mw);
	fx_keep(mw, undo_mw);
	return mw;
}

static struct wire *bindable(void)
{
	struct wire_opts opts = WIRE_DEFAULTS;

	opts.mr_access = FX_ALL_ACCESS | IBV_ACCESS_MW_BIND;
	return wire_new(&opts);
}

static struct ibv_mw_bind_info info_of(const struct end *e)
{
	struct ibv_mw_bind_info info = {
		.mr = e->mr,
		.addr = (uintptr_t)e->buf + AT,
		.length = LEN,
		.mw_access_flags = FX_REMOTE_ACCESS,
	};

	return info;
}

static int post(const struct end *e, struct ibv_send_wr *wr)
{
	struct ibv_send_wr *bad;

	wr->send_flags = IBV_SEND_SIGNALED;
	return ibv_post_send(e->qp, wr, &bad);
}

/* Posts a bind of a type 2 window to a new rkey. */
static void post_bind(const struct end *e, struct ibv_mw *mw,
		      const struct ibv_mw_bind_info *info)
{
	struct ibv_send_wr wr = {.wr_id = 40, .opcode = IBV_WR_BIND_MW};

	wr.bind_mw.mw = mw;
	wr.bind_mw.rkey = ibv_inc_rkey(mw->rkey);
	wr.bind_mw.bind_info = *info;
	assert_int_equal(post(e, &wr), 0);
	mw->rkey = wr.bind_mw.rkey;
}

static void post_local_inv(const struct end *e, uint32_t rkey)
{
	struct ibv_send_wr wr = {.wr_id = 41, .opcode = IBV_WR_LOCAL_INV};

	wr.invalidate_rkey = rkey;
	assert_int_equal(post(e, &wr), 0);
}

static void post_send_inv(const struct end *e, uint32_t rkey)
{
	struct ibv_sge sge = {(uintptr_t)e->buf, 8, e->mr->lkey};
	struct ibv_send_wr wr = {.wr_id = 42,
				 .opcode = IBV_WR_SEND_WITH_INV,
				 .sg_list = &sge,
				 .num_sge = 1};

	wr.invalidate_rkey = rkey;
	assert_int_equal(post(e, &wr), 0);
}

static void local_op_works(const struct end *e, uint64_t id,
			   enum ibv_wc_opcode opcode)
{
	struct ibv_wc wc = fx_expect(e->scq, id, IBV_WC_SUCCESS);

	assert_int_equal(wc.opcode, opcode);
}

/* Some devices flush such a request before reporting the request. */
static void local_op_fails(const struct end *e, uint64_t id,
			   enum ibv_wc_status status)
{
	struct ibv_wc wc = fx_wait(e->scq);

	assert_int_equal(wc.wr_id, id);
	if (wc.status == IBV_WC_WR_FLUSH_ERR)
		status = dut.traits->bad_gather;
	assert_int_equal(wc.status, status);
}

static void bind1(const struct end *e, struct ibv_mw *mw,
		  const struct ibv_mw_bind_info *info)
{
	struct ibv_mw_bind bind = {.wr_id = 40,
				   .send_flags = IBV_SEND_SIGNALED,
				   .bind_info = *info};

	assert_int_equal(ibv_bind_mw(e->qp, mw, &bind), 0);
	local_op_works(e, 40, IBV_WC_BIND_MW);
}

static void bind2(const struct end *e, struct ibv_mw *mw,
		  const struct ibv_mw_bind_info *info)
{
	post_bind(e, mw, info);
	local_op_works(e, 40, IBV_WC_BIND_MW);
}

/* Returns a type 2 window bound by b. */
static struct ibv_mw *bound(struct wire *w)
{
	struct ibv_mw_bind_info info = info_of(&w->b);
	struct ibv_mw *mw = mw_of(w->b.pd, IBV_MW_TYPE_2);

	bind2(&w->b, mw, &info);
	return mw;
}

/* The status of 8 bytes by a, through rkey, at the address. */
static enum ibv_wc_status use(const struct end *e, enum ibv_wr_opcode code,
			      uint32_t rkey, uint64_t addr)
{
	struct op op = {.code = code,
			.id = 50,
			.flags = IBV_SEND_SIGNALED,
			.len = 8,
			.add = 1};
	struct ibv_send_wr wr;
	struct ibv_send_wr *bad;
	struct ibv_sge sge;

	wire_wr(e, &op, &wr, &sge);
	if (code == IBV_WR_ATOMIC_FETCH_AND_ADD) {
		wr.wr.atomic.rkey = rkey;
		wr.wr.atomic.remote_addr = addr;
	} else {
		wr.wr.rdma.rkey = rkey;
		wr.wr.rdma.remote_addr = addr;
	}
	assert_int_equal(ibv_post_send(e->qp, &wr, &bad), 0);
	return fx_wait(e->scq).status;
}

/* Uses everything granted by the window, from its first byte to its last. */
static void grants(struct wire *w, uint32_t rkey, uint64_t start)
{
	uint64_t end = start + LEN - 8;

	memset(w->a.buf, 0x3c, 8);
	assert_int_equal(use(&w->a, IBV_WR_RDMA_WRITE, rkey, start),
			 IBV_WC_SUCCESS);
	assert_int_equal(w->b.buf[AT], 0x3c);
	assert_int_equal(use(&w->a, IBV_WR_RDMA_WRITE, rkey, end),
			 IBV_WC_SUCCESS);
	assert_int_equal(w->b.buf[AT + LEN - 1], 0x3c);
	memset(w->b.buf + AT, 0x4d, 8);
	assert_int_equal(use(&w->a, IBV_WR_RDMA_READ, rkey, start),
			 IBV_WC_SUCCESS);
	assert_int_equal(w->a.buf[0], 0x4d);
	assert_int_equal(use(&w->a, IBV_WR_ATOMIC_FETCH_AND_ADD, rkey, start),
			 IBV_WC_SUCCESS);
}

static void refuses(struct wire *w, uint32_t rkey, uint64_t addr)
{
	assert_int_equal(use(&w->a, IBV_WR_RDMA_WRITE, rkey, addr),
			 IBV_WC_REM_ACCESS_ERR);
}

static uint64_t start_of(const struct wire *w)
{
	return (uintptr_t)w->b.buf + AT;
}

FX_TEST(alloc_mw__describes_itself)
{
	struct ibv_pd *pd = fx_pd();
	struct ibv_mw *mw = mw_of(pd, IBV_MW_TYPE_2);

	assert_ptr_equal(mw->pd, pd);
	assert_ptr_equal(mw->context, dut.verbs);
	assert_int_equal(mw->type, IBV_MW_TYPE_2);
	assert_true(dut.attr.max_mw > 0);
	assert_int_equal(fx_destroy(pd), EBUSY);
}

FX_TEST(alloc_mw__live_keys_are_distinct)
{
	enum { N = 32 };
	struct ibv_pd *pd = fx_pd();
	uint32_t keys[N];

	for (int i = 0; i < N; ++i) {
		keys[i] = mw_of(pd, IBV_MW_TYPE_1)->rkey;
		for (int j = 0; j < i; ++j)
			assert_int_not_equal(keys[i] & ~0xffu,
					     keys[j] & ~0xffu);
	}
}

FX_TEST(type1__bound_grants)
{
	struct wire *w = bindable();
	struct ibv_mw_bind_info info = info_of(&w->b);
	struct ibv_mw *mw = mw_of(w->b.pd, IBV_MW_TYPE_1);

	bind1(&w->b, mw, &info);
	grants(w, mw->rkey, info.addr);
}

FX_TEST(type1__bound_anew_old_rkey_REM_ACCESS_ERR)
{
	struct wire *w = bindable();
	struct ibv_mw_bind_info info = info_of(&w->b);
	struct ibv_mw *mw = mw_of(w->b.pd, IBV_MW_TYPE_1);
	uint32_t first;

	bind1(&w->b, mw, &info);
	first = mw->rkey;
	bind1(&w->b, mw, &info);
	assert_int_not_equal(mw->rkey, first);
	grants(w, mw->rkey, info.addr);
	refuses(w, first, info.addr);
}

FX_TEST(type1__length_0_unbinds)
{
	struct wire *w = bindable();
	struct ibv_mw_bind_info info = info_of(&w->b);
	struct ibv_mw *mw = mw_of(w->b.pd, IBV_MW_TYPE_1);

	bind1(&w->b, mw, &info);
	grants(w, mw->rkey, info.addr);
	info.length = 0;
	bind1(&w->b, mw, &info);
	refuses(w, mw->rkey, info.addr);
}

FX_TEST(type1__region_of_another_pd_EPERM)
{
	struct wire *w = bindable();
	struct ibv_mw *mw = mw_of(w->b.pd, IBV_MW_TYPE_1);
	struct ibv_mw_bind bind = {.bind_info = info_of(&w->a)};

	assert_int_equal(ibv_bind_mw(w->b.qp, mw, &bind), EPERM);
}

FX_TEST(type2__bound_grants)
{
	struct wire *w = bindable();

	grants(w, bound(w)->rkey, start_of(w));
}

FX_TEST(type2__never_bound_REM_ACCESS_ERR)
{
	struct wire *w = bindable();
	struct ibv_mw *mw = mw_of(w->b.pd, IBV_MW_TYPE_2);

	refuses(w, mw->rkey, start_of(w));
}

static void need_bounds(void)
{
	fx_need(dut.traits->window_has_bounds,
		"the device lets windows be as wide as their region");
}

FX_TEST(type2__before_its_start_REM_ACCESS_ERR)
{
	struct wire *w = bindable();

	need_bounds();
	refuses(w, bound(w)->rkey, start_of(w) - 8);
}

FX_TEST(type2__past_its_end_REM_ACCESS_ERR)
{
	struct wire *w = bindable();

	need_bounds();
	refuses(w, bound(w)->rkey, start_of(w) + LEN - 7);
}

FX_TEST(type2__right_not_granted_REM_ACCESS_ERR)
{
	struct wire *w = bindable();
	struct ibv_mw_bind_info info = info_of(&w->b);
	struct ibv_mw *mw = mw_of(w->b.pd, IBV_MW_TYPE_2);

	info.mw_access_flags = IBV_ACCESS_REMOTE_READ;
	bind2(&w->b, mw, &info);
	assert_int_equal(use(&w->a, IBV_WR_RDMA_READ, mw->rkey, info.addr),
			 IBV_WC_SUCCESS);
	refuses(w, mw->rkey, info.addr);
}

/* A region may be closed to others and still have open windows. */
FX_TEST(type2__of_a_region_without_remote_rights_grants)
{
	struct wire_opts opts = WIRE_DEFAULTS;
	struct wire *w;

	opts.mr_access = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_MW_BIND;
	w = wire_new(&opts);
	grants(w, bound(w)->rkey, start_of(w));
}

FX_TEST(type2__through_another_qp_REM_ACCESS_ERR)
{
	struct wire *w = bindable();
	struct wire *other = wire_new(NULL);
	struct ibv_qp_init_attr attr = {.send_cq = w->b.scq,
					.recv_cq = w->b.rcq,
					.qp_type = IBV_QPT_RC,
					.cap = {8, 8, 1, 1, 0}};
	struct ibv_mw *mw = bound(w);
	struct ibv_qp *qp = fx_qp(w->b.pd, &attr);

	/* other's end a is connected to a second QP of b's domain */
	wire_reset(other->a.qp);
	wire_move(NULL, qp, other->a.qp->qp_num, IBV_QPS_RTS);
	wire_move(NULL, other->a.qp, qp->qp_num, IBV_QPS_RTS);
	refuses(other, mw->rkey, start_of(w));
	grants(w, mw->rkey, start_of(w));
	assert_int_equal(fx_destroy(mw), 0);
}

FX_TEST(type2__zero_based_counts_from_0)
{
	struct wire *w = bindable();
	struct ibv_mw_bind_info info = info_of(&w->b);
	struct ibv_mw *mw = mw_of(w->b.pd, IBV_MW_TYPE_2);

	info.mw_access_flags |= IBV_ACCESS_ZERO_BASED;
	bind2(&w->b, mw, &info);
	grants(w, mw->rkey, 0);
	need_bounds();
	refuses(w, mw->rkey, LEN - 7);
}

FX_TEST(local_inv__window_REM_ACCESS_ERR)
{
	struct wire *w = bindable();
	struct ibv_mw *mw = bound(w);

	grants(w, mw->rkey, start_of(w));
	post_local_inv(&w->b, mw->rkey);
	local_op_works(&w->b, 41, IBV_WC_LOCAL_INV);
	refuses(w, mw->rkey, start_of(w));
}

FX_TEST(local_inv__then_bound_again_grants)
{
	struct wire *w = bindable();
	struct ibv_mw_bind_info info = info_of(&w->b);
	struct ibv_mw *mw = bound(w);

	for (int i = 0; i < 300; ++i) {
		post_local_inv(&w->b, mw->rkey);
		local_op_works(&w->b, 41, IBV_WC_LOCAL_INV);
		bind2(&w->b, mw, &info);
	}
	grants(w, mw->rkey, info.addr);
}

FX_TEST(local_inv__old_rkey_fails)
{
	struct wire *w = bindable();
	struct ibv_mw *mw = bound(w);

	post_local_inv(&w->b, ibv_inc_rkey(mw->rkey));
	local_op_fails(&w->b, 41, IBV_WC_LOC_QP_OP_ERR);
}

FX_TEST(local_inv__of_a_region_fails)
{
	struct wire *w = bindable();

	fx_need(dut.attr.device_cap_flags & IBV_DEVICE_MEM_WINDOW_TYPE_2B,
		"the device has no memory windows of type 2B");
	post_local_inv(&w->b, w->b.mr->rkey);
	local_op_fails(&w->b, 41, IBV_WC_LOC_QP_OP_ERR);
}

/* Checks the completion of a receive whose message invalidated the rkey. */
static void expect_told(const struct ibv_wc *wc, uint32_t rkey)
{
	fx_need(dut.traits->invalidated_is_told,
		"completions do not say what was invalidated");
	assert_true(wc->wc_flags & IBV_WC_WITH_INV);
	assert_false(wc->wc_flags & IBV_WC_WITH_IMM);
	assert_int_equal(wc->invalidated_rkey, rkey);
}

FX_TEST(send_inv__receiver_is_told)
{
	struct wire *w = bindable();
	struct ibv_mw *mw = bound(w);
	struct ibv_wc wc;

	assert_int_equal(wire_recv(&w->b, 1, 0, 64), 0);
	memset(w->a.buf, 0x77, 8);
	post_send_inv(&w->a, mw->rkey);
	wc = fx_expect(w->a.scq, 42, IBV_WC_SUCCESS);
	assert_int_equal(wc.opcode, IBV_WC_SEND);
	wc = fx_expect(w->b.rcq, 1, IBV_WC_SUCCESS);
	assert_int_equal(wc.opcode, IBV_WC_RECV);
	assert_int_equal(wc.byte_len, 8);
	assert_int_equal(w->b.buf[0], 0x77);
	refuses(w, mw->rkey, start_of(w));
	expect_told(&wc, mw->rkey);
}

FX_TEST(send_inv__window_can_be_bound_again)
{
	struct wire *w = bindable();
	struct ibv_mw_bind_info info = info_of(&w->b);
	struct ibv_mw *mw = bound(w);

	for (uint64_t i = 0; i < 20; ++i) {
		assert_int_equal(wire_recv(&w->b, i, 0, 64), 0);
		post_send_inv(&w->a, mw->rkey);
		fx_expect(w->a.scq, 42, IBV_WC_SUCCESS);
		fx_expect(w->b.rcq, i, IBV_WC_SUCCESS);
		bind2(&w->b, mw, &info);
		grants(w, mw->rkey, info.addr);
	}
}

FX_TEST(send_inv__of_no_window_fails_both_ends)
{
	struct wire *w = bindable();
	struct ibv_mw *mw = bound(w);

	assert_int_equal(wire_recv(&w->b, 1, 0, 64), 0);
	post_send_inv(&w->a, ibv_inc_rkey(mw->rkey));
	assert_int_not_equal(fx_wait(w->b.rcq).status, IBV_WC_SUCCESS);
	fx_need(dut.traits->bad_invalidate_is_told,
		"the device does not tell the sender");
	assert_int_not_equal(fx_wait(w->a.scq).status, IBV_WC_SUCCESS);
}

/* Asserts that a bind with info, on b, fails. */
static void bind_fails(struct wire *w, const struct ibv_mw_bind_info *info)
{
	post_bind(&w->b, mw_of(w->b.pd, IBV_MW_TYPE_2), info);
	local_op_fails(&w->b, 40, IBV_WC_MW_BIND_ERR);
}

FX_TEST(bind__region_without_MW_BIND_fails)
{
	struct wire *w = wire_new(NULL);
	struct ibv_mw_bind_info info = info_of(&w->b);

	bind_fails(w, &info);
}

FX_TEST(bind__writable_of_a_readonly_region_fails)
{
	struct wire_opts opts = WIRE_DEFAULTS;
	struct wire *w;
	struct ibv_mw_bind_info info;

	opts.mr_access = IBV_ACCESS_REMOTE_READ | IBV_ACCESS_MW_BIND;
	w = wire_new(&opts);
	info = info_of(&w->b);
	bind_fails(w, &info);
}

FX_TEST(bind__past_the_region_fails)
{
	struct wire *w = bindable();
	struct ibv_mw_bind_info info = info_of(&w->b);

	info.length = FX_BUF - AT + 1;
	bind_fails(w, &info);
}

FX_TEST(bind__before_the_region_fails)
{
	struct wire *w = bindable();
	struct ibv_mw_bind_info info = info_of(&w->b);

	info.addr = (uintptr_t)w->b.buf - 8;
	bind_fails(w, &info);
}

FX_TEST(bind__type2_of_length_0_fails)
{
	struct wire *w = bindable();
	struct ibv_mw_bind_info info = info_of(&w->b);

	info.length = 0;
	bind_fails(w, &info);
}

FX_TEST(bind__type2_twice_fails)
{
	struct wire *w = bindable();
	struct ibv_mw_bind_info info = info_of(&w->b);
	struct ibv_mw *mw = bound(w);

	post_bind(&w->b, mw, &info);
	local_op_fails(&w->b, 40, IBV_WC_MW_BIND_ERR);
}

FX_TEST(dereg_mr__with_a_window_refused)
{
	struct wire *w = bindable();
	struct ibv_mw *mw = bound(w);
	int ret;

	ret = fx_destroy(w->b.mr);
	assert_true(ret == EBUSY || ret == EINVAL);
	grants(w, mw->rkey, start_of(w));
	wire_check(w);
	assert_int_equal(fx_destroy(mw), 0);
	assert_int_equal(fx_destroy(w->b.mr), 0);
}

FX_TEST(dereg_mr__after_local_inv)
{
	struct wire *w = bindable();
	struct ibv_mw *mw = bound(w);

	post_local_inv(&w->b, mw->rkey);
	local_op_works(&w->b, 41, IBV_WC_LOCAL_INV);
	assert_int_equal(fx_destroy(w->b.mr), 0);
}

FX_TEST(dealloc_mw__bound_REM_ACCESS_ERR)
{
	struct wire *w = bindable();
	struct ibv_mw *mw = bound(w);
	uint32_t rkey = mw->rkey;

	assert_int_equal(fx_destroy(mw), 0);
	refuses(w, rkey, start_of(w));
}

/* Returns a QP for end b to which ibv_wr_* can post these operations. */
static struct ibv_qp_ex *ex_of(struct end *e)
{
	struct ibv_qp_init_attr_ex attr = {
		.send_cq = e->scq,
		.recv_cq = e->rcq,
		.qp_type = IBV_QPT_RC,
		.cap = {8, 8, 1, 1, 0},
		.comp_mask =
			IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS,
		.pd = e->pd,
		.send_ops_flags = IBV_QP_EX_WITH_BIND_MW |
				  IBV_QP_EX_WITH_LOCAL_INV |
				  IBV_QP_EX_WITH_SEND_WITH_INV,
	};
	struct ibv_qp *qp = ibv_create_qp_ex(dut.verbs, &attr);

	fx_need(qp || errno != EOPNOTSUPP,
		"the device has no extended queue pairs for windows");
	assert_non_null(qp);
	fx_keep_qp(qp);
	wire_reset(e->peer->qp);
	wire_move(NULL, qp, e->peer->qp->qp_num, IBV_QPS_RTS);
	wire_move(NULL, e->peer->qp, qp->qp_num, IBV_QPS_RTS);
	e->qp = qp;
	return ibv_qp_to_qp_ex(qp);
}

static void start(struct ibv_qp_ex *ex, uint64_t id)
{
	ibv_wr_start(ex);
	ex->wr_id = id;
	ex->wr_flags = IBV_SEND_SIGNALED;
}

FX_TEST(wr__bind_then_local_inv)
{
	struct wire *w = bindable();
	struct ibv_mw_bind_info info = info_of(&w->b);
	struct ibv_mw *mw = mw_of(w->b.pd, IBV_MW_TYPE_2);
	struct ibv_qp_ex *ex = ex_of(&w->b);
	uint32_t rkey = ibv_inc_rkey(mw->rkey);

	start(ex, 40);
	ibv_wr_bind_mw(ex, mw, rkey, &info);
	assert_int_equal(ibv_wr_complete(ex), 0);
	mw->rkey = rkey;
	local_op_works(&w->b, 40, IBV_WC_BIND_MW);
	grants(w, rkey, info.addr);
	start(ex, 41);
	ibv_wr_local_inv(ex, rkey);
	assert_int_equal(ibv_wr_complete(ex), 0);
	local_op_works(&w->b, 41, IBV_WC_LOCAL_INV);
	refuses(w, rkey, info.addr);
}

/* In this case a binds, and b gives the window back. */
FX_TEST(wr__send_inv)
{
	struct wire *w = bindable();
	struct ibv_qp_ex *ex = ex_of(&w->b);
	struct ibv_mw_bind_info info = info_of(&w->a);
	struct ibv_mw *mw = mw_of(w->a.pd, IBV_MW_TYPE_2);
	struct ibv_wc wc;

	bind2(&w->a, mw, &info);
	assert_int_equal(wire_recv(&w->a, 1, 0, 64), 0);
	start(ex, 42);
	ibv_wr_send_inv(ex, mw->rkey);
	ibv_wr_set_sge(ex, w->b.mr->lkey, (uintptr_t)w->b.buf, 8);
	assert_int_equal(ibv_wr_complete(ex), 0);
	fx_expect(w->b.scq, 42, IBV_WC_SUCCESS);
	wc = fx_expect(w->a.rcq, 1, IBV_WC_SUCCESS);
	expect_told(&wc, mw->rkey);
}

FX_TEST(zero_based_region__counts_from_0)
{
	struct wire *w = wire_new(NULL);
	struct ibv_mr *mr = ibv_reg_mr(w->b.pd, w->b.buf, FX_BUF,
				       FX_ALL_ACCESS | IBV_ACCESS_ZERO_BASED);

	fx_need(mr && dut.traits->zero_based_regions,
		"the device has no zero-based regions");
	fx_keep_mr(mr);
	memset(w->a.buf, 0x2e, 8);
	assert_int_equal(use(&w->a, IBV_WR_RDMA_WRITE, mr->rkey, 16),
			 IBV_WC_SUCCESS);
	assert_int_equal(w->b.buf[16], 0x2e);
	refuses(w, mr->rkey, (uintptr_t)w->b.buf + 16);
}

/* The right of local writes, which programs pass on, opens nothing. */
FX_TEST(bind__with_the_right_of_local_writes_TAKEN)
{
	struct wire *w = bindable();
	struct ibv_mw_bind_info info = info_of(&w->b);
	struct ibv_mw *mw = mw_of(w->b.pd, IBV_MW_TYPE_1);

	info.mw_access_flags = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ;
	bind1(&w->b, mw, &info);
	assert_int_equal(use(&w->a, IBV_WR_RDMA_READ, mw->rkey, info.addr),
			 IBV_WC_SUCCESS);
	assert_int_equal(use(&w->a, IBV_WR_RDMA_WRITE, mw->rkey, info.addr),
			 IBV_WC_REM_ACCESS_ERR);
}

/* The program chose the rkey of a type 2 window, and writes it down itself. */
FX_TEST(bind__type_2_by_a_post_leaves_the_handle_alone)
{
	struct wire *w = bindable();
	struct ibv_mw *mw = mw_of(w->b.pd, IBV_MW_TYPE_2);
	struct ibv_send_wr wr = {.wr_id = 40, .opcode = IBV_WR_BIND_MW};
	uint32_t rkey = mw->rkey;

	wr.bind_mw.mw = mw;
	wr.bind_mw.rkey = ibv_inc_rkey(rkey);
	wr.bind_mw.bind_info = info_of(&w->b);
	assert_int_equal(post(&w->b, &wr), 0);
	local_op_works(&w->b, 40, IBV_WC_BIND_MW);
	assert_int_equal(mw->rkey, rkey);
}

FX_MAIN("mw")
