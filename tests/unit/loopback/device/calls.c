/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * calls.c -- a fault rule fails each call of windows, datagrams, multicast,
 * resizing and extended queues once: the call gives the errno of the rule and
 * has no effect. And it fails each kind of their work requests, whose queue
 * pair breaks as its type wants.
 */

#include "fixture.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

static const union ibv_gid group = {.raw = {[10] = 0xff, 0xff, 239, 1, 2, 3}};

/* What the calls are made on. */
struct stock {
	struct end e;
	struct ibv_mw *mw;
	struct ibv_mr *mr; /* that a window can be bound to */
	struct ibv_ah *ah;
	struct ibv_cq_ex *cq_ex;
	struct ibv_qp *ud;
	struct ibv_qp_ex *ex;
};

static struct stock s;

static struct ibv_ah *make_ah(void)
{
	struct ibv_ah_attr attr = {.is_global = 1, .port_num = 1};

	assert_int_equal(ibv_query_gid(s.e.ctx, 1, 0, &attr.grh.dgid), 0);
	return ibv_create_ah(s.e.pd, &attr);
}

static struct ibv_cq_ex *make_cq_ex(void)
{
	struct ibv_cq_init_attr_ex attr = {.cqe = 8};

	return ibv_create_cq_ex(s.e.ctx, &attr);
}

static enum ibv_qp_state state_of(struct ibv_qp *qp)
{
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr;

	assert_int_equal(ibv_query_qp(qp, &attr, IBV_QP_STATE, &init), 0);
	return attr.qp_state;
}

static void open_stock(void)
{
	end_init(&s.e, 1);
	s.mw = ibv_alloc_mw(s.e.pd, IBV_MW_TYPE_1);
	s.mr = ibv_reg_mr(s.e.pd, s.e.buf, BUF_SIZE,
			  IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_MW_BIND);
	s.ah = make_ah();
	s.cq_ex = make_cq_ex();
	s.ud = end_qp_ex(&s.e, IBV_QPT_UD, IBV_QP_EX_WITH_SEND);
	assert_true(s.mw && s.mr && s.ah && s.cq_ex && s.ud);
	s.ex = ibv_qp_to_qp_ex(s.ud);
	end_to_rts(&(struct end){.ctx = s.e.ctx, .qp = s.ud}, 0);
}

static void close_stock(void)
{
	assert_int_equal(ibv_destroy_qp(s.ud), 0);
	assert_int_equal(ibv_destroy_cq(ibv_cq_ex_to_cq(s.cq_ex)), 0);
	assert_int_equal(ibv_destroy_ah(s.ah), 0);
	assert_int_equal(ibv_dealloc_mw(s.mw), 0);
	assert_int_equal(ibv_dereg_mr(s.mr), 0);
	end_fini(&s.e);
}

/* --- calls: each returns 0 or its errno, and undoes what it did */

static int of_pointer(void *made, int (*undo)(void *))
{
	if (!made)
		return errno;
	assert_int_equal(undo(made), 0);
	return 0;
}

static int undo_mw(void *mw)
{
	return ibv_dealloc_mw(mw);
}

static int undo_ah(void *ah)
{
	return ibv_destroy_ah(ah);
}

static int undo_cq(void *cq)
{
	return ibv_destroy_cq(cq);
}

static int undo_qp(void *qp)
{
	return ibv_destroy_qp(qp);
}

static int alloc_mw(void)
{
	return of_pointer(ibv_alloc_mw(s.e.pd, IBV_MW_TYPE_2), undo_mw);
}

static int dealloc_mw(void)
{
	struct ibv_mw *mw = ibv_alloc_mw(s.e.pd, IBV_MW_TYPE_2);
	int err = ibv_dealloc_mw(mw);

	if (err)
		assert_int_equal(ibv_dealloc_mw(mw), 0);
	return err;
}

static int create_ah(void)
{
	return of_pointer(make_ah(), undo_ah);
}

static int destroy_ah(void)
{
	struct ibv_ah *ah = make_ah();
	int err = ibv_destroy_ah(ah);

	if (err)
		assert_int_equal(ibv_destroy_ah(ah), 0);
	return err;
}

static int attach(void)
{
	int err = ibv_attach_mcast(s.ud, &group, 0);

	if (!err)
		assert_int_equal(ibv_detach_mcast(s.ud, &group, 0), 0);
	return err;
}

static int detach(void)
{
	int err;

	assert_int_equal(ibv_attach_mcast(s.ud, &group, 0), 0);
	err = ibv_detach_mcast(s.ud, &group, 0);
	if (err)
		assert_int_equal(ibv_detach_mcast(s.ud, &group, 0), 0);
	return err;
}

