/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * bigcpu.c -- a machine of 2,048 CPUs, which this program plays for the
 * library: the kernel refuses a set of CPUs that is smaller than its own. A CPU
 * beyond 1,023 can be named, and a thread is placed there. Where the CPUs
 * cannot be read at all, a line of the log says so.
 */

#define _GNU_SOURCE
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdbool.h>
#include <string.h>
#include <unistd.h>

#include "world.h"

#define CPUS	2048
#define FAR	1500
#define VARIANT "RPMA_TEST_BIGCPU"

static unsigned placed_far; /* threads on CPU FAR alone */
static unsigned lines;

#define IN_PLACE __attribute__((visibility("default")))

/* in place of the system's, for the library too */
IN_PLACE int sched_getaffinity(pid_t pid, size_t size, cpu_set_t *set)
{
	(void)pid;
	if (size < CPUS / 8 || getenv(VARIANT) != NULL) {
		errno = EINVAL;
		return -1;
	}
	memset(set, 0, size);
	CPU_SET_S(0, size, set);
	CPU_SET_S(FAR, size, set);
	return 0;
}

IN_PLACE int pthread_setaffinity_np(pthread_t thread, size_t size,
				    const cpu_set_t *set)
{
	(void)thread;
	CHECK(size >= CPUS / 8);
	if (CPU_COUNT_S(size, set) == 1 && CPU_ISSET_S(FAR, size, set))
		placed_far++;
	return 0;
}

static void count_line(enum rpma_log_level level, const char *file,
		       const int line, const char *function, const char *format,
		       ...)
{
	(void)level;
	(void)file;
	(void)line;
	(void)function;
	(void)format;
	lines++;
}

static int new_on(int32_t cpu)
{
	struct rpma_rt_cfg cfg = RPMA_RT_CFG_INIT;
	struct rpma_rt *rt;
	int ret;

	cfg.cpus = &cpu;
	cfg.cpu_count = 1;
	ret = rpma_rt_new(&cfg, &rt);
	if (ret == 0)
		MUST(rpma_rt_delete(&rt));
	return ret;
}

int main(int argc, char **argv)
{
	(void)argc;
	MUST(rpma_log_set_function(count_line));
	if (getenv(VARIANT) != NULL) {
		CHECK(new_on(0) == RPMA_E_PROVIDER);
		CHECK(lines > 0);
		return 0;
	}
	MUST(new_on(0));
	CHECK(placed_far == 0);
	MUST(new_on(FAR));
	CHECK(placed_far == 1);
	MUST(new_on(RPMA_RT_CPU_ANY));
	CHECK(lines == 0);
	CHECK(new_on(FAR + 1) == RPMA_E_INVAL);
	CHECK(new_on(CPUS) == RPMA_E_INVAL);
	CHECK(new_on(INT32_MAX) == RPMA_E_INVAL);
	CHECK(lines == 3);
	CHECK(setenv(VARIANT, "none", 1) == 0);
	execv("/proc/self/exe", argv);
	return 1;
}
