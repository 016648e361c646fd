/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * rt_arm.c -- a poller about to sleep: a completion comes between the last
 * poll of a CQ that found nothing and its arming, for each CQ of the channel,
 * with nothing after it that would wake anybody; and once asleep, it sleeps.
 * The back-stop is off.
 */

#include <stdatomic.h>
#include <time.h>

#include "loop.h"
#include "stage.h"

#define DEPTH	4
#define PAIRS	2
#define CQS	(2 * PAIRS)
#define ROOM	(2 * DEPTH + 2) /* of one end, so that each has its own CQ */
#define ROUNDS	10
#define REST_MS 200

struct armed {
	struct stage stage;
	struct world_pair pairs[PAIRS];
	_Atomic int countdown; /* arms until the message; -1: none to come */
	_Atomic int failed;
	int pair; /* whose message */
};

/* Right before a CQ is armed, on the poller: a message, whose completions come
 * on two CQs, either of them armed or not. */
static void on_arm(enum rpma_loopback_point point, const void *object,
		   void *arg)
{
	struct armed *a = arg;
	int left;

	(void)object;
	if (point != RPMA_LOOPBACK_ARM)
		return;
	/* acquire: pairs with the release in message__before_arm() */
	left = atomic_load_explicit(&a->countdown, memory_order_acquire);
	if (left < 0)
		return;
	/* relaxed: only the poller counts */
	atomic_store_explicit(&a->countdown, left - 1, memory_order_relaxed);
	if (left == 0 && rpma_rt_send(a->pairs[a->pair].active, a->stage.mr, 64,
				      64, RPMA_F_COMPLETION_ALWAYS, 7))
		/* relaxed: looked at when it is over */
		atomic_store_explicit(&a->failed, 1, memory_order_relaxed);
}

/* The message comes at the nth arm from now, on whichever CQ that is. */
static void message__before_arm(struct armed *a, int pair, int nth)
{
	struct rpma_rt_route *route;

	MUST(rpma_rt_recv(a->pairs[pair].passive, a->stage.mr, 0, 64, 7));
	a->pair = pair;
	/* release: pairs with the acquire in on_arm() */
	atomic_store_explicit(&a->countdown, nth, memory_order_release);
	/* wakes the poller, which then goes to sleep again */
	MUST(rpma_rt_route_open(a->pairs[pair].active, RPMA_RT_SEND_SIDE,
				a->stage.aq, &route));
	stage_completion(a->stage.pq, 7, IBV_WC_SUCCESS);
	stage_completion(a->stage.aq, 7, IBV_WC_SUCCESS);
}

static void completion__before_its_arm(struct armed *a)
{
	int i;

	for (i = 0; i < ROUNDS * PAIRS * CQS; i++)
		message__before_arm(a, i / CQS % PAIRS, i % CQS);
	/* relaxed: the completions were taken since */
	CHECK(!atomic_load_explicit(&a->failed, memory_order_relaxed));
}

static void rest_ms(long ms)
{
	const struct timespec ts = {.tv_nsec = ms * 1000000};

	nanosleep(&ts, NULL);
}

static uint64_t polls(struct armed *a)
{
	struct rpma_rt_poller_stats stats;

	MUST(rpma_rt_get_poller_stats(a->stage.world.rt, 0, &stats));
	CHECK(stats.lost_events_recovered == 0);
	return stats.polls;
}

/* Nothing comes: once it sleeps it does not look, not even once. */
static void idle__asleep(struct armed *a)
{
	uint64_t begin = world_now_ms();
	uint64_t before;

	do {
		CHECK(world_now_ms() - begin < WORLD_PATIENCE_MS);
		before = polls(a);
		rest_ms(10);
	} while (polls(a) != before);
	rest_ms(REST_MS);
	CHECK(polls(a) == before);
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
	stage_open(&a.stage, &cfg);
	for (i = 0; i < PAIRS; i++)
		stage_connect(&a.stage, &a.pairs[i]);
	loop->set_hook(on_arm, &a);
	completion__before_its_arm(&a);
	idle__asleep(&a);
	loop->set_hook(NULL, NULL);
	for (i = 0; i < PAIRS; i++)
		stage_disconnect(&a.stage, &a.pairs[i]);
	stage_close(&a.stage);
	printf("ok\n");
	return 0;
}
