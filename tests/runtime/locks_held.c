/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * locks_held.c -- a verb that may block is called on a thread that may wait,
 * and without holding a lock that another connection needs: without any lock,
 * except for the gate of the connection that connects or accepts. Nothing is
 * logged under a lock. A thread that waits and runs its only poller takes no
 * lock. The objects of the runtime are linked into this program, which counts
 * their calls of mutexes, pauses of gates, and blocking verbs; a connection, an
 * SRQ, an adopted CQ and a runtime go through all steps of their lives once.
 */

#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

#include "base/runtime.h"
#include "base/self.h"
#include "conn/gate.h"
#include "loop.h"
#include "stage.h"

#define DEPTH	16
#define PAIRS	4
#define AT_ONCE 8 /* the most locks held by a thread */

static _Thread_local const void *held[AT_ONCE];
static _Thread_local int held_count;
static _Thread_local uint64_t locks_taken;
static _Atomic(const struct rpma_rt *) judged;
static _Atomic uint64_t looks; /* judged calls of blocking verbs */

/* ---------------------------------------------------------------- locks --- */

static void hold(const void *lock)
{
	CHECK(held_count < AT_ONCE);
	held[held_count++] = lock;
	locks_taken++;
}

static void let_go(const void *lock)
{
	int i = held_count;

	while (i-- > 0 && held[i] != lock)
		;
	CHECK(i >= 0);
	memmove(&held[i], &held[i + 1],
		(size_t)(--held_count - i) * sizeof(held[0]));
}

int __real_pthread_mutex_lock(pthread_mutex_t *lock);
int __wrap_pthread_mutex_lock(pthread_mutex_t *lock);
int __wrap_pthread_mutex_lock(pthread_mutex_t *lock)
{
	int ret = __real_pthread_mutex_lock(lock);

	if (ret == 0)
		hold(lock);
	return ret;
}

int __real_pthread_mutex_trylock(pthread_mutex_t *lock);
int __wrap_pthread_mutex_trylock(pthread_mutex_t *lock);
int __wrap_pthread_mutex_trylock(pthread_mutex_t *lock)
{
	int ret = __real_pthread_mutex_trylock(lock);

	if (ret == 0)
		hold(lock);
	return ret;
}

int __real_pthread_mutex_unlock(pthread_mutex_t *lock);
int __wrap_pthread_mutex_unlock(pthread_mutex_t *lock);
int __wrap_pthread_mutex_unlock(pthread_mutex_t *lock)
{
	let_go(lock);
	return __real_pthread_mutex_unlock(lock);
}

/* A paused gate keeps other threads out as a lock does. */
void __real_rt_gate_pause(struct rt_gate *gate);
void __wrap_rt_gate_pause(struct rt_gate *gate);
void __wrap_rt_gate_pause(struct rt_gate *gate)
{
	__real_rt_gate_pause(gate);
	hold(gate);
}

bool __real_rt_gate_resume(struct rt_gate *gate);
bool __wrap_rt_gate_resume(struct rt_gate *gate);
bool __wrap_rt_gate_resume(struct rt_gate *gate)
{
	let_go(gate);
	return __real_rt_gate_resume(gate);
}

/* ---------------------------------------------------------------- verbs --- */

/*
 * Returns true for the gate of the connection: connects and accepts may hold
 * the gate.
 */
static bool is_its_own(const char *verb, const void *lock)
{
	/* acquire: pairs with the release in set_up() */
	const char *rt = (const char *)atomic_load_explicit(
		&judged, memory_order_acquire);
	const char *at = lock;

	/* an accept modifies the queue pair itself */
	return (strcmp(verb, "rdma_cm") == 0 || strcmp(verb, "modify") == 0) &&
	       !(at >= rt && at < rt + sizeof(struct rpma_rt));
}

static void judge(const char *verb)
{
	/* relaxed: counts */
	atomic_fetch_add_explicit(&looks, 1, memory_order_relaxed);
	if (rt_self_is_poller() || rt_self_is_events()) {
		fprintf(stderr, "%s on a poller or the event thread\n", verb);
		abort();
	}
	if (held_count == 0 || (held_count == 1 && is_its_own(verb, held[0])))
		return;
	fprintf(stderr, "%s with %d locks held\n", verb, held_count);
	abort();
}

static void watch_verbs(enum rpma_loopback_point point, const void *object,
			void *arg)
{
	(void)object;
	(void)arg;
	if (point == RPMA_LOOPBACK_MODIFY)
		judge("modify");
	else if (point == RPMA_LOOPBACK_DESTROY)
		judge("destroy");
	else if (point == RPMA_LOOPBACK_CM_CALL)
		judge("rdma_cm");
}

