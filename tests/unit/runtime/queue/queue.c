/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * The calls of the queue on one thread: results, fairness, the eventfd, and the
 * end of a queue.
 */

#define _GNU_SOURCE
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "../../../cases.h"
#include "base/self.h"
#include "queue/impl.h"
#include "queue/queue.h"
#include "rt_stub.h"

#define POLLERS 3

/* a thread that deletes, once */
static struct {
	_Atomic int tid; /* 0: not yet */
	int ret;
} deleter;

/* Pushes a message with nothing but a context. */
static int push(struct rpma_rt_queue *queue, uint64_t context)
{
	const struct rpma_rt_completion item = {.context = context};

	return rpma_rt_queue_push(queue, &item);
}

static int fail_next; /* so many allocations fail */

void *__real_malloc(size_t size);
void *__real_aligned_alloc(size_t alignment, size_t size);
void *__wrap_malloc(size_t size);
void *__wrap_aligned_alloc(size_t alignment, size_t size);

static int allocations;

static int is_failing(void)
{
	int failing = fail_next > 0;

	allocations++;
	fail_next -= failing;
	return failing;
}

void *__wrap_malloc(size_t size)
{
	return is_failing() ? NULL : __real_malloc(size);
}

void *__wrap_aligned_alloc(size_t alignment, size_t size)
{
	return is_failing() ? NULL : __real_aligned_alloc(alignment, size);
}

/* the waker inside this queue goes on when a thread waits for the waker */
static struct rpma_rt_queue *leaves_when_waited_for;
/* the thread that the consumer waits for runs when the consumer yields */
static struct rpma_rt_queue *pushes_when_yielded;

int __real_sched_yield(void);
int __wrap_sched_yield(void);

int __wrap_sched_yield(void)
{
	struct rpma_rt_queue *queue = leaves_when_waited_for;

	if (pushes_when_yielded != NULL) {
		push(pushes_when_yielded, 9);
		pushes_when_yielded = NULL;
		return 0;
	}
	if (queue == NULL)
		return __real_sched_yield();
	leaves_when_waited_for = NULL;
	/* relaxed: a single thread */
	atomic_fetch_sub_explicit(&queue->woken, RT_QUEUE_WAKER,
				  memory_order_relaxed);
	return 0;
}

static int setup(void **state)
{
	/* relaxed: a single thread */
	atomic_store_explicit(&deleter.tid, 0, memory_order_relaxed);
	return stub_open(state, POLLERS, false, false);
}

#define ON_WORLD(name) \
	TEST_OF(struct stub_world *world, name, setup, stub_close)

static struct rt_lane *lane_of(struct stub_world *world, int poller)
{
	return rt_queue_lane(world->queue, poller, &world->rt.bells[poller]);
}

ON_WORLD(new__no_memory_NOMEM)
{
	struct rpma_rt_queue *queue = NULL;

	fail_next = 1;
	assert_int_equal(rpma_rt_queue_new(&world->rt, NULL, &queue),
			 RPMA_E_NOMEM);
	assert_null(queue);
	assert_int_equal(world->rt.queues, 1);
}

ON_WORLD(delete__messages_left_FREED)
{
	/* the leak checker verifies the result */
	assert_int_equal(push(world->queue, 1), 0);
	assert_int_equal(push(world->queue, 2), 0);
}

/* an item never taken may carry a handle, which only the drop gives back */
ON_WORLD(delete__items_left_DROPPED)
{
	struct rt_lane *lane = lane_of(world, 0);
	const struct rpma_rt_completion item = stub_item(1);

	rt_lane_write_poller(lane, &item);
	rt_lane_write_poller(lane, &item);
	rt_lane_publish_poller(lane);
	assert_int_equal(rpma_rt_queue_delete(&world->queue), 0);
	assert_int_equal(world->rt.drops, 2);
}

static void *delete_main(void *arg)
{
	struct stub_world *world = arg;

	/* relaxed: a number */
	atomic_store_explicit(&deleter.tid, gettid(), memory_order_relaxed);
	deleter.ret = rpma_rt_queue_delete(&world->queue);
	return NULL;
}

