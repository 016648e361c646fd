/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * Memory regions of the other side, and their descriptor: 21 bytes,
 * little-endian, unchanged since the first release.
 */

#ifndef RPMA_MR_DESC_H
#define RPMA_MR_DESC_H 1

#include <stddef.h>

#include "librpma.h"

/*
 * The contents of a descriptor, in the same order, and nothing else: two
 * objects made from one descriptor have the same bytes, and programs compare
 * the bytes.
 */
struct rpma_mr_remote {
	uint64_t raddr;
	uint64_t size;
	uint32_t rkey;
	int usage;
};

_Static_assert(offsetof(struct rpma_mr_remote, raddr) ==
			       offsetof(struct rpma_mr_remote_head, addr) &&
		       offsetof(struct rpma_mr_remote, size) ==
			       offsetof(struct rpma_mr_remote_head, size) &&
		       offsetof(struct rpma_mr_remote, rkey) ==
			       offsetof(struct rpma_mr_remote_head, rkey),
	       "the public head of the struct");

#endif /* RPMA_MR_DESC_H */
