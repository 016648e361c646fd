/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * The bell, driven step by step on one thread: each order of ring, sleep and
 * cancel, and the write that comes late.
 */

#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>

#include <librpma.h>

#include "../../../cases.h"
#include "base/bell.h"
#include "rt_stub.h"

static int setup(void **state)
{
	struct rt_bell *bell = malloc(sizeof(*bell));

	if (bell == NULL || rt_bell_init(bell))
		return -1;
	*state = bell;
	return 0;
}

static int teardown(void **state)
{
	rt_bell_fini(*state);
	free(*state);
	return 0;
}

/* an awake bell costs its ringers no system call */
TEST_WITH(ring__awake_NOTHING, setup, teardown)
{
	struct rt_bell *bell = *state;

	rt_bell_ring(bell);
	assert_false(stub_is_readable(rt_bell_fd(bell)));
	assert_false(rt_bell_ring_fenced(bell));
}

TEST_WITH(ring__asleep_READABLE, setup, teardown)
{
	struct rt_bell *bell = *state;

	rt_bell_prepare(bell);
	assert_true(rt_bell_is_asleep(bell));
	rt_bell_ring(bell);
	assert_true(stub_is_readable(rt_bell_fd(bell)));
	assert_false(rt_bell_is_asleep(bell));
}

/* many ringers, one sleep: one write */
TEST_WITH(ring__twice_asleep_ONE_WRITE, setup, teardown)
{
	struct rt_bell *bell = *state;
	uint64_t writes = 0;

	rt_bell_prepare(bell);
	assert_true(rt_bell_ring_fenced(bell));
	assert_false(rt_bell_ring_fenced(bell));
	assert_int_equal(read(rt_bell_fd(bell), &writes, sizeof(writes)),
			 sizeof(writes));
	assert_int_equal(writes, 1);
}

TEST_WITH(cancel__rung_QUIET, setup, teardown)
{
	struct rt_bell *bell = *state;

	rt_bell_prepare(bell);
	rt_bell_ring(bell);
	rt_bell_cancel(bell);
	assert_false(stub_is_readable(rt_bell_fd(bell)));
	assert_int_equal(bell->owed, 0);
}

TEST_WITH(cancel__not_rung_AWAKE, setup, teardown)
{
	struct rt_bell *bell = *state;

	rt_bell_prepare(bell);
	rt_bell_cancel(bell);
	rt_bell_ring(bell);
	assert_false(stub_is_readable(rt_bell_fd(bell)));
}

TEST_WITH(cancel__not_prepared_NOTHING, setup, teardown)
{
	struct rt_bell *bell = *state;

	rt_bell_cancel(bell);
	assert_false(stub_is_readable(rt_bell_fd(bell)));
}

/* the ringer stopped between its exchange and its write */
TEST_WITH(cancel__write_late_QUIET_AFTER_NEXT, setup, teardown)
{
	struct rt_bell *bell = *state;
	const uint64_t one = 1;

	rt_bell_prepare(bell);
	/* the ringer's first half */
	atomic_store_explicit(&bell->word, RT_BELL_AWAKE, memory_order_release);
	rt_bell_cancel(bell);
	assert_int_equal(bell->owed, 1);

	/* asleep again, and now its second half: a spurious wake-up, once */
	rt_bell_prepare(bell);
	assert_int_equal(write(rt_bell_fd(bell), &one, sizeof(one)),
			 sizeof(one));
	assert_true(stub_is_readable(rt_bell_fd(bell)));
	rt_bell_cancel(bell);
	assert_false(stub_is_readable(rt_bell_fd(bell)));
	assert_int_equal(bell->owed, 0);
}

/* a late write and another ringer's in one read: both are accounted for */
TEST_WITH(cancel__late_and_new_write_BOTH_COUNTED, setup, teardown)
{
	struct rt_bell *bell = *state;
	const uint64_t one = 1;

	rt_bell_prepare(bell);
	atomic_store_explicit(&bell->word, RT_BELL_AWAKE, memory_order_release);
	rt_bell_cancel(bell);
	rt_bell_prepare(bell);
	rt_bell_ring(bell);
	assert_int_equal(write(rt_bell_fd(bell), &one, sizeof(one)),
			 sizeof(one));
	rt_bell_cancel(bell);
	assert_int_equal(bell->owed, 0);
	assert_false(stub_is_readable(rt_bell_fd(bell)));
}

/* ------------------------------------------------------- a queue's bell --- */

