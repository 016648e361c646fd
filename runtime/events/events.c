/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * events.c -- the process's event thread. Sources are added from any thread
 * and removed on the event thread itself, between two batches of events, so
 * that ready() never runs on a removed one. A source that cannot go on for want
 * of memory rests: its fd stays readable, and must not keep the thread busy.
 */

#define _GNU_SOURCE
#include "events/events.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "base/bell.h"
#include "base/clock.h"
#include "base/self.h"
#include "base/thread.h"
#include "events/async.h"

#define BATCH	16
#define REST_NS 20000000 /* of a source that lacks memory */

#define MOST_FAILURES 50 /* readings of a source in a row */

static struct {
	pthread_mutex_t lock; /* of count: start and stop */
	unsigned count;
	pthread_t thread;
	int epfd;
	struct rt_bell bell;
	struct rt_inbox inbox;
	_Atomic bool stopping;
	/* the event thread's */
	struct rt_source *resting;
	uint64_t rest_until_ns;
} events = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* ----------------------------------------------------------- the thread --- */

static void set_events(struct rt_source *source, uint32_t wanted)
{
	struct epoll_event event = {.events = wanted, .data.ptr = source};

	epoll_ctl(events.epfd, EPOLL_CTL_MOD, source->fd, &event);
}

static bool is_resting(const struct rt_source *source)
{
	const struct rt_source *other = events.resting;

	while (other != NULL && other != source)
		other = other->resting_next;
	return other != NULL;
}

void rt_events_rest(struct rt_source *source)
{
	/* an fd that is broken is told of even so */
	if (is_resting(source))
		return;
	if (events.resting == NULL)
		events.rest_until_ns = rt_now_ns() + REST_NS;
	source->resting_next = events.resting;
	events.resting = source;
	set_events(source, 0);
}

/* Those that rested are looked at again; how long to sleep at most, in ms. */
static int end_rest(void)
{
	struct rt_source *source;
	uint64_t now;

	if (events.resting == NULL)
		return -1;
	now = rt_now_ns();
	if (now < events.rest_until_ns)
		return (int)((events.rest_until_ns - now) / 1000000) + 1;
	while ((source = events.resting) != NULL) {
		events.resting = source->resting_next;
		set_events(source, EPOLLIN);
	}
	return -1;
}

static void wait_for_events(void)
{
	struct epoll_event batch[BATCH];
	struct rt_source *source;
	int timeout = end_rest();
	int n = 0;
	int i;

	rt_bell_prepare(&events.bell);
	/* acquire: pairs with the release in rt_events_unref() */
	if (rt_inbox_is_empty(&events.inbox) &&
	    !atomic_load_explicit(&events.stopping, memory_order_acquire))
		n = epoll_wait(events.epfd, batch, BATCH, timeout);
	rt_bell_cancel(&events.bell);
	for (i = 0; i < n; i++) {
		source = batch[i].data.ptr;
		if (source != NULL) /* NULL: the bell */
			source->ready(source);
	}
}

static void *events_main(void *arg)
{
	(void)arg;
	rt_self_set_events();
	for (;;) {
		wait_for_events();
		rt_inbox_run_owner(&events.inbox, NULL);
		/* acquire: pairs with the release in rt_events_unref() */
		if (atomic_load_explicit(&events.stopping,
					 memory_order_acquire) &&
		    rt_inbox_is_empty(&events.inbox))
			break;
	}
	return NULL;
}

static int start(void)
{
	struct epoll_event event = {.events = EPOLLIN};
	int ret = RPMA_E_PROVIDER;

	/* relaxed: the thread's creation orders it */
	atomic_store_explicit(&events.stopping, false, memory_order_relaxed);
	events.resting = NULL;
	events.epfd = epoll_create1(EPOLL_CLOEXEC);
	if (events.epfd < 0)
		return RPMA_E_PROVIDER;
	ret = rt_bell_init(&events.bell);
	if (ret)
		goto err_close_epfd;
	ret = rt_inbox_init(&events.inbox, &events.bell);
	if (ret)
		goto err_fini_bell;
	ret = RPMA_E_PROVIDER;
	if (epoll_ctl(events.epfd, EPOLL_CTL_ADD, rt_bell_fd(&events.bell),
		      &event) ||
	    pthread_create(&events.thread, NULL, events_main, NULL))
		goto err_fini_inbox;
	return 0;
err_fini_inbox:
	rt_inbox_fini(&events.inbox);
err_fini_bell:
	rt_bell_fini(&events.bell);
err_close_epfd:
	close(events.epfd);
	return ret;
}

int rt_events_ref(void)
{
	int ret = 0;

	pthread_mutex_lock(&events.lock);
	if (events.count == 0)
		ret = start();
	if (ret == 0)
		events.count++;
	pthread_mutex_unlock(&events.lock);
	return ret;
}

void rt_events_unref(void)
{
	pthread_mutex_lock(&events.lock);
	if (--events.count == 0) {
		/* release: pairs with the acquires of the thread */
		atomic_store_explicit(&events.stopping, true,
				      memory_order_release);
		rt_bell_ring(&events.bell);
		pthread_join(events.thread, NULL);
		rt_inbox_fini(&events.inbox);
		rt_bell_fini(&events.bell);
		close(events.epfd);
	}
	pthread_mutex_unlock(&events.lock);
}

void rt_events_forked(void)
{
	pthread_mutex_init(&events.lock, NULL);
	events.count = 0;
	rt_async_forked();
}

int rt_events_call(int (*fn)(void *arg), void *arg)
{
	/* from a handler: it runs between two events */
	return rt_self_is_events() ? fn(arg)
				   : rt_call_sync(NULL, &events.inbox, fn, arg);
}

/* -------------------------------------------------------------- sources --- */

int rt_events_add(struct rt_source *source)
{
	struct epoll_event event = {.events = EPOLLIN, .data.ptr = source};

	return epoll_ctl(events.epfd, EPOLL_CTL_ADD, source->fd, &event)
		       ? RPMA_E_PROVIDER
		       : 0;
}

void rt_events_mute(struct rt_source *source)
{
	struct rt_source **link = &events.resting;

	while (*link != NULL && *link != source)
		link = &(*link)->resting_next;
	if (*link != NULL)
		*link = source->resting_next;
	epoll_ctl(events.epfd, EPOLL_CTL_DEL, source->fd, NULL);
}

void rt_events_failed(struct rt_source *source)
{
	if (++source->failures < MOST_FAILURES)
		rt_events_rest(source);
	else
		rt_events_mute(source);
}

static int remove_source(void *arg)
{
	rt_events_mute(arg);
	return 0;
}

void rt_events_remove(struct rt_source *source)
{
	rt_events_call(remove_source, source);
}
