/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/* clock.h: a clock that is never set. */

#ifndef EXAMPLES_CLOCK_H
#define EXAMPLES_CLOCK_H

#include <stdint.h>
#include <time.h>

#define CLOCK_MS     1000000ull /* in nanoseconds */
#define CLOCK_SECOND 1000000000ull

static inline uint64_t clock_now(void)
{
	struct timespec time;

	clock_gettime(CLOCK_MONOTONIC, &time);
	return (uint64_t)time.tv_sec * CLOCK_SECOND + (uint64_t)time.tv_nsec;
}

/* Returns the time in so many milliseconds. */
static inline uint64_t clock_in(int ms)
{
	return clock_now() + (uint64_t)ms * CLOCK_MS;
}

#endif /* EXAMPLES_CLOCK_H */
