/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * events.h -- the event thread of the process, and the asynchronous events that
 * the thread reads for all runtimes.
 */

#ifndef RT_EVENTS_EVENTS_H
#define RT_EVENTS_EVENTS_H

#include <stdbool.h>

#include <infiniband/verbs.h>

#include "rpma_rt.h"
#include "base/thread.h"

/* --------------------------------------------------------------- events --- */

/*
 * The event thread: a single thread in the process, counted, shared by all
 * runtimes. The thread reads the asynchronous events of every ibv_context in
 * use, each through a source (base/thread.h).
 */

/* Counts a user of the event thread; the first user starts the thread. lost:
 * runs on the event thread, with the errno, when the program has closed the
 * thread's descriptors; each call passes the same function. ERRORS:
 * RPMA_E_PROVIDER, _NOMEM */
int rt_events_ref(void (*lost)(struct rt_thread *thread, int err));
/* Stops the event thread if the last user leaves; not on the event thread. */
void rt_events_unref(void);

/* Adds a source to the event thread. ERRORS: RPMA_E_PROVIDER */
int rt_events_add(struct rt_source *source);

/* Forgets the thread, in the child of a fork, where the thread does not
 * exist. */
void rt_events_forked(void);

/* Runs fn(arg) on the event thread and returns the result. */
int rt_events_call(int (*fn)(void *arg), void *arg);

/* ---------------------------------------------------------------- async --- */

/*
 * The asynchronous events of devices, for all runtimes of the process. Only the
 * event thread reads the events of an ibv_context in use (or the application
 * reads the events and feeds them to a runtime). The owner of an object is
 * looked up before the event is acknowledged, that is, while the object cannot
 * be destroyed; then the event is reported in memory that the owner has set
 * aside. So nothing is allocated, and no event can be mistaken for an event of
 * a later object at the same address or with the same number.
 * doc/protocols/connection.md.
 */

struct rt_thread;

/* an object of the library that an event may name; embedded in its owner */
struct rt_async_object {
	const void *object; /* ibv_qp, ibv_cq or ibv_srq */
	/* reports an event, on the event thread or a feeding thread, under the
	 * lock: sends a message, no more */
	void (*event)(struct rt_async_object *self, enum ibv_event_type type);
	bool owned;
	struct rt_async_object *next;
};

/* Enters an object, whose object and event are set, after the object was made.
 * Any thread. */
void rt_async_own(struct rt_async_object *object);
/* Takes an object out, before the object is destroyed; a second call does
 * nothing. After the return event() is not running and does not run again. Any
 * thread. */
void rt_async_disown(struct rt_async_object *object);

/* a device that a runtime uses; embedded in its owner */
struct rt_async_device {
	struct ibv_context *ibv_ctx;
	struct rpma_rt *rt;
	/* reports DEVICE_FATAL, under the same rules as
	 * rt_async_object.event */
	void (*fatal)(struct rt_async_device *self);
	struct rt_async_device *next;
};

/* Reads the device's events from here on, unless the program feeds the events
 * to the runtime. ERRORS: RPMA_E_PROVIDER, RPMA_E_NOMEM */
int rt_async_watch(struct rt_async_device *device);
/* Ends the watch of a device. After the return fatal() and the runtime's
 * handler are not running for this device, and do not run again. */
void rt_async_unwatch(struct rt_async_device *device);

/* Ends, on the event thread, everything that each watched runtime has on its
 * devices: the program closed the thread's descriptors, so no event is read any
 * more. */
void rt_async_lost(struct rt_thread *thread, int err);
/* Forgets all objects and devices, in the child of a fork. */
void rt_async_forked(void);

#endif /* RT_EVENTS_EVENTS_H */
