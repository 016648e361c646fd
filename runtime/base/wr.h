/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * wr.h -- what work requests of every kind share: what may be wrong with one,
 * in words; their pieces; receives, prepared for a connection or an SRQ.
 */

#ifndef RT_BASE_WR_H
#define RT_BASE_WR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <infiniband/verbs.h>

#include "rpma_rt.h"

/* most that rpma_rt_conn_cfg.max_sge may be */
#define RT_WR_MAX_SGE 128

/* The pieces of the work requests of one chain, in the form of verbs. */
struct rt_wr_pieces {
	uint32_t used;
	struct ibv_sge sge[RT_WR_MAX_SGE];
};

/* NULL: as many pieces as allowed, each a part of a region. Else what is wrong,
 * to be read after "a work request ". */
const char *rt_wr_pieces_fault(const struct rpma_sge *pieces, uint32_t count,
			       uint32_t max_sge);
/* Likewise of a receive, its route aside, that is not plain. */
const char *rt_wr_recv_fault(const struct rpma_rt_recv_wr *wr,
			     uint32_t max_sge);
/* Logs what is wrong with the work request of that index, and returns
 * RPMA_E_INVAL. */
int rt_wr_refuse(int index, const char *fault);

/* Is there room for so many pieces more? */
static inline bool rt_wr_has_pieces(const struct rt_wr_pieces *pieces,
				    uint32_t count)
{
	return pieces->used + count <= RT_WR_MAX_SGE;
}

/* A context of as many bits as a work request has room for. */
static inline bool rt_wr_is_context(uint64_t context)
{
	return context >> RPMA_RT_CONTEXT_BITS == 0;
}

/* A receive of one piece, or none, that is right: the usual one. */
static inline bool rt_wr_is_plain_recv(const struct rpma_rt_recv_wr *wr)
{
	return (wr->piece_count | wr->flags) == 0 &&
	       rt_wr_is_context(wr->context) &&
	       (wr->dst != NULL || (wr->offset | wr->len) == 0);
}

/* A valid receive, for whose pieces there is room. */
static inline int rt_wr_prepare_recv(const struct rpma_rt_recv_wr *wr,
				     uint64_t wr_id,
				     struct rt_wr_pieces *pieces,
				     struct rpma_recv_wr *out)
{
	int ret;

	if (wr->piece_count == 0)
		return rpma_wr_recv(wr->dst, wr->offset, wr->len, wr_id, out);
	ret = rpma_wr_recv(NULL, 0, 0, wr_id, out);
	if (ret)
		return ret;
	ret = rpma_wr_recv_set_sge_list(wr->pieces, (int)wr->piece_count,
					&pieces->sge[pieces->used], out);
	pieces->used += wr->piece_count;
	return ret;
}

#endif /* RT_BASE_WR_H */
