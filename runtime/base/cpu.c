/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * cpu.c -- see cpu.h. The system keeps CPUs for each thread and none for the
 * process, so the first thread's are read when the library is loaded, before
 * the program pins anything.
 */

#define _GNU_SOURCE
#include "base/cpu.h"

#include <errno.h>
#include <inttypes.h>
#include <sched.h>
#include <stddef.h>
#include <string.h>
#include <unistd.h>

#include "base/log.h"
#include "rpma_rt.h"

#define MOST_CPUS (1 << 20) /* more than any kernel knows */

/* immutable after the library is loaded; NULL: not known */
static cpu_set_t *allowed;
static int count; /* of the CPUs that the set has room for */
static int error; /* why they are not known */

/* The kernel refuses a set that is smaller than its own. */
__attribute__((constructor)) static void read_allowed(void)
{
	for (count = CPU_SETSIZE; count <= MOST_CPUS; count *= 2) {
		allowed = CPU_ALLOC(count);
		if (allowed == NULL) {
			error = ENOMEM;
			return;
		}
		if (sched_getaffinity(getpid(), CPU_ALLOC_SIZE(count),
				      allowed) == 0)
			return;
		error = errno;
		CPU_FREE(allowed);
		allowed = NULL;
		if (error != EINVAL)
			return;
	}
}

int rt_cpu_check(int cpu)
{
	if (cpu == RPMA_RT_CPU_ANY)
		return 0;
	if (allowed == NULL) {
		RT_LOG_ERROR("CPU %d cannot be named: the CPUs of this process "
			     "are not known, sched_getaffinity() failed: %s",
			     cpu, strerror(error));
		return RPMA_E_PROVIDER;
	}
	if (cpu >= 0 && cpu < count &&
	    CPU_ISSET_S((size_t)cpu, CPU_ALLOC_SIZE(count), allowed))
		return 0;
	return RPMA_E_INVAL;
}

void rt_cpu_place(pthread_t thread, int cpu)
{
	size_t size = CPU_ALLOC_SIZE(count);
	cpu_set_t *set;

	if (allowed == NULL)
		return;
	if (cpu == RPMA_RT_CPU_ANY) {
		(void)pthread_setaffinity_np(thread, size, allowed);
		return;
	}
	set = CPU_ALLOC(count);
	if (set == NULL)
		return;
	CPU_ZERO_S(size, set);
	CPU_SET_S((size_t)cpu, size, set);
	(void)pthread_setaffinity_np(thread, size, set);
	CPU_FREE(set);
}
