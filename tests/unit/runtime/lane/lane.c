/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * Lane and spill on one thread: order through every path, the meaning of each
 * flag, which bell is rung when.
 */

#include <stdlib.h>

#include "../../../cases.h"
#include "queue/lane.h"
#include "rt_stub.h"

#define SIZE  64
#define LIMIT 16
#define SPILL 256

struct world {
	struct rpma_rt rt;
	struct rpma_rt_queue *queue;
	struct rt_lane *lane;
	struct rt_bell *bell;
	struct rpma_rt_completion taken[SIZE + SPILL];
};

static int fail_after = -1; /* allocations that succeed before one fails */

void *__real_malloc(size_t size);
void *__real_aligned_alloc(size_t alignment, size_t size);
void *__wrap_malloc(size_t size);
void *__wrap_aligned_alloc(size_t alignment, size_t size);

static int is_failing(void)
{
	return fail_after >= 0 && fail_after-- == 0;
}

void *__wrap_malloc(size_t size)
{
	return is_failing() ? NULL : __real_malloc(size);
}

void *__wrap_aligned_alloc(size_t alignment, size_t size)
{
	return is_failing() ? NULL : __real_aligned_alloc(alignment, size);
}

static int setup(void **state)
{
	struct world *world = calloc(1, sizeof(*world));

	if (world == NULL)
		return -1;
	stub_rt_init(&world->rt, 1);
	world->bell = &world->rt.bells[0];
	world->queue = stub_queue_new(&world->rt, SIZE, LIMIT);
	if (world->queue == NULL)
		return -1;
	world->lane = rt_queue_lane(world->queue, 0, world->bell);
	if (world->lane == NULL)
		return -1;
	rt_spill_delete(
		rt_lane_swap_spill_poller(world->lane, rt_spill_new(SPILL)));
	*state = world;
	return 0;
}

static int teardown(void **state)
{
	struct world *world = *state;
	uint32_t moved;

	do {
		moved = rt_lane_take_consumer(world->lane, world->taken, SIZE);
		moved += rt_lane_retry_poller(world->lane);
	} while (moved > 0);
	rt_lane_bell_poller(world->lane);
	if (rpma_rt_queue_delete(&world->queue))
		return -1;
	stub_rt_fini(&world->rt);
	free(world);
	return 0;
}

#define ON_WORLD(name) TEST_OF(struct world *world, name, setup, teardown)

/* Takes count items, which begin with this context. */
static void expect_taken(struct world *world, uint64_t first, uint32_t count)
{
	uint32_t got = 0;
	uint32_t n;
	uint32_t i;

	while (got < count) {
		n = rt_lane_take_consumer(world->lane, &world->taken[got],
					  count - got);
		if (n == 0)
			break;
		got += n;
	}
	assert_int_equal(got, count);
	for (i = 0; i < count; i++)
		assert_int_equal(world->taken[i].context, first + i);
}

static void expect_empty(struct world *world)
{
	assert_int_equal(rt_lane_take_consumer(world->lane, world->taken, SIZE),
			 0);
}

ON_WORLD(write__first_and_second_TRUE_ONCE)
{
	struct rpma_rt_completion item = stub_item(1);

	assert_true(rt_lane_write_poller(world->lane, &item));
	assert_false(rt_lane_write_poller(world->lane, &item));
	rt_lane_publish_poller(world->lane);
	assert_true(rt_lane_write_poller(world->lane, &item));
	rt_lane_publish_poller(world->lane);
}

ON_WORLD(write__not_published_NOT_SEEN)
{
	struct rpma_rt_completion item = stub_item(1);

	rt_lane_write_poller(world->lane, &item);
	expect_empty(world);
	rt_lane_publish_poller(world->lane);
	expect_taken(world, 1, 1);
}

