/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * bounded.c -- no round of a poller is long: not when a connection with many
 * routes ends, not when many connections die at once, not when an SRQ with many
 * receives ends. In manual mode, where a test can count rounds and the work of
 * each round.
 */

#define _GNU_SOURCE
#include <pthread.h>
#include <semaphore.h>
#include <stdbool.h>
#include <string.h>
#include <time.h>

#include "loop.h"
#include "world.h"

#define QUEUES	 300 /* each with a route of either side */
#define PAIRS	 150
#define BUDGET	 32
#define RECEIVES 2000 /* of an SRQ */
#define MSG_SIZE 8

/* The most work of a round: completions up to the budget, 64 messages, and
 * tasks until 64 units are reached, where the last task may have 64 units. */
#define AT_MOST (BUDGET + 64 + 64 + 63)
/* Items of an ending SRQ in a round, and SRQ_CLOSED. */
#define SRQ_AT_MOST (64 + 1)

static struct world world;
static int pollers; /* of the runtime */
static int most;    /* of all rounds */

static void open_world(int count)
{
	pollers = count;
	world_open(&world);
	world_start(&world, count, RPMA_RT_MODE_MANUAL);
}

static uint64_t delivered(int poller)
{
	struct rpma_rt_poller_stats stats;

	MUST(rpma_rt_poller_get_stats(world.rt, poller, &stats, sizeof(stats)));
	return stats.delivered;
}

/* Runs a round of the poller; returns the number of delivered items. */
static uint64_t run_poller(int poller)
{
	uint64_t before = delivered(poller);
	int done;

	done = rpma_rt_poller_run(world.rt, poller, BUDGET);
	CHECK(done >= 0);
	if (done > most)
		most = done;
	return delivered(poller) - before;
}

/* A round of each. */
static uint64_t run(void)
{
	uint64_t items = 0;
	int i;

	for (i = 0; i < pollers; i++)
		items += run_poller(i);
	return items;
}

static bool try_next(struct rpma_rt_queue *queue,
		     struct rpma_rt_completion *item)
{
	int got = rpma_rt_queue_poll(queue, item, 1);

	CHECK(got >= 0);
	return got > 0;
}

static struct rpma_rt_completion next(struct rpma_rt_queue *queue)
{
	struct rpma_rt_completion item;
	uint64_t begin = world_now_ms();

	while (!try_next(queue, &item)) {
		CHECK(world_now_ms() - begin < WORLD_PATIENCE_MS);
		run();
	}
	return item;
}

static struct rpma_rt_conn *next_event(struct rpma_rt_queue *queue,
				       enum rpma_rt_event event)
{
	struct rpma_rt_completion item = next(queue);

	CHECK(item.kind == RPMA_RT_EVENT && item.opcode == event);
	return (struct rpma_rt_conn *)(uintptr_t)item.context;
}

static void connect_pair(const struct rpma_rt_conn_cfg *cfg,
			 struct rpma_rt_queue *queue, struct world_pair *pair)
{
	MUST(world_conn_new(world.rt, world.peer, world.addr, world.port, cfg,
			    0, queue, NULL, &pair->active));
	next_event(queue, RPMA_RT_EVENT_READY);
	MUST(rpma_rt_conn_connect(pair->active, NULL));
	pair->passive = next_event(queue, RPMA_RT_EVENT_REQUEST);
	MUST(rpma_rt_conn_accept(pair->passive, NULL));
	next_event(queue, RPMA_RT_EVENT_ESTABLISHED);
	next_event(queue, RPMA_RT_EVENT_ESTABLISHED);
}

static void put_pair(struct world_pair *pair)
{
	world_unref(pair);
}

/* Returns the number of connections with the state in the dump. */
static int count_state(const char *state)
{
	FILE *file = tmpfile();
	const char *found;
	int count = 0;
	char *text;
	size_t size;

	CHECK(file);
	MUST(rpma_rt_dump(world.rt, fileno(file), RPMA_RT_DUMP_JSON));
	CHECK(fseek(file, 0, SEEK_END) == 0);
	size = (size_t)ftell(file);
	rewind(file);
	text = calloc(1, size + 1);
	CHECK(text && fread(text, 1, size, file) == size);
	for (found = strstr(text, state); found; found = strstr(found, state)) {
		found += strlen(state);
		count++;
	}
	free(text);
	fclose(file);
	return count;
}

/* Runs the pollers until so many connections have the state. */
static void run_until(const char *state, int count)
{
	uint64_t begin = world_now_ms();

	while (count_state(state) != count) {
		CHECK(world_now_ms() - begin < WORLD_PATIENCE_MS);
		run();
	}
}

/* Waits until the control thread has seen the closed connections, so that the
 * next steps are messages for the poller. */