/* the taker of the last item may delete: the poller is about to let go */
ON_WORLD(delete__a_spill_that_leaves_WAITS)
{
	struct rt_lane *lane = lane_of(world, 0);
	pthread_t thread;

	rt_queue_ref_spill_poller(lane);
	rt_queue_announce_spill_poller(lane, true);
	assert_int_equal(pthread_create(&thread, NULL, delete_main, world), 0);
	rt_queue_unref_spill_poller(lane);
	pthread_join(thread, NULL);
	assert_int_equal(deleter.ret, 0);
}

/* there are more items after all, so the delete does not wait */
ON_WORLD(delete__a_spill_that_stays_BUSY)
{
	struct rt_lane *lane = lane_of(world, 0);
	pthread_t thread;

	rt_queue_ref_spill_poller(lane);
	rt_queue_announce_spill_poller(lane, true);
	assert_int_equal(pthread_create(&thread, NULL, delete_main, world), 0);
	rt_queue_announce_spill_poller(lane, false);
	pthread_join(thread, NULL);
	assert_int_equal(deleter.ret, RPMA_RT_E_BUSY);
	rt_queue_unref_spill_poller(lane);
	assert_int_equal(rpma_rt_queue_delete(&world->queue), 0);
}

/* Waits until the deleting thread sleeps. */
static void await_deleter(void)
{
	char path[64];
	char state = '?';
	FILE *file;
	int tid;

	while (state != 'S') {
		sched_yield();
		/* relaxed: a number */
		tid = atomic_load_explicit(&deleter.tid, memory_order_relaxed);
		snprintf(path, sizeof(path), "/proc/self/task/%d/stat", tid);
		file = tid != 0 ? fopen(path, "re") : NULL;
		if (file == NULL)
			continue;
		if (fscanf(file, "%*d (%*[^)]) %c", &state) != 1)
			state = '?';
		fclose(file);
	}
}

/* the last item of a user went to a spill, which is a user, too */
ON_WORLD(delete__the_last_item_in_a_spill_BUSY)
{
	struct rt_lane *lane = lane_of(world, 0);
	pthread_t thread;

	rt_queue_ref(world->queue);
	rt_queue_announce_unref(world->queue);
	assert_int_equal(pthread_create(&thread, NULL, delete_main, world), 0);
	await_deleter();
	rt_queue_ref_spill_poller(lane);
	rt_queue_unref_announced(world->queue);
	pthread_join(thread, NULL);
	assert_int_equal(deleter.ret, RPMA_RT_E_BUSY);
	rt_queue_unref_spill_poller(lane);
	assert_int_equal(rpma_rt_queue_delete(&world->queue), 0);
}

/* ended pollers put nothing any more */
ON_WORLD(finish__a_spill_holds_it_PUT)
{
	rt_queue_ref_spill_poller(lane_of(world, 0));
	rt_queue_finish(world->queue);
	assert_int_equal(rpma_rt_queue_delete(&world->queue), 0);
}

ON_WORLD(lane__no_memory_NULL)
{
	fail_next = 1;
	assert_null(lane_of(world, 0));
	assert_non_null(lane_of(world, 0));
}

/* a single poll collects from all lanes and the messages */
ON_WORLD(poll__several_sources_ALL)
{
	int i;

	for (i = 0; i < POLLERS; i++)
		stub_publish(lane_of(world, i), i, 1);
	assert_int_equal(push(world->queue, POLLERS), 0);
	assert_int_equal(stub_poll(world, STUB_MAX), POLLERS + 1);
	assert_int_equal(stub_poll(world, STUB_MAX), 0);
}

