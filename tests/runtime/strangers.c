/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * strangers.c -- no thread waits for a stranger: the destroy of a queue pair,
 * or its modify, does not return until the test allows the return. Meanwhile
 * other connections of the same device (except connections modified or
 * destroyed later), other devices, other runtimes and calls that need no device
 * go on. A thread that does wait never ends: an alarm is the failure.
 */

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <string.h>
#include <unistd.h>

#include "loop.h"
#include "stage.h"

#define DEPTH	8
#define CROWD	64
#define ALARM_S (WORLD_PATIENCE_MS / 1000)

/* ----------------------------------------------------------------- the gate */

/* where a call of the victim's is held, as long as the gate is closed */
static struct {
	enum rpma_loopback_point point;
	_Atomic(void *) posted; /* the queue pair of the last post */
	_Atomic(void *) victim; /* a queue pair; NULL: no thread is held */
	_Atomic bool is_inside;
} gate;

/* so many more queue pairs are modified before the next is held; -1: all */
static _Atomic int modifies_left = -1;

/* relaxed: decides only whether this thread goes on */
static void count_modify(void)
{
	int left;

	while ((left = atomic_load_explicit(&modifies_left,
					    memory_order_relaxed)) == 0)
		sched_yield();
	if (left > 0)
		atomic_fetch_sub_explicit(&modifies_left, 1,
					  memory_order_relaxed);
}

static void hook(enum rpma_loopback_point point, const void *object, void *arg)
{
	(void)arg;
	/* relaxed: read by the test's thread, which posts */
	if (point == RPMA_LOOPBACK_POST_SEND ||
	    point == RPMA_LOOPBACK_POST_RECV)
		atomic_store_explicit(&gate.posted, (void *)(uintptr_t)object,
				      memory_order_relaxed);
	if (point == RPMA_LOOPBACK_MODIFY)
		count_modify();
	/* acquire: pairs with the release in close_gate() */
	if (atomic_load_explicit(&gate.victim, memory_order_acquire) !=
		    object ||
	    point != gate.point)
		return;
	/* release: pairs with the acquire in wait_until_inside() */
	atomic_store_explicit(&gate.is_inside, true, memory_order_release);
	/* acquire: pairs with the release in open_gate() */
	while (atomic_load_explicit(&gate.victim, memory_order_acquire) ==
	       object)
		sched_yield();
}

/* Holds the queue pair of the last post at the point. */
static void close_gate(enum rpma_loopback_point point)
{
	gate.point = point;
	/* relaxed: published by the following */
	atomic_store_explicit(&gate.is_inside, false, memory_order_relaxed);
	/* relaxed: this thread posted; release: pairs with hook() */
	atomic_store_explicit(
		&gate.victim,
		atomic_load_explicit(&gate.posted, memory_order_relaxed),
		memory_order_release);
}

static void wait_until_inside(void)
{
	/* acquire: pairs with the release in hook() */
	while (!atomic_load_explicit(&gate.is_inside, memory_order_acquire))
		sched_yield();
}

static void open_gate(void)
{
	/* release: pairs with the acquire in hook() */
	atomic_store_explicit(&gate.victim, NULL, memory_order_release);
}

/* -------------------------------------------------------------- the scene */

struct scene {
	const struct loop *loop;
	struct stage stage;
	struct world_pair victim;
	struct rpma_rt_queue *queue; /* of both ends */
	struct world_pair other;     /* of the same device and CQ */
	struct rpma_rt_conn *idle;   /* of the other poller; READY */
	struct world far;	     /* the same runtime, another device */
	struct world foreign;	     /* another runtime, the same device */
};

static struct rpma_rt_conn *begin(struct scene *s, int poller)
{
	struct world *w = &s->stage.world;
	struct rpma_rt_conn *conn;

	MUST(world_conn_new(w->rt, w->peer, w->addr, w->port, s->stage.cfg,
			    poller, s->stage.aq, NULL, &conn));
	world_event(s->stage.aq, RPMA_RT_EVENT_READY);
	return conn;
}

