/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * machine.h: the properties of a machine, other than devices, that matter to
 * RDMA: locked memory, CPUs, the file of the connection manager.
 */

#ifndef CHECK_MACHINE_H
#define CHECK_MACHINE_H

#include <stdbool.h>

/*
 * Returns the number in a file of /sys or /proc; other if there is no number.
 */
int machine_read_int(const char *path, int other);
/*
 * Returns true if the process may use a CPU of the NUMA node, or if the node is
 * unknown.
 */
bool machine_has_cpu_of_node(int node);
/*
 * Returns a network interface that is up, other than lo, to be named in advice.
 */
const char *machine_interface(void);

/*
 * Print and judge; is_of_kernel: the device that programs would use belongs to
 * the kernel.
 */
void machine_print_memlock(bool is_of_kernel);
void machine_print_cpus(void);
void machine_judge_cm(bool is_of_kernel);

#endif /* CHECK_MACHINE_H */
