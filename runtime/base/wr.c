/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * wr.c -- what may be wrong with a work request, in words.
 */

#include "base/wr.h"

#include "base/log.h"

const char *rt_wr_pieces_fault(const struct rpma_sge *pieces, uint32_t count,
			       uint32_t max_sge)
{
	uint32_t i;

	if (pieces == NULL)
		return "has piece_count and no pieces";
	if (count > max_sge)
		return "has more pieces than max_sge";
	for (i = 0; i < count; i++) {
		if (pieces[i].mr == NULL || pieces[i].len > UINT32_MAX)
			return "has a piece without region, or of 4 GiB";
	}
	return NULL;
}

const char *rt_wr_recv_fault(const struct rpma_rt_recv_wr *wr, uint32_t max_sge)
{
	if (wr->flags != 0)
		return "has a flag, and receives know none";
	if (!rt_wr_is_context(wr->context))
		return "has a context of more than 48 bits";
	if (wr->piece_count != 0 && (wr->offset | wr->len))
		return "has pieces, and an offset or length beside them";
	if (wr->piece_count != 0)
		return rt_wr_pieces_fault(wr->pieces, wr->piece_count, max_sge);
	if (wr->dst == NULL && (wr->offset | wr->len))
		return "has a length and no region";
	return NULL;
}

int rt_wr_refuse(int index, const char *fault)
{
	RT_LOG_ERROR("work request %d of the call %s: none is posted", index,
		     fault);
	return RPMA_E_INVAL;
}
