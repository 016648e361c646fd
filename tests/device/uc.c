/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * Unreliable connections: sends and writes; messages not taken by the other end
 * are dropped, with success at the sender; the state machine of such a queue
 * pair; and connecting by rdma_cm.
 */

#include <arpa/inet.h>
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <rdma/rdma_verbs.h>
#include "wire.h"

#define LEN 64u

static const struct wire_opts *uc_opts(void)
{
	static struct wire_opts opts = WIRE_DEFAULTS;

	opts.is_uc = true;
	return &opts;
}

static struct wire *uc_new(void)
{
	return wire_new(uc_opts());
}

static const struct op send_op = {
	.code = IBV_WR_SEND, .id = 7, .flags = IBV_SEND_SIGNALED, .len = LEN};
static const struct op write_op = {.code = IBV_WR_RDMA_WRITE,
				   .id = 7,
				   .flags = IBV_SEND_SIGNALED,
				   .len = LEN,
				   .to = 1024};

/* Posts an operation, which is successful at its sender in every case. */
static void leaves(const struct end *from, struct op op)
{
	assert_int_equal(wire_post(from, &op), 0);
	fx_expect(from->scq, op.id, IBV_WC_SUCCESS);
}

static void leaves_with_imm(const struct end *from, const struct op *like,
			    uint32_t imm)
{
	struct op op = *like;

	op.code = op.code == IBV_WR_SEND ? IBV_WR_SEND_WITH_IMM
					 : IBV_WR_RDMA_WRITE_WITH_IMM;
	op.imm = imm;
	leaves(from, op);
}

/* Asserts the next message of the end. */
static void gets_imm(const struct end *end, uint64_t id, uint32_t imm)
{
	struct ibv_wc wc = fx_expect(end->rcq, id, IBV_WC_SUCCESS);

	assert_true(wc.wc_flags & IBV_WC_WITH_IMM);
	assert_int_equal(ntohl(wc.imm_data), imm);
}

FX_TEST(send__arrives)
{
	struct wire *w = uc_new();
	struct ibv_wc wc;

	memset(w->a.buf, 0x2b, LEN);
	assert_int_equal(wire_recv(&w->b, 1, 512, LEN), 0);
	leaves(&w->a, send_op);
	wc = fx_expect(w->b.rcq, 1, IBV_WC_SUCCESS);
	assert_int_equal(wc.opcode, IBV_WC_RECV);
	assert_int_equal(wc.byte_len, LEN);
	assert_int_equal(wc.qp_num, w->b.qp->qp_num);
	assert_memory_equal(w->b.buf + 512, w->a.buf, LEN);
	wire_check(w);
}

FX_TEST(send__of_several_packets)
{
	struct wire *w = uc_new();
	struct op op = send_op;

	op.len = FX_BUF;
	for (uint32_t i = 0; i < FX_BUF; ++i)
		w->a.buf[i] = (uint8_t)(i * 7 + i / 256);
	assert_int_equal(wire_recv(&w->b, 1, 0, FX_BUF), 0);
	leaves(&w->a, op);
	assert_int_equal(fx_expect(w->b.rcq, 1, IBV_WC_SUCCESS).byte_len,
			 FX_BUF);
	assert_memory_equal(w->b.buf, w->a.buf, FX_BUF);
}

FX_TEST(send_with_imm__arrives)
{
	struct wire *w = uc_new();

	assert_int_equal(wire_recv(&w->b, 1, 512, LEN), 0);
	leaves_with_imm(&w->a, &send_op, 0x55667788);
	gets_imm(&w->b, 1, 0x55667788);
}

/* The following message says that the write has arrived. */
FX_TEST(write__arrives)
{
	struct wire *w = uc_new();

	memset(w->a.buf, 0x2c, LEN);
	leaves(&w->a, write_op);
	wire_check(w);
	assert_memory_equal(w->b.buf + write_op.to, w->a.buf, LEN);
}

FX_TEST(write_with_imm__arrives)
{
	struct wire *w = uc_new();

	memset(w->a.buf, 0x2d, LEN);
	assert_int_equal(wire_recv(&w->b, 1, 0, 0), 0);
	leaves_with_imm(&w->a, &write_op, 9);
	gets_imm(&w->b, 1, 9);
	assert_memory_equal(w->b.buf + write_op.to, w->a.buf, LEN);
}

