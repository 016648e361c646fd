/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * advance.h -- a position that only grows: what of a ring may be used again.
 */

#ifndef LB_BASE_ADVANCE_H
#define LB_BASE_ADVANCE_H

#include <stdatomic.h>
#include <stdint.h>

/* To what comes later of *word and to; a poster in search of room acquires. */
void lb_advance(_Atomic uint32_t *word, uint32_t to);

#endif /* LB_BASE_ADVANCE_H */
