/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * clock.h -- monotonic time. A poller reads the clock when idle and when
 * something drains, never per completion; a consumer reads the coarse clock
 * once for each batch that the consumer takes.
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
 * Returns the monotonic time in ms, as of the kernel's last tick: a few ms old
 * at most, never in the future, read within a few nanoseconds. For the dates of
 * batches, which only the dump uses. Not inlined: a fast way that seldom reads
 * the time keeps no register and no memory for the reading.
 */
__attribute__((noinline, unused)) static uint32_t rt_now_ms(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC_COARSE, &ts);
	return (uint32_t)((uint64_t)ts.tv_sec * 1000u +
			  (uint64_t)ts.tv_nsec / 1000000u);
}

/* Returns the ms from `then` to `now`. Returns 0 where `then` is a little later
 * than `now`: a reader takes `now` first and may then find a newer date. */
static inline uint32_t rt_ms_between(uint32_t then, uint32_t now)
{
	uint32_t ms = now - then;

	return ms > UINT32_MAX - 60000 ? 0 : ms;
}

#endif /* RT_BASE_CLOCK_H */
