/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/* messages.c -- see messages.h. */

#include "messages.h"

#include <endian.h>
#include <string.h>

#define SLOT_SIZE 64
#define LEN	  8u

/* ------------------------------------------------------------- objects --- */

struct rpma_rt_pool *messages_pool(struct messages *m)
{
	struct rpma_rt_pool_cfg cfg = RPMA_RT_POOL_CFG_INIT;
	struct rpma_rt_pool *pool;

	cfg.count = MESSAGES_SLOTS;
	cfg.slot_size = SLOT_SIZE;
	cfg.peer = m->s.world.peer;
	MUST(rpma_rt_pool_new(m->s.world.rt, &cfg, &pool));
	return pool;
}

struct rpma_rt_srq *messages_srq(struct messages *m,
				 struct rpma_rt_queue *queue, uint32_t futures)
{
	struct rpma_rt_srq_cfg cfg = RPMA_RT_SRQ_CFG_INIT;
	struct rpma_rt_srq *srq;

	cfg.peer = m->s.world.peer;
	cfg.queue = queue;
	cfg.user = m;
	cfg.srq_size = MESSAGES_DEPTH;
	cfg.pool = m->pool;
	cfg.futures = futures;
	MUST(rpma_rt_srq_new(m->s.world.rt, &cfg, &srq));
	return srq;
}

void messages_open(struct messages *m, enum rpma_rt_mode mode,
		   enum messages_of of)
{
	struct stage_cfg cfg = {
		.pollers = 1, .mode = mode, .depth = MESSAGES_DEPTH};

	stage_open(&m->s, &cfg);
	if (mode == RPMA_RT_MODE_MANUAL)
		MUST(rpma_rt_poller_attach(m->s.world.rt, 0));
	m->pool = messages_pool(m);
	m->of = of;
	m->srq = of == MESSAGES_OF_SRQ ? messages_srq(m, NULL, MESSAGES_FUTURES)
				       : NULL;
	m->s.cfg->futures = MESSAGES_FUTURES;
}

void messages_end(struct messages *m)
{
	MUST(rpma_rt_srq_delete(&m->srq)); /* NULL: nothing */
	MUST(rpma_rt_pool_delete(&m->pool));
	stage_close(&m->s);
}

/* --------------------------------------------------------- connections --- */

struct rpma_rt_completion messages_event(struct rpma_rt_conn *conn,
					 enum rpma_rt_event event)
{
	struct rpma_rt_completion cmpl;
	struct rpma_rt_future future;

	MUST(rpma_rt_conn_future(conn, event, &future));
	MUST_ANSWER(1, rpma_rt_future_wait(&future, &cmpl, MESSAGES_PATIENT));
	CHECK(rpma_rt_completion_event(&cmpl) == event);
	messages_drop(&future);
	return cmpl;
}

void messages_pair(struct messages *m, void *user, struct world_pair *pair)
{
	struct rpma_rt_listener *listener =
		world_listen(&m->s.world, m->s.cfg, m->s.pq);
	struct rpma_rt_conn_cfg cfg = *m->s.cfg;
	struct rpma_rt_completion item;

	if (m->srq != NULL) {
		cfg.srqs = &m->srq;
		cfg.srq_count = 1;
	} else {
		cfg.pool = m->pool;
	}
	MUST(world_conn_new(m->s.world.rt, m->s.world.peer, m->s.world.addr,
			    m->s.world.port, &cfg, 0, NULL, user,
			    &pair->active));
	messages_event(pair->active, RPMA_RT_EVENT_READY);
	MUST(rpma_rt_conn_connect(pair->active, NULL));
	item = world_event(m->s.pq, RPMA_RT_EVENT_REQUEST);
	pair->passive = (struct rpma_rt_conn *)(uintptr_t)item.context;
	MUST(rpma_rt_conn_accept(pair->passive, NULL));
	messages_event(pair->active, RPMA_RT_EVENT_ESTABLISHED);
	world_event(m->s.pq, RPMA_RT_EVENT_ESTABLISHED);
	world_unlisten(&listener, m->s.pq);
}

