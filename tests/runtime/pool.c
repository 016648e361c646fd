/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * pool.c -- receives from a pool: a stream whose leases another thread releases
 * in a random order, to a connection and to connections with an SRQ; a pool
 * that runs dry and recovers; connections that die with slots posted and
 * messages untaken. Each message comes once, in order, and at the end every
 * slot is free. With the thread of a poller and by hand.
 *
 * usage: runtime_pool [messages]
 */

#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

#include "heard.h"
#include "stage.h"

#define DEPTH	  16
#define SLOT_SIZE 64
#define HELD	  32 /* leases shuffled by the giver */
#define CONNS	  3

/* --------------------------------------------------------------- a pool --- */

/*
 * By hand the poller belongs to this thread: its waiting calls run the poller.
 */
static void open_stage(struct stage *s, const struct stage_cfg *cfg)
{
	stage_open(s, cfg);
	if (cfg->mode == RPMA_RT_MODE_MANUAL)
		MUST(rpma_rt_poller_attach(s->world.rt, 0));
}

static struct rpma_rt_pool *pool_open(const struct stage *s, uint32_t count)
{
	return stage_pool(s, NULL, count, SLOT_SIZE, RPMA_RT_POOL_NO_SENDS);
}

static void pool_close(struct rpma_rt_pool **pool, uint32_t count)
{
	stage_all_free(*pool, count);
	MUST(rpma_rt_pool_delete(pool));
	CHECK(*pool == NULL);
}

/* Connects a pair whose passive end has a pool, or SRQs with a pool. */
static void connect_fed(struct stage *s, const struct rpma_rt_conn_cfg *cfg,
			void *user, struct world_pair *pair)
{
	struct rpma_rt_listener *listener = world_listen(&s->world, cfg, s->pq);

	MUST(world_conn_new(s->world.rt, s->world.peer, s->world.addr,
			    s->world.port, s->cfg, 0, s->aq, NULL,
			    &pair->active));
	world_event(s->aq, RPMA_RT_EVENT_READY);
	MUST(rpma_rt_conn_connect(pair->active, NULL));
	pair->passive = rpma_rt_completion_conn(&(struct rpma_rt_completion){
		.kind = RPMA_RT_EVENT,
		.opcode = RPMA_RT_EVENT_REQUEST,
		.context = world_event(s->pq, RPMA_RT_EVENT_REQUEST).context});
	MUST(rpma_rt_conn_set_user(pair->passive, user));
	MUST(rpma_rt_conn_accept(pair->passive, NULL));
	world_event(s->aq, RPMA_RT_EVENT_ESTABLISHED);
	world_event(s->pq, RPMA_RT_EVENT_ESTABLISHED);
	world_unlisten(&listener, s->pq);
}

static void connect_pool(struct stage *s, struct rpma_rt_pool *pool,
			 struct world_pair *pair)
{
	struct rpma_rt_conn_cfg *cfg = world_cfg(DEPTH, DEPTH);

	cfg->pool = pool;
	connect_fed(s, cfg, NULL, pair);
	free(cfg);
}

/* ------------------------------------------------------------ the giver --- */

/* Releases leases in a random order. */
struct giver {
	pthread_t thread;
	pthread_mutex_t lock;
	pthread_cond_t more;
	struct rpma_rt_lease leases[HELD];
	uint32_t count;
	bool is_over;
	uint32_t seed;
	uint64_t given;
};

static void *giver_main(void *arg)
{
	struct giver *g = arg;
	struct rpma_rt_lease lease;
	uint32_t i;

	pthread_mutex_lock(&g->lock);
	for (;;) {
		while (g->count == 0 && !g->is_over)
			pthread_cond_wait(&g->more, &g->lock);
		if (g->count == 0)
			break;
		g->seed = g->seed * 1664525 + 1013904223;
		i = (g->seed >> 8) % g->count;
		lease = g->leases[i];
		g->leases[i] = g->leases[--g->count];
		pthread_cond_broadcast(&g->more);
		pthread_mutex_unlock(&g->lock);
		MUST(rpma_rt_lease_release(&lease));
		g->given++;
		pthread_mutex_lock(&g->lock);
	}
	pthread_mutex_unlock(&g->lock);
	return NULL;
}

