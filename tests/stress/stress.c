/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/* See stress.h. */

#include "stress.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "base/order.h"

#define DEFAULT_SECONDS 2

double stress_now(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

struct stress stress_begin(int argc, char **argv)
{
	struct stress stress = {.seconds = DEFAULT_SECONDS};
	struct timespec now;

	clock_gettime(CLOCK_REALTIME, &now);
	stress.seed = (uint64_t)now.tv_sec * 1000003 + (uint64_t)now.tv_nsec;
	if (argc > 1)
		stress.seconds = atof(argv[1]);
	if (argc > 2)
		stress.seed = strtoull(argv[2], NULL, 0);
	printf("%s %g %llu\n", argv[0], stress.seconds,
	       (unsigned long long)stress.seed);
	fflush(stdout);
	return stress;
}

struct stress_rng stress_rng(uint64_t seed, uint64_t stream)
{
	/* an odd number times the stream: never 0 for both */
	return (struct stress_rng){(seed ^ (stream * 0x9e3779b97f4a7c15u)) | 1};
}

uint32_t stress_below(struct stress_rng *rng, uint32_t bound)
{
	/* xorshift64 */
	rng->state ^= rng->state << 13;
	rng->state ^= rng->state >> 7;
	rng->state ^= rng->state << 17;
	return (uint32_t)((rng->state >> 32) % bound);
}

void stress_dawdle(struct stress_rng *rng, uint32_t turns)
{
	uint32_t i;

	for (i = stress_below(rng, turns); i > 0; i--)
		rt_cpu_relax();
}

void stress_check(bool kept, const char *what, const char *file, int line)
{
	if (kept)
		return;
	fprintf(stderr, "%s:%d: broken: %s\n", file, line, what);
	fflush(NULL);
	_Exit(1);
}
