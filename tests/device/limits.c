/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * As many objects of each kind as the device says, and not one more: a walk
 * to the limit ends with an error there, and begins anew once all are gone.
 * Sizes of queues and lists are in qp.c, cq.c, srq.c and send.c, multicast
 * groups in mcast.c.
 */

#include <errno.h>
#include "wire.h"

#define CHEAP 70000 /* more are too many to make, */
#define FAST  20000 /* and more than these to do it twice */
/* That the device and the libraries may have for themselves. */
#define OTHERS 64

/* What the objects are made of. */
struct stock {
	struct ibv_pd *pd;
	struct ibv_cq *cq;
	void *memory;
};

typedef void *(*make)(const struct stock *stock);

static void *make_pd(const struct stock *stock)
{
	(void)stock;
	return ibv_alloc_pd(dut.verbs);
}

static int undo_pd(void *p)
{
	return ibv_dealloc_pd(p);
}

static void *make_ah(const struct stock *stock)
{
	struct ibv_ah_attr attr = {.is_global = 1, .port_num = 1};

	attr.grh.dgid = dut.gid;
	attr.grh.sgid_index = dut.gid_index;
	attr.grh.hop_limit = 64;
	return ibv_create_ah(stock->pd, &attr);
}

static int undo_ah(void *p)
{
	return ibv_destroy_ah(p);
}

static void *make_cq(const struct stock *stock)
{
	(void)stock;
	return ibv_create_cq(dut.verbs, 1, NULL, NULL, 0);
}

static int undo_cq(void *p)
{
	return ibv_destroy_cq(p);
}

static void *make_srq(const struct stock *stock)
{
	struct ibv_srq_init_attr attr = {.attr = {.max_wr = 1, .max_sge = 1}};

	return ibv_create_srq(stock->pd, &attr);
}

static int undo_srq(void *p)
{
	return ibv_destroy_srq(p);
}

static void *make_qp(const struct stock *stock)
{
	struct ibv_qp_init_attr attr = {.send_cq = stock->cq,
					.recv_cq = stock->cq,
					.qp_type = IBV_QPT_UC,
					.cap = {1, 1, 1, 1, 0}};

	return ibv_create_qp(stock->pd, &attr);
}

static int undo_qp(void *p)
{
	return ibv_destroy_qp(p);
}

static void *make_mr(const struct stock *stock)
{
	return ibv_reg_mr(stock->pd, stock->memory, 64, 0);
}

static int undo_mr(void *p)
{
	return ibv_dereg_mr(p);
}

static void *make_mw(const struct stock *stock)
{
	return ibv_alloc_mw(stock->pd, IBV_MW_TYPE_1);
}

static int undo_mw(void *p)
{
	return ibv_dealloc_mw(p);
}

/* Makes objects until the device has no more; how many. */
static int fill(const struct stock *stock, make one, void **objects, int max)
{
	int n = 0;

	errno = 0;
	while (n <= max && (objects[n] = one(stock)))
		++n;
	return n;
}

static void walk(int max, make one, fx_undo undo)
{
	struct stock stock = {.pd = fx_pd(),
			      .cq = fx_cq(1, NULL, NULL),
			      .memory = fx_alloc(64)};
	void **objects;
	int first = 0;

	fx_need(max > 0, "the device has none");
	fx_need(max <= CHEAP, "so many are not cheap");
	objects = fx_alloc(((size_t)max + 1) * sizeof(*objects));
	for (int round = 0; round < (max > FAST ? 1 : 2); ++round) {
		int n = fill(&stock, one, objects, max);
		int error = errno;

		for (int i = 0; i < n; ++i)
			assert_int_equal(undo(objects[i]), 0);
		if (n > max || n < max - OTHERS)
			fail_msg("%d of %d could be made", n, max);
		assert_int_equal(error, dut.traits->full);
		if (round)
			assert_int_equal(n, first);
		first = n;
	}
}

FX_TEST(pd__as_many_as_told)
{
	walk(dut.attr.max_pd, make_pd, undo_pd);
}

FX_TEST(ah__as_many_as_told)
{
	walk(dut.attr.max_ah, make_ah, undo_ah);
}

FX_TEST(cq__as_many_as_told)
{
	walk(dut.attr.max_cq, make_cq, undo_cq);
}

FX_TEST(srq__as_many_as_told)
{
	walk(dut.attr.max_srq, make_srq, undo_srq);
}

FX_TEST(qp__as_many_as_told)
{
	walk(dut.attr.max_qp, make_qp, undo_qp);
}

FX_TEST(mr__as_many_as_told)
{
	walk(dut.attr.max_mr, make_mr, undo_mr);
}

FX_TEST(mw__as_many_as_told)
{
	walk(dut.attr.max_mw, make_mw, undo_mw);
}

FX_MAIN("limits")
