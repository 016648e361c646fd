/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * bell.c -- see bell.h, which says which thread may call which function, and
 * doc/protocols/lane.md.
 */

#include "base/bell.h"

#include <assert.h>
#include <linux/futex.h>
#include <sys/eventfd.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <librpma.h>

#include "base/cancel.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/order.h"

#define NS_PER_S 1000000000

static void bell_set_fd(struct rt_bell *bell, int fd)
{
	/* release: to threads that use the fd, other than the maker */
	atomic_store_explicit(&bell->fd, fd, memory_order_release);
}

int rt_bell_fd(const struct rt_bell *bell)
{
	/* acquire: pairs with bell_set_fd() */
	return atomic_load_explicit(&bell->fd, memory_order_acquire);
}

/*
 * Reads the fd, which is quiet then. Returns false if the fd was quiet before.
 */
static bool bell_read_fd(struct rt_bell *bell, uint64_t *writes)
{
	RT_NOT_CANCELLED;

	return read(rt_bell_fd(bell), writes, sizeof(*writes)) ==
	       sizeof(*writes);
}

/* Reads the writes to the fd so far. */
static void bell_read_wake_ups(struct rt_bell *bell)
{
	uint64_t writes;

	if (bell->owed == 0 || rt_bell_fd(bell) < 0)
		return;
	if (bell_read_fd(bell, &writes))
		bell->owed -= (uint32_t)writes;
}

void rt_bell_init_futex(struct rt_bell *bell)
{
	bell_set_fd(bell, -1);
	bell->owed = 0;
	bell->timed = false;
	/* relaxed: as the word */
	atomic_store_explicit(&bell->rung_ns, 0, memory_order_relaxed);
	bell->prepared = RT_BELL_AWAKE;
	/* relaxed, both: as the word */
	atomic_store_explicit(&bell->unread, 0, memory_order_relaxed);
	atomic_store_explicit(&bell->armed_by, 0, memory_order_relaxed);
	/* relaxed: other threads get the bell together with its object */
	atomic_store_explicit(&bell->word, RT_BELL_AWAKE, memory_order_relaxed);
}

int rt_bell_add_fd(struct rt_bell *bell)
{
	int fd;

	if (rt_bell_fd(bell) >= 0)
		return 0;
	fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (fd < 0)
		return rt_refuse_system("eventfd");
	bell_set_fd(bell, fd);
	return 0;
}

int rt_bell_init(struct rt_bell *bell)
{
	rt_bell_init_futex(bell);
	return rt_bell_add_fd(bell);
}

void rt_bell_fini(struct rt_bell *bell)
{
	RT_NOT_CANCELLED;

	if (rt_bell_fd(bell) >= 0)
		close(rt_bell_fd(bell));
	bell_set_fd(bell, -1);
}

void rt_bell_prepare(struct rt_bell *bell)
{
	bell_read_wake_ups(bell);
	assert(bell->prepared == RT_BELL_AWAKE);
	bell->prepared =
		rt_bell_fd(bell) >= 0 ? RT_BELL_ON_FD : RT_BELL_ON_FUTEX;
	/* release [BELL-1]: the ringer that takes the word out sees the fd */
	atomic_store_explicit(&bell->word, bell->prepared,
			      memory_order_release);
	/* [LANE-4]: the word before the second look; without the fence both the
	 * ringer and this thread may read old values, and this thread sleeps on
	 * the old value */
	rt_fence_dekker();
}

void rt_bell_lose_fd(struct rt_bell *bell)
{
	bell_set_fd(bell, -1);
	bell->owed = 0;
}

int rt_bell_renew_fd(struct rt_bell *bell)
{
	int ret = rt_bell_add_fd(bell);

	/* so many writes never come: each prepare reads the fd */
	if (ret == 0)
		bell->owed = UINT32_MAX / 2;
	return ret;
}

void rt_bell_cancel(struct rt_bell *bell)
{
	uint32_t prepared = bell->prepared;
	uint32_t old;

	bell->prepared = RT_BELL_AWAKE;
	if (prepared == RT_BELL_AWAKE)
		return;
	/* acquire [BELL-1]: this thread sees everything published by the
	 * ringer; release: a ringer that finds this thread awake may see this
	 * store */
	old = atomic_exchange_explicit(&bell->word, RT_BELL_AWAKE,
				       memory_order_acq_rel);
	if (old == RT_BELL_AWAKE && prepared == RT_BELL_ON_FD)
		bell->owed++;
	bell_read_wake_ups(bell);
}

