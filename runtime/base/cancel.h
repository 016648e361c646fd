/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * cancel.h -- cancellation of the program's threads. A thread of the program
 * may be cancelled (pthread_cancel(), deferred) while the thread is inside the
 * library. A cancelled thread ends at the next cancellation point, with
 * whatever the thread holds. So the library disables cancellation wherever a
 * cancellation point lies between taking something and giving the thing back.
 * doc/protocols/threads.md, "Cancelled threads".
 */

#ifndef RT_BASE_CANCEL_H
#define RT_BASE_CANCEL_H

#include <pthread.h>
#include <stdint.h>

struct rt_bell;

/* RT_LEFT_AT_ONCE marks a function that a cancelled thread may leave at any
 * instruction. The frame of such a function would stay poisoned, and the
 * address sanitizer would report the cancellation handler. */
#define RT_LEFT_AT_ONCE __attribute__((no_sanitize_address))

/* Disables cancellation of the calling thread; returns the state before. */
static inline int rt_cancel_disable(void)
{
	int before;

	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &before);
	return before;
}

static inline void rt_cancel_restore(const int *before)
{
	pthread_setcancelstate(*before, NULL);
}

/* Disables cancellation of the calling thread up to the end of the block. */
#define RT_NOT_CANCELLED                           \
	__attribute__((cleanup(rt_cancel_restore), \
		       unused)) int rt_cancel_before_ = rt_cancel_disable()

/*
 * Sleeps as rt_bell_sleep_armed() does, but the calling thread may be cancelled
 * during the sleep. Then cancelled(arg) runs, and the thread ends. cancelled()
 * has to do whatever follows the sleep of a thread that gives up.
 */
void rt_cancel_sleep_armed(struct rt_bell *bell, int64_t timeout_ns,
			   void (*cancelled)(void *arg), void *arg);

#endif /* RT_BASE_CANCEL_H */
