/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * thread.c -- the loop of the threads that may block. A source that cannot go
 * on rests: its fd stays readable, and must not keep the thread busy. A message
 * of the first inbox, or a source, waits for at most one message of the inbox
 * "later", however many those are.
 */

#define _GNU_SOURCE
#include "base/thread.h"

#include <errno.h>
#include <limits.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fds.h"
#include "base/lang.h"
#include "base/refuse.h"
#include "base/spawn.h"
#include "rpma_rt.h"

#define BATCH 16 /* sources that are ready */
/* A source that cannot be read rests, twice as long each time, up to a limit:
 * that costs nothing, and delays it little when it can be read again. */
#define FIRST_REST_NS	UINT64_C(10000000)
#define LONGEST_REST_NS UINT64_C(160000000)
#define NS_PER_MS	INT64_C(1000000)
#define MOST_FAILURES	16 /* readings of a source that cannot get better */

/* --------------------------------------------------------------- timers --- */

void rt_thread_set_timer(struct rt_thread *thread, struct rt_timer *timer,
			 uint64_t when_ns)
{
	rt_heap_insert(&thread->timers, &timer->node, when_ns);
}

void rt_thread_cancel_timer(struct rt_thread *thread, struct rt_timer *timer)
{
	if (rt_heap_has(&thread->timers, &timer->node))
		rt_heap_remove(&thread->timers, &timer->node);
}

int rt_thread_run_timers(struct rt_thread *thread)
{
	struct rt_heap_node *first = thread->timers.first;
	struct rt_timer *timer;
	uint64_t now;
	uint64_t ms;

	if (first == NULL)
		return -1;
	now = rt_now_ns();
	while ((first = thread->timers.first) != NULL && first->key <= now) {
		timer = RT_FROM(struct rt_timer, node, first);
		rt_heap_remove(&thread->timers, first);
		timer->due(timer);
	}
	if (first == NULL)
		return -1;
	ms = (first->key - now) / 1000000 + 1;
	return ms < INT_MAX ? (int)ms : INT_MAX;
}

/* -------------------------------------------------------------- sources --- */

static void set_events(struct rt_source *source, uint32_t wanted)
{
	struct epoll_event event = {.events = wanted, .data.ptr = source};

	/* else the number may be another descriptor of the program */
	if (!source->thread->has_lost_fds)
		epoll_ctl(source->thread->epfd, EPOLL_CTL_MOD, source->fd,
			  &event);
}

int rt_thread_add(struct rt_thread *thread, struct rt_source *source)
{
	struct epoll_event event = {.events = EPOLLIN, .data.ptr = source};

	source->thread = thread;
	return epoll_ctl(thread->epfd, EPOLL_CTL_ADD, source->fd, &event)
		       ? rt_refuse_system("epoll_ctl")
		       : 0;
}

void rt_thread_mute(struct rt_source *source)
{
	rt_thread_cancel_timer(source->thread, &source->rest);
	if (!source->thread->has_lost_fds)
		epoll_ctl(source->thread->epfd, EPOLL_CTL_DEL, source->fd,
			  NULL);
}

static uint64_t rest_of(const struct rt_source *source)
{
	uint64_t ns = FIRST_REST_NS;
	unsigned i;

	for (i = 1; i < source->failures && ns < LONGEST_REST_NS; i++)
		ns *= 2;
	return ns;
}

static void end_rest(struct rt_timer *timer)
{
	set_events(RT_FROM(struct rt_source, rest, timer), EPOLLIN);
}

static void rest(struct rt_source *source)
{
	struct rt_thread *thread = source->thread;

	/* an fd that is broken is reported even while it rests */
	if (rt_heap_has(&thread->timers, &source->rest.node))
		return;
	source->rest.due = end_rest;
	rt_thread_set_timer(thread, &source->rest,
			    rt_now_ns() + rest_of(source));
	set_events(source, 0);
}

/* Is it for want of something that others may give back? */
static bool may_pass(int err)
{
	switch (err) {
	case EAGAIN:
	case EBUSY:
	case EINTR:
	case EMFILE:
	case ENFILE:
	case ENOBUFS:
	case ENOMEM:
		return true;
	default:
		return false;
	}
}

bool rt_thread_failed(struct rt_source *source, int err)
{
	source->failures++;
	source->hopeless += !may_pass(err);
	if (source->hopeless < MOST_FAILURES) {
		rest(source);
		return false;
	}
	rt_thread_mute(source);
	return true;
}

/* ----------------------------------------------------------- the thread --- */

int rt_thread_run_messages(struct rt_thread *thread)
{
	int count = rt_inbox_run_owner(&thread->inbox, thread->rt);

	return count + rt_inbox_run_some_owner(&thread->later, thread->rt, 1);
}

