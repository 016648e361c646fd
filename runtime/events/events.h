/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * events.h -- the event thread: one in the process, counted, shared by all
 * runtimes. It reads CM channels and the async events (async.h) of every
 * ibv_context in use; what it waits for are sources.
 */

#ifndef RT_EVENTS_EVENTS_H
#define RT_EVENTS_EVENTS_H

#include <stdbool.h>

#include "rpma_rt.h"

/* something readable; ready() runs on the event thread, may not block */
struct rt_source {
	int fd;
	void (*ready)(struct rt_source *source);
	/* the event thread's */
	struct rt_source *resting_next;
	unsigned failures; /* readings in a row */
};

/* Starts the thread if it is the first. ERRORS: RPMA_E_PROVIDER, _NOMEM */
int rt_events_ref(void);
/* Stops it after the last; not from the event thread. */
void rt_events_unref(void);

/* ERRORS: RPMA_E_PROVIDER */
int rt_events_add(struct rt_source *source);
/* When it returns, ready() does not run and will not. */
void rt_events_remove(struct rt_source *source);

/* In the child of a fork: there is no thread. */
void rt_events_forked(void);

/* Event thread: it is not waited for any more; still to be removed. */
void rt_events_mute(struct rt_source *source);

/* Event thread: it cannot go on for want of memory; ready() is called again a
 * little later, and not before. */
void rt_events_rest(struct rt_source *source);

/* Event thread: reading failed, which may pass: it rests, and after fifty
 * times in a row it is muted, for it may be readable for ever. */
void rt_events_failed(struct rt_source *source);
/* Event thread: reading did not fail. */
static inline void rt_events_read(struct rt_source *source)
{
	source->failures = 0;
}

/* Runs fn(arg) on the event thread and answers its result. */
int rt_events_call(int (*fn)(void *arg), void *arg);

#endif /* RT_EVENTS_EVENTS_H */
