/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/* from.h -- from a member to the struct that contains it. */

#ifndef RT_BASE_FROM_H
#define RT_BASE_FROM_H

#include <stddef.h>

#define RT_FROM(type, member, ptr) \
	((type *)((char *)(ptr) - offsetof(type, member)))

#endif /* RT_BASE_FROM_H */
