/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/* e2e_rt.c -- see e2e_rt.h. */

#include "e2e_rt.h"

#include <string.h>

struct e2e_rt e2e_rt;

static void make_wrs(const struct e2e *e2e)
{
	struct e2e_rt_wrs *wrs;
	uint32_t t;
	uint32_t i;

	for (t = 0; t < e2e->thread_count; t++) {
		wrs = aligned_alloc(128, sizeof(*wrs));
		CHECK(wrs);
		e2e->threads[t].wrs = wrs;
		for (i = 0; i < E2E_BATCH; i++) {
			rpma_rt_prep_send(&wrs->sends[i], e2e_rt.mr, 0,
					  E2E_SIZE, RPMA_F_COMPLETION_ON_ERROR,
					  0);
			rpma_rt_prep_recv(&wrs->recvs[i], e2e_rt.mr, 0,
					  E2E_SIZE, 0);
		}
	}
}

void e2e_rt_open(struct e2e *e2e, enum rpma_rt_mode mode)
{
	struct rpma_rt_cfg cfg = RPMA_RT_CFG_INIT;
	/* a half of the queue is unsignaled, rounded down to a power of two: at
	 * least as many sends as in the bare form */
	uint32_t least = 2 * e2e_sends_a_signal(e2e);
	uint32_t room = 2 * e2e->depth + 16;

	if (room < least)
		room = least;
	world_open(&e2e_rt.world);
	e2e_rt.is_manual = mode == RPMA_RT_MODE_MANUAL;
	cfg.mode = mode;
	cfg.pollers = e2e->thread_count;
	if (mode != RPMA_RT_MODE_MANUAL) {
		cfg.cpus = e2e->args.cpus;
		cfg.cpu_count = cfg.pollers;
	}
	MUST(rpma_rt_new(&cfg, &e2e_rt.world.rt));
	e2e_rt.memory = e2e->memory;
	MUST(rpma_mr_reg(e2e_rt.world.peer, e2e->memory, e2e->memory_size,
			 RPMA_MR_USAGE_SEND | RPMA_MR_USAGE_RECV, &e2e_rt.mr));
	make_wrs(e2e);
	MUST(rpma_rt_queue_new(e2e_rt.world.rt, NULL, &e2e_rt.setup));
	e2e_rt.cfg = (struct rpma_rt_conn_cfg)RPMA_RT_CONN_CFG_INIT;
	e2e_rt.cfg.peer = e2e_rt.world.peer;
	e2e_rt.cfg.queue = e2e_rt.setup;
	e2e_rt.cfg.sq_size = room;
	e2e_rt.cfg.rq_size = e2e_recvs(e2e);
}

void e2e_rt_queues(struct e2e *e2e)
{
	struct rpma_rt_queue *queue;
	uint32_t i;

	for (i = 0; i < e2e->thread_count; i++) {
		MUST(rpma_rt_queue_new(e2e_rt.world.rt, NULL, &queue));
		e2e->threads[i].form = queue;
	}
}

/* The queue of a thread: of shards, too. */
static void hand_over(struct e2e_end *end)
{
	MUST(rpma_rt_conn_set_queue(end->handle, end->thread->form));
	world_event(e2e_rt.setup, RPMA_RT_EVENT_ROUTE_CLOSED);
}

static void connect_pair(struct e2e_end *ends, bool (*post)(struct e2e_end *))
{
	struct world *w = &e2e_rt.world;
	struct rpma_rt_queue *setup = e2e_rt.setup;
	struct rpma_rt_listener *listener;
	struct rpma_rt_completion item;
	struct rpma_rt_conn *conn;
	uint16_t port;
	char text[8];

	e2e_rt.cfg.poller = (int32_t)ends[1].thread->number;
	MUST(rpma_rt_listen(w->rt, w->addr, "0", &e2e_rt.cfg, &listener));
	MUST(rpma_rt_listener_get_port(listener, &port));
	snprintf(text, sizeof(text), "%u", port);
	e2e_rt.cfg.poller = (int32_t)ends[0].thread->number;
	e2e_rt.cfg.user = &ends[0];
	MUST(rpma_rt_conn_new(w->rt, w->addr, text, &e2e_rt.cfg, &conn));
	ends[0].handle = conn;
	world_event(setup, RPMA_RT_EVENT_READY);
	CHECK(post(&ends[0]));
	MUST(rpma_rt_conn_connect(conn, NULL));
	item = world_event(setup, RPMA_RT_EVENT_REQUEST);
	ends[1].handle = rpma_rt_completion_conn(&item);
	MUST(rpma_rt_conn_set_user(ends[1].handle, &ends[1]));
	CHECK(post(&ends[1]));
	MUST(rpma_rt_conn_accept(ends[1].handle, NULL));
	world_event(setup, RPMA_RT_EVENT_ESTABLISHED);
	world_event(setup, RPMA_RT_EVENT_ESTABLISHED);
	world_unlisten(&listener, setup);
	hand_over(&ends[0]);
	hand_over(&ends[1]);
}

void e2e_rt_connect(struct e2e *e2e, bool (*post)(struct e2e_end *end))
{
	uint32_t i;

	/* the pollers of shards are run by nobody else */
	for (i = 0; e2e_rt.is_manual && i < e2e->thread_count; i++)
		MUST(rpma_rt_poller_attach(e2e_rt.world.rt, i));
	for (i = 0; i < e2e->conns; i++)
		connect_pair(&e2e->ends[2 * i], post);
	for (i = 0; e2e_rt.is_manual && i < e2e->thread_count; i++)
		MUST(rpma_rt_poller_release(e2e_rt.world.rt, i));
}
