/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * log.h -- messages of the runtime, in librpma's log, with its threshold and
 * its function. Never while a lock is held: the function is the program's.
 */

#ifndef RT_BASE_LOG_H
#define RT_BASE_LOG_H

#include "librpma.h"

#define RT_LOG(level, ...) \
	rpma_log_message(level, __FILE__, __LINE__, __func__, __VA_ARGS__)
#define RT_LOG_ERROR(...)   RT_LOG(RPMA_LOG_LEVEL_ERROR, __VA_ARGS__)
#define RT_LOG_WARNING(...) RT_LOG(RPMA_LOG_LEVEL_WARNING, __VA_ARGS__)
#define RT_LOG_INFO(...)    RT_LOG(RPMA_LOG_LEVEL_INFO, __VA_ARGS__)

#endif /* RT_BASE_LOG_H */