static void await_draining(void)
{
	const struct timespec nap = {.tv_nsec = 1000000};
	uint64_t begin = world_now_ms();

	while (count_state("\"established\"") > 0) {
		CHECK(world_now_ms() - begin < WORLD_PATIENCE_MS);
		nanosleep(&nap, NULL);
	}
}

/* -------------------------------------------------------- many routes --- */

struct routes {
	struct rpma_rt_queue *main; /* events of all connections */
	struct rpma_rt_queue *queues[QUEUES];
	int closed[QUEUES]; /* ROUTE_CLOSED of the ending connection was seen */
	int others[QUEUES]; /* of the other */
	struct world_pair ending;
	struct world_pair other;
	struct rpma_mr_local *mr;
	char *memory;
};

static void make_queues(struct routes *r)
{
	struct rpma_rt_queue_cfg cfg = RPMA_RT_QUEUE_CFG_INIT;
	int i;

	cfg.lane_size = 64;
	cfg.backlog_limit = 64;
	for (i = 0; i < QUEUES; i++)
		MUST(rpma_rt_queue_new(world.rt, &cfg, &r->queues[i]));
}

static void open_routes(struct routes *r, struct rpma_rt_conn *conn)
{
	struct rpma_rt_route *route;
	int side;
	int i;

	for (side = 0; side < 2; side++) {
		for (i = 0; i < QUEUES; i++)
			MUST(rpma_rt_route_open(conn, (enum rpma_rt_side)side,
						r->queues[i], &route));
	}
}

/* How many queues have their ROUTE_CLOSED by now. */
static int count_closed(struct routes *r)
{
	struct rpma_rt_completion item;
	int told = 0;
	int i;

	for (i = 0; i < QUEUES; i++) {
		while (try_next(r->queues[i], &item)) {
			CHECK(item.kind == RPMA_RT_EVENT &&
			      item.opcode == RPMA_RT_EVENT_ROUTE_CLOSED);
			if (item.context == (uintptr_t)r->ending.active)
				r->closed[i]++;
			else
				r->others[i]++;
		}
		told += r->closed[i];
	}
	return told;
}

/* Returns true if a send completes before its post returns. */
static bool is_at_once(void)
{
	const struct loop *loop = loop_get();

	return loop != NULL && loop->get_mode() == RPMA_LOOPBACK_INLINE;
}

/* Takes items of the main queue until CLOSED of the active end: a send of the
 * other connection is posted when the first queue was told. */
static void follow_end(struct routes *r)
{
	uint64_t begin = world_now_ms();
	struct rpma_rt_completion item;
	bool posted = false;
	bool sent = false;
	int told = 0;

	for (;;) {
		CHECK(world_now_ms() - begin < WORLD_PATIENCE_MS);
		CHECK(run() <= AT_MOST);
		while (try_next(r->main, &item)) {
			sent |= item.kind == RPMA_RT_COMPLETION;
			if (item.kind == RPMA_RT_EVENT &&
			    item.context == (uintptr_t)r->ending.active) {
				CHECK(item.opcode == RPMA_RT_EVENT_CLOSED);
				/* every ROUTE_CLOSED before, once, and in
				 * between another connection was served */
				CHECK(count_closed(r) == QUEUES);
				CHECK(sent || !is_at_once());
				return;
			}
		}
		if (told == 0)
			told = count_closed(r);
		if (told == 0 || posted)
			continue;
		MUST(rpma_rt_send(r->other.active, r->mr, 0, MSG_SIZE,
				  RPMA_F_COMPLETION_ALWAYS, 7));
		posted = true;
	}
}

static void routes_set_up(struct routes *r, int count)
{
	struct rpma_rt_listener *listener;

	memset(r, 0, sizeof(*r));
	open_world(count);
	MUST(rpma_rt_queue_new(world.rt, NULL, &r->main));
	r->memory = aligned_alloc(4096, 4096);
	CHECK(r->memory);
	MUST(rpma_mr_reg(world.peer, r->memory, 4096,
			 RPMA_MR_USAGE_SEND | RPMA_MR_USAGE_RECV, &r->mr));
	listener = world_listen(&world, NULL, r->main);
	connect_pair(NULL, r->main, &r->ending);
	connect_pair(NULL, r->main, &r->other);
	MUST(rpma_rt_listener_delete(&listener));
	next_event(r->main, RPMA_RT_EVENT_LISTENER_CLOSED);
	MUST(rpma_rt_recv(r->other.passive, r->mr, 0, MSG_SIZE, 8));
}

