/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * A CQ that has no room for a completion: what a program of librpma can see of
 * it. The event comes on the context of the peer, and names the CQ; without it
 * there are only fewer completions than operations.
 */

#include <infiniband/verbs.h>

#include "pair.h"

#define SEND_QUEUE 256

/* The client's CQ has one entry, or as many as the device gives at least. */
static void open_with_small_cq(struct pair *pair)
{
	struct rpma_conn_cfg *cfg = NULL;
	struct pair_how how = {0};

	ok(rpma_conn_cfg_new(&cfg));
	ok(rpma_conn_cfg_set_cq_size(cfg, 1));
	ok(rpma_conn_cfg_set_sq_size(cfg, SEND_QUEUE));
	how.client_cfg = cfg;
	pair_open_how(pair, &how);
	ok(rpma_conn_cfg_delete(&cfg));
}

/* As many writes as fit; returns how many. */
static int write_without_polling(struct side *side)
{
	int posted = 0;

	while (posted < SEND_QUEUE &&
	       rpma_write(side->conn, side->remote, 0, side->mr, 0, 8,
			  RPMA_F_COMPLETION_ALWAYS, NULL) == 0)
		posted++;
	return posted;
}

/* Waits until the context has this event; the others are not looked at. */
static struct ibv_cq *wait_for_cq_err(struct ibv_context *ctx)
{
	struct ibv_async_event event;
	struct ibv_cq *cq = NULL;

	while (cq == NULL) {
		ok(ibv_get_async_event(ctx, &event));
		if (event.event_type == IBV_EVENT_CQ_ERR)
			cq = event.element.cq;
		ibv_ack_async_event(&event);
	}
	return cq;
}

static int count_completions(struct rpma_cq *cq)
{
	struct ibv_wc wc;
	int n = 0;

	while (rpma_cq_get_wc(cq, 1, &wc, NULL) == 0)
		n++;
	return n;
}

TEST(overrun__THE_CONTEXT_SAYS_WHICH_CQ)
{
	struct ibv_context *ctx = NULL;
	struct ibv_cq *ibv_cq = NULL;
	struct rpma_cq *cq = NULL;
	struct pair pair;
	int posted;

	open_with_small_cq(&pair);
	ok(rpma_peer_get_ibv_context(the_peer, &ctx));
	ok(rpma_cq_get_ibv_cq(cq_of(&pair.client), &ibv_cq));
	posted = write_without_polling(&pair.client);
	assert_true(posted > ibv_cq->cqe);
	assert_ptr_equal(wait_for_cq_err(ctx), ibv_cq);
	ok(rpma_cq_from_ibv_cq(ibv_cq, &cq));
	assert_ptr_equal(cq, cq_of(&pair.client));
	assert_true(count_completions(cq) < posted);
	pair_close(&pair);
}

PAIR_MAIN()
