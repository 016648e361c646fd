/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * keep.h -- a lock that a single thread takes nearly always (a biased lock). A
 * thread that has taken the lock alone often enough becomes the keeper, and
 * from then on takes the lock and gives the lock back by plain stores. Another
 * thread that takes a kept lock ends the keeping first, by a heavy fence. No
 * thread waits for the lock: a second thread is refused.
 * doc/protocols/keep.md.
 */

#ifndef RT_BASE_KEEP_H
#define RT_BASE_KEEP_H

#include <assert.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/lang.h"
#include "base/order.h"
#include "base/self.h"

/* values of rt_keep.word */
enum rt_keep_word {
	RT_KEEP_FREE = 0,
	RT_KEEP_TAKEN = 1, /* by the thread that changed the word */
	RT_KEEP_KEPT = 2   /* only the keeper takes the lock, by `inside` */
};

struct rt_keep {
	_Atomic uint32_t word; /* enum rt_keep_word */
	_Atomic bool inside;   /* the keeper is inside a kept lock. Keeper */
	/* used with the lock taken: */
	bool has_keeper; /* the keeper is chosen for good */
	uint16_t lone;	 /* takes in a row by the keeper */
	/* number of the keeper; before that, of the last thread that has taken
	 * the lock; UINT64_MAX: no thread yet. Not 0, which is the known number
	 * of each thread that has not asked for its number */
	_Atomic uint64_t keeper;
};

/* Makes a free lock without a keeper. */
void rt_keep_init(struct rt_keep *keep);

/* Takes the lock by a compare-and-swap, also a kept lock. Returns false if
 * another thread has the lock, or the caller already. */
bool rt_keep_take(struct rt_keep *keep);
/* Gives back a lock that rt_keep_take() has taken: keeps the lock for the
 * calling thread, or frees the lock. */
void rt_keep_give_back(struct rt_keep *keep);

static inline bool rt_keep_is_keeper(const struct rt_keep *keep)
{
	/* relaxed: only this thread writes its own number */
	return atomic_load_explicit(&keep->keeper, memory_order_relaxed) ==
	       rt_self_known_number();
}

/*
 * Returns whether the lock is kept for the calling thread. A thread that has
 * stored words before this look, and sees true, needs only rt_fence_light()
 * before its look at words that other threads write with the lock taken
 * [KEEP-2].
 */
static inline bool rt_keep_is_here(const struct rt_keep *keep)
{
	/* acquire [KEEP-1]: pairs with the release in rt_keep_give_back(): the
	 * keeper, where the calling thread has been the last taker before.
	 * Another thread that takes the lock has a heavy fence behind its
	 * change of the word */
	return atomic_load_explicit(&keep->word, memory_order_acquire) ==
		       RT_KEEP_KEPT &&
	       rt_keep_is_keeper(keep);
}

/* Returns whether no thread has taken the lock by rt_keep_take(). A hint. */
static inline bool rt_keep_is_free(const struct rt_keep *keep)
{
	/* relaxed: a hint, which orders nothing */
	return !(atomic_load_explicit(&keep->word, memory_order_relaxed) &
		 RT_KEEP_TAKEN);
}

/* Returns whether a thread has the lock. If no thread has the lock, and no
 * thread takes the lock any more, the caller may free the lock. */
static inline bool rt_keep_is_taken(const struct rt_keep *keep)
{
	/* acquire, both [KEEP-1]: pairs with the releases in
	 * rt_keep_give_back() and rt_keep_go_out() */
	return atomic_load_explicit(&keep->word, memory_order_acquire) ==
		       RT_KEEP_TAKEN ||
	       atomic_load_explicit(&keep->inside, memory_order_acquire);
}

/* Gives back a lock that rt_keep_go_in() has taken. */
static inline void rt_keep_go_out(struct rt_keep *keep)
{
	/* release [KEEP-1]: pairs with the acquire in keep_end(): what the
	 * keeper did with the lock. Unseen by the sanitizer: threads that take
	 * the lock in turn are ordered by the program, or refused */
	rt_store_unseen(&keep->inside, false, memory_order_release);
}

/* Takes a lock that is kept for the calling thread. Keeper, outside. */
static inline bool rt_keep_go_in(struct rt_keep *keep)
{
	/* relaxed, both: written by this thread; the fence orders the store */
	assert(!atomic_load_explicit(&keep->inside, memory_order_relaxed));
	atomic_store_explicit(&keep->inside, true, memory_order_relaxed);
	/* pairs with the fence in keep_end(), keep.c [KEEP-2]: either this look
	 * sees the change of the word, or that thread sees the keeper inside */
	rt_fence_light();
	/* relaxed: no other thread has had the lock since the keeper left */
	if (likely(atomic_load_explicit(&keep->word, memory_order_relaxed) ==
		   RT_KEEP_KEPT))
		return true;
	rt_keep_go_out(keep);
	return false;
}

#endif /* RT_BASE_KEEP_H */