/* a source that is always full does not keep the others out */
ON_WORLD(poll__one_lane_always_full_OTHERS_COME)
{
	uint64_t seen = 0;
	int i, j;

	for (i = 0; i < POLLERS; i++)
		stub_publish(lane_of(world, i), (uint64_t)i * 1000, STUB_LANE);
	assert_int_equal(push(world->queue, (uint64_t)POLLERS * 1000), 0);
	for (i = 0; i < POLLERS + 1; i++) {
		assert_true(stub_poll(world, 4) > 0);
		for (j = 0; j < world->got; j++)
			seen |= 1u << (world->taken[j].context / 1000);
	}
	assert_int_equal(seen, (1u << (POLLERS + 1)) - 1);
}

/* A few or many, in one piece or around the end of the ring. */
ON_WORLD(poll__any_number_anywhere_in_the_ring_IN_ORDER)
{
	struct rt_lane *lane = lane_of(world, 0);
	uint64_t next = 0;
	int count, i;

	for (count = 1; count <= STUB_LANE; count++) {
		stub_publish(lane, next, (uint32_t)count);
		assert_int_equal(stub_poll(world, STUB_MAX), count);
		for (i = 0; i < count; i++)
			assert_int_equal(world->taken[i].context, next++);
		assert_int_equal(stub_poll(world, STUB_MAX), 0);
	}
}

ON_WORLD(push__no_memory_NOMEM)
{
	/* no memory for several messages, and for a message */
	fail_next = 2;
	assert_int_equal(push(world->queue, 1), RPMA_E_NOMEM);
	assert_int_equal(stub_poll(world, 1), 0);
	/* for a message there is */
	fail_next = 1;
	assert_int_equal(push(world->queue, 2), 0);
	assert_int_equal(stub_poll(world, 1), 1);
	assert_int_equal(world->taken[0].context, 2);
}

/* The consumer had its CPU alone; the thread that it waits for has come to the
 * CPU since, and gets the CPU within the wait. */
ON_WORLD(wait__spinning_gives_the_CPU_up)
{
	world->queue->params.spin_us = 1000000;
	rt_share_known = (struct rt_share_known){
		.until_ns = UINT64_MAX, .share = RT_SHARE_ALONE, .times = 1};
	pushes_when_yielded = world->queue;
	assert_int_equal(
		rpma_rt_queue_wait(world->queue, world->taken, STUB_MAX, 10000),
		1);
	assert_null(pushes_when_yielded);
	rt_share_known = (struct rt_share_known){.times = 1};
}

/* As many as allowed; the next when one was taken. */
ON_WORLD(push__too_many_BUSY)
{
	struct rpma_rt_queue *queue = world->queue;
	struct rpma_rt_completion item;
	struct rpma_rt_queue_stats stats;
	uint32_t i;

	for (i = 0; i < RPMA_RT_MAX_MESSAGES; i++)
		assert_int_equal(push(queue, i), 0);
	assert_int_equal(push(queue, i), RPMA_RT_E_BUSY);
	assert_int_equal(rpma_rt_queue_poll(queue, &item, 1), 1);
	assert_int_equal(push(queue, i), 0);
	assert_int_equal(push(queue, i), RPMA_RT_E_BUSY);
	assert_int_equal(rpma_rt_queue_get_stats(queue, &stats, sizeof(stats)),
			 0);
	assert_int_equal(stats.messages, RPMA_RT_MAX_MESSAGES + 1);
	for (i = 1; i <= RPMA_RT_MAX_MESSAGES; i++) {
		assert_int_equal(rpma_rt_queue_poll(queue, &item, 1), 1);
		assert_int_equal(item.context, i);
	}
	assert_int_equal(rpma_rt_queue_poll(queue, &item, 1), 0);
}

/* The pusher counted its message, and looks when the messages that other
 * pushers counted later were taken. */
ON_WORLD(push__overtaken_IS_NOT_BUSY)
{
	struct rpma_rt_queue *queue = world->queue;
	struct rpma_rt_completion item;

	/* relaxed, both: no other thread uses the queue */
	atomic_store_explicit(&queue->taken_seen, 3, memory_order_relaxed);
	atomic_store_explicit(&queue->stats.messages_taken, 3,
			      memory_order_relaxed);
	assert_int_equal(push(queue, 7), 0);
	assert_int_equal(rpma_rt_queue_poll(queue, &item, 1), 1);
	assert_int_equal(item.context, 7);
}

