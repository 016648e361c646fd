/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * thread.h -- the control thread: one per runtime, does what may block. And
 * tickets: how another thread has something done on an inbox and waits.
 */

#ifndef RT_BASE_THREAD_H
#define RT_BASE_THREAD_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

#include "base/inbox.h"
#include "base/bell.h"

struct rpma_rt;

struct rt_thread {
	struct rpma_rt *rt; /* immutable: what its messages get */
	struct rt_bell bell;
	struct rt_inbox inbox;
	pthread_t thread;
	_Atomic bool stopping;
};

/* The owner that messages of this inbox get is rt. */
int rt_thread_start(struct rt_thread *control, struct rpma_rt *rt);
/* Runs what is in the inbox, ends the thread. Not from it. */
void rt_thread_stop(struct rt_thread *control);

/* A condition that rt_wait_a_little() can wait for: a date that is set back
 * makes no wait longer. */
void rt_cond_init(pthread_cond_t *cond);
/* Between two looks of who runs pollers while it waits: for the condition, or
 * until it is time. */
void rt_wait_a_little(pthread_cond_t *cond, pthread_mutex_t *lock);

/*
 * Runs fn(arg) on the owner of inbox and answers its result. In manual mode
 * (rt not NULL) the caller runs pollers of rt while it waits, so that it can
 * be called from the loop that runs them. Not from the inbox's own thread.
 */
int rt_call_sync(struct rpma_rt *rt, struct rt_inbox *inbox,
		 int (*fn)(void *arg), void *arg);

#endif /* RT_BASE_THREAD_H */