void messages_join(struct messages *m)
{
	if (m->of == MESSAGES_OF_SRQ && m->srq == NULL)
		m->srq = messages_srq(m, NULL, MESSAGES_FUTURES);
	if (m->of == MESSAGES_OF_LISTENER)
		m->listener = world_listen(&m->s.world, m->s.cfg, NULL);
	else
		messages_pair(m, m, &m->pair);
	m->sent = 0;
}

void messages_close(struct messages *m, struct world_pair *pair)
{
	if (m->of == MESSAGES_OF_LISTENER) {
		MUST(rpma_rt_listener_drain(m->listener, 1));
		return;
	}
	MUST(rpma_rt_conn_close(pair->passive));
	messages_event(pair->active, RPMA_RT_EVENT_CLOSED);
	world_event(m->s.pq, RPMA_RT_EVENT_CLOSED);
	MUST(rpma_rt_conn_unref(&pair->passive));
}

void messages_let_go(struct messages *m)
{
	if (m->of == MESSAGES_OF_LISTENER)
		MUST(rpma_rt_listener_delete(&m->listener));
	else
		MUST(rpma_rt_conn_unref(&m->pair.active));
	MUST(rpma_rt_srq_delete(&m->srq)); /* NULL: nothing */
}

void messages_forget_peers(struct messages *m)
{
	uint32_t i;

	for (i = 0; m->of == MESSAGES_OF_LISTENER && i < m->sent; i++) {
		messages_event(m->peers[i], RPMA_RT_EVENT_CLOSED);
		MUST(rpma_rt_conn_unref(&m->peers[i]));
	}
}

void messages_part(struct messages *m, struct world_pair *pair)
{
	if (m->of != MESSAGES_OF_LISTENER) {
		messages_close(m, pair);
		MUST(rpma_rt_conn_unref(&pair->active));
		return;
	}
	messages_let_go(m);
	messages_forget_peers(m);
}

uint32_t messages_futures(const struct messages *m)
{
	return m->of == MESSAGES_OF_LISTENER ? 16 : MESSAGES_FUTURES;
}

enum rpma_rt_event messages_last(const struct messages *m)
{
	static const enum rpma_rt_event last[] = {
		[MESSAGES_OF_CONN] = RPMA_RT_EVENT_CLOSED,
		[MESSAGES_OF_SRQ] = RPMA_RT_EVENT_SRQ_CLOSED,
		[MESSAGES_OF_LISTENER] = RPMA_RT_EVENT_LISTENER_CLOSED};

	return last[m->of];
}

/* ------------------------------------------------------------ messages --- */

void messages_send(struct messages *m, struct world_pair *pair, uint32_t number,
		   uint64_t context)
{
	struct rpma_rt_wr wr;

	rpma_rt_prep_send(&wr, m->s.mr, 0, LEN, 0, context);
	wr.op = RPMA_RT_OP_SEND_WITH_IMM;
	wr.imm = number;
	MUST(world_post_send(pair->passive, &wr));
}

/* A peer asks to be connected, with that number as its private data. */
static void request(struct messages *m, uint32_t number)
{
	const struct rpma_conn_private_data pdata = {&number, sizeof(number)};
	struct rpma_rt_conn **peer = &m->peers[number];

	CHECK(number < MESSAGES_REQUESTS);
	MUST(world_conn_new(m->s.world.rt, m->s.world.peer, m->s.world.addr,
			    m->s.world.port, m->s.cfg, 0, NULL, m, peer));
	messages_event(*peer, RPMA_RT_EVENT_READY);
	MUST(rpma_rt_conn_connect(*peer, &pdata));
}

void messages_post(struct messages *m, struct world_pair *pair)
{
	if (m->of == MESSAGES_OF_LISTENER)
		request(m, m->sent++);
	else
		messages_send(m, pair, m->sent++, 0);
}

/* So many requests have come that no future has. */
static void are_listed(const struct messages *m, int count)
{
	struct rpma_rt_future futures[MESSAGES_FUTURES];
	int i;

	for (i = 0; i < count; i++)
		futures[i] = messages_next(m);
	MUST_ANSWER(count, rpma_rt_future_wait_some(futures, count, count,
						    MESSAGES_PATIENT));
	for (i = 0; i < count; i++)
		messages_drop(&futures[i]);
}