static void pass_messages(struct stub_world *world, int count)
{
	struct rpma_rt_completion item;
	int i;

	for (i = 0; i < count; i++)
		assert_int_equal(push(world->queue, (uint64_t)i), 0);
	for (i = 0; i < count; i++) {
		assert_int_equal(rpma_rt_queue_poll(world->queue, &item, 1), 1);
		assert_int_equal(item.context, i);
	}
}

/* Messages are used again: alone, and as bursts of any usual size. */
ON_WORLD(push__steady_ALLOCATES_NOTHING)
{
	static const int bursts[] = {1, 7, 100, 900};
	size_t i;
	int j;

	for (i = 0; i < sizeof(bursts) / sizeof(bursts[0]); i++) {
		for (j = 0; j < 100; j++)
			pass_messages(world, bursts[i]);
		allocations = 0;
		for (j = 0; j < 100; j++)
			pass_messages(world, bursts[i]);
		assert_int_equal(allocations, 0);
	}
	/* more than are kept */
	pass_messages(world, 3000);
	allocations = 0;
	pass_messages(world, 900);
	assert_int_equal(allocations, 0);
}

/* Held messages stay, invisible; pushers of other queues see nothing of the
 * hold; the messages come in order after the hold, also after the end. */
ON_WORLD(hold__messages_STAY)
{
	struct rpma_rt_queue *queue = world->queue;
	struct rpma_rt_completion items[4];
	int fd;

	assert_int_equal(rpma_rt_queue_get_fd(queue, &fd), 0);
	assert_int_equal(rpma_rt_queue_hold(queue, 1), 0);
	assert_int_equal(push(queue, 1), 0);
	assert_int_equal(rpma_rt_queue_poll(queue, items, 4), 0);
	assert_int_equal(rpma_rt_queue_wait(queue, items, 4, 1), 0);
	assert_int_equal(rpma_rt_queue_arm(queue), 0);
	assert_int_equal(push(queue, 2), 0);
	assert_int_equal(rpma_rt_queue_hold(queue, 0), 0);
	assert_int_equal(rpma_rt_queue_arm(queue), 1);
	assert_int_equal(rpma_rt_queue_poll(queue, items, 4), 2);
	assert_int_equal(items[0].context, 1);
	assert_int_equal(items[1].context, 2);
	assert_int_equal(push(queue, 3), 0);
	assert_int_equal(rpma_rt_queue_hold(queue, 1), 0);
	assert_int_equal(rpma_rt_queue_close(queue), 0);
	assert_int_equal(rpma_rt_queue_poll(queue, items, 4), RPMA_RT_E_CLOSED);
	assert_int_equal(rpma_rt_queue_hold(queue, 0), 0);
	assert_int_equal(rpma_rt_queue_poll(queue, items, 4), 1);
	assert_int_equal(items[0].context, 3);
	assert_int_equal(rpma_rt_queue_poll(queue, items, 4), RPMA_RT_E_CLOSED);
}

/* outstanding completions still arrive, so the queue is not over before its
 * users are gone */
ON_WORLD(close__users_left_NONE)
{
	struct rt_lane *lane = lane_of(world, 0);

	rt_queue_ref(world->queue);
	assert_int_equal(rpma_rt_queue_close(world->queue), 0);
	assert_int_equal(stub_poll(world, STUB_MAX), 0);
	stub_publish(lane, 3, 1);
	assert_int_equal(stub_poll(world, STUB_MAX), 1);
	stub_publish(lane, 4, 1);
	rt_queue_unref(world->queue);
	assert_int_equal(stub_poll(world, STUB_MAX), 1);
	assert_int_equal(stub_poll(world, STUB_MAX), RPMA_RT_E_CLOSED);
}

