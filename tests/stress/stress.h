/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/* Shared by the stress tests: a seed that is printed, a clock, the end. */

#ifndef STRESS_H
#define STRESS_H

#include <stdbool.h>
#include <stdint.h>

struct stress_rng {
	uint64_t state;
};

struct stress {
	double seconds; /* how long the test may take */
	uint64_t seed;
};

/* From the command line: [seconds [seed]]; prints both. */
struct stress stress_begin(int argc, char **argv);

struct stress_rng stress_rng(uint64_t seed, uint64_t stream);
/* 0..bound - 1; bound > 0. */
uint32_t stress_below(struct stress_rng *rng, uint32_t bound);
/* Is busy for up to so many turns. */
void stress_dawdle(struct stress_rng *rng, uint32_t turns);

double stress_now(void);

/* Ends the program when a promise is broken. */
#define STRESS_CHECK(promise) \
	stress_check(promise, #promise, __FILE__, __LINE__)
void stress_check(bool kept, const char *what, const char *file, int line);

#endif /* STRESS_H */
