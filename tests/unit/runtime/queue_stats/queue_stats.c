/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/* The counters of a queue and, where clocks are read, its times. */

#include <stdlib.h>

#include "../../../cases.h"
#include "base/clock.h"
#include "queue/impl.h"
#include "rt_stub.h"

#define SIZE  64
#define LIMIT 256
#define MAX   (2 * SIZE)

struct world {
	struct rpma_rt rt;
	struct rpma_rt_queue *queue;
	struct rt_lane *lane;
	struct rpma_rt_completion taken[MAX];
	struct rpma_rt_queue_stats stats;
	int got;
};

static int begin(void **state, bool timed)
{
	struct world *world = calloc(1, sizeof(*world));

	if (world == NULL)
		return -1;
	stub_rt_init(&world->rt, 1);
	world->rt.timed = timed;
	world->queue = stub_queue_new(&world->rt, SIZE, LIMIT);
	world->lane = rt_queue_lane(world->queue, 0, &world->rt.bells[0]);
	*state = world;
	return world->lane == NULL ? -1 : 0;
}

static int setup(void **state)
{
	return begin(state, false);
}

static int setup_timed(void **state)
{
	return begin(state, true);
}

static int teardown(void **state)
{
	struct world *world = *state;
	int ret = stub_end(&world->rt, &world->queue);

	if (ret == 0)
		free(world);
	return ret;
}

static int poll_up_to(struct world *world, int max)
{
	world->got = rpma_rt_queue_poll(world->queue, world->taken, max);
	return world->got;
}

static const struct rpma_rt_queue_stats *stats(struct world *world)
{
	assert_int_equal(rpma_rt_queue_get_stats(world->queue, &world->stats,
						 sizeof(world->stats)),
			 0);
	return &world->stats;
}

static uint64_t counted(const struct rpma_rt_histogram *histogram)
{
	uint64_t count = 0;
	int i;

	for (i = 0; i < RPMA_RT_HISTOGRAM; i++)
		count += histogram->buckets[i];
	return count;
}

static void ring(struct world *world)
{
	rt_fence_dekker();
	rt_lane_bell_poller(world->lane);
}

TEST_WITH(get__null_INVAL, setup, teardown)
{
	struct world *world = *state;

	assert_int_equal(rpma_rt_queue_get_stats(NULL, &world->stats,
						 sizeof(world->stats)),
			 RPMA_E_INVAL);
	assert_int_equal(rpma_rt_queue_get_stats(world->queue, NULL, 8),
			 RPMA_E_INVAL);
}

TEST_WITH(calls__counted_by_what_they_found, setup, teardown)
{
	struct world *world = *state;

	poll_up_to(world, MAX);
	stub_publish(world->lane, 1, 3);
	rpma_rt_queue_push(world->queue,
			   &(struct rpma_rt_completion){.context = 4});
	poll_up_to(world, MAX);
	assert_int_equal(rpma_rt_queue_wait(world->queue, world->taken, MAX, 1),
			 0);

	assert_int_equal(stats(world)->polls, 2);
	assert_int_equal(world->stats.waits, 1);
	assert_int_equal(world->stats.empty, 2);
	assert_int_equal(world->stats.batches, 1);
	assert_int_equal(world->stats.taken, 4);
	assert_int_equal(world->stats.messages, 1);
	assert_true(world->stats.sleeps >= 1);
	assert_int_equal(world->stats.wakes, 0);
	assert_int_equal(world->stats.busy, 0);
}

/* A program of an earlier release, and one of a later: as much is written as
 * its struct has, zeros where this library counts nothing. */
TEST_WITH(stats__of_another_size, setup, teardown)
{
	struct world *world = *state;
	struct {
		struct rpma_rt_queue_stats known;
		uint64_t later;
	} stats;

	poll_up_to(world, 1);
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

TEST_WITH(backlog__ring_spill_and_messages, setup, teardown)
{
	struct world *world = *state;

	stub_publish(world->lane, 1, SIZE + 5);
	rpma_rt_queue_push(world->queue, &(struct rpma_rt_completion){0});
	assert_int_equal(stats(world)->backlog, SIZE + 6);
	poll_up_to(world, 2);
	assert_int_equal(stats(world)->backlog, SIZE + 4);
	while (poll_up_to(world, MAX) > 0)
		rt_lane_retry_poller(world->lane);
	ring(world); /* the spill is over */
	assert_int_equal(stats(world)->backlog, 0);
}

TEST_WITH(wakes__one_for_each_sleep, setup, teardown)
{
	struct world *world = *state;
	int fd;

	assert_int_equal(rpma_rt_queue_get_fd(world->queue, &fd), 0);
	assert_int_equal(rpma_rt_queue_arm(world->queue), 0);
	stub_publish(world->lane, 1, 1);
	ring(world);
	ring(world);
	assert_int_equal(stats(world)->wakes, 1);
	/* not timed: no clock was read */
	poll_up_to(world, MAX);
	assert_int_equal(counted(&stats(world)->wakeup), 0);
}

TEST_WITH(timing__wakeup_measured_once, setup_timed, teardown)
{
	struct world *world = *state;
	int fd;

	assert_int_equal(rpma_rt_queue_get_fd(world->queue, &fd), 0);
	assert_int_equal(rpma_rt_queue_arm(world->queue), 0);
	stub_publish(world->lane, 1, 1);
	ring(world);
	poll_up_to(world, MAX);
	poll_up_to(world, MAX);
	assert_int_equal(counted(&stats(world)->wakeup), 1);
	assert_true(world->stats.wakeup.sum_ns > 0);
}

TEST_WITH(timing__dispatch_until_the_last_item, setup_timed, teardown)
{
	struct world *world = *state;
	struct rpma_rt_completion item = stub_item(1);
	int i;

	for (i = 0; i < 3; i++)
		rt_lane_write_poller(world->lane, &item);
	rt_lane_stamp_poller(world->lane, rt_now_ns() - 5000);
	rt_lane_publish_poller(world->lane);
	poll_up_to(world, 2);
	assert_int_equal(counted(&stats(world)->dispatch), 0);
	/* one at a time: the second is not timed */
	stub_publish(world->lane, 1, 1);
	rt_lane_stamp_poller(world->lane, rt_now_ns());
	poll_up_to(world, 1);
	assert_int_equal(counted(&stats(world)->dispatch), 1);
	assert_true(world->stats.dispatch.sum_ns >= 5000);
	/* 2^12 = 4096: nothing that short */
	for (i = 0; i < 12; i++)
		assert_int_equal(world->stats.dispatch.buckets[i], 0);
	poll_up_to(world, 1);
	assert_int_equal(counted(&stats(world)->dispatch), 1);
}

TEST_WITH(timing__through_the_spill, setup_timed, teardown)
{
	struct world *world = *state;
	struct rpma_rt_completion item = stub_item(1);

	stub_publish(world->lane, 1, SIZE + 3);
	rt_lane_write_poller(world->lane, &item);
	rt_lane_stamp_poller(world->lane, rt_now_ns());
	rt_lane_publish_poller(world->lane);
	poll_up_to(world, SIZE);
	rt_lane_retry_poller(world->lane);
	poll_up_to(world, 3);
	assert_int_equal(counted(&stats(world)->dispatch), 0);
	poll_up_to(world, 1);
	assert_int_equal(counted(&stats(world)->dispatch), 1);
	ring(world);
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

int main(void)
{
#undef TEST
#undef TIMED

	return tests_run(NULL, NULL);
}