/* a spill is on the way although no connection is left */
ON_WORLD(close__spill_left_NOT_CLOSED)
{
	struct rt_lane *lane = lane_of(world, 0);

	stub_publish(lane, 0, STUB_LANE + 1);
	rt_queue_ref_spill_poller(lane);
	stub_ring(lane);
	assert_int_equal(rpma_rt_queue_close(world->queue), 0);
	assert_int_equal(stub_poll(world, STUB_MAX), STUB_LANE);
	assert_int_equal(stub_poll(world, STUB_MAX), 0);
	assert_int_equal(rt_lane_retry_poller(lane), 1);
	stub_ring(lane);
	rt_queue_unref_spill_poller(lane);
	assert_int_equal(stub_poll(world, STUB_MAX), 1);
	assert_int_equal(stub_poll(world, STUB_MAX), RPMA_RT_E_CLOSED);
}

/* the runtime stopped: rings and spills are the consumer's, users or not */
ON_WORLD(finish__ring_and_spill_left_ALL_THEN_CLOSED)
{
	int sum = 0;

	rt_queue_ref(world->queue);
	stub_publish(lane_of(world, 0), 0, STUB_LANE + 20);
	stub_publish(lane_of(world, 1), 0, STUB_LANE + 20);
	assert_int_equal(push(world->queue, 1), 0);
	rt_queue_finish(world->queue);
	assert_int_equal(push(world->queue, 1), RPMA_RT_E_CLOSED);
	while (stub_poll(world, 16) > 0)
		sum += world->got;
	assert_int_equal(sum, 2 * (STUB_LANE + 20) + 1);
	assert_int_equal(stub_poll(world, 16), RPMA_RT_E_CLOSED);
	/* the reference of the test; the pollers gave the references of spills
	 * back */
	rt_queue_unref(world->queue);
}

/* polling announces no sleep: no write, and no read */
ON_WORLD(poll__empty_NOT_ARMED)
{
	struct rt_lane *lane = lane_of(world, 0);
	int fd = stub_fd(world);

	assert_int_equal(stub_poll(world, 1), 0);
	stub_publish(lane, 0, 1);
	assert_false(stub_ring(lane));
	assert_false(stub_is_readable(fd));
	assert_int_equal(stub_poll(world, 1), 1);
}

ON_WORLD(arm__published_before_1)
{
	struct rt_lane *lane = lane_of(world, 0);

	assert_true(stub_fd(world) >= 0);
	stub_publish(lane, 0, 1);
	assert_int_equal(rpma_rt_queue_arm(world->queue), 1);
	/* the consumer does not sleep: no wake is needed */
	assert_false(stub_ring(lane));
	assert_int_equal(stub_poll(world, 1), 1);
	assert_int_equal(push(world->queue, 1), 0);
	assert_int_equal(rpma_rt_queue_arm(world->queue), 1);
	assert_int_equal(stub_poll(world, 1), 1);
	assert_int_equal(rpma_rt_queue_arm(world->queue), 0);
}

/* later polls and waits leave the eventfd readable */
ON_WORLD(arm__then_polled_and_waited_STILL_ARMED)
{
	int fd = stub_fd(world);

	assert_int_equal(rpma_rt_queue_arm(world->queue), 0);
	assert_int_equal(stub_poll(world, 1), 0);
	assert_int_equal(rpma_rt_queue_wait(world->queue, world->taken, 1, 1),
			 0);
	assert_int_equal(push(world->queue, 1), 0);
	assert_true(stub_is_readable(fd));
	assert_int_equal(stub_poll(world, 1), 1);
}

/* a consumer that stays away costs its pollers a single write */
ON_WORLD(arm__published_twice_ONE_WRITE)
{
	struct rt_lane *lane = lane_of(world, 0);
	uint64_t writes = 0;
	int fd = stub_fd(world);

	assert_int_equal(rpma_rt_queue_arm(world->queue), 0);
	stub_publish(lane, 0, 1);
	assert_true(stub_ring(lane));
	stub_publish(lane, 1, 1);
	assert_false(stub_ring(lane));
	assert_int_equal(read(fd, &writes, sizeof(writes)), sizeof(writes));
	assert_int_equal(writes, 1);
	assert_int_equal(stub_poll(world, STUB_MAX), 2);
}

