/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * log.h -- messages of the runtime, in librpma's log, with its threshold and
 * its function. Never while a lock is held: the function is the program's. A
 * place in the source logs at most ten messages a second (limit.h); the next
 * one says how many were left out.
 */

#ifndef RT_BASE_LOG_H
#define RT_BASE_LOG_H

#include <stdarg.h>
#include <stdint.h>

#include "librpma.h"

/* A place in the source: what a message names, and what its limit belongs to.
 * Strings are literals. */
struct rt_log_place {
	const char *file;
	const char *function;
	int line;
};

/* static: a compound literal would be put together on the stack, and each call
 * that may be refused would make room for it */
#define RT_LOG_HERE                                                           \
	__extension__({                                                       \
		static const struct rt_log_place here_ = {__FILE__, __func__, \
							  __LINE__};          \
		&here_;                                                       \
	})

#define RT_LOG(level, ...)  rt_log(RT_LOG_HERE, level, __VA_ARGS__)
#define RT_LOG_FATAL(...)   RT_LOG(RPMA_LOG_LEVEL_FATAL, __VA_ARGS__)
#define RT_LOG_ERROR(...)   RT_LOG(RPMA_LOG_LEVEL_ERROR, __VA_ARGS__)
#define RT_LOG_WARNING(...) RT_LOG(RPMA_LOG_LEVEL_WARNING, __VA_ARGS__)
#define RT_LOG_INFO(...)    RT_LOG(RPMA_LOG_LEVEL_INFO, __VA_ARGS__)

__attribute__((cold, format(printf, 3, 4))) void
rt_log(const struct rt_log_place *place, enum rpma_log_level level,
       const char *format, ...);
/* The same at that time of the monotonic clock. */
__attribute__((format(printf, 4, 0))) void
rt_log_at(uint64_t now_ns, const struct rt_log_place *place,
	  enum rpma_log_level level, const char *format, va_list args);

#endif /* RT_BASE_LOG_H */
