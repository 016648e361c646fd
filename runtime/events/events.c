/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * events.c -- the process's event thread: its count, and calls to it. Sources
 * are added from any thread and removed on the event thread itself, between two
 * batches, so that ready() never runs on a removed one.
 */

#include "events/events.h"

#include <pthread.h>

#include "rpma_rt.h"
#include "base/self.h"

static struct {
	pthread_mutex_t lock; /* of count: start and stop */
	unsigned count;
	struct rt_thread thread;
} events = {.lock = PTHREAD_MUTEX_INITIALIZER};

static int become_event_thread(void *arg)
{
	(void)arg;
	rt_self_set_events();
	return 0;
}

static int start(void (*lost)(struct rt_thread *thread, int err))
{
	int ret;

	events.thread.lost = lost;
	ret = rt_thread_start(&events.thread, NULL, "rt-event");

	if (ret == 0)
		rt_call_sync(NULL, &events.thread.inbox, become_event_thread,
			     NULL);
	return ret;
}

int rt_events_ref(void (*lost)(struct rt_thread *thread, int err))
{
	int ret = 0;

	pthread_mutex_lock(&events.lock);
	if (events.count == 0)
		ret = start(lost);
	if (ret == 0)
		events.count++;
	pthread_mutex_unlock(&events.lock);
	return ret;
}

void rt_events_unref(void)
{
	pthread_mutex_lock(&events.lock);
	if (--events.count == 0)
		rt_thread_stop(&events.thread);
	pthread_mutex_unlock(&events.lock);
}

void rt_events_forked(void)
{
	pthread_mutex_init(&events.lock, NULL);
	events.count = 0;
}

int rt_events_call(int (*fn)(void *arg), void *arg)
{
	/* from a handler: it runs between two events */
	return rt_self_is_events()
		       ? fn(arg)
		       : rt_call_sync(NULL, &events.thread.inbox, fn, arg);
}

int rt_events_add(struct rt_source *source)
{
	return rt_thread_add(&events.thread, source);
}

static int remove_source(void *arg)
{
	rt_thread_mute(arg);
	return 0;
}

void rt_events_remove(struct rt_source *source)
{
	rt_events_call(remove_source, source);
}
