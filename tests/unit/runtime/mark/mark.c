/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * How long the items of a queue have waited, by its mark: never too long, and
 * of an item that waits for long long enough.
 */

#include "../../../cases.h"
#include "base/clock.h"
#include "base/stats.h"

/* An item of that number is written at ms, when so many were taken. */
static void write_item(struct rt_mark *mark, uint32_t number, uint32_t ms,
		       uint32_t taken)
{
	if (rt_mark_date(mark, ms))
		rt_mark_put(mark, number, ms, taken);
}

TEST(since__first_item_WHEN_WRITTEN)
{
	struct rt_mark mark;

	rt_mark_init(&mark);
	write_item(&mark, 0, 5000, 0);
	assert_int_equal(rt_mark_since(&mark, 0), 5000);
}

TEST(since__others_follow_THE_OLDEST)
{
	struct rt_mark mark;
	uint32_t i;

	rt_mark_init(&mark);
	for (i = 0; i < 100; i++)
		write_item(&mark, i, 5000 + i * 500, 0);
	assert_int_equal(rt_mark_since(&mark, 0), 5000);
}

/* A consumer that keeps up is never behind by more than the last second. */
TEST(since__all_taken_in_time_THE_LAST)
{
	struct rt_mark mark;
	uint32_t ms;
	uint32_t i;

	rt_mark_init(&mark);
	for (i = 0; i < 10000; i++) {
		ms = 5000 + i * 37;
		write_item(&mark, i, ms, i);
		assert_in_range(ms - rt_mark_since(&mark, i), 0, RT_MARK_MS);
	}
}

TEST(since__long_backlog_half_taken_LATER_MARK)
{
	struct rt_mark mark;
	uint32_t i;

	rt_mark_init(&mark);
	for (i = 0; i < 100; i++)
		write_item(&mark, i, 5000 + i * 500, 0);
	/* what waits then was written after the first, by the last date */
	assert_int_equal(rt_mark_since(&mark, 50), 5000 + 99 * 500);
	write_item(&mark, 100, 60000, 50);
	assert_int_equal(rt_mark_since(&mark, 50), 60000);
	write_item(&mark, 101, 70000, 50);
	assert_int_equal(rt_mark_since(&mark, 50), 60000);
}

TEST(since__after_an_idle_day_THE_NEW_ONE)
{
	struct rt_mark mark;

	rt_mark_init(&mark);
	write_item(&mark, 0, 5000, 0);
	write_item(&mark, 1, 86405000, 1);
	assert_int_equal(rt_mark_since(&mark, 1), 86405000);
}

/* Numbers and milliseconds are modulo 2^32. */
TEST(since__wrapped_AS_BEFORE)
{
	struct rt_mark mark;

	rt_mark_init(&mark);
	/* relaxed: one thread. After billions of items */
	atomic_store_explicit(&mark.word,
			      (uint64_t)(UINT32_MAX - 2) << 32 |
				      (UINT32_MAX - 9000),
			      memory_order_relaxed);
	write_item(&mark, UINT32_MAX - 1, UINT32_MAX - 100, UINT32_MAX - 1);
	assert_int_equal(rt_mark_since(&mark, UINT32_MAX - 1),
			 UINT32_MAX - 100);
	write_item(&mark, UINT32_MAX, 1000, UINT32_MAX);
	assert_int_equal(rt_mark_since(&mark, UINT32_MAX), 1000);
	write_item(&mark, 0, 9000, UINT32_MAX);
	assert_int_equal(rt_mark_since(&mark, UINT32_MAX), 1000);
	assert_int_equal(rt_mark_since(&mark, 0), 9000);
}

TEST(between__then_is_ahead_NONE)
{
	assert_int_equal(rt_ms_between(5000, 7000), 2000);
	assert_int_equal(rt_ms_between(7000, 6990), 0);
	assert_int_equal(rt_ms_between(UINT32_MAX, 9), 10);
}

TEST_MAIN()
