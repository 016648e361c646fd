/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * Memory regions of the other side, and the descriptor they travel in: 21
 * bytes, little-endian, unchanged since the first release.
 */

#ifndef RPMA_MR_DESC_H
#define RPMA_MR_DESC_H 1

#include <stddef.h>

#include "librpma.h"

/*
 * The contents of a descriptor, in its order, and nothing else: two objects
 * from one descriptor are the same bytes, which programs compare.
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
	       "what programs know of it");

#endif /* RPMA_MR_DESC_H */