/* rung between arm and sleep: the sleep does not begin */
TEST_WITH(sleep_armed__rung_before_RETURNS, setup, teardown)
{
	struct rt_bell *bell = *state;

	rt_bell_arm(bell, RT_BELL_ON_FUTEX);
	rt_bell_ring(bell);
	rt_bell_sleep_armed(bell, -1);
	assert_false(stub_is_readable(rt_bell_fd(bell)));
}

TEST_WITH(sleep_armed__timeout_RETURNS, setup, teardown)
{
	struct rt_bell *bell = *state;

	rt_bell_arm(bell, RT_BELL_ON_FUTEX);
	rt_bell_sleep_armed(bell, 1000);
	assert_int_equal(rt_bell_ways(bell), RT_BELL_ON_FUTEX);
	rt_bell_take_back(bell, RT_BELL_ON_FUTEX);
	assert_int_equal(rt_bell_ways(bell), RT_BELL_AWAKE);
}

static void *ring_it(void *arg)
{
	rt_bell_ring(arg);
	return NULL;
}

/* whichever comes first, the ring or the sleep, it ends */
TEST_WITH(sleep_armed__rung_by_another_RETURNS, setup, teardown)
{
	struct rt_bell *bell = *state;
	pthread_t ringer;

	rt_bell_arm(bell, RT_BELL_ON_FUTEX);
	assert_int_equal(pthread_create(&ringer, NULL, ring_it, bell), 0);
	while (rt_bell_ways(bell) != RT_BELL_AWAKE)
		rt_bell_sleep_armed(bell, -1);
	assert_int_equal(pthread_join(ringer, NULL), 0);
}

/* a wait that ends leaves the fd armed */
TEST_WITH(take_back__one_way_THE_OTHER_STAYS, setup, teardown)
{
	struct rt_bell *bell = *state;

	rt_bell_arm(bell, RT_BELL_ON_FD);
	rt_bell_arm(bell, RT_BELL_ON_FUTEX);
	rt_bell_take_back(bell, RT_BELL_ON_FUTEX);
	assert_int_equal(rt_bell_ways(bell), RT_BELL_ON_FD);
	rt_bell_ring(bell);
	assert_true(stub_is_readable(rt_bell_fd(bell)));
}

TEST_WITH(ring__both_ways_FD_TOO, setup, teardown)
{
	struct rt_bell *bell = *state;

	rt_bell_arm(bell, RT_BELL_ON_FD | RT_BELL_ON_FUTEX);
	rt_bell_ring(bell);
	assert_int_equal(rt_bell_ways(bell), RT_BELL_AWAKE);
	assert_true(stub_is_readable(rt_bell_fd(bell)));
	rt_bell_read(bell);
	assert_false(stub_is_readable(rt_bell_fd(bell)));
}

/* the ringer stopped between its exchange and its write: readable once for
 * nothing, not for ever */
TEST_WITH(read__write_late_QUIET_AFTER_NEXT, setup, teardown)
{
	struct rt_bell *bell = *state;
	uint32_t taken_out;

	rt_bell_arm(bell, RT_BELL_ON_FD);
	taken_out = rt_bell_disarm(bell); /* the ringer's first half */
	rt_bell_read(bell);
	rt_bell_arm(bell, RT_BELL_ON_FD);
	assert_true(rt_bell_wake_ways(bell, taken_out)); /* its second */
	assert_true(stub_is_readable(rt_bell_fd(bell)));
	rt_bell_read(bell);
	assert_false(stub_is_readable(rt_bell_fd(bell)));
}

TEST_WITH(armed_by__that_thread_alone_on_the_fd, setup, teardown)
{
	struct rt_bell *bell = *state;

	rt_bell_set_armed_by(bell, 7);
	assert_false(rt_bell_is_armed_by(bell, 7));
	rt_bell_arm(bell, RT_BELL_ON_FD);
	assert_true(rt_bell_is_armed_by(bell, 7));
	assert_false(rt_bell_is_armed_by(bell, 8));
	rt_bell_arm(bell, RT_BELL_ON_FUTEX);
	assert_false(rt_bell_is_armed_by(bell, 7));
}

TEST_WITH(add_fd__twice_SAME, setup, teardown)
{
	struct rt_bell *bell = *state;
	int fd = rt_bell_fd(bell);

	assert_int_equal(rt_bell_add_fd(bell), 0);
	assert_int_equal(rt_bell_fd(bell), fd);
}

TEST(init_futex__NO_FD)
{
	struct rt_bell bell;

	rt_bell_init_futex(&bell);
	assert_int_equal(rt_bell_fd(&bell), -1);
	rt_bell_fini(&bell);
}

TEST_MAIN()
