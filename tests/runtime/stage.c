/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/* stage.c -- queues, memory and connections of the runtime's tests. */

#include "stage.h"

#include <string.h>

static void start(struct world *w, const struct stage_cfg *cfg)
{
	struct rpma_rt_cfg rt_cfg = RPMA_RT_CFG_INIT;

	rt_cfg.pollers = cfg->cpus == NULL ? cfg->pollers : 0;
	rt_cfg.cpus = cfg->cpus;
	rt_cfg.cpu_count = cfg->cpus == NULL ? 0 : cfg->pollers;
	rt_cfg.mode = cfg->mode;
	rt_cfg.backstop_ms = cfg->backstop_ms;
	if (cfg->teardown_ms != 0)
		rt_cfg.teardown_ms = cfg->teardown_ms;
	if (cfg->cq_size)
		rt_cfg.cq_size = cfg->cq_size;
	rt_cfg.async_fn = cfg->async_fn;
	rt_cfg.async_arg = cfg->async_arg;
	rt_cfg.async_feed = cfg->async_fed;
	MUST(rpma_rt_new(&rt_cfg, &w->rt));
}

void stage_open(struct stage *s, const struct stage_cfg *cfg)
{
	memset(s, 0, sizeof(*s));
	world_open(&s->world);
	start(&s->world, cfg);
	MUST(rpma_rt_queue_new(s->world.rt, NULL, &s->aq));
	MUST(rpma_rt_queue_new(s->world.rt, NULL, &s->pq));
	s->cfg = world_cfg(cfg->depth, cfg->depth);
	s->memory = aligned_alloc(STAGE_SIZE, STAGE_SIZE);
	CHECK(s->memory);
	memset(s->memory, 0, STAGE_SIZE);
	MUST(rpma_mr_reg(s->world.peer, s->memory, STAGE_SIZE,
			 RPMA_MR_USAGE_SEND | RPMA_MR_USAGE_RECV |
				 RPMA_MR_USAGE_WRITE_SRC |
				 RPMA_MR_USAGE_WRITE_DST,
			 &s->mr));
	s->remote = world_remote_of(s->mr);
}

void stage_open_futures(struct stage *s, enum rpma_rt_mode mode, uint32_t depth,
			uint32_t futures)
{
	const struct stage_cfg cfg = {
		.pollers = 1, .mode = mode, .depth = depth};

	stage_open(s, &cfg);
	if (mode == RPMA_RT_MODE_MANUAL)
		MUST(rpma_rt_poller_attach(s->world.rt, 0));
	s->cfg->futures = futures;
}

void stage_close(struct stage *s)
{
	struct rpma_rt_completion item;

	MUST(rpma_rt_stop(s->world.rt));
	CHECK(rpma_rt_queue_poll(s->aq, &item, 1) == RPMA_RT_E_CLOSED);
	CHECK(rpma_rt_queue_poll(s->pq, &item, 1) == RPMA_RT_E_CLOSED);
	MUST(rpma_rt_queue_delete(&s->aq));
	MUST(rpma_rt_queue_delete(&s->pq));
	MUST(rpma_mr_remote_delete(&s->remote));
	MUST(rpma_mr_dereg(&s->mr));
	free(s->memory);
	free(s->cfg);
	world_close(&s->world);
}

void stage_register_all(struct stage *s)
{
	MUST(rpma_mr_remote_delete(&s->remote));
	MUST(rpma_mr_dereg(&s->mr));
	MUST(rpma_mr_reg(
		s->world.peer, s->memory, STAGE_SIZE,
		RPMA_MR_USAGE_SEND | RPMA_MR_USAGE_RECV |
			RPMA_MR_USAGE_READ_SRC | RPMA_MR_USAGE_READ_DST |
			RPMA_MR_USAGE_WRITE_SRC | RPMA_MR_USAGE_WRITE_DST |
			RPMA_MR_USAGE_FLUSH_TYPE_VISIBILITY |
			RPMA_MR_USAGE_ATOMIC,
		&s->mr));
	s->remote = world_remote_of(s->mr);
}

