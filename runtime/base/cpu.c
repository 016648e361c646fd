/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * cpu.c -- see cpu.h. The system keeps CPUs for each thread and none for the
 * process, so the first thread's are read when the library is loaded, before
 * the program pins anything.
 */

#define _GNU_SOURCE
#include "base/cpu.h"

#include <sched.h>
#include <stdbool.h>
#include <unistd.h>

#include "rpma_rt.h"

/* immutable after the library is loaded */
static cpu_set_t allowed;
static bool is_known;

__attribute__((constructor)) static void read_allowed(void)
{
	is_known = sched_getaffinity(getpid(), sizeof(allowed), &allowed) == 0;
}

int rt_cpu_check(int cpu)
{
	if (cpu == RPMA_RT_CPU_ANY)
		return 0;
	if (cpu < 0 || cpu >= CPU_SETSIZE)
		return RPMA_E_INVAL;
	if (!is_known)
		return RPMA_E_PROVIDER;
	return CPU_ISSET(cpu, &allowed) ? 0 : RPMA_E_INVAL;
}

void rt_cpu_place(pthread_t thread, int cpu)
{
	cpu_set_t set = allowed;

	if (cpu != RPMA_RT_CPU_ANY) {
		CPU_ZERO(&set);
		CPU_SET(cpu, &set);
	} else if (!is_known) {
		return;
	}
	(void)pthread_setaffinity_np(thread, sizeof(set), &set);
}
