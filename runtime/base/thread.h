/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * thread.h -- threads of the library: on which CPUs a thread runs, how a thread
 * starts, and the loop of the event thread and of a runtime's control and
 * destroyer threads, each with two inboxes, sources and timers. How other
 * threads call functions on such a thread: base/wait.h.
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
 * The CPUs for threads of the library: all CPUs that the process had when it
 * was started, or the CPU that the program names for a poller. The affinity of
 * the thread that makes a runtime does not count.
 */

/* Checks the number of a CPU. ERRORS: RPMA_E_INVAL (no such CPU, or no CPU of
 * the process), RPMA_E_PROVIDER (the CPUs of the process are not known;
 * logged) */
int rt_cpu_check(int cpu);

/* Restricts the thread to the CPU; RPMA_RT_CPU_ANY: to the CPUs of the process.
 * Where the system refuses, the thread runs where it ran before. */
void rt_cpu_place(pthread_t thread, int cpu);

/* ---------------------------------------------------------------- spawn --- */

/*
 * The start of the library's threads: each thread gets a name, a place, and
 * receives no signal that is meant for the program.
 */

#define RT_SPAWN_NAME 16 /* bytes of a name, with the terminating 0 */

/*
 * Starts a thread that runs fn(arg). The new thread blocks every signal but the
 * signals that report a fault of the thread itself, whatever the caller blocks.
 * cpu: see rt_cpu_place(). ERRORS: RPMA_E_PROVIDER
 */
int rt_spawn(pthread_t *thread, const char *name, int cpu, void *(*fn)(void *),
	     void *arg);

/* --------------------------------------------------------------- thread --- */

struct rpma_rt;
struct rt_thread;

/* a function that a thread runs at a set time; embedded in its owner, zeroed
 * before the first use */
struct rt_timer {
	struct rt_heap_node node; /* key: the time, by the monotonic clock */
	void (*due)(struct rt_timer *timer);
};

/* an fd that a thread waits for; embedded in its owner */
struct rt_source {
	int fd;
	/* runs on the thread, between two messages, when the fd is readable */
	void (*ready)(struct rt_source *source);
	struct rt_thread *thread; /* immutable after rt_thread_add() */
	/* private to the thread: */
	/* set: the thread does not wait for the fd until this timer is due */
	struct rt_timer rest;
	unsigned failures; /* failed reads in a row */
	/* failures among them whose cause does not pass */
	unsigned hopeless;
};

struct rt_thread {
	struct rpma_rt *rt; /* immutable: the owner that messages get */
	struct rt_bell bell;
	struct rt_inbox inbox;
	/* after each message of `later` all other work is looked at again */
	struct rt_inbox later;
	/* the epoll set of the bell and the sources; changed by
	 * rt_thread_renew() only */
	int epfd;
	pthread_t thread;
	_Atomic bool stopping;
	/* private to the thread: */
	struct rt_heap timers;
	/* the program closed the fds: the thread sleeps on the futex of the
	 * bell (base/fds.h) */
	bool has_lost_fds;
	/* the answer to what the thread has just reported is expected as a
	 * message: the thread does not sleep at once */
	bool expects;
	/* the thread waits awake only after this time, by the monotonic
	 * clock */
	uint64_t lingers_ns;
	/* set before the start, or NULL: runs on the thread when the program
	 * has closed the thread's descriptors; sources do not become ready any
	 * more */
	void (*lost)(struct rt_thread *thread, int err);
};

/* Starts the thread. Messages of the thread's inboxes get rt as their owner.
 * name: see rt_spawn(). ERRORS: RPMA_E_PROVIDER */
int rt_thread_start(struct rt_thread *thread, struct rpma_rt *rt,
		    const char *name);
/* Runs the messages in the inboxes, then ends the thread. Not on that
 * thread. */
void rt_thread_stop(struct rt_thread *thread);
/* Stop a thread in two steps, for two threads that send each other messages: a
 * sender may still ring when its message has been handled, so both threads are
 * joined before the inboxes of either are destroyed. */
void rt_thread_join(struct rt_thread *thread);
void rt_thread_fini(struct rt_thread *thread);

/* Runs the messages of the inbox, and a single message of the inbox `later`, on
 * the thread. Returns the number of messages that were run. */
int rt_thread_run_messages(struct rt_thread *thread);
/* Returns whether the inboxes are empty, on the thread; if so the sender of the
 * next message rings the bell. */
bool rt_thread_is_idle(struct rt_thread *thread);

/* Sets a timer, on the thread: timer->due, which the caller has set, runs at
 * that time, after the messages that were sent before. REQUIRES: the timer is
 * not set */
static inline void rt_thread_set_timer(struct rt_thread *thread,
				       struct rt_timer *timer, uint64_t when_ns)
{
	rt_heap_insert(&thread->timers, &timer->node, when_ns);
}

/* Cancels a timer, on the thread. Does nothing if the timer is not set. */
static inline void rt_thread_cancel_timer(struct rt_thread *thread,
					  struct rt_timer *timer)
{
	if (rt_heap_has(&thread->timers, &timer->node))
		rt_heap_remove(&thread->timers, &timer->node);
}

/* Runs the due timers, on the thread. Returns the ms until the next timer, or
 * -1 if no timer is set. */
int rt_thread_run_timers(struct rt_thread *thread);

/* Adds a source, whose fd and ready are set. Any thread. ERRORS:
 * RPMA_E_PROVIDER */
int rt_thread_add(struct rt_thread *thread, struct rt_source *source);

/* The following are called on the source's thread, or when that thread has
 * ended. */

/* Stops waiting for the source. ready() is not called again once the message or
 * the ready() that called rt_thread_mute() has returned. */
void rt_thread_mute(struct rt_source *source);
/* Opens descriptors in place of the closed ones, on the thread, inside lost():
 * sources that are added from here on become ready. No other thread may add a
 * source meanwhile. Returns false without a free descriptor. */
bool rt_thread_renew(struct rt_thread *thread);
/* Reports that reading the source failed with the errno: ready() is called
 * again a little later, and not before; the pause grows with each failure. A
 * source that fails for want of memory or descriptors is never given up.
 * Returns true if the source has failed sixteen times for other reasons, within
 * some two seconds: the source is muted then, because its fd may be readable
 * for ever. */
bool rt_thread_failed(struct rt_source *source, int err);
/* Reports that reading the source succeeded. */
static inline void rt_thread_succeeded(struct rt_source *source)
{
	source->failures = 0;
	source->hopeless = 0;
}

#endif /* RT_BASE_THREAD_H */