ON_WORLD(arm__last_user_left_READABLE)
{
	int fd = stub_fd(world);

	rt_queue_ref(world->queue);
	assert_int_equal(rpma_rt_queue_close(world->queue), 0);
	assert_int_equal(rpma_rt_queue_arm(world->queue), 0);
	assert_false(stub_is_readable(fd));
	rt_queue_unref(world->queue);
	assert_true(stub_is_readable(fd));
	assert_int_equal(stub_poll(world, 1), RPMA_RT_E_CLOSED);
}

/* closed, with a pusher inside: the message comes in a moment */
ON_WORLD(arm__closed_with_pusher_inside_1)
{
	assert_true(stub_fd(world) >= 0);
	assert_int_equal(rpma_rt_queue_close(world->queue), 0);
	/* relaxed, both: a single thread */
	atomic_fetch_add_explicit(&world->queue->gate, RT_QUEUE_PUSHER,
				  memory_order_relaxed);
	assert_int_equal(rpma_rt_queue_arm(world->queue), 1);
	atomic_fetch_sub_explicit(&world->queue->gate, RT_QUEUE_PUSHER,
				  memory_order_relaxed);
	assert_int_equal(rpma_rt_queue_arm(world->queue), RPMA_RT_E_CLOSED);
}

/* the poller sleeps on a spill; arming an empty queue must wake the poller */
ON_WORLD(arm__with_poller_asleep_on_spill_RINGS)
{
	struct rt_lane *lane = lane_of(world, 0);
	struct rt_bell *poller = &world->rt.bells[0];
	int fd = stub_fd(world);

	stub_publish(lane, 0, STUB_LANE + 1);
	assert_int_equal(stub_poll(world, STUB_MAX), STUB_LANE);
	assert_true(rt_lane_arm_spill_poller(lane));
	rt_bell_prepare(poller);
	assert_int_equal(rpma_rt_queue_arm(world->queue), 0);
	assert_true(stub_is_readable(rt_bell_fd(poller)));
	rt_bell_cancel(poller);
	assert_int_equal(rt_lane_retry_poller(lane), 1);
	assert_true(stub_ring(lane));
	assert_true(stub_is_readable(fd));
	assert_int_equal(stub_poll(world, STUB_MAX), 1);
}

/* the poller armed after the empty poll, and nothing was taken since */
ON_WORLD(poll__empty_twice_with_poller_asleep_LATER_RUNG)
{
	struct rt_lane *lane = lane_of(world, 0);
	struct rt_bell *poller = &world->rt.bells[0];

	stub_publish(lane, 0, STUB_LANE + 1);
	assert_int_equal(stub_poll(world, STUB_MAX), STUB_LANE);
	assert_int_equal(stub_poll(world, STUB_MAX), 0);
	/* the poller sees the room without a ring */
	assert_true(rt_lane_arm_spill_poller(lane));
	rt_bell_prepare(poller);
	assert_true(rt_lane_has_room_poller(lane));
	rt_bell_cancel(poller);
	assert_int_equal(rt_lane_retry_poller(lane), 1);
	assert_int_equal(stub_poll(world, STUB_MAX), 1);
}

/* the poller sleeps on a spill; an empty poll must wake the poller */
ON_WORLD(poll__empty_with_poller_asleep_on_spill_RINGS)
{
	struct rt_lane *lane = lane_of(world, 0);
	struct rt_bell *poller = &world->rt.bells[0];

	stub_publish(lane, 0, STUB_LANE + 1);
	assert_int_equal(stub_poll(world, STUB_MAX), STUB_LANE);
	/* the poller armed after the take, and did not look again */
	assert_true(rt_lane_arm_spill_poller(lane));
	rt_bell_prepare(poller);
	assert_int_equal(stub_poll(world, STUB_MAX), 0);
	assert_true(stub_is_readable(rt_bell_fd(poller)));
	rt_bell_cancel(poller);
	assert_int_equal(rt_lane_retry_poller(lane), 1);
	stub_ring(lane);
	assert_int_equal(stub_poll(world, STUB_MAX), 1);
}