/* more than the ring has room for: the rest waits in the spill */
ON_WORLD(write__more_than_fit_RING_FULL_AT_PUBLISH)
{
	struct rpma_rt_completion item;
	uint32_t i;

	for (i = 0; i < SIZE + 1; i++) {
		item = stub_item(i);
		assert_int_equal(rt_lane_write_poller(world->lane, &item),
				 i == 0);
	}
	expect_empty(world);
	rt_lane_publish_poller(world->lane);
	expect_taken(world, 0, SIZE);
	expect_empty(world);
	assert_int_equal(rt_lane_retry_poller(world->lane), 1);
	expect_taken(world, SIZE, 1);
}

ON_WORLD(publish__every_field_COPIED)
{
	struct rpma_rt_completion item = {
		.context = 0x123456789abc,
		.user = world,
		.byte_len = 1,
		.imm = 2,
		.qp_num = 3,
		.kind = RPMA_RT_COMPLETION,
		.status = 5,
		.opcode = 6,
		.flags = 7,
	};

	rt_lane_write_poller(world->lane, &item);
	rt_lane_publish_poller(world->lane);
	assert_int_equal(rt_lane_take_consumer(world->lane, world->taken, 1),
			 1);
	assert_memory_equal(&world->taken[0], &item, sizeof(item));
}

/*
 * batches that do not divide the size meet the end of the ring at every offset
 */
ON_WORLD(publish__round_the_ring_IN_ORDER)
{
	uint64_t next = 0;

	while (next < 10 * SIZE * SIZE) {
		stub_publish(world->lane, next, 27);
		expect_taken(world, next, 27);
		next += 27;
	}
}

ON_WORLD(publish__index_wraps_IN_ORDER)
{
	struct rt_lane *lane = world->lane;

	lane->tail_next = lane->head_seen = UINT32_MAX - 5;
	lane->room_end = lane->head_seen + SIZE;
	lane->head_next = lane->tail_seen = UINT32_MAX - 5;
	atomic_store_explicit(&lane->tail, UINT32_MAX - 5,
			      memory_order_relaxed);
	atomic_store_explicit(&lane->head, UINT32_MAX - 5,
			      memory_order_relaxed);
	stub_publish(lane, 0, SIZE + 3);
	assert_int_equal(rt_lane_spill_count_poller(lane), 3);
	expect_taken(world, 0, SIZE);
	assert_int_equal(rt_lane_retry_poller(lane), 3);
	expect_taken(world, SIZE, 3);
}

ON_WORLD(take__more_than_max_REST_STAYS)
{
	stub_publish(world->lane, 0, 10);
	assert_int_equal(rt_lane_take_consumer(world->lane, world->taken, 4),
			 4);
	expect_taken(world, 4, 6);
	expect_empty(world);
}

ON_WORLD(publish__ring_full_SPILLS)
{
	stub_publish(world->lane, 0, SIZE);
	assert_false(rt_lane_is_spilling_poller(world->lane));
	stub_publish(world->lane, SIZE, 2);
	assert_true(rt_lane_is_spilling_poller(world->lane));
	assert_int_equal(rt_lane_spill_count_poller(world->lane), 2);
}

/* items that do not fit go to the spill, although the first part went direct */
ON_WORLD(publish__fits_in_part_IN_ORDER)
{
	stub_publish(world->lane, 0, SIZE - 3);
	stub_publish(world->lane, SIZE - 3, 10);
	assert_int_equal(rt_lane_spill_count_poller(world->lane), 7);
	expect_taken(world, 0, SIZE);
	assert_int_equal(rt_lane_retry_poller(world->lane), 7);
	expect_taken(world, SIZE, 7);
}

/* room in the ring does not let the new overtake the spilled */
ON_WORLD(publish__room_but_spilling_BEHIND)
{
	stub_publish(world->lane, 0, SIZE + 1);
	expect_taken(world, 0, SIZE);
	stub_publish(world->lane, SIZE + 1, 1);
	expect_empty(world);
	assert_int_equal(rt_lane_retry_poller(world->lane), 2);
	expect_taken(world, SIZE, 2);
	assert_false(rt_lane_is_spilling_poller(world->lane));
}