static void giver_start(struct giver *g)
{
	memset(g, 0, sizeof(*g));
	g->seed = 1;
	pthread_mutex_init(&g->lock, NULL);
	pthread_cond_init(&g->more, NULL);
	CHECK(pthread_create(&g->thread, NULL, giver_main, g) == 0);
}

static void giver_hand(struct giver *g, const struct rpma_rt_lease *lease)
{
	pthread_mutex_lock(&g->lock);
	while (g->count == HELD)
		pthread_cond_wait(&g->more, &g->lock);
	g->leases[g->count++] = *lease;
	pthread_cond_broadcast(&g->more);
	pthread_mutex_unlock(&g->lock);
}

static void giver_join(struct giver *g)
{
	pthread_mutex_lock(&g->lock);
	g->is_over = true;
	pthread_cond_broadcast(&g->more);
	pthread_mutex_unlock(&g->lock);
	pthread_join(g->thread, NULL);
	pthread_mutex_destroy(&g->lock);
	pthread_cond_destroy(&g->more);
}

/* -------------------------------------------------------------- streams --- */

struct stream {
	struct stage *stage;
	struct rpma_rt_pool *sending; /* leases as the source of sends */
	struct world_pair pairs[CONNS];
	uint64_t sent[CONNS];
	uint64_t got[CONNS];
	uint64_t done; /* sends, of all */
	uint64_t each;
	struct giver giver;
	int conns;
};

/* As many as there is room for; their leases are in out, by slot. */
static void send_more(struct stream *t, int i, struct rpma_rt_lease *out)
{
	struct rpma_rt_lease lease;
	int ret = 0;

	while (ret == 0 && t->sent[i] < t->each &&
	       rpma_rt_pool_take(t->sending, &lease) == 0) {
		memcpy(lease.data, &t->sent[i], sizeof(t->sent[i]));
		out[lease.slot] = lease;
		ret = rpma_rt_send(t->pairs[i].active, lease.mr, lease.offset,
				   8 + t->sent[i] % 8, RPMA_F_COMPLETION_ALWAYS,
				   lease.slot);
		t->sent[i] += ret == 0;
	}
	if (ret) {
		CHECK(ret == RPMA_E_AGAIN);
		MUST(rpma_rt_lease_release(&lease));
	}
}

/* Takes the completions of sends: their slots are free again. */
static void sent_done(struct stream *t, struct rpma_rt_lease *out)
{
	struct rpma_rt_completion items[8];
	int n = rpma_rt_queue_poll(t->stage->aq, items, 8);

	CHECK(n >= 0);
	while (n-- > 0) {
		if (items[n].kind == RPMA_RT_WRITABLE)
			continue;
		CHECK(rpma_rt_completion_is_ok(&items[n]));
		MUST(rpma_rt_lease_release(&out[items[n].context]));
		t->done++;
	}
}

static void received(struct stream *t, const struct rpma_rt_completion *item)
{
	int i = (int)(intptr_t)item->user;
	struct rpma_rt_lease lease;
	uint64_t number;

	CHECK(rpma_rt_completion_is_received(item));
	CHECK(rpma_rt_completion_lease(item, &lease));
	memcpy(&number, lease.data, sizeof(number));
	CHECK(number == t->got[i]);
	CHECK(lease.len == 8 + number % 8);
	t->got[i]++;
	giver_hand(&t->giver, &lease);
}

/* Until everything has arrived, and every send is complete. */
static void run_stream(struct stream *t, uint32_t slots)
{
	struct rpma_rt_lease *out = calloc(slots, sizeof(*out));
	const uint64_t all = t->each * (uint64_t)t->conns;
	struct rpma_rt_completion item;
	uint64_t left = all;
	int ret;
	int i;

	CHECK(out);
	giver_start(&t->giver);
	while (left > 0 || t->done < all) {
		for (i = 0; i < t->conns; i++)
			send_more(t, i, out);
		ret = rpma_rt_queue_wait(t->stage->pq, &item, 1, 1);
		CHECK(ret >= 0);
		if (ret == 1) {
			received(t, &item);
			left--;
		}
		sent_done(t, out);
	}
	giver_join(&t->giver);
	CHECK(t->giver.given == all);
	free(out);
}

/* Closes, and takes all items of both queues up to CLOSED: leases are released,
 * and no failed receive is seen. */
