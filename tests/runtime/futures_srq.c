/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * futures_srq.c -- what futures of the next message of an SRQ have beside those
 * of other sources (futures_next.c): one order for all of its connections
 * without a queue, while those with a queue have theirs; its failure.
 */

#include "loop.h"
#include "messages.h"

/* ------------------------------------------------------- whose they are --- */

/* One stream of two connections: the order in which their messages came. */
static void order__of_all_connections(struct messages *m)
{
	struct world_pair second;
	struct rpma_rt_completion cmpl;
	struct rpma_rt_future future;
	uint32_t i;

	messages_join(m);
	messages_pair(m, &second, &second);
	for (i = 0; i < 6; i++) {
		messages_post(m, i % 3 == 0 ? &second : &m->pair);
		stage_completion(m->s.pq, 0, IBV_WC_SUCCESS);
	}
	for (i = 0; i < 6; i++) {
		future = messages_next(m);
		MUST_ANSWER(1, rpma_rt_future_wait(&future, &cmpl,
						   MESSAGES_PATIENT));
		CHECK(cmpl.user == (i % 3 == 0 ? (void *)&second : m));
		messages_is(m, &cmpl, i);
		messages_drop(&future);
	}
	messages_part(m, &second);
	messages_part(m, &m->pair);
}

/* A connection with a queue has its messages there; both take the same
 * receives. */
static void queue__of_another_connection(struct messages *m)
{
	struct rpma_rt_conn_cfg cfg = *m->s.cfg;
	struct rpma_rt_completion cmpl;
	struct world_pair queued;
	uint32_t i;

	messages_join(m);
	m->s.cfg->srqs = &m->srq;
	m->s.cfg->srq_count = 1;
	stage_connect(&m->s, &queued);
	*m->s.cfg = cfg;
	for (i = 0; i < 2 * MESSAGES_DEPTH; i++) {
		messages_post(m, i % 2 ? &queued : &m->pair);
		stage_completion(m->s.pq, 0, IBV_WC_SUCCESS);
		if (i % 2 == 0) {
			messages_take(m, i);
			continue;
		}
		cmpl = world_next(m->s.aq);
		messages_is(m, &cmpl, i);
	}
	stage_disconnect(&m->s, &queued);
	messages_part(m, &m->pair);
}

/* With a queue it has its own items there, and messages come by futures. */
static void queue__of_the_srq_itself(struct messages *m)
{
	struct rpma_rt_srq *plain = m->srq;
	struct rpma_rt_future future;

	m->srq = messages_srq(m, m->s.aq, 1);
	messages_join(m);
	messages_tell(m, 1);
	messages_take(m, 0);
	future = messages_next(m);
	messages_part(m, &m->pair);
	MUST(rpma_rt_srq_delete(&m->srq));
	messages_is_over(&future, RPMA_RT_EVENT_SRQ_CLOSED);
	world_event(m->s.aq, RPMA_RT_EVENT_SRQ_CLOSED);
	m->srq = plain;
}

static void refused__by_others(struct messages *m)
{
	struct rpma_rt_srq *plain = messages_srq(m, m->s.aq, 0);
	struct rpma_rt_conn_cfg cfg = *m->s.cfg;
	struct rpma_rt_future future;
	struct rpma_rt_conn *conn;

	MUST_ANSWER(RPMA_E_INVAL,
		    rpma_rt_next_future(&(struct rpma_rt_source){.srq = plain},
					&future));
	cfg.srqs = &plain;
	cfg.srq_count = 1;
	MUST_ANSWER(RPMA_E_INVAL,
		    world_conn_new(m->s.world.rt, m->s.world.peer,
				   m->s.world.addr, m->s.world.port, &cfg, 0,
				   NULL, NULL, &conn));
	MUST(rpma_rt_srq_delete(&plain));
	world_event(m->s.aq, RPMA_RT_EVENT_SRQ_CLOSED);
	messages_join(m);
	MUST_ANSWER(RPMA_E_INVAL,
		    rpma_rt_next_future(
			    &(struct rpma_rt_source){.conn = m->pair.active},
			    &future));
	messages_part(m, &m->pair);
}

/* As many as a configuration may ask for, beside the stream's own slot. */
static void futures__as_many_as_may_be(struct messages *m)
{
	struct rpma_rt_srq *large = messages_srq(m, NULL, 1048576);

	MUST(rpma_rt_srq_delete(&large));
	large = messages_srq(m, NULL, 1048576); /* its block again */
	MUST(rpma_rt_srq_delete(&large));
}

/* ------------------------------------------------------------- its end --- */

static void delete__used_BUSY(struct messages *m)
{
	messages_join(m);
	MUST_ANSWER(RPMA_RT_E_BUSY, rpma_rt_srq_delete(&m->srq));
	messages_part(m, &m->pair);
}

/* The device fails: behind the messages that have come futures say so, as often
 * as they are asked for. */
static void end__failed(enum rpma_rt_mode mode)
{
	const struct loop *loop = loop_get();
	struct rpma_rt_future future;
	struct rpma_rt_completion cmpl;
	struct messages m = {0};
	int i;

	if (loop == NULL) /* no other device does so when it is told */
		return;
	messages_open(&m, mode, MESSAGES_OF_SRQ);
	messages_join(&m);
	messages_tell(&m, 1);
	CHECK(loop->raise(IBV_EVENT_DEVICE_FATAL, m.s.world.ibv_ctx) == 0);
	world_event(m.s.pq, RPMA_RT_EVENT_CLOSED);
	cmpl = messages_event(m.pair.active, RPMA_RT_EVENT_CLOSED);
	CHECK(cmpl.status == RPMA_RT_REASON_DEVICE);
	messages_take(&m, 0);
	for (i = 0; i < 2; i++) {
		future = messages_next(&m);
		MUST_ANSWER(1, rpma_rt_future_wait(&future, &cmpl,
						   MESSAGES_PATIENT));
		CHECK(cmpl.status == RPMA_RT_REASON_DEVICE);
		messages_is_over(&future, RPMA_RT_EVENT_SRQ_FAILED);
	}
	world_unref(&m.pair);
	messages_end(&m);
}

/* ---------------------------------------------------------------- each --- */

static void run_all(enum rpma_rt_mode mode)
{
	struct messages m = {0};

	messages_open(&m, mode, MESSAGES_OF_SRQ);
	order__of_all_connections(&m);
	queue__of_another_connection(&m);
	queue__of_the_srq_itself(&m);
	refused__by_others(&m);
	/* much memory for a small machine */
	if (mode == RPMA_RT_MODE_MANUAL && loop_get() != NULL)
		futures__as_many_as_may_be(&m);
	delete__used_BUSY(&m);
	messages_end(&m);
	end__failed(mode);
}

int main(void)
{
	run_all(RPMA_RT_MODE_ADAPTIVE);
	run_all(RPMA_RT_MODE_EVENT);
	run_all(RPMA_RT_MODE_MANUAL);
	return 0;
}
