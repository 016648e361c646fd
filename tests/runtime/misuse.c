/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * misuse.c -- mistakes of a program while the runtime works: posting invalid
 * work requests, more work requests than there is room for, or on a connection
 * whose peer is gone; using an SRQ of another runtime; waiting inside a
 * function called by a poller or the event thread; taking where another thread
 * takes; going on after a stop. Each call returns the error in its manual page,
 * no call hangs, and the connections without mistakes go on.
 */

#define _GNU_SOURCE
#include <pthread.h>
#include <sched.h>
#include <string.h>

#include "misuse.h"

#define DEPTH 8

/* ---------------------------------------------------------------- posts --- */

/* With regions of librpma itself: bytes without a region, a flush of a region
 * not registered for flushes, a misaligned atomic write. */
static void post__what_cannot_be(struct stage *s)
{
	struct rpma_rt_wr wr = {.op = RPMA_RT_OP_SEND, .len = 8};
	struct world_pair pair;
	int op;

	stage_connect(s, &pair);
	for (op = RPMA_RT_OP_SEND; op <= RPMA_RT_OP_ATOMIC_WRITE; op++) {
		wr.op = (enum rpma_rt_op)op;
		REFUSED(RPMA_E_INVAL, rpma_rt_post_send(pair.active, &wr, 1));
	}
	REFUSED(RPMA_E_INVAL, rpma_rt_recv(pair.active, NULL, 0, 8, 1));
	REFUSED(RPMA_E_INVAL, rpma_rt_send(pair.active, NULL, 1, 0, ALWAYS, 1));
	REFUSED(RPMA_E_INVAL, rpma_rt_write(pair.active, s->remote, 0, NULL, 0,
					    8, ALWAYS, 1));
	REFUSED(RPMA_E_INVAL,
		rpma_rt_read(pair.active, s->mr, 0, NULL, 0, 8, ALWAYS, 1));
	wr = (struct rpma_rt_wr){.op = RPMA_RT_OP_FLUSH,
				 .flags = ALWAYS,
				 .remote = s->remote,
				 .len = 8,
				 .flush_type = RPMA_FLUSH_TYPE_VISIBILITY};
	REFUSED(RPMA_E_NOSUPP, rpma_rt_post_send(pair.active, &wr, 1));
	wr = (struct rpma_rt_wr){.op = RPMA_RT_OP_ATOMIC_WRITE,
				 .flags = ALWAYS,
				 .remote = s->remote,
				 .remote_offset = 2049};
	REFUSED(RPMA_E_INVAL, rpma_rt_post_send(pair.active, &wr, 1));
	stage_ping(s, &pair, 5);
	stage_disconnect(s, &pair);
}

/* The third of five is invalid: nothing is posted. */
static void post__one_wrong_of_many(struct stage *s)
{
	struct rpma_rt_wr wrs[5];
	struct world_pair pair;
	int i;

	stage_connect(s, &pair);
	for (i = 0; i < 5; i++)
		wrs[i] = (struct rpma_rt_wr){.op = RPMA_RT_OP_WRITE,
					     .flags = ALWAYS,
					     .context = (uint64_t)i,
					     .local = s->mr,
					     .remote = s->remote,
					     .remote_offset = 2048,
					     .len = 8};
	wrs[2].op = 0; /* a forgotten element */
	REFUSED(RPMA_E_INVAL, rpma_rt_post_send(pair.active, wrs, 5));
	wrs[2] = (struct rpma_rt_wr){.op = RPMA_RT_OP_FLUSH,
				     .flags = ALWAYS,
				     .remote = s->remote,
				     .len = 8,
				     .flush_type = RPMA_FLUSH_TYPE_VISIBILITY};
	REFUSED(RPMA_E_NOSUPP, rpma_rt_post_send(pair.active, wrs, 5));
	CHECK(rpma_rt_again_reason() == RPMA_RT_AGAIN_NONE);
	MUST_ANSWER(2, rpma_rt_post_send(pair.active, wrs, 2));
	stage_completion(s->aq, 0, IBV_WC_SUCCESS);
	stage_completion(s->aq, 1, IBV_WC_SUCCESS);
	stage_disconnect(s, &pair);
}

