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
 * The bell outlives every ringer: a thread that may ring holds a reference to
 * the object that contains the bell.
 *
 * The bell of a queue has as many sleepers as the queue has consumers, on the
 * futex that the word is and on an eventfd in their epoll sets. Its word has a
 * bit for each way of sleeping, which is armed before everything is looked at
 * again; a ring takes both out and wakes one on the futex and all on the
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
	_Atomic int fd;		  /* -1: none; set before the first ON_FD */
	bool timed;		  /* immutable: rung_ns is kept */
	_Atomic uint64_t rung_ns; /* if timed: when rung, 0: not since taken */
	/* one sleeper's: the word it stored last; writes to fd it has not read
	 */
	uint32_t prepared;
	uint32_t owed;
	/* a queue's: fd was written, and not read since; of one consumer: the
	 * thread that armed the fd last, by its number, 0: none */
	_Atomic bool written;
	_Atomic uint64_t armed_by;
};

/* With an eventfd. 0, or RPMA_E_PROVIDER when there is none left. */
int rt_bell_init(struct rt_bell *bell);
/* Without: can only sleep on the futex until rt_bell_add_fd(). */
void rt_bell_init_futex(struct rt_bell *bell);
/* Sleeper, awake. 0, or RPMA_E_PROVIDER when there is none left. */
int rt_bell_add_fd(struct rt_bell *bell);
void rt_bell_fini(struct rt_bell *bell);
int rt_bell_fd(const struct rt_bell *bell);

/* ---------------------------------------------------------- one sleeper --- */

/* Sleeper, awake: asleep on the fd from here, or on the futex if there is no
 * fd; look at everything, then sleep there; in any case rt_bell_cancel() before
 * the next. */
void rt_bell_prepare(struct rt_bell *bell);
/* Sleeper: the fd was closed by the program. The bell neither reads, writes nor
 * closes that number any more, and rt_bell_prepare() prepares for the futex. */
void rt_bell_lose_fd(struct rt_bell *bell);
/* Sleeper: awake, whether it was rung, slept or neither; the fd is quiet. */
void rt_bell_cancel(struct rt_bell *bell);
/* Sleeper: true while prepared and no ring has been seen. */
bool rt_bell_is_asleep(const struct rt_bell *bell);

/* -------------------------------------------------------------- a queue --- */

/* Also asleep in these ways (bits, or none) from here, after a fence; look at
 * everything, then sleep or leave. */
void rt_bell_arm(struct rt_bell *bell, uint32_t ways);
/* The ways in which threads sleep, as the word says. */
uint32_t rt_bell_ways(const struct rt_bell *bell);
/* Takes the ways out and returns them: the caller has to wake the threads that
 * sleep in them. */
uint32_t rt_bell_disarm(struct rt_bell *bell);
/* Takes these ways out. REQUIRES: no thread but the caller sleeps in them */
void rt_bell_take_back(struct rt_bell *bell, uint32_t ways);
/* Wakes one sleeper on the futex and all on the fd, if in these ways; false:
 * there are no ways. */
bool rt_bell_wake_ways(struct rt_bell *bell, uint32_t ways);
/* Returns when rung, at once if armed no more; after timeout_ns (-1: without
 * end); on a signal, or for no reason. */
void rt_bell_sleep_armed(struct rt_bell *bell, int64_t timeout_ns);
/* If timed: when a thread was woken; 0 from then on until the next time. */
uint64_t rt_bell_take_rung_ns(struct rt_bell *bell);
/* Makes the fd quiet; the caller arms it next. */
void rt_bell_read(struct rt_bell *bell);
/* Single consumer, before rt_bell_arm(): the number of the caller's thread. */
void rt_bell_set_armed_by(struct rt_bell *bell, uint64_t number);
/* After the caller's fence: does that thread, and no other, say that it sleeps
 * on the fd? */
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

/* Any thread, after it published: fence, then the following. */
void rt_bell_ring(struct rt_bell *bell);

/* For a caller that has its own rt_fence_dekker(), one for several bells.
 * True: a thread slept and this call woke it. */
bool rt_bell_wake(struct rt_bell *bell);

/* Likewise: is there anybody to wake? */
static inline bool rt_bell_is_due(const struct rt_bell *bell)
{
	/* relaxed: the caller's fence orders it [LANE-3] [LANE-4] */
	return atomic_load_explicit(&bell->word, memory_order_relaxed) !=
	       RT_BELL_AWAKE;
}

static inline bool rt_bell_ring_fenced(struct rt_bell *bell)
{
	return rt_bell_is_due(bell) && rt_bell_wake(bell);
}

#endif /* RT_BASE_BELL_H */