ON_WORLD(retry__no_room_NONE)
{
	stub_publish(world->lane, 0, SIZE + 1);
	assert_int_equal(rt_lane_retry_poller(world->lane), 0);
	assert_true(rt_lane_is_spilling_poller(world->lane));
}

ON_WORLD(retry__room_for_some_IN_ORDER)
{
	stub_publish(world->lane, 0, SIZE + 9);
	expect_taken(world, 0, 4);
	assert_int_equal(rt_lane_retry_poller(world->lane), 4);
	assert_int_equal(rt_lane_spill_count_poller(world->lane), 5);
	expect_taken(world, 4, SIZE);
	assert_int_equal(rt_lane_retry_poller(world->lane), 5);
	expect_taken(world, SIZE + 4, 5);
}

/* the ring of the spill wraps around too */
ON_WORLD(retry__spill_goes_round_IN_ORDER)
{
	uint64_t in = 0;
	uint64_t out = 0;

	stub_publish(world->lane, 0, SIZE + SPILL / 2);
	in = SIZE + SPILL / 2;
	while (in < 20 * SPILL) {
		expect_taken(world, out, 13);
		out += 13;
		rt_lane_retry_poller(world->lane);
		stub_publish(world->lane, in, 13);
		in += 13;
	}
}

ON_WORLD(backlogged__at_limit_SET_CLEARED_AT_HALF)
{
	struct rt_lane *lane = world->lane;

	stub_publish(lane, 0, SIZE + LIMIT - 1);
	assert_false(rt_lane_is_backlogged(lane));
	stub_publish(lane, SIZE + LIMIT - 1, 1);
	assert_true(rt_lane_is_backlogged(lane));

	expect_taken(world, 0, LIMIT / 2 - 1);
	rt_lane_retry_poller(lane);
	assert_true(rt_lane_is_backlogged(lane));
	assert_false(rt_lane_take_eased_poller(lane));

	expect_taken(world, LIMIT / 2 - 1, 1);
	rt_lane_retry_poller(lane);
	assert_false(rt_lane_is_backlogged(lane));
	assert_true(rt_lane_take_eased_poller(lane));
	assert_false(rt_lane_take_eased_poller(lane));
}

/* the credits given back between the two may not be used: flagged before */
ON_WORLD(write__spill_reaches_limit_BACKLOGGED_NOT_SEEN)
{
	struct rpma_rt_completion item;
	uint32_t i;

	stub_publish(world->lane, 0, SIZE);
	expect_taken(world, 0, 4);
	for (i = 0; i < 4 + LIMIT; i++) {
		item = stub_item(SIZE + i);
		rt_lane_write_poller(world->lane, &item);
	}
	assert_true(rt_lane_is_backlogged(world->lane));
	expect_taken(world, 4, SIZE - 4);
	expect_empty(world);
	rt_lane_publish_poller(world->lane);
	expect_taken(world, SIZE, 4);
}

ON_WORLD(arm__not_spilling_FALSE)
{
	assert_false(rt_lane_arm_spill_poller(world->lane));
}

ON_WORLD(has_room__half_free_TRUE)
{
	stub_publish(world->lane, 0, SIZE + 1);
	assert_false(rt_lane_has_room_poller(world->lane));
	expect_taken(world, 0, SIZE / 2 - 1);
	assert_false(rt_lane_has_room_poller(world->lane));
	expect_taken(world, SIZE / 2 - 1, 1);
	assert_true(rt_lane_has_room_poller(world->lane));
}

