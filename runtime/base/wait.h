/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * wait.h -- how a public call waits. While it waits it runs rounds of all
 * pollers that belong to the calling thread, of any runtime, and of the poller
 * that it waits for if that one belongs to nobody; else it sleeps.
 * doc/protocols/manual.md.
 */

#ifndef RT_BASE_WAIT_H
#define RT_BASE_WAIT_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

struct rt_owned;

/* zeroed: a wait for threads of the library, or for other calls */
struct rt_wait {
	/* pollers of manual mode that have to do something; NULL: none */
	struct rt_owned *pollers;
	bool is_for_all; /* with those behind it: all of its runtime */

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

/* For calls that sleep in their own way: does the calling thread have pollers?
 * Then it runs them, rt_wait_run(), and sleeps no longer than RT_WAIT_NS. */
bool rt_wait_has_pollers(void);
void rt_wait_run(void);
#define RT_WAIT_NS 100000
/* Or than this, if what it waits for is another thread's poller, which may lose
 * its owner. */
#define RT_WAIT_LOOK_NS 10000000

#endif /* RT_BASE_WAIT_H */
