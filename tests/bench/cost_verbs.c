/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * The operations of bench_cost with verbs alone, as a program does them that
 * has no librpma: a work request on the stack, one post. See cost.h.
 */

#include "cost.h"

#include <stdlib.h>

#include <rdma/rdma_cma.h>

#include "bench.h"

#define DEPTH 16

static struct ibv_context **devices;
static struct ibv_context *ctx;
static struct ibv_pd *pd;
static struct ibv_cq *cq;
static struct ibv_srq *srq;
static struct ibv_qp *qp;
static struct ibv_mr *mr;
static char *mem;

static void open_verbs(void)
{
	struct ibv_srq_init_attr srq_attr = {.attr = {DEPTH, 1, 0}};
	struct ibv_qp_init_attr attr = {
		.qp_type = IBV_QPT_RC,
		.cap = {DEPTH, DEPTH, 1, 1, 8},
	};

	devices = rdma_get_devices(NULL);
	if (!devices || !devices[0])
		bench_skip("no verbs device");
	ctx = devices[0];
	mem = aligned_alloc(COST_MEM, COST_MEM);
	pd = ibv_alloc_pd(ctx);
	cq = ibv_create_cq(ctx, DEPTH, NULL, NULL, 0);
	if (!mem || !pd || !cq)
		bench_fail("cannot make verbs objects");
	attr.send_cq = cq;
	attr.recv_cq = cq;
	srq = ibv_create_srq(pd, &srq_attr);
	qp = ibv_create_qp(pd, &attr);
	mr = ibv_reg_mr(pd, mem, COST_MEM, IBV_ACCESS_LOCAL_WRITE);
	if (!srq || !qp || !mr)
		bench_fail("cannot make verbs objects");
}

static void close_verbs(void)
{
	if (ibv_dereg_mr(mr) || ibv_destroy_qp(qp) || ibv_destroy_srq(srq) ||
	    ibv_destroy_cq(cq) || ibv_dealloc_pd(pd))
		bench_fail("cannot destroy verbs objects");
	rdma_free_devices(devices);
	free(mem);
}

static struct ibv_context *context_verbs(void)
{
	return ctx;
}

static void post(struct ibv_send_wr *wr)
{
	struct ibv_send_wr *bad;

	if (ibv_post_send(qp, wr, &bad))
		bench_fail("ibv_post_send");
}

/* What the remote side said of its memory; here it is our own. */
static void fill_remote(struct ibv_send_wr *wr)
{
	wr->wr.rdma.remote_addr = (uintptr_t)mr->addr;
	wr->wr.rdma.rkey = mr->rkey;
}

static inline void run_send_wr(uint64_t times, enum ibv_wr_opcode opcode,
			       unsigned flags)
{
	while (times--) {
		struct ibv_sge sge = {(uintptr_t)mem, COST_LEN, mr->lkey};
		struct ibv_send_wr wr = {
			.wr_id = times,
			.sg_list = &sge,
			.num_sge = 1,
			.opcode = opcode,
			.send_flags = flags,
		};

		if (opcode != IBV_WR_SEND && opcode != IBV_WR_SEND_WITH_IMM)
			fill_remote(&wr);
		if (opcode == IBV_WR_RDMA_WRITE_WITH_IMM ||
		    opcode == IBV_WR_SEND_WITH_IMM)
			wr.imm_data = htobe32((uint32_t)times);
		post(&wr);
	}
}

static void run_read(uint64_t times)
{
	run_send_wr(times, IBV_WR_RDMA_READ, IBV_SEND_SIGNALED);
}

static void run_write(uint64_t times)
{
	run_send_wr(times, IBV_WR_RDMA_WRITE, IBV_SEND_SIGNALED);
}

static void run_write_imm(uint64_t times)
{
	run_send_wr(times, IBV_WR_RDMA_WRITE_WITH_IMM, IBV_SEND_SIGNALED);
}

/* The emulated ones: a fenced inline write of 8 bytes, a read of 8 bytes. */
static void run_atomic_write(uint64_t times)
{
	run_send_wr(times, IBV_WR_RDMA_WRITE,
		    IBV_SEND_SIGNALED | IBV_SEND_FENCE | IBV_SEND_INLINE);
}

static void run_flush(uint64_t times)
{
	run_send_wr(times, IBV_WR_RDMA_READ, IBV_SEND_SIGNALED);
}

static void run_send(uint64_t times)
{
	run_send_wr(times, IBV_WR_SEND, IBV_SEND_SIGNALED);
}

static void run_send_imm(uint64_t times)
{
	run_send_wr(times, IBV_WR_SEND_WITH_IMM, IBV_SEND_SIGNALED);
}

static void run_recv(uint64_t times)
{
	while (times--) {
		struct ibv_sge sge = {(uintptr_t)mem, COST_LEN, mr->lkey};
		struct ibv_recv_wr wr = {
			.wr_id = times,
			.sg_list = &sge,
			.num_sge = 1,
		};
		struct ibv_recv_wr *bad;

		if (ibv_post_recv(qp, &wr, &bad))
			bench_fail("ibv_post_recv");
	}
}

static void run_srq_recv(uint64_t times)
{
	while (times--) {
		struct ibv_sge sge = {(uintptr_t)mem, COST_LEN, mr->lkey};
		struct ibv_recv_wr wr = {
			.wr_id = times,
			.sg_list = &sge,
			.num_sge = 1,
		};
		struct ibv_recv_wr *bad;

		if (ibv_post_srq_recv(srq, &wr, &bad))
			bench_fail("ibv_post_srq_recv");
	}
}

static void run_get_wc(uint64_t times)
{
	struct ibv_wc wc;

	while (times--) {
		if (ibv_poll_cq(cq, 1, &wc) != 1)
			bench_fail("ibv_poll_cq");
		cost_sum += wc.wr_id;
	}
}

static void run_get_wc_empty(uint64_t times)
{
	struct ibv_wc wc;

	while (times--) {
		if (ibv_poll_cq(cq, 1, &wc) != 0)
			bench_fail("ibv_poll_cq");
	}
}

static void run_get_wc_some(uint64_t times)
{
	struct ibv_wc wc[COST_BATCH];

	while (times--) {
		if (ibv_poll_cq(cq, COST_BATCH, wc) != 1)
			bench_fail("ibv_poll_cq");
		cost_sum += wc[0].wr_id;
	}
}

const struct cost_way cost_verbs = {
	.open = open_verbs,
	.close = close_verbs,
	.context = context_verbs,
	.run =
		{
			[COST_READ] = run_read,
			[COST_WRITE] = run_write,
			[COST_WRITE_IMM] = run_write_imm,
			[COST_ATOMIC_WRITE] = run_atomic_write,
			[COST_FLUSH] = run_flush,
			[COST_SEND] = run_send,
			[COST_SEND_IMM] = run_send_imm,
			[COST_RECV] = run_recv,
			[COST_SRQ_RECV] = run_srq_recv,
			[COST_GET_WC] = run_get_wc,
			[COST_GET_WC_EMPTY] = run_get_wc_empty,
			[COST_GET_WC_SOME] = run_get_wc_some,
		},
};
