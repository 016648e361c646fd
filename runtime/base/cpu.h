/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * cpu.h -- the CPUs that threads of the library run on: those of the process,
 * as it was started, or the one that the program names for a poller. Where the
 * thread that makes a runtime is pinned does not count.
 */

#ifndef RT_BASE_CPU_H
#define RT_BASE_CPU_H

#include <pthread.h>

/* ERRORS: RPMA_E_INVAL (no such CPU, or not one of the process's),
 * RPMA_E_PROVIDER (those are not known; logged) */
int rt_cpu_check(int cpu);

/* The thread runs on that CPU only; RPMA_RT_CPU_ANY: on any of the process's.
 * Where the system refuses, it runs where it ran before. */
void rt_cpu_place(pthread_t thread, int cpu);

#endif /* RT_BASE_CPU_H */
