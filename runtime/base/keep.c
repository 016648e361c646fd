/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/* keep.c -- taking a lock with a keeper by compare-and-swap; see keep.h. */

#include "base/keep.h"

uint16_t rt_keep_after = 1000;

void rt_keep_init(struct rt_keep *keep)
{
	keep->has_keeper = false;
	keep->lone = 0;
	/* relaxed, all: no other thread knows the lock yet */
	atomic_store_explicit(&keep->word, RT_KEEP_FREE, memory_order_relaxed);
	atomic_store_explicit(&keep->inside, false, memory_order_relaxed);
	atomic_store_explicit(&keep->keeper, UINT64_MAX, memory_order_relaxed);
}

/* Takes a lock that is kept, for the keeper or for another thread. */
static bool keep_end(struct rt_keep *keep)
{
	uint32_t word = RT_KEEP_KEPT;

	/* relaxed: written by this thread, if the thread is the keeper */
	if (rt_keep_is_keeper(keep) &&
	    atomic_load_explicit(&keep->inside, memory_order_relaxed))
		return false;
	/* acquire [KEEP-1]: as in rt_keep_take(); relaxed: the lock is not
	 * kept any more, and another thread was faster */
	if (!atomic_compare_exchange_strong_explicit(
		    &keep->word, &word, RT_KEEP_TAKEN, memory_order_acquire,
		    memory_order_relaxed))
		return false;
	if (rt_keep_is_keeper(keep))
		return true;
	/* pairs with the light fences of the keeper [KEEP-2]: either the keeper
	 * sees the change of the word, or the look that follows sees the keeper
	 * inside, and whatever the keeper stored before a look at the word */
	rt_fence_heavy();
	/* acquire [KEEP-1]: pairs with the release in rt_keep_go_out() */
	if (!atomic_load_explicit(&keep->inside, memory_order_acquire)) {
		keep->lone = 0;
		return true;
	}
	/* release: hands nothing over; the order of the words is enough */
	atomic_store_explicit(&keep->word, RT_KEEP_KEPT, memory_order_release);
	return false;
}

bool rt_keep_take(struct rt_keep *keep)
{
	uint32_t word = RT_KEEP_FREE;

	/* acquire [KEEP-1]: pairs with the release in rt_keep_give_back(): what
	 * the last thread did with the lock; of a failure: the keeper of a
	 * kept lock */
	return atomic_compare_exchange_strong_explicit(
		       &keep->word, &word, RT_KEEP_TAKEN, memory_order_acquire,
		       memory_order_acquire) ||
	       (word == RT_KEEP_KEPT && keep_end(keep));
}

/* Counts a take of the calling thread; returns whether the lock is to be kept
 * from here on. */
static bool keep_count(struct rt_keep *keep)
{
	if (rt_keep_is_keeper(keep)) {
		keep->lone += keep->lone < rt_keep_after;
		return keep->lone >= rt_keep_after && rt_fence_is_ready();
	}
	keep->lone = 0;
	if (!keep->has_keeper)
		/* relaxed: read by other threads behind the store of the
		 * word */
		atomic_store_explicit(&keep->keeper, rt_self_number(),
				      memory_order_relaxed);
	return false;
}

void rt_keep_give_back(struct rt_keep *keep)
{
	uint32_t to = RT_KEEP_FREE;

	if (keep_count(keep)) {
		keep->has_keeper = true;
		to = RT_KEEP_KEPT;
	}
	/* release [KEEP-1]: pairs with the acquires in rt_keep_take() and
	 * keep_end() */
	atomic_store_explicit(&keep->word, to, memory_order_release);
}
