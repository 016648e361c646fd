/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/* limit.h -- at most so many messages a second of each place in the source. */

#ifndef RT_BASE_LIMIT_H
#define RT_BASE_LIMIT_H

#include <stdbool.h>
#include <stdint.h>

#define RT_LIMIT_A_SECOND 10

/*
 * May the place, a file (a literal) and a line, log a message at that time of
 * the monotonic clock? Then *left_out is how many it could not in the last
 * second that it logged in, and *is_last whether this second has no other for
 * it. Lock-free; any thread.
 */
bool rt_limit_pass(uint64_t now_ns, const char *file, int line,
		   uint32_t *left_out, bool *is_last);

#endif /* RT_BASE_LIMIT_H */
