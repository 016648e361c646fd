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
 * The event thread: one in the process, counted, shared by all runtimes. It
 * reads the asynchronous events of every ibv_context in use; what it
 * waits for are sources (base/thread.h).
 */

/* Starts the thread if it is the first. lost: runs on the thread when the
 * program has closed its descriptors, with the errno; the same in each call.
 * ERRORS: RPMA_E_PROVIDER, _NOMEM */
int rt_events_ref(void (*lost)(struct rt_thread *thread, int err));
/* Stops it after the last; not from the event thread. */
void rt_events_unref(void);

/* ERRORS: RPMA_E_PROVIDER */
int rt_events_add(struct rt_source *source);

/* In the child of a fork: there is no thread. */
void rt_events_forked(void);

/* Runs fn(arg) on the event thread and returns its result. */
int rt_events_call(int (*fn)(void *arg), void *arg);

/* ---------------------------------------------------------------- async --- */

/*
 * The asynchronous events of devices, for all runtimes of the process. The
 * event thread is the one reader of every ibv_context in use (or the
 * application reads, and feeds them in). The owner of an object is looked up
 * before the event is acknowledged, so while the object cannot be destroyed;
 * then the event is reported in memory that the owner has set aside: nothing is
 * allocated, and no event can be mistaken for one of a later object at the same
 * address or with the same number. doc/protocols/connection.md.
 */

struct rt_thread;

/* an object of the library that an event may name; embedded in its owner */
struct rt_async_object {
	const void *object; /* ibv_qp, ibv_cq or ibv_srq */
	/* event or feeding thread; locked: sends a message, no more */
	void (*event)(struct rt_async_object *self, enum ibv_event_type type);
	bool owned;
	struct rt_async_object *next;
};

/* After the object was made; object and event are set. Any thread. */
void rt_async_own(struct rt_async_object *object);
/* Before the object is destroyed; a second time does nothing. When it returns,
 * event() is not running and will not. Any thread. */
void rt_async_disown(struct rt_async_object *object);

/* a device that a runtime uses; embedded in its owner */
struct rt_async_device {
	struct ibv_context *ibv_ctx;
	struct rpma_rt *rt;
	/* DEVICE_FATAL; as of an object */
	void (*fatal)(struct rt_async_device *self);
	struct rt_async_device *next;
};

/* Reads the device's events from here on, unless the runtime is fed with them.
 * ERRORS: RPMA_E_PROVIDER, RPMA_E_NOMEM */
int rt_async_watch(struct rt_async_device *device);
/* When it returns, fatal() and the runtime's handler are not running on behalf
 * of it and will not. */
void rt_async_unwatch(struct rt_async_device *device);

/* Event thread: the program closed its descriptors, so no event is read any
 * more: each runtime that is watched ends all that it has on its devices. */
void rt_async_lost(struct rt_thread *thread, int err);
/* In the child of a fork: nothing is owned, nothing watched. */
void rt_async_forked(void);

#endif /* RT_EVENTS_EVENTS_H */
