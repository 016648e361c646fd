/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * teardown.c -- everything ends at once: connections in every state are closed
 * by several threads, by their peers and inside functions called by pollers,
 * while two threads post on all connections, a thread takes from each queue,
 * and two threads stop the runtime. Each accepted work request is reported
 * once, CLOSED comes once and last, and nothing is left.
 *
 * usage: runtime_teardown [rounds [seed]]
 */

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <string.h>

#include "stage.h"

#define ROUNDS	40
#define DEPTH	16
#define PAIRS	4
#define ENDS	(2 * PAIRS + 4)
#define POSTERS 2
#define CLOSERS 2
#define STOPS	2
#define TAKERS	2 /* a queue each */
#define THREADS (POSTERS + CLOSERS + STOPS + TAKERS)
#define SIDES	2

/* an end of a connection */
struct end {
	struct scene *scene;
	struct rpma_rt_conn *conn;
	struct rpma_rt_route *route; /* of receives, to a function; or NULL */
	_Atomic uint32_t taken[SIDES];
	_Atomic uint32_t heard[SIDES];
	_Atomic uint32_t closed;       /* by its queue */
	_Atomic uint32_t route_closed; /* by the function */
};

struct scene {
	struct stage stage;
	struct end ends[ENDS];
	int count;
	_Atomic uint32_t sweeps; /* of the posters */
	uint32_t stop_at;	 /* so many */
	_Atomic uint64_t random;
	pthread_barrier_t begin;
};

