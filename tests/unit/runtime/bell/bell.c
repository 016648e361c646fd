/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * The bell, driven step by step on one thread: each order of ring, sleep and
 * cancel, a late write, and a ringer that stops behind the write.
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

/* called behind the next write of this file or of the bell; or NULL */
static void (*behind_write)(void *arg);
static void *behind_write_arg;

ssize_t __real_write(int fd, const void *buf, size_t count);
ssize_t __wrap_write(int fd, const void *buf, size_t count);

ssize_t __wrap_write(int fd, const void *buf, size_t count)
{
	void (*call)(void *arg) = behind_write;
	ssize_t ret = __real_write(fd, buf, count);

	behind_write = NULL;
	if (call != NULL)
		call(behind_write_arg);
	return ret;
}

#define ON_BELL(name) TEST_OF(struct rt_bell *bell, name, setup, teardown)

/* an awake bell costs its ringers no system call */
ON_BELL(ring__awake_NOTHING)
{
	rt_bell_ring(bell);
	assert_false(stub_is_readable(rt_bell_fd(bell)));
	assert_false(rt_bell_ring_fenced(bell));
}

ON_BELL(ring__asleep_READABLE)
{
	rt_bell_prepare(bell);
	assert_true(rt_bell_is_asleep(bell));
	rt_bell_ring(bell);
	assert_true(stub_is_readable(rt_bell_fd(bell)));
	assert_false(rt_bell_is_asleep(bell));
}

/* many ringers, a single sleep: a single write */
ON_BELL(ring__twice_asleep_ONE_WRITE)
{
	uint64_t writes = 0;

	rt_bell_prepare(bell);
	assert_true(rt_bell_ring_fenced(bell));
	assert_false(rt_bell_ring_fenced(bell));
	assert_int_equal(read(rt_bell_fd(bell), &writes, sizeof(writes)),
			 sizeof(writes));
	assert_int_equal(writes, 1);
}

ON_BELL(cancel__rung_QUIET)
{
	rt_bell_prepare(bell);
	rt_bell_ring(bell);
	rt_bell_cancel(bell);
	assert_false(stub_is_readable(rt_bell_fd(bell)));
	assert_int_equal(bell->owed, 0);
}

ON_BELL(cancel__not_rung_AWAKE)
{
	rt_bell_prepare(bell);
	rt_bell_cancel(bell);
	rt_bell_ring(bell);
	assert_false(stub_is_readable(rt_bell_fd(bell)));
}

ON_BELL(cancel__not_prepared_NOTHING)
{
	rt_bell_cancel(bell);
	assert_false(stub_is_readable(rt_bell_fd(bell)));
}

/* the ringer stopped between the exchange and the write */
ON_BELL(cancel__write_late_QUIET_AFTER_NEXT)
{
	const uint64_t one = 1;

	rt_bell_prepare(bell);
	/* the ringer's first half */
	atomic_store_explicit(&bell->word, RT_BELL_AWAKE, memory_order_release);
	rt_bell_cancel(bell);
	assert_int_equal(bell->owed, 1);

	/* asleep again, and now the second half: a spurious wake-up, once */
	rt_bell_prepare(bell);
	assert_int_equal(write(rt_bell_fd(bell), &one, sizeof(one)),
			 sizeof(one));
	assert_true(stub_is_readable(rt_bell_fd(bell)));
	rt_bell_cancel(bell);
	assert_false(stub_is_readable(rt_bell_fd(bell)));
	assert_int_equal(bell->owed, 0);
}

