/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * windows.c -- memory windows, as only this device shows them: taken away
 * while another thread writes through them, up to the most that there can be,
 * in fault rules and in the strict mode.
 */

#include "fixture.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#define SIZE   4096u
#define ROUNDS 20

/* End b's memory, its region and a window on all of it. */
struct view {
	struct pair *p;
	uint8_t *buf;
	struct ibv_mr *mr;
	struct ibv_mw *mw;
	uint32_t rkey; /* that the writer uses */
	_Atomic int writes;
};

static int try_bind(struct view *v, uint64_t length)
{
	struct ibv_mw_bind bind = {
		.wr_id = 9,
		.send_flags = IBV_SEND_SIGNALED,
		.bind_info = {.mr = v->mr,
			      .addr = (uintptr_t)v->buf,
			      .length = length,
			      .mw_access_flags = IBV_ACCESS_REMOTE_WRITE},
	};

	return ibv_bind_mw(v->p->b.qp, v->mw, &bind);
}

static void bind_view(struct view *v, uint64_t length)
{
	assert_int_equal(try_bind(v, length), 0);
	end_expect(&v->p->b, 9, IBV_WC_SUCCESS);
}

static void view_open(struct view *v)
{
	memset(v, 0, sizeof(*v));
	v->p = pair_new(0);
	v->buf = calloc(1, SIZE);
	assert_non_null(v->buf);
	v->mr = ibv_reg_mr(v->p->b.pd, v->buf, SIZE,
			   IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_MW_BIND);
	assert_non_null(v->mr);
	v->mw = ibv_alloc_mw(v->p->b.pd, IBV_MW_TYPE_1);
	assert_non_null(v->mw);
	bind_view(v, SIZE);
	v->rkey = v->mw->rkey;
}

static void view_close(struct view *v)
{
	if (v->mw)
		assert_int_equal(ibv_dealloc_mw(v->mw), 0);
	if (v->mr)
		assert_int_equal(ibv_dereg_mr(v->mr), 0);
	free(v->buf);
	pair_delete(v->p);
}

/* Writes until it may no longer; reports instead of asserting. */
static void *write_on(void *arg)
{
	struct view *v = arg;
	const struct end *a = &v->p->a;
	struct ibv_sge sge = {(uintptr_t)a->buf, SIZE, a->mr->lkey};
	struct ibv_send_wr *bad,
		wr = {
			.sg_list = &sge,
			.num_sge = 1,
			.opcode = IBV_WR_RDMA_WRITE,
			.send_flags = IBV_SEND_SIGNALED,
			.wr.rdma = {(uintptr_t)v->buf, v->rkey},
		};
	struct ibv_wc wc = {.status = IBV_WC_SUCCESS};

	while (wc.status == IBV_WC_SUCCESS &&
	       !ibv_post_send(a->qp, &wr, &bad)) {
		while (!ibv_poll_cq(a->cq, 1, &wc))
			;
		/* relaxed: only that there have been some */
		atomic_fetch_add_explicit(&v->writes, 1, memory_order_relaxed);
	}
	return (void *)(uintptr_t)wc.status;
}

/* Once it is taken away, nobody writes to the memory, which may be freed. */
static void taken_away(enum rpma_loopback_mode mode, bool by_bind)
{
	rpma_loopback_set_mode(mode);
	for (int i = 0; i < ROUNDS; i++) {
		struct view v;
		pthread_t writer;
		void *status;

		view_open(&v);
		assert_int_equal(pthread_create(&writer, NULL, write_on, &v),
				 0);
		/* relaxed: as in write_on() */
		while (atomic_load_explicit(&v.writes, memory_order_relaxed) <
		       3)
			;
		if (by_bind) {
			bind_view(&v, 0);
		} else {
			assert_int_equal(ibv_dealloc_mw(v.mw), 0);
			v.mw = NULL;
		}
		memset(v.buf, 1, SIZE);
		assert_int_equal(ibv_dereg_mr(v.mr), 0);
		v.mr = NULL;
		free(v.buf);
		v.buf = NULL;
		pthread_join(writer, &status);
		assert_int_equal((uintptr_t)status, IBV_WC_REM_ACCESS_ERR);
		view_close(&v);
	}
}

FRESH(bind__of_nothing_under_load_NO_BYTE_MOVES_AFTER_IT)
{
	taken_away(RPMA_LOOPBACK_INLINE, true);
	taken_away(RPMA_LOOPBACK_THREAD, true);
}

FRESH(dealloc__under_load_NO_BYTE_MOVES_AFTER_IT)
{
	taken_away(RPMA_LOOPBACK_INLINE, false);
	taken_away(RPMA_LOOPBACK_THREAD, false);
}

/* The device's binds against its deregistrations: one of them is refused. */
FRESH(dereg__while_bound_EBUSY_AND_MISUSE)
{
	struct rpma_loopback_stats before, after;
	struct view v;

	view_open(&v);
	rpma_loopback_set_strict(RPMA_LOOPBACK_STRICT_WARN);
	rpma_loopback_get_stats(&before);
	errno = 0;
	assert_int_equal(ibv_dereg_mr(v.mr), EBUSY);
	assert_int_equal(errno, EBUSY);
	rpma_loopback_get_stats(&after);
	assert_int_equal(after.misuses, before.misuses + 1);
	bind_view(&v, 0);
	view_close(&v);
}

FRESH(wr__bind_fault_MW_BIND_ERR)
{
	struct view v;

	view_open(&v);
	assert_int_equal(
		rpma_loopback_fault("wr:op=bind_mw,status=mw_bind_err,count=1"),
		0);
	assert_int_equal(try_bind(&v, SIZE), 0);
	end_expect(&v.p->b, 9, IBV_WC_MW_BIND_ERR);
	view_close(&v);
}

FRESH(call__alloc_mw_FAILS)
{
	struct view v;

	view_open(&v);
	assert_int_equal(rpma_loopback_fault(
				 "call:verb=ibv_alloc_mw,errno=ENOMEM,count=1"),
			 0);
	errno = 0;
	assert_null(ibv_alloc_mw(v.p->b.pd, IBV_MW_TYPE_2));
	assert_int_equal(errno, ENOMEM);
	view_close(&v);
}

TEST_MAIN()
