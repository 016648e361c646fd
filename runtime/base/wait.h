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

/* zeroed: a wait for threads of the library, or for other calls */
struct rt_wait {
	/* pollers of manual mode on which the call depends: of the poller
	 * `pollers` and those behind it the ones with a bit in `which`, bit 0
	 * is the first. NULL: none */
	struct rt_owned *pollers;
	uint64_t which;

	/* of rt_wait_step() */
	bool has_run; /* rounds, in the step before */
	long nap_ns;
	bool is_logged;
	struct rt_owned *suspect; /* has something to do, and is another's */
	uint32_t turns;		  /* of it, at since_ns */
	uint64_t since_ns;
};

/* A condition that rt_wait_step() can wait for: a date that is set back makes
 * no wait longer. */
void rt_wait_cond_init(pthread_cond_t *cond);

/*
 * One step of a wait, in a loop that looks at what it waits for under the lock:
 * runs pollers, without the lock, or sleeps until cond is signalled or it is
 * time to run them again. Not on a poller. REQUIRES: the lock, and no other.
 */
void rt_wait_step(struct rt_wait *wait, pthread_cond_t *cond,
		  pthread_mutex_t *lock);

/* The same for what signals no condition: runs pollers, then a short sleep. */
void rt_wait_nap(void);

/*
 * For calls that sleep in their own way: runs a round of each poller of the
 * calling thread, and of each of the pollers `first`, `which` without an owner.
 * Returns false if there is no such poller. After true the caller
 * sleeps no longer than RT_WAIT_NS; after false, in manual mode, no longer than
 * RT_WAIT_LOOK_NS, since a poller may lose its owner.
 */
bool rt_wait_run(struct rt_owned *first, uint64_t which);
/* Returns whether the calling thread has pollers. */
bool rt_wait_has_pollers(void);
/* The second half: the pollers without an owner. */
bool rt_wait_visit(struct rt_owned *first, uint64_t which);
#define RT_WAIT_NS	100000
#define RT_WAIT_LOOK_NS 10000000

/* ----------------------------------------------------------------- call --- */

/*
 * A function that another thread runs, and its result: a message in the inbox
 * of that thread, which the caller sends, then waits for. Calls that are sent
 * under a lock run in the order of that lock; no thread waits under one.
 */

struct rpma_rt;

/* the caller's, until rt_call_wait() has answered */
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
/* Returns the result of fn. poller: the owner of the inbox in manual mode; else
 * NULL. */
int rt_call_wait(struct rt_call *call, struct rt_owned *poller);

/* Send and wait, for an inbox of a library thread, not from that. rt NULL:
 * the caller runs no pollers meanwhile, so it may hold a lock. */
int rt_call_sync(struct rpma_rt *rt, struct rt_inbox *inbox,
		 int (*fn)(void *arg), void *arg);

#endif /* RT_BASE_WAIT_H */
