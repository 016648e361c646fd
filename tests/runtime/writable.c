/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * writable.c -- each refusal of a post is followed by a single WRITABLE of its
 * side, no more and no less. Two posters, one per side, post until a refusal
 * and then wait for WRITABLE; the consumers of their queues, whose lanes are
 * short, take nothing until a poster is refused for a full lane. So credits run
 * out, lanes are full, spills reach their limit, over and over, and after a
 * missing WRITABLE a poster waits for ever.
 *
 * usage: runtime_writable [messages]
 */

#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <string.h>
#include <time.h>

#include "stage.h"

#define MESSAGES 3000
#define DEPTH	 32
#define LANE	 64
#define LIMIT	 4
#define TAKE	 8

/* a poster to a side of an end, and the queue of its completions */
struct poster {
	struct stage *stage;
	struct rpma_rt_conn *conn;
	enum rpma_rt_side side;
	struct rpma_rt_queue *queue;
	struct rpma_rt_route *route;
	uint32_t count;
	pthread_t thread;
	pthread_t consumer;

	/* the poster's */
	uint32_t by_credit;
	uint32_t by_backlog;
	_Atomic uint32_t stands; /* why: an enum rpma_rt_again; NONE: posting
				  * goes on */
	_Atomic bool done;

	/* posted by the thread that takes a WRITABLE */
	sem_t told;
	uint32_t writable;
};

struct scene {
	struct stage stage;
	struct world_pair pair;
	struct poster send;
	struct poster recv;
};

static int post(struct poster *p, uint32_t seq)
{
	const struct rpma_rt_wr send = {.op = RPMA_RT_OP_SEND,
					.flags = RPMA_F_COMPLETION_ALWAYS,
					.context = seq,
					.route = p->route,
					.local = p->stage->mr,
					.local_offset = 64,
					.len = 8};
	const struct rpma_rt_recv_wr recv = {.context = seq,
					     .route = p->route,
					     .dst = p->stage->mr,
					     .len = 64};

	return p->side == RPMA_RT_SEND_SIDE ? world_post_send(p->conn, &send)
					    : world_post_recv(p->conn, &recv);
}

static void stand(struct poster *p)
{
	enum rpma_rt_again reason = rpma_rt_again_reason();
	struct timespec until;
	int ret;

	CHECK(reason == RPMA_RT_AGAIN_CREDIT ||
	      reason == RPMA_RT_AGAIN_BACKLOG);
	if (reason == RPMA_RT_AGAIN_CREDIT)
		p->by_credit++;
	else
		p->by_backlog++;
	/* relaxed: the consumer may see the store a little later */
	atomic_store_explicit(&p->stands, reason, memory_order_relaxed);
	clock_gettime(CLOCK_REALTIME, &until);
	until.tv_sec += WORLD_PATIENCE_MS / 1000;
	ret = sem_timedwait(&p->told, &until);
	if (ret)
		fprintf(stderr, "side %d: refused %u times, told %u times\n",
			p->side, p->by_credit + p->by_backlog, p->writable);
	CHECK(ret == 0);
	/* relaxed: likewise */
	atomic_store_explicit(&p->stands, RPMA_RT_AGAIN_NONE,
			      memory_order_relaxed);
}

static void *post_main(void *arg)
{
	struct poster *p = arg;
	uint32_t seq = 0;
	int ret;

	while (seq < p->count) {
		ret = post(p, seq);
		if (ret == RPMA_E_AGAIN) {
			stand(p);
			continue;
		}
		MUST(ret);
		seq++;
	}
	/* relaxed: as in stand() */
	atomic_store_explicit(&p->done, true, memory_order_relaxed);
	return NULL;
}

static bool stands_for(struct poster *p, enum rpma_rt_again reason)
{
	/* relaxed: see stand() */
	return atomic_load_explicit(&p->stands, memory_order_relaxed) == reason;
}

/* Returns true if room should be made. */
static bool is_wanted(struct poster *p)
{
	/* relaxed: as above */
	return stands_for(p, RPMA_RT_AGAIN_BACKLOG) ||
	       atomic_load_explicit(&p->done, memory_order_relaxed);
}

/* All in the order in which they were posted, through ring and spill. */
static void *take_main(void *arg)
{
	struct rpma_rt_completion items[TAKE];
	struct poster *p = arg;
	uint32_t next = 0;
	int got;
	int i;

	while (next < p->count) {
		got = is_wanted(p) ? rpma_rt_queue_poll(p->queue, items, TAKE)
				   : 0;
		CHECK(got >= 0);
		if (got == 0) {
			sched_yield();
			continue;
		}
		for (i = 0; i < got; i++) {
			CHECK(items[i].kind == RPMA_RT_COMPLETION);
			CHECK(items[i].status == IBV_WC_SUCCESS);
			CHECK(items[i].context == next++);
		}
	}
	return NULL;
}

