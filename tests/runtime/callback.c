/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * callback.c -- a connection that lives in functions called by its poller: each
 * message is answered inside the function that got the message, without a
 * queue; floods refused inside, WRITABLE to the function; the connection dies
 * in the middle and every work request is reported once, ROUTE_CLOSED last. On
 * the thread of a poller, on two threads, and by hand.
 *
 * usage: runtime_callback [round trips]
 */

#include <stdatomic.h>
#include <string.h>

#include "stage.h"

#define DEPTH	 16
#define MSG_SIZE 32
#define FLOOD	 500

/* an end: the functions of its routes and their counters; used by its poller */
struct end {
	struct stage *stage;
	struct rpma_rt_conn *conn;
	struct rpma_rt_route *send;
	struct rpma_rt_route *recv;
	bool answers;	/* answers each message */
	uint32_t trips; /* messages got */
	uint32_t last;	/* closes at the number */
	uint32_t owed;	/* work requests posted and not reported */
	uint32_t recvs_due;
	uint32_t sends_due;
	uint32_t refused;
	uint32_t writable;
	int inside;
	_Atomic uint32_t closed; /* routes */
};

/* Returns false after a refusal; then WRITABLE says when to go on. The thread
 * of the test may still be inside the first post. */
static bool is_taken(struct end *e, int ret)
{
	CHECK(ret == 0 || ret == RPMA_RT_E_CLOSED || ret == RPMA_E_AGAIN);
	e->owed += ret == 0;
	e->refused += ret == RPMA_E_AGAIN;
	return ret == 0;
}

static bool post_recv(struct end *e)
{
	struct rpma_rt_recv_wr wr = {.route = e->recv,
				     .dst = e->stage->mr,
				     .len = MSG_SIZE,
				     .context = 1};

	return is_taken(e, world_post_recv(e->conn, &wr));
}

static bool post_send(struct end *e)
{
	struct rpma_rt_wr wr = {.op = RPMA_RT_OP_SEND,
				.flags = RPMA_F_COMPLETION_ALWAYS,
				.route = e->send,
				.local = e->stage->mr,
				.local_offset = MSG_SIZE,
				.len = MSG_SIZE,
				.context = 2};

	return is_taken(e, world_post_send(e->conn, &wr));
}

static void go_on(struct end *e)
{
	while (e->recvs_due > 0 && post_recv(e))
		e->recvs_due--;
	while (e->sends_due > 0 && post_send(e))
		e->sends_due--;
}

static void got_message(struct end *e)
{
	e->trips++;
	if (e->trips == e->last) {
		MUST(rpma_rt_conn_close(e->conn));
		return;
	}
	e->recvs_due++;
	e->sends_due += e->answers;
}

static void hear(const struct rpma_rt_completion *cmpl, void *arg)
{
	struct end *e = arg;

	CHECK(e->inside++ == 0);
	/* relaxed: this thread's own */
	CHECK(atomic_load_explicit(&e->closed, memory_order_relaxed) < 2);
	if (cmpl->kind == RPMA_RT_EVENT) {
		CHECK(cmpl->opcode == RPMA_RT_EVENT_ROUTE_CLOSED);
		e->inside--;
		/* release: pairs with the acquire of the waiting thread */
		atomic_fetch_add_explicit(&e->closed, 1, memory_order_release);
		return;
	}
	if (cmpl->kind == RPMA_RT_WRITABLE) {
		CHECK(cmpl->opcode <= RPMA_RT_RECV_SIDE);
		e->writable++;
	} else {
		CHECK(e->owed-- > 0);
		if (cmpl->status == IBV_WC_SUCCESS && cmpl->context == 1)
			got_message(e);
	}
	go_on(e);
	e->inside--;
}

static void end_open(struct end *e, struct stage *s, struct rpma_rt_conn *conn)
{
	uint32_t i;

	memset(e, 0, sizeof(*e));
	e->stage = s;
	e->conn = conn;
	MUST(rpma_rt_route_open_callback(conn, RPMA_RT_SEND_SIDE, hear, e,
					 &e->send));
	MUST(rpma_rt_route_open_callback(conn, RPMA_RT_RECV_SIDE, hear, e,
					 &e->recv));
	for (i = 0; i < DEPTH; i++)
		CHECK(post_recv(e));
}

/* The last items of both ends; nothing was in the queues before. */
static void ends_close(struct stage *s, struct end *a, struct end *p)
{
	world_event(s->aq, RPMA_RT_EVENT_CLOSED);
	world_event(s->pq, RPMA_RT_EVENT_CLOSED);
	/* acquire: pairs with the release in hear() */
	CHECK(atomic_load_explicit(&a->closed, memory_order_acquire) == 2);
	CHECK(atomic_load_explicit(&p->closed, memory_order_acquire) == 2);
	CHECK(a->owed == 0 && p->owed == 0);
	MUST(rpma_rt_conn_unref(&a->conn));
	MUST(rpma_rt_conn_unref(&p->conn));
}

