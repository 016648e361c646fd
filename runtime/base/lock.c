/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/* lock.c -- see lock.h: the two ways that enter the kernel. */

#include "base/lock.h"

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

void rt_lock_wait(struct rt_lock *lock)
{
	/* A thread that has slept does not know whether it was the only one,
	 * so it takes the lock as one that is awaited: a release too many wakes
	 * nobody, one too few leaves a thread asleep. acquire [LOCK-1] */
	while (atomic_exchange_explicit(&lock->word, RT_LOCK_AWAITED,
					memory_order_acquire) != RT_LOCK_FREE)
		/* returns at once if the lock was released meanwhile */
		syscall(SYS_futex, &lock->word, FUTEX_WAIT_PRIVATE,
			RT_LOCK_AWAITED, NULL);
}

void rt_lock_wake(struct rt_lock *lock)
{
	syscall(SYS_futex, &lock->word, FUTEX_WAKE_PRIVATE, 1);
}