static void disconnect(struct stage *s, struct world_pair *pair,
		       bool from_active)
{
	struct rpma_rt_completion item;
	struct rpma_rt_lease lease;

	MUST(rpma_rt_conn_close(from_active ? pair->active : pair->passive));
	do {
		item = world_next(s->aq);
	} while (rpma_rt_completion_event(&item) != RPMA_RT_EVENT_CLOSED);
	for (;;) {
		item = world_next(s->pq);
		if (rpma_rt_completion_event(&item) == RPMA_RT_EVENT_CLOSED)
			break;
		CHECK(rpma_rt_completion_lease(&item, &lease));
		CHECK(rpma_rt_completion_is_received(&item));
		MUST(rpma_rt_lease_release(&lease));
	}
	world_unref(pair);
}

static void stream__given_back_by_another_thread(enum rpma_rt_mode mode,
						 uint32_t slots, uint64_t each)
{
	struct stage_cfg cfg = {.pollers = 1, .mode = mode, .depth = DEPTH};
	struct stage s;
	struct stream t = {.stage = &s, .each = each, .conns = 1};
	struct rpma_rt_pool *pool;

	open_stage(&s, &cfg);
	pool = pool_open(&s, slots);
	t.sending = pool_open(&s, DEPTH);
	connect_pool(&s, pool, &t.pairs[0]);
	run_stream(&t, DEPTH);
	disconnect(&s, &t.pairs[0], true);
	pool_close(&pool, slots);
	pool_close(&t.sending, DEPTH);
	stage_close(&s);
}

/*
 * Two SRQs of one pool would do as well; here a single SRQ, on the only poller.
 */
static void srq__given_back_by_another_thread(enum rpma_rt_mode mode,
					      uint32_t slots, uint64_t each)
{
	struct stage_cfg cfg = {.pollers = 1, .mode = mode, .depth = DEPTH};
	struct rpma_rt_srq_cfg srq_cfg = RPMA_RT_SRQ_CFG_INIT;
	struct rpma_rt_conn_cfg *shared = world_cfg(DEPTH, DEPTH);
	struct stage s;
	struct stream t = {.stage = &s, .each = each, .conns = CONNS};
	struct rpma_rt_pool *pool;
	struct rpma_rt_srq *srq;
	int i;

	open_stage(&s, &cfg);
	pool = pool_open(&s, slots);
	t.sending = pool_open(&s, DEPTH);
	srq_cfg.peer = s.world.peer;
	srq_cfg.queue = s.pq;
	srq_cfg.srq_size = DEPTH;
	srq_cfg.pool = pool;
	MUST(rpma_rt_srq_new(s.world.rt, &srq_cfg, &srq));
	MUST_ANSWER(RPMA_E_INVAL, rpma_rt_srq_recv(srq, s.mr, 0, 8, 1));
	shared->srqs = &srq;
	shared->srq_count = 1;
	for (i = 0; i < CONNS; i++)
		connect_fed(&s, shared, (void *)(intptr_t)i, &t.pairs[i]);
	run_stream(&t, DEPTH);
	MUST_ANSWER(RPMA_RT_E_BUSY, rpma_rt_pool_delete(&pool));
	for (i = 0; i < CONNS; i++)
		disconnect(&s, &t.pairs[i], i % 2);
	MUST(rpma_rt_srq_delete(&srq));
	world_event(s.pq, RPMA_RT_EVENT_SRQ_CLOSED);
	pool_close(&pool, slots);
	pool_close(&t.sending, DEPTH);
	free(shared);
	stage_close(&s);
}

/* ----------------------------------------------------------- exhaustion --- */

static void send_one(struct stage *s, const struct world_pair *pair, size_t len,
		     uint64_t context)
{
	MUST(rpma_rt_send(pair->active, s->mr, 0, len, RPMA_F_COMPLETION_ALWAYS,
			  context));
}

static void next_lease(struct stage *s, struct rpma_rt_lease *lease)
{
	struct rpma_rt_completion item = world_next(s->pq);

	CHECK(rpma_rt_completion_lease(&item, lease));
}

/* The program holds all slots: the next message waits until a slot is released,
 * each time, and the log says so once. */
