/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * schedules.c -- unreliable connections under the scheduler: a message that
 * meets its receive, a write that meets a reset of its peer, in every order of
 * their steps, and at random also in slices of the progress thread.
 */

#include "fixture.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#define SIZE 4096u

struct world {
	struct pair *p;
	/* of a run */
	bool posted;	  /* the receive */
	bool was_posted;  /* before the message was sent */
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

FRESH(uc__message_meets_its_receive_ARRIVES_OR_IS_DROPPED)
{
	struct world w = {0};
	struct rpma_loopback_sched sched = {
		.threads = 2,
		.body = {send_one, post_one},
		.setup = begin_uc,
		.check = check_message,
		.arg = &w,
	};

	search_inline(&sched);
	search_thread(&sched);
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

FRESH(uc__write_meets_a_reset_NO_BYTE_MOVES_AFTER_IT)
{
	struct world w = {0};
	struct rpma_loopback_sched sched = {
		.threads = 2,
		.body = {write_all, reset_peer},
		.setup = begin_write,
		.check = check_own,
		.arg = &w,
	};

	search_inline(&sched);
	search_thread(&sched);
	pair_delete(w.p);
}

TEST_MAIN()
