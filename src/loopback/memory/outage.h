/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * outage.h -- the end of a process by power failure.
 */

#ifndef LB_MEMORY_OUTAGE_H
#define LB_MEMORY_OUTAGE_H

#include <stdbool.h>
#include <stdint.h>

/*
 * Ends the process, and leaves in the files of pmem.h the persistent words. Any
 * thread, with any lock, also in a signal handler; never returns. operations
 * and seed are printed.
 */
_Noreturn void lb_outage(uint64_t operations, uint64_t seed);
/* Returns true while the process ends. */
bool lb_outage_has_begun(void);

#endif /* LB_MEMORY_OUTAGE_H */
