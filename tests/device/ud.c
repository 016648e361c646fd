/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * Datagrams: address handles, the header of 40 bytes that they arrive behind,
 * Q_Keys, and that they are dropped where nobody waits for them.
 */

#include <arpa/inet.h>
#include <errno.h>
#include <string.h>
#include "office.h"

FX_TEST(datagram__arrives_behind_a_header)
{
	struct post_office a;
	struct post_office b;
	struct ibv_wc wc;

	office_open_two(&a, &b);
	memset(a.e.buf, 0x3d, OFFICE_LEN);
	assert_int_equal(wire_recv(&b.e, 1, 512, OFFICE_GRH + OFFICE_LEN), 0);
	office_mail(&a, &b, 7);
	wc = fx_expect(b.e.rcq, 1, IBV_WC_SUCCESS);
	assert_int_equal(wc.opcode, IBV_WC_RECV);
	assert_int_equal(wc.byte_len, OFFICE_GRH + OFFICE_LEN);
	assert_true(wc.wc_flags & IBV_WC_GRH);
	assert_true(wc.wc_flags & IBV_WC_WITH_IMM);
	assert_int_equal(ntohl(wc.imm_data), 7);
	assert_int_equal(wc.src_qp, a.e.qp->qp_num);
	assert_int_equal(wc.qp_num, b.e.qp->qp_num);
	assert_memory_equal(b.e.buf + 512 + OFFICE_GRH, a.e.buf, OFFICE_LEN);
}

/* RoCE v2 of an IPv4 address: the last 20 bytes are its header. */
FX_TEST(datagram__header_has_both_addresses)
{
	const uint8_t *addr = dut.gid.raw + 12;
	struct post_office a;
	struct ibv_wc wc;

	office_open(&a, false);
	assert_int_equal(wire_recv(&a.e, 1, 512, OFFICE_GRH + OFFICE_LEN), 0);
	office_mail(&a, &a, 7);
	wc = fx_expect(a.e.rcq, 1, IBV_WC_SUCCESS);
	assert_int_equal(wc.sl, dut.traits->datagram_kind_in_sl ? 2 : 0);
	assert_int_equal(a.e.buf[512 + 20], 0x45);
	assert_memory_equal(a.e.buf + 512 + 32, addr, 4);
	assert_memory_equal(a.e.buf + 512 + 36, addr, 4);
}

/* The receiver answers by what came with the datagram alone. */
FX_TEST(datagram__answered_by_its_header)
{
	struct post_office a;
	struct post_office b;
	struct ibv_ah *back;
	struct ibv_wc wc;

	office_open_two(&a, &b);
	assert_int_equal(wire_recv(&a.e, 1, 512, OFFICE_GRH + OFFICE_LEN), 0);
	assert_int_equal(wire_recv(&b.e, 2, 512, OFFICE_GRH + OFFICE_LEN), 0);
	office_mail(&a, &b, 7);
	wc = fx_expect(b.e.rcq, 2, IBV_WC_SUCCESS);
	back = ibv_create_ah_from_wc(
		b.e.pd, &wc, (struct ibv_grh *)(void *)(b.e.buf + 512), 1);
	assert_non_null(back);
	fx_keep(back, office_undo_ah);
	office_mail_by(&b, back, wc.src_qp, OFFICE_QKEY, 8, OFFICE_LEN);
	wc = fx_expect(a.e.rcq, 1, IBV_WC_SUCCESS);
	assert_int_equal(ntohl(wc.imm_data), 8);
}

/* And an answer has the class of service of the datagram. */
FX_TEST(datagram__traffic_class_arrives)
{
	enum { CLASS = 0x28 }; /* without the bits of congestion */
	struct ibv_ah_attr attr = {.is_global = 1, .port_num = 1};
	struct post_office a;
	struct post_office b;
	struct ibv_ah *ah;
	struct ibv_wc wc;

	office_open_two(&b, &a);
	attr.grh.dgid = dut.gid;
	attr.grh.sgid_index = dut.gid_index;
	attr.grh.hop_limit = 64;
	attr.grh.traffic_class = CLASS;
	ah = ibv_create_ah(a.e.pd, &attr);
	assert_non_null(ah);
	fx_keep(ah, office_undo_ah);
	office_recv(&b, 1);
	office_mail_by(&a, ah, b.e.qp->qp_num, OFFICE_QKEY, 7, OFFICE_LEN);
	wc = office_gets(&b, 1, 7);
	assert_int_equal(b.e.buf[512 + 21], CLASS);
	assert_int_equal(
		ibv_init_ah_from_wc(dut.verbs, 1, &wc,
				    (struct ibv_grh *)(void *)(b.e.buf + 512),
				    &attr),
		0);
	assert_int_equal(attr.grh.traffic_class, CLASS);
}

/*
 * Posts a request that the device finds impossible when it executes. Some
 * devices flush such a request before reporting the request.
 */
static void expect_impossible(const struct post_office *o,
			      enum ibv_wr_opcode opcode, struct ibv_ah *ah)
{
	struct ibv_sge sge = {(uintptr_t)o->e.buf, 8, o->e.mr->lkey};
	struct ibv_send_wr *bad,
		wr = {
			.wr_id = 3,
			.sg_list = &sge,
			.num_sge = 1,
			.opcode = opcode,
			.send_flags = IBV_SEND_SIGNALED,
			.wr.ud = {.ah = ah,
				  .remote_qpn = o->e.qp->qp_num,
				  .remote_qkey = OFFICE_QKEY},
		};
	struct ibv_wc wc;