bool rt_thread_is_idle(struct rt_thread *thread)
{
	return rt_inbox_is_empty(&thread->inbox) &&
	       rt_inbox_is_empty(&thread->later);
}

/* The program closed the thread's descriptors: messages come without them. */
static void lose_fds(struct rt_thread *thread, int err)
{
	thread->has_lost_fds = true;
	rt_bell_lose_fd(&thread->bell);
	if (thread->lost != NULL)
		thread->lost(thread, err);
}

/* How many sources are ready, or -1 and errno. */
static int sleep_until_ready(struct rt_thread *thread,
			     struct epoll_event *batch, int timeout_ms)
{
	if (!thread->has_lost_fds)
		return rt_fds_wait(thread->epfd, &thread->bell, batch, BATCH,
				   timeout_ms);
	rt_bell_sleep_armed(&thread->bell,
			    timeout_ms < 0 ? -1 : timeout_ms * NS_PER_MS);
	return 0;
}

/* Runs the sources that are ready. Sleeps until there is one, or a message, but
 * not when there is a message already: so neither keeps the other waiting. */
static void serve_sources(struct rt_thread *thread)
{
	struct epoll_event batch[BATCH];
	struct rt_source *source;
	int timeout = rt_thread_run_timers(thread);
	int n;
	int i;

	rt_bell_prepare(&thread->bell);
	/* acquire: pairs with the release in rt_thread_stop() */
	if (!rt_thread_is_idle(thread) ||
	    atomic_load_explicit(&thread->stopping, memory_order_acquire))
		timeout = 0;
	n = sleep_until_ready(thread, batch, timeout);
	if (n < 0)
		lose_fds(thread, errno);
	rt_bell_cancel(&thread->bell);
	for (i = 0; i < n; i++) {
		source = batch[i].data.ptr;
		if (source != NULL) /* NULL: the bell */
			source->ready(source);
	}
}

static void *thread_main(void *arg)
{
	struct rt_thread *thread = arg;
	bool stopping;

	for (;;) {
		/* acquire: pairs with the release in rt_thread_stop(). Before
		 * messages are run: what was sent before the stop is there */
		stopping = atomic_load_explicit(&thread->stopping,
						memory_order_acquire);
		if (rt_thread_run_messages(thread) == 0 && stopping)
			break;
		serve_sources(thread);
	}
	return NULL;
}

int rt_thread_start(struct rt_thread *thread, struct rpma_rt *rt,
		    const char *name)
{
	struct epoll_event event = {.events = EPOLLIN};
	int ret;

	thread->rt = rt;
	thread->timers.first = NULL;
	thread->has_lost_fds = false;
	/* relaxed: the thread's creation orders it */
	atomic_store_explicit(&thread->stopping, false, memory_order_relaxed);
	thread->epfd = epoll_create1(EPOLL_CLOEXEC);
	if (thread->epfd < 0)
		return rt_refuse_system("epoll_create1");
	ret = rt_bell_init(&thread->bell);
	if (ret)
		goto err_close_epfd;
	ret = rt_inbox_init(&thread->inbox, &thread->bell);
	if (ret)
		goto err_fini_bell;
	ret = rt_inbox_init(&thread->later, &thread->bell);
	if (ret)
		goto err_fini_inbox;
	if (epoll_ctl(thread->epfd, EPOLL_CTL_ADD, rt_bell_fd(&thread->bell),
		      &event))
		ret = rt_refuse_system("epoll_ctl");
	else
		ret = rt_spawn(&thread->thread, name, RPMA_RT_CPU_ANY,
			       thread_main, thread);
	if (ret)
		goto err_fini_later;
	return 0;
err_fini_later:
	rt_inbox_fini(&thread->later);
err_fini_inbox:
	rt_inbox_fini(&thread->inbox);
err_fini_bell:
	rt_bell_fini(&thread->bell);
err_close_epfd:
	close(thread->epfd);
	return ret;
}

void rt_thread_join(struct rt_thread *thread)
{
	/* release: pairs with the acquires above */
	atomic_store_explicit(&thread->stopping, true, memory_order_release);
	rt_bell_ring(&thread->bell);
	pthread_join(thread->thread, NULL);
}

void rt_thread_fini(struct rt_thread *thread)
{
	rt_inbox_fini(&thread->later);
	rt_inbox_fini(&thread->inbox);
	rt_bell_fini(&thread->bell);
	if (!thread->has_lost_fds)
		close(thread->epfd);
}

void rt_thread_stop(struct rt_thread *thread)
{
	rt_thread_join(thread);
	rt_thread_fini(thread);
}
