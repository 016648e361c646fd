/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * misuse_wait.c -- functions of the program that make calls that wait: of a
 * route, of an SRQ, for asynchronous events. Each call is refused, with real
 * threads and nothing to wake them if one were not.
 */

#include "misuse.h"

#include <sched.h>
#include <stdatomic.h>

#include "loop.h"

/* what a function of the program calls that may not wait */
struct caller {
	struct stage *s;
	struct rpma_rt_conn *conn;
	_Atomic bool done;
};

static void call_what_waits(struct caller *c)
{
	struct rpma_rt_srq_cfg srq_cfg = RPMA_RT_SRQ_CFG_INIT;
	struct stage *s = c->s;
	struct rpma_rt *rt = s->world.rt;
	struct rpma_rt_queue *queue = s->aq;
	struct rpma_rt_completion item;
	struct rpma_rt_listener *listener;
	struct rpma_rt_route *route;
	struct rpma_rt_conn *conn;
	struct rpma_rt_srq *srq;

	srq_cfg.peer = s->world.peer;
	srq_cfg.queue = queue;
	REFUSED(RPMA_RT_E_THREAD, rpma_rt_new(NULL, &rt));
	REFUSED(RPMA_RT_E_THREAD, rpma_rt_stop(rt));
	REFUSED(RPMA_RT_E_THREAD, rpma_rt_delete(&rt));
	REFUSED(RPMA_RT_E_THREAD, rpma_rt_poller_run(rt, 0, 1));
	REFUSED(RPMA_RT_E_THREAD, rpma_rt_poller_arm(rt, 0));
	REFUSED(RPMA_RT_E_THREAD, rpma_rt_queue_wait(queue, &item, 1, -1));
	REFUSED(RPMA_RT_E_THREAD, rpma_rt_queue_new(rt, NULL, &queue));
	REFUSED(RPMA_RT_E_THREAD, rpma_rt_queue_delete(&queue));
	REFUSED(RPMA_RT_E_THREAD,
		world_listen_at(rt, s->world.peer, s->world.addr, "0", 0, NULL,
				0, queue, NULL, &listener));
	REFUSED(RPMA_RT_E_THREAD,
		world_conn_new(rt, s->world.peer, s->world.addr, "1", NULL, 0,
			       queue, NULL, &conn));
	REFUSED(RPMA_RT_E_THREAD, rpma_rt_srq_new(rt, &srq_cfg, &srq));
	REFUSED(RPMA_RT_E_THREAD, rpma_rt_conn_set_user(c->conn, NULL));
	REFUSED(RPMA_RT_E_THREAD, rpma_rt_conn_set_queue(c->conn, queue));
	REFUSED(RPMA_RT_E_THREAD,
		rpma_rt_route_open(c->conn, RPMA_RT_SEND_SIDE, queue, &route));
	CHECK(rt == s->world.rt && queue == s->aq);
	/* release: pairs with the acquire of the waiting thread */
	atomic_store_explicit(&c->done, true, memory_order_release);
}

static bool is_done(struct caller *c)
{
	/* acquire: pairs with the release in call_what_waits() */
	return atomic_load_explicit(&c->done, memory_order_acquire);
}

static void hear(const struct rpma_rt_completion *cmpl, void *arg)
{
	struct caller *c = arg;

	if (cmpl->kind == RPMA_RT_COMPLETION)
		call_what_waits(c);
}

void wait__inside_a_callback_INVAL(struct stage *s)
{
	struct caller c = {.s = s};
	struct rpma_rt_wr wr = {.op = RPMA_RT_OP_SEND};
	struct rpma_rt_route *route;
	struct world_pair pair;

	stage_connect(s, &pair);
	c.conn = pair.active;
	MUST(rpma_rt_recv(pair.passive, NULL, 0, 0, 8));
	MUST(rpma_rt_route_open_callback(pair.active, RPMA_RT_SEND_SIDE, hear,
					 &c, &route));
	wr.route = route;
	MUST(world_post_send(pair.active, &wr));
	stage_completion(s->pq, 8, IBV_WC_SUCCESS);
	while (!is_done(&c))
		sched_yield();
	stage_disconnect(s, &pair);
}

static void on_refill(struct rpma_rt_srq *srq, uint32_t room, void *arg)
{
	struct rpma_rt_srq *mine = srq;
	struct caller *c = arg;

	(void)room;
	if (is_done(c))
		return;
	REFUSED(RPMA_RT_E_THREAD, rpma_rt_srq_delete(&mine));
	CHECK(mine == srq);
	call_what_waits(c);
}

/* It is called at the beginning, with nothing posted. */
void wait__inside_a_refill_INVAL(struct stage *s)
{
	struct caller c = {.s = s};
	struct rpma_rt_srq_cfg cfg = RPMA_RT_SRQ_CFG_INIT;
	struct rpma_rt_srq *srq;
	struct world_pair pair;

	stage_connect(s, &pair);
	c.conn = pair.active;
	cfg.peer = s->world.peer;
	cfg.queue = s->aq;
	cfg.refill = on_refill;
	cfg.refill_arg = &c;
	MUST(rpma_rt_srq_new(s->world.rt, &cfg, &srq));
	while (!is_done(&c))
		sched_yield();
	MUST(rpma_rt_srq_delete(&srq));
	world_event(s->aq, RPMA_RT_EVENT_SRQ_CLOSED);
	stage_disconnect(s, &pair);
}

static void on_async_event(struct ibv_context *ibv_ctx,
			   const struct ibv_async_event *event, void *arg)
{
	struct caller *c = arg;

	(void)ibv_ctx;
	if (event->event_type == IBV_EVENT_PORT_ERR && !is_done(c))
		call_what_waits(c);
}

/* A second runtime, because a handler is part of the first configuration. */
void wait__inside_an_async_handler_INVAL(struct stage *s)
{
	struct caller c = {.s = s};
	struct rpma_rt *mine = s->world.rt;
	struct rpma_rt_queue *queues[2] = {s->aq, s->pq};
	struct rpma_rt_cfg cfg = RPMA_RT_CFG_INIT;
	struct world_pair pair;

	if (loop_get() == NULL) {
		printf("no port of this device goes down at will\n");
		return;
	}
	cfg.async_fn = on_async_event;
	cfg.async_arg = &c;
	MUST(rpma_rt_new(&cfg, &s->world.rt));
	MUST(rpma_rt_queue_new(s->world.rt, NULL, &s->aq));
	MUST(rpma_rt_queue_new(s->world.rt, NULL, &s->pq));
	stage_connect(s, &pair);
	c.conn = pair.active;
	MUST(loop_get()->raise(IBV_EVENT_PORT_ERR, s->world.ibv_ctx));
	while (!is_done(&c))
		sched_yield();
	stage_ping(s, &pair, 9);
	stage_disconnect(s, &pair);
	MUST(rpma_rt_queue_delete(&s->aq));
	MUST(rpma_rt_queue_delete(&s->pq));
	MUST(rpma_rt_delete(&s->world.rt));
	s->world.rt = mine;
	s->aq = queues[0];
	s->pq = queues[1];
}