static void routes_tear_down(struct routes *r, struct rpma_rt_queue *queue)
{
	int i;

	put_pair(&r->ending);
	put_pair(&r->other);
	MUST(rpma_rt_stop(world.rt));
	MUST(rpma_rt_queue_delete(&queue));
	for (i = 0; i < QUEUES; i++)
		MUST(rpma_rt_queue_delete(&r->queues[i]));
	MUST(rpma_rt_queue_delete(&r->main));
	MUST(rpma_mr_dereg(&r->mr));
	free(r->memory);
	world_close(&world);
}

static void end__many_routes_a_few_each_round(void)
{
	struct routes r;
	int i;

	routes_set_up(&r, 1);
	make_queues(&r);
	open_routes(&r, r.ending.active);
	most = 0;
	MUST(rpma_rt_conn_close(r.ending.active));
	follow_end(&r);
	CHECK(most <= AT_MOST);
	for (i = 0; i < QUEUES; i++)
		CHECK(r.closed[i] == 1);
	routes_tear_down(&r, NULL);
}

/* A permit for each object of verbs that may be destroyed. */
static sem_t permits;

static void hold_destroys(enum rpma_loopback_point point, const void *object,
			  void *arg)
{
	(void)object;
	(void)arg;
	if (point == RPMA_LOOPBACK_DESTROY)
		CHECK(sem_wait(&permits) == 0);
}

static void permit(int count)
{
	while (count-- > 0)
		CHECK(sem_post(&permits) == 0);
}

/* Opens a connection served only by the second poller. */
static struct rpma_rt_conn *open_aside(struct rpma_rt_queue *queue)
{
	struct rpma_rt_conn *conn;

	MUST(world_conn_new(world.rt, world.peer, world.addr, world.port, NULL,
			    1, queue, NULL, &conn));
	next_event(queue, RPMA_RT_EVENT_READY);
	return conn;
}

/*
 * Two connections begin their ends in the same round of the first poller. The
 * two pairs have four connections, and all four die; their queue pairs, then
 * the queue pair of aside, then their ids wait for the only destroyer of the
 * device. While the destroyer is held at aside, all four reach the last step,
 * in which the end is reported, and behind the id of aside all four have been
 * reported.
 */
static void make_ends_meet(const struct loop *loop, struct routes *r,
			   struct rpma_rt_queue *queue,
			   struct rpma_rt_conn *aside)
{
	struct rpma_rt_completion item;
	uint64_t begin = world_now_ms();

	CHECK(sem_init(&permits, 0, 0) == 0);
	loop->set_hook(hold_destroys, NULL);
	MUST(rpma_rt_conn_close(r->ending.active));
	MUST(rpma_rt_conn_close(r->other.active));
	run_until("\"sweeping\"", 4);
	MUST(rpma_rt_conn_close(aside));
	run_until("\"sweeping\"", 5);
	permit(4);
	run_until("\"deleting\"", 4);
	permit(1000); /* whatever there is */
	while (!try_next(queue, &item)) {
		CHECK(world_now_ms() - begin < WORLD_PATIENCE_MS);
		run_poller(1);
	}
	CHECK(item.kind == RPMA_RT_EVENT &&
	      item.opcode == RPMA_RT_EVENT_CLOSED);
	loop->set_hook(NULL, NULL);
	CHECK(sem_destroy(&permits) == 0);
}

/* Two connections leading to the same queues. On a device other than loopback
 * the ends may meet or not. */
static void end__two_of_many_routes_once_each(void)
{
	const struct loop *loop = loop_get();
	struct rpma_rt_completion item;
	struct rpma_rt_queue *queue;
	struct rpma_rt_conn *aside;
	struct routes r;
	int left = 4; /* CLOSED of both pairs */
	int i;

	routes_set_up(&r, 2);
	make_queues(&r);
	open_routes(&r, r.ending.active);
	open_routes(&r, r.other.active);
	MUST(rpma_rt_queue_new(world.rt, NULL, &queue));
	aside = open_aside(queue);
	if (loop != NULL) {
		make_ends_meet(loop, &r, queue, aside);
	} else {
		MUST(rpma_rt_conn_close(r.ending.active));
		MUST(rpma_rt_conn_close(r.other.active));
	}
	while (left > 0) {
		item = next(r.main);
		left -= item.kind == RPMA_RT_EVENT &&
			item.opcode == RPMA_RT_EVENT_CLOSED;
	}
	CHECK(count_closed(&r) == QUEUES);
	for (i = 0; i < QUEUES; i++)
		CHECK(r.closed[i] == 1 && r.others[i] == 1);
	MUST(rpma_rt_conn_unref(&aside));
	routes_tear_down(&r, queue);
}

/* ---------------------------------------------------- many connections --- */

