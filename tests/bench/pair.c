/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/* pair.c -- see pair.h. */

#include "pair.h"

#include <stdlib.h>

/* ---------------------------------------------------------- the runtime --- */

void pair_stage_open(struct stage *s, uint32_t depth)
{
	const struct stage_cfg cfg = {
		.pollers = 2, .mode = RPMA_RT_MODE_MANUAL, .depth = depth};

	stage_open(s, &cfg);
	/* the pollers are this thread's: what it waits for runs them */
	MUST(rpma_rt_poller_attach(s->world.rt, 0));
	MUST(rpma_rt_poller_attach(s->world.rt, 1));
}

void pair_connect(struct stage *s, const struct rpma_rt_conn_cfg *cfg,
		  struct world_pair *pair)
{
	struct world *w = &s->world;
	struct rpma_rt_listener *listener;
	uint16_t port;
	char text[8];

	MUST(world_listen_at(w->rt, w->peer, w->addr, "0", 1, cfg, 1, s->pq,
			     NULL, &listener));
	MUST(rpma_rt_listener_get_port(listener, &port));
	snprintf(text, sizeof(text), "%u", port);
	MUST(world_conn_new(w->rt, w->peer, w->addr, text, cfg, 0, s->aq, NULL,
			    &pair->active));
	world_event(s->aq, RPMA_RT_EVENT_READY);
	MUST(rpma_rt_conn_connect(pair->active, NULL));
	pair->passive = (struct rpma_rt_conn *)(uintptr_t)world_event(
				s->pq, RPMA_RT_EVENT_REQUEST)
				.context;
	MUST(rpma_rt_conn_accept(pair->passive, NULL));
	world_event(s->aq, RPMA_RT_EVENT_ESTABLISHED);
	world_event(s->pq, RPMA_RT_EVENT_ESTABLISHED);
	world_unlisten(&listener, s->pq);
}

static void end_of(struct rpma_rt_queue *queue, struct rpma_rt_conn **conn)
{
	struct rpma_rt_completion item;

	do
		item = world_next(queue);
	while (item.kind != RPMA_RT_EVENT);
	CHECK(item.opcode == RPMA_RT_EVENT_CLOSED);
	MUST(rpma_rt_conn_unref(conn));
}

void pair_disconnect(struct stage *s, struct world_pair *pair)
{
	MUST(rpma_rt_conn_close(pair->active));
	end_of(s->aq, &pair->active);
	end_of(s->pq, &pair->passive);
}

/* ----------------------------------------------------------------- bare --- */

static struct rpma_conn_cfg *configure(uint32_t depth)
{
	struct rpma_conn_cfg *cfg;

	MUST(rpma_conn_cfg_new(&cfg));
	MUST(rpma_conn_cfg_set_sq_size(cfg, depth));
	MUST(rpma_conn_cfg_set_rq_size(cfg, depth));
	MUST(rpma_conn_cfg_set_cq_size(cfg, 2 * depth));
	MUST(rpma_conn_cfg_set_max_send_sge(cfg, 2));
	return cfg;
}

static void look_inside(const struct stage *s, struct pair_bare *end)
{
	enum rpma_conn_event event;
	struct rpma_cq *cq;
	struct rpma_recv_wr wr;

	MUST(rpma_conn_next_event(end->conn, &event));
	CHECK(event == RPMA_CONN_ESTABLISHED);
	MUST(rpma_conn_get_qp(end->conn, &end->qp));
	MUST(rpma_conn_get_cq(end->conn, &cq));
	MUST(rpma_cq_get_ibv_cq(cq, &end->cq));
	MUST(rpma_wr_recv(s->mr, 0, STAGE_SIZE, 0, &wr));
	end->lkey = wr.sge.lkey;
}

void pair_bare_open(const struct stage *s, uint32_t depth,
		    struct pair_bare ends[2])
{
	struct rpma_conn_cfg *cfg = configure(depth);
	const struct world *w = &s->world;
	struct rpma_conn_req *req;
	struct rpma_ep *ep;
	uint16_t port;
	char text[8];

	MUST(rpma_ep_listen_ex(w->peer, w->addr, "0", 1, NULL, NULL, &ep));
	MUST(rpma_ep_get_port(ep, &port));
	snprintf(text, sizeof(text), "%u", port);
	MUST(rpma_conn_req_new(w->peer, w->addr, text, cfg, &req));
	MUST(rpma_conn_req_connect(&req, NULL, &ends[0].conn));
	MUST(rpma_ep_next_conn_req(ep, cfg, &req));
	MUST(rpma_conn_req_connect(&req, NULL, &ends[1].conn));
	MUST(rpma_ep_shutdown(&ep));
	MUST(rpma_conn_cfg_delete(&cfg));
	look_inside(s, &ends[0]);
	look_inside(s, &ends[1]);
}

void pair_bare_close(struct pair_bare ends[2])
{
	MUST(rpma_conn_delete(&ends[0].conn));
	MUST(rpma_conn_delete(&ends[1].conn));
}
