/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * single.c -- one thread posts sends until a post is refused with CLOSED, while
 * another thread closes the connection. Each accepted work request is reported
 * exactly once, in order, CLOSED last; over and over, so that closing meets the
 * poster everywhere.
 *
 * usage: runtime_single [connections]
 */

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <string.h>

#include "stage.h"

#define DEPTH	 64
#define MSG_SIZE 32

struct poster {
	struct stage *stage;
	struct rpma_rt_conn *conn;
	_Atomic uint32_t taken; /* posted so far */
};

static void *post_until_closed(void *arg)
{
	struct poster *p = arg;
	uint32_t next = 0;
	int ret;

	for (;;) {
		ret = rpma_rt_send(p->conn, p->stage->mr, 0, MSG_SIZE,
				   RPMA_F_COMPLETION_ALWAYS, next);
		if (ret == RPMA_RT_E_CLOSED)
			return NULL;
		CHECK(ret == 0 || ret == RPMA_E_AGAIN);
		if (ret)
			sched_yield();
		else
			/* relaxed: a count; the join orders the last one */
			atomic_store_explicit(&p->taken, ++next,
					      memory_order_relaxed);
	}
}

/* Everything of the active end up to CLOSED: sends in order, each once. */
static uint32_t collect(struct stage *s)
{
	struct rpma_rt_completion item;
	uint32_t next = 0;

	for (;;) {
		item = world_next(s->aq);
		if (item.kind == RPMA_RT_WRITABLE)
			continue;
		if (item.kind == RPMA_RT_EVENT)
			break;
		CHECK(item.context == next);
		next++;
	}
	CHECK(item.opcode == RPMA_RT_EVENT_CLOSED);
	return next;
}

static void close__meets_the_poster(struct stage *s, uint32_t after)
{
	struct poster p = {.stage = s};
	struct world_pair pair;
	pthread_t thread;
	uint32_t i;

	stage_connect(s, &pair);
	for (i = 0; i < DEPTH; i++)
		MUST(rpma_rt_recv(pair.passive, s->mr, MSG_SIZE, MSG_SIZE, i));
	p.conn = pair.active;
	CHECK(pthread_create(&thread, NULL, post_until_closed, &p) == 0);
	/* relaxed: a count */
	while (atomic_load_explicit(&p.taken, memory_order_relaxed) < after)
		sched_yield();
	MUST(rpma_rt_conn_close(pair.active));
	CHECK(pthread_join(thread, NULL) == 0);
	/* relaxed: the join ordered it */
	CHECK(collect(s) ==
	      atomic_load_explicit(&p.taken, memory_order_relaxed));
	world_until_closed(s->pq);
	world_unref(&pair);
}

int main(int argc, char **argv)
{
	struct stage_cfg cfg = {.pollers = 1, .depth = DEPTH};
	uint32_t conns = argc > 1 ? (uint32_t)atoi(argv[1]) : 30;
	struct stage s;
	uint32_t i;

	stage_open(&s, &cfg);
	for (i = 0; i < conns; i++)
		close__meets_the_poster(&s, i % DEPTH);
	stage_close(&s);
	printf("ok\n");
	return 0;
}
