/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * thread.h -- threads of the library: where a thread runs, how a thread starts,
 * and the loop of the event thread, and of a runtime's control and destroyer
 * threads: a thread with two inboxes, sources and timers. What another thread
 * asks of it: base/wait.h.
 */

#ifndef RT_BASE_THREAD_H
#define RT_BASE_THREAD_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/bell.h"
#include "base/heap.h"
#include "base/inbox.h"
#include "base/wait.h"

/* ------------------------------------------------------------------ cpu --- */

/*
 * The CPUs that threads of the library run on: those of the process, as it was
 * started, or the one that the program names for a poller. Where the thread
 * that makes a runtime is pinned does not count.
 */

/* ERRORS: RPMA_E_INVAL (no such CPU, or not one of the process's),
 * RPMA_E_PROVIDER (those are not known; logged) */
int rt_cpu_check(int cpu);

/* The thread runs on that CPU only; RPMA_RT_CPU_ANY: on any of the process's.
 * Where the system refuses, it runs where it ran before. */
void rt_cpu_place(pthread_t thread, int cpu);

/* ---------------------------------------------------------------- spawn --- */

/*
 * The threads that the library starts: each with a name, none of the signals of
 * the program, and a place.
 */

#define RT_SPAWN_NAME 16 /* bytes of a name, with the 0 */

/*
 * Starts fn(arg). Whatever the caller blocks, every signal is blocked in the
 * new thread but those that report a fault of the thread itself. cpu: as
 * rt_cpu_place().
 * ERRORS: RPMA_E_PROVIDER
 */
int rt_spawn(pthread_t *thread, const char *name, int cpu, void *(*fn)(void *),
	     void *arg);

/* --------------------------------------------------------------- thread --- */

struct rpma_rt;
struct rt_thread;

/* a function that a thread runs at a time; embedded in its owner, zeroed before
 * its first use */
struct rt_timer {
	struct rt_heap_node node; /* key: when, by the monotonic clock */
	void (*due)(struct rt_timer *timer);
};

/* an fd that a thread waits for; embedded in its owner */
struct rt_source {
	int fd;
	/* runs on the thread when the fd is readable, between two messages */
	void (*ready)(struct rt_source *source);
	struct rt_thread *thread; /* immutable once added */
	/* the thread's */
	struct rt_timer rest; /* set: the fd is not waited for until then */
	unsigned failures;    /* readings in a row */
	unsigned hopeless;    /* of those: for what will not get better */
};

struct rt_thread {
	struct rpma_rt *rt; /* immutable: what its messages get */
	struct rt_bell bell;
	struct rt_inbox inbox;
	struct rt_inbox later; /* one message of it, then all the rest again */
	int epfd;	       /* immutable: the bell and the sources */
	pthread_t thread;
	_Atomic bool stopping;
	/* the thread's */
	struct rt_heap timers;
	bool has_lost_fds; /* sleeps on the futex of the bell: base/fds.h */
	/* a message is about to come, the answer to what the thread has just
	 * reported: the thread does not sleep at once */
	bool expects;
	uint64_t lingers_ns; /* from then on, by the monotonic clock */
	/* set before the start, or NULL: runs on the thread when the program
	 * has closed its descriptors; sources are not ready any more */
	void (*lost)(struct rt_thread *thread, int err);
};

/* The owner that messages of this inbox get is rt. name: as of rt_spawn().
 * ERRORS: RPMA_E_PROVIDER */
int rt_thread_start(struct rt_thread *thread, struct rpma_rt *rt,
		    const char *name);
/* Runs what is in the inboxes, ends the thread. Not from it. */
void rt_thread_stop(struct rt_thread *thread);
/* The same in two steps, for two threads that send each other messages: a
 * sender may still ring when its message has been handled, so both threads end
 * before the inboxes of either go. */
void rt_thread_join(struct rt_thread *thread);
void rt_thread_fini(struct rt_thread *thread);

/* On the thread: runs the messages of its inbox, and one of those that may
 * wait; returns how many it ran. */
int rt_thread_run_messages(struct rt_thread *thread);
/* On the thread: true if there are none, and a ring comes for the next. */
bool rt_thread_is_idle(struct rt_thread *thread);

/* On the thread: runs timer->due, which is set, at that time, behind the
 * messages that were sent before. REQUIRES: the timer is not set */
void rt_thread_set_timer(struct rt_thread *thread, struct rt_timer *timer,
			 uint64_t when_ns);
/* On the thread: the timer does not run. Does nothing where it is not set. */
void rt_thread_cancel_timer(struct rt_thread *thread, struct rt_timer *timer);
/* On the thread: runs the timers that are due. Returns in how many ms the next
 * timer is, -1: there is none. */
int rt_thread_run_timers(struct rt_thread *thread);

/* Any thread; fd and ready are set. ERRORS: RPMA_E_PROVIDER */
int rt_thread_add(struct rt_thread *thread, struct rt_source *source);

/* Of the following the source's thread is the caller, or it has ended. */

/* The source is waited for no more; when a message or ready() that called this
 * returns, ready() is not called again. */
void rt_thread_mute(struct rt_source *source);
/* Reading failed with that errno: ready() is called again a little later, and
 * not before; a little longer after each time. Never given up for want of
 * memory or descriptors. True: for other reasons it failed sixteen times, some
 * two seconds, and is muted, as it may be readable for ever. */
bool rt_thread_failed(struct rt_source *source, int err);
/* Reading did not fail. */
static inline void rt_thread_succeeded(struct rt_source *source)
{
	source->failures = 0;
	source->hopeless = 0;
}

#endif /* RT_BASE_THREAD_H */