/* More in flight than the queue pair holds; receives, for they stay. */
static void post__beyond_credit(struct stage *s)
{
	struct world_pair pair;
	int i;

	s->cfg->waiting = RPMA_RT_NO_WAITING;
	stage_connect(s, &pair);
	s->cfg->waiting = 0;
	for (i = 0; i < DEPTH; i++)
		MUST(rpma_rt_recv(pair.active, s->mr, 0, 8, (uint64_t)i));
	for (i = 0; i < 3; i++) {
		REFUSED(RPMA_E_AGAIN,
			rpma_rt_recv(pair.active, s->mr, 0, 8, 100));
		CHECK(rpma_rt_again_reason() == RPMA_RT_AGAIN_CREDIT);
	}
	MUST(rpma_rt_conn_close(pair.active));
	for (i = 0; i < DEPTH; i++)
		stage_completion(s->aq, (uint64_t)i, IBV_WC_WR_FLUSH_ERR);
	world_closed(s->aq, &pair.active, RPMA_RT_REASON_LOCAL);
	world_closed(s->pq, &pair.passive, RPMA_RT_REASON_DISCONNECTED);
}

/* The peer leaves while this end goes on posting, until a post is refused; each
 * accepted post is reported once. */
static void post__peer_gone(struct stage *s)
{
	struct rpma_rt_completion item;
	struct world_pair pair;
	uint64_t taken = 0;
	uint64_t heard = 0;
	int ret;

	stage_connect(s, &pair);
	MUST(rpma_rt_conn_close(pair.passive));
	for (;;) {
		ret = rpma_rt_send(pair.active, NULL, 0, 0, ALWAYS, taken);
		if (ret == RPMA_RT_E_CLOSED)
			break;
		CHECK(ret == 0 || ret == RPMA_E_AGAIN);
		taken += ret == 0;
	}
	do {
		item = world_next(s->aq);
		if (item.kind == RPMA_RT_COMPLETION)
			CHECK(item.context == heard++);
	} while (item.kind != RPMA_RT_EVENT);
	CHECK(item.opcode == RPMA_RT_EVENT_CLOSED);
	CHECK(heard == taken);
	world_event(s->pq, RPMA_RT_EVENT_CLOSED);
	REFUSED(RPMA_RT_E_CLOSED, rpma_rt_recv(pair.active, s->mr, 0, 8, 1));
	MUST(rpma_rt_conn_close(pair.active));
	world_unref(&pair);
}

/* -------------------------------------------------------------- objects --- */

/* An SRQ of another runtime, which has other pollers. */
static void foreign_srq__INVAL(struct stage *s)
{
	struct rpma_rt_srq_cfg srq_cfg = RPMA_RT_SRQ_CFG_INIT;
	struct world other = s->world;
	struct rpma_rt_listener *listener;
	struct rpma_rt_conn_cfg cfg = RPMA_RT_CONN_CFG_INIT;
	struct rpma_rt_queue *queue;
	struct rpma_rt_conn *conn;
	struct rpma_rt_srq *srq;

	world_start(&other, 2, RPMA_RT_MODE_EVENT);
	MUST(rpma_rt_queue_new(other.rt, NULL, &queue));
	srq_cfg.poller = 1;
	srq_cfg.peer = other.peer;
	srq_cfg.queue = queue;
	MUST(rpma_rt_srq_new(other.rt, &srq_cfg, &srq));
	cfg.srqs = &srq;
	cfg.srq_count = 1;
	REFUSED(RPMA_E_INVAL,
		world_listen_at(s->world.rt, s->world.peer, s->world.addr, "0",
				0, &cfg, RPMA_RT_POLLER_ANY, s->aq, NULL,
				&listener));
	REFUSED(RPMA_E_INVAL,
		world_conn_new(s->world.rt, s->world.peer, s->world.addr, "1",
			       &cfg, RPMA_RT_POLLER_ANY, s->aq, NULL, &conn));
	MUST(rpma_rt_srq_delete(&srq));
	MUST(rpma_rt_queue_delete(&queue));
	MUST(rpma_rt_delete(&other.rt));
}

