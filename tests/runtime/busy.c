/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * busy.c -- a connection whose CQ is never empty: a function on the poller
 * answers each completion with another write. The other CQ of that poller, its
 * messages, in_use and deaths are served all the same.
 */

#include <stdatomic.h>

#include "small_cq.h"
#include "stage.h"

#define DEPTH	 48
#define UNDERWAY 40		 /* more than a poll takes */
#define ROOM	 (2 * DEPTH + 2) /* of one end, so that each has its own CQ */
#define PINGS	 100
#define VISITS	 10

struct busy {
	struct stage stage;
	struct world_pair pair;
	struct rpma_rt_route *route;
	_Atomic uint64_t writes; /* completed */
	_Atomic bool closed;
};

static int post_write(struct busy *b)
{
	struct rpma_rt_wr wr = {.op = RPMA_RT_OP_WRITE,
				.flags = RPMA_F_COMPLETION_ALWAYS,
				.route = b->route,
				.local = b->stage.mr,
				.local_offset = 256,
				.remote = b->stage.remote,
				.remote_offset = 512,
				.len = 64};

	return world_post_send(b->pair.active, &wr);
}

/* On the poller. */
static void again(const struct rpma_rt_completion *cmpl, void *arg)
{
	struct busy *b = arg;

	if (cmpl->kind == RPMA_RT_EVENT) {
		/* release: pairs with the acquire in the end */
		atomic_store_explicit(&b->closed, true, memory_order_release);
		return;
	}
	/* relaxed: a count */
	atomic_fetch_add_explicit(&b->writes, 1, memory_order_relaxed);
	if (cmpl->status == IBV_WC_SUCCESS)
		post_write(b); /* refused when it closes */
}

static uint64_t writes(struct busy *b)
{
	/* relaxed: a count */
	return atomic_load_explicit(&b->writes, memory_order_relaxed);
}

static void keep_busy(struct busy *b)
{
	int ret;
	int i;

	stage_connect(&b->stage, &b->pair);
	MUST(rpma_rt_route_open_callback(b->pair.active, RPMA_RT_SEND_SIDE,
					 again, b, &b->route));
	for (i = 0; i < UNDERWAY; i++) {
		ret = post_write(b);
		CHECK(ret == 0 || ret == RPMA_E_AGAIN);
	}
}

static void others__served(struct busy *b)
{
	uint64_t before = writes(b);
	struct world_pair other;
	int i;

	for (i = 0; i < VISITS; i++) {
		stage_connect(&b->stage, &other);
		stage_disconnect(&b->stage, &other);
	}
	stage_connect(&b->stage, &other);
	for (i = 0; i < PINGS; i++)
		stage_ping(&b->stage, &other, (uint64_t)i);
	stage_disconnect(&b->stage, &other);
	CHECK(writes(b) > before);
}

static void busy_one__closed(struct busy *b)
{
	stage_disconnect(&b->stage, &b->pair);
	/* acquire: pairs with the release in again() */
	CHECK(atomic_load_explicit(&b->closed, memory_order_acquire));
}

int main(void)
{
	static const struct stage_cfg cfg = {.pollers = 1,
					     .mode = RPMA_RT_MODE_EVENT,
					     .cq_size = ROOM,
					     .depth = DEPTH};
	static struct busy b;

	small_cq_limit(ROOM);
	stage_open(&b.stage, &cfg);
	keep_busy(&b);
	others__served(&b);
	busy_one__closed(&b);
	stage_close(&b.stage);
	printf("ok: %lu writes meanwhile\n", (unsigned long)writes(&b));
	return 0;
}
