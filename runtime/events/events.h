/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * events.h -- the event thread: one in the process, counted, shared by all
 * runtimes. It reads the asynchronous events (async.h) of every ibv_context in
 * use; what it waits for are sources (base/thread.h).
 */

#ifndef RT_EVENTS_EVENTS_H
#define RT_EVENTS_EVENTS_H

#include "base/thread.h"

/* Starts the thread if it is the first. lost: runs on the thread when the
 * program has closed its descriptors, with the errno; the same in each call.
 * ERRORS: RPMA_E_PROVIDER, _NOMEM */
int rt_events_ref(void (*lost)(struct rt_thread *thread, int err));
/* Stops it after the last; not from the event thread. */
void rt_events_unref(void);

/* ERRORS: RPMA_E_PROVIDER */
int rt_events_add(struct rt_source *source);
/* When it returns, ready() does not run and will not. */
void rt_events_remove(struct rt_source *source);

/* In the child of a fork: there is no thread. */
void rt_events_forked(void);

/* Runs fn(arg) on the event thread and returns its result. */
int rt_events_call(int (*fn)(void *arg), void *arg);

#endif /* RT_EVENTS_EVENTS_H */
