/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * hash.c -- what the buffers of a request hash to: in the strict mode, whether
 * they were left alone until it completed. sq.lock held.
 */

#include "exec/hash.h"

#include "memory/barrier.h"
#include "memory/mr.h"
#include "qp/qp.h"
#include "qp/sq.h"
#include "qp/wqe.h"

uint64_t lb_hash_wqe(const struct lb_qp *qp, const struct lb_wqe *wqe)
{
	uint64_t hash = 0;
	uint32_t i, k;
	uint8_t *mem;

	if (wqe->is_inline || wqe->opcode == IBV_WR_RDMA_READ ||
	    wqe->opcode == IBV_WR_ATOMIC_CMP_AND_SWP ||
	    wqe->opcode == IBV_WR_ATOMIC_FETCH_AND_ADD)
		return 0;
	for (i = 0; i < wqe->nsge; i++) {
		const struct ibv_sge *sge = &wqe->sge[i];

		if (lb_mr_local(sge->lkey, sge->addr, sge->length, 0, qp->pd,
				&mem))
			return 0;
		for (k = 0; k < sge->length; k++)
			hash = (hash ^ mem[k]) * 0x100000001b3u;
	}
	return hash | 1;
}

void lb_hash_remember(struct lb_qp *qp, uint32_t pos)
{
	const struct lb_wqe *wqe = lb_sq_slot(qp, pos);
	uint64_t *check = &qp->sq_checks[pos & qp->sq_mask];
	struct lb_executor *self;

	/* one that failed in this place may have left its own */
	*check = 0;
	/* what a fence waits for may well change the buffer */
	if (wqe->flags & IBV_SEND_FENCE)
		return;
	self = lb_barrier_enter();
	*check = lb_hash_wqe(qp, wqe);
	lb_barrier_leave(self);
}