/* a late write and another ringer's in a read: both are accounted for */
ON_BELL(cancel__late_and_new_write_BOTH_COUNTED)
{
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
ON_BELL(sleep_armed__rung_before_RETURNS)
{
	rt_bell_arm(bell, RT_BELL_ON_FUTEX);
	rt_bell_ring(bell);
	rt_bell_sleep_armed(bell, -1);
	assert_false(stub_is_readable(rt_bell_fd(bell)));
}

ON_BELL(sleep_armed__timeout_RETURNS)
{
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

/* whichever comes first, the ring or the sleep, the sleep ends */
ON_BELL(sleep_armed__rung_by_another_RETURNS)
{
	pthread_t ringer;

	rt_bell_arm(bell, RT_BELL_ON_FUTEX);
	assert_int_equal(pthread_create(&ringer, NULL, ring_it, bell), 0);
	while (rt_bell_ways(bell) != RT_BELL_AWAKE)
		rt_bell_sleep_armed(bell, -1);
	assert_int_equal(pthread_join(ringer, NULL), 0);
}

/* a wait that ends leaves the fd armed */
ON_BELL(take_back__one_way_THE_OTHER_STAYS)
{
	rt_bell_arm(bell, RT_BELL_ON_FD);
	rt_bell_arm(bell, RT_BELL_ON_FUTEX);
	rt_bell_take_back(bell, RT_BELL_ON_FUTEX);
	assert_int_equal(rt_bell_ways(bell), RT_BELL_ON_FD);
	rt_bell_ring(bell);
	assert_true(stub_is_readable(rt_bell_fd(bell)));
}

ON_BELL(ring__both_ways_FD_TOO)
{
	rt_bell_arm(bell, RT_BELL_ON_FD | RT_BELL_ON_FUTEX);
	rt_bell_ring(bell);
	assert_int_equal(rt_bell_ways(bell), RT_BELL_AWAKE);
	assert_true(stub_is_readable(rt_bell_fd(bell)));
	rt_bell_read(bell);
	assert_false(stub_is_readable(rt_bell_fd(bell)));
}

/* the ringer stopped between the exchange and the write: readable once for
 * nothing, not for ever */
ON_BELL(read__write_late_QUIET_AFTER_NEXT)
{
	uint32_t taken_out;

	rt_bell_arm(bell, RT_BELL_ON_FD);
	taken_out = rt_bell_disarm(bell); /* the ringer's first half */
	rt_bell_read(bell);
	rt_bell_arm(bell, RT_BELL_ON_FD);
	assert_true(rt_bell_wake_ways(bell, taken_out)); /* the second half */
	assert_true(stub_is_readable(rt_bell_fd(bell)));
	rt_bell_read(bell);
	assert_false(stub_is_readable(rt_bell_fd(bell)));
}

/* Reads the fd and arms again, as the woken thread does. */
static void read_and_arm(void *arg)
{
	struct rt_bell *bell = arg;

	rt_bell_read(bell);
	assert_false(stub_is_readable(rt_bell_fd(bell)));
	rt_bell_arm(bell, RT_BELL_ON_FD);
}

/* the ringer stopped behind the write: the woken thread makes the fd quiet */
ON_BELL(read__ringer_stopped_behind_its_write_QUIET)
{
	behind_write = read_and_arm;
	behind_write_arg = bell;
	rt_bell_arm(bell, RT_BELL_ON_FD);
	rt_bell_ring(bell);
	assert_null(behind_write);
	assert_int_equal(rt_bell_ways(bell), RT_BELL_ON_FD);
	/* relaxed: a single thread. The next arm makes no system call */
	assert_int_equal(
		atomic_load_explicit(&bell->unread, memory_order_relaxed), 0);
}

ON_BELL(armed_by__that_thread_alone_on_the_fd)
{
	rt_bell_set_armed_by(bell, 7);
	assert_false(rt_bell_is_armed_by(bell, 7));
	rt_bell_arm(bell, RT_BELL_ON_FD);
	assert_true(rt_bell_is_armed_by(bell, 7));
	assert_false(rt_bell_is_armed_by(bell, 8));
	rt_bell_arm(bell, RT_BELL_ON_FUTEX);
	assert_false(rt_bell_is_armed_by(bell, 7));
}

ON_BELL(add_fd__twice_SAME)
{
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
