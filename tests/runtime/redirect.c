/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * redirect.c -- a connection handed from worker to worker, and closed routes,
 * while messages go through the connection. Each completion comes once, to a
 * worker; ROUTE_CLOSED is the last item of the connection in a queue that the
 * connection has left, once each time; a refused sender is told, wherever the
 * connection leads by then; a connection that dies meanwhile ends as ever;
 * numbers of routes are used again.
 *
 * usage: runtime_redirect [messages [lives [routes]]]
 */

#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <string.h>
#include <time.h>

#include "stage.h"

#define MESSAGES 100000
#define LIVES	 100
#define DEPTH	 32
#define LANE	 64
#define LIMIT	 4
#define WORKERS	 3
#define TAKE	 8
#define ROUTES	 100000 /* opened and closed on one connection */

#define ALWAYS RPMA_F_COMPLETION_ALWAYS

struct scene;

/* a queue and its consumer thread */
struct worker {
	struct scene *scene;
	struct rpma_rt_queue *queue;
	pthread_t thread;
	_Atomic uint32_t ends; /* ROUTE_CLOSED, all of them */
	uint64_t taken;
};

struct scene {
	struct stage stage;
	struct world_pair pair;
	struct worker workers[WORKERS];
	uint32_t count;

	/* by message: number of completions */
	_Atomic uint8_t *sent;
	_Atomic uint8_t *received;
	_Atomic uint64_t completed; /* both sides */
	_Atomic bool stop;
	_Atomic uint32_t closed; /* CLOSED of the active end */
	sem_t writable[2];	 /* by side */
	_Atomic bool is_dead;
};

/* -------------------------------------------------------------- workers --- */

static void take_completion(struct scene *s,
			    const struct rpma_rt_completion *item)
{
	bool is_send = item->opcode == IBV_WC_SEND;
	_Atomic uint8_t *seen = is_send ? s->sent : s->received;

	CHECK(item->context < s->count);
	/* relaxed: summed after joining the workers, or by a worker that finds
	 * the message twice */
	CHECK(atomic_fetch_add_explicit(&seen[item->context], 1,
					memory_order_relaxed) == 0);
	/* release: pairs with the acquire of the thread that waits for all */
	atomic_fetch_add_explicit(&s->completed, 1, memory_order_release);
}

static void take_event(struct worker *w, const struct rpma_rt_completion *item)
{
	struct scene *s = w->scene;

	if (item->opcode == RPMA_RT_EVENT_ROUTE_CLOSED) {
		CHECK(item->context == (uintptr_t)s->pair.active);
		/* relaxed: a count */
		atomic_fetch_add_explicit(&w->ends, 1, memory_order_relaxed);
	} else {
		CHECK(item->opcode == RPMA_RT_EVENT_CLOSED);
		/* relaxed: likewise; read after a join */
		atomic_fetch_add_explicit(&s->closed, 1, memory_order_relaxed);
	}
}

static void *work(void *arg)
{
	struct rpma_rt_completion items[TAKE];
	struct worker *w = arg;
	struct scene *s = w->scene;
	int got;
	int i;

	/* relaxed: seen a little later */
	while (!atomic_load_explicit(&s->stop, memory_order_relaxed)) {
		got = rpma_rt_queue_wait(w->queue, items, TAKE, 10);
		CHECK(got >= 0);
		w->taken += (uint64_t)got;
		for (i = 0; i < got; i++) {
			if (items[i].kind == RPMA_RT_COMPLETION)
				take_completion(s, &items[i]);
			else if (items[i].kind == RPMA_RT_WRITABLE)
				sem_post(&s->writable[items[i].opcode]);
			else
				take_event(w, &items[i]);
		}
	}
	return NULL;
}

/* -------------------------------------------------------------- posters --- */

/* False: the connection is closed. */
static bool await_writable(struct scene *s, enum rpma_rt_side side)
{
	struct timespec until;
	uint64_t begin = world_now_ms();

	/* relaxed: seen a little later */
	while (!atomic_load_explicit(&s->is_dead, memory_order_relaxed)) {
		clock_gettime(CLOCK_REALTIME, &until);
		until.tv_nsec += 50 * 1000000;
		if (until.tv_nsec >= 1000000000) {
			until.tv_nsec -= 1000000000;
			until.tv_sec++;
		}
		if (sem_timedwait(&s->writable[side], &until) == 0)
			return true;
		CHECK(world_now_ms() - begin < WORLD_PATIENCE_MS);
	}
	return false;
}

