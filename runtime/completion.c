/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * completion.c -- what a completion is to others: a work completion of verbs,
 * and an error's text.
 */

#include <assert.h>
#include <string.h>

#include "rpma_rt.h"

static_assert(sizeof(struct rpma_rt_completion) == 32, "two a cache line");

void rpma_rt_completion_to_wc(const struct rpma_rt_completion *cmpl,
			      struct ibv_wc *wc)
{
	assert(cmpl != NULL && wc != NULL);
	memset(wc, 0, sizeof(*wc));
	wc->wr_id = cmpl->context;
	wc->status = (enum ibv_wc_status)cmpl->status;
	wc->opcode = (enum ibv_wc_opcode)cmpl->opcode;
	wc->qp_num = cmpl->qp_num;
	if (cmpl->status != IBV_WC_SUCCESS) {
		wc->vendor_err = cmpl->imm;
		return;
	}
	wc->byte_len = cmpl->byte_len;
	wc->imm_data = cmpl->imm;
	wc->wc_flags = cmpl->flags & (RPMA_RT_F_WITH_IMM | RPMA_RT_F_WITH_INV);
}

const char *rpma_rt_err_2str(int ret)
{
	switch (ret) {
	case RPMA_RT_E_CLOSED:
		return "Closed or closing";
	case RPMA_RT_E_FORKED:
		return "Made before fork()";
	case RPMA_RT_E_THREAD:
		return "A call that may wait, on a thread that may not";
	case RPMA_RT_E_BUSY:
		return "Still used, or another thread is inside";
	default:
		return rpma_err_2str(ret);
	}
}
