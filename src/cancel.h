/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * A thread of the program may be cancelled (pthread_cancel(), deferred) while
 * the thread is inside the library. A cancelled thread ends at its next
 * cancellation point, with every lock and resource that the thread holds. So
 * cancellation is disabled where a cancellation point lies between taking a
 * lock or resource and releasing the same lock or resource. See
 * doc/THREAD-SAFETY.md.
 */

#ifndef RPMA_CANCEL_H
#define RPMA_CANCEL_H 1

#include <pthread.h>

/* Disables cancellation of the calling thread; returns the previous state. */
static inline int rpma__cancel_disable(void)
{
	int before;

	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &before);
	return before;
}

static inline void rpma__cancel_restore(const int *before)
{
	pthread_setcancelstate(*before, NULL);
}

/* Declares that the calling thread is not cancelled up to the end of the
 * block. */
#define RPMA_NOT_CANCELLED                                 \
	__attribute__((cleanup(rpma__cancel_restore),      \
		       unused)) int rpma__cancel_before_ = \
		rpma__cancel_disable()
/* The state of cancellation before RPMA_NOT_CANCELLED, for a wait in the
 * block. */
#define RPMA_CANCEL_BEFORE rpma__cancel_before_

#endif /* RPMA_CANCEL_H */
