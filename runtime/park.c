/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * The bell; see park.h and doc/protocols/lane.md. Every function but
 * rt_bell_ring() and rt_bell_wake() runs on the sleeper's thread.
 */

#include "park.h"

#include <assert.h>
#include <linux/futex.h>
#include <sys/eventfd.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <librpma.h>

#include "order.h"

#define NS_PER_S 1000000000

/* Reads the writes of those who rang us, as far as they have come. */
static void settle(struct rt_bell *bell)
{
	uint64_t writes;

	if (bell->owed == 0)
		return;
	if (read(bell->fd, &writes, sizeof(writes)) == sizeof(writes))
		bell->owed -= (uint32_t)writes;
}

void rt_bell_init_futex(struct rt_bell *bell)
{
	bell->fd = -1;
	bell->owed = 0;
	bell->prepared = RT_BELL_AWAKE;
	/* relaxed: the bell is handed to others with what contains it */
	atomic_store_explicit(&bell->word, RT_BELL_AWAKE, memory_order_relaxed);
}

int rt_bell_add_fd(struct rt_bell *bell)
{
	int fd;

	if (bell->fd >= 0)
		return 0;
	fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (fd < 0)
		return RPMA_E_PROVIDER;
	bell->fd = fd;
	return 0;
}

int rt_bell_init(struct rt_bell *bell)
{
	rt_bell_init_futex(bell);
	return rt_bell_add_fd(bell);
}

void rt_bell_fini(struct rt_bell *bell)
{
	if (bell->fd >= 0)
		close(bell->fd);
	bell->fd = -1;
}

int rt_bell_fd(const struct rt_bell *bell)
{
	return bell->fd;
}

static void prepare(struct rt_bell *bell, uint32_t word)
{
	assert(bell->prepared == RT_BELL_AWAKE);
	bell->prepared = word;
	/* release [BELL-1]: the ringer that takes the word out sees the fd */
	atomic_store_explicit(&bell->word, word, memory_order_release);
	/* [LANE-3] [LANE-4]: the word before the second look; without it both
	 * the ringer and we may read what was before, and we sleep on it */
	rt_fence_dekker();
}

void rt_bell_prepare(struct rt_bell *bell)
{
	settle(bell);
	prepare(bell, RT_BELL_ON_FD);
}

void rt_bell_prepare_futex(struct rt_bell *bell)
{
	prepare(bell, RT_BELL_ON_FUTEX);
}

void rt_bell_sleep_futex(struct rt_bell *bell, int64_t timeout_ns)
{
	struct timespec timeout = {
		.tv_sec = timeout_ns / NS_PER_S,
		.tv_nsec = timeout_ns % NS_PER_S,
	};

	/* the kernel compares again under its lock: a ring since our second
	 * look makes this return at once */
	syscall(SYS_futex, &bell->word, FUTEX_WAIT_PRIVATE, RT_BELL_ON_FUTEX,
		timeout_ns < 0 ? NULL : &timeout, NULL, 0);
}

void rt_bell_cancel(struct rt_bell *bell)
{
	uint32_t prepared = bell->prepared;
	uint32_t old;

	bell->prepared = RT_BELL_AWAKE;
	if (prepared == RT_BELL_AWAKE)
		return;
	/* acquire [BELL-1]: we see what the one who rang us published;
	 * release: a ringer that finds us awake may have this to thank */
	old = atomic_exchange_explicit(&bell->word, RT_BELL_AWAKE,
				       memory_order_acq_rel);
	if (prepared == RT_BELL_ON_FD && old == RT_BELL_AWAKE)
		bell->owed++;
	settle(bell);
}

bool rt_bell_is_asleep(const struct rt_bell *bell)
{
	/* relaxed: only a hint, the next cancel decides with its exchange */
	return bell->prepared != RT_BELL_AWAKE &&
	       atomic_load_explicit(&bell->word, memory_order_relaxed) !=
		       RT_BELL_AWAKE;
}

static void write_one(int fd)
{
	const uint64_t one = 1;
	ssize_t ret;

	/* a full counter (EAGAIN) is readable too, so nothing is lost */
	ret = write(fd, &one, sizeof(one));
	(void)ret;
}

void rt_bell_poke(struct rt_bell *bell)
{
	bell->owed++;
	write_one(bell->fd);
}

bool rt_bell_wake(struct rt_bell *bell)
{
	uint32_t old;

	/* acquire [BELL-1]: the fd; release: what we published, to cancel */
	old = atomic_exchange_explicit(&bell->word, RT_BELL_AWAKE,
				       memory_order_acq_rel);
	if (old == RT_BELL_ON_FUTEX)
		syscall(SYS_futex, &bell->word, FUTEX_WAKE_PRIVATE, 1, NULL,
			NULL, 0);
	else if (old == RT_BELL_ON_FD)
		write_one(bell->fd);
	return old != RT_BELL_AWAKE;
}

void rt_bell_ring(struct rt_bell *bell)
{
	/* [LANE-3] [LANE-4]: what the caller published before the word */
	rt_fence_dekker();
	rt_bell_ring_fenced(bell);
}
