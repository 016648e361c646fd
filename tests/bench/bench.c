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

uint64_t bench_now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

void bench_sleep_until(uint64_t ns)
{
	const struct timespec at = {.tv_sec = (time_t)(ns / 1000000000),
				    .tv_nsec = (long)(ns % 1000000000)};

	while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &at, NULL))
		;
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

static int compare(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a;
	uint64_t y = *(const uint64_t *)b;

	return (x > y) - (x < y);
}

double bench_percentile(uint64_t *ns, uint64_t count, double share)
{
	if (count == 0)
		bench_fail("nothing was measured");
	qsort(ns, count, sizeof(*ns), compare);
	return (double)ns[(uint64_t)((double)count * share)] / 1e3;
}
