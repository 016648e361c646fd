/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/* The 64 bits of a work request, the numbers of routes, their table. */

#include "rt_fake.h"
#include "poller/route.h"

TEST(wr_id__there_and_back)
{
	uint64_t id = rt_wr_id(RT_ROUTE_MASK, RT_COOKIE_MASK);

	assert_true(id == (UINT64_MAX & ~RT_ON_ERROR_ONLY));
	assert_int_equal(rt_wr_id_route(id), RT_ROUTE_MASK);
	assert_true(rt_wr_id_cookie(id) == RT_COOKIE_MASK);
	/* the topmost bit belongs to neither */
	id = rt_wr_id(RT_ROUTE_FIRST, 5) | RT_ON_ERROR_ONLY;
	assert_int_equal(rt_wr_id_route(id), RT_ROUTE_FIRST);
	assert_true(rt_wr_id_cookie(id) == 5);
}

TEST(wr_id__internal)
{
	uint64_t id = rt_wr_id_internal(RT_RQ_MARKER, 65535);

	assert_int_equal(rt_wr_id_route(id), RT_ROUTE_INTERNAL);
	assert_int_equal(rt_wr_id_cookie(id) >> RT_KIND_SHIFT, RT_RQ_MARKER);
	assert_int_equal(rt_wr_id_cookie(id) & RT_SLOT_MASK, 65535);
}

/* A zeroed completion of a queue pair 0 finds no open entry. */
TEST(qp_key__never_that_of_a_free_entry)
{
	assert_int_not_equal(rt_qp_key(0), RT_QP_KEY_NONE);
	assert_int_not_equal(rt_qp_key(0xffffff), RT_QP_KEY_NONE);
}

TEST(numbers__every_one_once_then_NOMEM)
{
	static uint8_t taken[RT_ROUTE_COUNT];
	struct rt_numbers numbers;
	uint32_t number = 7;
	uint32_t i;

	rt_numbers_init(&numbers);
	for (i = RT_ROUTE_FIRST; i < RT_ROUTE_COUNT; i++) {
		ok(rt_numbers_take(&numbers, &number));
		assert_in_range(number, RT_ROUTE_FIRST, RT_ROUTE_COUNT - 1);
		assert_false(taken[number]++);
	}
	number = 7;
	assert_int_equal(rt_numbers_take(&numbers, &number), RPMA_E_NOMEM);
	assert_int_equal(number, 7);
	/* given back, all of them, they are there again */
	for (i = RT_ROUTE_FIRST; i < RT_ROUTE_COUNT; i++)
		rt_numbers_return(&numbers, i);
	for (i = RT_ROUTE_FIRST; i < RT_ROUTE_COUNT; i++) {
		ok(rt_numbers_take(&numbers, &number));
		assert_true(taken[number]--);
	}
	assert_int_equal(rt_numbers_take(&numbers, &number), RPMA_E_NOMEM);
	rt_numbers_fini(&numbers);
	assert_null(numbers.returned);
	assert_int_equal(fake_memory(), 0);
}

/* Also later: those that are out can still be given back. */
TEST(numbers_take__no_memory_NOMEM)
{
	struct rt_numbers numbers;
	uint32_t number;
	uint32_t taken;
	uint32_t i;

	rt_numbers_init(&numbers);
	fake_fail("malloc", 1, 1);
	assert_int_equal(rt_numbers_take(&numbers, &number), RPMA_E_NOMEM);
	ok(rt_numbers_take(&numbers, &number));
	fake_fail("malloc", 1, 1);
	for (taken = 1; rt_numbers_take(&numbers, &number) == 0; taken++)
		;
	for (i = 0; i < taken; i++)
		rt_numbers_return(&numbers, RT_ROUTE_FIRST + i);
	assert_int_equal(rt_numbers_left(&numbers),
			 RT_ROUTE_COUNT - RT_ROUTE_FIRST);
	rt_numbers_fini(&numbers);
	assert_int_equal(fake_memory(), 0);
}

/* A CQ with few routes has a small stack. */
TEST(numbers__as_much_memory_as_were_out)
{
	struct rt_numbers numbers;
	uint32_t number;

	rt_numbers_init(&numbers);
	assert_null(numbers.returned);
	ok(rt_numbers_take(&numbers, &number));
	assert_in_range(numbers.returned_max, 1, 64);
	rt_numbers_fini(&numbers);
}

TEST(table_new__every_entry_free)
{
	struct cds_hlist_head *by_lane;
	struct rt_route_entry *table;
	uint32_t i;

	ok(rt_route_table_new(&table, &by_lane));
	for (i = 0; i < RT_ROUTE_COUNT; i++) {
		assert_int_equal(table[i].qp_key, RT_QP_KEY_NONE);
		assert_null(table[i].side);
	}
	for (i = 0; i < RT_LANE_BUCKETS; i++)
		assert_null(by_lane[i].next);
	free(table);
	assert_int_equal(fake_memory(), 0);
}

TEST(table_new__no_memory_NOMEM)
{
	struct cds_hlist_head *by_lane = NULL;
	struct rt_route_entry *table = NULL;

	fake_fail("malloc", 1, 1);
	assert_int_equal(rt_route_table_new(&table, &by_lane), RPMA_E_NOMEM);
	assert_null(table);
	assert_null(by_lane);
}

TEST_MAIN()
