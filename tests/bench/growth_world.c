/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/* growth_world.c -- makes the objects that calls are counted beside. */

#include <string.h>

#include "growth.h"

#define POLLERS	   6 /* the SRQs need four: one has room for 254 */
#define SRQ_POLLER 2
#define DEPTH	   64
/* as many of the crowd's ends in one as of the default size in a default CQ */
#define CQ_SIZE 256
#define SLOT	64
#define HOUR_US UINT64_C(3600000000)

static void *room_for(uint32_t count, size_t size)
{
	void *room = calloc(count + 1, size);

	CHECK(room != NULL);
	return room;
}

/* ------------------------------------------------------ the fed pair --- */

static void wait_and_drop(struct rpma_rt_future *future)
{
	struct rpma_rt_completion cmpl;

	MUST_ANSWER(1, rpma_rt_future_wait(future, &cmpl, WORLD_PATIENCE_MS));
	MUST(rpma_rt_future_drop(future));
}

static void wait_event(struct rpma_rt_conn *conn, enum rpma_rt_event event)
{
	struct rpma_rt_future future;

	MUST(rpma_rt_conn_future(conn, event, &future));
	wait_and_drop(&future);
}

void growth_send(struct growth *g)
{
	struct rpma_rt_wr wr;

	if (g->to_send == 0)
		return;
	g->to_send--;
	rpma_rt_prep_send(&wr, g->s.mr, 0, SLOT, RPMA_F_COMPLETION_ALWAYS, 0);
	wr.route = g->chain;
	MUST(world_post_send(g->fed.active, &wr));
}

static void was_sent(const struct rpma_rt_completion *item, void *arg)
{
	if (item->kind == RPMA_RT_COMPLETION)
		growth_send(arg);
}

void growth_renew(struct growth *g)
{
	struct rpma_rt_completion cmpl;
	struct rpma_rt_lease lease;
	uint32_t i;

	for (i = 0; i < g->counts.futures + GROWTH_SPARE; i++) {
		if (rpma_rt_future_poll(&g->futures[i], &cmpl) != 1)
			continue;
		CHECK(rpma_rt_completion_lease(&cmpl, &lease));
		MUST(rpma_rt_lease_release(&lease));
		MUST(rpma_rt_future_drop(&g->futures[i]));
		CHECK(rpma_rt_poller_run(g->s.world.rt, 0, 32) >= 0);
		MUST(rpma_rt_next_future(
			&(struct rpma_rt_source){.conn = g->fed.passive},
			&g->futures[i]));
	}
}

static struct rpma_rt_pool *pool_new(struct growth *g, uint32_t count)
{
	struct rpma_rt_pool_cfg cfg = RPMA_RT_POOL_CFG_INIT;
	struct rpma_rt_pool *pool;

	cfg.peer = g->s.world.peer;
	cfg.count = count;
	cfg.slot_size = SLOT;
	MUST(rpma_rt_pool_new(g->s.world.rt, &cfg, &pool));
	return pool;
}

static void open_fed(struct growth *g)
{
	struct rpma_rt_conn_cfg *cfg = world_cfg(DEPTH, DEPTH);
	uint32_t futures = g->counts.futures + GROWTH_SPARE;
	struct world *w = &g->s.world;
	struct rpma_rt_completion cmpl;
	struct rpma_rt_listener *listener;
	struct rpma_rt_future request;
	uint16_t port;
	char text[8];
	uint32_t i;

	g->messages = pool_new(g, 8 * DEPTH);
	cfg->pool = g->messages;
	cfg->futures = futures;
	MUST(world_listen_at(w->rt, w->peer, w->addr, "0", 1, cfg, 0, NULL,
			     NULL, &listener));
	MUST(rpma_rt_listener_get_port(listener, &port));
	snprintf(text, sizeof(text), "%u", port);
	MUST(rpma_rt_next_future(&(struct rpma_rt_source){.listener = listener},
				 &request));
	MUST(world_conn_new(w->rt, w->peer, w->addr, text, cfg, 0, NULL, NULL,
			    &g->fed.active));
	wait_event(g->fed.active, RPMA_RT_EVENT_READY);
	MUST(rpma_rt_conn_connect(g->fed.active, NULL));
	MUST_ANSWER(1, rpma_rt_future_wait(&request, &cmpl, WORLD_PATIENCE_MS));
	g->fed.passive = (struct rpma_rt_conn *)(uintptr_t)cmpl.context;
	MUST(rpma_rt_future_drop(&request));
	MUST(rpma_rt_conn_accept(g->fed.passive, NULL));
	wait_event(g->fed.active, RPMA_RT_EVENT_ESTABLISHED);
	MUST(rpma_rt_route_open_callback(g->fed.active, RPMA_RT_SEND_SIDE,
					 was_sent, g, &g->chain));
	g->futures = room_for(futures, sizeof(*g->futures));
	for (i = 0; i < futures; i++)
		MUST(rpma_rt_next_future(
			&(struct rpma_rt_source){.conn = g->fed.passive},
			&g->futures[i]));
	free(cfg);
}

