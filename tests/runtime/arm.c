/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * arm.c -- a poller about to sleep: a completion comes between the last empty
 * poll of a CQ and the arming of the CQ, for each CQ of the channel, or more
 * completions than a poll takes, with no later event to wake a thread; once
 * asleep, the poller sleeps. The back-stop is off, except in the last part:
 * lost events.
 */

#include <limits.h>
#include <sched.h>
#include <stdatomic.h>
#include <time.h>

#include "loop.h"
#include "small_cq.h"
#include "stage.h"

#define DEPTH 48
#define MANY  40 /* more than a poll takes */
#define PAIRS 2
#define CQS   (2 * PAIRS)
#define ROOM \
	(2 * DEPTH + 2) /* of an end, so that each end has a separate
				 * CQ */
#define ROUNDS	10
#define REST_MS 200

struct armed {
	struct stage stage;
	struct world_pair pairs[PAIRS];
	_Atomic int countdown; /* arms until the message; -1: no message */
	_Atomic bool held;     /* the poller reads no event yet */
	_Atomic int failed;
	int pair;     /* whose messages */
	int messages; /* number of messages */
};

static int send_one(struct armed *a)
{
	return rpma_rt_send(a->pairs[a->pair].active, a->stage.mr, 64, 64,
			    RPMA_F_COMPLETION_ALWAYS, 7);
}

/* Right before a CQ is armed, on the poller: messages, whose completions come
 * on two CQs, either of them armed or not. */
static void on_arm(enum rpma_loopback_point point, const void *object,
		   void *arg)
{
	struct armed *a = arg;
	int left;
	int i;

	(void)object;
	/* acquire: pairs with the release in messages__before_arm() */
	while (point == RPMA_LOOPBACK_GET_EVENT &&
	       atomic_load_explicit(&a->held, memory_order_acquire))
		sched_yield();
	if (point != RPMA_LOOPBACK_ARM)
		return;
	/* acquire: pairs with the release in messages__before_arm() */
	left = atomic_load_explicit(&a->countdown, memory_order_acquire);
	if (left < 0)
		return;
	/* relaxed: only the poller counts */
	atomic_store_explicit(&a->countdown, left - 1, memory_order_relaxed);
	if (left != 0)
		return;
	for (i = 0; i < a->messages; i++) {
		/* relaxed: read at the end */
		if (send_one(a))
			atomic_store_explicit(&a->failed, 1,
					      memory_order_relaxed);
	}
}

static void rest_ms(long ms)
{
	const struct timespec ts = {.tv_nsec = ms * 1000000};

	nanosleep(&ts, NULL);
}

static uint64_t polls(struct armed *a)
{
	struct rpma_rt_poller_stats stats;

	MUST(rpma_rt_poller_get_stats(a->stage.world.rt, 0, &stats,
				      sizeof(stats)));
	CHECK(stats.lost_events_recovered == 0);
	return stats.polls;
}

/* Waits until the poller sleeps and looks no more. */
static void wait_for_sleep(struct armed *a)
{
	uint64_t begin = world_now_ms();
	uint64_t before;

	do {
		CHECK(world_now_ms() - begin < WORLD_PATIENCE_MS);
		before = polls(a);
		rest_ms(1);
	} while (polls(a) != before);
}

/*
 * A first message wakes the poller, so that the two CQs of the pair are no
 * longer armed; the events are read when both have arrived. The others come at
 * the nth arm from then, of either CQ.
 */
