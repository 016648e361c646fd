/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * posters.c -- many threads post at once: to both ends of a connection two
 * threads each, and the function called by its poller for messages; to the SRQ
 * shared by both ends the refill function, and a thread. In the middle one end
 * is closed. Each work request is reported once, in the named queue; every
 * buffer comes back.
 *
 * usage: runtime_posters [messages before the end [connections]]
 */

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <string.h>

#include "stage.h"

#define DEPTH	 16
#define THREADS	 2
#define BUFFERS	 24
#define MSG_SIZE 32

/* contexts of sends */
enum whose { BY_THREAD, BY_THREAD_QUIETLY, BY_FUNCTION };

struct end {
	struct scene *scene;
	struct rpma_rt_conn *conn;
	struct rpma_rt_queue *queue;
	struct rpma_rt_route *replies;
	/* the function's, on the poller */
	uint32_t owed;
	bool reply_due;
	uint32_t routes_closed;
	/* the threads' */
	pthread_t threads[THREADS];
	_Atomic uint32_t taken[2];
	/* main's */
	uint32_t heard[2];
	bool closed;
};

struct scene {
	struct stage *stage;
	struct rpma_rt_queue *queue; /* the SRQ's */
	struct rpma_rt_srq *srq;
	struct end ends[2];
	pthread_t keeper;
	_Atomic bool enough;	   /* the keeper may go */
	_Atomic uint32_t received; /* messages */
	_Atomic bool out[BUFFERS]; /* claimed by its poster */
};

/* -------------------------------------------------------------- posters --- */

static void *post_until_closed(void *arg)
{
	static const int flags[2] = {RPMA_F_COMPLETION_ALWAYS,
				     RPMA_F_COMPLETION_ON_ERROR};
	struct end *e = arg;
	uint32_t i = 0;
	int ret;

	for (;;) {
		ret = rpma_rt_send(e->conn, e->scene->stage->mr, 0, MSG_SIZE,
				   flags[i], (uint64_t)i);
		if (ret == RPMA_RT_E_CLOSED)
			return NULL;
		CHECK(ret == 0 || ret == RPMA_E_AGAIN);
		if (ret) {
			sched_yield();
			continue;
		}
		/* relaxed: a count; the join orders the last value */
		atomic_fetch_add_explicit(&e->taken[i], 1,
					  memory_order_relaxed);
		i = !i;
	}
}

static void reply(struct end *e)
{
	struct rpma_rt_wr wr = {.op = RPMA_RT_OP_SEND,
				.flags = RPMA_F_COMPLETION_ALWAYS,
				.route = e->replies,
				.local = e->scene->stage->mr,
				.len = MSG_SIZE,
				.context = BY_FUNCTION};
	int ret = world_post_send(e->conn, &wr);

	CHECK(ret == 0 || ret == RPMA_RT_E_CLOSED || ret == RPMA_E_AGAIN);
	e->owed += ret == 0;
	e->reply_due = ret == RPMA_E_AGAIN; /* WRITABLE comes */
}

/* Posts every buffer that is not posted. */
static void post_buffers(struct scene *s, struct rpma_rt_srq *srq)
{
	uint64_t i;
	int ret;

	for (i = 0; i < BUFFERS; i++) {
		/* relaxed: the queue of the buffer orders its holders */
		if (atomic_exchange_explicit(&s->out[i], true,
					     memory_order_relaxed))
			continue;
		ret = rpma_rt_srq_recv(srq, s->stage->mr,
				       (size_t)(i + 1) * MSG_SIZE, MSG_SIZE, i);
		if (ret == 0)
			continue;
		CHECK(ret == RPMA_E_AGAIN);
		/* relaxed: as above */
		atomic_store_explicit(&s->out[i], false, memory_order_relaxed);
		return;
	}
}

static void refill(struct rpma_rt_srq *srq, uint32_t room, void *arg)
{
	CHECK(room > 0 && room <= BUFFERS);
	post_buffers(arg, srq);
}

