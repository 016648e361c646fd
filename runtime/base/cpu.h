/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * cpu.h -- which CPU a poller gets. Called by rpma_rt_new() only.
 */

#ifndef RT_BASE_CPU_H
#define RT_BASE_CPU_H

/*
 * The n-th CPU this process may run on, counted from 0 and round again when
 * there are fewer. ERRORS: RPMA_E_PROVIDER.
 */
int rt_cpu_nth_allowed(int n, int *cpu);

/* ERRORS: RPMA_E_INVAL (no such CPU, or not allowed to this process) */
int rt_cpu_check(int cpu);

/* Pins the calling thread; RPMA_RT_CPU_ANY does nothing. */
int rt_cpu_pin_self(int cpu);

#endif /* RT_BASE_CPU_H */
