/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * cancel.c -- see cancel.h. The futex is a raw system call, which is no
 * cancellation point. So the thread may be cancelled at each instruction of the
 * sleep, as a thread in a cancellation point of the C library may be. The sleep
 * reads a single word and makes the system call: the handler finds the same
 * state as after a sleep, whether the thread slept, was woken, or neither.
 *
 * A pthread_cancel() that finds the thread asynchronous sends a signal, which
 * may come when the sleep is over. The handler of glibc before 2.41 ends the
 * thread wherever the C library has made the thread asynchronous by then, also
 * in a wait with cancellation disabled. So the thread passes a cancellation
 * point of the C library, which waits for such a signal: a poll() of nothing,
 * 0.2 us. (A sleep until a time in the past starts a timer: 16 us in a virtual
 * machine.)
 */

#include "base/cancel.h"

#include <poll.h>
#include <stddef.h>

#include "base/bell.h"

RT_LEFT_AT_ONCE void rt_cancel_sleep_armed(struct rt_bell *bell,
					   int64_t timeout_ns,
					   void (*cancelled)(void *arg),
					   void *arg)
{
	int before;

	pthread_cleanup_push(cancelled, arg);
	pthread_setcanceltype(PTHREAD_CANCEL_ASYNCHRONOUS, &before);
	rt_bell_sleep_armed(bell, timeout_ns);
	pthread_setcanceltype(before, NULL);
	poll(NULL, 0, 0);
	pthread_cleanup_pop(0);
}
