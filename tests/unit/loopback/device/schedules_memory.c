/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * schedules_memory.c -- memory under the scheduler: a write, an atomic write or
 * a flush meets the end of its window or region, by each call and request that
 * ends a window or region, in every order of their steps, and at random also in
 * slices of the progress thread.
 */

#include "fixture.h"

#include <stdbool.h>
#include <string.h>

#define SIZE 4096u

/* The way of end a to the memory of end b, and the end of the way. */
struct row {
	const char *name;
	void (*open)(void *arg); /* the setup of a run */
	void (*end)(void *arg);
};

struct world {
	uint64_t ops; /* end a has an extended queue pair for these */
	struct pair *p;
	struct ibv_mr *mr; /* all memory of end b; NULL when gone */
	struct ibv_mw *mw; /* NULL: no window */
	uint32_t rkey;
	/* of a run */
	bool is_own;	  /* the memory is, again, end b's */
	unsigned ways[2]; /* runs in which the request was refused, and not */
};

/* --- regions and windows */

static void end_world(struct world *w)
{
	if (!w->p)
		return;
	if (w->mw)
		assert_int_equal(ibv_dealloc_mw(w->mw), 0);
	if (w->mr)
		assert_int_equal(ibv_dereg_mr(w->mr), 0);
	pair_delete(w->p);
}

static void open_region(void *arg)
{
	struct world *w = arg;
	int access = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_MW_BIND |
		     IBV_ACCESS_REMOTE_WRITE;

#ifdef RPMA_HAVE_NATIVE_FLUSH
	access |= IBV_ACCESS_FLUSH_GLOBAL;
#endif
	end_world(w);
	w->p = w->ops ? pair_new_ex(w->ops) : pair_new(0);
	w->mr = ibv_reg_mr(w->p->b.pd, w->p->b.buf, SIZE, access);
	assert_non_null(w->mr);
	w->mw = NULL;
	w->rkey = w->mr->rkey;
	memset(w->p->a.buf, 2, SIZE);
	w->is_own = false;
}

static struct ibv_mw_bind_info all_of_region(const struct world *w)
{
	int access = IBV_ACCESS_REMOTE_WRITE;

#ifdef RPMA_HAVE_NATIVE_FLUSH
	access |= IBV_ACCESS_FLUSH_GLOBAL;
#endif
	return (struct ibv_mw_bind_info){
		.mr = w->mr,
		.addr = (uintptr_t)w->p->b.buf,
		.length = SIZE,
		.mw_access_flags = (unsigned)access,
	};
}

/* Binds the window of type 1 to all of the region, or to nothing. */
static int bind_type_1(struct world *w, uint64_t length)
{
	struct ibv_mw_bind bind = {.wr_id = 3,
				   .send_flags = IBV_SEND_SIGNALED,
				   .bind_info = all_of_region(w)};

	bind.bind_info.length = length;
	return ibv_bind_mw(w->p->b.qp, w->mw, &bind);
}

static void open_type_1(void *arg)
{
	struct world *w = arg;

	open_region(arg);
	w->mw = ibv_alloc_mw(w->p->b.pd, IBV_MW_TYPE_1);
	assert_non_null(w->mw);
	assert_int_equal(bind_type_1(w, SIZE), 0);
	end_expect(&w->p->b, 3, IBV_WC_SUCCESS);
	w->rkey = w->mw->rkey;
}

/* Posts a request of end b about its window of type 2. */
static int post_of_window(const struct world *w, enum ibv_wr_opcode opcode)
{
	struct ibv_send_wr *bad, wr = {.wr_id = 3,
				       .opcode = opcode,
				       .send_flags = IBV_SEND_SIGNALED};

	if (opcode == IBV_WR_LOCAL_INV) {
		wr.invalidate_rkey = w->rkey;
	} else {
		wr.bind_mw.mw = w->mw;
		wr.bind_mw.rkey = w->rkey;
		wr.bind_mw.bind_info = all_of_region(w);
	}
	return ibv_post_send(w->p->b.qp, &wr, &bad);
}

static void open_type_2(void *arg)
{
	struct world *w = arg;

	open_region(arg);
	w->mw = ibv_alloc_mw(w->p->b.pd, IBV_MW_TYPE_2);
	assert_non_null(w->mw);
	w->rkey = ibv_inc_rkey(w->mw->rkey);
	assert_int_equal(post_of_window(w, IBV_WR_BIND_MW), 0);
	end_expect(&w->p->b, 3, IBV_WC_SUCCESS);
}

/* --- their ends; the memory is end b's afterwards */

static void own_when_completed(struct world *w)
{
	struct ibv_wc wc;

	while (!ibv_poll_cq(w->p->b.cq, 1, &wc))
		rpma_loopback_sched_point("not yet its own");
	w->is_own = wc.status == IBV_WC_SUCCESS;
	memset(w->p->b.buf, 1, SIZE);
}

static void invalidate(void *arg)
{
	post_of_window(arg, IBV_WR_LOCAL_INV);
	own_when_completed(arg);
}

static void bind_to_nothing(void *arg)
{
	bind_type_1(arg, 0);
	own_when_completed(arg);
}