static void deaths__many_a_few_each_round(void)
{
	static struct world_pair pairs[PAIRS];
	struct rpma_rt_listener *listener;
	struct rpma_rt_conn_cfg *cfg;
	struct rpma_rt_queue *queue;
	int i;

	open_world(1);
	MUST(rpma_rt_queue_new(world.rt, NULL, &queue));
	cfg = world_cfg(2, 2);
	listener = world_listen(&world, cfg, queue);
	for (i = 0; i < PAIRS; i++)
		connect_pair(cfg, queue, &pairs[i]);
	MUST(rpma_rt_listener_delete(&listener));
	next_event(queue, RPMA_RT_EVENT_LISTENER_CLOSED);
	for (i = 0; i < PAIRS; i++) {
		MUST(rpma_rt_conn_close(pairs[i].active));
		MUST(rpma_rt_conn_close(pairs[i].passive));
	}
	await_draining();
	most = 0;
	for (i = 0; i < 2 * PAIRS; i++)
		next_event(queue, RPMA_RT_EVENT_CLOSED);
	printf("%d connections, at most %d a round\n", 2 * PAIRS, most);
	CHECK(most <= AT_MOST);
	for (i = 0; i < PAIRS; i++)
		put_pair(&pairs[i]);
	MUST(rpma_rt_stop(world.rt));
	MUST(rpma_rt_queue_delete(&queue));
	free(cfg);
	world_close(&world);
}

/* ------------------------------------------------------- many receives --- */

static struct rpma_rt_srq *make_srq(struct rpma_rt_queue *queue)
{
	struct rpma_rt_srq_cfg cfg = RPMA_RT_SRQ_CFG_INIT;
	struct rpma_rt_srq *srq;

	cfg.peer = world.peer;
	cfg.queue = queue;
	cfg.srq_size = RECEIVES;
	MUST(rpma_rt_srq_new(world.rt, &cfg, &srq));
	return srq;
}

static void *delete_srq(void *arg)
{
	struct rpma_rt_srq *srq = arg;

	MUST(rpma_rt_srq_delete(&srq));
	return NULL;
}

/*
 * Takes pending receives, each once; sets *seen at SRQ_CLOSED, the last item.
 */
static bool take_receives(struct rpma_rt_queue *queue, bool *seen)
{
	struct rpma_rt_completion item;

	while (try_next(queue, &item)) {
		if (item.kind == RPMA_RT_EVENT) {
			CHECK(item.opcode == RPMA_RT_EVENT_SRQ_CLOSED);
			CHECK(!try_next(queue, &item));
			return true;
		}
		CHECK(item.context < RECEIVES && !seen[item.context]);
		seen[item.context] = true;
	}
	return false;
}

/* Another thread deletes, and waits for this thread to run the poller. */
static void delete__many_receives_a_few_each_round(void)
{
	static bool seen[RECEIVES];
	uint64_t begin = world_now_ms();
	struct rpma_rt_queue *queue;
	struct rpma_rt_srq *srq;
	uint64_t largest = 0;
	pthread_t deleter;
	uint64_t items;
	int i;

	open_world(1);
	MUST(rpma_rt_queue_new(world.rt, NULL, &queue));
	srq = make_srq(queue);
	MUST(rpma_rt_poller_attach(world.rt, 0));
	for (i = 0; i < RECEIVES; i++)
		MUST(rpma_rt_srq_recv(srq, NULL, 0, 0, (uint64_t)i));
	CHECK(pthread_create(&deleter, NULL, delete_srq, srq) == 0);
	do {
		CHECK(world_now_ms() - begin < WORLD_PATIENCE_MS);
		items = run();
		if (items > largest)
			largest = items;
	} while (!take_receives(queue, seen));
	CHECK(pthread_join(deleter, NULL) == 0);
	printf("%d receives, at most %d items a round\n", RECEIVES,
	       (int)largest);
	CHECK(largest <= SRQ_AT_MOST);
	for (i = 0; i < RECEIVES; i++)
		CHECK(seen[i]);
	MUST(rpma_rt_stop(world.rt));
	MUST(rpma_rt_queue_delete(&queue));
	world_close(&world);
}

/* usage: runtime_bounded [case] */
int main(int argc, char *argv[])
{
	static const struct {
		const char *name;
		void (*play)(void);
	} cases[] = {
		{"end__many_routes_a_few_each_round",
		 end__many_routes_a_few_each_round},
		{"end__two_of_many_routes_once_each",
		 end__two_of_many_routes_once_each},
		{"deaths__many_a_few_each_round",
		 deaths__many_a_few_each_round},
		{"delete__many_receives_a_few_each_round",
		 delete__many_receives_a_few_each_round},
	};
	bool has_played = false;
	size_t i;

	for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		if (argc > 1 && strstr(cases[i].name, argv[1]) == NULL)
			continue;
		cases[i].play();
		has_played = true;
	}
	CHECK(has_played); /* a name that no case has is a mistake */
	return 0;
}