static int create_cq_ex(void)
{
	return of_pointer(make_cq_ex(), undo_cq);
}

static int resize_cq(void)
{
	const int before = s.e.cq->cqe;
	int err = ibv_resize_cq(s.e.cq, before + 1);

	assert_int_equal(s.e.cq->cqe > before, !err);
	return err;
}

static int resize_srq(void)
{
	struct ibv_srq_attr now, attr;
	int err;

	assert_int_equal(ibv_query_srq(s.e.srq, &attr), 0);
	attr.max_wr++;
	err = ibv_modify_srq(s.e.srq, &attr, IBV_SRQ_MAX_WR);
	assert_int_equal(ibv_query_srq(s.e.srq, &now), 0);
	assert_int_equal(now.max_wr >= attr.max_wr, !err);
	return err;
}

static int create_qp_ex(void)
{
	return of_pointer(end_qp_ex(&s.e, IBV_QPT_UC, IBV_QP_EX_WITH_SEND),
			  undo_qp);
}

/* A datagram to itself, which has no receive for it. */
static int wr_complete(void)
{
	int err;

	ibv_wr_start(s.ex);
	s.ex->wr_id = 1;
	s.ex->wr_flags = IBV_SEND_SIGNALED;
	ibv_wr_send(s.ex);
	ibv_wr_set_ud_addr(s.ex, s.ah, s.ud->qp_num, QKEY);
	ibv_wr_set_sge(s.ex, s.e.mr->lkey, (uintptr_t)s.e.buf, 8);
	err = ibv_wr_complete(s.ex);
	if (!err)
		end_expect(&s.e, 1, IBV_WC_SUCCESS);
	return err;
}

static const struct {
	const char *verb;
	int (*call)(void);
} calls[] = {
	{"ibv_alloc_mw", alloc_mw},	  {"ibv_dealloc_mw", dealloc_mw},
	{"ibv_create_ah", create_ah},	  {"ibv_destroy_ah", destroy_ah},
	{"ibv_attach_mcast", attach},	  {"ibv_detach_mcast", detach},
	{"ibv_create_cq", create_cq_ex},  {"ibv_resize_cq", resize_cq},
	{"ibv_modify_srq", resize_srq},	  {"ibv_create_qp", create_qp_ex},
	{"ibv_wr_complete", wr_complete},
};

#define CALLS (sizeof(calls) / sizeof(calls[0]))

FRESH(call__each_verb_FAILS_ONCE_WITHOUT_EFFECT)
{
	char rule[80];

	open_stock();
	for (size_t i = 0; i < CALLS; i++) {
		snprintf(rule, sizeof(rule), "call:verb=%s,errno=EIO,count=1",
			 calls[i].verb);
		assert_int_equal(rpma_loopback_fault(rule), 0);
		errno = 0;
		if (calls[i].call() != EIO)
			fail_msg("%s does not fail", calls[i].verb);
		/* of ibv_wr_complete() the manual promises none */
		if (calls[i].call != wr_complete)
			assert_int_equal(errno, EIO);
		if (calls[i].call())
			fail_msg("%s fails again", calls[i].verb);
	}
	close_stock();
}

/* --- work requests */

/* A window of type 2 of end b, bound to all of its memory by its rkey. */
struct view {
	struct pair *p;
	struct ibv_mr *mr;
	struct ibv_mw *mw;
	uint32_t rkey;
};

static int post(const struct end *e, struct ibv_send_wr *wr)
{
	struct ibv_send_wr *bad;

	wr->wr_id = 3;
	wr->send_flags = IBV_SEND_SIGNALED;
	return ibv_post_send(e->qp, wr, &bad);
}

static int post_bind(struct view *v)
{
	struct ibv_send_wr wr = {.opcode = IBV_WR_BIND_MW};

	wr.bind_mw.mw = v->mw;
	wr.bind_mw.rkey = v->rkey;
	wr.bind_mw.bind_info.mr = v->mr;
	wr.bind_mw.bind_info.addr = (uintptr_t)v->p->b.buf;
	wr.bind_mw.bind_info.length = BUF_SIZE;
	wr.bind_mw.bind_info.mw_access_flags = IBV_ACCESS_REMOTE_WRITE;
	return post(&v->p->b, &wr);
}

static int post_local_inv(struct view *v)
{
	struct ibv_send_wr wr = {.opcode = IBV_WR_LOCAL_INV,
				 .invalidate_rkey = v->rkey};

	return post(&v->p->b, &wr);
}

