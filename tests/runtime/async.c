/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * async.c -- asynchronous events of the devices of a program. A handler pushes
 * the events to a queue: each event once, in order. Or the program reads the
 * events and feeds the events in: then no other thread reads, an event of a
 * connection ends the connection, and the program is told which events are for
 * the program.
 */

#include <poll.h>
#include <stdatomic.h>

#include "loop.h"
#include "stage.h"

#define PORTS 200

static const struct loop *loop;

/* Takes the last items of both ends, with the reason. */
static void both_closed(struct stage *s, struct world_pair *pair,
			enum rpma_rt_reason reason)
{
	world_closed(s->aq, &pair->active, (int)reason);
	world_closed(s->pq, &pair->passive, (int)reason);
}

/* -------------------------------------------------------- by a handler --- */

static struct rpma_rt_queue *news; /* events of the handler */

static void expect_heard(const struct stage *s, enum ibv_event_type type)
{
	struct rpma_rt_completion item = world_next(news);

	CHECK(item.kind == RPMA_RT_MESSAGE);
	CHECK(item.context == type);
	CHECK(item.user == s->world.ibv_ctx);
}

/* A port comes and goes faster than any thread reads: no connection dies, and
 * the last event has the last state of the port. */
static void port__heard_in_order(struct stage *s)
{
	struct ibv_context *ctx = s->world.ibv_ctx;
	struct world_pair pair;
	int i;

	stage_connect(s, &pair);
	for (i = 0; i < PORTS; i++) {
		CHECK(loop->raise(IBV_EVENT_PORT_ERR, ctx) == 0);
		CHECK(loop->raise(IBV_EVENT_GID_CHANGE, ctx) == 0);
		CHECK(loop->raise(IBV_EVENT_PORT_ACTIVE, ctx) == 0);
		stage_ping(s, &pair, 1);
	}
	for (i = 0; i < PORTS; i++) {
		expect_heard(s, IBV_EVENT_PORT_ERR);
		expect_heard(s, IBV_EVENT_GID_CHANGE);
		expect_heard(s, IBV_EVENT_PORT_ACTIVE);
	}
	stage_disconnect(s, &pair);
}

static void by_handler(void)
{
	static const struct stage_cfg cfg = {.pollers = 2,
					     .mode = RPMA_RT_MODE_EVENT,
					     .depth = 8,
					     .async_fn = stage_heard,
					     .async_arg = &news};
	struct stage s;

	stage_open(&s, &cfg);
	MUST(rpma_rt_queue_new(s.world.rt, NULL, &news));
	port__heard_in_order(&s);
	/* after the stop no handler is inside a push */
	MUST(rpma_rt_stop(s.world.rt));
	MUST(rpma_rt_queue_delete(&news));
	stage_close(&s);
}

/* ------------------------------------------------------------------ fed --- */

/* Reads the next event as the program, and feeds the event in; returns the
 * result of the runtime. */
static int feed_next(struct stage *s, enum ibv_event_type type)
{
	struct ibv_context *ctx = s->world.ibv_ctx;
	struct pollfd fd = {.fd = ctx->async_fd, .events = POLLIN};
	struct ibv_async_event event;
	int ret;

	CHECK(poll(&fd, 1, WORLD_PATIENCE_MS) == 1);
	MUST(ibv_get_async_event(ctx, &event));
	CHECK(event.event_type == type);
	ret = rpma_rt_feed_async_event(s->world.rt, ctx, &event);
	ibv_ack_async_event(&event);
	return ret;
}

static void fed(void)
{
	static const struct stage_cfg cfg = {.pollers = 2,
					     .mode = RPMA_RT_MODE_EVENT,
					     .depth = 8,
					     .async_fed = true};
	struct world_pair other;
	struct world_pair pair;
	struct ibv_context *ctx;
	struct stage s;

	stage_open(&s, &cfg);
	ctx = s.world.ibv_ctx;
	stage_connect(&s, &other);
	stage_connect(&s, &pair);
	/* no other thread has read the event: the program finds the event */
	CHECK(loop->raise(IBV_EVENT_PORT_ERR, ctx) == 0);
	stage_ping(&s, &pair, 1);
	CHECK(feed_next(&s, IBV_EVENT_PORT_ERR) == RPMA_E_UNKNOWN);
	stage_ping(&s, &pair, 2);
	CHECK(loop->raise(IBV_EVENT_QP_FATAL, loop_posted()) == 0);
	stage_ping(&s, &other, 3); /* not before the event is fed in */
	CHECK(feed_next(&s, IBV_EVENT_QP_FATAL) == 0);
	world_closed(s.aq, &pair.active, WORLD_ANY_REASON);
	world_closed(s.pq, &pair.passive, WORLD_ANY_REASON);
	stage_ping(&s, &other, 4);
	CHECK(loop->raise(IBV_EVENT_DEVICE_FATAL, ctx) == 0);
	CHECK(feed_next(&s, IBV_EVENT_DEVICE_FATAL) == 0);
	both_closed(&s, &other, RPMA_RT_REASON_DEVICE);
	stage_close(&s);
}

int main(void)
{
	loop = loop_get();
	if (loop == NULL) {
		printf("only the loopback device raises events at will\n");
		return 77;
	}
	loop->set_hook(loop_note_post, NULL);
	by_handler();
	fed();
	loop->set_hook(NULL, NULL);
	printf("ok\n");
	return 0;
}
