/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * srq.c -- connections that share receives: on two pollers with an SRQ each,
 * refilled by the poller; an SRQ of one receive, where most sends meet an empty
 * queue; a program that posts only at the limit event; connections that die in
 * the middle, after which each buffer is accounted for: delivered, or back at
 * the end of the SRQ.
 *
 * usage: runtime_srq [messages of each connection]
 */

#include <stdatomic.h>
#include <string.h>

#include "loop.h"
#include "stage.h"

#define CONNS	 6
#define DEPTH	 16
#define BUFFERS	 32
#define LIMIT	 4
#define MSG_SIZE 32
#define SOURCE	 (2 * BUFFERS * MSG_SIZE) /* behind both pools */

/*
 * an SRQ and its buffers; the context of a receive is the number of its buffer
 */
struct pool {
	struct stage *stage;
	struct rpma_rt_srq *srq;
	struct rpma_rt_queue *queue;
	struct rpma_rt_queue *own; /* its queue, unless shared with another */
	uint32_t size;
	size_t base; /* of the buffers in the memory of the stage */
	/* written by whoever posts or takes a buffer; free ones */
	_Atomic uint32_t out[BUFFERS];
	_Atomic uint32_t refills;
	uint32_t next; /* of refill_next(): the poller's */
};

/* Posts the buffer, unless another thread has claimed the buffer. */
static int pool_post(struct pool *pool, struct rpma_rt_srq *srq, uint32_t i)
{
	int ret;

	/* relaxed: the queues of the buffer order its holders */
	if (atomic_exchange_explicit(&pool->out[i], 1, memory_order_relaxed))
		return 0;
	ret = rpma_rt_srq_recv(srq, pool->stage->mr, pool->base + i * MSG_SIZE,
			       MSG_SIZE, i);
	if (ret)
		/* relaxed: as above */
		atomic_store_explicit(&pool->out[i], 0, memory_order_relaxed);
	return ret;
}

static void pool_took(struct pool *pool, uint64_t context)
{
	CHECK(context < pool->size);
	/* relaxed: as above */
	CHECK(atomic_exchange_explicit(&pool->out[context], 0,
				       memory_order_relaxed) == 1);
}

/* Posts all free buffers; threads that take a buffer post too, both at once. */
static void refill(struct rpma_rt_srq *srq, uint32_t room, void *arg)
{
	struct pool *pool = arg;
	uint32_t i;
	int ret = 0;

	CHECK(room > 0);
	/* relaxed: a count */
	atomic_fetch_add_explicit(&pool->refills, 1, memory_order_relaxed);
	for (i = 0; i < pool->size && ret == 0; i++)
		ret = pool_post(pool, srq, i);
	CHECK(ret == 0 || ret == RPMA_E_AGAIN);
}

/* Each buffer once, in turn. */
static void refill_next(struct rpma_rt_srq *srq, uint32_t room, void *arg)
{
	struct pool *pool = arg;

	while (room-- > 0 && pool->next < BUFFERS &&
	       pool_post(pool, srq, pool->next) == 0)
		pool->next++;
}

/* Opens a pool with a new queue, unless a queue is given. */
static void pool_open(struct pool *pool, struct stage *s, int poller,
		      uint32_t size, uint32_t limit, rpma_rt_refill_fn *fn)
{
	struct rpma_rt_srq_cfg cfg = RPMA_RT_SRQ_CFG_INIT;

	pool->stage = s;
	pool->size = size;
	pool->base = (size_t)poller * BUFFERS * MSG_SIZE;
	if (pool->queue == NULL) {
		MUST(rpma_rt_queue_new(s->world.rt, NULL, &pool->own));
		pool->queue = pool->own;
	}
	cfg.poller = (uint32_t)poller;
	cfg.peer = s->world.peer;
	cfg.queue = pool->queue;
	cfg.user = pool;
	cfg.srq_size = size;
	cfg.waiting = RPMA_RT_NO_WAITING;
	cfg.limit = limit;
	cfg.refill = fn;
	cfg.refill_arg = pool;
	MUST(rpma_rt_srq_new(s->world.rt, &cfg, &pool->srq));
}

static bool is_limit(const struct rpma_rt_completion *item)
{
	return item->kind == RPMA_RT_EVENT &&
	       item->opcode == RPMA_RT_EVENT_SRQ_LIMIT;
}