	assert_int_equal(ibv_post_send(o->e.qp, &wr, &bad), 0);
	wc = fx_wait(o->e.scq);
	assert_int_equal(wc.wr_id, 3);
	if (wc.status != IBV_WC_WR_FLUSH_ERR)
		assert_int_equal(wc.status, IBV_WC_LOC_QP_OP_ERR);
	else
		assert_int_equal(dut.traits->bad_gather, IBV_WC_WR_FLUSH_ERR);
}

FX_TEST(datagram__by_a_handle_of_another_domain_FAILS)
{
	struct post_office o;

	office_open(&o, false);
	expect_impossible(&o, IBV_WR_SEND, office_ah(fx_pd(), &dut.gid));
}

FX_TEST(datagram__operations_on_memory_FAIL)
{
	static const enum ibv_wr_opcode codes[] = {
		IBV_WR_RDMA_WRITE, IBV_WR_RDMA_WRITE_WITH_IMM, IBV_WR_RDMA_READ,
		IBV_WR_ATOMIC_CMP_AND_SWP, IBV_WR_ATOMIC_FETCH_AND_ADD};

	for (unsigned i = 0; i < FX_COUNT(codes); ++i) {
		size_t mark = fx_mark();
		struct post_office o;

		office_open(&o, false);
		expect_impossible(&o, codes[i], o.ah);
		fx_release(mark);
	}
}

FX_TEST(datagram__wrong_qkey_dropped)
{
	struct post_office a;
	struct post_office b;
	struct ibv_wc wc;

	office_open_two(&a, &b);
	assert_int_equal(wire_recv(&b.e, 1, 512, OFFICE_GRH + OFFICE_LEN), 0);
	office_mail_by(&a, a.ah, b.e.qp->qp_num, OFFICE_QKEY + 1, 7,
		       OFFICE_LEN);
	office_mail(&a, &b, 8);
	wc = fx_expect(b.e.rcq, 1, IBV_WC_SUCCESS);
	assert_int_equal(ntohl(wc.imm_data), 8);
}

/* With its highest bit set, a Q_Key stands for that of the sender's QP. */
FX_TEST(datagram__qkey_of_the_sender)
{
	struct post_office a;
	struct post_office b;

	office_open_two(&a, &b);
	fx_need(dut.traits->controlled_qkey,
		"the device sends a Q_Key with its highest bit as it is");
	assert_int_equal(wire_recv(&b.e, 1, 512, OFFICE_GRH + OFFICE_LEN), 0);
	office_mail_by(&a, a.ah, b.e.qp->qp_num, 0x80000000u, 7, OFFICE_LEN);
	fx_expect(b.e.rcq, 1, IBV_WC_SUCCESS);
}

/* What came before the receive may be late, and have it after all. */
FX_TEST(datagram__without_a_receive_dropped)
{
	struct post_office a;
	struct post_office b;
	struct ibv_wc wc;

	office_open_two(&a, &b);
	office_mail(&a, &b, 7);
	assert_int_equal(wire_recv(&b.e, 1, 512, OFFICE_GRH + OFFICE_LEN), 0);
	assert_int_equal(wire_recv(&b.e, 2, 512, OFFICE_GRH + OFFICE_LEN), 0);
	office_mail(&a, &b, 8);
	wc = fx_wait(b.e.rcq);
	if (ntohl(wc.imm_data) == 7)
		wc = fx_wait(b.e.rcq);
	assert_int_equal(ntohl(wc.imm_data), 8);
}

FX_TEST(datagram__to_nobody_succeeds)
{
	struct post_office a;

	office_open(&a, false);
	office_mail_by(&a, a.ah, a.e.qp->qp_num ^ 0x55, OFFICE_QKEY, 7,
		       OFFICE_LEN);
}

FX_TEST(wr__datagram)
{
	struct post_office a;
	struct post_office b;
	struct ibv_qp_ex *ex;

	office_open(&a, true);
	fx_far();
	office_open(&b, false);
	fx_near();
	ex = ibv_qp_to_qp_ex(a.e.qp);
	memset(a.e.buf, 0x4e, 8);
	assert_int_equal(wire_recv(&b.e, 1, 512, OFFICE_GRH + OFFICE_LEN), 0);
	ibv_wr_start(ex);
	ex->wr_id = 7;
	ex->wr_flags = IBV_SEND_SIGNALED;
	ibv_wr_send(ex);
	ibv_wr_set_ud_addr(ex, a.ah, b.e.qp->qp_num, OFFICE_QKEY);
	ibv_wr_set_sge(ex, a.e.mr->lkey, (uintptr_t)a.e.buf, 8);
	assert_int_equal(ibv_wr_complete(ex), 0);
	fx_expect(a.e.scq, 7, IBV_WC_SUCCESS);
	assert_int_equal(fx_expect(b.e.rcq, 1, IBV_WC_SUCCESS).byte_len,
			 OFFICE_GRH + 8);
	assert_memory_equal(b.e.buf + 512 + OFFICE_GRH, a.e.buf, 8);
}

FX_TEST(modify__without_qkey_EINVAL)
{
	struct post_office a;
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_INIT, .port_num = 1};

	office_open(&a, false);
	wire_reset(a.e.qp);
	assert_int_equal(
		ibv_modify_qp(a.e.qp, &attr,
			      IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT),
		EINVAL);
	office_to_rts(a.e.qp);
}

FX_TEST(create_ah__no_such_gid_index_refused)
{
	struct ibv_ah_attr attr = {.is_global = 1, .port_num = 1};

	attr.grh.dgid = dut.gid;
	attr.grh.sgid_index = 255;
	assert_null(ibv_create_ah(fx_pd(), &attr));
}

FX_TEST(dealloc_pd__with_ah_EBUSY)
{
	struct ibv_pd *pd = fx_pd();

	assert_true(dut.attr.max_ah > 0);
	office_ah(pd, &dut.gid);
	assert_int_equal(fx_destroy(pd), EBUSY);
}

FX_MAIN("ud")
