/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * UD queue pairs for the tests, and mailing from one to others. Runs in
 * cmocka's thread.
 */

#include <arpa/inet.h>
#include <errno.h>
#include "office.h"

int office_undo_ah(void *ah)
{
	return ibv_destroy_ah(ah);
}

struct ibv_ah *office_ah(struct ibv_pd *pd, const union ibv_gid *to)
{
	struct ibv_ah_attr attr = {.is_global = 1, .port_num = 1};
	struct ibv_ah *ah;

	attr.grh.dgid = *to;
	attr.grh.sgid_index = dut.gid_index;
	attr.grh.hop_limit = 64;
	ah = ibv_create_ah(pd, &attr);
	fx_need(ah || errno != EOPNOTSUPP, "the device has no address handles");
	assert_non_null(ah);
	fx_keep(ah, office_undo_ah);
	return ah;
}

static void move(struct ibv_qp *qp, enum ibv_qp_state to, int mask)
{
	struct ibv_qp_attr attr = {.qp_state = to,
				   .port_num = 1,
				   .qkey = OFFICE_QKEY,
				   .sq_psn = WIRE_PSN};

	assert_int_equal(ibv_modify_qp(qp, &attr, IBV_QP_STATE | mask), 0);
}

void office_to_rts(struct ibv_qp *qp)
{
	move(qp, IBV_QPS_INIT, IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY);
	move(qp, IBV_QPS_RTR, 0);
	move(qp, IBV_QPS_RTS, IBV_QP_SQ_PSN);
}

void office_open(struct post_office *o, bool with_ops)
{
	struct end *e = &o->e;
	struct ibv_qp_init_attr_ex attr = {
		.qp_type = IBV_QPT_UD,
		.cap = {8, 8, 2, 2, 0},
		.comp_mask = IBV_QP_INIT_ATTR_PD,
		.send_ops_flags =
			IBV_QP_EX_WITH_SEND | IBV_QP_EX_WITH_SEND_WITH_IMM,
	};

	e->pd = fx_pd();
	e->mr = fx_mr(e->pd, FX_BUF, FX_ALL_ACCESS);
	e->buf = e->mr->addr;
	e->scq = fx_cq(16, NULL, NULL);
	e->rcq = fx_cq(16, NULL, NULL);
	attr.pd = e->pd;
	attr.send_cq = e->scq;
	attr.recv_cq = e->rcq;
	if (with_ops)
		attr.comp_mask |= IBV_QP_INIT_ATTR_SEND_OPS_FLAGS;
	e->qp = ibv_create_qp_ex(e->pd->context, &attr);
	fx_need(e->qp || errno != EOPNOTSUPP, "the device has no UD");
	assert_non_null(e->qp);
	fx_keep_qp(e->qp);
	office_to_rts(e->qp);
	o->ah = office_ah(e->pd, &dut.gid);
}

void office_open_two(struct post_office *a, struct post_office *b)
{
	fx_far();
	office_open(a, false);
	fx_near();
	office_open(b, false);
}

void office_mail_by(const struct post_office *o, struct ibv_ah *ah,
		    uint32_t qpn, uint32_t qkey, uint64_t id, uint32_t len)
{
	struct ibv_sge sge = {(uintptr_t)o->e.buf, len, o->e.mr->lkey};
	struct ibv_send_wr *bad, wr = {
					 .wr_id = id,
					 .sg_list = &sge,
					 .num_sge = 1,
					 .opcode = IBV_WR_SEND_WITH_IMM,
					 .send_flags = IBV_SEND_SIGNALED,
					 .imm_data = htonl((uint32_t)id),
					 .wr.ud = {.ah = ah,
						   .remote_qpn = qpn,
						   .remote_qkey = qkey},
				 };

	assert_int_equal(ibv_post_send(o->e.qp, &wr, &bad), 0);
	fx_expect(o->e.scq, id, IBV_WC_SUCCESS);
}

void office_mail(const struct post_office *from, const struct post_office *to,
		 uint64_t id)
{
	office_mail_by(from, from->ah, to->e.qp->qp_num, OFFICE_QKEY, id,
		       OFFICE_LEN);
}

void office_recv(const struct post_office *o, uint64_t id)
{
	assert_int_equal(wire_recv(&o->e, id, 512, OFFICE_GRH + OFFICE_LEN), 0);
}

struct ibv_wc office_gets(const struct post_office *o, uint64_t id,
			  uint32_t imm)
{
	struct ibv_wc wc = fx_expect(o->e.rcq, id, IBV_WC_SUCCESS);

	assert_true(wc.wc_flags & IBV_WC_WITH_IMM);
	assert_int_equal(ntohl(wc.imm_data), imm);
	return wc;
}