/*
 * Messages sent before the receives may be late, and take a receive after all.
 */
static void gets_only_second(const struct wire *w, const struct op *op)
{
	struct ibv_wc wc;

	leaves_with_imm(&w->a, op, 11);
	wc = fx_wait(w->b.rcq);
	if (ntohl(wc.imm_data) == 10)
		wc = fx_wait(w->b.rcq);
	assert_int_equal(ntohl(wc.imm_data), 11);
	assert_int_equal(wc.status, IBV_WC_SUCCESS);
}

static void without_a_receive(const struct op *op)
{
	struct wire *w = uc_new();

	leaves_with_imm(&w->a, op, 10);
	assert_int_equal(wire_recv(&w->b, 1, 512, LEN), 0);
	assert_int_equal(wire_recv(&w->b, 2, 512, LEN), 0);
	gets_only_second(w, op);
}

FX_TEST(send__without_a_receive_dropped)
{
	without_a_receive(&send_op);
}

FX_TEST(write_with_imm__without_a_receive_dropped)
{
	without_a_receive(&write_op);
}

/* Asserts that b has its former memory, and works as before. */
static void is_dropped(struct wire *w)
{
	static const uint8_t nothing[LEN];

	wire_check(w);
	assert_memory_equal(w->b.buf + write_op.to, nothing, LEN);
}

FX_TEST(write__by_a_wrong_rkey_dropped)
{
	struct wire *w = uc_new();
	struct ibv_mr *mr = w->b.mr;

	memset(w->a.buf, 0x2e, LEN);
	w->b.mr = w->a.mr; /* another domain's */
	leaves(&w->a, write_op);
	w->b.mr = mr;
	is_dropped(w);
}

FX_TEST(write__to_a_region_that_forbids_it_dropped)
{
	struct wire_opts opts = *uc_opts();
	struct wire *w;

	opts.mr_access = IBV_ACCESS_LOCAL_WRITE;
	w = wire_new(&opts);
	memset(w->a.buf, 0x2e, LEN);
	leaves(&w->a, write_op);
	is_dropped(w);
}

FX_TEST(write__to_a_qp_that_forbids_it_dropped)
{
	struct wire_opts opts = *uc_opts();
	struct wire *w;

	opts.qp_access = 0;
	w = wire_new(&opts);
	memset(w->a.buf, 0x2e, LEN);
	leaves(&w->a, write_op);
	is_dropped(w);
}

FX_TEST(write_with_imm__dropped_leaves_the_receive)
{
	struct wire *w = uc_new();
	struct op op = write_op;

	assert_int_equal(wire_recv(&w->b, 1, 512, LEN), 0);
	op.to = FX_BUF; /* behind the region */
	leaves_with_imm(&w->a, &op, 12);
	leaves_with_imm(&w->a, &write_op, 13);
	gets_imm(&w->b, 1, 13);
}

FX_TEST(send__to_an_srq)
{
	struct wire_opts opts = *uc_opts();
	struct wire *w;

	opts.srq_pd = fx_pd();
	opts.srq = fx_srq(opts.srq_pd, 4);
	w = wire_new(&opts);
	leaves_with_imm(&w->a, &send_op, 10);
	assert_int_equal(wire_srq_recv(opts.srq, w->b.mr, 1), 0);
	assert_int_equal(wire_srq_recv(opts.srq, w->b.mr, 2), 0);
	gets_only_second(w, &send_op);
}

FX_TEST(send__longer_than_the_receive)
{
	struct wire *w = uc_new();

	assert_int_equal(wire_recv(&w->b, 1, 512, LEN - 1), 0);
	leaves(&w->a, send_op);
	fx_expect(w->b.rcq, 1, dut.traits->short_recv);
}

FX_TEST(send__to_nobody_succeeds)
{
	struct wire *w = uc_new();

	wire_fail(w->b.qp);
	leaves(&w->a, send_op);
	assert_int_equal(fx_destroy(w->b.qp), 0);
	leaves(&w->a, send_op);
	leaves(&w->a, write_op);
}

