/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * manual_beside.c -- manual mode: a thread enters a poller without an owner
 * while another thread is inside a round of the poller, in a waiting call. The
 * call of the first thread succeeds after the round; the thread runs its own
 * poller meanwhile. A poller owned by a thread is refused to all others.
 */

#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <string.h>

#include "stage.h"

enum { SHARED, OWN }; /* pollers: of no thread; of the runner */

enum entry { RUN, ARM, ATTACH, RELEASE, ENTRIES };

struct beside {
	struct stage s;
	struct world_pair pairs[2]; /* on poller SHARED, on poller OWN */
	struct rpma_rt_route *route;
	bool is_round_held; /* the next call of the function holds its round */
	enum entry entry;   /* of the runner into SHARED */

	sem_t begin;
	sem_t run;
	_Atomic bool has_run;
};

static int enter(struct rpma_rt *rt, uint32_t poller, enum entry entry)
{
	switch (entry) {
	case RUN:
		return rpma_rt_poller_run(rt, poller, 1);
	case ARM:
		return rpma_rt_poller_arm(rt, poller);
	case ATTACH:
		return rpma_rt_poller_attach(rt, poller);
	default:
		return rpma_rt_poller_release(rt, poller);
	}
}

/* ---------------------------------------------------------- the runner --- */

static uint64_t polls_of_own(struct beside *b)
{
	struct rpma_rt_poller_stats stats;

	MUST(rpma_rt_poller_get_stats(b->s.world.rt, OWN, &stats,
				      sizeof(stats)));
	return stats.polls;
}

static void *runner_main(void *arg)
{
	struct beside *b = arg;
	struct rpma_rt *rt = b->s.world.rt;

	MUST(rpma_rt_poller_attach(rt, OWN));
	sem_post(&b->begin);
	sem_wait(&b->run);
	CHECK(enter(rt, SHARED, b->entry) >= 0);
	/* release: pairs with the acquire in hold_round() */
	atomic_store_explicit(&b->has_run, true, memory_order_release);
	return NULL;
}

/* Inside a round. Returns when the runner waits for the end of the round: then
 * the runner runs its own poller, which has a CQ. */
static void hold_round(struct beside *b)
{
	uint64_t polls = polls_of_own(b);

	sem_post(&b->run);
	while (polls_of_own(b) == polls) {
		/* acquire: pairs with the release in runner_main() */
		CHECK(!atomic_load_explicit(&b->has_run, memory_order_acquire));
		sched_yield();
	}
}

static void called(const struct rpma_rt_completion *item, void *arg)
{
	struct beside *b = arg;

	if (item->kind != RPMA_RT_COMPLETION)
		return;
	CHECK(item->status == IBV_WC_SUCCESS && b->is_round_held);
	b->is_round_held = false;
	hold_round(b);
}

/* ---------------------------------------------------------- the waiter --- */

static void write_to_function(struct beside *b)
{
	struct rpma_rt_wr wr = {
		.op = RPMA_RT_OP_WRITE,
		.flags = RPMA_F_COMPLETION_ALWAYS,
		.local = b->s.mr,
		.remote = b->s.remote,
		.len = 8,
		.route = b->route,
	};

	b->is_round_held = true;
	MUST(world_post_send(b->pairs[SHARED].active, &wr));
}

/* Waits for an item of a queue to which the poller leads. */
static void wait_for_item(struct beside *b)
{
	struct rpma_rt_completion item;

	write_to_function(b);
	while (b->is_round_held)
		MUST(rpma_rt_queue_wait(b->s.aq, &item, 1, 1));
}

/* Waits for answers of the poller. */
static void wait_for_answer(struct beside *b)
{
	struct rpma_rt_conn *conn = b->pairs[SHARED].active;
	struct rpma_rt_route *route;

	write_to_function(b);
	while (b->is_round_held) {
		MUST(rpma_rt_route_open_callback(conn, RPMA_RT_RECV_SIDE,
						 called, b, &route));
		MUST(rpma_rt_route_close(route, NULL));
	}
}

