/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/* lock.c -- the slow half of the lock of the data path. Any thread. */

#include "base/lock.h"

#include <sched.h>
#include <stdatomic.h>
#include <time.h>

#include "base/base.h"
#include "base/cancel.h"

/* a contended lock: looks, then offers of the processor, then naps */
#define SPINS  100
#define YIELDS 50
#define NAP_NS 20000
/* a tenth of a second or more, mostly naps, which last longer than asked for */
#define SOON (SPINS + YIELDS + 2000)

void lb_lock_pause(unsigned tries)
{
	const struct timespec nap = {.tv_nsec = NAP_NS};

	if (tries < SPINS)
		lb_cpu_relax();
	else if (tries < SPINS + YIELDS)
		sched_yield();
	else
		nanosleep(&nap, NULL);
}

void lb_lock_wait(struct lb_lock *lock)
{
	LB_NOT_CANCELLED;
	unsigned tries = 0;

	for (;; lb_lock_pause(tries++)) {
		/* relaxed: only a hint that trying may succeed */
		if (!atomic_load_explicit(&lock->word, memory_order_relaxed) &&
		    lb_lock_try(lock))
			return;
	}
}

bool lb_lock_get_soon(struct lb_lock *lock)
{
	LB_NOT_CANCELLED;
	unsigned tries;

	for (tries = 0; tries < SOON; lb_lock_pause(tries++)) {
		if (lb_lock_try(lock))
			return true;
	}
	return false;
}

bool lb_lock_get_mutex_soon(pthread_mutex_t *mutex)
{
	LB_NOT_CANCELLED;
	unsigned tries;

	for (tries = 0; tries < SOON; lb_lock_pause(tries++)) {
		if (!pthread_mutex_trylock(mutex))
			return true;
	}
	return false;
}
