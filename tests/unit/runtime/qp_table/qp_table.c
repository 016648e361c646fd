/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/* The table of queue pairs: against a plain array, through random changes. */

#include "rt_fake.h"
#include "poller/qp_table.h"

#define QPS	40 /* numbers in play: many more than half of the table */
#define CHANGES 20000

static uint32_t next_random(uint32_t *seed)
{
	*seed = *seed * 1664525u + 1013904223u;
	return *seed >> 16;
}

/* Numbers that meet: the same home, and ends that wrap. */
static uint32_t number(uint32_t i)
{
	return (i % 5) * 16 + i / 5 + 12;
}

static void check_all(const struct rt_qp_table *table, const uint32_t *routes)
{
	uint32_t i;

	for (i = 0; i < QPS; i++)
		assert_int_equal(rt_qp_table_find(table, number(i)), routes[i]);
}

TEST(set_and_remove__as_an_array)
{
	struct rt_qp_table *table = rt_qp_table_new(16);
	uint32_t routes[QPS] = {0};
	uint32_t seed = 7;
	uint32_t change;
	uint32_t i;

	assert_int_equal(rt_qp_table_room(table), 16);
	for (change = 1; change <= CHANGES; change++) {
		i = next_random(&seed) % QPS;
		if (routes[i] != 0 && next_random(&seed) % 4) {
			rt_qp_table_remove(table, number(i));
			routes[i] = 0;
		} else if (routes[i] != 0 || table->count < 16) {
			routes[i] = change;
			rt_qp_table_set(table, number(i), change);
		}
		check_all(table, routes);
	}
	rt_qp_table_delete(table);
}

TEST(move__everything_is_found)
{
	struct rt_qp_table *small = rt_qp_table_new(8);
	struct rt_qp_table *large = rt_qp_table_new(9);
	uint32_t i;

	assert_int_equal(rt_qp_table_room(NULL), 0);
	assert_int_equal(rt_qp_table_find(NULL, 1), 0);
	rt_qp_table_move(large, NULL);
	for (i = 0; i < 8; i++)
		rt_qp_table_set(small, number(i), i + 1);
	rt_qp_table_move(large, small);
	assert_int_equal(large->count, 8);
	for (i = 0; i < 8; i++)
		assert_int_equal(rt_qp_table_find(large, number(i)), i + 1);
	assert_int_equal(rt_qp_table_find(large, number(9)), 0);
	rt_qp_table_delete(small);
	rt_qp_table_delete(large);
}

TEST(new__no_memory_NULL)
{
	fake_fail("malloc", 1, 1);
	assert_null(rt_qp_table_new(1));
	assert_true(fake_failed());
}

TEST_MAIN()
