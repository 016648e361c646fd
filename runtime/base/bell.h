/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * A bell: one thread sleeps on an eventfd, any thread wakes it, at most one
 * system call a sleep. Protocol: doc/protocols/lane.md.
 *
 *	sleeper				ringer
 *	prepare: word = asleep; fence	publishes
 *	looks at everything again	ring: fence; word; if asleep:
 *	found: cancel			exchange to awake; one wake-up
 *	nothing: sleeps; then cancel
 *
 * The bell outlives every ringer: a thread allowed to ring holds a reference to
 * the object around the bell.
 *
 * The bell of a queue has as many sleepers as the queue has consumers, on the
 * word as a futex and on an eventfd in their epoll sets. The word has a bit for
 * each way of sleeping, armed before everything is looked at again; a ring
 * takes both bits out and wakes one sleeper on the futex and all on the
 * eventfd. doc/protocols/shared-queue.md.
 */

#ifndef RT_BASE_BELL_H
#define RT_BASE_BELL_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

enum rt_bell_word {
	RT_BELL_AWAKE = 0,
	/* bits */
	RT_BELL_ON_FUTEX = 1,
	RT_BELL_ON_FD = 2
};

struct rt_bell {
	_Atomic uint32_t word;	  /* of enum rt_bell_word */
	_Atomic int fd;		  /* -1: no fd; set before the first ON_FD */
	bool timed;		  /* immutable: rung_ns is kept */
	_Atomic uint64_t rung_ns; /* if timed: when rung, 0: not since taken */
	/* for a single sleeper: the last word stored; writes to fd not yet
	 * read */
	uint32_t prepared;
	uint32_t owed;
	/* for a queue: writes to fd, counted before the write, that were not
	 * read; with a single consumer: the number of the thread that armed the
	 * fd last, 0: no thread */
	_Atomic uint32_t unread;
	_Atomic uint64_t armed_by;
};

/*
 * Makes a bell with an eventfd. Returns 0, or RPMA_E_PROVIDER without a free
 * eventfd.
 */
int rt_bell_init(struct rt_bell *bell);
/* Makes a bell without an eventfd: until rt_bell_add_fd() a thread can sleep on
 * the futex only. */
void rt_bell_init_futex(struct rt_bell *bell);
/*
 * Adds an eventfd. Called by the sleeper, awake. Returns 0, or RPMA_E_PROVIDER
 * without a free eventfd.
 */
int rt_bell_add_fd(struct rt_bell *bell);
void rt_bell_fini(struct rt_bell *bell);
int rt_bell_fd(const struct rt_bell *bell);

/* ---------------------------------------------------------- one sleeper --- */

/* Prepares a sleep. Called by the sleeper, awake: from here on the word says
 * that the sleeper sleeps on the fd, or on the futex if there is no fd. The
 * sleeper then looks at everything again and sleeps if there is nothing; in any
 * case the sleeper calls rt_bell_cancel() before the next rt_bell_prepare(). */
void rt_bell_prepare(struct rt_bell *bell);
/* Notes that the program closed the fd. Called by the sleeper. The bell neither
 * reads, writes nor closes the number any more, and rt_bell_prepare() prepares
 * for the futex. */
void rt_bell_lose_fd(struct rt_bell *bell);
/*
 * Adds an eventfd to a bell that lost its fd. Called by the sleeper. A thread
 * that rang before may write to the new fd, so each sleep reads the fd from
 * here on. Returns as rt_bell_add_fd() does.
 */
int rt_bell_renew_fd(struct rt_bell *bell);
/* Ends a sleep or a preparation. Called by the sleeper, whether rung, asleep or
 * neither before: afterwards the word says awake, and the fd is quiet. */
void rt_bell_cancel(struct rt_bell *bell);
/* Returns true while a sleep is prepared and no ring has been seen. Called by
 * the sleeper. */
bool rt_bell_is_asleep(const struct rt_bell *bell);

/* -------------------------------------------------------------- a queue --- */

/* Arms the bell: adds the given ways of sleeping (bits, or no bit) to the word,
 * then fences. The caller looks at everything afterwards, then sleeps or
 * leaves. */
void rt_bell_arm(struct rt_bell *bell, uint32_t ways);
/* Returns the ways of sleeping that the word has. */
uint32_t rt_bell_ways(const struct rt_bell *bell);

/* Takes all ways of sleeping out of the word and returns them: the caller has
 * to wake the threads that sleep in these ways. */
static inline uint32_t rt_bell_disarm(struct rt_bell *bell)
{
	/* acquire [BELL-1]: the fd; release: everything published, or left, to
	 * the sleeper being rung */
	return atomic_exchange_explicit(&bell->word, RT_BELL_AWAKE,
					memory_order_acq_rel);
}

/* Takes the given ways out of the word. REQUIRES: only the caller sleeps in
 * these ways */
void rt_bell_take_back(struct rt_bell *bell, uint32_t ways);
/* Wakes a sleeper on the futex, and all sleepers on the fd, as far as `ways`
 * has these ways; returns false if `ways` is 0. */
bool rt_bell_wake_ways(struct rt_bell *bell, uint32_t ways);
/* Sleeps on the futex until a ring, or until timeout_ns have passed (-1:
 * without a limit). Returns at once if the bell is no longer armed; may also
 * return on a signal, or for no reason. */
void rt_bell_sleep_armed(struct rt_bell *bell, int64_t timeout_ns);
/* Returns when a thread was woken, for a timed bell; then 0 until the next
 * wake-up. */
uint64_t rt_bell_take_rung_ns(struct rt_bell *bell);
/* Makes the fd quiet; the caller arms the fd next. */
void rt_bell_read(struct rt_bell *bell);

/* Stores the number of the caller's thread. For a queue with a single consumer,
 * before rt_bell_arm(). */
static inline void rt_bell_set_armed_by(struct rt_bell *bell, uint64_t number)
{
	/* relaxed: ordered by the fence of rt_bell_arm() [LANE-3] */
	atomic_store_explicit(&bell->armed_by, number, memory_order_relaxed);
}

/* Returns true if the word says only that a thread sleeps on the fd, and that
 * thread has the number. After a fence of the caller. */
static inline bool rt_bell_is_armed_by(const struct rt_bell *bell,
				       uint64_t number)
{
	/* relaxed, both: the caller's fence orders them [LANE-3] */
	return atomic_load_explicit(&bell->word, memory_order_relaxed) ==
		       RT_BELL_ON_FD &&
	       atomic_load_explicit(&bell->armed_by, memory_order_relaxed) ==
		       number;
}

/* -------------------------------------------------------------- ringing --- */

/*
 * Rings, after the caller has published: a fence, then rt_bell_ring_fenced().
 */
void rt_bell_ring(struct rt_bell *bell);

/* Rings without a fence, for a caller with a separate rt_fence_dekker(), for
 * example for several bells. Returns true if a thread slept and this call woke
 * the thread. */
bool rt_bell_wake(struct rt_bell *bell);

/* Returns true if a thread sleeps, after a fence of the caller. */
static inline bool rt_bell_is_due(const struct rt_bell *bell)
{
	/* relaxed: ordered by the fence of the caller [LANE-3] [LANE-4] */
	return atomic_load_explicit(&bell->word, memory_order_relaxed) !=
	       RT_BELL_AWAKE;
}

static inline bool rt_bell_ring_fenced(struct rt_bell *bell)
{
	return rt_bell_is_due(bell) && rt_bell_wake(bell);
}

#endif /* RT_BASE_BELL_H */
