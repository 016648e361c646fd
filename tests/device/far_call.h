/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * A function call in the other process. It was forked, so functions and what
 * far_alloc() gives have the same addresses in both.
 */

#ifndef DEVICE_FAR_CALL_H
#define DEVICE_FAR_CALL_H

#include <stddef.h>

/*
 * Calls fn with a copy of the arguments, which is copied back behind it, as is
 * errno. fn may return a file descriptor that the caller is to have too: the
 * result is the caller's; -1: none.
 */
int far_call(int (*fn)(void *args), void *args, size_t size);

#endif