static void open_scene(struct scene *s)
{
	struct stage_cfg cfg = {
		.pollers = 2, .mode = RPMA_RT_MODE_EVENT, .depth = DEPTH};

	stage_open(&s->stage, &cfg);
	s->far = s->stage.world;
	s->far.addr = "127.0.1.1";
	MUST(rpma_utils_get_ibv_context(
		s->far.addr, RPMA_UTIL_IBV_CONTEXT_LOCAL, &s->far.ibv_ctx));
	CHECK(s->far.ibv_ctx != s->stage.world.ibv_ctx);
	MUST(rpma_peer_new(s->far.ibv_ctx, &s->far.peer));
	s->foreign = s->stage.world;
	world_start(&s->foreign, 1, RPMA_RT_MODE_EVENT);
	s->loop->set_hook(hook, NULL);
	stage_connect(&s->stage, &s->other);
	MUST(rpma_rt_queue_new(s->stage.world.rt, NULL, &s->queue));
	world_connect(&s->stage.world, s->stage.cfg, 0, s->queue, s->queue,
		      &s->victim);
	s->idle = begin(s, 1);
	/* so that this end posted last */
	MUST(rpma_rt_recv(s->victim.active, s->stage.mr, 0, 64, 1));
}

static void put(struct world_pair *pair)
{
	world_unref(pair);
}

/* So many connections close in the queue, which is empty then. */
static void expect_closed(struct rpma_rt_queue *queue, int count)
{
	while (count-- > 0)
		world_event(queue, RPMA_RT_EVENT_CLOSED);
}

/* Ends the victim, or both ends of the victim. */
static void end_victim(struct scene *s)
{
	struct rpma_rt_completion item;
	int closed;

	/* the receive comes back, and CLOSED of either end may be first */
	for (closed = 0; closed < 2; closed += item.kind == RPMA_RT_EVENT) {
		item = world_next(s->queue);
		CHECK(item.kind == RPMA_RT_EVENT
			      ? item.opcode == RPMA_RT_EVENT_CLOSED
			      : item.context == 1);
	}
	put(&s->victim);
}

static void close_scene(struct scene *s)
{
	s->loop->set_hook(NULL, NULL);
	MUST(rpma_rt_delete(&s->foreign.rt));
	MUST(rpma_rt_stop(s->stage.world.rt));
	MUST(rpma_rt_queue_delete(&s->queue));
	stage_close(&s->stage);
	MUST(rpma_peer_delete(&s->far.peer));
}

/* A message of no bytes, which needs no memory of either device. */
static void exchange(const struct world_pair *pair, struct rpma_rt_queue *aq,
		     struct rpma_rt_queue *pq)
{
	MUST(rpma_rt_recv(pair->passive, NULL, 0, 0, 1));
	MUST(rpma_rt_send(pair->active, NULL, 0, 0, RPMA_F_COMPLETION_ALWAYS,
			  2));
	stage_completion(pq, 1, IBV_WC_SUCCESS);
	stage_completion(aq, 2, IBV_WC_SUCCESS);
}

/* Runs a connection from its beginning to its end. */
static void whole_life(const struct scene *s, struct world *w)
{
	struct rpma_rt_queue *aq;
	struct rpma_rt_queue *pq;
	struct world_pair pair;

	MUST(rpma_rt_queue_new(w->rt, NULL, &aq));
	MUST(rpma_rt_queue_new(w->rt, NULL, &pq));
	world_connect(w, s->stage.cfg, 0, aq, pq, &pair);
	exchange(&pair, aq, pq);
	MUST(rpma_rt_conn_close(pair.active));
	expect_closed(aq, 1);
	expect_closed(pq, 1);
	put(&pair);
	MUST(rpma_rt_queue_delete(&aq));
	MUST(rpma_rt_queue_delete(&pq));
}

