/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * copy.h -- moves bytes between registered memory.
 */

#ifndef LB_MEMORY_COPY_H
#define LB_MEMORY_COPY_H

#include <stdbool.h>
#include <stdint.h>

#include <infiniband/verbs.h>

#include "base/span.h"

/*
 * The first length bytes of a scatter/gather list as memory of this process.
 * ENOSPC if it is shorter than that, another errno if a key does not allow it.
 */
int lb_copy_spans(const struct ibv_sge *sge, uint32_t nsge, uint64_t length,
		  uint32_t access, const struct ibv_pd *pd,
		  struct lb_span *span);
/*
 * Move n bytes from offset at of src to offset to of dst; last: they are the
 * end of a message.
 */
void lb_copy_move(const struct lb_span *dst, uint64_t to,
		  const struct lb_span *src, uint64_t at, uint64_t n,
		  bool last);
/* How many of the bytes that are left of a message go next: about budget. */
uint64_t lb_copy_piece(uint64_t left, uint64_t budget);
/*
 * Moves up to budget bytes of a message of total bytes, whose first done bytes
 * have been moved; returns how many.
 */
uint64_t lb_copy_slice(const struct lb_span *dst, const struct lb_span *src,
		       uint64_t total, uint64_t done, uint64_t budget);

#endif /* LB_MEMORY_COPY_H */