FX_TEST(read_and_atomics__refused)
{
	static const enum ibv_wr_opcode codes[] = {IBV_WR_RDMA_READ,
						   IBV_WR_ATOMIC_CMP_AND_SWP,
						   IBV_WR_ATOMIC_FETCH_AND_ADD};

	for (unsigned i = 0; i < FX_COUNT(codes); ++i) {
		size_t mark = fx_mark();
		struct op op = {.code = codes[i],
				.id = 3,
				.flags = IBV_SEND_SIGNALED,
				.len = 8};
		struct wire *w = uc_new();

		if (wire_post(&w->a, &op) == 0) {
			assert_false(dut.traits->post_checks_opcode);
			assert_int_not_equal(fx_wait(w->a.scq).status,
					     IBV_WC_SUCCESS);
		}
		fx_release(mark);
	}
}

/* --- the state machine */

FX_TEST(modify_qp__every_attribute_is_needed)
{
	static const enum ibv_qp_state way[] = {IBV_QPS_INIT, IBV_QPS_RTR,
						IBV_QPS_RTS};

	for (unsigned i = 0; i < FX_COUNT(way); ++i) {
		struct ibv_qp_attr attr;
		struct end e;
		int mask;

		wire_end(uc_opts(), &e);
		wire_move(uc_opts(), e.qp, e.qp->qp_num,
			  i ? way[i - 1] : IBV_QPS_RESET);
		mask = i == 0	? wire_to_init(uc_opts(), &attr)
		       : i == 1 ? wire_to_rtr(uc_opts(), e.qp->qp_num, &attr)
				: wire_to_rts(uc_opts(), &attr);
		for (int bit = 2; bit <= mask; bit <<= 1)
			if (mask & bit)
				assert_int_equal(
					ibv_modify_qp(e.qp, &attr, mask & ~bit),
					EINVAL);
		assert_int_equal(ibv_modify_qp(e.qp, &attr, mask), 0);
		assert_int_equal(e.qp->state, way[i]);
	}
}

/* Attributes only for reliable connections. */
FX_TEST(modify_qp__attributes_of_rc_EINVAL)
{
	static const int rtr[] = {IBV_QP_MAX_DEST_RD_ATOMIC,
				  IBV_QP_MIN_RNR_TIMER};
	static const int rts[] = {IBV_QP_TIMEOUT, IBV_QP_RETRY_CNT,
				  IBV_QP_RNR_RETRY, IBV_QP_MAX_QP_RD_ATOMIC};
	struct ibv_qp_attr attr;
	struct end e;
	int mask;

	wire_end(uc_opts(), &e);
	wire_move(uc_opts(), e.qp, e.qp->qp_num, IBV_QPS_INIT);
	mask = wire_to_rtr(uc_opts(), e.qp->qp_num, &attr);
	for (unsigned i = 0; i < FX_COUNT(rtr); ++i)
		assert_int_equal(ibv_modify_qp(e.qp, &attr, mask | rtr[i]),
				 EINVAL);
	assert_int_equal(ibv_modify_qp(e.qp, &attr, mask), 0);
	mask = wire_to_rts(uc_opts(), &attr);
	for (unsigned i = 0; i < FX_COUNT(rts); ++i)
		assert_int_equal(ibv_modify_qp(e.qp, &attr, mask | rts[i]),
				 EINVAL);
	assert_int_equal(ibv_modify_qp(e.qp, &attr, mask), 0);
}

FX_TEST(modify_qp__from_rts_on)
{
	static const enum ibv_qp_state way[] = {IBV_QPS_RTS, IBV_QPS_ERR,
						IBV_QPS_RESET};
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_RTS,
				   .qp_access_flags = IBV_ACCESS_REMOTE_WRITE,
				   .cur_qp_state = IBV_QPS_RTS};
	struct wire *w = uc_new();

	assert_int_equal(ibv_modify_qp(w->a.qp, &attr,
				       IBV_QP_STATE | IBV_QP_ACCESS_FLAGS |
					       IBV_QP_CUR_STATE),
			 0);
	assert_int_equal(ibv_modify_qp(w->a.qp, &attr,
				       IBV_QP_STATE | IBV_QP_MIN_RNR_TIMER),
			 EINVAL);
	for (unsigned i = 0; i < FX_COUNT(way); ++i) {
		attr.qp_state = way[i];
		assert_int_equal(ibv_modify_qp(w->a.qp, &attr, IBV_QP_STATE),
				 0);
		assert_int_equal(w->a.qp->state, way[i]);
	}
}