static struct rt_joint *joint_new(struct stub_world *world, uint32_t lanes)
{
	struct rt_joint *joint = calloc(1, sizeof(*joint));

	assert_non_null(joint);
	/* relaxed: a single thread */
	atomic_store_explicit(&joint->lanes, lanes, memory_order_relaxed);
	joint->item = stub_item(77);
	rt_joint_announce(world->queue);
	return joint;
}

static void publish_token(struct rt_lane *lane, const struct rt_joint *joint)
{
	const struct rpma_rt_completion token = rt_joint_token(joint);

	rt_lane_write_poller(lane, &token);
	rt_lane_publish_poller(lane);
}

/* an item of two lanes is behind the items of both, in any order of taking; a
 * batch with only a token is not taken for empty */
ON_WORLD(take__item_of_two_lanes_LAST)
{
	struct rt_joint *joint = joint_new(world, 2);
	struct rt_lane *lanes[2];
	int n = 0;

	lanes[0] = lane_of(world, 0);
	lanes[1] = lane_of(world, 1);
	publish_token(lanes[1], joint);
	stub_publish(lanes[0], 0, 3);
	publish_token(lanes[0], joint);
	while (stub_poll(world, 1) == 1)
		assert_int_equal(world->taken[0].context, n++ < 3 ? n - 1 : 77);
	assert_int_equal(n, 4);
	/* relaxed: a single thread */
	assert_int_equal(atomic_load_explicit(&world->queue->joints,
					      memory_order_relaxed),
			 0);
}

/* in a queue with a single lane, with an item before the token, behind the
 * token, or neither */
ON_WORLD(take__token_in_the_one_lane_DROPPED)
{
	struct rt_lane *lane = lane_of(world, 0);
	struct rt_joint *joint = joint_new(world, 5);
	int i;

	for (i = 0; i < 4; i++) {
		if (i & 1)
			stub_publish(lane, 1, 1);
		publish_token(lane, joint);
		if (i & 2)
			stub_publish(lane, 2, 1);
		assert_int_equal(stub_poll(world, STUB_MAX),
				 (i & 1) + (i >> 1));
		if (i & 1)
			assert_int_equal(world->taken[0].context, 1);
		if (i & 2)
			assert_int_equal(world->taken[i & 1].context, 2);
	}
	publish_token(lane, joint);
	assert_int_equal(stub_poll(world, STUB_MAX), 1);
	assert_int_equal(world->taken[0].context, 77);
}

/* deleting a queue with tokens inside frees their joints */
ON_WORLD(delete__token_inside_FREED)
{
	struct rt_joint *joint = joint_new(world, 2);

	publish_token(lane_of(world, 0), joint);
	publish_token(lane_of(world, 1), joint);
	assert_int_equal(rpma_rt_queue_delete(&world->queue), 0);
	assert_int_equal(world->rt.drops, 1);
}

/* a wake before the wait is not lost, and is used up by the wait */
ON_WORLD(wake__before_a_wait_THAT_ANSWERS_0)
{
	errno = EDOM;
	assert_int_equal(rpma_rt_queue_wake(world->queue), 0);
	assert_int_equal(rpma_rt_queue_wake(world->queue), 0);
	assert_int_equal(errno, EDOM);
	assert_int_equal(rpma_rt_queue_wait(world->queue, world->taken, 1, -1),
			 0);
	assert_false(rt_wake_is_due(world->queue));
}

/* an item comes first; a poll leaves the wake to a thread that would sleep */
ON_WORLD(wake__with_an_item_THE_ITEM_THEN_0)
{
	assert_int_equal(rpma_rt_queue_wake(world->queue), 0);
	assert_int_equal(stub_poll(world, 1), 0);
	assert_int_equal(push(world->queue, 1), 0);
	assert_int_equal(rpma_rt_queue_wait(world->queue, world->taken, 1, -1),
			 1);
	assert_int_equal(rpma_rt_queue_wait(world->queue, world->taken, 1, -1),
			 0);
}

