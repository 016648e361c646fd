/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * Common parts of the measuring programs: the command line, pinning, the lines
 * read by tests/bench/run. See README.md for the protocol.
 */

#ifndef BENCH_H
#define BENCH_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#define BENCH_SKIP 77 /* exit status: cannot be measured here */
#define BENCH_CPUS 256

struct bench_args {
	double seconds; /* --seconds, how long to measure */
	/* --cpus A,B,...: the poller's, the consumer's, the CPUs of further
	 * threads; behind the given CPUs the others of the process */
	int cpus[BENCH_CPUS];
	int cpu_count;
	int count;
	char **words; /* remaining words */
};

/* Ends the program with a message when the line is not understood. */
struct bench_args bench_parse(int argc, char **argv);

double bench_now(void);
/* bench_now() in nanoseconds. */
uint64_t bench_now_ns(void);
void bench_sleep_until(uint64_t ns);
/* Pins the calling thread; if the CPU does not exist, says so and goes on. */
void bench_pin(int cpu);
/* Starts a thread on the CPU. A thread that pins itself begins on the CPU of
 * the creator, and never runs if the creator spins there at real-time
 * priority. */
pthread_t bench_start(int cpu, void *(*fn)(void *), void *arg);

/* "name value unit" on standard output. */
void bench_report(const char *name, double value, const char *unit);
/* Returns the percentile of the samples (in nanoseconds) in microseconds; sorts
 * the samples. */
double bench_percentile(uint64_t *ns, uint64_t count, double share);
/* Says why and ends the program as skipped. */
void bench_skip(const char *why) __attribute__((noreturn));
/*
 * Ends the program as skipped, because a package is missing; see tests/missing.
 */
void bench_missing(const char *what, const char *package)
	__attribute__((noreturn));
void bench_fail(const char *why) __attribute__((noreturn));

#endif /* BENCH_H */