static void dealloc(void *arg)
{
	struct world *w = arg;

	w->is_own = !ibv_dealloc_mw(w->mw);
	w->mw = NULL;
	memset(w->p->b.buf, 1, SIZE);
}

static void dereg(void *arg)
{
	struct world *w = arg;

	w->is_own = !ibv_dereg_mr(w->mr);
	w->mr = NULL;
	memset(w->p->b.buf, 1, SIZE);
}

static const struct row rows[] = {
	{"a region, ibv_dereg_mr()", open_region, dereg},
	{"a window of type 1, a bind to nothing", open_type_1, bind_to_nothing},
	{"a window of type 1, ibv_dealloc_mw()", open_type_1, dealloc},
	{"a window of type 2, LOCAL_INV", open_type_2, invalidate},
	{"a window of type 2, ibv_dealloc_mw()", open_type_2, dealloc},
};

/* --- the actions of end a */

static void write_all(void *arg)
{
	struct world *w = arg;
	struct ibv_sge sge = {(uintptr_t)w->p->a.buf, SIZE, w->p->a.mr->lkey};
	struct ibv_send_wr *bad, wr = {.wr_id = 1,
				       .sg_list = &sge,
				       .num_sge = 1,
				       .opcode = IBV_WR_RDMA_WRITE,
				       .send_flags = IBV_SEND_SIGNALED};

	wr.wr.rdma.remote_addr = (uintptr_t)w->p->b.buf;
	wr.wr.rdma.rkey = w->rkey;
	ibv_post_send(w->p->a.qp, &wr, &bad);
}

static bool is_all(const uint8_t *buf, uint8_t byte)
{
	return buf[0] == byte && !memcmp(buf, buf + 1, SIZE - 1);
}

static int check(void *arg)
{
	struct world *w = arg;
	struct ibv_wc wc = end_wait(&w->p->a);

	if (wc.status != IBV_WC_SUCCESS && wc.status != IBV_WC_REM_ACCESS_ERR)
		return 1;
	w->ways[wc.status == IBV_WC_SUCCESS]++;
	/* a refused request breaks the queue pair that invalidates */
	return !is_all(w->p->b.buf, 1) ||
	       (wc.status == IBV_WC_SUCCESS && !w->is_own);
}

/*
 * Asserts for each row that access is allowed in some orders and refused in
 * some.
 */
static void meet_each_end(void (*body)(void *arg), uint64_t ops)
{
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct world w = {.ops = ops};
		struct rpma_loopback_sched sched = {
			.threads = 2,
			.body = {body, rows[i].end},
			.setup = rows[i].open,
			.check = check,
			.arg = &w,
		};

		search_inline(&sched);
		search_thread(&sched);
		if (!w.ways[0] || !w.ways[1])
			fail_msg("%s: refused %u times, let in %u times",
				 rows[i].name, w.ways[0], w.ways[1]);
		end_world(&w);
	}
}

FRESH(write__meets_the_end_of_its_way_in_NO_BYTE_MOVES_AFTER)
{
	meet_each_end(write_all, 0);
}

/* --- native operations, where rdma-core has them */

#if defined(RPMA_HAVE_NATIVE_ATOMIC_WRITE) && defined(RPMA_HAVE_NATIVE_FLUSH)

static void write_word(void *arg)
{
	struct world *w = arg;
	struct ibv_qp_ex *ex = ibv_qp_to_qp_ex(w->p->a.qp);

	ibv_wr_start(ex);
	ex->wr_id = 1;
	ex->wr_flags = IBV_SEND_SIGNALED;
	ibv_wr_atomic_write(ex, w->rkey, (uintptr_t)w->p->b.buf, w->p->a.buf);
	ibv_wr_complete(ex);
}

static void flush_all(void *arg)
{
	struct world *w = arg;
	struct ibv_qp_ex *ex = ibv_qp_to_qp_ex(w->p->a.qp);

	ibv_wr_start(ex);
	ex->wr_id = 1;
	ex->wr_flags = IBV_SEND_SIGNALED;
	ibv_wr_flush(ex, w->rkey, (uintptr_t)w->p->b.buf, SIZE,
		     IBV_FLUSH_GLOBAL, IBV_FLUSH_RANGE);
	ibv_wr_complete(ex);
}

FRESH(atomic_write__meets_it_NO_BYTE_MOVES_AFTER)
{
	meet_each_end(write_word, IBV_QP_EX_WITH_ATOMIC_WRITE);
}

FRESH(flush__meets_it_IS_REFUSED_OR_NOT)
{
	meet_each_end(flush_all, IBV_QP_EX_WITH_FLUSH);
}

#else

static void skip_native(void)
{
	print_message("skipped: the rdma-core that this is built with knows "
		      "neither flushes nor atomic writes; 56 does\n");
	skip();
}

FRESH(atomic_write__meets_it_NO_BYTE_MOVES_AFTER)
{
	skip_native();
}

FRESH(flush__meets_it_IS_REFUSED_OR_NOT)
{
	skip_native();
}

#endif

TEST_MAIN()