/*
 * Asserts that every posted buffer comes back, then SRQ_CLOSED, then nothing.
 */
static void pool_close(struct pool *pool)
{
	struct rpma_rt_completion item;
	uint32_t i;

	MUST(rpma_rt_srq_delete(&pool->srq));
	for (;;) {
		item = world_next(pool->queue);
		if (item.kind == RPMA_RT_WRITABLE || is_limit(&item))
			continue;
		if (item.kind == RPMA_RT_EVENT)
			break;
		CHECK(item.flags & RPMA_RT_C_SYNTHESIZED);
		CHECK(item.user == pool);
		pool_took(pool, item.context);
	}
	CHECK(item.opcode == RPMA_RT_EVENT_SRQ_CLOSED);
	CHECK(rpma_rt_queue_poll(pool->queue, &item, 1) == 0);
	for (i = 0; i < pool->size; i++) {
		/* relaxed: no other thread has buffers any more */
		CHECK(atomic_load_explicit(&pool->out[i],
					   memory_order_relaxed) == 0);
	}
	MUST(rpma_rt_queue_delete(&pool->own));
}

/* -------------------------------------------------------------- traffic --- */

struct traffic {
	struct stage *stage;
	struct pool *pools; /* by poller */
	struct world_pair pairs[CONNS];
	uint32_t sent[CONNS];
	uint32_t got[CONNS];
	uint32_t each;
	bool reposts;  /* posts received buffers again */
	uint32_t owed; /* to be posted, when there is a buffer */
};

static struct rpma_rt_conn_cfg *passive_cfg(struct rpma_rt_srq **srqs, int n)
{
	struct rpma_rt_conn_cfg *cfg = world_cfg(DEPTH, DEPTH);

	cfg->srqs = srqs;
	cfg->srq_count = n;
	return cfg;
}

/* Connects: the passive end uses an SRQ, the active end does not. */
static void connect_shared(struct traffic *t, struct rpma_rt_conn_cfg *cfg,
			   int i)
{
	struct stage *s = t->stage;
	struct rpma_rt_listener *listener = world_listen(&s->world, cfg, s->pq);
	struct world_pair *pair = &t->pairs[i];

	MUST(world_conn_new(s->world.rt, s->world.peer, s->world.addr,
			    s->world.port, s->cfg, 0, s->aq,
			    (void *)(intptr_t)i, &pair->active));
	world_event(s->aq, RPMA_RT_EVENT_READY);
	MUST(rpma_rt_conn_connect(pair->active, NULL));
	pair->passive = (struct rpma_rt_conn *)(uintptr_t)world_event(
				s->pq, RPMA_RT_EVENT_REQUEST)
				.context;
	MUST(rpma_rt_conn_set_user(pair->passive, (void *)(intptr_t)i));
	MUST(rpma_rt_conn_accept(pair->passive, NULL));
	world_event(s->aq, RPMA_RT_EVENT_ESTABLISHED);
	world_event(s->pq, RPMA_RT_EVENT_ESTABLISHED);
	world_unlisten(&listener, s->pq);
}

static void send_more(struct traffic *t, int i)
{
	int ret = 0;

	while (t->sent[i] < t->each && ret == 0) {
		ret = rpma_rt_send(t->pairs[i].active, t->stage->mr, SOURCE,
				   MSG_SIZE, RPMA_F_COMPLETION_ALWAYS,
				   (uint64_t)i);
		t->sent[i] += ret == 0;
	}
	CHECK(ret == 0 || ret == RPMA_E_AGAIN);
}

static void received(struct traffic *t, const struct rpma_rt_completion *item)
{
	int i = (int)(intptr_t)item->user;
	int poller;

	MUST(rpma_rt_conn_get_poller(t->pairs[i].passive, &poller));
	CHECK(item->kind == RPMA_RT_COMPLETION && item->opcode == IBV_WC_RECV);
	CHECK(item->status == IBV_WC_SUCCESS);
	t->got[i]++;
	pool_took(&t->pools[poller], item->context);
	if (!t->reposts)
		return;
	poller = pool_post(&t->pools[poller], t->pools[poller].srq,
			   (uint32_t)item->context);
	CHECK(poller == 0 || poller == RPMA_E_AGAIN);
}

/* Returns true if every message has arrived. */
static bool all_arrived(const struct traffic *t)
{
	int i;

	for (i = 0; i < CONNS; i++) {
		if (t->got[i] != t->sent[i])
			return false;
	}
	return true;
}