/* -------------------------------------------------- many of each kind --- */

static void open_routes(struct growth *g)
{
	uint32_t i;

	MUST(rpma_rt_queue_new(g->s.world.rt, NULL, &g->routed));
	g->routes = room_for(g->counts.routes, sizeof(*g->routes));
	for (i = 0; i < g->counts.routes; i++)
		MUST(rpma_rt_route_open(g->pair.active, RPMA_RT_SEND_SIDE,
					g->routed, &g->routes[i]));
}

static void open_srqs(struct growth *g)
{
	struct rpma_rt_srq_cfg cfg = RPMA_RT_SRQ_CFG_INIT;
	uint32_t i;

	cfg.peer = g->s.world.peer;
	cfg.queue = g->s.pq;
	cfg.srq_size = 4;
	for (i = 0; i < g->counts.srqs; i++) {
		cfg.poller = SRQ_POLLER + i / 250;
		MUST(rpma_rt_srq_new(g->s.world.rt, &cfg, &g->srq));
	}
}

static void open_listeners(struct growth *g)
{
	struct rpma_rt_listener *listener;
	struct world *w = &g->s.world;
	uint32_t i;

	for (i = 0; i < g->counts.listeners; i++)
		MUST(world_listen_at(w->rt, w->peer, w->addr, "0", 8, g->s.cfg,
				     0, g->s.pq, NULL, &listener));
	g->listener = world_listen(w, g->s.cfg, g->s.pq);
	MUST(rpma_rt_listener_get_port(g->listener, &g->port));
}

static void open_queues(struct growth *g)
{
	struct rpma_rt_queue_cfg cfg = RPMA_RT_QUEUE_CFG_INIT;
	struct rpma_rt_queue *queue;
	uint32_t i;

	for (i = 0; i < g->counts.queues; i++)
		MUST(rpma_rt_queue_new(g->s.world.rt, &cfg, &queue));
}

static void take_leases(struct growth *g)
{
	struct rpma_rt_lease lease;
	uint32_t i;

	g->pool = pool_new(g, g->counts.leases + 8);
	for (i = 0; i < g->counts.leases; i++)
		MUST(rpma_rt_pool_take(g->pool, &lease));
}

static void ignore_item(struct rpma_rt_shard *shard,
			const struct rpma_rt_completion *item, void *arg)
{
	(void)shard;
	(void)item;
	(void)arg;
}

static void answer(struct rpma_rt_shard *shard,
		   const struct rpma_rt_shard_message *message, void *arg)
{
	(void)arg;
	if (message->kind == RPMA_RT_SHARD_REQUEST)
		MUST(rpma_rt_shard_answer(shard, message, message));
}

static void ignore_timer(struct rpma_rt_shard *shard,
			 struct rpma_rt_timer *timer)
{
	(void)shard;
	(void)timer;
}

static void start_timers(struct growth *g)
{
	struct rpma_rt_shards_cfg cfg = RPMA_RT_SHARDS_CFG_INIT;
	uint32_t i;

	cfg.item_fn = ignore_item;
	cfg.message_fn = answer;
	MUST(rpma_rt_shards_new(g->s.world.rt, &cfg, &g->shards));
	MUST(rpma_rt_shards_get(g->shards, 0, &g->shard));
	CHECK(rpma_rt_shard_run(g->shard, 0) >= 0);
	g->timers = room_for(g->counts.timers, sizeof(*g->timers));
	for (i = 0; i <= g->counts.timers; i++) {
		g->timers[i].fn = ignore_timer;
		if (i > 0)
			MUST(rpma_rt_timer_start(g->shard, &g->timers[i],
						 HOUR_US + i));
	}
}

void growth_open(struct growth *g)
{
	const struct stage_cfg cfg = {.pollers = POLLERS,
				      .mode = RPMA_RT_MODE_MANUAL,
				      .cq_size = CQ_SIZE,
				      .depth = DEPTH};
	uint32_t i;

	stage_open(&g->s, &cfg);
	for (i = 0; i < POLLERS; i++)
		MUST(rpma_rt_poller_attach(g->s.world.rt, i));
	g->s.cfg->sq_size = 4;
	g->s.cfg->rq_size = 4;
	stage_connect(&g->s, &g->pair);
	open_queues(g);
	open_routes(g);
	open_srqs(g);
	take_leases(g);
	crowd_open(&g->crowd, &g->s.world, 0, g->counts.conns, NULL);
	open_fed(g);
	open_listeners(g);
	start_timers(g);
}
