/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * base.h -- what every file of the device may use. The rooms stand one above
 * the other, and each uses those below it: base, capture, fault, wire, object,
 * memory, cq, qp, exec, verbs, cm; on top sched.c. tests/check/layers sees to
 * it.
 */

#ifndef LB_BASE_BASE_H
#define LB_BASE_BASE_H

#include <errno.h>
#include <stdalign.h>
#include <stdint.h>

#include "base/lock.h"

#define LB_EXPORT  __attribute__((visibility("default")))
#define LB_ALIGNED alignas(LB_CACHE_LINE)
/* A function out of the way of functions that call it seldom. */
#define LB_COLD	     __attribute__((noinline, cold))
#define lb_likely(x) __builtin_expect(!!(x), 1)

static inline void lb_cpu_relax(void)
{
#if defined(__x86_64__) || defined(__i386__)
	__builtin_ia32_pause();
#elif defined(__aarch64__)
	__asm__ volatile("yield");
#endif
}

/* The smallest power of 2 that is at least n, n <= 2^31. */
static inline uint32_t lb_pow2(uint32_t n)
{
	return n <= 1 ? 1 : 1u << (32 - __builtin_clz(n - 1));
}

/* Prints the failure of a call, if the log level is 2; changes errno. */
void lb_log_failure(const char *verb, int err);

static inline int lb_error_of(const char *verb, int err)
{
	if (lb_likely(!err))
		return 0;
	lb_log_failure(verb, err);
	errno = err;
	return err;
}

/* What a verb returns: err, which is in errno too, and logged, if not 0. */
#define lb_error(err) lb_error_of(__func__, err)

#endif /* LB_BASE_BASE_H */
