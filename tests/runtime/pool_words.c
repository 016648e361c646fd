/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * pool_words.c -- what a pool has to say is an ERROR in the log, the level that
 * reaches standard error: the receive queues leave no slot for
 * rpma_rt_pool_take(); a receive queue starves; a message is longer than a
 * slot.
 * Each message has the numbers and the field of the configuration to change.
 */

#include "heard.h"
#include "loop.h"
#include "stage.h"

#define DEPTH	  8
#define SLOT_SIZE 64

/* ---------------------------------------------------------------- pools --- */

static struct rpma_rt_pool *pool_open(struct stage *s, uint32_t count)
{
	s->cfg->pool =
		stage_pool(s, "small", count, SLOT_SIZE, RPMA_RT_POOL_NO_SENDS);
	heard_forget();
	return s->cfg->pool;
}

static void pool_close(struct stage *s, struct rpma_rt_pool **pool)
{
	MUST(rpma_rt_pool_delete(pool));
	s->cfg->pool = NULL;
}

/* Both ends have receives from the pool: four times eight are too many. */
static void pool__receives_are_too_many_LOGGED_ONCE(struct stage *s)
{
	struct rpma_rt_pool *pool = pool_open(s, 3 * DEPTH);
	struct world_pair first;
	struct world_pair second;

	stage_connect(s, &first);
	CHECK(heard_count("pool \"small\" has") == 0);
	stage_connect(s, &second);
	CHECK(heard_count("pool \"small\" has 24 slots for receives, and the "
			  "receive "
			  "queues that are filled from the pool want 32 "
			  "receives") == 1);
	CHECK(heard_count("rpma_rt_pool_cfg.count larger, or rq_size") == 1);
	stage_disconnect(s, &second);
	stage_connect(s, &second);
	CHECK(heard_count("pool \"small\" has 24 slots") == 1);
	stage_disconnect(s, &second);
	stage_disconnect(s, &first);
	pool_close(s, &pool);
	printf("ok: receives take all\n");
}

/* The receives of an SRQ count as those of a connection do. */
static void pool__srq_takes_all_LOGGED(struct stage *s)
{
	struct rpma_rt_srq_cfg cfg = RPMA_RT_SRQ_CFG_INIT;
	struct rpma_rt_pool *pool = pool_open(s, DEPTH);
	struct rpma_rt_srq *srq;

	cfg.peer = s->world.peer;
	cfg.queue = s->pq;
	cfg.pool = pool;
	cfg.srq_size = 2 * DEPTH;
	MUST(rpma_rt_srq_new(s->world.rt, &cfg, &srq));
	CHECK(heard_count(
		      "pool \"small\" has 8 slots for receives, and the "
		      "receive "
		      "queues that are filled from the pool want 16 receives: "
		      "later") == 1);
	MUST(rpma_rt_srq_delete(&srq));
	world_event(s->pq, RPMA_RT_EVENT_SRQ_CLOSED);
	pool_close(s, &pool);
	printf("ok: an SRQ takes all\n");
}

static void pool__no_slot_for_a_receive_LOGGED(struct stage *s)
{
	struct rpma_rt_pool *pool = pool_open(s, 3 * DEPTH);
	struct rpma_rt_lease leases[3 * DEPTH];
	struct world_pair pair;
	int i;

	for (i = 0; i < 3 * DEPTH; i++)
		MUST(rpma_rt_pool_take(pool, &leases[i]));
	stage_connect(s, &pair);
	heard_await("pool \"small\" has no free slot of 24");
	CHECK(heard_count("rpma_rt_pool_cfg.count") > 0);
	for (i = 0; i < 3 * DEPTH; i++)
		MUST(rpma_rt_lease_release(&leases[i]));
	stage_disconnect(s, &pair);
	pool_close(s, &pool);
	printf("ok: no slot for a receive\n");
}

/* Soft-RoCE flushes the receive, and says nothing of the length. */
static void pool__message_longer_than_a_slot_LOGGED(struct stage *s)
{
	struct rpma_rt_pool *pool;
	struct rpma_rt_completion item;
	struct world_pair pair;

	if (loop_get() == NULL) {
		printf("skipped, needs the loopback device: a message longer "
		       "than a slot\n");
		return;
	}
	pool = pool_open(s, 3 * DEPTH);
	stage_connect(s, &pair);
	MUST(rpma_rt_send(pair.active, s->mr, 0, SLOT_SIZE + 1,
			  RPMA_F_COMPLETION_ALWAYS, 1));
	item = world_next(s->aq);
	CHECK(item.kind == RPMA_RT_COMPLETION && item.status != IBV_WC_SUCCESS);
	world_event(s->aq, RPMA_RT_EVENT_CLOSED);
	world_event(s->pq, RPMA_RT_EVENT_CLOSED);
	heard_await("message is longer than rpma_rt_pool_cfg.slot_size");
	world_unref(&pair);
	pool_close(s, &pool);
	printf("ok: a message longer than a slot\n");
}

int main(void)
{
	const struct stage_cfg cfg = {
		.pollers = 1, .mode = RPMA_RT_MODE_EVENT, .depth = DEPTH};
	struct stage s;

	setvbuf(stdout, NULL, _IOLBF, 0);
	heard_start(RPMA_LOG_LEVEL_ERROR);
	stage_open(&s, &cfg);
	pool__receives_are_too_many_LOGGED_ONCE(&s);
	pool__srq_takes_all_LOGGED(&s);
	pool__no_slot_for_a_receive_LOGGED(&s);
	pool__message_longer_than_a_slot_LOGGED(&s);
	stage_close(&s);
	return 0;
}
