/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * Connected queue pairs for the tests, and posting on them. Runs in
 * cmocka's thread; posting may be done by any.
 */

#include <arpa/inet.h>
#include <errno.h>
#include <string.h>
#include "wire.h"

static const struct wire_opts defaults = WIRE_DEFAULTS;

int wire_to_init(const struct wire_opts *opts, struct ibv_qp_attr *attr)
{
	memset(attr, 0, sizeof(*attr));
	attr->qp_state = IBV_QPS_INIT;
	attr->port_num = 1;
	attr->qp_access_flags = opts->qp_access;
	return IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT |
	       IBV_QP_ACCESS_FLAGS;
}

int wire_to_rtr(const struct wire_opts *opts, uint32_t qpn,
		struct ibv_qp_attr *attr)
{
	memset(attr, 0, sizeof(*attr));
	attr->qp_state = IBV_QPS_RTR;
	attr->path_mtu = dut.port.active_mtu;
	attr->dest_qp_num = qpn;
	attr->rq_psn = WIRE_PSN;
	attr->max_dest_rd_atomic = 1;
	attr->min_rnr_timer = opts->min_rnr_timer;
	attr->ah_attr.is_global = 1;
	attr->ah_attr.port_num = 1;
	attr->ah_attr.grh.dgid = dut.gid;
	attr->ah_attr.grh.sgid_index = dut.gid_index;
	attr->ah_attr.grh.hop_limit = 64;
	return IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN |
	       IBV_QP_RQ_PSN |
	       (opts->is_uc ? 0
			    : IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER);
}

int wire_to_rts(const struct wire_opts *opts, struct ibv_qp_attr *attr)
{
	memset(attr, 0, sizeof(*attr));
	attr->qp_state = IBV_QPS_RTS;
	attr->timeout = opts->timeout;
	attr->retry_cnt = opts->retry_cnt;
	attr->rnr_retry = opts->rnr_retry;
	attr->sq_psn = WIRE_PSN;
	attr->max_rd_atomic = 1;
	return IBV_QP_STATE | IBV_QP_SQ_PSN |
	       (opts->is_uc
			? 0
			: IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
				  IBV_QP_MAX_QP_RD_ATOMIC);
}

static void modify(struct ibv_qp *qp, struct ibv_qp_attr *attr, int mask)
{
	int ret = ibv_modify_qp(qp, attr, mask);

	if (ret)
		fail_msg("ibv_modify_qp to state %d: %d", attr->qp_state, ret);
}

void wire_move(const struct wire_opts *opts, struct ibv_qp *qp, uint32_t qpn,
	       enum ibv_qp_state state)
{
	const struct wire_opts *o = opts ? opts : &defaults;
	struct ibv_qp_attr attr;
	int mask;

	if (state == IBV_QPS_RESET)
		return;
	mask = wire_to_init(o, &attr);
	modify(qp, &attr, mask);
	if (state == IBV_QPS_ERR)
		wire_fail(qp);
	if (state == IBV_QPS_INIT || state == IBV_QPS_ERR)
		return;
	mask = wire_to_rtr(o, qpn, &attr);
	modify(qp, &attr, mask);
	if (state == IBV_QPS_RTR)
		return;
	mask = wire_to_rts(o, &attr);
	modify(qp, &attr, mask);
}

void wire_fail(struct ibv_qp *qp)
{
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_ERR};

	modify(qp, &attr, IBV_QP_STATE);
}

void wire_reset(struct ibv_qp *qp)
{
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_RESET};

	modify(qp, &attr, IBV_QP_STATE);
}

void wire_end(const struct wire_opts *opts, struct end *end)
{
	const struct wire_opts *o = opts ? opts : &defaults;
	int cqe = (int)(o->cq_depth ? o->cq_depth : o->depth);
	struct ibv_qp_init_attr attr = {
		.cap = {.max_send_wr = o->depth,
			.max_recv_wr = o->srq ? 0 : o->depth,
			.max_send_sge = o->sge,
			.max_recv_sge = o->srq ? 0 : o->sge,
			.max_inline_data = o->inline_size},
		.srq = o->srq,
		.qp_type = o->is_uc ? IBV_QPT_UC : IBV_QPT_RC,
		.sq_sig_all = o->sig_all,
	};

	end->pd = o->srq_pd ? o->srq_pd : fx_pd();
	end->mr = fx_mr(end->pd, FX_BUF, o->mr_access);
	end->buf = end->mr->addr;
	end->channel = o->channel ? o->channel : fx_channel();
	end->scq = fx_cq(cqe, end, end->channel);
	end->rcq = fx_cq(cqe, end, end->channel);
	attr.send_cq = end->scq;
	attr.recv_cq = end->rcq;
	end->qp = fx_qp(end->pd, &attr);
	end->cap = attr.cap;
}

struct wire *wire_new_at(const struct wire_opts *opts, bool far_a, bool far_b)
{
	struct wire *w = fx_alloc(sizeof(*w));
	struct wire_opts a_opts = opts ? *opts : defaults;

	a_opts.channel = NULL;
	a_opts.srq = NULL;
	a_opts.srq_pd = NULL;
	if (far_a)
		fx_far();
	wire_end(&a_opts, &w->a);
	fx_near();
	if (far_b)
		fx_far();
	wire_end(opts, &w->b);
	fx_near();
	w->a.peer = &w->b;
	w->b.peer = &w->a;
	wire_move(opts, w->a.qp, w->b.qp->qp_num, IBV_QPS_RTS);
	wire_move(opts, w->b.qp, w->a.qp->qp_num, IBV_QPS_RTS);
	return w;
}