static void ends_open(struct stage *s, struct end *a, struct end *p)
{
	struct world_pair pair;

	stage_connect(s, &pair);
	end_open(a, s, pair.active);
	end_open(p, s, pair.passive);
}

static void ping_pong__closed_inside(struct stage *s, uint32_t trips)
{
	struct end a;
	struct end p;

	ends_open(s, &a, &p);
	a.answers = true;
	p.answers = true;
	a.last = trips;
	MUST(rpma_rt_send(a.conn, s->mr, MSG_SIZE, MSG_SIZE,
			  RPMA_F_COMPLETION_ON_ERROR, 3));
	ends_close(s, &a, &p);
	CHECK(a.trips == trips);
}

/* A message starts the flood: the posts and refusals happen inside. */
static void flood__refused_inside_goes_on_by_WRITABLE(struct stage *s)
{
	struct end a;
	struct end p;

	ends_open(s, &a, &p);
	p.last = FLOOD;
	a.sends_due = FLOOD;
	MUST(rpma_rt_send(p.conn, s->mr, MSG_SIZE, MSG_SIZE,
			  RPMA_F_COMPLETION_ON_ERROR, 3));
	ends_close(s, &a, &p);
	CHECK(p.trips == FLOOD && a.sends_due == 0);
	CHECK(a.refused > 0 && a.writable > 0 && a.writable <= a.refused);
}

static void run(int pollers, uint32_t trips)
{
	struct stage_cfg cfg = {.pollers = pollers, .depth = DEPTH};
	struct stage s;

	stage_open(&s, &cfg);
	ping_pong__closed_inside(&s, trips);
	flood__refused_inside_goes_on_by_WRITABLE(&s);
	stage_close(&s);
}

/* -------------------------------------------------------------- by hand --- */

static bool turn(struct stage *s, struct rpma_rt_queue *queue,
		 struct rpma_rt_completion *item)
{
	CHECK(rpma_rt_poller_run(s->world.rt, 0, 64) >= 0);
	return rpma_rt_queue_poll(queue, item, 1) > 0;
}

/* Asserts that the next item of the queue is the event. */
static struct rpma_rt_conn *turn_until(struct stage *s,
				       struct rpma_rt_queue *queue,
				       enum rpma_rt_event event)
{
	struct rpma_rt_completion item;

	while (!turn(s, queue, &item))
		;
	CHECK(item.kind == RPMA_RT_EVENT && item.opcode == event);
	return (struct rpma_rt_conn *)(uintptr_t)item.context;
}

static void by_hand__called_inside_run_once(uint32_t trips)
{
	struct stage_cfg cfg = {
		.pollers = 1, .mode = RPMA_RT_MODE_MANUAL, .depth = DEPTH};
	struct rpma_rt_listener *listener;
	struct rpma_rt_conn *active;
	struct rpma_rt_conn *passive;
	struct stage s;
	struct end a;
	struct end p;

	stage_open(&s, &cfg);
	listener = world_listen(&s.world, s.cfg, s.pq);
	MUST(world_conn_new(s.world.rt, s.world.peer, s.world.addr,
			    s.world.port, s.cfg, 0, s.aq, NULL, &active));
	turn_until(&s, s.aq, RPMA_RT_EVENT_READY);
	MUST(rpma_rt_conn_connect(active, NULL));
	passive = turn_until(&s, s.pq, RPMA_RT_EVENT_REQUEST);
	MUST(rpma_rt_conn_accept(passive, NULL));
	turn_until(&s, s.aq, RPMA_RT_EVENT_ESTABLISHED);
	turn_until(&s, s.pq, RPMA_RT_EVENT_ESTABLISHED);
	MUST(rpma_rt_listener_delete(&listener));
	turn_until(&s, s.pq, RPMA_RT_EVENT_LISTENER_CLOSED);
	end_open(&a, &s, active);
	end_open(&p, &s, passive);
	a.answers = true;
	p.answers = true;
	a.last = trips;
	MUST(rpma_rt_send(active, s.mr, MSG_SIZE, MSG_SIZE,
			  RPMA_F_COMPLETION_ON_ERROR, 3));
	turn_until(&s, s.aq, RPMA_RT_EVENT_CLOSED);
	turn_until(&s, s.pq, RPMA_RT_EVENT_CLOSED);
	CHECK(a.owed == 0 && p.owed == 0 && a.trips == trips);
	MUST(rpma_rt_conn_unref(&active));
	MUST(rpma_rt_conn_unref(&passive));
	stage_close(&s);
}

int main(int argc, char **argv)
{
	uint32_t trips = argc > 1 ? (uint32_t)atoi(argv[1]) : 200;

	run(1, trips);
	run(2, trips);
	by_hand__called_inside_run_once(trips);
	printf("ok\n");
	return 0;
}