static void *keep_posting(void *arg)
{
	struct scene *s = arg;

	/* relaxed: only a hint */
	while (!atomic_load_explicit(&s->enough, memory_order_relaxed)) {
		post_buffers(s, s->srq);
		sched_yield();
	}
	return NULL;
}

/* -------------------------------------------------------------- hearing --- */

static void buffer_back(struct scene *s, uint64_t i)
{
	CHECK(i < BUFFERS);
	/* relaxed: as above */
	CHECK(atomic_exchange_explicit(&s->out[i], false,
				       memory_order_relaxed));
}

/* Handles items of both routes of an end: replies, and messages. */
static void hear(const struct rpma_rt_completion *cmpl, void *arg)
{
	struct end *e = arg;

	CHECK(e->routes_closed < 2);
	if (cmpl->kind == RPMA_RT_EVENT) {
		CHECK(cmpl->opcode == RPMA_RT_EVENT_ROUTE_CLOSED);
		e->routes_closed++;
		return;
	}
	if (cmpl->kind == RPMA_RT_COMPLETION && cmpl->opcode == IBV_WC_RECV) {
		buffer_back(e->scene, cmpl->context);
		if (cmpl->status == IBV_WC_SUCCESS) {
			e->reply_due = true;
			/* relaxed: a count */
			atomic_fetch_add_explicit(&e->scene->received, 1,
						  memory_order_relaxed);
		}
	} else if (cmpl->kind == RPMA_RT_COMPLETION) {
		CHECK(cmpl->context == BY_FUNCTION);
		CHECK(e->owed-- > 0);
	}
	if (e->reply_due)
		reply(e);
}

static void hear_in_queue(struct end *e, const struct rpma_rt_completion *item)
{
	if (item->kind == RPMA_RT_WRITABLE)
		return;
	CHECK(!e->closed);
	if (item->kind == RPMA_RT_EVENT) {
		CHECK(item->opcode == RPMA_RT_EVENT_CLOSED);
		e->closed = true;
		return;
	}
	CHECK(item->opcode == IBV_WC_SEND && item->context < BY_FUNCTION);
	CHECK(item->context == BY_THREAD || item->status != IBV_WC_SUCCESS);
	e->heard[item->context]++;
}

static void take_what_there_is(struct end *e)
{
	struct rpma_rt_completion items[32];
	int got;
	int i;

	while (!e->closed &&
	       (got = rpma_rt_queue_poll(e->queue, items, 32)) > 0) {
		for (i = 0; i < got; i++)
			hear_in_queue(e, &items[i]);
	}
}

/* ------------------------------------------------------------ the scene --- */

static void srq_open(struct scene *s)
{
	struct rpma_rt_srq_cfg cfg = RPMA_RT_SRQ_CFG_INIT;

	MUST(rpma_rt_queue_new(s->stage->world.rt, NULL, &s->queue));
	cfg.peer = s->stage->world.peer;
	cfg.queue = s->queue;
	cfg.srq_size = BUFFERS;
	cfg.limit = BUFFERS / 2;
	cfg.refill = refill;
	cfg.refill_arg = s;
	MUST(rpma_rt_srq_new(s->stage->world.rt, &cfg, &s->srq));
}

static void srq_close(struct scene *s)
{
	struct rpma_rt_completion item;
	int i;

	MUST(rpma_rt_srq_delete(&s->srq));
	do {
		item = world_next(s->queue);
		if (item.kind == RPMA_RT_COMPLETION)
			buffer_back(s, item.context);
	} while (item.kind != RPMA_RT_EVENT);
	CHECK(item.opcode == RPMA_RT_EVENT_SRQ_CLOSED);
	for (i = 0; i < BUFFERS; i++) {
		/* relaxed: no other thread has buffers any more */
		CHECK(!atomic_load_explicit(&s->out[i], memory_order_relaxed));
	}
	MUST(rpma_rt_queue_delete(&s->queue));
}

