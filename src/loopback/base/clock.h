/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * clock.h -- the time, real or as the deterministic scheduler sets it.
 */

#ifndef LB_BASE_CLOCK_H
#define LB_BASE_CLOCK_H

#include <stdbool.h>
#include <stdint.h>

uint64_t lb_clock_now(void); /* nanoseconds; virtual under the scheduler */
uint64_t lb_clock_real_now(void);
bool lb_clock_is_virtual(uint64_t *now); /* *now is the time then */
void lb_clock_start(uint64_t now);	 /* virtual time from now on */
void lb_clock_stop(void);
void lb_clock_advance(uint64_t now); /* virtual time is at least now */

#endif /* LB_BASE_CLOCK_H */
