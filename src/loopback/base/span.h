/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * span.h -- a run of memory of this process. A list of them ends with a length
 * of 0.
 */

#ifndef LB_BASE_SPAN_H
#define LB_BASE_SPAN_H

#include <stdint.h>

struct lb_span {
	uint8_t *addr;
	uint64_t len;
};

#endif /* LB_BASE_SPAN_H */
