/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * drain.c -- connections and listeners that drain: posted work completes, and
 * the peer has received the messages; later posts are refused; then CLOSED
 * comes. Also with work requests that want a completion on error only, with
 * nothing outstanding, twice, with a close in the middle, before ESTABLISHED,
 * and with a peer that receives nothing, until the time is over.
 *
 * usage: runtime_drain [connections]
 */

#include <string.h>

#include "stage.h"

#define DEPTH	 16
#define SIZE	 8
#define MAX	 1000
#define AT_ONCE	 32
#define ALWAYS	 RPMA_F_COMPLETION_ALWAYS
#define ON_ERROR RPMA_F_COMPLETION_ON_ERROR

/* --------------------------------------------------- a connection --- */

/* Completions of the passive end's receives, then CLOSED. */
static int received_until_closed(struct rpma_rt_queue *queue,
				 enum rpma_rt_reason reason)
{
	struct rpma_rt_completion item = world_next(queue);
	int received = 0;

	while (item.kind == RPMA_RT_COMPLETION) {
		received += item.status == IBV_WC_SUCCESS;
		item = world_next(queue);
	}
	CHECK(item.kind == RPMA_RT_EVENT &&
	      item.opcode == RPMA_RT_EVENT_CLOSED && item.status == reason);
	return received;
}

static void put(struct world_pair *pair)
{
	world_unref(pair);
}

/* So many messages, each of which wants a completion or not; all arrive. */
static void drain__what_is_out_arrives(struct stage *s, int count, int flags)
{
	struct world_pair pair;
	int i;

	stage_connect(s, &pair);
	for (i = 0; i < count; i++)
		MUST(rpma_rt_recv(pair.passive, s->mr, SIZE, SIZE, 0));
	for (i = 0; i < count; i++)
		MUST(rpma_rt_send(pair.active, s->mr, 0, SIZE, flags,
				  (uint64_t)i));
	MUST(rpma_rt_conn_drain(pair.active, 0));
	MUST(rpma_rt_conn_drain(pair.active, 1)); /* twice is once */
	CHECK(rpma_rt_send(pair.active, s->mr, 0, SIZE, ALWAYS, 99) ==
	      RPMA_RT_E_CLOSED);
	CHECK(rpma_rt_recv(pair.active, s->mr, 0, SIZE, 99) ==
	      RPMA_RT_E_CLOSED);
	for (i = 0; i < count && flags == ALWAYS; i++)
		stage_completion(s->aq, (uint64_t)i, IBV_WC_SUCCESS);
	CHECK(world_event(s->aq, RPMA_RT_EVENT_CLOSED).status ==
	      RPMA_RT_REASON_LOCAL);
	CHECK(received_until_closed(s->pq, RPMA_RT_REASON_DISCONNECTED) ==
	      count);
	put(&pair);
}

/* The peer posts no receive: the message waits until the time is over, or until
 * the close. */
static void drain__peer_receives_nothing(struct stage *s, bool is_closed)
{
	struct world_pair pair;
	uint64_t begin = world_now_ms();

	stage_connect(s, &pair);
	MUST(rpma_rt_send(pair.active, s->mr, 0, SIZE, ALWAYS, 7));
	MUST(rpma_rt_conn_drain(pair.active, is_closed ? 0 : 50));
	if (is_closed)
		MUST(rpma_rt_conn_close(pair.active));
	stage_completion(s->aq, 7, IBV_WC_WR_FLUSH_ERR);
	CHECK(world_event(s->aq, RPMA_RT_EVENT_CLOSED).status ==
	      RPMA_RT_REASON_LOCAL);
	CHECK(is_closed || world_now_ms() - begin >= 50);
	world_event(s->pq, RPMA_RT_EVENT_CLOSED);
	put(&pair);
}

static void drain__before_established_CLOSES(struct stage *s)
{
	struct rpma_rt_conn *conn;

	MUST(world_conn_new(s->world.rt, s->world.peer, s->world.addr, "1",
			    s->cfg, 0, s->aq, NULL, &conn));
	world_event(s->aq, RPMA_RT_EVENT_READY);
	CHECK(rpma_rt_conn_drain(conn, 600001) == RPMA_E_INVAL);
	MUST(rpma_rt_conn_drain(conn, 600000));
	CHECK(world_event(s->aq, RPMA_RT_EVENT_CLOSED).status ==
	      RPMA_RT_REASON_LOCAL);
	MUST(rpma_rt_conn_drain(conn, 0)); /* and after the end: no effect */
	MUST(rpma_rt_conn_unref(&conn));
}

/* ---------------------------------------------------------- a listener --- */

struct served {
	struct stage stage;
	int count; /* of connections */
	int begun;
	int established; /* ends */
	int closed;	 /* likewise */
	int replies;	 /* taken by posts of the server */
	int arrived;	 /* at the clients */
	bool is_ended;	 /* LISTENER_CLOSED came */
};

static void begin_one(struct served *v)
{
	struct stage *s = &v->stage;
	struct rpma_rt_conn *conn;

	MUST(world_conn_new(s->world.rt, s->world.peer, s->world.addr,
			    s->world.port, s->cfg, RPMA_RT_POLLER_ANY, s->aq,
			    NULL, &conn));
	v->begun++;
}

