/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * close.c -- the end of a connection, from every state and for every cause
 * that a program can bring about: each work request outstanding gets exactly
 * one completion, then CLOSED comes, once, with the reason, and nothing after.
 */

#include <string.h>

#include "stage.h"

#define DEPTH	 64
#define MSG_SIZE 32

/* says which one runs, so that a hang or an abort names it */
#define STEP(call)                                                            \
	do {                                                                  \
		uint64_t begin = world_now_ms();                              \
		printf("%s", #call);                                          \
		fflush(stdout);                                               \
		call;                                                         \
		printf(" %lu ms\n", (unsigned long)(world_now_ms() - begin)); \
	} while (0)

static void set_up(struct stage *s, int pollers)
{
	const struct stage_cfg cfg = {.pollers = pollers,
				      .mode = RPMA_RT_MODE_ADAPTIVE,
				      .depth = DEPTH};

	stage_open(s, &cfg);
}

/* Nothing outstanding comes but what was posted, each once, then CLOSED. */
static void collect(struct rpma_rt_queue *queue, struct rpma_rt_conn **conn,
		    uint32_t sends, uint32_t recvs, enum rpma_rt_reason reason)
{
	uint8_t seen[2][DEPTH] = {{0}};
	struct rpma_rt_completion item;
	uint32_t left = sends + recvs;
	uint32_t seq;
	int side;

	while (left > 0) {
		item = world_next(queue);
		CHECK(item.kind == RPMA_RT_COMPLETION);
		CHECK(item.status != IBV_WC_SUCCESS);
		side = item.opcode == IBV_WC_RECV;
		seq = (uint32_t)item.context;
		CHECK(seq < (side ? recvs : sends));
		CHECK(!seen[side][seq]);
		seen[side][seq] = 1;
		left--;
	}
	world_closed(queue, conn, reason);
}

static void post_recvs(struct stage *s, struct rpma_rt_conn *conn, uint32_t n)
{
	uint32_t i;

	for (i = 0; i < n; i++)
		MUST(rpma_rt_recv(conn, s->mr, 0, MSG_SIZE, i));
}

static void post_sends(struct stage *s, struct rpma_rt_conn *conn, uint32_t n)
{
	uint32_t i;

	for (i = 0; i < n; i++)
		MUST(rpma_rt_send(conn, s->mr, 0, MSG_SIZE,
				  RPMA_F_COMPLETION_ALWAYS, i));
}

/* One end closes: sends that the other had no receives for, and receives that
 * nothing came for. */
static void close__established(struct stage *s, uint32_t sends, uint32_t recvs)
{
	struct world_pair pair;

	world_connect(&s->world, s->cfg, RPMA_RT_POLLER_ANY, s->aq, s->pq,
		      &pair);
	post_sends(s, pair.active, sends);
	post_recvs(s, pair.active, recvs);
	MUST(rpma_rt_conn_close(pair.active));
	CHECK(rpma_rt_send(pair.active, s->mr, 0, MSG_SIZE,
			   RPMA_F_COMPLETION_ALWAYS, 0) == RPMA_RT_E_CLOSED);
	CHECK(rpma_rt_recv(pair.active, s->mr, 0, MSG_SIZE, 0) ==
	      RPMA_RT_E_CLOSED);
	MUST(rpma_rt_conn_close(pair.active)); /* twice is no fault */
	collect(s->aq, &pair.active, sends, recvs, RPMA_RT_REASON_LOCAL);
	collect(s->pq, &pair.passive, 0, 0, RPMA_RT_REASON_DISCONNECTED);
}

/* The other end leaves while this one has work outstanding. */
static void peer_closes__established(struct stage *s, uint32_t recvs)
{
	struct rpma_rt_completion item;
	struct world_pair pair;
	uint32_t seen = 0;

	world_connect(&s->world, s->cfg, RPMA_RT_POLLER_ANY, s->aq, s->pq,
		      &pair);
	post_recvs(s, pair.active, recvs);
	MUST(rpma_rt_conn_close(pair.passive));
	world_closed(s->pq, &pair.passive, RPMA_RT_REASON_LOCAL);
	for (;;) {
		item = world_next(s->aq);
		if (item.kind == RPMA_RT_EVENT)
			break;
		CHECK(item.status != IBV_WC_SUCCESS);
		CHECK(item.context == seen++); /* in order */
	}
	CHECK(seen == recvs && item.opcode == RPMA_RT_EVENT_CLOSED);
	CHECK(item.status == RPMA_RT_REASON_DISCONNECTED);
	MUST(rpma_rt_conn_unref(&pair.active));
}

/* Begins a connection to a port where nobody listens. */
static struct rpma_rt_conn *ready_to_nobody(struct stage *s)
{
	strcpy(s->world.port, "9");
	return stage_ready(s);
}

static void connect__no_listener_REJECTED(struct stage *s)
{
	struct rpma_rt_conn *conn = ready_to_nobody(s);

	post_recvs(s, conn, DEPTH);
	MUST(rpma_rt_conn_connect(conn, NULL));
	collect(s->aq, &conn, 0, DEPTH, RPMA_RT_REASON_REJECTED);
}

static void close__before_anything(struct stage *s)
{
	struct rpma_rt_conn *conn;
	struct rpma_rt_completion item;

	MUST(world_conn_new(s->world.rt, s->world.peer, s->world.addr, "9",
			    s->cfg, 0, s->aq, NULL, &conn));
	MUST(rpma_rt_conn_close(conn));
	item = world_next(s->aq);
	if (item.opcode == RPMA_RT_EVENT_READY) /* it was faster */
		item = world_next(s->aq);
	CHECK(item.opcode == RPMA_RT_EVENT_CLOSED &&
	      item.status == RPMA_RT_REASON_LOCAL);
	MUST(rpma_rt_conn_unref(&conn));
}

static void close__ready_with_receives(struct stage *s)
{
	struct rpma_rt_conn *conn = ready_to_nobody(s);

	post_recvs(s, conn, DEPTH);
	CHECK(rpma_rt_send(conn, s->mr, 0, MSG_SIZE, RPMA_F_COMPLETION_ALWAYS,
			   0) == RPMA_E_AGAIN);
	CHECK(rpma_rt_again_reason() == RPMA_RT_AGAIN_NOT_YET);
	MUST(rpma_rt_conn_close(conn));
	collect(s->aq, &conn, 0, DEPTH, RPMA_RT_REASON_LOCAL);
}

/* The request: rejected with private data, or closed while both wait. */
static void request__refused(struct stage *s, int by_close)
{
	char word[] = "full";
	struct rpma_conn_private_data pdata = {word, sizeof(word)};
	struct rpma_rt_listener *listener;
	struct rpma_rt_conn *active;
	struct rpma_rt_conn *passive;

	listener = world_listen(&s->world, s->cfg, s->pq);
	active = stage_ready(s);
	post_recvs(s, active, 3);
	MUST(rpma_rt_conn_connect(active, NULL));
	passive = world_request(s->pq);
	post_recvs(s, passive, 5);
	if (by_close)
		MUST(rpma_rt_conn_close(passive));
	else
		MUST(rpma_rt_conn_reject(passive, &pdata));
	/* too late for that */
	CHECK(rpma_rt_conn_accept(passive, NULL) != 0);
	collect(s->pq, &passive, 0, 5, RPMA_RT_REASON_LOCAL);
	if (by_close) {
		collect(s->aq, &active, 0, 3, RPMA_RT_REASON_REJECTED);
	} else {
		struct rpma_rt_conn *held = active;

		MUST(rpma_rt_conn_ref(held));
		collect(s->aq, &active, 0, 3, RPMA_RT_REASON_REJECTED);
		MUST(rpma_rt_conn_get_private_data(held, &pdata));
		CHECK(pdata.ptr && pdata.len >= sizeof(word) &&
		      memcmp(pdata.ptr, word, sizeof(word)) == 0);
		MUST(rpma_rt_conn_unref(&held));
	}
	world_unlisten(&listener, s->pq);
}

/* The runtime stops with everything under way. */
static void stop__with_live_connections(void)
{
	struct stage s;
	struct world_pair pairs[8];
	struct rpma_rt_completion item;
	uint32_t completions = 0;
	uint32_t closed = 0;
	int i;

	set_up(&s, 2);
	for (i = 0; i < 8; i++) {
		world_connect(&s.world, s.cfg, RPMA_RT_POLLER_ANY, s.aq, s.pq,
			      &pairs[i]);
		post_sends(&s, pairs[i].active, 16);
		post_recvs(&s, pairs[i].active, 16);
	}
	MUST(rpma_rt_stop(s.world.rt));
	while (rpma_rt_queue_poll(s.aq, &item, 1) > 0) {
		if (item.kind == RPMA_RT_COMPLETION)
			completions++;
		else if (item.opcode == RPMA_RT_EVENT_CLOSED)
			closed++;
	}
	CHECK(completions == 8 * 32 && closed == 8);
	while (rpma_rt_queue_poll(s.pq, &item, 1) > 0)
		CHECK(item.opcode == RPMA_RT_EVENT_CLOSED);
	for (i = 0; i < 8; i++)
		world_unref(&pairs[i]);
	stage_close(&s);
}

int main(void)
{
	struct stage s;

	set_up(&s, 1);
	STEP(close__established(&s, 0, 0));
	STEP(close__established(&s, 0, DEPTH));
	STEP(close__established(&s, DEPTH, DEPTH));
	STEP(peer_closes__established(&s, 0));
	STEP(peer_closes__established(&s, DEPTH));
	STEP(connect__no_listener_REJECTED(&s));
	STEP(close__before_anything(&s));
	STEP(close__ready_with_receives(&s));
	STEP(request__refused(&s, 0));
	STEP(request__refused(&s, 1));
	stage_close(&s);
	STEP(stop__with_live_connections());
	printf("ok\n");
	return 0;
}
