/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * cpu.c -- the CPUs allowed to this process, and pinning to one of them.
 */

#define _GNU_SOURCE
#include "base/cpu.h"

#include <pthread.h>
#include <sched.h>

#include "rpma_rt.h"

int rt_cpu_nth_allowed(int n, int *cpu)
{
	cpu_set_t set;
	int i;

	if (sched_getaffinity(0, sizeof(set), &set) || CPU_COUNT(&set) == 0)
		return RPMA_E_PROVIDER;
	n %= CPU_COUNT(&set);
	for (i = 0; i < CPU_SETSIZE; i++) {
		if (CPU_ISSET(i, &set) && n-- == 0)
			break;
	}
	*cpu = i;
	return 0;
}

int rt_cpu_check(int cpu)
{
	cpu_set_t set;

	if (cpu == RPMA_RT_CPU_ANY)
		return 0;
	if (cpu < 0 || cpu >= CPU_SETSIZE)
		return RPMA_E_INVAL;
	if (sched_getaffinity(0, sizeof(set), &set))
		return RPMA_E_PROVIDER;
	return CPU_ISSET(cpu, &set) ? 0 : RPMA_E_INVAL;
}

int rt_cpu_pin_self(int cpu)
{
	cpu_set_t set;

	if (cpu == RPMA_RT_CPU_ANY)
		return 0;
	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	if (pthread_setaffinity_np(pthread_self(), sizeof(set), &set))
		return RPMA_E_PROVIDER;
	return 0;
}