static void pay(struct traffic *t)
{
	struct pool *pool = t->pools;
	uint32_t i;

	for (i = 0; i < pool->size && t->owed > 0; i++) {
		/* relaxed: only this thread posts */
		if (atomic_load_explicit(&pool->out[i], memory_order_relaxed))
			continue;
		MUST(pool_post(pool, pool->srq, i));
		t->owed--;
	}
}

/* Until everything sent has arrived. */
static void run_traffic(struct traffic *t)
{
	struct rpma_rt_completion item;
	uint32_t left = CONNS * t->each;
	int i;

	memset(t->sent, 0, sizeof(t->sent));
	memset(t->got, 0, sizeof(t->got));
	while (left > 0) {
		for (i = 0; i < CONNS; i++)
			send_more(t, i);
		if (all_arrived(t)) { /* and sending was refused */
			item = world_next(t->stage->aq);
			continue;
		}
		item = world_next(t->stage->pq);
		if (is_limit(&item)) {
			t->owed = LIMIT;
		} else {
			received(t, &item);
			left--;
		}
		pay(t);
		while (rpma_rt_queue_poll(t->stage->aq, &item, 1) > 0)
			CHECK(item.kind == RPMA_RT_WRITABLE ||
			      item.status == IBV_WC_SUCCESS);
	}
	for (i = 0; i < CONNS; i++)
		CHECK(t->got[i] == t->each);
}

static void take_until_closed(struct traffic *t, struct rpma_rt_queue *queue,
			      bool passive)
{
	struct rpma_rt_completion item;
	int poller;

	for (;;) {
		item = world_next(queue);
		if (is_limit(&item))
			continue;
		if (item.kind == RPMA_RT_EVENT)
			break;
		if (!passive || item.opcode != IBV_WC_RECV)
			continue;
		MUST(rpma_rt_conn_get_poller(
			t->pairs[(intptr_t)item.user].passive, &poller));
		pool_took(&t->pools[poller], item.context);
	}
	CHECK(item.opcode == RPMA_RT_EVENT_CLOSED);
}

/*
 * Closes with sends outstanding: outstanding messages are lost, but no buffer.
 */
static void close_pair(struct traffic *t, int i)
{
	t->each++;
	send_more(t, i);
	MUST(rpma_rt_conn_close(i % 2 ? t->pairs[i].active
				      : t->pairs[i].passive));
	take_until_closed(t, t->stage->aq, false);
	take_until_closed(t, t->stage->pq, true);
	world_unref(&t->pairs[i]);
}

/* --------------------------------------------------------------- scenes --- */

static void shared__by_all_connections(uint32_t size, uint32_t limit,
				       uint32_t each)
{
	struct stage_cfg cfg = {.pollers = 2, .depth = DEPTH};
	struct rpma_rt_conn_cfg *shared;
	struct rpma_rt_srq *srqs[2];
	struct pool pools[2] = {0};
	struct stage s;
	struct traffic t = {
		.stage = &s, .pools = pools, .each = each, .reposts = true};
	int i;

	stage_open(&s, &cfg);
	for (i = 0; i < 2; i++) {
		pool_open(&pools[i], &s, i, size, limit, refill);
		srqs[i] = pools[i].srq;
	}
	shared = passive_cfg(srqs, 2);
	for (i = 0; i < CONNS; i++)
		connect_shared(&t, shared, i);
	CHECK(rpma_rt_srq_delete(&srqs[0]) == RPMA_RT_E_BUSY);
	CHECK(rpma_rt_recv(t.pairs[0].passive, s.mr, 0, MSG_SIZE, 0) ==
	      RPMA_E_INVAL);
	run_traffic(&t);
	for (i = 0; i < CONNS; i++)
		close_pair(&t, i);
	for (i = 0; i < 2; i++) {
		/* at least the first: where the test reposts, the test may be
		 * faster. Relaxed: a count */
		CHECK(atomic_load_explicit(&pools[i].refills,
					   memory_order_relaxed) > 0);
		pool_close(&pools[i]);
	}
	free(shared);
	stage_close(&s);
}

/* Without a function: the event says when to post; a poller without an SRQ is
 * not chosen, and is refused when requested. */