/*
 * Checks the queue of the connection: only WRITABLE of the side until the end.
 */
static void *tell_main(void *arg)
{
	struct rpma_rt_completion item;
	struct poster *p = arg;
	struct rpma_rt_queue *own =
		p->side == RPMA_RT_SEND_SIDE ? p->stage->aq : p->stage->pq;

	for (;;) {
		item = world_next(own);
		if (item.kind == RPMA_RT_EVENT)
			break;
		CHECK(item.kind == RPMA_RT_WRITABLE);
		CHECK(item.opcode == p->side);
		CHECK(item.context == (uintptr_t)p->conn);
		p->writable++;
		sem_post(&p->told);
	}
	CHECK(item.opcode == RPMA_RT_EVENT_CLOSED);
	return NULL;
}

static void poster_open(struct poster *p, struct stage *stage,
			struct rpma_rt_conn *conn, enum rpma_rt_side side,
			uint32_t count)
{
	struct rpma_rt_queue_cfg cfg = RPMA_RT_QUEUE_CFG_INIT;

	*p = (struct poster){
		.stage = stage, .conn = conn, .side = side, .count = count};
	CHECK(sem_init(&p->told, 0, 0) == 0);
	cfg.lane_size = LANE;
	cfg.backlog_limit = LIMIT;
	MUST(rpma_rt_queue_new(stage->world.rt, &cfg, &p->queue));
	MUST(rpma_rt_route_open(conn, side, p->queue, &p->route));
}

static void poster_start(struct poster *p)
{
	CHECK(pthread_create(&p->thread, NULL, post_main, p) == 0);
	CHECK(pthread_create(&p->consumer, NULL, take_main, p) == 0);
}

/* Closes a poster that has got all WRITABLEs: as many as refusals. */
static void poster_close(struct poster *p)
{
	world_event(p->queue, RPMA_RT_EVENT_ROUTE_CLOSED);
	MUST(rpma_rt_queue_delete(&p->queue));
	printf("side %d: refused for credit %u, for backlog %u times, told %u "
	       "times\n",
	       p->side, p->by_credit, p->by_backlog, p->writable);
	CHECK(p->writable == p->by_credit + p->by_backlog);
	CHECK(sem_destroy(&p->told) == 0);
}

static void refused__told_once(enum rpma_rt_mode mode, uint32_t count)
{
	const struct stage_cfg cfg = {
		.pollers = 1, .mode = mode, .depth = DEPTH};
	static struct scene s;
	pthread_t tellers[2];

	stage_open(&s.stage, &cfg);
	stage_connect(&s.stage, &s.pair);
	poster_open(&s.send, &s.stage, s.pair.active, RPMA_RT_SEND_SIDE, count);
	poster_open(&s.recv, &s.stage, s.pair.passive, RPMA_RT_RECV_SIDE,
		    count);
	CHECK(pthread_create(&tellers[0], NULL, tell_main, &s.send) == 0);
	CHECK(pthread_create(&tellers[1], NULL, tell_main, &s.recv) == 0);
	/* without a receive nothing is sent: all credits are used up */
	poster_start(&s.send);
	while (!stands_for(&s.send, RPMA_RT_AGAIN_CREDIT))
		sched_yield();
	poster_start(&s.recv);

	pthread_join(s.send.thread, NULL);
	pthread_join(s.send.consumer, NULL);
	pthread_join(s.recv.thread, NULL);
	pthread_join(s.recv.consumer, NULL);
	MUST(rpma_rt_conn_close(s.pair.active));
	pthread_join(tellers[0], NULL);
	pthread_join(tellers[1], NULL);
	CHECK(s.send.by_credit > 0);
	CHECK(s.send.by_backlog > 0 && s.recv.by_backlog > 0);
	poster_close(&s.send);
	poster_close(&s.recv);
	world_unref(&s.pair);
	stage_close(&s.stage);
}

int main(int argc, char **argv)
{
	uint32_t count = argc > 1 ? (uint32_t)atoi(argv[1]) : MESSAGES;

	refused__told_once(RPMA_RT_MODE_ADAPTIVE, count);
	refused__told_once(RPMA_RT_MODE_EVENT, count);
	return 0;
}
