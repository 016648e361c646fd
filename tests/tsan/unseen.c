/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * unseen.c -- linked with the objects of the loopback device, makes a device
 * whose orders ThreadSanitizer does not see, as of a card: the objects show the
 * atomic accesses to the two empty functions here, hidden in this library. The
 * suppression in handed.c hides the calls of libc.
 */

#define HIDDEN __attribute__((visibility("hidden")))

HIDDEN void __tsan_acquire(void *at);
HIDDEN void __tsan_release(void *at);

void __tsan_acquire(void *at)
{
	(void)at;
}

void __tsan_release(void *at)
{
	(void)at;
}
