/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/* likely.h -- which way a condition goes nearly always, for the compiler. */

#ifndef RT_BASE_LIKELY_H
#define RT_BASE_LIKELY_H

#define likely(x)   __builtin_expect(!!(x), 1)
#define unlikely(x) __builtin_expect(!!(x), 0)

#endif /* RT_BASE_LIKELY_H */