/* Sends from the active end: messages, each with its number. */
static void *send_main(void *arg)
{
	struct scene *s = arg;
	uint32_t i = 0;
	int ret;

	while (i < s->count) {
		ret = rpma_rt_send(s->pair.active, s->stage.mr, 64, 8, ALWAYS,
				   i);
		if (ret == RPMA_RT_E_CLOSED)
			break;
		if (ret == RPMA_E_AGAIN) {
			if (!await_writable(s, RPMA_RT_SEND_SIDE))
				break;
			continue;
		}
		MUST(ret);
		i++;
	}
	return NULL;
}

/* Receives at the passive end: receives posted ahead, as many as there is room
 * for. Receives complete in order, so the number of a receive is the number of
 * its message. */
static void *sink_main(void *arg)
{
	struct rpma_rt_completion item;
	struct scene *s = arg;
	uint32_t posted = 0;
	int ret;

	while (posted < DEPTH) {
		MUST(rpma_rt_recv(s->pair.passive, s->stage.mr, 0, 64, posted));
		posted++;
	}
	for (;;) {
		ret = rpma_rt_queue_wait(s->stage.pq, &item, 1,
					 WORLD_PATIENCE_MS);
		CHECK(ret == 1);
		if (item.kind == RPMA_RT_EVENT)
			break;
		if (item.kind != RPMA_RT_COMPLETION ||
		    item.status != IBV_WC_SUCCESS)
			continue;
		take_completion(s, &item);
		ret = rpma_rt_recv(s->pair.passive, s->stage.mr, 0, 64, posted);
		CHECK(ret == 0 || ret == RPMA_RT_E_CLOSED);
		posted++;
	}
	CHECK(item.opcode == RPMA_RT_EVENT_CLOSED);
	return NULL;
}

/* ---------------------------------------------------------------- scene --- */

static void scene_open(struct scene *s, enum rpma_rt_mode mode, uint32_t count)
{
	const struct stage_cfg cfg = {
		.pollers = 1, .mode = mode, .depth = DEPTH};
	struct rpma_rt_queue_cfg qcfg = RPMA_RT_QUEUE_CFG_INIT;
	struct worker *w;
	int i;

	memset(s, 0, sizeof(*s));
	stage_open(&s->stage, &cfg);
	stage_connect(&s->stage, &s->pair);
	s->count = count;
	s->sent = calloc(count, sizeof(*s->sent));
	s->received = calloc(count, sizeof(*s->received));
	CHECK(s->sent && s->received);
	for (i = 0; i < 2; i++)
		CHECK(sem_init(&s->writable[i], 0, 0) == 0);
	qcfg.lane_size = LANE;
	qcfg.backlog_limit = LIMIT;
	for (i = 0; i < WORKERS; i++) {
		w = &s->workers[i];
		w->scene = s;
		MUST(rpma_rt_queue_new(s->stage.world.rt, &qcfg, &w->queue));
	}
	/* ESTABLISHED is for the first worker */
	MUST(rpma_rt_conn_set_queue(s->pair.active, s->workers[0].queue));
	world_event(s->stage.aq, RPMA_RT_EVENT_ROUTE_CLOSED);
	for (i = 0; i < WORKERS; i++)
		CHECK(pthread_create(&s->workers[i].thread, NULL, work,
				     &s->workers[i]) == 0);
}

static void scene_close(struct scene *s)
{
	int i;

	for (i = 0; i < WORKERS; i++)
		MUST(rpma_rt_queue_delete(&s->workers[i].queue));
	for (i = 0; i < 2; i++)
		CHECK(sem_destroy(&s->writable[i]) == 0);
	world_unref(&s->pair);
	stage_close(&s->stage);
	free((void *)s->sent);
	free((void *)s->received);
}

static void join_workers(struct scene *s)
{
	int i;

	/* relaxed: seen a little later */
	atomic_store_explicit(&s->stop, true, memory_order_relaxed);
	for (i = 0; i < WORKERS; i++)
		pthread_join(s->workers[i].thread, NULL);
}

static uint32_t count_ends(struct scene *s)
{
	uint32_t ends = 0;
	int i;

	for (i = 0; i < WORKERS; i++)
		/* relaxed: the workers were joined, or the value is read
		 * again */
		ends += atomic_load_explicit(&s->workers[i].ends,
					     memory_order_relaxed);
	return ends;
}

static uint64_t completed(struct scene *s)
{
	/* acquire: pairs with take_completion() */
	return atomic_load_explicit(&s->completed, memory_order_acquire);
}

/* Asserts both completions of each message, once. */
static void check_all(struct scene *s)
{
	uint32_t i;

	for (i = 0; i < s->count; i++) {
		/* relaxed: everybody was joined */
		CHECK(atomic_load_explicit(&s->sent[i], memory_order_relaxed) ==
		      1);
		/* relaxed: likewise */
		CHECK(atomic_load_explicit(&s->received[i],
					   memory_order_relaxed) == 1);
	}
}