static uint32_t random_below(struct scene *s, uint32_t n)
{
	/* relaxed: any number will do */
	uint64_t x = atomic_fetch_add_explicit(
		&s->random, UINT64_C(0x9e3779b97f4a7c15), memory_order_relaxed);

	x = (x ^ (x >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
	x = (x ^ (x >> 27)) * UINT64_C(0x94d049bb133111eb);
	return (uint32_t)(((x ^ (x >> 31)) >> 32) * n >> 32);
}

static void add(_Atomic uint32_t *count)
{
	/* relaxed: read when the threads were joined, or as a hint */
	atomic_fetch_add_explicit(count, 1, memory_order_relaxed);
}

static uint32_t value(_Atomic uint32_t *count)
{
	/* relaxed: see add() */
	return atomic_load_explicit(count, memory_order_relaxed);
}

/* -------------------------------------------------------------- hearing --- */

static void hear_wr(struct end *e, const struct rpma_rt_completion *item)
{
	CHECK(value(&e->closed) == 0);
	CHECK(item->context < SIDES);
	add(&e->heard[item->context]);
}

static void hear_item(const struct rpma_rt_completion *item)
{
	struct end *e = item->user;

	if (item->kind == RPMA_RT_COMPLETION) {
		hear_wr(e, item);
	} else if (item->kind == RPMA_RT_EVENT &&
		   item->opcode == RPMA_RT_EVENT_CLOSED) {
		add(&e->closed);
	}
}

static int post_recv(struct end *e)
{
	struct rpma_rt_recv_wr wr = {.route = e->route,
				     .dst = e->scene->stage.mr,
				     .len = 8,
				     .context = RPMA_RT_RECV_SIDE};
	int ret = world_post_recv(e->conn, &wr);

	CHECK(ret == 0 || ret == RPMA_E_AGAIN || ret == RPMA_RT_E_CLOSED);
	if (ret == 0)
		add(&e->taken[RPMA_RT_RECV_SIDE]);
	return ret;
}

static int post_send(struct end *e)
{
	int ret = rpma_rt_send(e->conn, e->scene->stage.mr, 64, 8,
			       RPMA_F_COMPLETION_ALWAYS, RPMA_RT_SEND_SIDE);

	CHECK(ret == 0 || ret == RPMA_E_AGAIN || ret == RPMA_RT_E_CLOSED);
	if (ret == 0)
		add(&e->taken[RPMA_RT_SEND_SIDE]);
	return ret;
}

/* A poller's: posts, and now and then closes somebody, itself perhaps. */
static void hear_inside(const struct rpma_rt_completion *item, void *arg)
{
	struct end *e = arg;
	struct scene *s = e->scene;

	if (item->kind == RPMA_RT_EVENT) {
		CHECK(item->opcode == RPMA_RT_EVENT_ROUTE_CLOSED);
		add(&e->route_closed);
		return;
	}
	if (item->kind != RPMA_RT_COMPLETION)
		return;
	CHECK(value(&e->route_closed) == 0);
	hear_wr(e, item);
	post_recv(e);
	if (random_below(s, 200) == 0)
		MUST(rpma_rt_conn_close(
			s->ends[random_below(s, (uint32_t)s->count)].conn));
	/* the waiting form of stop is refused */
	CHECK(rpma_rt_stop(s->stage.world.rt) == RPMA_RT_E_THREAD);
}

/* -------------------------------------------------------------- threads --- */

/* Posts on connections, holding each connection. */
static void *poster(void *arg)
{
	struct scene *s = arg;
	bool open = true;
	int i;

	for (i = 0; i < s->count; i++)
		MUST(rpma_rt_conn_ref(s->ends[i].conn));
	pthread_barrier_wait(&s->begin);
	while (open) {
		open = false;
		for (i = 0; i < s->count; i++) {
			open |= post_recv(&s->ends[i]) != RPMA_RT_E_CLOSED;
			open |= post_send(&s->ends[i]) != RPMA_RT_E_CLOSED;
		}
		add(&s->sweeps);
		sched_yield();
	}
	/* all were closed before a stop: there is nothing left to wait for.
	 * relaxed: see add() */
	atomic_fetch_add_explicit(&s->sweeps, s->stop_at, memory_order_relaxed);
	/* the ends' own handles are held still */
	for (i = 0; i < s->count; i++) {
		struct rpma_rt_conn *conn = s->ends[i].conn;

		MUST(rpma_rt_conn_unref(&conn));
	}
	return NULL;
}

static void *closer(void *arg)
{
	struct scene *s = arg;
	uint32_t n = random_below(s, ENDS);

	pthread_barrier_wait(&s->begin);
	while (n-- > 0) {
		MUST(rpma_rt_conn_close(
			s->ends[random_below(s, (uint32_t)s->count)].conn));
		sched_yield();
	}
	return NULL;
}

static void *stopper(void *arg)
{
	struct scene *s = arg;

	pthread_barrier_wait(&s->begin);
	while (value(&s->sweeps) < s->stop_at)
		sched_yield();
	MUST(rpma_rt_stop(s->stage.world.rt));
	return NULL;
}

static void take_all(struct scene *s, struct rpma_rt_queue *queue)
{
	struct rpma_rt_completion items[8];
	int got;
	int i;

	pthread_barrier_wait(&s->begin);
	while ((got = rpma_rt_queue_wait(queue, items, 8, WORLD_PATIENCE_MS)) >
	       0) {
		for (i = 0; i < got; i++)
			hear_item(&items[i]);
	}
	CHECK(got == RPMA_RT_E_CLOSED);
}

static void *take_active(void *arg)
{
	struct scene *s = arg;

	take_all(s, s->stage.aq);
	return NULL;
}

static void *take_passive(void *arg)
{
	struct scene *s = arg;

	take_all(s, s->stage.pq);
	return NULL;
}

/* ---------------------------------------------------------------- scene --- */

static struct end *end_new(struct scene *s)
{
	struct end *e = &s->ends[s->count++];

	e->scene = s;
	return e;
}

/* Begins an active end, which resolves. */
static struct end *begin(struct scene *s)
{
	struct stage *stage = &s->stage;
	struct end *e = end_new(s);

	MUST(world_conn_new(stage->world.rt, stage->world.peer,
			    stage->world.addr, stage->world.port, stage->cfg,
			    RPMA_RT_POLLER_ANY, stage->aq, e, &e->conn));
	return e;
}

static struct end *begin_ready(struct scene *s)
{
	struct end *e = begin(s);

	world_event(s->stage.aq, RPMA_RT_EVENT_READY);
	return e;
}

/* Requests to connect; returns the passive end. */
static struct end *ask(struct scene *s, struct end *active)
{
	struct end *e = end_new(s);

	MUST(rpma_rt_conn_connect(active->conn, NULL));
	e->conn = world_request(s->stage.pq);
	MUST(rpma_rt_conn_set_user(e->conn, e));
	return e;
}

static void establish(struct scene *s, bool inside)
{
	struct end *active = begin_ready(s);
	struct end *passive = ask(s, active);

	MUST(rpma_rt_conn_accept(passive->conn, NULL));
	world_event(s->stage.aq, RPMA_RT_EVENT_ESTABLISHED);
	world_event(s->stage.pq, RPMA_RT_EVENT_ESTABLISHED);
	if (inside)
		MUST(rpma_rt_route_open_callback(passive->conn,
						 RPMA_RT_RECV_SIDE, hear_inside,
						 passive, &passive->route));
}

/* Opens established ends, every second with a function; and an unanswered end,
 * a ready end and a beginning end. */
static void open_ends(struct scene *s)
{
	struct rpma_rt_listener *listener =
		world_listen(&s->stage.world, s->stage.cfg, s->stage.pq);
	int i;

	for (i = 0; i < PAIRS; i++)
		establish(s, i % 2);
	ask(s, begin_ready(s));
	begin_ready(s);
	begin(s);
	MUST(rpma_rt_listener_delete(&listener));
}

static void judge(struct end *e)
{
	int side;

	for (side = 0; side < SIDES; side++) {
		if (value(&e->taken[side]) == value(&e->heard[side]))
			continue;
		fprintf(stderr, "end %d side %d: %u taken, %u heard\n",
			(int)(e - e->scene->ends), side, value(&e->taken[side]),
			value(&e->heard[side]));
		abort();
	}
	CHECK(value(&e->closed) == 1);
	CHECK(value(&e->route_closed) == (e->route != NULL));
	MUST(rpma_rt_conn_unref(&e->conn));
}

static void run_threads(struct scene *s)
{
	static void *(*const bodies[THREADS])(void *) = {
		poster,	 poster,  closer,      closer,
		stopper, stopper, take_active, take_passive};
	pthread_t threads[THREADS];
	int i;

	CHECK(pthread_barrier_init(&s->begin, NULL, THREADS) == 0);
	for (i = 0; i < THREADS; i++)
		CHECK(pthread_create(&threads[i], NULL, bodies[i], s) == 0);
	for (i = 0; i < THREADS; i++)
		CHECK(pthread_join(threads[i], NULL) == 0);
	pthread_barrier_destroy(&s->begin);
}

static void one_round(uint64_t seed, enum rpma_rt_mode mode)
{
	const struct stage_cfg cfg = {
		.pollers = 2, .mode = mode, .depth = DEPTH};
	static struct scene scene;
	struct scene *s = &scene;
	int i;

	memset(s, 0, sizeof(*s));
	/* relaxed: no other thread yet */
	atomic_store_explicit(&s->random, seed, memory_order_relaxed);
	s->stop_at = random_below(s, 60);
	stage_open(&s->stage, &cfg);
	open_ends(s);
	CHECK(s->count == ENDS);
	run_threads(s);
	for (i = 0; i < s->count; i++)
		judge(&s->ends[i]);
	stage_close(&s->stage);
}

int main(int argc, char **argv)
{
	int rounds = argc > 1 ? atoi(argv[1]) : ROUNDS;
	uint64_t seed = argc > 2 ? strtoull(argv[2], NULL, 0) : 1;
	int i;

	for (i = 0; i < rounds; i++) {
		printf("runtime_teardown 1 %lu\n",
		       (unsigned long)(seed + (unsigned)i));
		fflush(stdout);
		one_round(seed + (unsigned)i,
			  i % 2 ? RPMA_RT_MODE_EVENT : RPMA_RT_MODE_ADAPTIVE);
	}
	printf("ok\n");
	return 0;
}
