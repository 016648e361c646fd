/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * inline.c -- librpma_rt_inline: the inline functions of the public headers as
 * functions, for languages that cannot inline C.
 */

/* each function is declared by its definition */
#pragma GCC diagnostic ignored "-Wmissing-prototypes"

#define RPMA_RT_INLINE __attribute__((visibility("default")))

#include "rpma_rt.h"