static bool is_closed_once(struct scene *s)
{
	/* relaxed: as above */
	return atomic_load_explicit(&s->closed, memory_order_relaxed) == 1;
}

/* Closes, and waits until every worker has the last item. */
static void end(struct scene *s, uint32_t ends)
{
	uint64_t begin = world_now_ms();

	MUST(rpma_rt_conn_close(s->pair.active));
	/* relaxed: looked at again */
	while (atomic_load_explicit(&s->closed, memory_order_relaxed) == 0 ||
	       count_ends(s) < ends) {
		CHECK(world_now_ms() - begin < WORLD_PATIENCE_MS);
		sched_yield();
	}
	/* relaxed: seen a little later */
	atomic_store_explicit(&s->is_dead, true, memory_order_relaxed);
}

/* ---------------------------------------------------------------- tests --- */

/* Moves the connection around, as quickly as the poller answers. A worker that
 * is behind does not get the connection. Returns the number of moves. */
static uint32_t hand_around(struct scene *s, uint64_t until)
{
	uint32_t moved = 0;
	uint32_t at = 0;
	int ret;

	while (completed(s) < until) {
		at = (at + 1) % WORKERS;
		ret = rpma_rt_conn_set_queue(s->pair.active,
					     s->workers[at].queue);
		if (ret == RPMA_RT_E_BUSY) {
			at = (at + WORKERS - 1) % WORKERS;
			sched_yield();
			continue;
		}
		MUST(ret);
		moved++;
	}
	return moved;
}

static void set_queue__all_the_time(enum rpma_rt_mode mode, uint32_t count)
{
	static struct scene s;
	pthread_t sender;
	pthread_t sink;
	uint32_t moved;

	scene_open(&s, mode, count);
	CHECK(pthread_create(&sink, NULL, sink_main, &s) == 0);
	CHECK(pthread_create(&sender, NULL, send_main, &s) == 0);
	moved = hand_around(&s, 2 * (uint64_t)count);
	pthread_join(sender, NULL);
	end(&s, moved);
	pthread_join(sink, NULL);
	join_workers(&s);
	check_all(&s);
	CHECK(count_ends(&s) == moved && is_closed_once(&s));
	printf("%u messages, moved %u times: %lu, %lu, %lu items\n", count,
	       moved, (unsigned long)s.workers[0].taken,
	       (unsigned long)s.workers[1].taken,
	       (unsigned long)s.workers[2].taken);
	scene_close(&s);
}

/* Sends by a route that another thread closes meanwhile. */
struct sender {
	struct scene *s;
	_Atomic(struct rpma_rt_route *) route;
	uint32_t refused;
};

static void *send_by_route(void *arg)
{
	struct sender *sender = arg;
	struct scene *s = sender->s;
	struct rpma_rt_wr wr = {.op = RPMA_RT_OP_SEND,
				.flags = ALWAYS,
				.local = s->stage.mr,
				.local_offset = 64,
				.len = 8};
	int ret;

	while (wr.context < s->count) {
		/* acquire: pairs with the release of the thread that opens */
		wr.route = atomic_load_explicit(&sender->route,
						memory_order_acquire);
		ret = world_post_send(s->pair.active, &wr);
		if (ret == RPMA_RT_E_CLOSED) {
			sender->refused++;
			continue; /* there is another by now */
		}
		if (ret == RPMA_E_AGAIN) {
			CHECK(await_writable(s, RPMA_RT_SEND_SIDE));
			continue;
		}
		MUST(ret);
		wr.context++;
	}
	return NULL;
}

static struct rpma_rt_route *open_to(struct scene *s, uint32_t at)
{
	struct rpma_rt_route *route;
	int ret;

	while ((ret = rpma_rt_route_open(s->pair.active, RPMA_RT_SEND_SIDE,
					 s->workers[at].queue, &route)) ==
	       RPMA_RT_E_BUSY)
		sched_yield();
	MUST(ret);
	return route;
}