static void *wait_main(void *arg)
{
	struct stub_world *world = arg;

	world->got = rpma_rt_queue_wait(world->queue, world->taken, 1, -1);
	return NULL;
}

/* Begins a wait in another thread, and returns when that thread sleeps. */
static pthread_t begin_waiting(struct stub_world *world)
{
	pthread_t thread;

	world->got = -1;
	assert_int_equal(pthread_create(&thread, NULL, wait_main, world), 0);
	while (rt_bell_ways(&world->queue->bell) != RT_BELL_ON_FUTEX)
		sched_yield();
	return thread;
}

ON_WORLD(wake__while_one_waits_IT_ANSWERS_0)
{
	pthread_t thread = begin_waiting(world);

	assert_int_equal(rpma_rt_queue_wake(world->queue), 0);
	pthread_join(thread, NULL);
	assert_int_equal(world->got, 0);
}

static struct rpma_rt_queue *to_wake;

static void wake_in_handler(int number)
{
	(void)number;
	rpma_rt_queue_wake(to_wake);
}

ON_WORLD(wake__in_a_handler_of_the_waiting_thread_ANSWERS_0)
{
	struct sigaction action = {.sa_handler = wake_in_handler,
				   .sa_flags = SA_RESTART};
	pthread_t thread;

#ifdef __SANITIZE_THREAD__
	/* the sanitizer keeps a signal back until the thread makes a known
	 * call; the sleep on a futex is no known call */
	skip();
#endif
	to_wake = world->queue;
	assert_int_equal(sigaction(SIGUSR1, &action, NULL), 0);
	thread = begin_waiting(world);
	pthread_kill(thread, SIGUSR1);
	pthread_join(thread, NULL);
	assert_int_equal(world->got, 0);
	signal(SIGUSR1, SIG_DFL);
}

/* closed, but users may still bring items: the waiter is woken */
ON_WORLD(wake__closed_with_users_ANSWERS_0_THEN_CLOSED)
{
	rt_queue_ref(world->queue);
	assert_int_equal(rpma_rt_queue_close(world->queue), 0);
	assert_int_equal(rpma_rt_queue_wake(world->queue), 0);
	assert_int_equal(rpma_rt_queue_wait(world->queue, world->taken, 1, -1),
			 0);
	rt_queue_unref(world->queue);
	assert_int_equal(rpma_rt_queue_wake(world->queue), 0);
	assert_int_equal(rpma_rt_queue_wait(world->queue, world->taken, 1, -1),
			 RPMA_RT_E_CLOSED);
}

ON_WORLD(arm__woken_before_1_ONCE)
{
	int fd = stub_fd(world);

	assert_int_equal(rpma_rt_queue_wake(world->queue), 0);
	assert_int_equal(rpma_rt_queue_arm(world->queue), 1);
	assert_int_equal(rpma_rt_queue_arm(world->queue), 0);
	assert_false(stub_is_readable(fd));
}

ON_WORLD(arm__then_woken_READABLE_UNTIL_ARMED)
{
	int fd = stub_fd(world);

	assert_int_equal(rpma_rt_queue_arm(world->queue), 0);
	assert_int_equal(rpma_rt_queue_wake(world->queue), 0);
	assert_true(stub_is_readable(fd));
	assert_int_equal(rpma_rt_queue_arm(world->queue), 1);
	assert_true(stub_is_readable(fd));
	assert_int_equal(rpma_rt_queue_arm(world->queue), 0);
	assert_false(stub_is_readable(fd));
}

/* the woken thread deletes the queue before the waker has finished */
ON_WORLD(delete__a_waker_inside_WAITS)
{
	/* relaxed: a single thread. As a wake stopped before its ring */
	atomic_fetch_add_explicit(&world->queue->woken, RT_QUEUE_WAKER,
				  memory_order_relaxed);
	leaves_when_waited_for = world->queue;
	assert_int_equal(rpma_rt_queue_delete(&world->queue), 0);
	assert_null(leaves_when_waited_for);
	assert_null(world->queue);
}

TEST_MAIN()
