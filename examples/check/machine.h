/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * machine.h: what of a machine matters to RDMA beside its devices: locked
 * memory, CPUs, the connection manager's file.
 */

#ifndef CHECK_MACHINE_H
#define CHECK_MACHINE_H

#include <stdbool.h>

/* The number in a file of /sys or /proc; other: there is none. */
int machine_read_int(const char *path, int other);
/* May this process use a CPU of that NUMA node? true if it cannot be told. */
bool machine_has_cpu_of_node(int node);
/* A network interface that is up and not lo, to be named in advice. */
const char *machine_interface(void);

/* is_of_kernel: the device that would be used is the kernel's */
void machine_print_memlock(bool is_of_kernel);
void machine_print_cpus(void);
void machine_judge_cm(bool is_of_kernel);

#endif /* CHECK_MACHINE_H */
