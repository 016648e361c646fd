/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * yields.c -- see yields.h. The libraries find both functions here. Any thread.
 */

#include "yields.h"

#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define NS_PER_S UINT64_C(1000000000)

static _Atomic uint64_t yield_ns;
static _Atomic uint64_t yields;

/* the clock of this thread: by so much ahead of the machine's, the last
 * reading, and whether a yield followed the reading */
static _Thread_local uint64_t ahead_ns;
static _Thread_local uint64_t last_ns;
static _Thread_local bool has_yielded;

__attribute__((visibility("default"))) int clock_gettime(clockid_t clock,
							 struct timespec *ts)
{
	int ret = (int)syscall(SYS_clock_gettime, clock, ts);
	uint64_t ns = (uint64_t)ts->tv_sec * NS_PER_S + (uint64_t)ts->tv_nsec;

	if (clock != CLOCK_MONOTONIC)
		return ret;
	/* relaxed: each thread sees the value some time */
	if (has_yielded)
		ahead_ns =
			last_ns - ns +
			atomic_load_explicit(&yield_ns, memory_order_relaxed);
	has_yielded = false;
	last_ns = ns + ahead_ns;
	ts->tv_sec = (time_t)(last_ns / NS_PER_S);
	ts->tv_nsec = (long)(last_ns % NS_PER_S);
	return ret;
}

__attribute__((visibility("default"))) int sched_yield(void)
{
	/* relaxed: a count */
	atomic_fetch_add_explicit(&yields, 1, memory_order_relaxed);
	has_yielded = true;
	return 0;
}

void yields_take(uint64_t ns)
{
	/* relaxed: each thread sees the value some time */
	atomic_store_explicit(&yield_ns, ns, memory_order_relaxed);
}

uint64_t yields_count(void)
{
	/* relaxed: a count */
	return atomic_load_explicit(&yields, memory_order_relaxed);
}