FX_TEST(post__in_error_state_is_flushed)
{
	struct wire *w = uc_new();

	assert_int_equal(wire_recv(&w->a, 1, 0, 8), 0);
	wire_fail(w->a.qp);
	assert_int_equal(wire_send(&w->a, 2), 0);
	fx_expect(w->a.rcq, 1, IBV_WC_WR_FLUSH_ERR);
	fx_expect(w->a.scq, 2, IBV_WC_WR_FLUSH_ERR);
}

/* RC packets are not for a UC queue pair, nor the reverse. */
FX_TEST(send__to_another_type_not_delivered)
{
	struct wire_opts rc = WIRE_DEFAULTS;
	struct end a;
	struct end b;

	fx_far();
	wire_end(uc_opts(), &a);
	fx_near();
	wire_end(&rc, &b);
	wire_move(uc_opts(), a.qp, b.qp->qp_num, IBV_QPS_RTS);
	rc.timeout = 8;
	rc.retry_cnt = 1;
	wire_move(&rc, b.qp, a.qp->qp_num, IBV_QPS_RTS);
	a.peer = &b;
	b.peer = &a;
	assert_int_equal(wire_recv(&a, 1, 512, LEN), 0);
	assert_int_equal(wire_recv(&b, 2, 512, LEN), 0);
	leaves(&a, send_op);
	assert_int_equal(wire_send(&b, 3), 0);
	fx_expect(b.scq, 3, IBV_WC_RETRY_EXC_ERR);
	fx_expect(b.rcq, 2, IBV_WC_WR_FLUSH_ERR);
	fx_expect_empty(a.rcq);
}

/* --- ibv_wr_* */

static struct wire *uc_ex(struct ibv_qp_ex **ex)
{
	struct wire *w = wire_new_at(uc_opts(), false, true);
	struct ibv_qp_init_attr_ex attr = {
		.qp_type = IBV_QPT_UC,
		.send_cq = w->a.scq,
		.recv_cq = w->a.rcq,
		.pd = w->a.pd,
		.cap = {8, 8, 1, 1, 0},
		.comp_mask =
			IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS,
		.send_ops_flags = IBV_QP_EX_WITH_SEND |
				  IBV_QP_EX_WITH_SEND_WITH_IMM |
				  IBV_QP_EX_WITH_RDMA_WRITE |
				  IBV_QP_EX_WITH_RDMA_WRITE_WITH_IMM,
	};
	struct ibv_qp *qp = ibv_create_qp_ex(dut.verbs, &attr);

	fx_need(qp || errno != EOPNOTSUPP,
		"the device has no extended queue pairs of this type");
	assert_non_null(qp);
	fx_keep_qp(qp);
	wire_reset(w->b.qp);
	wire_move(uc_opts(), qp, w->b.qp->qp_num, IBV_QPS_RTS);
	wire_move(uc_opts(), w->b.qp, qp->qp_num, IBV_QPS_RTS);
	w->a.qp = qp;
	*ex = ibv_qp_to_qp_ex(qp);
	assert_non_null(*ex);
	return w;
}

static void finish(struct ibv_qp_ex *ex, const struct end *e)
{
	ibv_wr_set_sge(ex, e->mr->lkey, (uintptr_t)e->buf, LEN);
}

FX_TEST(wr__all_in_one_batch)
{
	struct ibv_qp_ex *ex;
	struct wire *w = uc_ex(&ex);
	uint64_t to = (uintptr_t)w->b.buf + write_op.to;

	memset(w->a.buf, 0x2f, LEN);
	for (uint64_t id = 1; id <= 3; ++id)
		assert_int_equal(wire_recv(&w->b, id, 512, LEN), 0);
	ibv_wr_start(ex);
	ex->wr_id = 7;
	ex->wr_flags = IBV_SEND_SIGNALED;
	ibv_wr_send(ex);
	finish(ex, &w->a);
	ibv_wr_send_imm(ex, htonl(21));
	finish(ex, &w->a);
	ibv_wr_rdma_write(ex, w->b.mr->rkey, to);
	finish(ex, &w->a);
	ibv_wr_rdma_write_imm(ex, w->b.mr->rkey, to + LEN, htonl(22));
	finish(ex, &w->a);
	assert_int_equal(ibv_wr_complete(ex), 0);
	fx_drain(w->a.scq, 4);
	fx_expect(w->b.rcq, 1, IBV_WC_SUCCESS);
	gets_imm(&w->b, 2, 21);
	gets_imm(&w->b, 3, 22);
	assert_memory_equal(w->b.buf + 512, w->a.buf, LEN);
	assert_memory_equal(w->b.buf + write_op.to, w->a.buf, LEN);
	assert_memory_equal(w->b.buf + write_op.to + LEN, w->a.buf, LEN);
}

