/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * manual_beside.c -- manual mode: a thread runs or arms a poller while another
 * thread is inside a round of the poller, in a call that waits. The call of the
 * first thread succeeds after that round, whether the poller belongs to the
 * thread that waits or to no thread.
 */

#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <string.h>

#include "stage.h"

enum { SHARED, OWN }; /* pollers: of both threads; of the runner alone */

struct beside {
	struct stage s;
	struct world_pair pairs[2]; /* on poller SHARED, on poller OWN */
	struct rpma_rt_route *route;
	bool is_round_held; /* the next call of the function holds its round */
	bool is_armed;	    /* the runner arms, or runs */

	sem_t begin;
	sem_t run;
	_Atomic bool is_run;
};

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

	CHECK(rpma_rt_poller_run(rt, OWN, 1) >= 0);
	sem_post(&b->begin);
	sem_wait(&b->run);
	if (b->is_armed)
		CHECK(rpma_rt_poller_arm(rt, SHARED) >= 0);
	else
		CHECK(rpma_rt_poller_run(rt, SHARED, 1) >= 0);
	/* release: pairs with the acquire in hold_round() */
	atomic_store_explicit(&b->is_run, true, memory_order_release);
	return NULL;
}

/* Inside a round. Returns when the runner waits for the end of the round: then
 * the runner runs its other poller, which has a CQ. */
static void hold_round(struct beside *b)
{
	uint64_t polls = polls_of_own(b);

	sem_post(&b->run);
	while (polls_of_own(b) == polls) {
		/* acquire: pairs with the release in runner_main() */
		CHECK(!atomic_load_explicit(&b->is_run, memory_order_acquire));
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

/* A call that waits for an item runs the pollers of its thread. */
static void wait_as_owner(struct beside *b)
{
	struct rpma_rt_completion item;

	CHECK(rpma_rt_poller_run(b->s.world.rt, SHARED, 1) >= 0);
	write_to_function(b);
	while (b->is_round_held)
		MUST(rpma_rt_queue_wait(b->s.aq, &item, 1, 1));
}

/* A call that waits for a poller of no thread runs that poller. */
static void wait_as_visitor(struct beside *b)
{
	struct rpma_rt_conn *conn = b->pairs[SHARED].active;
	struct rpma_rt_route *route;

	CHECK(rpma_rt_poller_run(b->s.world.rt, SHARED, 1) >= 0);
	MUST(rpma_rt_poller_release(b->s.world.rt, SHARED));
	write_to_function(b);
	while (b->is_round_held) {
		MUST(rpma_rt_route_open_callback(conn, RPMA_RT_RECV_SIDE,
						 called, b, &route));
		MUST(rpma_rt_route_close(route, NULL));
	}
}

static void poller__beside_a_wait_NOT_BUSY(struct beside *b,
					   void (*wait)(struct beside *b),
					   bool is_armed)
{
	pthread_t thread;

	b->is_armed = is_armed;
	atomic_init(&b->is_run, false);
	CHECK(pthread_create(&thread, NULL, runner_main, b) == 0);
	sem_wait(&b->begin);
	wait(b);
	CHECK(pthread_join(thread, NULL) == 0);
}

/* ------------------------------------------------------------------------- */

/* The calling thread owns both pollers afterwards. */
static void own_both(struct beside *b)
{
	CHECK(rpma_rt_poller_run(b->s.world.rt, SHARED, 1) >= 0);
	CHECK(rpma_rt_poller_run(b->s.world.rt, OWN, 1) >= 0);
}

static void set_up(struct beside *b)
{
	const struct stage_cfg cfg = {
		.pollers = 2, .mode = RPMA_RT_MODE_MANUAL, .depth = 16};
	int i;

	memset(b, 0, sizeof(*b));
	stage_open(&b->s, &cfg);
	sem_init(&b->begin, 0, 0);
	sem_init(&b->run, 0, 0);
	own_both(b);
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

	own_both(b);
	for (i = SHARED; i <= OWN; i++)
		stage_disconnect(&b->s, &b->pairs[i]);
	sem_destroy(&b->begin);
	sem_destroy(&b->run);
	stage_close(&b->s);
}

int main(void)
{
	static struct beside b;

	set_up(&b);
	poller__beside_a_wait_NOT_BUSY(&b, wait_as_owner, false);
	poller__beside_a_wait_NOT_BUSY(&b, wait_as_owner, true);
	poller__beside_a_wait_NOT_BUSY(&b, wait_as_visitor, false);
	poller__beside_a_wait_NOT_BUSY(&b, wait_as_visitor, true);
	tear_down(&b);
	printf("ok\n");
	return 0;
}