/* The own queue is the first worker's throughout; routes lead to the others. */
static void close__under_posts(enum rpma_rt_mode mode, uint32_t count)
{
	static struct scene s;
	struct sender sender = {.s = &s};
	struct rpma_rt_route *former;
	struct rpma_rt_route *next;
	pthread_t thread;
	pthread_t sink;
	uint32_t closed = 0;
	uint32_t at = 1;
	int ret;

	scene_open(&s, mode, count);
	former = open_to(&s, at);
	/* release: to the sender */
	atomic_store_explicit(&sender.route, former, memory_order_release);
	CHECK(pthread_create(&sink, NULL, sink_main, &s) == 0);
	CHECK(pthread_create(&thread, NULL, send_by_route, &sender) == 0);
	while (completed(&s) < 2 * (uint64_t)count) {
		at = 3 - at;
		next = open_to(&s, at);
		if (closed % 2 == 0)
			atomic_store_explicit(&sender.route, next,
					      /* release: as above */
					      memory_order_release);
		while ((ret = rpma_rt_route_close(former,
						  closed % 3 ? next : NULL)) ==
		       RPMA_RT_E_BUSY)
			sched_yield();
		MUST(ret);
		/* release: as above; half of the posts find the route closed */
		atomic_store_explicit(&sender.route, next,
				      memory_order_release);
		former = next;
		closed++;
	}
	pthread_join(thread, NULL);
	end(&s, closed + 1);
	pthread_join(sink, NULL);
	join_workers(&s);
	check_all(&s);
	CHECK(count_ends(&s) == closed + 1 && is_closed_once(&s));
	printf("%u messages, %u routes closed, %u posts refused for it\n",
	       count, closed, sender.refused);
	scene_close(&s);
}

/* The connection ends while moving around. */
static void set_queue__it_dies(uint32_t lives)
{
	static struct scene s;
	struct rpma_rt_route *route;
	pthread_t sender;
	pthread_t sink;
	uint32_t moved;
	uint32_t life;
	uint32_t i;
	int ret;

	for (life = 0; life < lives; life++) {
		scene_open(&s, RPMA_RT_MODE_EVENT, 100000);
		CHECK(pthread_create(&sink, NULL, sink_main, &s) == 0);
		CHECK(pthread_create(&sender, NULL, send_main, &s) == 0);
		moved = hand_around(&s, 50 + life);
		MUST(rpma_rt_conn_close(life % 4 < 2 ? s.pair.passive
						     : s.pair.active));
		for (i = 0;; i++) {
			ret = rpma_rt_conn_set_queue(
				s.pair.active, s.workers[i % WORKERS].queue);
			if (ret == RPMA_RT_E_CLOSED)
				break;
			if (ret == RPMA_RT_E_BUSY)
				continue;
			MUST(ret);
		}
		ret = rpma_rt_route_open(s.pair.active, RPMA_RT_SEND_SIDE,
					 s.stage.aq, &route);
		CHECK(ret == RPMA_RT_E_CLOSED);
		end(&s, moved);
		pthread_join(sender, NULL);
		pthread_join(sink, NULL);
		join_workers(&s);
		CHECK(is_closed_once(&s));
		scene_close(&s);
	}
	printf("%u died while they were handed around\n", lives);
}

/* As many as three CQs have numbers. */
static void close__numbers_come_back(uint32_t routes)
{
	const struct stage_cfg cfg = {
		.pollers = 1, .mode = RPMA_RT_MODE_ADAPTIVE, .depth = DEPTH};
	struct rpma_rt_route *route;
	struct rpma_rt_queue *queue;
	struct world_pair pair;
	struct stage s;
	uint32_t i;

	stage_open(&s, &cfg);
	stage_connect(&s, &pair);
	MUST(rpma_rt_queue_new(s.world.rt, NULL, &queue));
	for (i = 0; i < routes; i++) {
		MUST(rpma_rt_route_open(pair.active, RPMA_RT_SEND_SIDE, queue,
					&route));
		MUST(rpma_rt_route_close(route, NULL));
		world_event(queue, RPMA_RT_EVENT_ROUTE_CLOSED);
	}
	MUST(rpma_rt_queue_delete(&queue));
	stage_disconnect(&s, &pair);
	stage_close(&s);
	printf("%u routes, one after the other\n", routes);
}

int main(int argc, char **argv)
{
	uint32_t count = argc > 1 ? (uint32_t)atoi(argv[1]) : MESSAGES;
	uint32_t lives = argc > 2 ? (uint32_t)atoi(argv[2]) : LIVES;
	uint32_t routes = argc > 3 ? (uint32_t)atoi(argv[3]) : ROUTES;

	set_queue__all_the_time(RPMA_RT_MODE_ADAPTIVE, count);
	set_queue__all_the_time(RPMA_RT_MODE_EVENT, count / 4);
	close__under_posts(RPMA_RT_MODE_ADAPTIVE, count / 2);
	close__under_posts(RPMA_RT_MODE_EVENT, count / 4);
	set_queue__it_dies(lives);
	close__numbers_come_back(routes);
	return 0;
}