/* --- memory windows */

static int undo_mw(void *p)
{
	return ibv_dealloc_mw(p);
}

FX_TEST(write__through_a_window)
{
	struct wire_opts opts = *uc_opts();
	struct ibv_mw_bind bind = {.wr_id = 5, .send_flags = IBV_SEND_SIGNALED};
	struct wire *w;
	struct ibv_mr as_mr;
	struct ibv_mr *mr;
	struct ibv_mw *mw;

	opts.mr_access = FX_ALL_ACCESS | IBV_ACCESS_MW_BIND;
	fx_need(dut.attr.device_cap_flags & IBV_DEVICE_MEM_WINDOW,
		"the device has no memory windows");
	w = wire_new(&opts);
	mr = w->b.mr;
	mw = ibv_alloc_mw(w->b.pd, IBV_MW_TYPE_1);
	assert_non_null(mw);
	fx_keep(mw, undo_mw);
	bind.bind_info.mr = mr;
	bind.bind_info.addr = (uintptr_t)w->b.buf;
	bind.bind_info.length = FX_BUF;
	bind.bind_info.mw_access_flags = IBV_ACCESS_REMOTE_WRITE;
	assert_int_equal(ibv_bind_mw(w->b.qp, mw, &bind), 0);
	fx_expect(w->b.scq, 5, IBV_WC_SUCCESS);
	memset(w->a.buf, 0x30, LEN);
	as_mr = *mr;
	as_mr.rkey = mw->rkey;
	w->b.mr = &as_mr;
	leaves(&w->a, write_op);
	w->b.mr = mr;
	wire_check(w);
	assert_memory_equal(w->b.buf + write_op.to, w->a.buf, LEN);
}

FX_TEST(send_with_inv__takes_a_window_away)
{
	struct wire_opts opts = *uc_opts();
	struct ibv_send_wr wr = {.wr_id = 5,
				 .opcode = IBV_WR_BIND_MW,
				 .send_flags = IBV_SEND_SIGNALED};
	struct ibv_send_wr *bad;
	struct wire *w;
	struct ibv_mw *mw;

	fx_need(dut.traits->uc_invalidates,
		"the device has no SEND_WITH_INV on unreliable connections");
	opts.mr_access = FX_ALL_ACCESS | IBV_ACCESS_MW_BIND;
	w = wire_new(&opts);
	mw = ibv_alloc_mw(w->b.pd, IBV_MW_TYPE_2);
	assert_non_null(mw);
	fx_keep(mw, undo_mw);
	wr.bind_mw.mw = mw;
	wr.bind_mw.rkey = ibv_inc_rkey(mw->rkey);
	wr.bind_mw.bind_info.mr = w->b.mr;
	wr.bind_mw.bind_info.addr = (uintptr_t)w->b.buf;
	wr.bind_mw.bind_info.length = FX_BUF;
	wr.bind_mw.bind_info.mw_access_flags = IBV_ACCESS_REMOTE_WRITE;
	assert_int_equal(ibv_post_send(w->b.qp, &wr, &bad), 0);
	fx_expect(w->b.scq, 5, IBV_WC_SUCCESS);
	wr.opcode = IBV_WR_SEND_WITH_INV;
	wr.invalidate_rkey = wr.bind_mw.rkey;
	assert_int_equal(wire_recv(&w->b, 1, 512, LEN), 0);
	assert_int_equal(ibv_post_send(w->a.qp, &wr, &bad), 0);
	fx_expect(w->a.scq, 5, IBV_WC_SUCCESS);
	assert_true(fx_expect(w->b.rcq, 1, IBV_WC_SUCCESS).wc_flags &
		    IBV_WC_WITH_INV);
	/* no window holds the region any more */
	assert_int_equal(fx_destroy(w->b.mr), 0);
}