static void limit__event_in_the_queue(void)
{
	struct stage_cfg cfg = {.pollers = 2, .depth = DEPTH};
	struct rpma_rt_conn_cfg *shared;
	struct rpma_rt_completion item;
	struct rpma_rt_conn *none;
	struct pool pools[2] = {0};
	struct stage s;
	struct traffic t = {.stage = &s, .pools = pools, .each = 1};
	unsigned int kinds = 0;
	uint32_t i;
	int poller;

	stage_open(&s, &cfg);
	pool_open(&pools[1], &s, 1, 8, 4, NULL);
	for (i = 0; i < 8; i++)
		MUST(pool_post(&pools[1], pools[1].srq, i));
	CHECK(rpma_rt_srq_recv(pools[1].srq, s.mr, 0, MSG_SIZE, 9) ==
	      RPMA_E_AGAIN);
	shared = passive_cfg(&pools[1].srq, 1);
	CHECK(world_conn_new(s.world.rt, s.world.peer, s.world.addr, "9",
			     shared, 0, s.aq, NULL, &none) == RPMA_E_INVAL);
	for (i = 0; i < CONNS; i++) {
		connect_shared(&t, shared, (int)i);
		MUST(rpma_rt_conn_get_poller(t.pairs[i].passive, &poller));
		CHECK(poller == 1);
	}
	run_traffic(&t);
	/* refused, therefore told; and fewer than four are outstanding */
	for (i = 0; i < 2; i++) {
		item = world_next(pools[1].queue);
		CHECK(item.context == (uintptr_t)pools[1].srq);
		kinds |= 1u << item.kind;
		CHECK(item.opcode == (item.kind == RPMA_RT_WRITABLE
					      ? RPMA_RT_WRITABLE_SRQ
					      : RPMA_RT_EVENT_SRQ_LIMIT));
	}
	CHECK(kinds == (1u << RPMA_RT_WRITABLE | 1u << RPMA_RT_EVENT));
	for (i = 0; i < CONNS; i++)
		close_pair(&t, (int)i);
	free(shared);
	pool_close(&pools[1]);
	stage_close(&s);
}

/* Only the poller posts: without a refill the next message waits. */
static void refill__nobody_else_posts(void)
{
	struct stage_cfg cfg = {.pollers = 1, .depth = DEPTH};
	struct rpma_rt_conn_cfg *shared;
	struct rpma_rt_completion item;
	struct pool pool = {0};
	struct stage s;
	struct traffic t = {.stage = &s, .pools = &pool};
	uint64_t i;

	stage_open(&s, &cfg);
	pool_open(&pool, &s, 0, LIMIT, LIMIT / 2, refill_next);
	pool.size = BUFFERS;
	shared = passive_cfg(&pool.srq, 1);
	connect_shared(&t, shared, 0);
	for (i = 0; i < BUFFERS; i++) {
		MUST(rpma_rt_send(t.pairs[0].active, s.mr, SOURCE, MSG_SIZE,
				  RPMA_F_COMPLETION_ALWAYS, i));
		stage_completion(s.aq, i, IBV_WC_SUCCESS);
		item = stage_completion(s.pq, i, IBV_WC_SUCCESS);
		pool_took(&pool, item.context);
	}
	stage_disconnect(&s, &t.pairs[0]);
	pool_close(&pool);
	free(shared);
	stage_close(&s);
}

/*
 * The program posts only when told: after a lost event the traffic stands
 * still.
 */
static void limit__program_that_posts_when_told(uint32_t each)
{
	struct stage_cfg cfg = {.pollers = 1, .depth = DEPTH};
	struct rpma_rt_conn_cfg *shared;
	struct pool pool = {0};
	struct stage s;
	struct traffic t = {.stage = &s, .pools = &pool, .each = each};
	int i;

	stage_open(&s, &cfg);
	pool.queue = s.pq;
	pool_open(&pool, &s, 0, 2 * LIMIT, LIMIT, NULL);
	shared = passive_cfg(&pool.srq, 1);
	for (i = 0; i < CONNS; i++)
		connect_shared(&t, shared, i);
	t.owed = LIMIT;
	pay(&t);
	run_traffic(&t);
	for (i = 0; i < CONNS; i++)
		close_pair(&t, i);
	pool_close(&pool);
	free(shared);
	stage_close(&s);
}

