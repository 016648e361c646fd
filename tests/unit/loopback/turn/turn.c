/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * Unit tests of a thread that polls in vain, with a clock and a sched_yield()
 * of the test's own: when the thread offers its CPU, and what it learns from an
 * offer.
 */

#include <sched.h>
#include <time.h>

#include "../../../cases.h"
#include "base/turn.h"

#define US 1000u
#define MS 1000000u

static uint64_t now_ns;
static uint64_t away_ns; /* a yield takes so long */
static int yields;

int clock_gettime(clockid_t clock, struct timespec *ts)
{
	(void)clock;
	ts->tv_sec = (time_t)(now_ns / 1000000000);
	ts->tv_nsec = (long)(now_ns % 1000000000);
	return 0;
}

int sched_yield(void)
{
	yields++;
	now_ns += away_ns;
	return 0;
}

static struct lb_turn begin(uint64_t away)
{
	now_ns = 5000ull * MS;
	away_ns = away;
	yields = 0;
	return (struct lb_turn){0};
}

/* Polls in vain, 50 ns each, until the next offer; returns the time until then.
 */
static uint64_t until_offer(struct lb_turn *turn)
{
	const uint64_t before = now_ns;
	const int seen = yields;

	while (yields == seen) {
		now_ns += 50;
		lb_turn_polled(turn, false);
	}
	return now_ns - before - away_ns;
}

TEST(poll__finds_often_NO_OFFER)
{
	struct lb_turn turn = begin(0);

	for (unsigned i = 0; i < 100000; i++) {
		now_ns += 50;
		lb_turn_polled(&turn, i % 100 == 0);
	}
	assert_int_equal(yields, 0);
}

TEST(poll__alone_on_its_CPU_FEW_OFFERS)
{
	struct lb_turn turn = begin(300);
	const uint64_t end = now_ns + 10ull * MS;

	while (now_ns < end) {
		now_ns += 50;
		lb_turn_polled(&turn, false);
	}
	/* less than a hundredth of the time */
	assert_in_range(yields * away_ns, 0, 10 * MS / 100);
}

TEST(offer__helps_THE_NEXT_COMES_SOON)
{
	struct lb_turn turn = begin(3 * US);

	assert_in_range(until_offer(&turn), 8 * US, 11 * US);
	for (int i = 0; i < 10; i++) {
		lb_turn_polled(&turn, true);
		assert_in_range(until_offer(&turn), US, 4 * US);
	}
}

TEST(offer__nobody_takes_it_LATER)
{
	struct lb_turn turn = begin(300);
	uint64_t before = until_offer(&turn);

	for (int i = 0; i < 3; i++) {
		const uint64_t next = until_offer(&turn);

		assert_true(next > before + before / 2);
		before = next;
	}
	/* and then found by chance */
	lb_turn_polled(&turn, true);
	assert_in_range(until_offer(&turn), before, 70 * US);
}

TEST(offer__taken_in_vain_SOON_AGAIN)
{
	struct lb_turn turn = begin(3 * US);

	for (int i = 0; i < 10; i++)
		assert_in_range(until_offer(&turn), 8 * US, 11 * US);
}

/* By a thread that computes, say. */
TEST(offer__CPU_kept_in_vain_RARE)
{
	struct lb_turn turn = begin(3 * MS);
	uint64_t end;

	for (int i = 0; i < 20; i++)
		until_offer(&turn);
	assert_in_range(until_offer(&turn), 10 * MS, 20 * MS);
	/* until there is nobody who would keep it */
	away_ns = 300;
	until_offer(&turn);
	end = now_ns;
	until_offer(&turn);
	assert_in_range(now_ns - end, 0, 100 * US);
}

/* What was found after so long may have come from another CPU. */
TEST(offer__CPU_kept_and_found_LATER)
{
	struct lb_turn turn = begin(3 * MS);

	assert_in_range(until_offer(&turn), 8 * US, 11 * US);
	for (int i = 0; i < 10; i++) {
		lb_turn_polled(&turn, true);
		until_offer(&turn);
	}
	lb_turn_polled(&turn, true);
	assert_in_range(until_offer(&turn), MS, 11 * MS / 10);
	/* until another thread gives the CPU back soon */
	away_ns = 3 * US;
	until_offer(&turn);
	lb_turn_polled(&turn, true);
	assert_in_range(until_offer(&turn), US, 4 * US);
}

/* By a thread that computes; each later wait has offers all the same. */
TEST(wait__CPU_kept_before_OFFERS_AS_SOON_AS_AT_FIRST)
{
	struct lb_turn turn = begin(3 * MS);
	uint64_t end;

	for (int i = 0; i < 10; i++) {
		while (!lb_turn_waited(&turn, false))
			now_ns += 50;
		lb_turn_waited(&turn, i % 2);
	}
	away_ns = 3 * US;
	yields = 0;
	end = now_ns + 10 * US;
	while (now_ns < end) {
		assert_false(lb_turn_waited(&turn, false));
		now_ns += 50;
	}
	assert_int_equal(yields, 1);
}

TEST_MAIN()