struct rpma_rt_conn *stage_ready(struct stage *s)
{
	return world_ready(&s->world, s->cfg, 0, s->aq);
}

struct rpma_rt_conn *stage_begin(struct stage *s)
{
	struct rpma_rt_conn *conn = stage_ready(s);

	MUST(rpma_rt_conn_connect(conn, NULL));
	return conn;
}

void stage_accept(struct stage *s, const struct world_pair *pair)
{
	world_accept(pair, s->aq, s->pq);
}

void stage_connect(struct stage *s, struct world_pair *pair)
{
	world_connect(&s->world, s->cfg, 0, s->aq, s->pq, pair);
}

void stage_disconnect(struct stage *s, struct world_pair *pair)
{
	MUST(rpma_rt_conn_close(pair->active));
	world_event(s->aq, RPMA_RT_EVENT_CLOSED);
	world_event(s->pq, RPMA_RT_EVENT_CLOSED);
	world_unref(pair);
}

struct rpma_rt_pool *stage_pool(const struct stage *s, const char *name,
				uint32_t count, uint32_t slot_size,
				uint32_t sends)
{
	struct rpma_rt_pool_cfg cfg = RPMA_RT_POOL_CFG_INIT;
	struct rpma_rt_pool *pool;

	cfg.name = name;
	cfg.count = count;
	cfg.slot_size = slot_size;
	cfg.sends = sends;
	cfg.peer = s->world.peer;
	MUST(rpma_rt_pool_new(s->world.rt, &cfg, &pool));
	return pool;
}

void stage_all_free(struct rpma_rt_pool *pool, uint32_t count)
{
	struct rpma_rt_lease *leases = calloc(count, sizeof(*leases));
	char *seen = calloc(count, 1);
	struct rpma_rt_lease none;
	uint32_t i;

	CHECK(leases && seen);
	for (i = 0; i < count; i++) {
		MUST(rpma_rt_pool_take(pool, &leases[i]));
		CHECK(leases[i].slot < count && !seen[leases[i].slot]);
		CHECK(leases[i].len == leases[0].len);
		seen[leases[i].slot] = 1;
	}
	MUST_ANSWER(RPMA_E_AGAIN, rpma_rt_pool_take(pool, &none));
	for (i = 0; i < count; i++)
		MUST(rpma_rt_lease_release(&leases[i]));
	free(leases);
	free(seen);
}

void stage_heard(struct ibv_context *ibv_ctx,
		 const struct ibv_async_event *event, void *arg)
{
	struct rpma_rt_queue **queue = arg;

	MUST(rpma_rt_queue_push(*queue, &(struct rpma_rt_completion){
						.context = event->event_type,
						.user = ibv_ctx}));
}

struct rpma_mr_remote *stage_vanished(struct stage *s)
{
	struct rpma_mr_remote *remote;
	struct rpma_mr_local *mr;

	MUST(rpma_mr_reg(s->world.peer, s->memory, STAGE_SIZE,
			 RPMA_MR_USAGE_WRITE_DST, &mr));
	remote = world_remote_of(mr);
	MUST(rpma_mr_dereg(&mr));
	return remote;
}

void stage_ping(struct stage *s, const struct world_pair *pair,
		uint64_t context)
{
	MUST(rpma_rt_recv(pair->passive, s->mr, 0, 64, context));
	MUST(rpma_rt_send(pair->active, s->mr, 64, 64, RPMA_F_COMPLETION_ALWAYS,
			  context));
	stage_completion(s->pq, context, IBV_WC_SUCCESS);
	stage_completion(s->aq, context, IBV_WC_SUCCESS);
}

struct rpma_rt_completion stage_completion(struct rpma_rt_queue *queue,
					   uint64_t context,
					   enum ibv_wc_status status)
{
	struct rpma_rt_completion item = world_next(queue);

	if (item.kind != RPMA_RT_COMPLETION || item.context != context ||
	    item.status != status) {
		fprintf(stderr,
			"expected %lu status %d, got kind %d %lu status %d\n",
			(unsigned long)context, status, item.kind,
			(unsigned long)item.context, item.status);
		abort();
	}
	return item;
}
