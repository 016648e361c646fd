/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * fixture.c -- two connected QPs, made by plain verbs.
 */

#include "fixture.h"

#include <poll.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>

#ifdef RPMA_HAVE_NATIVE_FLUSH
#define FLUSH_ACCESS (IBV_ACCESS_FLUSH_GLOBAL | IBV_ACCESS_FLUSH_PERSISTENT)
#else
#define FLUSH_ACCESS 0
#endif

#define ALL_ACCESS                                          \
	(IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | \
	 IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC | FLUSH_ACCESS)

#define RANDOM_RUNS 200

struct ibv_qp *end_qp(const struct end *end)
{
	struct ibv_qp_init_attr init = {
		.send_cq = end->cq,
		.recv_cq = end->cq,
		.srq = end->srq,
		.cap = {DEPTH, DEPTH, 4, 4, 64},
		.qp_type = IBV_QPT_RC,
	};
	struct ibv_qp *qp = ibv_create_qp(end->pd, &init);

	assert_non_null(qp);
	return qp;
}

struct ibv_qp *end_qp_ex(const struct end *end, enum ibv_qp_type type,
			 uint64_t ops)
{
	struct ibv_qp_init_attr_ex init = {
		.send_cq = end->cq,
		.recv_cq = end->cq,
		.pd = end->pd,
		.cap = {DEPTH, DEPTH, 1, 1, 0},
		.qp_type = type,
		.comp_mask =
			IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS,
		.send_ops_flags = ops,
	};

	return ibv_create_qp_ex(end->ctx, &init);
}

void end_init(struct end *end, int with_srq)
{
	struct ibv_srq_init_attr srq = {
		.attr = {.max_wr = DEPTH, .max_sge = 4}};
	struct ibv_device **list = ibv_get_device_list(NULL);

	assert_non_null(list);
	assert_non_null(list[0]);
	memset(end, 0, sizeof(*end));
	end->ctx = ibv_open_device(list[0]);
	ibv_free_device_list(list);
	assert_non_null(end->ctx);
	end->pd = ibv_alloc_pd(end->ctx);
	assert_non_null(end->pd);
	end->channel = ibv_create_comp_channel(end->ctx);
	assert_non_null(end->channel);
	end->cq = ibv_create_cq(end->ctx, 4 * DEPTH, end, end->channel, 0);
	assert_non_null(end->cq);
	end->buf = calloc(1, BUF_SIZE);
	assert_non_null(end->buf);
	end->mr = ibv_reg_mr(end->pd, end->buf, BUF_SIZE, ALL_ACCESS);
	assert_non_null(end->mr);
	if (with_srq) {
		end->srq = ibv_create_srq(end->pd, &srq);
		assert_non_null(end->srq);
	}
	end->qp = end_qp(end);
}

void end_fini(struct end *end)
{
	assert_int_equal(ibv_destroy_qp(end->qp), 0);
	if (end->srq)
		assert_int_equal(ibv_destroy_srq(end->srq), 0);
	assert_int_equal(ibv_dereg_mr(end->mr), 0);
	assert_int_equal(ibv_destroy_cq(end->cq), 0);
	assert_int_equal(ibv_destroy_comp_channel(end->channel), 0);
	assert_int_equal(ibv_dealloc_pd(end->pd), 0);
	rpma_loopback_set_strict(RPMA_LOOPBACK_STRICT_ABORT); /* if used */
	assert_int_equal(ibv_close_device(end->ctx), 0);
	rpma_loopback_set_strict(RPMA_LOOPBACK_STRICT_OFF);
	free(end->buf);
}

int end_move(const struct end *end, const struct end *peer,
	     enum ibv_qp_state to)
{
	struct ibv_qp_attr attr = {
		.qp_state = to,
		.port_num = 1,
		.qp_access_flags = ALL_ACCESS,
		.path_mtu = IBV_MTU_1024,
		.dest_qp_num = peer ? peer->qp->qp_num : 0,
		.ah_attr = {.is_global = 1, .port_num = 1},
		.max_rd_atomic = 4,
		.max_dest_rd_atomic = 4,
		.timeout = 14,
		.retry_cnt = 2,
		.rnr_retry = 2,
		.min_rnr_timer = 1,
	};
	int mask = IBV_QP_STATE;

