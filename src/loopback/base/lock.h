/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * lock.h -- the lock of the data path. One word. A waiter spins for a moment,
 * then yields the processor, then sleeps for a short while: the holder may be
 * copying megabytes, or may have been preempted. Not recursive, not fair.
 */

#ifndef LB_LOCK_H
#define LB_LOCK_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#define LB_CACHE_LINE 64

struct lb_lock {
	_Atomic uint32_t word;
};

/*
 * Waits a moment between two tries of a thread, which is not cancelled
 * meanwhile: at first by spinning, in the end asleep.
 */
void lb_lock_pause(unsigned tries);
/*
 * Take a lock, or return false when the lock was not free for some tenths of a
 * second: perhaps a signal handler has interrupted the holder, this thread.
 */
bool lb_lock_get_soon(struct lb_lock *lock);
bool lb_lock_get_mutex_soon(pthread_mutex_t *mutex);
/* The slow half of lb_lock_get(). */
void lb_lock_wait(struct lb_lock *lock);

static inline void lb_lock_init(struct lb_lock *lock)
{
	atomic_init(&lock->word, 0);
}

static inline int lb_lock_try(struct lb_lock *lock)
{
	/* acquire: pairs with the release in lb_lock_put() */
	return !atomic_exchange_explicit(&lock->word, 1, memory_order_acquire);
}

static inline void lb_lock_get(struct lb_lock *lock)
{
	if (!lb_lock_try(lock))
		lb_lock_wait(lock);
}

static inline void lb_lock_put(struct lb_lock *lock)
{
	/* release: what was done under the lock is seen by the next holder */
	atomic_store_explicit(&lock->word, 0, memory_order_release);
}

#endif /* LB_LOCK_H */