/* From the other end, whose message takes the window away. */
static int post_send_inv(struct view *v)
{
	struct ibv_sge sge = {(uintptr_t)v->p->a.buf, 8, v->p->a.mr->lkey};
	struct ibv_send_wr wr = {.opcode = IBV_WR_SEND_WITH_INV,
				 .sg_list = &sge,
				 .num_sge = 1,
				 .invalidate_rkey = v->rkey};

	return post(&v->p->a, &wr);
}

static void open_view(struct view *v)
{
	v->p = pair_new(0);
	v->mr = ibv_reg_mr(v->p->b.pd, v->p->b.buf, BUF_SIZE,
			   IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_MW_BIND);
	v->mw = ibv_alloc_mw(v->p->b.pd, IBV_MW_TYPE_2);
	assert_true(v->mr && v->mw);
	v->rkey = ibv_inc_rkey(v->mw->rkey);
}

static void close_view(struct view *v)
{
	assert_int_equal(ibv_dealloc_mw(v->mw), 0);
	assert_int_equal(ibv_dereg_mr(v->mr), 0);
	pair_delete(v->p);
}

FRESH(wr__each_kind_FAILS_AS_TOLD)
{
	static const struct {
		const char *op;
		int (*post)(struct view *v);
		bool of_a, is_bound;
	} rows[] = {
		{"bind_mw", post_bind, false, false},
		{"local_inv", post_local_inv, false, true},
		{"send_inv", post_send_inv, true, true},
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		const struct end *e;
		struct view v;
		char rule[80];

		open_view(&v);
		e = rows[i].of_a ? &v.p->a : &v.p->b;
		if (rows[i].is_bound) {
			assert_int_equal(post_bind(&v), 0);
			end_expect(&v.p->b, 3, IBV_WC_SUCCESS);
		}
		snprintf(rule, sizeof(rule),
			 "wr:op=%s,status=general_err,count=1", rows[i].op);
		assert_int_equal(rpma_loopback_fault(rule), 0);
		assert_int_equal(rows[i].post(&v), 0);
		end_expect(e, 3, IBV_WC_GENERAL_ERR);
		assert_int_equal(state_of(e->qp), IBV_QPS_ERR);
		close_view(&v);
	}
}

/* The send queue of a datagram's sender breaks alone. */
FRESH(wr__datagram_FAILS_IN_SQE)
{
	open_stock();
	assert_int_equal(
		rpma_loopback_fault("wr:op=send,status=general_err,count=1"),
		0);
	ibv_wr_start(s.ex);
	s.ex->wr_id = 1;
	s.ex->wr_flags = IBV_SEND_SIGNALED;
	ibv_wr_send(s.ex);
	ibv_wr_set_ud_addr(s.ex, s.ah, s.ud->qp_num, QKEY);
	ibv_wr_set_sge(s.ex, s.e.mr->lkey, (uintptr_t)s.e.buf, 8);
	assert_int_equal(ibv_wr_complete(s.ex), 0);
	end_expect(&s.e, 1, IBV_WC_GENERAL_ERR);
	assert_int_equal(state_of(s.ud), IBV_QPS_SQE);
	close_stock();
}

FRESH(wr__reset_meanwhile_ENDS_THE_BATCH)
{
	struct pair *p = pair_new_ex(IBV_QP_EX_WITH_RDMA_WRITE);
	struct ibv_qp_ex *ex = ibv_qp_to_qp_ex(p->a.qp);
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_RESET};

	ibv_wr_start(ex);
	ex->wr_id = 1;
	ex->wr_flags = IBV_SEND_SIGNALED;
	ibv_wr_rdma_write(ex, p->b.mr->rkey, (uintptr_t)p->b.buf);
	ibv_wr_set_sge(ex, p->a.mr->lkey, (uintptr_t)p->a.buf, 8);
	assert_int_equal(ibv_modify_qp(p->a.qp, &attr, IBV_QP_STATE), 0);
	assert_int_equal(state_of(p->a.qp), IBV_QPS_RESET);
	assert_int_equal(ibv_wr_complete(ex), EINVAL);
	pair_delete(p);
}

/* --- native operations, where rdma-core has them */

#if defined(RPMA_HAVE_NATIVE_ATOMIC_WRITE) && defined(RPMA_HAVE_NATIVE_FLUSH)

static void native_post(struct ibv_qp_ex *ex, const struct end *to, bool flush)
{
	const uint64_t word = 1;

	ibv_wr_start(ex);
	ex->wr_id = 1;
	ex->wr_flags = IBV_SEND_SIGNALED;
	if (flush)
		ibv_wr_flush(ex, to->mr->rkey, (uintptr_t)to->buf, 8,
			     IBV_FLUSH_GLOBAL, IBV_FLUSH_RANGE);
	else
		ibv_wr_atomic_write(ex, to->mr->rkey, (uintptr_t)to->buf,
				    &word);
	assert_int_equal(ibv_wr_complete(ex), 0);
}