	if (to == IBV_QPS_INIT)
		mask |= IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS;
	if (to == IBV_QPS_RTR) {
		assert_int_equal(
			ibv_query_gid(peer->ctx, 1, 0, &attr.ah_attr.grh.dgid),
			0);
		mask |= IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN |
			IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC |
			IBV_QP_MIN_RNR_TIMER;
	}
	if (to == IBV_QPS_RTS)
		mask |= IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
			IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC;
	return ibv_modify_qp(end->qp, &attr, mask);
}

static void connect_ends(struct pair *pair)
{
	static const enum ibv_qp_state way[] = {IBV_QPS_RESET, IBV_QPS_INIT,
						IBV_QPS_RTR, IBV_QPS_RTS};

	for (size_t i = 0; i < sizeof(way) / sizeof(way[0]); i++) {
		assert_int_equal(end_move(&pair->a, &pair->b, way[i]), 0);
		assert_int_equal(end_move(&pair->b, &pair->a, way[i]), 0);
	}
}

struct pair *pair_new(int with_srq)
{
	struct pair *pair = calloc(1, sizeof(*pair));

	assert_non_null(pair);
	end_init(&pair->a, with_srq);
	end_init(&pair->b, with_srq);
	connect_ends(pair);
	return pair;
}

struct pair *pair_new_ex(uint64_t ops)
{
	struct pair *pair = pair_new(0);

	assert_int_equal(ibv_destroy_qp(pair->a.qp), 0);
	pair->a.qp = end_qp_ex(&pair->a, IBV_QPT_RC, ops);
	assert_non_null(pair->a.qp);
	connect_ends(pair);
	return pair;
}

void end_swap_qp(struct end *end, enum ibv_qp_type type)
{
	struct ibv_qp_init_attr init = {
		.send_cq = end->cq,
		.recv_cq = end->cq,
		.cap = {DEPTH, DEPTH, 1, 1, 64},
		.qp_type = type,
	};

	assert_int_equal(ibv_destroy_qp(end->qp), 0);
	end->qp = ibv_create_qp(end->pd, &init);
	assert_non_null(end->qp);
}

void end_to_rts(const struct end *end, uint32_t qpn)
{
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_INIT,
		.port_num = 1,
		.qkey = QKEY,
		.qp_access_flags = IBV_ACCESS_REMOTE_WRITE,
		.path_mtu = IBV_MTU_1024,
		.dest_qp_num = qpn,
		.ah_attr = {.is_global = 1, .port_num = 1},
	};
	int init = IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT;
	int rtr = IBV_QP_STATE;

	init |= qpn ? IBV_QP_ACCESS_FLAGS : IBV_QP_QKEY;
	if (qpn)
		rtr |= IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN |
		       IBV_QP_RQ_PSN;
	assert_int_equal(ibv_query_gid(end->ctx, 1, 0, &attr.ah_attr.grh.dgid),
			 0);
	assert_int_equal(ibv_modify_qp(end->qp, &attr, init), 0);
	attr.qp_state = IBV_QPS_RTR;
	assert_int_equal(ibv_modify_qp(end->qp, &attr, rtr), 0);
	attr.qp_state = IBV_QPS_RTS;
	assert_int_equal(
		ibv_modify_qp(end->qp, &attr, IBV_QP_STATE | IBV_QP_SQ_PSN), 0);
}

struct pair *pair_new_uc(void)
{
	struct pair *p = pair_new(0);

	end_swap_qp(&p->a, IBV_QPT_UC);
	end_swap_qp(&p->b, IBV_QPT_UC);
	end_to_rts(&p->a, p->b.qp->qp_num);
	end_to_rts(&p->b, p->a.qp->qp_num);
	return p;
}

