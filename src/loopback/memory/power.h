/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * power.h -- which delivered bytes are persistent, and when the power fails.
 * doc/protocols/power.md. Every function but the first two is called only if
 * lb_power_is_on().
 */

#ifndef LB_MEMORY_POWER_H
#define LB_MEMORY_POWER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/base.h"
#include "base/process.h"
#include "base/span.h"

extern bool lb_power_on; /* written once, when the device starts */

static inline bool lb_power_is_on(void)
{
	return __builtin_expect(lb_power_on, false);
}

/* The values of RPMA_LOOPBACK_POWER_FAIL and RPMA_LOOPBACK_PMEM, or NULL. */
void lb_power_start(const char *when, const char *names);
void lb_power_fork(enum lb_fork_step step);

/* A region; persists: registered for persistent flushes. */
void lb_power_register(const void *region, const void *addr, size_t len,
		       bool persists);
void lb_power_deregister(const void *region);

/* A responder takes a request, or fails with the power here. */
LB_COLD void lb_power_arrive(void);
/*
 * Bytes are about to be delivered through a queue pair, which is named by its
 * order of creation: n bytes from offset from of the spans.
 */
LB_COLD void lb_power_deliver(uint64_t qp, const struct lb_span *dst,
			      uint64_t from, uint64_t n);
/* A READ arrived at the queue pair, and read memory. */
LB_COLD void lb_power_read(uint64_t qp);
/* A flush for persistence arrived at the queue pair. */
LB_COLD void lb_power_flush(uint64_t qp, const void *addr, uint64_t len);

#endif /* LB_MEMORY_POWER_H */