static void messages__before_arm(struct armed *a, int pair, int nth, int count)
{
	struct rpma_rt_completion item;
	uint64_t sum = 0;
	int i;

	MUST(rpma_rt_recv(a->pairs[pair].passive, a->stage.mr, 0, 64, 1));
	for (i = 0; i < count; i++)
		MUST(rpma_rt_recv(a->pairs[pair].passive, a->stage.mr, 0, 64,
				  7));
	wait_for_sleep(a);
	a->pair = pair;
	a->messages = count;
	/* release, both: pair with the acquires in on_arm() */
	atomic_store_explicit(&a->held, true, memory_order_release);
	atomic_store_explicit(&a->countdown, nth, memory_order_release);
	MUST(rpma_rt_send(a->pairs[pair].active, a->stage.mr, 64, 64,
			  RPMA_F_COMPLETION_ALWAYS, 1));
	atomic_store_explicit(&a->held, false, memory_order_release);
	stage_completion(a->stage.pq, 1, IBV_WC_SUCCESS);
	for (i = 0; i < count; i++)
		stage_completion(a->stage.pq, 7, IBV_WC_SUCCESS);
	/* which was first depends on when the poller fell asleep */
	for (i = 0; i < 1 + count; i++) {
		item = world_next(a->stage.aq);
		CHECK(item.status == IBV_WC_SUCCESS);
		sum += item.context;
	}
	CHECK(sum == 1 + 7 * (uint64_t)count);
}

static void completion__before_its_arm(struct armed *a)
{
	int i;

	for (i = 0; i < ROUNDS * PAIRS * CQS; i++)
		messages__before_arm(a, i / CQS % PAIRS, i % CQS, 1);
	/* relaxed: the completions were taken since */
	CHECK(!atomic_load_explicit(&a->failed, memory_order_relaxed));
}

static void more_than_a_batch__before_an_arm(struct armed *a)
{
	int i;

	for (i = 0; i < PAIRS * CQS; i++)
		messages__before_arm(a, i / CQS, i % CQS, MANY);
	/* relaxed: the completions were taken since */
	CHECK(!atomic_load_explicit(&a->failed, memory_order_relaxed));
}

/* No message comes: the poller sleeps and does not look, not even once. A
 * machine with other work may hold up the last look, and the event for the last
 * look. */
static void idle__asleep(struct armed *a)
{
	uint64_t begin = world_now_ms();
	uint64_t before;

	do {
		CHECK(world_now_ms() - begin < WORLD_PATIENCE_MS);
		before = polls(a);
		rest_ms(REST_MS);
	} while (polls(a) != before);
}

/* The kernel allocates memory for an event, and may fail: the poller looks
 * after a while without an event, and counts the look. */
static void event__lost(const struct loop *loop)
{
	static const struct stage_cfg cfg = {.pollers = 1,
					     .mode = RPMA_RT_MODE_EVENT,
					     .backstop_ms = 10,
					     .depth = DEPTH};
	const uint64_t deadline = world_now_ms() + WORLD_PATIENCE_MS;
	struct rpma_rt_poller_stats stats;
	struct world_pair pair;
	struct stage s;
	uint64_t i = 0;

	small_cq_limit(INT_MAX);
	stage_open(&s, &cfg);
	stage_connect(&s, &pair);
	CHECK(loop->fault("event:of=cq,action=drop") == 0);
	do { /* a completion that finds the poller awake needs no event */
		CHECK(world_now_ms() < deadline);
		stage_ping(&s, &pair, i++);
		MUST(rpma_rt_poller_get_stats(s.world.rt, 0, &stats,
					      sizeof(stats)));
	} while (i < 10 || stats.lost_events_recovered == 0);
	loop->fault_clear();
	stage_disconnect(&s, &pair);
	stage_close(&s);
}

int main(void)
{
	static const struct stage_cfg cfg = {.pollers = 1,
					     .mode = RPMA_RT_MODE_EVENT,
					     .cq_size = ROOM,
					     .depth = DEPTH};
	const struct loop *loop = loop_get();
	struct armed a = {.countdown = -1};
	int i;

	if (loop == NULL) {
		printf("SKIP: needs the loopback device\n");
		return 77;
	}
	small_cq_limit(ROOM);
	stage_open(&a.stage, &cfg);
	for (i = 0; i < PAIRS; i++)
		stage_connect(&a.stage, &a.pairs[i]);
	loop->set_hook(on_arm, &a);
	completion__before_its_arm(&a);
	more_than_a_batch__before_an_arm(&a);
	idle__asleep(&a);
	loop->set_hook(NULL, NULL);
	for (i = 0; i < PAIRS; i++)
		stage_disconnect(&a.stage, &a.pairs[i]);
	stage_close(&a.stage);
	event__lost(loop);
	printf("ok\n");
	return 0;
}