static void entry__beside_a_round_IN_TURN(struct beside *b,
					  void (*wait)(struct beside *b),
					  enum entry entry)
{
	pthread_t thread;

	b->entry = entry;
	atomic_init(&b->has_run, false);
	CHECK(pthread_create(&thread, NULL, runner_main, b) == 0);
	sem_wait(&b->begin);
	wait(b);
	CHECK(pthread_join(thread, NULL) == 0);
}

/* ------------------------------------------------- a poller with owner --- */

static void *refused_main(void *arg)
{
	struct rpma_rt *rt = arg;
	enum entry entry;

	for (entry = RUN; entry < ENTRIES; entry++)
		MUST_ANSWER(RPMA_RT_E_BUSY, enter(rt, SHARED, entry));
	return NULL;
}

/* And the owner stays the owner: its waits run the poller. */
static void entry__of_another_thread_BUSY(struct beside *b)
{
	struct rpma_rt_completion item;
	pthread_t thread;

	MUST(rpma_rt_poller_attach(b->s.world.rt, SHARED));
	CHECK(pthread_create(&thread, NULL, refused_main, b->s.world.rt) == 0);
	CHECK(pthread_join(thread, NULL) == 0);
	MUST(rpma_rt_write(b->pairs[SHARED].active, b->s.remote, 0, b->s.mr, 64,
			   8, RPMA_F_COMPLETION_ALWAYS, 3));
	MUST_ANSWER(1, rpma_rt_queue_wait(b->s.aq, &item, 1, -1));
	CHECK(item.context == 3 && item.status == IBV_WC_SUCCESS);
	MUST(rpma_rt_poller_release(b->s.world.rt, SHARED));
}

/* A run does not make an owner: the next thread runs the poller, too. */
static void entry__does_not_attach(struct beside *b)
{
	struct rpma_rt *rt = b->s.world.rt;
	pthread_t thread;
	enum entry entry;

	for (entry = RUN; entry < ENTRIES; entry++) {
		if (entry == ATTACH)
			continue;
		CHECK(enter(rt, SHARED, RUN) >= 0);
		CHECK(enter(rt, SHARED, ARM) >= 0);
		b->entry = entry;
		sem_post(&b->run);
		CHECK(pthread_create(&thread, NULL, runner_main, b) == 0);
		CHECK(pthread_join(thread, NULL) == 0);
		sem_wait(&b->begin);
	}
}

/* ------------------------------------------------------------------------- */

static void set_up(struct beside *b)
{
	const struct stage_cfg cfg = {
		.pollers = 2, .mode = RPMA_RT_MODE_MANUAL, .depth = 16};
	int i;

	memset(b, 0, sizeof(*b));
	stage_open(&b->s, &cfg);
	sem_init(&b->begin, 0, 0);
	sem_init(&b->run, 0, 0);
	for (i = SHARED; i <= OWN; i++)
		world_connect(&b->s.world, b->s.cfg, i, b->s.aq, b->s.pq,
			      &b->pairs[i]);
	MUST(rpma_rt_route_open_callback(b->pairs[SHARED].active,
					 RPMA_RT_SEND_SIDE, called, b,
					 &b->route));
}

static void tear_down(struct beside *b)
{
	int i;

	for (i = SHARED; i <= OWN; i++)
		stage_disconnect(&b->s, &b->pairs[i]);
	sem_destroy(&b->begin);
	sem_destroy(&b->run);
	stage_close(&b->s);
}

int main(void)
{
	static struct beside b;
	enum entry entry;

	set_up(&b);
	for (entry = RUN; entry < RELEASE; entry++) {
		entry__beside_a_round_IN_TURN(&b, wait_for_item, entry);
		entry__beside_a_round_IN_TURN(&b, wait_for_answer, entry);
	}
	entry__of_another_thread_BUSY(&b);
	entry__does_not_attach(&b);
	tear_down(&b);
	printf("ok\n");
	return 0;
}
