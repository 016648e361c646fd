/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * Memory regions of this side. Immutable after registration: any thread may
 * post with one while nobody deregisters it.
 */

#ifndef RPMA_MR_H
#define RPMA_MR_H 1

#include "fork.h"
#include "librpma.h"

/* What RPMA_MR_USAGE_ATOMIC has besides READ_SRC; descriptors lack it. */
#define RPMA__MR_USAGE_ATOMIC_BIT (1 << 8)

struct rpma_mr_local {
	struct ibv_mr *ibv_mr;
	uint64_t addr;	 /* where it begins, as work requests say it */
	bool is_callers; /* the ibv_mr is the caller's: delete keeps it */
	int usage;	 /* RPMA_MR_USAGE_*, goes into the descriptor */
	unsigned forks;
};

_Static_assert(offsetof(struct rpma_mr_local, ibv_mr) ==
			       offsetof(struct rpma_mr_local_head, ibv_mr) &&
		       offsetof(struct rpma_mr_local, addr) ==
			       offsetof(struct rpma_mr_local_head, addr),
	       "what programs know of it");

/* True: not NULL, and made in this process. */
static inline bool rpma__mr_is_valid(const struct rpma_mr_local *mr)
{
	return mr && rpma__is_here(mr->forks);
}

/* The error of a call that has refused its arguments. */
static inline int rpma__mr_refusal(const struct rpma_mr_local *mr)
{
	return rpma__fork_refusal(mr ? &mr->forks : NULL);
}

#endif /* RPMA_MR_H */
