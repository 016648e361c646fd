/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * share.c -- threads of the runtime that find nothing on a CPU that other
 * threads want: a yield takes as long as the test says.
 */

#include <stdbool.h>
#include <string.h>
#include <unistd.h>

#include "world.h"
#include "yields.h"

#define SPIN_US 1000000 /* nothing in this test spins to the end */
#define YIELDS	50
#define DEPTH	16
#define SHORT	UINT64_C(20000)	  /* a yield to threads with little to do */
#define LONG	UINT64_C(3000000) /* a yield to threads that compute */

static struct rpma_rt_poller_stats poller_stats(struct world *w)
{
	struct rpma_rt_poller_stats stats;

	MUST(rpma_rt_poller_get_stats(w->rt, 0, &stats, sizeof(stats)));
	return stats;
}

static struct rpma_rt_queue_stats queue_stats(struct rpma_rt_queue *queue)
{
	struct rpma_rt_queue_stats stats;

	MUST(rpma_rt_queue_get_stats(queue, &stats, sizeof(stats)));
	return stats;
}

static void start(struct world *w)
{
	struct rpma_rt_cfg cfg = RPMA_RT_CFG_INIT;

	memset(w, 0, sizeof(*w));
	world_open(w);
	cfg.spin_us = SPIN_US;
	cfg.backstop_ms = 0;
	MUST(rpma_rt_new(&cfg, &w->rt));
}

static void finish(struct world *w)
{
	MUST(rpma_rt_stop(w->rt));
	world_close(w);
}

/* A poller that shares its CPU gives the CPU up again and again. */
static void poller__some_YIELDS(struct world *w)
{
	uint64_t before;

	yields_take(SHORT);
	start(w);
	before = yields_count();
	while (yields_count() - before < YIELDS)
		usleep(1000);
	/* the budget is of the poller's own time */
	CHECK(poller_stats(w).sleeps <= 1);
	finish(w);
}

/* Beside threads that compute, a poller sleeps and does not spin, whatever
 * wakes the poller. */
static void poller__busy_SLEEPS(struct world *w)
{
	struct rpma_rt_conn_cfg *cfg = world_cfg(DEPTH, DEPTH);
	struct rpma_rt_poller_stats stats;
	struct world_pair pair;
	struct rpma_rt_queue *queue;

	yields_take(LONG);
	start(w);
	MUST(rpma_rt_queue_new(w->rt, NULL, &queue));
	world_connect(w, cfg, 0, queue, queue, &pair);
	/* what the connection needed of the poller is over */
	do {
		usleep(1000);
		stats = poller_stats(w);
	} while (stats.sleeps == 0);
	CHECK(stats.empty_polls <= 64 * stats.sleeps);
	MUST(rpma_rt_conn_close(pair.active));
	world_event(queue, RPMA_RT_EVENT_CLOSED);
	world_event(queue, RPMA_RT_EVENT_CLOSED);
	world_unref(&pair);
	MUST(rpma_rt_queue_delete(&queue));
	free(cfg);
	finish(w);
}

/* A consumer of a CPU that other threads want sleeps at once. */
static void consumer__SLEEPS(struct world *w, bool shared, uint64_t away)
{
	struct rpma_rt_queue_cfg cfg = RPMA_RT_QUEUE_CFG_INIT;
	struct rpma_rt_completion item;
	struct rpma_rt_queue *queue;

	yields_take(away);
	start(w);
	cfg.spin_us = SPIN_US;
	cfg.shared = shared;
	MUST(rpma_rt_queue_new(w->rt, &cfg, &queue));
	MUST_ANSWER(0, rpma_rt_queue_wait(queue, &item, 1, 100));
	CHECK(queue_stats(queue).sleeps > 0);
	MUST(rpma_rt_queue_delete(&queue));
	finish(w);
}

int main(void)
{
	static struct world world;
	int shared;

	poller__some_YIELDS(&world);
	poller__busy_SLEEPS(&world);
	for (shared = 0; shared < 2; shared++) {
		consumer__SLEEPS(&world, shared, SHORT);
		consumer__SLEEPS(&world, shared, LONG);
	}
	printf("ok\n");
	return 0;
}
