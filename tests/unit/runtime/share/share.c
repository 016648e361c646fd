/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * Unit tests of what a thread that spins knows about its CPU, with a clock and
 * a sched_yield() of the test's own.
 */

#include <sched.h>
#include <time.h>

#include "../../../cases.h"
#include "base/self.h"

#define US UINT64_C(1000)
#define MS UINT64_C(1000000)

static uint64_t now_ns;
static uint64_t away_ns;  /* of each yield */
static uint64_t spent_ns; /* in all yields */
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
	spent_ns += away_ns;
	return 0;
}

/* A thread that knows nothing; each yield takes so long. */
static void begin(uint64_t away)
{
	rt_share_known = (struct rt_share_known){.times = 1};
	now_ns = 5000 * MS;
	away_ns = away;
	spent_ns = 0;
	yields = 0;
}

/* Spins for so long, with a question each microsecond. */
static enum rt_share spin(enum rt_share (*ask)(uint64_t *now), uint64_t ns)
{
	uint64_t end = now_ns + ns;
	enum rt_share share = RT_SHARE_ALONE;
	uint64_t now;

	while (now_ns < end) {
		now_ns += US;
		now = now_ns;
		share = ask(&now);
		assert_int_equal(now, now_ns);
	}
	return share;
}

static enum rt_share ask(uint64_t *now)
{
	return rt_share_ask(now);
}

static enum rt_share yield(uint64_t *now)
{
	return rt_share_yield(now);
}

TEST(alone__a_yield_a_millisecond)
{
	begin(US / 2);
	assert_int_equal(spin(yield, 10 * MS), RT_SHARE_ALONE);
	assert_in_range(yields, 9, 11);
	begin(US / 2);
	assert_int_equal(spin(ask, 10 * MS), RT_SHARE_ALONE);
	assert_in_range(yields, 9, 11);
}

TEST(some__yields_each_time)
{
	begin(20 * US);
	assert_int_equal(spin(yield, 10 * MS), RT_SHARE_SOME);
	assert_in_range(yields, 470, 480);
}

TEST(some__asks_once_a_millisecond)
{
	begin(20 * US);
	assert_int_equal(spin(ask, 10 * MS), RT_SHARE_SOME);
	assert_in_range(yields, 9, 11);
}

TEST(some__a_yield_without_others_HOLDS)
{
	uint64_t now;

	begin(20 * US);
	assert_int_equal(spin(yield, US), RT_SHARE_SOME);
	away_ns = US / 2;
	now = now_ns;
	assert_int_equal(rt_share_yield(&now), RT_SHARE_SOME);
	assert_int_equal(spin(yield, 2 * MS), RT_SHARE_ALONE);
}

/* However long other threads compute, questions cost a small part of the time.
 */
TEST(busy__a_small_part_of_the_time)
{
	uint64_t before;
	uint64_t away;

	for (away = MS; away <= 16 * MS; away *= 4) {
		begin(away);
		before = now_ns;
		assert_int_equal(spin(yield, 2000 * MS), RT_SHARE_BUSY);
		assert_true(yields > 1);
		assert_true(spent_ns * 15 <= now_ns - before);
	}
}

/* One long yield may be chance. */
TEST(busy__once_SHORT)
{
	begin(20 * US);
	assert_int_equal(spin(yield, MS), RT_SHARE_SOME);
	away_ns = 3 * MS;
	assert_int_equal(spin(yield, US), RT_SHARE_BUSY);
	away_ns = 20 * US;
	yields = 0;
	assert_int_equal(spin(yield, 7 * MS), RT_SHARE_SOME);
	assert_true(yields > 40);
}

TEST(busy__ends_with_the_others)
{
	begin(3 * MS);
	assert_int_equal(spin(yield, US), RT_SHARE_BUSY);
	away_ns = US / 2;
	assert_int_equal(spin(yield, 5 * MS), RT_SHARE_BUSY);
	assert_int_equal(yields, 1);
	assert_int_equal(spin(yield, 2 * MS), RT_SHARE_ALONE);
}

#define SLEEP_NS (100 * US)

/* A wait with rounds, of which the caller's budget ends at `spin_ns`. */
static bool goes_on(enum rt_share share, uint64_t now, uint64_t spin_ns)
{
	uint64_t asked_ns = now;
	bool ret;

	rt_share_known = (struct rt_share_known){
		.until_ns = now + 1, .share = share, .times = 1};
	ret = rt_share_goes_on(now, spin_ns, SLEEP_NS, &asked_ns);
	rt_share_known = (struct rt_share_known){.times = 1};
	return ret;
}

/* Threads that want the CPU for a moment may bring the result: in place of a
 * sleep the wait gives the CPU up. Beside computing threads the wait sleeps. */
TEST(goes_on__as_other_threads_want_the_CPU)
{
	const uint64_t now = 1000 * MS;

	assert_true(goes_on(RT_SHARE_ALONE, now, now + 1));
	assert_false(goes_on(RT_SHARE_ALONE, now, now));
	assert_true(goes_on(RT_SHARE_SOME, now, now));
	assert_false(goes_on(RT_SHARE_SOME, now, now - SLEEP_NS));
	assert_false(goes_on(RT_SHARE_BUSY, now, now + 1));
}

TEST_MAIN()