/* --- rdma_cm */

static int undo_ep(void *p)
{
	rdma_destroy_ep(p);
	return 0;
}

/*
 * Makes an endpoint at the address of the device; port 0: a passive endpoint.
 * In the port space of TCP every connection is reliable.
 */
static struct rdma_cm_id *uc_ep(uint16_t port, struct ibv_qp_init_attr *attr)
{
	struct rdma_addrinfo hints = {
		.ai_flags = port ? 0 : RAI_PASSIVE,
		.ai_port_space = RDMA_PS_IB,
		.ai_qp_type = IBV_QPT_UC,
	};
	char host[INET_ADDRSTRLEN];
	char service[8];
	struct rdma_addrinfo *res;
	struct rdma_cm_id *id = NULL;

	inet_ntop(AF_INET, &dut.addr.sin_addr, host, sizeof(host));
	snprintf(service, sizeof(service), "%u", port);
	if (rdma_getaddrinfo(host, service, &hints, &res))
		return NULL;
	if (rdma_create_ep(&id, res, NULL, attr))
		id = NULL;
	rdma_freeaddrinfo(res);
	return id;
}

static const struct ibv_qp_init_attr cm_attr = {.qp_type = IBV_QPT_UC,
						.cap = {4, 4, 1, 1, 16}};

struct client {
	uint16_t port;
	const char *failed; /* the step, or NULL */
};

/* Connects and sends a message; reports instead of asserting. */
static void *run_client(void *arg)
{
	struct ibv_qp_init_attr attr = cm_attr;
	struct client *c = arg;
	struct rdma_cm_id *id = uc_ep(c->port, &attr);
	char text[] = "hello";
	struct ibv_wc wc;

	c->failed = "rdma_create_ep";
	if (!id)
		return NULL;
	c->failed = NULL;
	if (id->qp->qp_type != IBV_QPT_UC)
		c->failed = "type";
	else if (rdma_connect(id, NULL))
		c->failed = "rdma_connect";
	else if (rdma_post_send(id, NULL, text, sizeof(text), NULL,
				IBV_SEND_INLINE | IBV_SEND_SIGNALED))
		c->failed = "rdma_post_send";
	else if (rdma_get_send_comp(id, &wc) != 1 || wc.status)
		c->failed = "rdma_get_send_comp";
	else if (rdma_disconnect(id))
		c->failed = "rdma_disconnect";
	rdma_destroy_ep(id);
	return NULL;
}

FX_TEST(cm__endpoints_connect)
{
	struct ibv_qp_init_attr attr = cm_attr;
	struct rdma_cm_id *listener = uc_ep(0, &attr);
	struct client client = {0};
	struct rdma_cm_id *id;
	struct ibv_wc wc;
	struct ibv_mr *mr;
	char *buf = fx_alloc(64);
	pthread_t t;

	assert_non_null(listener);
	fx_keep(listener, undo_ep);
	assert_int_equal(rdma_listen(listener, 1), 0);
	client.port = ntohs(rdma_get_src_port(listener));
	assert_int_equal(pthread_create(&t, NULL, run_client, &client), 0);
	fx_wait_readable(listener->channel->fd, "the client's request");
	assert_int_equal(rdma_get_request(listener, &id), 0);
	fx_keep(id, undo_ep);
	assert_int_equal(id->qp->qp_type, IBV_QPT_UC);
	mr = fx_mr_at(id->pd, buf, 64, IBV_ACCESS_LOCAL_WRITE);
	assert_int_equal(rdma_post_recv(id, NULL, buf, 64, mr), 0);
	assert_int_equal(rdma_accept(id, NULL), 0);
	wc = fx_wait(id->recv_cq);
	assert_int_equal(wc.status, IBV_WC_SUCCESS);
	assert_string_equal(buf, "hello");
	assert_int_equal(rdma_disconnect(id), 0);
	assert_int_equal(pthread_join(t, NULL), 0);
	if (client.failed)
		fail_msg("the client: %s", client.failed);
}

FX_MAIN("uc")
