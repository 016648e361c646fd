/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * A kept right (runtime/base/turn.h) on the machine's own store buffers: one
 * thread posts alone as fast as it can, so the right is kept for that thread
 * over and over; a second thread publishes, a third pauses the side, each after
 * a short, changing delay. Only the holder counts, so a count is lost if two
 * threads hold the right, and something published is never counted if a recall
 * is lost. doc/protocols/ledger.md.
 */

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include "base/order.h"
#include "base/turn.h"
#include "stress.h"

#define SLOTS	8
#define KEEPS	3
#define DAWDLES 2000
#define SKIPPED 77

static struct {
	struct rt_turn turn;
	uint16_t in_line[SLOTS];
	_Atomic uint16_t next[SLOTS];
	/* the holder's; volatile, so that each count is a load and a store */
	volatile uint64_t counted;
	volatile bool inside;
	_Atomic uint64_t published;
	atomic_bool over;
	uint64_t alone;	 /* posts of the alone thread */
	uint64_t keeps;	 /* of these with the right kept */
	uint64_t pauses; /* of the third thread */
	uint64_t seed;
} s;

static bool is_over(void)
{
	/* relaxed: nothing is read with it */
	return atomic_load_explicit(&s.over, memory_order_relaxed);
}

static void count_one(void)
{
	STRESS_CHECK(!s.inside);
	s.inside = true;
	s.counted++;
	STRESS_CHECK(s.inside);
	s.inside = false;
}

static uint32_t post(struct rt_turn *turn, void *arg)
{
	(void)arg;
	count_one();
	rt_turn_leave_line(turn, 1);
	return 1;
}

static uint32_t needs(struct rt_turn *turn, void *arg)
{
	(void)turn;
	(void)arg;
	return 1;
}

static bool has_room(struct rt_turn *turn, uint32_t wanted, void *arg)
{
	(void)turn;
	(void)wanted;
	(void)arg;
	return true;
}

static void say(struct rt_turn *turn, bool waits, void *arg)
{
	(void)turn;
	(void)waits;
	(void)arg;
}

static const struct rt_turn_ops ops = {
	.post = post, .needs = needs, .has_room = has_room, .say = say};

static void hold(void)
{
	rt_turn_hold(&s.turn, &ops, NULL, UINT32_MAX);
}

static void *post_alone(void *arg)
{
	uint64_t seen;

	(void)arg;
	while (!is_over()) {
		seen = rt_turn_look(&s.turn);
		if (rt_turn_take_alone(&s.turn, seen)) {
			count_one();
			s.alone++;
			s.keeps += (seen & RT_TURN_KEPT) != 0;
			if (!rt_turn_leave_alone(&s.turn, seen))
				hold();
		} else if (rt_turn_answer_recall(&s.turn, seen)) {
			hold();
		}
	}
	return NULL;
}

static void publish_one(void)
{
	uint16_t slot = rt_freelist_take(&s.turn.free, 1, SLOTS);
	enum rt_turn_answer answer = RT_TURN_STALE;

	if (slot == 0)
		return;
	while (answer == RT_TURN_STALE)
		answer = rt_turn_publish(&s.turn, rt_turn_look(&s.turn), slot,
					 slot);
	/* relaxed: read when the threads have ended */
	atomic_fetch_add_explicit(&s.published, 1, memory_order_relaxed);
	if (answer == RT_TURN_HOLDS)
		hold();
}

static void *publish(void *arg)
{
	struct stress_rng rng = stress_rng(s.seed, 1);

	(void)arg;
	while (!is_over()) {
		stress_dawdle(&rng, DAWDLES);
		publish_one();
	}
	return NULL;
}

static void *pause_often(void *arg)
{
	struct stress_rng rng = stress_rng(s.seed, 2);

	(void)arg;
	while (!is_over()) {
		stress_dawdle(&rng, DAWDLES);
		STRESS_CHECK(rt_turn_pause(&s.turn));
		rt_turn_await(&s.turn, RT_TURN_HELD);
		STRESS_CHECK(!s.inside);
		if (rt_turn_resume(&s.turn) && rt_turn_take_waiting(&s.turn))
			hold();
		s.pauses++;
	}
	return NULL;
}

int main(int argc, char **argv)
{
	struct stress stress = stress_begin(argc, argv);
	void *(*const bodies[])(void *) = {post_alone, publish, pause_often};
	double end = stress_now() + stress.seconds;
	struct stress_rng rng = stress_rng(stress.seed, 0);
	pthread_t threads[3];
	uint64_t published;
	int i;

	rt_fence_start();
	if (!rt_fence_is_ready()) {
		fprintf(stderr, "SKIPPED: the kernel has no membarrier()\n");
		return SKIPPED;
	}
	s.seed = stress.seed;
	rt_keep_after = KEEPS;
	rt_turn_init(&s.turn, s.in_line, s.next, sizeof(s.next[0]), SLOTS);
	rt_turn_open(&s.turn);
	for (i = 0; i < 3; i++)
		STRESS_CHECK(
			!pthread_create(&threads[i], NULL, bodies[i], NULL));
	while (stress_now() < end)
		stress_dawdle(&rng, DAWDLES);
	/* relaxed: see is_over() */
	atomic_store_explicit(&s.over, true, memory_order_relaxed);
	for (i = 0; i < 3; i++)
		STRESS_CHECK(!pthread_join(threads[i], NULL));
	rt_turn_await(&s.turn, RT_TURN_HELD);
	/* relaxed: the threads have ended */
	published = atomic_load_explicit(&s.published, memory_order_relaxed);
	printf("%llu alone, %llu of them with the right kept, %llu published, "
	       "%llu pauses\n",
	       (unsigned long long)s.alone, (unsigned long long)s.keeps,
	       (unsigned long long)published, (unsigned long long)s.pauses);
	STRESS_CHECK(s.counted == s.alone + published);
	STRESS_CHECK(rt_freelist_used(&s.turn.free) == 0);
	STRESS_CHECK(s.keeps > 0);
	return 0;
}