/* the poller sleeps; the taker that frees half of the ring rings */
ON_WORLD(take__poller_sleeps_on_spill_RINGS_AT_HALF)
{
	stub_publish(world->lane, 0, SIZE + 1);
	assert_true(rt_lane_arm_spill_poller(world->lane));
	rt_bell_prepare(world->bell);
	expect_taken(world, 0, SIZE / 2 - 1);
	assert_false(stub_is_readable(rt_bell_fd(world->bell)));
	expect_taken(world, SIZE / 2 - 1, 1);
	assert_true(stub_is_readable(rt_bell_fd(world->bell)));
	rt_bell_cancel(world->bell);
}

/* the taker freed the room just before the poller armed: the last look, after
 * the fence, rings */
ON_WORLD(ring_poller__armed_after_take_RINGS)
{
	stub_publish(world->lane, 0, SIZE + 1);
	expect_taken(world, 0, SIZE);
	rt_lane_arm_spill_poller(world->lane);
	rt_bell_prepare(world->bell);
	assert_true(rt_lane_has_room_poller(world->lane));
	rt_lane_ring_poller_consumer(world->lane);
	assert_true(stub_is_readable(rt_bell_fd(world->bell)));
	rt_bell_cancel(world->bell);
}

ON_WORLD(ring_poller__spill_emptied_QUIET)
{
	stub_publish(world->lane, 0, SIZE + 1);
	rt_lane_arm_spill_poller(world->lane);
	expect_taken(world, 0, SIZE);
	rt_lane_retry_poller(world->lane);
	rt_bell_prepare(world->bell);
	rt_lane_ring_poller_consumer(world->lane);
	assert_false(stub_is_readable(rt_bell_fd(world->bell)));
	rt_bell_cancel(world->bell);
}

ON_WORLD(swap_spill__content_MOVED)
{
	struct rt_spill *bigger = rt_spill_new(2 * SPILL);
	struct rt_spill *old;

	assert_non_null(bigger);
	stub_publish(world->lane, 0, SIZE + SPILL);
	old = rt_lane_swap_spill_poller(world->lane, bigger);
	assert_ptr_not_equal(old, bigger);
	assert_int_equal(old->entries, SPILL);
	rt_spill_delete(old);
	stub_publish(world->lane, SIZE + SPILL, SPILL);
	expect_taken(world, 0, SIZE);
	rt_lane_retry_poller(world->lane);
	expect_taken(world, SIZE, SIZE);
}

/* two openers may cross: the smaller request does not shrink the spill */
ON_WORLD(swap_spill__smaller_COMES_BACK)
{
	struct rt_spill *smaller = rt_spill_new(SPILL - 1);

	assert_non_null(smaller);
	assert_ptr_equal(rt_lane_swap_spill_poller(world->lane, smaller),
			 smaller);
	rt_spill_delete(smaller);
}

ON_WORLD(drain__ring_and_spill_IN_ORDER_NO_RING)
{
	uint32_t i;

	stub_publish(world->lane, 0, SIZE + SPILL);
	rt_lane_arm_spill_poller(world->lane);
	rt_bell_prepare(world->bell);
	assert_int_equal(
		rt_lane_drain_consumer(world->lane, world->taken, SIZE + SPILL),
		SIZE + SPILL);
	for (i = 0; i < SIZE + SPILL; i++)
		assert_int_equal(world->taken[i].context, i);
	assert_false(stub_is_readable(rt_bell_fd(world->bell)));
	rt_bell_cancel(world->bell);
	assert_int_equal(rt_lane_drain_consumer(world->lane, world->taken, 1),
			 0);
}

ON_WORLD(init__no_memory_NOMEM)
{
	struct rt_lane *lane = aligned_alloc(RT_APART, sizeof(*lane));
	int i;

	assert_non_null(lane);
	for (i = 0; i < 2; i++) {
		fail_after = i;
		assert_int_equal(rt_lane_init(lane, world->bell, world->bell,
					      SIZE, LIMIT),
				 RPMA_E_NOMEM);
	}
	fail_after = -1;
	free(lane);
}

TEST(spill_new__no_memory_NULL)
{
	fail_after = 0;
	assert_null(rt_spill_new(1));
}

TEST_MAIN()