/* Puts a handle once too often, while the runtime has the record; with
 * assertions compiled in, the put aborts. */
static void put__once_too_often_INVAL(struct stage *s)
{
#ifdef NDEBUG
	struct rpma_rt_conn *again;
	struct world_pair pair;

	stage_connect(s, &pair);
	again = pair.active;
	MUST(rpma_rt_conn_unref(&pair.active));
	CHECK(pair.active == NULL);
	REFUSED(RPMA_E_INVAL, rpma_rt_conn_unref(&again));
	REFUSED(RPMA_E_INVAL, rpma_rt_conn_ref(again));
	MUST(rpma_rt_conn_close(pair.passive));
	world_event(s->pq, RPMA_RT_EVENT_CLOSED);
	world_event(s->aq, RPMA_RT_EVENT_CLOSED);
	MUST(rpma_rt_conn_unref(&pair.passive));
#else
	(void)s;
#endif
}

/* ------------------------------------------------------- two consumers --- */

static void *wait_for_one(void *arg)
{
	struct rpma_rt_completion item;

	MUST_ANSWER(1, rpma_rt_queue_wait(arg, &item, 1, WORLD_PATIENCE_MS));
	CHECK(item.context == 10);
	return NULL;
}

static void sleep_until_it_sleeps(const struct rpma_rt_queue *queue)
{
	struct rpma_rt_queue_stats stats;

	do {
		sched_yield();
		MUST(rpma_rt_queue_get_stats(queue, &stats, sizeof(stats)));
	} while (stats.sleeps == 0);
}

/* A thread sleeps inside; a second thread is refused, and takes nothing. With
 * assertions compiled in, the call aborts. */
static void take__where_another_takes_AGAIN(struct stage *s)
{
	struct rpma_rt_completion item;
	struct rpma_rt_queue *queue;
	pthread_t thread;

	MUST(rpma_rt_queue_new(s->world.rt, NULL, &queue));
	CHECK(!pthread_create(&thread, NULL, wait_for_one, queue));
	sleep_until_it_sleeps(queue);
#ifdef NDEBUG
	REFUSED(RPMA_RT_E_BUSY, rpma_rt_queue_poll(queue, &item, 1));
	REFUSED(RPMA_RT_E_BUSY, rpma_rt_queue_wait(queue, &item, 1, -1));
#endif
	REFUSED(RPMA_RT_E_BUSY, rpma_rt_queue_delete(&queue));
	MUST(rpma_rt_queue_push(queue,
				&(struct rpma_rt_completion){.context = 10}));
	CHECK(!pthread_join(thread, NULL));
	MUST_ANSWER(0, rpma_rt_queue_poll(queue, &item, 1));
	MUST(rpma_rt_queue_delete(&queue));
}

/* ---------------------------------------------------------- the machine --- */

/* A CPU that the process may not use, and a CPU that no machine has. */
static void new__on_a_CPU_that_is_not_ours(void)
{
	struct rpma_rt_cfg cfg = RPMA_RT_CFG_INIT;
	struct rpma_rt *rt = NULL;
	cpu_set_t before;
	cpu_set_t one;
	int cpus[1];
	int cpu = 0;

	CHECK(!sched_getaffinity(0, sizeof(before), &before));
	while (!CPU_ISSET(cpu, &before))
		cpu++;
	CPU_ZERO(&one);
	CPU_SET(cpu, &one);
	CHECK(!sched_setaffinity(0, sizeof(one), &one));
	cfg.cpus = cpus;
	cfg.cpu_count = 1;
	for (cpus[0] = 0; cpus[0] <= CPU_SETSIZE; cpus[0]++) {
		/* the process's, wherever this thread is pinned */
		if (cpus[0] < CPU_SETSIZE && CPU_ISSET(cpus[0], &before))
			continue;
		REFUSED(RPMA_E_INVAL, rpma_rt_new(&cfg, &rt));
	}
	CHECK(!sched_setaffinity(0, sizeof(before), &before));
}