static void dry__recovers_with_each_lease(enum rpma_rt_mode mode)
{
	struct stage_cfg cfg = {.pollers = 1, .mode = mode, .depth = DEPTH};
	struct rpma_rt_lease held[4];
	struct rpma_rt_completion item;
	struct rpma_rt_pool *pool;
	struct world_pair pair;
	struct stage s;
	uint64_t i;

	open_stage(&s, &cfg);
	pool = pool_open(&s, 4);
	connect_pool(&s, pool, &pair);
	heard_forget();
	for (i = 0; i < 4; i++) {
		send_one(&s, &pair, 8, i);
		next_lease(&s, &held[i]);
		stage_completion(s.aq, i, IBV_WC_SUCCESS);
	}
	for (i = 0; i < 100; i++) {
		send_one(&s, &pair, 8, i);
		CHECK(rpma_rt_queue_poll(s.pq, &item, 1) == 0);
		MUST(rpma_rt_lease_release(&held[i % 4]));
		next_lease(&s, &held[i % 4]);
		stage_completion(s.aq, i, IBV_WC_SUCCESS);
	}
	CHECK(heard_count("has no free slot") == 1);
	MUST_ANSWER(RPMA_RT_E_BUSY, rpma_rt_pool_delete(&pool));
	disconnect(&s, &pair, false);
	MUST_ANSWER(RPMA_RT_E_BUSY, rpma_rt_pool_delete(&pool));
	for (i = 0; i < 4; i++)
		MUST(rpma_rt_lease_release(&held[i]));
	pool_close(&pool, 4);
	stage_close(&s);
}

/* --------------------------------------------------------------- deaths --- */

/* Messages in the queue at the close keep their leases; posted slots are free
 * before CLOSED. */
static void death__gives_posted_slots_back(enum rpma_rt_mode mode)
{
	struct stage_cfg cfg = {.pollers = 1, .mode = mode, .depth = DEPTH};
	struct rpma_rt_lease leases[2];
	struct rpma_rt_pool *pool;
	struct world_pair pair;
	struct stage s;
	int i;

	open_stage(&s, &cfg);
	pool = pool_open(&s, DEPTH);
	for (i = 0; i < 4; i++) {
		connect_pool(&s, pool, &pair);
		send_one(&s, &pair, 8, 1);
		send_one(&s, &pair, 8, 2);
		stage_completion(s.aq, 1, IBV_WC_SUCCESS);
		stage_completion(s.aq, 2, IBV_WC_SUCCESS);
		MUST(rpma_rt_conn_close(i % 2 ? pair.active : pair.passive));
		world_event(s.aq, RPMA_RT_EVENT_CLOSED);
		next_lease(&s, &leases[0]);
		next_lease(&s, &leases[1]);
		world_event(s.pq, RPMA_RT_EVENT_CLOSED);
		MUST(rpma_rt_lease_release(&leases[1]));
		MUST(rpma_rt_lease_release(&leases[0]));
		stage_all_free(pool, DEPTH);
		world_unref(&pair);
	}
	pool_close(&pool, DEPTH);
	stage_close(&s);
}

/* Longer than a slot: both ends die, and no completion of the receive comes. */
static void too_long__closes(enum rpma_rt_mode mode)
{
	struct stage_cfg cfg = {.pollers = 1, .mode = mode, .depth = DEPTH};
	struct rpma_rt_completion item;
	struct rpma_rt_pool *pool;
	struct world_pair pair;
	struct stage s;

	open_stage(&s, &cfg);
	pool = pool_open(&s, DEPTH);
	connect_pool(&s, pool, &pair);
	send_one(&s, &pair, SLOT_SIZE + 1, 1);
	item = world_event(s.pq, RPMA_RT_EVENT_CLOSED);
	CHECK(item.status == RPMA_RT_REASON_ERROR);
	do {
		item = world_next(s.aq);
	} while (rpma_rt_completion_event(&item) != RPMA_RT_EVENT_CLOSED);
	world_unref(&pair);
	pool_close(&pool, DEPTH);
	stage_close(&s);
}

/* A queue deleted with messages inside releases their leases; a stop releases
 * posted slots, and afterwards the pool may be deleted. */
