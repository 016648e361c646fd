/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/* crowd.c -- connects and closes many connections; see crowd.h. */

#include "crowd.h"

#include <stdlib.h>

#include <infiniband/verbs.h>

#include "bench.h"

#define AT_ONCE 64    /* connections being made */
#define BACKLOG 32768 /* requests that wait, at most */
#define OTHERS	64    /* queue pairs that the rest of the program needs */

/* ----------------------------------------------------------- connecting --- */

struct connecting {
	struct crowd *crowd;
	struct rpma_rt_conn_cfg *cfg;
	int poller;
	uint32_t at_once;
	uint32_t begun;	      /* active ends */
	uint32_t requested;   /* passive ends */
	uint32_t established; /* both */
};

static void begin_one(struct connecting *c)
{
	struct crowd *crowd = c->crowd;
	struct world *world = crowd->world;

	MUST(world_conn_new(world->rt, world->peer, world->addr, world->port,
			    c->cfg, c->poller, crowd->queue, NULL,
			    &crowd->conns[c->begun]));
	c->begun++;
}

static void step(struct connecting *c)
{
	struct crowd *crowd = c->crowd;
	struct rpma_rt_completion item = world_next(crowd->queue);
	struct rpma_rt_conn *conn =
		(struct rpma_rt_conn *)(uintptr_t)item.context;

	CHECK(item.kind == RPMA_RT_EVENT);
	if (item.opcode == RPMA_RT_EVENT_ESTABLISHED) {
		c->established++;
		return;
	}
	CHECK(item.opcode == RPMA_RT_EVENT_READY ||
	      item.opcode == RPMA_RT_EVENT_REQUEST);
	if (item.opcode == RPMA_RT_EVENT_REQUEST) {
		crowd->conns[crowd->ends / 2 + c->requested++] = conn;
		MUST(rpma_rt_conn_accept(conn, NULL));
		return;
	}
	MUST(rpma_rt_conn_connect(conn, NULL));
}

static void connect_all(struct crowd *crowd, int poller, uint32_t at_once)
{
	struct connecting c = {.crowd = crowd,
			       .cfg = world_cfg(1, 1),
			       .poller = poller,
			       .at_once = at_once};
	struct world *world = crowd->world;
	struct rpma_rt_listener *listener;
	uint16_t port;

	MUST(world_listen_at(world->rt, world->peer, world->addr, "0",
			     at_once < BACKLOG ? (int)at_once : BACKLOG, c.cfg,
			     poller, crowd->queue, NULL, &listener));
	MUST(rpma_rt_listener_get_port(listener, &port));
	snprintf(world->port, sizeof(world->port), "%u", port);
	while (c.established < crowd->ends) {
		if (c.begun < crowd->ends / 2 &&
		    2 * c.begun < c.established + 2 * at_once)
			begin_one(&c);
		else
			step(&c);
	}
	world_unlisten(&listener, crowd->queue);
	free(c.cfg);
}

static void check_room(const struct crowd *crowd)
{
	struct ibv_device_attr attr;
	char why[96];

	CHECK(ibv_query_device(crowd->world->ibv_ctx, &attr) == 0);
	if (crowd->ends + OTHERS <= (uint32_t)attr.max_qp)
		return;
	snprintf(why, sizeof(why),
		 "the device has %d queue pairs, %u connections need %u",
		 attr.max_qp, crowd->ends, crowd->ends + OTHERS);
	bench_skip(why);
}

void crowd_open_at_once(struct crowd *crowd, struct world *world, int poller,
			uint32_t ends,
			const struct rpma_rt_queue_cfg *queue_cfg,
			uint32_t at_once)
{
	*crowd = (struct crowd){.world = world, .ends = ends / 2 * 2};
	check_room(crowd);
	MUST(rpma_rt_queue_new(world->rt, queue_cfg, &crowd->queue));
	crowd->conns = calloc(crowd->ends + 1, sizeof(struct rpma_rt_conn *));
	CHECK(crowd->conns != NULL);
	connect_all(crowd, poller, at_once);
}

void crowd_open(struct crowd *crowd, struct world *world, int poller,
		uint32_t ends, const struct rpma_rt_queue_cfg *queue_cfg)
{
	crowd_open_at_once(crowd, world, poller, ends, queue_cfg, AT_ONCE);
}

/* -------------------------------------------------------------- closing --- */

/* The peers of those that we close follow by themselves. */
static void *close_main(void *arg)
{
	struct crowd *crowd = arg;
	struct rpma_rt_completion item;
	struct rpma_rt_conn *conn;
	uint32_t i;

	for (i = 0; i < crowd->ends / 2; i++)
		MUST(rpma_rt_conn_close(crowd->conns[i]));
	for (i = 0; i < crowd->ends; i++) {
		item = world_event(crowd->queue, RPMA_RT_EVENT_CLOSED);
		conn = (struct rpma_rt_conn *)(uintptr_t)item.context;
		MUST(rpma_rt_conn_unref(&conn));
		/* relaxed: only the count matters */
		atomic_fetch_add_explicit(&crowd->closed, 1,
					  memory_order_relaxed);
	}
	return NULL;
}

void crowd_close(struct crowd *crowd)
{
	CHECK(pthread_create(&crowd->thread, NULL, close_main, crowd) == 0);
}

bool crowd_is_closed(const struct crowd *crowd)
{
	/* relaxed: as above */
	return atomic_load_explicit(&crowd->closed, memory_order_relaxed) ==
	       crowd->ends;
}

void crowd_end(struct crowd *crowd)
{
	pthread_join(crowd->thread, NULL);
	MUST(rpma_rt_queue_delete(&crowd->queue));
	free(crowd->conns);
}
