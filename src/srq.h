/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * A shared receive queue and, unless configured otherwise, a CQ for the queue.
 */

#ifndef RPMA_SRQ_H
#define RPMA_SRQ_H 1

#include "fork.h"
#include "librpma.h"

/* Immutable after new. */
struct rpma_srq {
	struct ibv_srq *ibv_srq;
	struct rpma_cq *rcq; /* NULL: receives complete on the CQs of the
			      * connections */
	bool owns_rcq;
	uint32_t max_wr; /* as the device granted them */
	uint32_t max_sge;
	unsigned forks;
};

/* Returns true if srq is not NULL and was made in this process. */
static inline bool rpma__srq_is_valid(const struct rpma_srq *srq)
{
	return srq && rpma__is_here(srq->forks);
}

/* Returns the error of a call that has refused its arguments. */
static inline int rpma__srq_refusal(const struct rpma_srq *srq)
{
	return rpma__fork_refusal(srq ? &srq->forks : NULL);
}

#endif /* RPMA_SRQ_H */