static void stop__gives_slots_back(enum rpma_rt_mode mode)
{
	struct stage_cfg cfg = {.pollers = 1, .mode = mode, .depth = DEPTH};
	struct rpma_rt_lease lease;
	struct rpma_rt_pool *pool;
	struct world_pair pair;
	struct stage s;
	uint64_t i;

	open_stage(&s, &cfg);
	pool = pool_open(&s, DEPTH);
	connect_pool(&s, pool, &pair);
	for (i = 0; i < 3; i++) {
		send_one(&s, &pair, 8, i);
		stage_completion(s.aq, i, IBV_WC_SUCCESS);
	}
	next_lease(&s, &lease);
	MUST(rpma_rt_stop(s.world.rt));
	world_event(s.aq, RPMA_RT_EVENT_CLOSED);
	MUST_ANSWER(RPMA_RT_E_BUSY, rpma_rt_pool_delete(&pool));
	MUST(rpma_rt_queue_delete(&s.pq));
	MUST_ANSWER(RPMA_RT_E_BUSY, rpma_rt_pool_delete(&pool));
	MUST(rpma_rt_lease_release(&lease));
	world_unref(&pair);
	pool_close(&pool, DEPTH);
	MUST(rpma_rt_queue_delete(&s.aq));
	MUST(rpma_mr_remote_delete(&s.remote));
	MUST(rpma_mr_dereg(&s.mr));
	free(s.memory);
	free(s.cfg);
	world_close(&s.world);
}

/* ------------------------------------------------------------- refusals --- */

static void refused__with_a_reason(enum rpma_rt_mode mode)
{
	struct stage_cfg cfg = {.pollers = 1, .mode = mode, .depth = DEPTH};
	struct rpma_rt_completion item = {.kind = RPMA_RT_COMPLETION};
	struct rpma_rt_route *route;
	struct rpma_rt_lease lease;
	struct rpma_rt_lease copy;
	struct rpma_rt_pool *pool;
	struct world_pair pair;
	struct stage s;

	open_stage(&s, &cfg);
	pool = pool_open(&s, DEPTH);
	connect_pool(&s, pool, &pair);
	MUST_ANSWER(RPMA_E_INVAL, rpma_rt_recv(pair.passive, s.mr, 0, 8, 1));
	MUST_ANSWER(RPMA_E_INVAL,
		    rpma_rt_route_open(pair.passive, RPMA_RT_RECV_SIDE, s.pq,
				       &route));
	CHECK(!rpma_rt_completion_lease(&item, &lease));
	send_one(&s, &pair, 8, 1);
	next_lease(&s, &lease);
	copy = lease;
	MUST(rpma_rt_lease_release(&lease));
	MUST_ANSWER(RPMA_E_INVAL, rpma_rt_lease_release(&copy));
	MUST_ANSWER(RPMA_E_INVAL, rpma_rt_lease_release(NULL));
	copy.slot = DEPTH;
	MUST_ANSWER(RPMA_E_INVAL, rpma_rt_lease_release(&copy));
	copy.pool = NULL;
	MUST_ANSWER(RPMA_E_INVAL, rpma_rt_lease_release(&copy));
	disconnect(&s, &pair, true);
	pool_close(&pool, DEPTH);
	stage_close(&s);
}

static void scenes(enum rpma_rt_mode mode, uint64_t messages)
{
	stream__given_back_by_another_thread(mode, 4 * DEPTH, messages);
	/* less than a receive queue holds: dry again and again */
	stream__given_back_by_another_thread(mode, DEPTH / 2, messages / 50);
	stream__given_back_by_another_thread(mode, 1, messages / 400);
	srq__given_back_by_another_thread(mode, 4 * DEPTH, messages / 20);
	srq__given_back_by_another_thread(mode, 3, messages / 400);
	death__gives_posted_slots_back(mode);
	too_long__closes(mode);
	stop__gives_slots_back(mode);
	refused__with_a_reason(mode);
}

int main(int argc, char **argv)
{
	uint64_t messages = argc > 1 ? strtoull(argv[1], NULL, 10) : 100000;

	heard_start(RPMA_LOG_LEVEL_ERROR);
	/* first: the log leaves lines out where there are many */
	dry__recovers_with_each_lease(RPMA_RT_MODE_ADAPTIVE);
	dry__recovers_with_each_lease(RPMA_RT_MODE_MANUAL);
	scenes(RPMA_RT_MODE_ADAPTIVE, messages);
	scenes(RPMA_RT_MODE_MANUAL, messages / 4);
	return 0;
}
