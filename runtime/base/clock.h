/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * clock.h -- monotonic time. Read when idle, when something drains, and never
 * per completion.
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

#endif /* RT_BASE_CLOCK_H */
