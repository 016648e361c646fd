/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * A bell: one thread sleeps, any thread wakes it, at most one system call a
 * sleep. The sleeper sleeps on a futex (the word itself) or on an eventfd that
 * it may put in an epoll set. Protocol: doc/protocols/lane.md.
 *
 *	sleeper				ringer
 *	prepare: word = asleep; fence	publishes
 *	looks at everything again	ring: fence; word; if asleep:
 *	found: cancel			exchange to awake; one wake-up
 *	nothing: sleeps; then cancel
 *
 * The bell outlives every ringer: who may ring holds what contains it.
 *
 * A bell of several sleepers has none of its own: who works with what it
 * belongs to, one at a time, arms it for all that sleep and looks at everything
 * after; a ring wakes one of them. doc/protocols/shared-queue.md.
 */

#ifndef RT_BASE_BELL_H
#define RT_BASE_BELL_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

enum rt_bell_word {
	RT_BELL_AWAKE = 0,
	/* bits; one sleeper sleeps in one way */
	RT_BELL_ON_FUTEX = 1,
	RT_BELL_ON_FD = 2
};

struct rt_bell {
	_Atomic uint32_t word; /* of enum rt_bell_word */
	_Atomic int fd;	       /* -1: none; set before the first ON_FD */
	bool timed;	       /* immutable: somebody asks how long it took */
	_Atomic uint64_t rung_ns; /* if timed: when, 0: not since asked */
	uint32_t prepared;	  /* sleeper's: the word it stored last */
	uint32_t owed;		  /* sleeper's: writes to fd it has not read */
};

/* With an eventfd. 0, or RPMA_E_PROVIDER when there is none left. */
int rt_bell_init(struct rt_bell *bell);
/* Without: can only sleep on the futex until rt_bell_add_fd(). */
void rt_bell_init_futex(struct rt_bell *bell);
/* Sleeper, awake. 0, or RPMA_E_PROVIDER when there is none left. */
int rt_bell_add_fd(struct rt_bell *bell);
void rt_bell_fini(struct rt_bell *bell);
int rt_bell_fd(const struct rt_bell *bell);

/* Sleeper, awake: asleep on the fd from here; look at everything, then sleep
 * on the fd; in any case rt_bell_cancel() before the next. */
void rt_bell_prepare(struct rt_bell *bell);
/* Likewise, to sleep in rt_bell_sleep_futex(). */
void rt_bell_prepare_futex(struct rt_bell *bell);
/* Sleeper, prepared for it: returns when rung, after timeout_ns (-1: without
 * end), on a signal, or for no reason. */
void rt_bell_sleep_futex(struct rt_bell *bell, int64_t timeout_ns);
/* Sleeper: awake, whether it was rung, slept or neither; the fd is quiet. */
void rt_bell_cancel(struct rt_bell *bell);
/* Sleeper: true while prepared and not rung, as far as it knows. */
bool rt_bell_is_asleep(const struct rt_bell *bell);
/* Sleeper, awake: makes its own fd readable. */
void rt_bell_poke(struct rt_bell *bell);

/* ---------------------------------------------------- several sleepers --- */

/* Also asleep in these ways (bits, or none) from here, after a fence; look at
 * everything, then sleep or leave. */
void rt_bell_arm(struct rt_bell *bell, uint32_t ways);
/* The ways in which somebody is said to sleep. */
uint32_t rt_bell_ways(const struct rt_bell *bell);
/* Takes them out; wake-ups are owed to one who sleeps in them. */
uint32_t rt_bell_disarm(struct rt_bell *bell);
/* One of those who sleep in these ways wakes: true. */
bool rt_bell_wake_one(struct rt_bell *bell, uint32_t ways);
/* Returns when rung, at once if armed no more; after timeout_ns (-1: without
 * end); on a signal, or for no reason. */
void rt_bell_sleep_armed(struct rt_bell *bell, int64_t timeout_ns);
/* If timed: when somebody was woken, once; else 0. */
uint64_t rt_bell_take_rung_ns(struct rt_bell *bell);
/* Makes the fd, if there is one, quiet. */
void rt_bell_drain(struct rt_bell *bell);

/* -------------------------------------------------------------- ringing --- */

/* Any thread, after it published: fence, then the following. */
void rt_bell_ring(struct rt_bell *bell);

/* Whoever rings after its own rt_fence_dekker(), one for several bells.
 * True: somebody slept and this call woke him. */
bool rt_bell_wake(struct rt_bell *bell);

static inline bool rt_bell_ring_fenced(struct rt_bell *bell)
{
	/* relaxed: the caller's fence orders it [LANE-3] [LANE-4] */
	if (atomic_load_explicit(&bell->word, memory_order_relaxed) ==
	    RT_BELL_AWAKE)
		return false;
	return rt_bell_wake(bell);
}

#endif /* RT_BASE_BELL_H */
