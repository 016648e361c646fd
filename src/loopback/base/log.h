/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * log.h -- what the device writes to stderr.
 */

#ifndef LB_BASE_LOG_H
#define LB_BASE_LOG_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/process.h"
#include "rpma_loopback.h"

void lb_log(int level, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));

/*
 * Says why a call is refused, if the log level is 2: the asked value and the
 * limit. Returns err.
 */
int lb_log_refuse(int err, const char *fmt, ...)
	__attribute__((cold, format(printf, 2, 3)));

/* Refuses a verb that the device lacks: returns EOPNOTSUPP, in errno too. */
int lb_log_refuse_verb(const char *verb);

/* Complain about a misuse: nothing, a line, or abort. */
void lb_log_misuse(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
static inline bool lb_is_strict(void)
{
	/* relaxed: an option, orders nothing */
	return atomic_load_explicit(&lb.strict, memory_order_relaxed) !=
	       RPMA_LOOPBACK_STRICT_OFF;
}

uint64_t lb_log_misuse_count(void);

#endif /* LB_BASE_LOG_H */
