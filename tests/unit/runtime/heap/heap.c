/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/* The heap of deadlines: its first node, removal from anywhere, and that no
 * path in it is long, in any order. */

#include <string.h>

#include "rt_fake.h"
#include "base/heap.h"

#define NODES 4096

static struct rt_heap_node nodes[NODES];

static uint32_t next_random(uint32_t *state)
{
	*state = *state * 1664525 + 1013904223;
	return *state >> 8;
}

/* The length of the right-most way down. */
static uint32_t way_down(const struct rt_heap_node *node)
{
	uint32_t length = 0;

	for (; node != NULL; node = node->right)
		length++;
	return length;
}

TEST(take__in_order_whatever_the_order_of_insert)
{
	static const char *const orders[] = {"up", "down", "equal", "random"};
	struct rt_heap heap;
	uint32_t random = 1;
	uint64_t before;
	uint64_t key;
	size_t order;
	uint32_t i;

	for (order = 0; order < sizeof(orders) / sizeof(orders[0]); order++) {
		memset(nodes, 0, sizeof(nodes));
		memset(&heap, 0, sizeof(heap));
		for (i = 0; i < NODES; i++) {
			key = order == 0   ? i
			      : order == 1 ? NODES - i
			      : order == 2 ? 7
					   : next_random(&random);
			rt_heap_insert(&heap, &nodes[i], key);
			/* the logarithm of 4096 and one */
			assert_true(way_down(heap.first) <= 13);
		}
		before = 0;
		for (i = 0; i < NODES; i++) {
			assert_true(heap.first->key >= before);
			assert_true(way_down(heap.first) <= 13);
			before = heap.first->key;
			rt_heap_remove(&heap, heap.first);
		}
		assert_null(heap.first);
	}
}

TEST(remove__any_the_others_stay)
{
	struct rt_heap heap = {0};
	uint32_t random = 2;
	uint64_t before = 0;
	uint32_t left = 0;
	uint32_t i;

	memset(nodes, 0, sizeof(nodes));
	for (i = 0; i < NODES; i++)
		rt_heap_insert(&heap, &nodes[i], next_random(&random));
	for (i = 0; i < NODES; i++) {
		if (i % 3 == 0)
			continue;
		assert_true(rt_heap_has(&heap, &nodes[i]));
		rt_heap_remove(&heap, &nodes[i]);
		assert_false(rt_heap_has(&heap, &nodes[i]));
	}
	while (heap.first != NULL) {
		assert_int_equal((heap.first - nodes) % 3, 0);
		assert_true(heap.first->key >= before);
		before = heap.first->key;
		rt_heap_remove(&heap, heap.first);
		left++;
	}
	assert_int_equal(left, (NODES + 2) / 3);
}

TEST(insert__again_after_removal)
{
	struct rt_heap heap = {0};
	struct rt_heap_node a = {0};
	struct rt_heap_node b = {0};

	assert_false(rt_heap_has(&heap, &a));
	rt_heap_insert(&heap, &a, 5);
	rt_heap_insert(&heap, &b, 6);
	rt_heap_remove(&heap, &a);
	rt_heap_insert(&heap, &a, 7);
	assert_ptr_equal(heap.first, &b);
	rt_heap_remove(&heap, &b);
	assert_ptr_equal(heap.first, &a);
}

TEST_MAIN()