FRESH(wr__native_FAILS_AS_TOLD)
{
	static const char *const rules[] = {
		"wr:op=atomic_write,status=rem_op_err,count=1",
		"wr:op=flush,status=rem_op_err,count=1"};

	for (int i = 0; i < 2; i++) {
		struct pair *p = pair_new_ex(IBV_QP_EX_WITH_ATOMIC_WRITE |
					     IBV_QP_EX_WITH_FLUSH);

		assert_int_equal(rpma_loopback_fault(rules[i]), 0);
		native_post(ibv_qp_to_qp_ex(p->a.qp), &p->b, i == 1);
		end_expect(&p->a, 1, IBV_WC_REM_OP_ERR);
		assert_int_equal(p->b.buf[0], 0);
		pair_delete(p);
	}
}

static void use_native(void)
{
	for (int i = 0; i < 2; i++) {
		struct pair *p = pair_new_ex(IBV_QP_EX_WITH_ATOMIC_WRITE |
					     IBV_QP_EX_WITH_FLUSH);

		native_post(ibv_qp_to_qp_ex(p->a.qp), &p->b, i == 1);
		end_expect(&p->a, 1, IBV_WC_SUCCESS);
		pair_delete(p);
	}
}

#else

static void use_native(void)
{
}

FRESH(wr__native_FAILS_AS_TOLD)
{
	print_message("skipped: the rdma-core that this is built with knows "
		      "neither flushes nor atomic writes; 56 does\n");
	skip();
}

#endif

/* --- the strict mode */

static uint64_t misuses(void)
{
	struct rpma_loopback_stats stats;

	rpma_loopback_get_stats(&stats);
	return stats.misuses;
}

static void use_window(void)
{
	struct view v;

	open_view(&v);
	assert_int_equal(post_bind(&v), 0);
	end_expect(&v.p->b, 3, IBV_WC_SUCCESS);
	assert_int_equal(end_recv(&v.p->b, 5, 64, 8), 0);
	assert_int_equal(post_send_inv(&v), 0);
	end_expect(&v.p->a, 3, IBV_WC_SUCCESS);
	end_expect(&v.p->b, 5, IBV_WC_SUCCESS);
	v.rkey = ibv_inc_rkey(v.rkey);
	assert_int_equal(post_bind(&v), 0);
	end_expect(&v.p->b, 3, IBV_WC_SUCCESS);
	assert_int_equal(post_local_inv(&v), 0);
	end_expect(&v.p->b, 3, IBV_WC_SUCCESS);
	close_view(&v);
}

FRESH(good_use__of_each_kind_SILENT)
{
	uint64_t before = misuses();

	open_stock();
	rpma_loopback_set_strict(RPMA_LOOPBACK_STRICT_WARN);
	for (size_t i = 0; i < CALLS; i++)
		assert_int_equal(calls[i].call(), 0);
	use_window();
	use_native();
	assert_int_equal(misuses(), before);
	close_stock();
}

FRESH(dealloc_pd__with_a_window_or_a_handle_MISUSE)
{
	uint64_t before;
	struct ibv_pd *pd;
	struct ibv_mw *mw;
	struct ibv_ah *ah;

	open_stock();
	pd = ibv_alloc_pd(s.e.ctx);
	mw = ibv_alloc_mw(pd, IBV_MW_TYPE_1);
	assert_non_null(mw);
	rpma_loopback_set_strict(RPMA_LOOPBACK_STRICT_WARN);
	before = misuses();
	assert_int_equal(ibv_dealloc_pd(pd), EBUSY);
	assert_int_equal(ibv_dealloc_mw(mw), 0);
	ah = make_ah();
	assert_int_equal(ibv_dealloc_pd(s.e.pd), EBUSY);
	assert_int_equal(ibv_destroy_ah(ah), 0);
	assert_int_equal(misuses(), before + 2);
	assert_int_equal(ibv_dealloc_pd(pd), 0);
	close_stock();
}

FRESH(close_device__with_a_cq_MISUSE)
{
	uint64_t before;
	struct ibv_cq *cq;

	open_stock();
	cq = s.e.cq;
	rpma_loopback_set_strict(RPMA_LOOPBACK_STRICT_WARN);
	before = misuses();
	assert_int_equal(ibv_close_device(s.e.ctx), 0);
	assert_int_equal(misuses(), before + 1);
	/* what refers to it is there as before */
	assert_int_equal(ibv_req_notify_cq(cq, 0), 0);
	close_stock();
}

TEST_MAIN()
