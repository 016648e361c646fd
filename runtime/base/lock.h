/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * lock.h -- a lock of four bytes, on a futex: a connection has two, and a post
 * takes one without a call. pthread's has forty, which with a ledger beside
 * them are two cache lines for each side of each connection.
 * doc/protocols/ledger.md, "The lock".
 */

#ifndef RT_BASE_LOCK_H
#define RT_BASE_LOCK_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

enum rt_lock_word {
	RT_LOCK_FREE = 0,
	RT_LOCK_HELD = 1,
	RT_LOCK_AWAITED = 2 /* held, and its release wakes a thread */
};

/* free when zeroed */
struct rt_lock {
	_Atomic uint32_t word; /* enum rt_lock_word */
};

/* Takes the lock: sleeps while another thread has it. */
static inline void rt_lock_take(struct rt_lock *lock);
/* False: another thread has it. */
static inline bool rt_lock_try(struct rt_lock *lock);
/* REQUIRES: the calling thread has it */
static inline void rt_lock_release(struct rt_lock *lock);

/* ------------------------------ inline: each post takes and releases it --- */

/* What the two do when another thread has the lock, or sleeps for it. */
void rt_lock_wait(struct rt_lock *lock);
void rt_lock_wake(struct rt_lock *lock);

static inline bool rt_lock_try(struct rt_lock *lock)
{
	uint32_t word = RT_LOCK_FREE;

	/* acquire [LOCK-1]: pairs with the release in rt_lock_release();
	 * relaxed: nothing is read without the lock */
	return atomic_compare_exchange_strong_explicit(
		&lock->word, &word, RT_LOCK_HELD, memory_order_acquire,
		memory_order_relaxed);
}

static inline void rt_lock_take(struct rt_lock *lock)
{
	if (__builtin_expect(!rt_lock_try(lock), 0))
		rt_lock_wait(lock);
}

static inline void rt_lock_release(struct rt_lock *lock)
{
	/* release [LOCK-1]: what was done under the lock, to the next holder.
	 * The lock may be freed by that one: only its address is used after */
	if (__builtin_expect(atomic_exchange_explicit(&lock->word, RT_LOCK_FREE,
						      memory_order_release) ==
				     RT_LOCK_AWAITED,
			     0))
		rt_lock_wake(lock);
}

#endif /* RT_BASE_LOCK_H */
