/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * schedules_resize.c -- a CQ and an SRQ under the scheduler that get shorter
 * and longer while they are filled and emptied: what is in them stays, in
 * order and once, in every order of their steps, and at random also in slices
 * of the progress thread.
 */

#include "fixture.h"

#include <stdbool.h>

#define BEFORE 5 /* completions, or receives, that have gone through it */
#define FEW    3 /* that it holds when it is short */

struct world {
	struct pair *p;
	int err;	 /* of a call, whichever fails */
	int took;	 /* completions that were polled, in order */
	bool is_bad;	 /* and one that was not */
	unsigned in_use; /* runs in which it was resized with some in it */
};

static void begin(struct world *w, int with_srq)
{
	if (w->p)
		pair_delete(w->p);
	w->p = pair_new(with_srq);
	w->err = w->took = 0;
	w->is_bad = false;
}

static void note(struct world *w, int err)
{
	if (err)
		w->err = err;
}

/* --- a CQ */

static void begin_cq(void *arg)
{
	struct world *w = arg;

	begin(w, 0);
	for (int i = 0; i < BEFORE; i++) {
		assert_int_equal(end_write(&w->p->a, &w->p->b, 9, 0, 8), 0);
		end_expect(&w->p->a, 9, IBV_WC_SUCCESS);
	}
}

static void write_some(void *arg)
{
	struct world *w = arg;

	for (uint64_t id = 0; id < FEW; id++)
		note(w, end_write(&w->p->a, &w->p->b, id, 0, 8));
}

static void take_one(struct world *w)
{
	struct ibv_wc wc = {.status = IBV_WC_GENERAL_ERR};
	int n = ibv_poll_cq(w->p->a.cq, 1, &wc);

	if (!n)
		return;
	if (n < 0 || wc.status != IBV_WC_SUCCESS ||
	    wc.wr_id != (uint64_t)w->took)
		w->is_bad = true;
	w->took++;
}

static void take_some(void *arg)
{
	struct world *w = arg;

	for (int i = 0; i < FEW; i++)
		take_one(w);
}

static void resize_cq(void *arg)
{
	struct world *w = arg;

	note(w, ibv_resize_cq(w->p->a.cq, FEW));
	rpma_loopback_sched_point("short");
	note(w, ibv_resize_cq(w->p->a.cq, 8 * DEPTH));
	rpma_loopback_sched_point("long");
	w->in_use += w->took < FEW;
	note(w, ibv_resize_cq(w->p->a.cq, FEW));
}

static int check_cq(void *arg)
{
	struct world *w = arg;

	while (w->took < FEW && !w->is_bad)
		take_one(w);
	return w->err || w->is_bad;
}

FRESH(cq__resized_in_use_EACH_COMPLETION_ONCE_IN_ORDER)
{
	struct world w = {0};
	struct rpma_loopback_sched sched = {
		.threads = 3,
		.body = {write_some, take_some, resize_cq},
		.setup = begin_cq,
		.check = check_cq,
		.arg = &w,
		/* what happens before a call happens after the last one, too */
		.points = 1u << RPMA_LOOPBACK_POST_SEND_DONE |
			  1u << RPMA_LOOPBACK_POLL_DONE,
	};

	search_inline(&sched);
	search_thread(&sched);
	assert_true(w.in_use);
	pair_delete(w.p);
}

/* --- an SRQ: receives 0 and 1 are there, 2 comes */

static void begin_srq(void *arg)
{
	struct world *w = arg;

	begin(w, 1);
	for (int i = 0; i < BEFORE; i++) {
		assert_int_equal(end_recv(&w->p->b, 9, 0, 8), 0);
		assert_int_equal(end_send(&w->p->a, 9, 0, 8), 0);
		end_expect(&w->p->a, 9, IBV_WC_SUCCESS);
		end_expect(&w->p->b, 9, IBV_WC_SUCCESS);
	}
	for (uint64_t id = 0; id < FEW - 1; id++)
		assert_int_equal(end_recv(&w->p->b, id, 0, 8), 0);
}

static void send_some(void *arg)
{
	struct world *w = arg;

	for (uint64_t id = 0; id < FEW - 1; id++)
		note(w, end_send(&w->p->a, id, 0, 8));
}

static void post_one(void *arg)
{
	struct world *w = arg;

	note(w, end_recv(&w->p->b, FEW - 1, 0, 8));
}

static int to_size(const struct world *w, uint32_t max_wr)
{
	struct ibv_srq_attr attr = {.max_wr = max_wr};

	return ibv_modify_srq(w->p->b.srq, &attr, IBV_SRQ_MAX_WR);
}

static void resize_srq(void *arg)
{
	struct world *w = arg;

	note(w, to_size(w, FEW));
	rpma_loopback_sched_point("short");
	note(w, to_size(w, 4 * DEPTH));
	rpma_loopback_sched_point("long");
	note(w, to_size(w, FEW));
}

/* What did not find its own receive is found out by the last send. */
static int check_srq(void *arg)
{
	struct world *w = arg;

	if (w->err || end_send(&w->p->a, FEW - 1, 0, 8))
		return 1;
	for (uint64_t id = 0; id < FEW; id++) {
		struct ibv_wc sent = end_wait(&w->p->a);
		struct ibv_wc got = end_wait(&w->p->b);

		if (sent.status != IBV_WC_SUCCESS || sent.wr_id != id ||
		    got.status != IBV_WC_SUCCESS || got.wr_id != id)
			return 1;
	}
	return 0;
}

FRESH(srq__resized_in_use_EACH_RECEIVE_ONCE_IN_ORDER)
{
	struct world w = {0};
	struct rpma_loopback_sched sched = {
		.threads = 3,
		.body = {send_some, post_one, resize_srq},
		.setup = begin_srq,
		.check = check_srq,
		.arg = &w,
		.points = 1u << RPMA_LOOPBACK_POST_SEND_DONE |
			  1u << RPMA_LOOPBACK_POST_RECV_DONE,
	};

	search_inline(&sched);
	search_thread(&sched);
	pair_delete(w.p);
}

TEST_MAIN()