struct wire *wire_new(const struct wire_opts *opts)
{
	return wire_new_at(opts, true, false);
}

struct wire *wire_new_ex(const struct wire_opts *opts, uint64_t send_ops,
			 struct ibv_qp_ex **ex)
{
	struct wire *w = wire_new_at(opts, false, true);
	struct ibv_qp_init_attr_ex attr = {
		.qp_type = IBV_QPT_RC,
		.cap = {.max_send_wr = opts->depth,
			.max_recv_wr = opts->depth,
			.max_send_sge = opts->sge,
			.max_recv_sge = opts->sge,
			.max_inline_data = opts->inline_size},
		.comp_mask =
			IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS,
		.send_ops_flags = send_ops,
		.pd = w->a.pd,
		.send_cq = w->a.scq,
		.recv_cq = w->a.rcq,
	};

	w->a.qp = ibv_create_qp_ex(dut.verbs, &attr);
	fx_need(w->a.qp || errno != EOPNOTSUPP,
		"the device has no extended queue pairs with these operations");
	assert_non_null(w->a.qp);
	fx_keep_qp(w->a.qp);
	w->a.cap = attr.cap;
	wire_reset(w->b.qp);
	wire_move(opts, w->a.qp, w->b.qp->qp_num, IBV_QPS_RTS);
	wire_move(opts, w->b.qp, w->a.qp->qp_num, IBV_QPS_RTS);
	*ex = ibv_qp_to_qp_ex(w->a.qp);
	assert_non_null(*ex);
	return w;
}

void wire_self(struct end *e, struct ibv_cq *cq)
{
	struct ibv_qp_init_attr attr = {.send_cq = cq,
					.recv_cq = cq,
					.qp_type = IBV_QPT_RC,
					.cap = {8, 8, 1, 1, 0}};

	e->pd = fx_pd();
	e->mr = fx_mr(e->pd, FX_BUF, FX_ALL_ACCESS);
	e->buf = e->mr->addr;
	e->qp = fx_qp(e->pd, &attr);
	e->scq = cq;
	e->rcq = cq;
	e->peer = e;
	wire_move(NULL, e->qp, e->qp->qp_num, IBV_QPS_RTS);
}

static void fill_remote(const struct end *end, const struct op *op,
			struct ibv_send_wr *wr)
{
	uint64_t addr = (uintptr_t)end->peer->buf + op->to;

	switch (op->code) {
	case IBV_WR_RDMA_WRITE:
	case IBV_WR_RDMA_WRITE_WITH_IMM:
	case IBV_WR_RDMA_READ:
		wr->wr.rdma.remote_addr = addr;
		wr->wr.rdma.rkey = end->peer->mr->rkey;
		break;
	case IBV_WR_ATOMIC_CMP_AND_SWP:
	case IBV_WR_ATOMIC_FETCH_AND_ADD:
		wr->wr.atomic.remote_addr = addr;
		wr->wr.atomic.rkey = end->peer->mr->rkey;
		wr->wr.atomic.compare_add = op->add;
		wr->wr.atomic.swap = op->swap;
		break;
	default:
		break;
	}
}

void wire_wr(const struct end *end, const struct op *op, struct ibv_send_wr *wr,
	     struct ibv_sge *sge)
{
	*sge = (struct ibv_sge){
		.addr = (uintptr_t)end->buf + op->at,
		.length = op->len,
		.lkey = end->mr->lkey,
	};
	*wr = (struct ibv_send_wr){
		.wr_id = op->id,
		.sg_list = sge,
		.num_sge = op->len ? 1 : 0,
		.opcode = op->code,
		.send_flags = op->flags,
		.imm_data = htonl(op->imm),
	};
	fill_remote(end, op, wr);
}

int wire_post(const struct end *end, const struct op *op)
{
	struct ibv_send_wr wr;
	struct ibv_send_wr *bad;
	struct ibv_sge sge;

	wire_wr(end, op, &wr, &sge);
	return ibv_post_send(end->qp, &wr, &bad);
}

int wire_recv(const struct end *end, uint64_t id, uint32_t at, uint32_t len)
{
	struct ibv_sge sge = {(uintptr_t)end->buf + at, len, end->mr->lkey};
	struct ibv_recv_wr wr = {
		.wr_id = id, .sg_list = &sge, .num_sge = len ? 1 : 0};
	struct ibv_recv_wr *bad;

	return ibv_post_recv(end->qp, &wr, &bad);
}

int wire_send(const struct end *end, uint64_t id)
{
	struct op op = {.code = IBV_WR_SEND,
			.id = id,
			.flags = IBV_SEND_SIGNALED,
			.len = 8};

	return wire_post(end, &op);
}

int wire_srq_recv(struct ibv_srq *srq, const struct ibv_mr *mr, uint64_t id)
{
	struct ibv_sge sge = {(uintptr_t)mr->addr, 64, mr->lkey};
	struct ibv_recv_wr wr = {.wr_id = id, .sg_list = &sge, .num_sge = 1};
	struct ibv_recv_wr *bad;

	return ibv_post_srq_recv(srq, &wr, &bad);
}

static void check_direction(const struct end *from)
{
	assert_int_equal(wire_recv(from->peer, 701, 0, 8), 0);
	assert_int_equal(wire_send(from, 702), 0);
	fx_expect(from->peer->rcq, 701, IBV_WC_SUCCESS);
	fx_expect(from->scq, 702, IBV_WC_SUCCESS);
}

void wire_check(struct wire *w)
{
	check_direction(&w->a);
	check_direction(&w->b);
}