/* The runtime stops with everything in use. */
static void stop__everything_comes_back(void)
{
	struct stage_cfg cfg = {.pollers = 1, .depth = DEPTH};
	struct rpma_rt_conn_cfg *shared;
	struct rpma_rt_completion item;
	struct pool pool = {0};
	struct stage s;
	struct traffic t = {.stage = &s, .pools = &pool, .each = 1};
	uint32_t back = 0;
	int i;

	stage_open(&s, &cfg);
	pool_open(&pool, &s, 0, 8, 0, refill);
	shared = passive_cfg(&pool.srq, 1);
	for (i = 0; i < CONNS; i++)
		connect_shared(&t, shared, i);
	MUST(rpma_rt_stop(s.world.rt));
	while (rpma_rt_queue_poll(pool.queue, &item, 1) > 0) {
		back += item.kind == RPMA_RT_COMPLETION;
		if (item.kind == RPMA_RT_COMPLETION)
			pool_took(&pool, item.context);
	}
	CHECK(back == 8);
	CHECK(item.opcode == RPMA_RT_EVENT_SRQ_CLOSED);
	CHECK(rpma_rt_srq_recv(pool.srq, s.mr, 0, MSG_SIZE, 0) ==
	      RPMA_RT_E_CLOSED);
	MUST(rpma_rt_srq_delete(&pool.srq));
	MUST(rpma_rt_queue_delete(&pool.own));
	for (i = 0; i < CONNS; i++) {
		world_event(s.aq, RPMA_RT_EVENT_CLOSED);
		world_event(s.pq, RPMA_RT_EVENT_CLOSED);
		world_unref(&t.pairs[i]);
	}
	free(shared);
	stage_close(&s);
}

/* Connections end without LAST_WQE_REACHED, or with two: no long wait. */
static void last_wqe__never_or_twice(uint32_t each)
{
	static const char *const rules[] = {"knob:last_wqe=1",
					    "knob:last_wqe=2"};
	const struct loop *loop = loop_get();
	size_t i;

	for (i = 0; loop != NULL && i < sizeof(rules) / sizeof(rules[0]); i++) {
		CHECK(loop->fault(rules[i]) == 0);
		shared__by_all_connections(BUFFERS, BUFFERS / 2, each);
		loop->fault_clear();
	}
}

static uint64_t missing(const struct stage *s)
{
	struct rpma_rt_poller_stats stats;

	MUST(rpma_rt_poller_get_stats(s->world.rt, 0, &stats, sizeof(stats)));
	return stats.last_wqe_missing;
}

/* Both ends of each pair use the SRQ. */
static void last_wqe__counted_where_it_is_missing(void)
{
	static const struct stage_cfg stage_cfg = {.pollers = 1, .depth = 8};
	const struct loop *loop = loop_get();
	struct rpma_rt_srq_cfg cfg = RPMA_RT_SRQ_CFG_INIT;
	struct world_pair pair;
	struct rpma_rt_srq *srq;
	struct stage s;
	int i;

	if (loop == NULL)
		return;
	stage_open(&s, &stage_cfg);
	cfg.peer = s.world.peer;
	cfg.queue = s.aq;
	MUST(rpma_rt_srq_new(s.world.rt, &cfg, &srq));
	s.cfg->srqs = &srq;
	s.cfg->srq_count = 1;
	for (i = 0; i < 2; i++) {
		/* with the event; without */
		if (i == 1)
			CHECK(loop->fault("knob:last_wqe=1") == 0);
		stage_connect(&s, &pair);
		stage_disconnect(&s, &pair);
		loop->fault_clear();
		CHECK(missing(&s) == (i == 0 ? 0 : 2));
	}
	s.cfg->srq_count = 0;
	MUST(rpma_rt_srq_delete(&srq));
	world_event(s.aq, RPMA_RT_EVENT_SRQ_CLOSED);
	stage_close(&s);
}

int main(int argc, char **argv)
{
	uint32_t each = argc > 1 ? (uint32_t)atoi(argv[1]) : 100;

	shared__by_all_connections(BUFFERS, BUFFERS / 2, each);
	shared__by_all_connections(BUFFERS, 0, each);
	shared__by_all_connections(1, 1, each / 5);
	last_wqe__never_or_twice(each);
	last_wqe__counted_where_it_is_missing();
	refill__nobody_else_posts();
	limit__event_in_the_queue();
	limit__program_that_posts_when_told(each);
	stop__everything_comes_back();
	printf("ok\n");
	return 0;
}