bool rt_bell_is_asleep(const struct rt_bell *bell)
{
	/* relaxed: only a hint, the next cancel decides with its exchange */
	return bell->prepared != RT_BELL_AWAKE &&
	       atomic_load_explicit(&bell->word, memory_order_relaxed) !=
		       RT_BELL_AWAKE;
}

/* -------------------------------------------------------------- a queue --- */

void rt_bell_arm(struct rt_bell *bell, uint32_t ways)
{
	if (ways != 0)
		/* release [BELL-1]: the ringer that takes the ways out sees the
		 * fd */
		atomic_fetch_or_explicit(&bell->word, ways,
					 memory_order_release);
	/* [LANE-3] [LANE-4]: the word before the following look */
	rt_fence_dekker();
}

uint32_t rt_bell_ways(const struct rt_bell *bell)
{
	/* relaxed: the thread that stored the ways was inside before this
	 * thread, or marks the absence [SHARED-1]; an unseen ring is on the
	 * way */
	return atomic_load_explicit(&bell->word, memory_order_relaxed);
}

void rt_bell_take_back(struct rt_bell *bell, uint32_t ways)
{
	/* acquire [BELL-1]: this thread sees everything published by the
	 * ringer */
	atomic_fetch_and_explicit(&bell->word, ~ways, memory_order_acquire);
}

uint64_t rt_bell_take_rung_ns(struct rt_bell *bell)
{
	/* relaxed: statistic, orders nothing */
	if (!bell->timed ||
	    atomic_load_explicit(&bell->rung_ns, memory_order_relaxed) == 0)
		return 0;
	/* relaxed: only the taking thread counts the ring */
	return atomic_exchange_explicit(&bell->rung_ns, 0,
					memory_order_relaxed);
}

static void bell_write_fd(struct rt_bell *bell)
{
	/* locks may be held, and the items behind the ring are published */
	RT_NOT_CANCELLED;
	const uint64_t one = 1;
	ssize_t ret;

	/* release [BELL-2]: before the write: the thread that the write wakes
	 * reads the fd, whether this thread goes on or not */
	atomic_fetch_add_explicit(&bell->unread, 1, memory_order_release);
	/* a full counter (EAGAIN) is readable too, so nothing is lost */
	ret = write(rt_bell_fd(bell), &one, sizeof(one));
	(void)ret;
}

void rt_bell_read(struct rt_bell *bell)
{
	uint64_t writes;

	/* acquire [BELL-2]: a look, so that a quiet fd costs nothing */
	if (atomic_load_explicit(&bell->unread, memory_order_acquire) == 0)
		return;
	/* a write that is still to come makes the fd readable once for nothing,
	 * and is read by a later call */
	if (bell_read_fd(bell, &writes))
		/* relaxed: only counts */
		atomic_fetch_sub_explicit(&bell->unread, (uint32_t)writes,
					  memory_order_relaxed);
}

bool rt_bell_wake_ways(struct rt_bell *bell, uint32_t ways)
{
	if (bell->timed && ways != RT_BELL_AWAKE)
		/* relaxed: statistic, orders nothing */
		atomic_store_explicit(&bell->rung_ns, rt_now_ns(),
				      memory_order_relaxed);
	/* there may be no sleeper: a thread on the way in or out looks without
	 * a ring */
	if (ways & RT_BELL_ON_FUTEX)
		syscall(SYS_futex, &bell->word, FUTEX_WAKE_PRIVATE, 1, NULL,
			NULL, 0);
	if (ways & RT_BELL_ON_FD)
		bell_write_fd(bell);
	return ways != RT_BELL_AWAKE;
}

RT_LEFT_AT_ONCE void rt_bell_sleep_armed(struct rt_bell *bell,
					 int64_t timeout_ns)
{
	struct timespec timeout = {
		.tv_sec = timeout_ns / NS_PER_S,
		.tv_nsec = timeout_ns % NS_PER_S,
	};
	uint32_t ways = rt_bell_ways(bell);

	/* the kernel compares again under a lock: after a ring since the second
	 * look, the call returns at once */
	if (ways & RT_BELL_ON_FUTEX)
		syscall(SYS_futex, &bell->word, FUTEX_WAIT_PRIVATE, ways,
			timeout_ns < 0 ? NULL : &timeout, NULL, 0);
}

/* -------------------------------------------------------------- ringing --- */

bool rt_bell_wake(struct rt_bell *bell)
{
	return rt_bell_wake_ways(bell, rt_bell_disarm(bell));
}

void rt_bell_ring(struct rt_bell *bell)
{
	/* [LANE-3] [LANE-4]: everything published by the caller before the
	 * word */
	rt_fence_dekker();
	rt_bell_ring_fenced(bell);
}
