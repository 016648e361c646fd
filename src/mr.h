/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * Memory regions of this side. Immutable after registration: any thread may
 * post with a region while no thread deregisters the region.
 */

#ifndef RPMA_MR_H
#define RPMA_MR_H 1

#include "fork.h"
#include "librpma.h"

/*
 * The bit of RPMA_MR_USAGE_ATOMIC besides READ_SRC; a descriptor has no such
 * bit.
 */
#define RPMA__MR_USAGE_ATOMIC_BIT (1 << 8)

struct rpma_mr_local {
	struct ibv_mr *ibv_mr;
	uint64_t addr;	 /* start address, as in work requests */
	bool is_callers; /* the ibv_mr belongs to the caller: delete keeps the
			  * ibv_mr */
	int usage;	 /* RPMA_MR_USAGE_*, goes into the descriptor */
	unsigned forks;
};

_Static_assert(offsetof(struct rpma_mr_local, ibv_mr) ==
			       offsetof(struct rpma_mr_local_head, ibv_mr) &&
		       offsetof(struct rpma_mr_local, addr) ==
			       offsetof(struct rpma_mr_local_head, addr),
	       "the public head of the struct");

/* Returns true if mr is not NULL and was made in this process. */
static inline bool rpma__mr_is_valid(const struct rpma_mr_local *mr)
{
	return mr && rpma__is_here(mr->forks);
}

/* Returns the error of a call that has refused its arguments. */
static inline int rpma__mr_refusal(const struct rpma_mr_local *mr)
{
	return rpma__fork_refusal(mr ? &mr->forks : NULL);
}

#endif /* RPMA_MR_H */
