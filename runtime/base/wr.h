/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * wr.h -- what work requests of every kind share: faults, in words; pieces;
 * receives, prepared for a connection or an SRQ; the verbs.
 */

#ifndef RT_BASE_WR_H
#define RT_BASE_WR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <infiniband/verbs.h>

#include "rpma_rt.h"
#include "base/cancel.h"
#include "base/lang.h"
#include "base/order.h"

/* ------------------------------------------------------------------- wr --- */

/* the largest allowed rpma_rt_conn_cfg.max_sge */
#define RT_WR_MAX_SGE 128

/* flags of a work request that ask for a completion; the half of
 * RPMA_F_COMPLETION_ALWAYS that is invalid alone */
#define RT_WR_COMPLETIONS \
	(RPMA_F_COMPLETION_ALWAYS | RPMA_F_COMPLETION_ON_ERROR)
#define RT_WR_HALF_OF_ALWAYS \
	(RPMA_F_COMPLETION_ALWAYS & ~RPMA_F_COMPLETION_ON_ERROR)

/* bits of a wr_id that hold the context of a work request */
#define RT_COOKIE_MASK ((UINT64_C(1) << RPMA_RT_CONTEXT_BITS) - 1)

/* fault of a work request whose context has more bits */
#define RT_WR_CONTEXT_FAULT                                        \
	"has a context of more than 48 bits: give the index of a " \
	"table, or a pointer without a tag"

/* Returns NULL if there are at most max_sge pieces and each piece is a part of
 * a region. Otherwise returns the fault, to be read after "a work request ". */
const char *rt_wr_pieces_fault(const struct rpma_sge *pieces, uint32_t count,
			       uint32_t max_sge);
/* Returns the fault of a receive, or NULL, for a receive that is not plain.
 * Route and future are not checked here. */
const char *rt_wr_recv_fault(const struct rpma_rt_recv_wr *wr,
			     uint32_t max_sge);
/* Notes the fault of the work request with that index, to be logged at the end
 * of the call (log.h). Returns RPMA_E_INVAL. */
int rt_wr_refuse(int index, const char *fault);
/* Notes that librpma refused the work request with that error. Returns the
 * error. */
int rt_wr_refuse_for(int index, int error);
/* Logs why a call to post with wrong arguments is refused. owner: the
 * connection or SRQ that the call posts to; name: the name of that argument.
 * Returns RPMA_E_INVAL. */
__attribute__((cold)) int rt_wr_refuse_call(const char *name, const void *owner,
					    int count);

/* Fills in a piece of a region. */
static inline void rt_wr_fill_piece(const struct rpma_mr_local *mr,
				    size_t offset, size_t len,
				    struct ibv_sge *sge)
{
	const struct rpma_mr_local_head *head =
		(const struct rpma_mr_local_head *)mr;

	sge->addr = head->addr + offset;
	sge->length = (uint32_t)len;
	sge->lkey = head->ibv_mr->lkey;
}

/* Fills in a receive with a single piece, for the verb alone: fields that only
 * librpma uses are not touched. */
static inline void rt_wr_fill_recv(const struct rpma_mr_local *mr,
				   size_t offset, size_t len, uint64_t wr_id,
				   struct rpma_recv_wr *out)
{
	out->wr.wr_id = wr_id;
	rt_wr_fill_piece(mr, offset, len, &out->sge);
	out->wr.sg_list = &out->sge;
	out->wr.num_sge = 1;
}

/* Returns whether a work request has room for all bits of the context. */
static inline bool rt_wr_is_context(uint64_t context)
{
	return (context & ~RT_COOKIE_MASK) == 0;
}

/* Returns whether the receive is valid and has at most one piece: the usual
 * receive. */
static inline bool rt_wr_is_plain_recv(const struct rpma_rt_recv_wr *wr)
{
	/* a single condition for several fields: few branches */
	return (wr->piece_count | wr->reserved32 | (uintptr_t)wr->future |
		(wr->context & ~RT_COOKIE_MASK)) == 0 &&
	       (wr->dst != NULL || (wr->offset | wr->len) == 0);
}

/* Prepares a valid receive that is not plain; the pieces are written to sge. */
static inline int rt_wr_prepare_recv(const struct rpma_rt_recv_wr *wr,
				     uint64_t wr_id, struct ibv_sge *sge,
				     struct rpma_recv_wr *out)
{
	int ret;

	if (wr->piece_count == 0)
		return rpma_wr_recv(wr->dst, wr->offset, wr->len, wr_id, out);
	ret = rpma_wr_recv(NULL, 0, 0, wr_id, out);
	if (ret)
		return ret;
	return rpma_wr_recv_set_sge_list(wr->pieces, (int)wr->piece_count, sge,
					 out);
}

/* ----------------------------------------------------------------- verb --- */

/*
 * The calls that give work requests to the device. The calling thread is not
 * cancelled inside. The post of most devices writes to memory and to a
 * doorbell, and has no cancellation point. Where the post makes a system call,
 * as on Soft-RoCE, the call disables cancellation meanwhile. The calls also
 * tell ThreadSanitizer in a program that a post comes before its completion.
 */

/* Returns whether posting to the device is the verb alone: the device is known
 * to post without a system call, and no ThreadSanitizer is in the program. */
bool rt_verb_is_plain(const struct ibv_context *ibv_ctx);

/* Call the verbs where posting is more than the verb. Out of line, so that a
 * post by the verb alone saves no registers for the rest. */
int rt_verb_post_send_guarded(struct ibv_qp *qp, struct ibv_send_wr *wr,
			      struct ibv_send_wr **bad);
int rt_verb_post_recv_guarded(struct ibv_qp *qp, struct ibv_recv_wr *wr,
			      struct ibv_recv_wr **bad);
int rt_verb_post_srq_recv_guarded(struct ibv_srq *srq, struct ibv_recv_wr *wr,
				  struct ibv_recv_wr **bad);

/* Call the verbs. is_plain: the result of rt_verb_is_plain() for the device. */

static inline int rt_verb_post_send(bool is_plain, struct ibv_qp *qp,
				    struct ibv_send_wr *wr,
				    struct ibv_send_wr **bad)
{
	return likely(is_plain) ? ibv_post_send(qp, wr, bad)
				: rt_verb_post_send_guarded(qp, wr, bad);
}

static inline int rt_verb_post_recv(bool is_plain, struct ibv_qp *qp,
				    struct ibv_recv_wr *wr,
				    struct ibv_recv_wr **bad)
{
	return likely(is_plain) ? ibv_post_recv(qp, wr, bad)
				: rt_verb_post_recv_guarded(qp, wr, bad);
}

static inline int rt_verb_post_srq_recv(bool is_plain, struct ibv_srq *srq,
					struct ibv_recv_wr *wr,
					struct ibv_recv_wr **bad)
{
	return likely(is_plain) ? ibv_post_srq_recv(srq, wr, bad)
				: rt_verb_post_srq_recv_guarded(srq, wr, bad);
}

#endif /* RT_BASE_WR_H */
