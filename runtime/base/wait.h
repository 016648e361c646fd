/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * wait.h -- how a public call waits. While a call waits, the calling thread
 * runs rounds of all pollers that belong to this thread, of any runtime, and of
 * the pollers on which the call depends, as far as these belong to no thread;
 * else the thread sleeps. doc/protocols/manual.md.
 */

#ifndef RT_BASE_WAIT_H
#define RT_BASE_WAIT_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/inbox.h"

/* ----------------------------------------------------------------- wait --- */

struct rt_owned;

#define RT_WAIT_ONE 1u
#define RT_WAIT_ALL UINT64_MAX

/* A wait. Zeroed: a wait for threads of the library, or for other calls. */
struct rt_wait {
	/* pollers of manual mode on which the call depends: the poller
	 * `pollers` and the pollers behind in the list, as far as `which` has a
	 * bit for the poller (bit 0: the first poller). NULL: the call depends
	 * on no poller */
	struct rt_owned *pollers;
	uint64_t which;

	/* private words of rt_wait_step(): */
	bool has_run; /* the step before ran rounds */
	long nap_ns;
	bool is_logged;
	/* a poller that has pending messages and belongs to another thread */
	struct rt_owned *suspect;
	/* rounds of the suspect, counted at since_ns */
	uint32_t turns;
	uint64_t since_ns;
};

/* Initialises a condition for rt_wait_step(). The condition uses the monotonic
 * clock, so setting the date back makes no wait longer. */
void rt_wait_cond_init(pthread_cond_t *cond);

/*
 * Does a single step of a wait. The caller loops, and checks under the lock
 * whether the wait is over. A step runs pollers, without the lock, or sleeps
 * until cond is signalled or pollers have to run again. Not on a poller.
 * REQUIRES: the lock, and no other lock.
 */
void rt_wait_step(struct rt_wait *wait, pthread_cond_t *cond,
		  pthread_mutex_t *lock);

/* Does a step of a wait for something that signals no condition: runs pollers,
 * then sleeps for a short time. */
void rt_wait_nap(void);

/*
 * Runs a round of each poller of the calling thread, and of each poller of
 * `first`, `which` that has no owner: for calls that sleep in their own way.
 * Returns false if there is no such poller. After true the caller sleeps no
 * longer than RT_WAIT_NS; after false, in manual mode, no longer than
 * RT_WAIT_LOOK_NS, since a poller may lose its owner. known: NULL, or a poller
 * of the same runtime that lives as long as the call: no lock is taken if
 * `known` is the thread's only poller.
 */
bool rt_wait_run(struct rt_owned *known, struct rt_owned *first,
		 uint64_t which);
/* Runs a round of each poller of `first`, `which` that has no owner: the second
 * half of rt_wait_run(). Returns whether there is such a poller. */
bool rt_wait_visit(struct rt_owned *first, uint64_t which);
#define RT_WAIT_NS	100000
#define RT_WAIT_LOOK_NS 10000000

/* ----------------------------------------------------------------- call --- */

/*
 * A call: a function that another thread runs, and the function's result. The
 * call is a message in the inbox of the other thread; the caller sends the
 * message, then waits for the result. Calls that are sent under a lock run in
 * the order of that lock; no thread waits under a lock.
 */

struct rpma_rt;

/* a call; owned by the caller again when rt_call_wait() has returned */
struct rt_call {
	struct rt_msg msg;
	int (*fn)(void *arg);
	void *arg;
	pthread_mutex_t lock;
	pthread_cond_t changed;
	bool done;
	int result;
};

void rt_call_send(struct rt_call *call, struct rt_inbox *inbox,
		  int (*fn)(void *arg), void *arg);
/* Waits for the call and returns the result of fn. poller: in manual mode the
 * poller that owns the inbox; otherwise NULL. */
int rt_call_wait(struct rt_call *call, struct rt_owned *poller);

/* Sends a call to a thread of the library and waits for the result. Not on that
 * thread. rt NULL: the caller runs no pollers meanwhile, so the caller may hold
 * a lock. */
int rt_call_sync(struct rpma_rt *rt, struct rt_inbox *inbox,
		 int (*fn)(void *arg), void *arg);

#endif /* RT_BASE_WAIT_H */