/* ------------------------------------------------------------ and after --- */

/* All calls, after the runtime has stopped, and during the stop. */
static void stopped__CLOSED(struct stage *s)
{
	struct rpma_rt *rt = s->world.rt;
	struct rpma_rt_completion item;
	struct rpma_rt_listener *listener;
	struct rpma_rt_queue *queue;
	struct rpma_rt_route *route;
	struct rpma_rt_conn *conn;
	struct world_pair pair;
	unsigned events = 0;

	listener = world_listen(&s->world, s->cfg, s->pq);
	stage_connect(s, &pair);
	MUST(rpma_rt_stop(rt));
	world_event(s->aq, RPMA_RT_EVENT_CLOSED);
	/* the connection and the listener, in any order */
	while (rpma_rt_queue_poll(s->pq, &item, 1) == 1)
		events |= 1u << rpma_rt_completion_event(&item);
	CHECK(events == (1u << RPMA_RT_EVENT_CLOSED |
			 1u << RPMA_RT_EVENT_LISTENER_CLOSED));
#define CLOSED(call) REFUSED(RPMA_RT_E_CLOSED, call)
	CLOSED(rpma_rt_queue_new(rt, NULL, &queue));
	CLOSED(rpma_rt_queue_wait(s->aq, &item, 1, -1));
	CLOSED(rpma_rt_queue_push(s->aq, &(struct rpma_rt_completion){0}));
	CLOSED(world_listen_at(rt, s->world.peer, s->world.addr, "0", 0, NULL,
			       0, s->pq, NULL, &listener));
	CLOSED(world_conn_new(rt, s->world.peer, s->world.addr, "1", NULL, 0,
			      s->aq, NULL, &conn));
	CLOSED(rpma_rt_conn_connect(pair.active, NULL));
	CLOSED(rpma_rt_route_open(pair.active, RPMA_RT_SEND_SIDE, s->aq,
				  &route));
	CLOSED(rpma_rt_send(pair.active, NULL, 0, 0, ALWAYS, 1));
	CLOSED(rpma_rt_recv(pair.passive, NULL, 0, 0, 1));
#undef CLOSED
	REFUSED(RPMA_RT_E_BUSY, rpma_rt_delete(&rt));
	CHECK(rt == s->world.rt);
	MUST(rpma_rt_conn_close(pair.active));
	MUST(rpma_rt_listener_delete(&listener));
	world_unref(&pair);
}

int main(void)
{
	static const struct stage_cfg cfg = {.pollers = 2, .depth = DEPTH};
	struct world_pair bystander;
	struct stage s;

	new__on_a_CPU_that_is_not_ours();
	stage_open(&s, &cfg);
	stage_connect(&s, &bystander);
	post__what_cannot_be(&s);
	post__one_wrong_of_many(&s);
	post__beyond_credit(&s);
	post__peer_gone(&s);
	foreign_srq__INVAL(&s);
	connect__too_much_private_data_FAILED(&s);
	answer__too_much_private_data(&s, true);
	answer__too_much_private_data(&s, false);
	put__once_too_often_INVAL(&s);
	wait__inside_a_callback_INVAL(&s);
	wait__inside_a_refill_INVAL(&s);
	wait__inside_an_async_handler_INVAL(&s);
	take__where_another_takes_AGAIN(&s);
	stage_ping(&s, &bystander, 11);
	stage_disconnect(&s, &bystander);
	stopped__CLOSED(&s);
	stage_close(&s);
	printf("ok\n");
	return 0;
}