void pair_delete(struct pair *pair)
{
	end_fini(&pair->a);
	end_fini(&pair->b);
	free(pair);
}

int end_send(const struct end *end, uint64_t wr_id, uint32_t offset,
	     uint32_t length)
{
	struct ibv_sge sge = {(uintptr_t)end->buf + offset, length,
			      end->mr->lkey};
	struct ibv_send_wr *bad, wr = {
					 .wr_id = wr_id,
					 .sg_list = &sge,
					 .num_sge = 1,
					 .opcode = IBV_WR_SEND,
					 .send_flags = IBV_SEND_SIGNALED,
				 };

	return ibv_post_send(end->qp, &wr, &bad);
}

int end_write(const struct end *end, const struct end *peer, uint64_t wr_id,
	      uint32_t offset, uint32_t length)
{
	struct ibv_sge sge = {(uintptr_t)end->buf + offset, length,
			      end->mr->lkey};
	struct ibv_send_wr *bad, wr = {
					 .wr_id = wr_id,
					 .sg_list = &sge,
					 .num_sge = 1,
					 .opcode = IBV_WR_RDMA_WRITE,
					 .send_flags = IBV_SEND_SIGNALED,
				 };

	wr.wr.rdma.remote_addr = (uintptr_t)peer->buf + offset;
	wr.wr.rdma.rkey = peer->mr->rkey;
	return ibv_post_send(end->qp, &wr, &bad);
}

int end_recv(const struct end *end, uint64_t wr_id, uint32_t offset,
	     uint32_t length)
{
	struct ibv_sge sge = {(uintptr_t)end->buf + offset, length,
			      end->mr->lkey};
	struct ibv_recv_wr *bad, wr = {
					 .wr_id = wr_id,
					 .sg_list = &sge,
					 .num_sge = 1,
				 };

	return end->srq ? ibv_post_srq_recv(end->srq, &wr, &bad)
			: ibv_post_recv(end->qp, &wr, &bad);
}

struct ibv_wc end_wait(const struct end *end)
{
	struct ibv_wc wc;
	int n;

	while (!(n = ibv_poll_cq(end->cq, 1, &wc)))
		sched_yield();
	assert_int_equal(n, 1);
	return wc;
}

void end_expect(const struct end *end, uint64_t wr_id,
		enum ibv_wc_status status)
{
	struct ibv_wc wc = end_wait(end);

	assert_int_equal(wc.wr_id, wr_id);
	assert_int_equal(wc.status, status);
}

int end_has_event(const struct end *end)
{
	struct pollfd pfd = {.fd = end->channel->fd, .events = POLLIN};

	return poll(&pfd, 1, 0) > 0;
}

void end_take_event(const struct end *end)
{
	struct ibv_cq *cq;
	void *context;

	assert_int_equal(ibv_get_cq_event(end->channel, &cq, &context), 0);
	assert_ptr_equal(cq, end->cq);
	assert_ptr_equal(context, end);
	ibv_ack_cq_events(cq, 1);
}

void search_inline(struct rpma_loopback_sched *sched)
{
	struct rpma_loopback_sched_result result;

	rpma_loopback_set_mode(RPMA_LOOPBACK_INLINE);
	sched->runs = 0;
	assert_int_equal(rpma_loopback_sched_run(sched, &result), 0);
	assert_true(result.complete);
	assert_true(result.runs > 1);
}

void search_thread(struct rpma_loopback_sched *sched)
{
	rpma_loopback_set_mode(RPMA_LOOPBACK_THREAD);
	sched->runs = RANDOM_RUNS;
	assert_int_equal(rpma_loopback_sched_run(sched, NULL), 0);
}

int fresh(void **state)
{
	(void)state;
	rpma_loopback_set_hook(NULL, NULL);
	rpma_loopback_fault_clear();
	rpma_loopback_set_mode(RPMA_LOOPBACK_INLINE);
	rpma_loopback_set_strict(RPMA_LOOPBACK_STRICT_OFF);
	rpma_loopback_set_seed(1);
	return 0;
}
