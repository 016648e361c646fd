/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/* The counters of a queue and, where clocks are read, its times. */

#include <stdlib.h>

#include "../../../cases.h"
#include "base/clock.h"
#include "queue/impl.h"
#include "rt_stub.h"

static struct rpma_rt_queue_stats last; /* as stats() has read them */

static int setup(void **state)
{
	return stub_open(state, 1, false, false);
}

static int setup_timed(void **state)
{
	return stub_open(state, 1, true, false);
}

#define ON_WORLD(name) \
	TEST_OF(struct stub_world *world, name, setup, stub_close)
#define TIMED(name) \
	TEST_OF(struct stub_world *world, name, setup_timed, stub_close)

static const struct rpma_rt_queue_stats *stats(struct stub_world *world)
{
	assert_int_equal(
		rpma_rt_queue_get_stats(world->queue, &last, sizeof(last)), 0);
	return &last;
}

static uint64_t counted(const struct rpma_rt_histogram *histogram)
{
	uint64_t count = 0;
	int i;

	for (i = 0; i < RPMA_RT_HISTOGRAM; i++)
		count += histogram->buckets[i];
	return count;
}

ON_WORLD(calls__counted_by_what_they_found)
{
	stub_poll(world, STUB_MAX);
	stub_publish(world->lane, 1, 3);
	rpma_rt_queue_push(world->queue,
			   &(struct rpma_rt_completion){.context = 4});
	stub_poll(world, STUB_MAX);
	assert_int_equal(
		rpma_rt_queue_wait(world->queue, world->taken, STUB_MAX, 1), 0);

	assert_int_equal(stats(world)->polls, 2);
	assert_int_equal(last.waits, 1);
	assert_int_equal(last.empty, 2);
	assert_int_equal(last.batches, 1);
	assert_int_equal(last.taken, 4);
	assert_int_equal(last.messages, 1);
	assert_true(last.sleeps >= 1);
	assert_int_equal(last.wakes, 0);
	assert_int_equal(last.busy, 0);
}

/* A program of an earlier release, and one of a later: as much is written as
 * its struct has, zeros where this library counts nothing. */
ON_WORLD(stats__of_another_size)
{
	struct {
		struct rpma_rt_queue_stats known;
		uint64_t later;
	} stats;

	stub_poll(world, 1);
	memset(&stats, 0xff, sizeof(stats));
	assert_int_equal(rpma_rt_queue_get_stats(world->queue, &stats.known, 8),
			 0);
	assert_int_equal(stats.known.polls, 1);
	assert_int_equal(stats.known.waits, UINT64_MAX);
	assert_int_equal(rpma_rt_queue_get_stats(world->queue, &stats.known,
						 sizeof(stats)),
			 0);
	assert_int_equal(stats.known.empty, 1);
	assert_int_equal(stats.later, 0);
}

ON_WORLD(backlog__ring_spill_and_messages)
{
	stub_publish(world->lane, 1, STUB_LANE + 5);
	rpma_rt_queue_push(world->queue, &(struct rpma_rt_completion){0});
	assert_int_equal(stats(world)->backlog, STUB_LANE + 6);
	stub_poll(world, 2);
	assert_int_equal(stats(world)->backlog, STUB_LANE + 4);
	while (stub_poll(world, STUB_MAX) > 0)
		rt_lane_retry_poller(world->lane);
	stub_ring(world->lane); /* the spill is over */
	assert_int_equal(stats(world)->backlog, 0);
}

ON_WORLD(wakes__one_for_each_sleep)
{
	assert_true(stub_fd(world) >= 0);
	assert_int_equal(rpma_rt_queue_arm(world->queue), 0);
	stub_publish(world->lane, 1, 1);
	stub_ring(world->lane);
	stub_ring(world->lane);
	assert_int_equal(stats(world)->wakes, 1);
	/* not timed: no clock was read */
	stub_poll(world, STUB_MAX);
	assert_int_equal(counted(&stats(world)->wakeup), 0);
}

TIMED(timing__wakeup_measured_once)
{
	assert_true(stub_fd(world) >= 0);
	assert_int_equal(rpma_rt_queue_arm(world->queue), 0);
	stub_publish(world->lane, 1, 1);
	stub_ring(world->lane);
	stub_poll(world, STUB_MAX);
	stub_poll(world, STUB_MAX);
	assert_int_equal(counted(&stats(world)->wakeup), 1);
	assert_true(last.wakeup.sum_ns > 0);
}

TIMED(timing__dispatch_until_the_last_item)
{
	struct rpma_rt_completion item = stub_item(1);
	int i;

	for (i = 0; i < 3; i++)
		rt_lane_write_poller(world->lane, &item);
	rt_lane_stamp_poller(world->lane, rt_now_ns() - 5000);
	rt_lane_publish_poller(world->lane);
	stub_poll(world, 2);
	assert_int_equal(counted(&stats(world)->dispatch), 0);
	/* one at a time: the second is not timed */
	stub_publish(world->lane, 1, 1);
	rt_lane_stamp_poller(world->lane, rt_now_ns());
	stub_poll(world, 1);
	assert_int_equal(counted(&stats(world)->dispatch), 1);
	assert_true(last.dispatch.sum_ns >= 5000);
	/* 2^12 = 4096: nothing that short */
	for (i = 0; i < 12; i++)
		assert_int_equal(last.dispatch.buckets[i], 0);
	stub_poll(world, 1);
	assert_int_equal(counted(&stats(world)->dispatch), 1);
}

TIMED(timing__through_the_spill)
{
	struct rpma_rt_completion item = stub_item(1);

	stub_publish(world->lane, 1, STUB_LANE + 3);
	rt_lane_write_poller(world->lane, &item);
	rt_lane_stamp_poller(world->lane, rt_now_ns());
	rt_lane_publish_poller(world->lane);
	stub_poll(world, STUB_LANE);
	rt_lane_retry_poller(world->lane);
	stub_poll(world, 3);
	assert_int_equal(counted(&stats(world)->dispatch), 0);
	stub_poll(world, 1);
	assert_int_equal(counted(&stats(world)->dispatch), 1);
	stub_ring(world->lane);
}

TEST(histogram__edges)
{
	struct rt_histogram histogram = {{0}, 0};
	struct rpma_rt_histogram out;

	rt_histogram_add_mt(&histogram, 0);
	rt_histogram_add_mt(&histogram, 1);
	rt_histogram_add_mt(&histogram, 2);
	rt_histogram_add_mt(&histogram, 3);
	rt_histogram_add_mt(&histogram, UINT64_C(1) << 40);
	rt_histogram_read(&histogram, &out);
	assert_int_equal(out.buckets[0], 2);
	assert_int_equal(out.buckets[1], 2);
	assert_int_equal(out.buckets[RPMA_RT_HISTOGRAM - 1], 1);
	assert_int_equal(out.sum_ns, 6 + (UINT64_C(1) << 40));
}

TEST_MAIN()
