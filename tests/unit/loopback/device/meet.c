/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/* meet.c -- two queue pairs of two processes. */

#include "meet.h"

#include <arpa/inet.h>
#include <stdlib.h>

#define ALL_ACCESS                                          \
	(IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | \
	 IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC)

static void make_uc(struct end *end)
{
	struct ibv_qp_init_attr init = {
		.send_cq = end->cq,
		.recv_cq = end->cq,
		.cap = {DEPTH, DEPTH, 4, 4, 64},
		.qp_type = IBV_QPT_UC,
	};

	assert_int_equal(ibv_destroy_qp(end->qp), 0);
	end->qp = ibv_create_qp(end->pd, &init);
	assert_non_null(end->qp);
}

void meet_make(struct meet *m, const struct two_process *self,
	       const struct meet_opts *opts)
{
	struct meet_side mine;

	if (opts->is_threaded)
		rpma_loopback_set_mode(RPMA_LOOPBACK_THREAD);
	m->self = self;
	end_init(&m->end, opts->with_srq);
	if (opts->is_uc)
		make_uc(&m->end);
	m->mem = calloc(1, MEET_SIZE);
	assert_non_null(m->mem);
	m->mr = ibv_reg_mr(m->end.pd, m->mem, MEET_SIZE, ALL_ACCESS);
	assert_non_null(m->mr);
	mine = (struct meet_side){m->end.qp->qp_num, m->mr->rkey,
				  (uintptr_t)m->mem};
	two_swap(self, &mine, &m->other, sizeof(mine));
}

static void move(struct meet *m, struct ibv_qp_attr *attr, int mask)
{
	assert_int_equal(ibv_modify_qp(m->end.qp, attr, mask | IBV_QP_STATE),
			 0);
}

void meet_connect(struct meet *m, const struct meet_opts *opts)
{
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_INIT,
		.port_num = 1,
		.qp_access_flags = ALL_ACCESS,
		.path_mtu = IBV_MTU_1024,
		.dest_qp_num = m->other.qpn,
		.ah_attr = {.is_global = 1, .port_num = 1},
		/* as they come near to their end */
		.rq_psn = (m->self->number ? 0xfffff0 : 7) + opts->psn_gap,
		.sq_psn = m->self->number ? 7 : 0xfffff0,
		.max_rd_atomic = 4,
		.max_dest_rd_atomic = 4,
		.timeout = opts->timeout ? opts->timeout : 14,
		.retry_cnt = 2,
		.rnr_retry = opts->rnr_retry,
		.min_rnr_timer = 1,
	};

	if (opts->is_endless)
		attr.timeout = 0;
	assert_int_equal(
		ibv_query_gid(m->end.ctx, 1, 0, &attr.ah_attr.grh.dgid), 0);
	move(m, &attr, IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS);
	attr.qp_state = IBV_QPS_RTR;
	move(m, &attr,
	     IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
		     (opts->is_uc ? 0
				  : IBV_QP_MAX_DEST_RD_ATOMIC |
					    IBV_QP_MIN_RNR_TIMER));
	attr.qp_state = IBV_QPS_RTS;
	move(m, &attr,
	     IBV_QP_SQ_PSN | (opts->is_uc ? 0
					  : IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT |
						    IBV_QP_RNR_RETRY |
						    IBV_QP_MAX_QP_RD_ATOMIC));
}

void meet_begin(struct meet *m, const struct two_process *self,
		const struct meet_opts *opts)
{
	meet_make(m, self, opts);
	meet_connect(m, opts);
	two_wait(self);
}

void meet_end(struct meet *m)
{
	if (m->mr)
		assert_int_equal(ibv_dereg_mr(m->mr), 0);
	end_fini(&m->end);
	free(m->mem);
}

int meet_post(struct meet *m, enum ibv_wr_opcode opcode, uint64_t id,
	      uint32_t at, uint32_t length, uint32_t to, unsigned flags)
{
	struct ibv_sge sge = {(uintptr_t)m->mem + at, length, m->mr->lkey};
	struct ibv_send_wr *bad,
		wr = {
			.wr_id = id,
			.sg_list = &sge,
			.num_sge = 1,
			.opcode = opcode,
			.send_flags = IBV_SEND_SIGNALED | flags,
			.imm_data = htonl((uint32_t)id),
		};

	if (opcode == IBV_WR_ATOMIC_CMP_AND_SWP ||
	    opcode == IBV_WR_ATOMIC_FETCH_AND_ADD) {
		wr.wr.atomic.remote_addr = m->other.addr + to;
		wr.wr.atomic.rkey = m->other.rkey;
		wr.wr.atomic.compare_add = 1;
		wr.wr.atomic.swap = 2;
	} else {
		wr.wr.rdma.remote_addr = m->other.addr + to;
		wr.wr.rdma.rkey = m->other.rkey;
	}
	return ibv_post_send(m->end.qp, &wr, &bad);
}

int meet_recv(struct meet *m, uint64_t id, uint32_t at, uint32_t length)
{
	struct ibv_sge sge = {(uintptr_t)m->mem + at, length, m->mr->lkey};
	struct ibv_recv_wr *bad, wr = {
					 .wr_id = id,
					 .sg_list = &sge,
					 .num_sge = 1,
				 };

	return m->end.srq ? ibv_post_srq_recv(m->end.srq, &wr, &bad)
			  : ibv_post_recv(m->end.qp, &wr, &bad);
}

static uint8_t byte_of(uint32_t seed, uint32_t i)
{
	return (uint8_t)((seed + i) * 2654435761u >> 13);
}

void meet_fill(struct meet *m, uint32_t at, uint32_t length, uint32_t seed)
{
	for (uint32_t i = 0; i < length; i++)
		m->mem[at + i] = byte_of(seed, i);
}

void meet_check(struct meet *m, uint32_t at, uint32_t length, uint32_t seed)
{
	for (uint32_t i = 0; i < length; i++) {
		if (m->mem[at + i] != byte_of(seed, i))
			fail_msg("byte %u of %u is another", i, length);
	}
}