/* Calls functions of the same runtime without need of a device. */
static void calls_return(struct scene *s)
{
	struct rpma_rt_queue *queue;
	int ret;

	MUST(rpma_rt_queue_new(s->stage.world.rt, NULL, &queue));
	/* the connection may be dying of a stop */
	ret = rpma_rt_conn_set_user(s->idle, s);
	CHECK(ret == 0 || ret == RPMA_RT_E_CLOSED);
	MUST(rpma_rt_queue_delete(&queue));
}

static void strangers_live(struct scene *s)
{
	stage_ping(&s->stage, &s->other, 3);
	calls_return(s);
	whole_life(s, &s->far);
	whole_life(s, &s->foreign);
}

/* Ends the rest when the victim is gone. */
static void end_others(struct scene *s)
{
	stage_disconnect(&s->stage, &s->other);
	MUST(rpma_rt_conn_close(s->idle));
	expect_closed(s->stage.aq, 1);
	MUST(rpma_rt_conn_unref(&s->idle));
}

/* ---------------------------------------------------------------- the tests */

/* A queue pair is slow to go. */
static void slow_destroy(struct scene *s)
{
	struct world_pair late;

	close_gate(RPMA_LOOPBACK_DESTROY);
	MUST(rpma_rt_conn_close(s->victim.active));
	wait_until_inside();
	strangers_live(s);
	/* a new connection on the same device: everything but its own destroy,
	 * which waits */
	stage_connect(&s->stage, &late);
	stage_ping(&s->stage, &late, 4);
	MUST(rpma_rt_conn_close(late.active));
	open_gate();
	expect_closed(s->stage.aq, 1);
	expect_closed(s->stage.pq, 1);
	put(&late);
	end_victim(s);
	end_others(s);
}

/* A queue pair is slow to be flushed. */
static void slow_modify(struct scene *s)
{
	close_gate(RPMA_LOOPBACK_MODIFY);
	MUST(rpma_rt_conn_close(s->victim.active));
	wait_until_inside();
	strangers_live(s);
	open_gate();
	end_victim(s);
	end_others(s);
}

/* Many dying connections do not delay a new connection. */
static void many_deaths(struct scene *s)
{
	struct world *w = &s->stage.world;
	struct rpma_rt_conn *crowd[CROWD];
	struct rpma_rt_conn *conn;
	struct rpma_rt_queue *queue;
	int i;

	MUST(rpma_rt_queue_new(w->rt, NULL, &queue));
	for (i = 0; i < CROWD; i++)
		crowd[i] = begin(s, 1);
	close_gate(RPMA_LOOPBACK_MODIFY);
	MUST(rpma_rt_conn_close(s->victim.active));
	wait_until_inside();
	for (i = 0; i < CROWD; i++)
		MUST(rpma_rt_conn_close(crowd[i]));
	MUST(world_conn_new(w->rt, w->peer, w->addr, w->port, s->stage.cfg, 1,
			    queue, NULL, &conn));
	/* relaxed, this and the next: see count_modify() */
	atomic_store_explicit(&modifies_left, CROWD / 2, memory_order_relaxed);
	open_gate();
	world_event(queue, RPMA_RT_EVENT_READY);
	atomic_store_explicit(&modifies_left, -1, memory_order_relaxed);
	MUST(rpma_rt_conn_close(conn));
	expect_closed(queue, 1);
	MUST(rpma_rt_conn_unref(&conn));
	expect_closed(s->stage.aq, CROWD);
	for (i = 0; i < CROWD; i++)
		MUST(rpma_rt_conn_unref(&crowd[i]));
	MUST(rpma_rt_queue_delete(&queue));
	end_victim(s);
	end_others(s);
}

/* A queue pair that is slow to get ready: on the thread that reads the event of
 * its handshake. */