static void end_open(struct end *e, struct scene *s, struct rpma_rt_conn *conn,
		     struct rpma_rt_queue *queue)
{
	struct rpma_rt_route *arrivals;

	e->scene = s;
	e->conn = conn;
	e->queue = queue;
	MUST(rpma_rt_route_open_callback(conn, RPMA_RT_SEND_SIDE, hear, e,
					 &e->replies));
	MUST(rpma_rt_route_open_callback(conn, RPMA_RT_RECV_SIDE, hear, e,
					 &arrivals));
}

static void end_begin(struct end *e)
{
	int i;

	for (i = 0; i < THREADS; i++)
		CHECK(pthread_create(&e->threads[i], NULL, post_until_closed,
				     e) == 0);
}

static void end_close(struct end *e)
{
	int i;

	for (i = 0; i < THREADS; i++)
		CHECK(pthread_join(e->threads[i], NULL) == 0);
	/* relaxed: the join ordered them */
	CHECK(e->heard[BY_THREAD] ==
	      atomic_load_explicit(&e->taken[BY_THREAD], memory_order_relaxed));
	CHECK(e->heard[BY_THREAD_QUIETLY] <=
	      atomic_load_explicit(&e->taken[BY_THREAD_QUIETLY],
				   memory_order_relaxed));
	CHECK(e->owed == 0 && e->routes_closed == 2);
	MUST(rpma_rt_conn_unref(&e->conn));
}

/*
 * The threads post while this thread takes; after so many messages this thread
 * closes.
 */
static void take_until_closed(struct scene *s, uint32_t messages, int closer)
{
	uint64_t give_up = world_now_ms() + WORLD_PATIENCE_MS;
	bool told = false;

	while (!s->ends[0].closed || !s->ends[1].closed) {
		take_what_there_is(&s->ends[0]);
		take_what_there_is(&s->ends[1]);
		/* relaxed: a count */
		if (!told &&
		    atomic_load_explicit(&s->received, memory_order_relaxed) >=
			    messages) {
			MUST(rpma_rt_conn_close(s->ends[closer].conn));
			told = true;
		}
		CHECK(world_now_ms() < give_up);
		sched_yield();
	}
}

static void all_at_once__closed_in_the_middle(struct stage *stage,
					      uint32_t messages, int closer)
{
	struct rpma_rt_conn_cfg *cfg = world_cfg(DEPTH, DEPTH);
	struct scene s = {.stage = stage};
	struct world_pair pair;

	srq_open(&s);
	cfg->srqs = &s.srq;
	cfg->srq_count = 1;
	world_connect(&stage->world, cfg, 0, stage->aq, stage->pq, &pair);
	free(cfg);
	CHECK(pthread_create(&s.keeper, NULL, keep_posting, &s) == 0);
	end_open(&s.ends[0], &s, pair.active, stage->aq);
	end_open(&s.ends[1], &s, pair.passive, stage->pq);
	end_begin(&s.ends[0]);
	end_begin(&s.ends[1]);
	take_until_closed(&s, messages, closer);
	end_close(&s.ends[0]);
	end_close(&s.ends[1]);
	/* relaxed: only a hint */
	atomic_store_explicit(&s.enough, true, memory_order_relaxed);
	CHECK(pthread_join(s.keeper, NULL) == 0);
	srq_close(&s);
}

int main(int argc, char **argv)
{
	struct stage_cfg cfg = {.pollers = 1, .depth = DEPTH};
	uint32_t messages = argc > 1 ? (uint32_t)atoi(argv[1]) : 300;
	int conns = argc > 2 ? atoi(argv[2]) : 6;
	struct stage stage;
	int i;

	stage_open(&stage, &cfg);
	for (i = 0; i < conns; i++)
		all_at_once__closed_in_the_middle(
			&stage, messages + (uint32_t)i, i % 2);
	stage_close(&stage);
	printf("ok\n");
	return 0;
}
