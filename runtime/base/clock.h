/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * clock.h -- monotonic time. Read when idle, when something drains, and never
 * per completion; the coarse one once for a batch that a consumer takes.
 */

#ifndef RT_BASE_CLOCK_H
#define RT_BASE_CLOCK_H

#include <stdint.h>
#include <time.h>

static inline uint64_t rt_now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

/*
 * The same in ms and to a few of them, never later: the kernel's last tick, for
 * a few nanoseconds. Dates of a batch, for the dump.
 */
static inline uint32_t rt_now_ms(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC_COARSE, &ts);
	return (uint32_t)((uint64_t)ts.tv_sec * 1000u +
			  (uint64_t)ts.tv_nsec / 1000000u);
}

/* From one time to another, in ms; 0 where that is a little ahead: a reader's
 * now is older than what it finds then. */
static inline uint32_t rt_ms_between(uint32_t then, uint32_t now)
{
	uint32_t ms = now - then;

	return ms > UINT32_MAX - 60000 ? 0 : ms;
}

#endif /* RT_BASE_CLOCK_H */