void messages_tell_to(struct messages *m, int count,
		      struct rpma_rt_future *const *futures, int waiting)
{
	int i;

	for (i = 0; i < count; i++) {
		messages_post(m, &m->pair);
		if (m->of != MESSAGES_OF_LISTENER)
			stage_completion(m->s.pq, 0, IBV_WC_SUCCESS);
		else if (i < waiting)
			messages_has(futures[i]);
		else
			are_listed(m, i - waiting + 1);
	}
}

void messages_tell(struct messages *m, int count)
{
	messages_tell_to(m, count, NULL, 0);
}

int messages_ask(const struct messages *m, struct rpma_rt_future *future)
{
	const struct rpma_rt_source from = {
		.listener = m->listener,
		.conn = m->of == MESSAGES_OF_CONN ? m->pair.active : NULL,
		.srq = m->srq};

	return rpma_rt_next_future(&from, future);
}

struct rpma_rt_future messages_next(const struct messages *m)
{
	struct rpma_rt_future future;

	MUST(messages_ask(m, &future));
	return future;
}

void messages_drop(struct rpma_rt_future *future)
{
	MUST_ANSWER(0, rpma_rt_future_drop(future));
}

void messages_has(struct rpma_rt_future *future)
{
	MUST_ANSWER(1,
		    rpma_rt_future_wait_some(future, 1, 1, MESSAGES_PATIENT));
}

uint32_t messages_number(const struct messages *m,
			 const struct rpma_rt_completion *cmpl)
{
	struct rpma_conn_private_data pdata;
	uint32_t number;

	if (m->of != MESSAGES_OF_LISTENER)
		return be32toh(cmpl->imm);
	CHECK(rpma_rt_completion_event(cmpl) == RPMA_RT_EVENT_REQUEST);
	MUST(rpma_rt_conn_get_private_data(rpma_rt_completion_conn(cmpl),
					   &pdata));
	CHECK(pdata.len >= sizeof(number));
	memcpy(&number, pdata.ptr, sizeof(number));
	return number;
}

static void refuse(struct rpma_rt_conn *conn)
{
	MUST(rpma_rt_conn_close(conn));
	MUST(rpma_rt_conn_unref(&conn));
}

void messages_is(const struct messages *m,
		 const struct rpma_rt_completion *cmpl, uint32_t number)
{
	struct rpma_rt_lease lease;

	CHECK(messages_number(m, cmpl) == number);
	if (m->of == MESSAGES_OF_LISTENER) {
		refuse(rpma_rt_completion_conn(cmpl));
		return;
	}
	CHECK(cmpl->kind == RPMA_RT_COMPLETION);
	CHECK(cmpl->status == IBV_WC_SUCCESS && cmpl->byte_len == LEN);
	CHECK(rpma_rt_completion_lease(cmpl, &lease));
	CHECK(lease.pool == m->pool && lease.len == LEN);
	MUST(rpma_rt_lease_release(&lease));
}

void messages_brings(const struct messages *m, struct rpma_rt_future *future,
		     uint32_t number)
{
	struct rpma_rt_completion cmpl;

	MUST_ANSWER(1, rpma_rt_future_wait(future, &cmpl, MESSAGES_PATIENT));
	CHECK(m->of == MESSAGES_OF_LISTENER || cmpl.user == m);
	messages_is(m, &cmpl, number);
	messages_drop(future);
}

void messages_take(struct messages *m, uint32_t number)
{
	struct rpma_rt_future future = messages_next(m);

	messages_brings(m, &future, number);
}

void messages_is_over(struct rpma_rt_future *future, enum rpma_rt_event event)
{
	struct rpma_rt_completion cmpl;

	MUST_ANSWER(1, rpma_rt_future_wait(future, &cmpl, MESSAGES_PATIENT));
	CHECK(rpma_rt_completion_event(&cmpl) == event);
	MUST_ANSWER(RPMA_RT_E_FAILED,
		    rpma_rt_future_wait_some(future, 1, 1, 0));
	messages_drop(future);
}