/* Blocking verbs without a hook of the device. */
#define JUDGED(ret, name, params, args)    \
	ret __real_##name params;          \
	ret __wrap_##name params;          \
	ret __wrap_##name params           \
	{                                  \
		judge(#name);              \
		return __real_##name args; \
	}
JUDGED(int, rpma_cq_new,
       (struct ibv_context * ctx, int cqe, struct rpma_channel *channel,
	int vector, void *context, struct rpma_cq **cq),
       (ctx, cqe, channel, vector, context, cq))
JUDGED(int, rpma_channel_new,
       (struct ibv_context * ctx, struct rpma_channel **channel),
       (ctx, channel))
JUDGED(int, rpma_srq_new,
       (struct rpma_peer * peer, const struct rpma_srq_cfg *cfg,
	struct rpma_srq **srq),
       (peer, cfg, srq))
JUDGED(int, ibv_query_device,
       (struct ibv_context * ctx, struct ibv_device_attr *attr), (ctx, attr))

/* ----------------------------------------------------------------- log --- */

/* The log function of the program: may call functions that take any lock. */
static void log_fn(enum rpma_log_level level, const char *file, const int line,
		   const char *function, const char *format, ...)
{
	(void)level;
	(void)format;
	if (held_count == 0)
		return;
	fprintf(stderr, "%s:%d %s() logs with %d locks held\n", file, line,
		function, held_count);
	abort();
}

/* ---------------------------------------------------------------- lives --- */

struct scene {
	struct stage stage;
	struct world_pair pairs[PAIRS];
};

static void set_up(struct scene *s)
{
	struct stage_cfg cfg = {.pollers = 2,
				.mode = RPMA_RT_MODE_ADAPTIVE,
				.cq_size = 4 * DEPTH,
				.depth = DEPTH};

	memset(s, 0, sizeof(*s));
	stage_open(&s->stage, &cfg);
	/* release: pairs with the acquire in is_its_own() */
	atomic_store_explicit(&judged, s->stage.world.rt, memory_order_release);
	loop_get()->set_hook(watch_verbs, NULL);
}

static void tear_down(struct scene *s)
{
	stage_close(&s->stage);
	loop_get()->set_hook(NULL, NULL);
}

static void connect_all(struct scene *s)
{
	int i;

	for (i = 0; i < PAIRS; i++) {
		stage_connect(&s->stage, &s->pairs[i]);
		stage_ping(&s->stage, &s->pairs[i], (uint64_t)i);
	}
}

static void put_all(struct scene *s)
{
	struct rpma_rt_completion item;
	int i;

	while (rpma_rt_queue_poll(s->stage.aq, &item, 1) > 0 ||
	       rpma_rt_queue_poll(s->stage.pq, &item, 1) > 0)
		;
	for (i = 0; i < PAIRS; i++) {
		world_unref(&s->pairs[i]);
	}
}

static void closed(void)
{
	struct scene s;
	int i;

	set_up(&s);
	connect_all(&s);
	for (i = 0; i < PAIRS; i++)
		stage_disconnect(&s.stage, &s.pairs[i]);
	tear_down(&s);
}

static void stopped(void)
{
	struct scene s;

	set_up(&s);
	connect_all(&s);
	MUST(rpma_rt_stop(s.stage.world.rt));
	put_all(&s);
	tear_down(&s);
}

/* Pulled out: every connection dies of the device. */
static void removed(void)
{
	struct scene s;
	int i;

	set_up(&s);
	connect_all(&s);
	CHECK(loop_get()->remove_device(0) == 0);
	for (i = 0; i < PAIRS; i++) {
		world_event(s.stage.aq, RPMA_RT_EVENT_CLOSED);
		world_event(s.stage.pq, RPMA_RT_EVENT_CLOSED);
	}
	put_all(&s);
	tear_down(&s);
	CHECK(loop_get()->restore_device(0) == 0);
}

static void routes_and_srqs(void)
{
	struct rpma_rt_srq_cfg cfg = RPMA_RT_SRQ_CFG_INIT;
	struct rpma_rt_route *route;
	struct rpma_rt_queue *queue;
	struct rpma_rt_srq *srq;
	struct scene s;

	set_up(&s);
	MUST(rpma_rt_queue_new(s.stage.world.rt, NULL, &queue));
	cfg.poller = 1;
	cfg.peer = s.stage.world.peer;
	cfg.queue = queue;
	cfg.srq_size = DEPTH;
	MUST(rpma_rt_srq_new(s.stage.world.rt, &cfg, &srq));
	stage_connect(&s.stage, &s.pairs[0]);
	MUST(rpma_rt_route_open(s.pairs[0].active, RPMA_RT_SEND_SIDE, queue,
				&route));
	stage_disconnect(&s.stage, &s.pairs[0]);
	world_event(queue, RPMA_RT_EVENT_ROUTE_CLOSED);
	MUST(rpma_rt_srq_delete(&srq));
	world_event(queue, RPMA_RT_EVENT_SRQ_CLOSED);
	MUST(rpma_rt_queue_delete(&queue));
	tear_down(&s);
}

/*
 * Refuses a peer, by the program of the listener, and for lack of a listener.
 */
static void refused(void)
{
	struct rpma_rt_listener *listener;
	struct rpma_rt_conn *passive;
	struct rpma_rt_conn *active;
	struct scene s;
	struct world *w = &s.stage.world;

	set_up(&s);
	listener = world_listen(w, s.stage.cfg, s.stage.pq);
	active = stage_begin(&s.stage);
	passive = world_request(s.stage.pq);
	MUST(rpma_rt_conn_reject(passive, NULL));
	world_closed(s.stage.aq, &active, WORLD_ANY_REASON);
	world_closed(s.stage.pq, &passive, WORLD_ANY_REASON);
	world_unlisten(&listener, s.stage.pq);
	active = stage_begin(&s.stage);
	world_closed(s.stage.aq, &active, WORLD_ANY_REASON);
	tear_down(&s);
}

/* Posts a receive whose future completes only when the connection closes. */
static void expect(const struct stage *s, const struct world_pair *pair,
		   struct rpma_rt_future *future)
{
	struct rpma_rt_recv_wr wr = {.dst = s->mr, .len = 8, .future = future};

	MUST(world_post_recv(pair->active, &wr));
}

/* Threads with a poller each meet at no lock while they wait in turn with
 * rounds: for a queue, also when the time is not over at once, for a future,
 * and for several futures, of which another poller brings some. */
static void waits_of_owners(void)
{
	const struct stage_cfg cfg = {
		.pollers = 2, .mode = RPMA_RT_MODE_MANUAL, .depth = DEPTH};
	struct rpma_rt_future futures[3];
	struct rpma_rt_completion item;
	struct rpma_rt_queue *queue;
	struct world_pair pair, other;
	struct stage s;
	int i;

	stage_open(&s, &cfg);
	MUST(rpma_rt_poller_attach(s.world.rt, 0));
	MUST(rpma_rt_queue_new(s.world.rt, NULL, &queue));
	s.cfg->futures = 2;
	stage_connect(&s, &pair);
	world_connect(&s.world, s.cfg, 1, queue, queue, &other);
	expect(&s, &pair, &futures[0]);
	expect(&s, &other, &futures[1]);
	expect(&s, &pair, &futures[2]);
	while (rpma_rt_poller_run(s.world.rt, 0, DEPTH) > 0)
		;
	locks_taken = 0;
	for (i = 0; i < 10; i++) {
		MUST(rpma_rt_queue_wait(s.aq, &item, 1, 1));
		MUST(rpma_rt_future_wait(&futures[0], &item, 0));
		MUST(rpma_rt_future_wait_some(futures, 2, 1, 0));
		MUST(rpma_rt_future_wait_some(&futures[1], 2, 1, 0));
	}
	CHECK(locks_taken == 0);
	for (i = 0; i < 3; i++)
		MUST(rpma_rt_future_drop(&futures[i]));
	MUST(rpma_rt_conn_close(other.active));
	world_until_closed(queue);
	world_until_closed(queue);
	world_unref(&other);
	stage_disconnect(&s, &pair);
	MUST(rpma_rt_queue_delete(&queue));
	stage_close(&s);
}

int main(void)
{
	if (loop_get() == NULL) {
		printf("skipped: only the loopback device has hooks\n");
		return 77;
	}
	MUST(rpma_log_set_function(log_fn));
	MUST(rpma_log_set_threshold(RPMA_LOG_THRESHOLD, RPMA_LOG_LEVEL_DEBUG));
	closed();
	stopped();
	removed();
	routes_and_srqs();
	refused();
	waits_of_owners();
	/* relaxed: every thread is joined */
	CHECK(atomic_load_explicit(&looks, memory_order_relaxed) > 50);
	return 0;
}
