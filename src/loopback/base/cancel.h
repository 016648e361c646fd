/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * cancel.h -- a thread of the program that is cancelled inside a verb holds
 * nothing afterwards, as with a device that the kernel drives: cancellation is
 * disabled in each system call that the device makes for a verb. Only the calls
 * that wait for an event are cancellation points: ibv_get_cq_event(),
 * ibv_get_async_event(), rdma_get_cm_event().
 */

#ifndef LB_BASE_CANCEL_H
#define LB_BASE_CANCEL_H

#include <pthread.h>

static inline int lb_cancel_disable(void)
{
	int before;

	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &before);
	return before;
}

static inline void lb_cancel_restore(const int *before)
{
	pthread_setcancelstate(*before, NULL);
}

/* Declares that the calling thread is not cancelled up to the end of the
 * block. */
#define LB_NOT_CANCELLED                           \
	__attribute__((cleanup(lb_cancel_restore), \
		       unused)) int lb_cancel_before_ = lb_cancel_disable()

#endif /* LB_BASE_CANCEL_H */