/* Runs the client end: asks as soon as allowed, and again after each reply. */
static void on_active(struct served *v, const struct rpma_rt_completion *item)
{
	struct rpma_rt_conn *conn = rpma_rt_completion_conn(item);
	struct stage *s = &v->stage;
	int i;

	switch (rpma_rt_completion_event(item)) {
	case RPMA_RT_EVENT_READY:
		for (i = 0; i < DEPTH; i++)
			MUST(rpma_rt_recv(conn, s->mr, 64, SIZE, 0));
		MUST(rpma_rt_conn_connect(conn, NULL));
		break;
	case RPMA_RT_EVENT_ESTABLISHED:
		v->established++;
		for (i = 0; i < DEPTH / 2; i++)
			if (rpma_rt_send(conn, s->mr, 0, SIZE, ON_ERROR, 0))
				break;
		break;
	case RPMA_RT_EVENT_CLOSED:
		v->closed++;
		MUST(rpma_rt_conn_unref(&conn));
		break;
	default:
		v->arrived += rpma_rt_completion_is_received(item);
	}
}

/* The server's end: every second reply wants a completion on error only. */
static void on_passive(struct served *v, const struct rpma_rt_completion *item)
{
	struct rpma_rt_conn *conn = rpma_rt_completion_conn(item);
	struct stage *s = &v->stage;
	int i;

	switch (rpma_rt_completion_event(item)) {
	case RPMA_RT_EVENT_REQUEST:
		MUST(rpma_rt_conn_set_user(conn, conn));
		for (i = 0; i < DEPTH; i++)
			MUST(rpma_rt_recv(conn, s->mr, 128, SIZE, 1));
		MUST(rpma_rt_conn_accept(conn, NULL));
		break;
	case RPMA_RT_EVENT_ESTABLISHED:
		v->established++;
		break;
	case RPMA_RT_EVENT_CLOSED:
		CHECK(item->status == RPMA_RT_REASON_LOCAL);
		v->closed++;
		MUST(rpma_rt_conn_unref(&conn));
		break;
	case RPMA_RT_EVENT_LISTENER_CLOSED:
		v->is_ended = true;
		break;
	default:
		if (item->context == 2) /* the send of a reply: never fails */
			CHECK(rpma_rt_completion_is_ok(item));
		if (!rpma_rt_completion_is_received(item))
			break;
		v->replies += rpma_rt_send(item->user, s->mr, 192, SIZE,
					   v->replies % 2 ? ALWAYS : ON_ERROR,
					   2) == 0;
	}
}

/* Takes pending items of both ends. */
static void step(struct served *v)
{
	struct rpma_rt_completion items[32];
	int count;
	int i;

	count = rpma_rt_queue_poll(v->stage.pq, items, 32);
	for (i = 0; i < count; i++)
		on_passive(v, &items[i]);
	count = rpma_rt_queue_wait(v->stage.aq, items, 32, 1);
	for (i = 0; i < count; i++)
		on_active(v, &items[i]);
}

static void drain__every_reply_that_was_posted_arrives(int count)
{
	static const struct stage_cfg cfg = {
		.pollers = 2, .mode = RPMA_RT_MODE_ADAPTIVE, .depth = DEPTH};
	struct served v = {.count = count};
	struct rpma_rt_listener *listener;

	stage_open(&v.stage, &cfg);
	listener = world_listen(&v.stage.world, v.stage.cfg, v.stage.pq);
	/* a slow device may have brought no message yet */
	while (v.established < 2 * v.count || v.replies == 0) {
		if (v.begun < v.count &&
		    2 * v.begun < v.established + 2 * AT_ONCE)
			begin_one(&v);
		else
			step(&v);
	}
	/* in the middle: some messages are not even taken */
	MUST(rpma_rt_listener_drain(listener, 0));
	MUST(rpma_rt_listener_drain(listener, 0));
	while (v.closed < 2 * v.count || !v.is_ended)
		step(&v);
	MUST(rpma_rt_listener_delete(&listener));
	printf("%d connections, %d replies posted, %d arrived\n", v.count,
	       v.replies, v.arrived);
	CHECK(v.replies == v.arrived);
	CHECK(v.replies > 0);
	stage_close(&v.stage);
}

int main(int argc, char **argv)
{
	static const struct stage_cfg cfg = {
		.pollers = 1, .mode = RPMA_RT_MODE_ADAPTIVE, .depth = DEPTH};
	int count = argc > 1 ? atoi(argv[1]) : 100;
	struct stage s;
	int i;

	CHECK(count > 0 && count <= MAX);
	stage_open(&s, &cfg);
	for (i = 0; i <= DEPTH; i++) {
		drain__what_is_out_arrives(&s, i, ALWAYS);
		drain__what_is_out_arrives(&s, i, ON_ERROR);
	}
	drain__peer_receives_nothing(&s, true);
	drain__peer_receives_nothing(&s, false);
	drain__before_established_CLOSES(&s);
	stage_close(&s);
	drain__every_reply_that_was_posted_arrives(count);
	printf("ok\n");
	return 0;
}
