/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * schedules.c -- unreliable connections and memory windows under the scheduler:
 * a message that meets its receive, a write that meets a reset of its peer or
 * the end of its window, in every order of their steps, and at random also in
 * slices of the progress thread.
 */

#include "fixture.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#define SIZE 4096u
#define RUNS 200

struct world {
	struct pair *p;
	/* of windows */
	struct ibv_mr *mr; /* all of end b's memory, without remote rights */
	struct ibv_mw *mw;
	uint32_t rkey;
	/* of a run */
	bool posted;	  /* the receive */
	bool was_posted;  /* before the message was sent */
	bool is_own;	  /* the memory is, again, end b's */
	unsigned ways[2]; /* runs in which it did not arrive, and did */
};

static void begin_uc(void *arg)
{
	struct world *w = arg;

	if (w->p)
		pair_delete(w->p);
	w->p = pair_new_uc();
	w->posted = w->was_posted = false;
}

/* All orders of the inline mode, then some of the thread mode's. */
static void search(struct rpma_loopback_sched *sched)
{
	struct rpma_loopback_sched_result result;

	rpma_loopback_set_mode(RPMA_LOOPBACK_INLINE);
	assert_int_equal(rpma_loopback_sched_run(sched, &result), 0);
	assert_true(result.complete);
	assert_true(result.runs > 1);
	rpma_loopback_set_mode(RPMA_LOOPBACK_THREAD);
	sched->runs = RUNS;
	assert_int_equal(rpma_loopback_sched_run(sched, NULL), 0);
}

/* Nothing, or a completion with success of this request. */
static bool is_good(const struct end *e, uint64_t id, int *count)
{
	struct ibv_wc wc;

	*count = ibv_poll_cq(e->cq, 1, &wc);
	return !*count || (wc.wr_id == id && wc.status == IBV_WC_SUCCESS);
}

/* --- a message and its receive */

static void send_one(void *arg)
{
	struct world *w = arg;

	w->was_posted = w->posted;
	end_send(&w->p->a, 1, 0, 8);
}

static void post_one(void *arg)
{
	struct world *w = arg;

	end_recv(&w->p->b, 5, 0, 8);
	w->posted = true;
}

/* Its sender has success in any case, which comes after it has arrived. */
static int check_message(void *arg)
{
	struct world *w = arg;
	struct ibv_wc sent = end_wait(&w->p->a);
	int arrived;

	if (sent.wr_id != 1 || sent.status != IBV_WC_SUCCESS)
		return 1;
	if (!is_good(&w->p->b, 5, &arrived))
		return 1;
	w->ways[arrived]++;
	return w->was_posted && !arrived;
}

static void uc__message_meets_its_receive_ARRIVES_OR_IS_DROPPED(void **state)
{
	struct world w = {0};
	struct rpma_loopback_sched sched = {
		.threads = 2,
		.body = {send_one, post_one},
		.setup = begin_uc,
		.check = check_message,
		.arg = &w,
	};

	(void)state;
	search(&sched);
	assert_true(w.ways[0] && w.ways[1]);
	pair_delete(w.p);
}

/* --- a write and a reset of its peer */

static void write_all(void *arg)
{
	struct world *w = arg;

	end_write(&w->p->a, &w->p->b, 1, 0, SIZE);
}

/* What comes after the reset is not written. */
static void reset_peer(void *arg)
{
	struct world *w = arg;

	end_move(&w->p->b, NULL, IBV_QPS_RESET);
	memset(w->p->b.buf, 1, SIZE);
}

static void begin_write(void *arg)
{
	struct world *w = arg;

	begin_uc(arg);
	memset(w->p->a.buf, 2, SIZE);
}

static bool is_all(const uint8_t *buf, uint8_t byte)
{
	return buf[0] == byte && !memcmp(buf, buf + 1, SIZE - 1);
}

static int check_own(void *arg)
{
	struct world *w = arg;
	struct ibv_wc wrote = end_wait(&w->p->a);

	return wrote.status != IBV_WC_SUCCESS || !is_all(w->p->b.buf, 1);
}

static void uc__write_meets_a_reset_NO_BYTE_MOVES_AFTER_IT(void **state)
{
	struct world w = {0};
	struct rpma_loopback_sched sched = {
		.threads = 2,
		.body = {write_all, reset_peer},
		.setup = begin_write,
		.check = check_own,
		.arg = &w,
	};

	(void)state;
	search(&sched);
	pair_delete(w.p);
}

/* --- a write and the end of its window */

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
		wr.bind_mw.bind_info.mr = w->mr;
		wr.bind_mw.bind_info.addr = (uintptr_t)w->p->b.buf;
		wr.bind_mw.bind_info.length = SIZE;
		wr.bind_mw.bind_info.mw_access_flags = IBV_ACCESS_REMOTE_WRITE;
	}
	return ibv_post_send(w->p->b.qp, &wr, &bad);
}

static void end_window(struct world *w)
{
	if (!w->p)
		return;
	assert_int_equal(ibv_dealloc_mw(w->mw), 0);
	assert_int_equal(ibv_dereg_mr(w->mr), 0);
	pair_delete(w->p);
}

static void begin_window(void *arg)
{
	struct world *w = arg;

	end_window(w);
	w->p = pair_new(0);
	w->mr = ibv_reg_mr(w->p->b.pd, w->p->b.buf, SIZE,
			   IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_MW_BIND);
	w->mw = ibv_alloc_mw(w->p->b.pd, IBV_MW_TYPE_2);
	assert_true(w->mr && w->mw);
	w->rkey = ibv_inc_rkey(w->mw->rkey);
	assert_int_equal(post_of_window(w, IBV_WR_BIND_MW), 0);
	end_expect(&w->p->b, 3, IBV_WC_SUCCESS);
	memset(w->p->a.buf, 2, SIZE);
	w->is_own = false;
}

static void write_window(void *arg)
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

static void take_window_away(void *arg)
{
	struct world *w = arg;
	struct ibv_wc wc;

	post_of_window(w, IBV_WR_LOCAL_INV);
	while (!ibv_poll_cq(w->p->b.cq, 1, &wc))
		rpma_loopback_sched_point("not yet invalid");
	w->is_own = wc.status == IBV_WC_SUCCESS;
	memset(w->p->b.buf, 1, SIZE);
}

static int check_window(void *arg)
{
	struct world *w = arg;
	struct ibv_wc wrote = end_wait(&w->p->a);

	if (wrote.status != IBV_WC_SUCCESS &&
	    wrote.status != IBV_WC_REM_ACCESS_ERR)
		return 1;
	w->ways[wrote.status == IBV_WC_SUCCESS]++;
	/* a write that is refused breaks the queue pair that invalidates */
	return !is_all(w->p->b.buf, 1) ||
	       (wrote.status == IBV_WC_SUCCESS && !w->is_own);
}

static void window__write_meets_its_end_NO_BYTE_MOVES_AFTER_IT(void **state)
{
	struct world w = {0};
	struct rpma_loopback_sched sched = {
		.threads = 2,
		.body = {write_window, take_window_away},
		.setup = begin_window,
		.check = check_window,
		.arg = &w,
	};

	(void)state;
	search(&sched);
	assert_true(w.ways[0] && w.ways[1]);
	end_window(&w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		FRESH(uc__message_meets_its_receive_ARRIVES_OR_IS_DROPPED),
		FRESH(uc__write_meets_a_reset_NO_BYTE_MOVES_AFTER_IT),
		FRESH(window__write_meets_its_end_NO_BYTE_MOVES_AFTER_IT),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
