/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * limits.c -- queue pairs up to the most that the device has, their numbers,
 * and the memory that they leave behind.
 */

#include "fixture.h"

#include <errno.h>
#include <malloc.h>
#include <stdbool.h>
#include <stdlib.h>

#define NUMBERS (1u << 24)
#define REUSES	600 /* more than the numbers that are free */
#define TURNS	20000
#define KEPT	(1u << 20) /* bytes */

/* As many queue pairs as the device has, and what they are made of. */
struct qps {
	struct ibv_context *ctx;
	struct ibv_pd *pd;
	struct ibv_cq *cq;
	struct ibv_qp **qp;
	int n;
};

static struct ibv_qp *try_qp(const struct qps *all)
{
	struct ibv_qp_init_attr init = {
		.send_cq = all->cq,
		.recv_cq = all->cq,
		.cap = {1, 1, 1, 1, 0},
		.qp_type = IBV_QPT_RC,
	};

	return ibv_create_qp(all->pd, &init);
}

static struct ibv_qp *make_qp(const struct qps *all)
{
	struct ibv_qp *qp = try_qp(all);

	assert_non_null(qp);
	return qp;
}

static int device_max_qp(const struct qps *all)
{
	struct ibv_device_attr attr;

	assert_int_equal(ibv_query_device(all->ctx, &attr), 0);
	return attr.max_qp;
}

static void qps_open(struct qps *all)
{
	struct ibv_device **list = ibv_get_device_list(NULL);

	assert_non_null(list);
	all->ctx = ibv_open_device(list[0]);
	ibv_free_device_list(list);
	assert_non_null(all->ctx);
	all->pd = ibv_alloc_pd(all->ctx);
	assert_non_null(all->pd);
	all->cq = ibv_create_cq(all->ctx, 1, NULL, NULL, 0);
	assert_non_null(all->cq);
	all->n = device_max_qp(all);
	all->qp = calloc((size_t)all->n, sizeof(struct ibv_qp *));
	assert_non_null(all->qp);
}

static void qps_fill(struct qps *all)
{
	for (int i = 0; i < all->n; i++)
		all->qp[i] = make_qp(all);
}

static void qps_empty(struct qps *all)
{
	for (int i = 0; i < all->n; i++)
		assert_int_equal(ibv_destroy_qp(all->qp[i]), 0);
}

static void qps_close(struct qps *all)
{
	free(all->qp);
	assert_int_equal(ibv_destroy_cq(all->cq), 0);
	assert_int_equal(ibv_dealloc_pd(all->pd), 0);
	assert_int_equal(ibv_close_device(all->ctx), 0);
}

static void assert_numbers_differ(const struct qps *all)
{
	bool *seen = calloc(NUMBERS, sizeof(*seen));

	assert_non_null(seen);
	for (int i = 0; i < all->n; i++) {
		uint32_t number = all->qp[i]->qp_num;

		assert_true(number > 1 && number < NUMBERS);
		assert_false(seen[number]);
		seen[number] = true;
	}
	free(seen);
}

/* Bytes that malloc has given out; 0 if a sanitizer's malloc is in place. */
static size_t allocated(void)
{
	size_t before = mallinfo2().uordblks;
	void *probe = malloc(1 << 16);
	size_t after = mallinfo2().uordblks;

	assert_non_null(probe);
	free(probe);
	return after > before ? before : 0;
}

/* Few at a time need little memory, however many there have been. The first
 * case: slots are kept, and the other cases use all slots. */
FRESH(destroy_qp__one_after_another_LITTLE_IS_KEPT)
{
	size_t before = allocated();
	struct qps all;

	if (!before) {
		print_message("malloc does not count: not tested\n");
		skip();
	}
	qps_open(&all);
	for (int i = 0; i < TURNS; i++)
		assert_int_equal(ibv_destroy_qp(make_qp(&all)), 0);
	qps_close(&all);
	assert_in_range(allocated(), 0, before + KEPT);
}

/* There are more numbers than queue pairs, so the last has a new one, too. */
FRESH(create_qp__full_but_one_NEW_NUMBER)
{
	struct qps all;
	struct ibv_qp **last;
	uint32_t number;

	qps_open(&all);
	qps_fill(&all);
	assert_numbers_differ(&all);
	last = &all.qp[all.n - 1];
	for (int i = 0; i < REUSES; i++) {
		number = (*last)->qp_num;
		assert_int_equal(ibv_destroy_qp(*last), 0);
		*last = make_qp(&all);
		assert_int_not_equal((*last)->qp_num, number);
	}
	qps_empty(&all);
	qps_close(&all);
}

TEST_MAIN()
