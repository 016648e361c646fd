/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * futures.h: a sleep that ends when any of some futures is complete, or at a
 * time. Meant to be copied: needs clock.h and nothing else.
 */

#ifndef EXAMPLES_FUTURES_H
#define EXAMPLES_FUTURES_H

#include <poll.h>

#include <rpma_rt.h>

#include "clock.h"

#define FUTURES_MAX	 64   /* in a set */
#define FUTURES_SLEEP_MS 1000 /* the longest sleep */

/* A set begins as zeros. */
struct futures {
	struct rpma_rt_future list[FUTURES_MAX];
	uint32_t count;
};

/* Returns false for a future that is all zeros: never asked for, or dropped. */
static inline bool future_is_held(const struct rpma_rt_future *future)
{
	return future->opaque[0] | future->opaque[1];
}

/* Adds a future to the set; NULL, or a future that is not held: nothing. */
static inline void futures_add(struct futures *set,
			       const struct rpma_rt_future *future)
{
	if (future != NULL && future_is_held(future) &&
	    set->count < FUTURES_MAX)
		set->list[set->count++] = *future;
}

/* In manual mode: runs a poller until something has come, or until the time.
 * Returns false if nothing has come. */
static inline bool futures_spin(struct rpma_rt *rt, uint32_t poller,
				uint64_t until_ns)
{
	while (rpma_rt_poller_run(rt, poller, 1) == 0)
		if (clock_now() >= until_ns)
			return false;
	return true;
}

/* Sleeps until a future of the set is complete, or until the time. May return
 * earlier. In manual mode the sleep runs the pollers. */
static inline void futures_sleep(const struct futures *set, uint64_t until_ns)
{
	uint64_t now = clock_now();
	uint64_t ms = until_ns <= now ? 0 : (until_ns - now) / CLOCK_MS + 1;

	if (ms > FUTURES_SLEEP_MS)
		ms = FUTURES_SLEEP_MS;
	if (set->count == 0 ||
	    rpma_rt_future_wait_some(set->list, set->count, 1, (int)ms) < 0)
		poll(NULL, 0, (int)ms);
}

#endif /* EXAMPLES_FUTURES_H */
