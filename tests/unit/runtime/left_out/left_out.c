/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * Rings that a poller leaves out, step by step on one thread: when it may, how
 * long the ring is due, and which bell is rung in the end.
 */

#include <stdlib.h>

#include "../../../cases.h"
#include "base/self.h"
#include "queue/impl.h"
#include "queue/lane.h"
#include "queue/queue.h"
#include "rt_stub.h"

#define SIZE  64
#define LIMIT 256
#define OTHER UINT64_MAX /* a thread that never was */

struct world {
	struct rpma_rt rt;
	struct rpma_rt_queue *queue;
	struct rt_lane *lane;
	struct rt_left_out list;
	uint64_t self;
	int fd;
};

/* Armed by this thread, which also runs the poller. */
static int setup(void **state)
{
	struct world *world = calloc(1, sizeof(*world));

	if (world == NULL)
		return -1;
	stub_rt_init(&world->rt, 1);
	rt_left_out_init(&world->list);
	world->queue = stub_queue_new(&world->rt, SIZE, LIMIT);
	world->lane = rt_queue_lane(world->queue, 0, &world->rt.bells[0]);
	world->self = rt_self_number();
	*state = world;
	return rpma_rt_queue_get_fd(world->queue, &world->fd) ||
	       rpma_rt_queue_arm(world->queue);
}

static int teardown(void **state)
{
	struct world *world = *state;

	if (world->queue != NULL && rpma_rt_queue_delete(&world->queue))
		return -1;
	rt_left_out_fini(&world->list);
	stub_rt_fini(&world->rt);
	free(world);
	return 0;
}

#define ON_WORLD(name) TEST_OF(struct world *world, name, setup, teardown)

static void take(struct world *world)
{
	struct rpma_rt_completion item;

	assert_int_equal(rpma_rt_queue_poll(world->queue, &item, 1), 1);
}

/* What a round does that this thread runs. */
static void publish(struct world *world, uint32_t count)
{
	stub_publish(world->lane, 0, count);
	rt_fence_dekker();
	assert_true(rt_left_out_may(world->lane, world->self));
	rt_left_out_add_poller(&world->list, world->lane, world->self);
}

ON_WORLD(may__armed_by_the_runner_ONLY)
{
	assert_true(rt_left_out_may(world->lane, world->self));
	assert_false(rt_left_out_may(world->lane, OTHER));
	/* a poller with a thread, or a round that a wait runs */
	assert_false(rt_left_out_may(world->lane, 0));
	/* somebody waits as well */
	rt_bell_arm(&world->queue->bell, RT_BELL_ON_FUTEX);
	assert_false(rt_left_out_may(world->lane, world->self));
	rt_bell_take_back(&world->queue->bell, RT_BELL_ON_FUTEX);
}

ON_WORLD(may__never_armed_FALSE)
{
	rt_bell_ring(&world->queue->bell);
	assert_false(rt_left_out_may(world->lane, world->self));
}

ON_WORLD(may__shared_FALSE)
{
	struct rpma_rt_queue_cfg cfg = RPMA_RT_QUEUE_CFG_INIT;
	struct rpma_rt_queue *queue;
	int fd;

	cfg.shared = true;
	assert_int_equal(rpma_rt_queue_new(&world->rt, &cfg, &queue), 0);
	assert_int_equal(rpma_rt_queue_get_fd(queue, &fd), 0);
	assert_int_equal(rpma_rt_queue_arm(queue), 0);
	assert_false(rt_left_out_may(
		rt_queue_lane(queue, 0, &world->rt.bells[0]), world->self));
	assert_int_equal(rpma_rt_queue_delete(&queue), 0);
}

ON_WORLD(due__until_all_is_taken)
{
	publish(world, 2);
	assert_false(stub_is_readable(world->fd));
	assert_true(rt_left_out_is_due_poller(&world->list, world->self));
	take(world);
	assert_true(rt_left_out_is_due_poller(&world->list, world->self));
	take(world);
	assert_false(rt_left_out_is_due_poller(&world->list, world->self));
	assert_true(rt_left_out_is_empty(&world->list));
	assert_false(stub_is_readable(world->fd));
}

ON_WORLD(due__listed_twice_ONCE)
{
	publish(world, 1);
	publish(world, 1);
	take(world);
	take(world);
	assert_false(rt_left_out_is_due_poller(&world->list, world->self));
	assert_true(rt_left_out_is_empty(&world->list));
}

/* another thread took the queue over, and armed it */
ON_WORLD(due__armed_by_another_RUNG)
{
	publish(world, 1);
	rt_bell_set_armed_by(&world->queue->bell, OTHER);
	assert_false(rt_left_out_is_due_poller(&world->list, world->self));
	assert_true(stub_is_readable(world->fd));
	assert_true(rt_left_out_is_empty(&world->list));
	take(world);
}

ON_WORLD(ring__poller_goes_to_another_RUNG)
{
	publish(world, 1);
	rt_left_out_ring_poller(&world->list);
	assert_true(stub_is_readable(world->fd));
	assert_true(rt_left_out_is_empty(&world->list));
	take(world);
}

ON_WORLD(ring__all_was_taken_QUIET)
{
	publish(world, 1);
	take(world);
	rt_left_out_ring_poller(&world->list);
	assert_false(stub_is_readable(world->fd));
	assert_true(rt_left_out_is_empty(&world->list));
}

ON_WORLD(delete__queue_of_the_list_FORGOTTEN)
{
	publish(world, 1);
	take(world);
	assert_int_equal(rpma_rt_queue_delete(&world->queue), 0);
	assert_true(rt_left_out_is_empty(&world->list));
	assert_false(rt_left_out_is_due_poller(&world->list, world->self));
}

TEST_MAIN()
