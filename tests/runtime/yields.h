/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * yields.h -- sched_yield() and the monotonic clock of a test: a yield takes as
 * long as the test says, so threads seem to want the CPU, or not, on any
 * machine.
 */

#ifndef YIELDS_H
#define YIELDS_H

#include <stdint.h>

/* Sets the time that each yield takes from here on; 0 at first. */
void yields_take(uint64_t ns);

/* Returns how many yields there were. */
uint64_t yields_count(void);

#endif /* YIELDS_H */
