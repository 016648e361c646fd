/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/* See bench.h. */

#include "bench.h"

#include <sched.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define DEFAULT_SECONDS 0.3

double bench_now(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

void bench_fail(const char *why)
{
	fprintf(stderr, "%s\n", why);
	exit(1);
}

void bench_skip(const char *why)
{
	fprintf(stderr, "SKIP: %s\n", why);
	exit(BENCH_SKIP);
}

void bench_missing(const char *what, const char *package)
{
	const bool set_up = getenv("RPMA_TEST_SETUP") != NULL;

	fprintf(stderr, "%s: there is no %s (package %s)\n",
		set_up ? "FAILED" : "SKIP", what, package);
	exit(set_up ? 1 : BENCH_SKIP);
}

struct bench_args bench_parse(int argc, char **argv)
{
	struct bench_args args = {.seconds = DEFAULT_SECONDS, .cpus = {0, 1}};
	int i;

	for (i = 1; i + 1 < argc && strncmp(argv[i], "--", 2) == 0; i += 2) {
		if (strcmp(argv[i], "--seconds") == 0)
			args.seconds = atof(argv[i + 1]);
		else if (strcmp(argv[i], "--cpus") != 0 ||
			 sscanf(argv[i + 1], "%d,%d", &args.cpus[0],
				&args.cpus[1]) != 2)
			bench_fail("usage: [--seconds S] [--cpus A,B] ...");
	}
	args.count = argc - i;
	args.words = argv + i;
	return args;
}

void bench_pin(int cpu)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET((size_t)cpu, &set);
	if (sched_setaffinity(0, sizeof(set), &set))
		fprintf(stderr, "not pinned: no CPU %d\n", cpu);
}

void bench_report(const char *name, double value, const char *unit)
{
	printf("%s %.3f %s\n", name, value, unit);
}