static void slow_handshake(struct scene *s)
{
	struct world *w = &s->stage.world;
	struct rpma_rt_listener *listener;
	struct world_pair pair;

	listener = world_listen(w, s->stage.cfg, s->stage.pq);
	pair.active = begin(s, 0);
	MUST(rpma_rt_recv(pair.active, s->stage.mr, 0, 64, 5));
	close_gate(RPMA_LOOPBACK_MODIFY);
	MUST(rpma_rt_conn_connect(pair.active, NULL));
	pair.passive = (struct rpma_rt_conn *)(uintptr_t)world_event(
			       s->stage.pq, RPMA_RT_EVENT_REQUEST)
			       .context;
	MUST(rpma_rt_conn_accept(pair.passive, NULL));
	wait_until_inside();
	strangers_live(s);
	open_gate();
	world_event(s->stage.aq, RPMA_RT_EVENT_ESTABLISHED);
	world_event(s->stage.pq, RPMA_RT_EVENT_ESTABLISHED);
	world_unlisten(&listener, s->stage.pq);
	MUST(rpma_rt_conn_close(pair.active));
	stage_completion(s->stage.aq, 5, IBV_WC_WR_FLUSH_ERR);
	expect_closed(s->stage.aq, 1);
	expect_closed(s->stage.pq, 1);
	put(&pair);
	MUST(rpma_rt_conn_close(s->victim.active));
	end_victim(s);
	end_others(s);
}

/* A CQ breaks, and all its connections die, one after the other. */
static void broken_cq(struct scene *s)
{
	struct ibv_qp *qp;

	close_gate(RPMA_LOOPBACK_MODIFY);
	/* relaxed: written by this thread */
	qp = atomic_load_explicit(&gate.posted, memory_order_relaxed);
	CHECK(s->loop->raise(IBV_EVENT_CQ_ERR, qp->send_cq) == 0);
	wait_until_inside();
	calls_return(s);
	whole_life(s, &s->far);
	whole_life(s, &s->foreign);
	open_gate();
	end_victim(s);
	expect_closed(s->stage.aq, 1);
	expect_closed(s->stage.pq, 1);
	put(&s->other);
	MUST(rpma_rt_conn_close(s->idle));
	expect_closed(s->stage.aq, 1);
	MUST(rpma_rt_conn_unref(&s->idle));
}

static void *stop(void *arg)
{
	MUST(rpma_rt_stop(arg));
	return NULL;
}

/* A runtime stops, and all its connections die, one after the other. */
static void slow_stop(struct scene *s)
{
	pthread_t thread;

	close_gate(RPMA_LOOPBACK_MODIFY);
	CHECK(pthread_create(&thread, NULL, stop, s->stage.world.rt) == 0);
	wait_until_inside();
	stage_ping(&s->stage, &s->other, 6);
	calls_return(s);
	whole_life(s, &s->foreign);
	open_gate();
	pthread_join(thread, NULL);
	end_victim(s);
	expect_closed(s->stage.aq, 2);
	expect_closed(s->stage.pq, 1);
	put(&s->other);
	MUST(rpma_rt_conn_unref(&s->idle));
}

/* strangers [TEST] */
int main(int argc, char *argv[])
{
	static const struct {
		const char *name;
		void (*run)(struct scene *s);
	} tests[] = {
		{"slow_destroy", slow_destroy},
		{"slow_modify", slow_modify},
		{"many_deaths", many_deaths},
		{"slow_handshake", slow_handshake},
		{"broken_cq", broken_cq},
		{"slow_stop", slow_stop},
	};
	struct scene s = {0};
	size_t i;

	setenv("RPMA_LOOPBACK_DEVICES", "2", 1); /* before the first call */
	s.loop = loop_get();
	if (s.loop == NULL) {
		printf("SKIP: no loopback device\n");
		return 77;
	}
	for (i = 0; i < sizeof(tests) / sizeof(tests[0]); i++) {
		if (argc > 1 && strcmp(argv[1], tests[i].name) != 0)
			continue;
		alarm(ALARM_S); /* whoever waits for the victim never ends */
		open_scene(&s);
		tests[i].run(&s);
		close_scene(&s);
		printf("%s\n", tests[i].name);
	}
	return 0;
}
