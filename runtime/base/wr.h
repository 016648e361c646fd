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
#include "base/cancel.h"
#include "base/lang.h"
#include "base/order.h"

/* ------------------------------------------------------------------- wr --- */

/* most that rpma_rt_conn_cfg.max_sge may be */
#define RT_WR_MAX_SGE 128

/* of a work request's flags: its completion; half of one of them, which is none
 */
#define RT_WR_COMPLETIONS \
	(RPMA_F_COMPLETION_ALWAYS | RPMA_F_COMPLETION_ON_ERROR)
#define RT_WR_HALF_OF_ALWAYS \
	(RPMA_F_COMPLETION_ALWAYS & ~RPMA_F_COMPLETION_ON_ERROR)

/* of a wr_id: the context of a work request, which has no more bits */
#define RT_COOKIE_MASK ((UINT64_C(1) << RPMA_RT_CONTEXT_BITS) - 1)

/* what is wrong with one that has more */
#define RT_WR_CONTEXT_FAULT                                        \
	"has a context of more than 48 bits: give the index of a " \
	"table, or a pointer without a tag"

/* NULL: as many pieces as allowed, each a part of a region. Else what is wrong,
 * to be read after "a work request ". */
const char *rt_wr_pieces_fault(const struct rpma_sge *pieces, uint32_t count,
			       uint32_t max_sge);
/* Likewise of a receive, its route or future aside, that is not plain. */
const char *rt_wr_recv_fault(const struct rpma_rt_recv_wr *wr,
			     uint32_t max_sge);
/* Notes what is wrong with the work request of that index, for the end of the
 * call (log.h), and returns RPMA_E_INVAL. */
int rt_wr_refuse(int index, const char *fault);
/* Likewise of one that librpma refused with that error, which it returns. */
int rt_wr_refuse_for(int index, int error);
/* Why a call to post is refused whose arguments are wrong. owner: what it posts
 * to, of that name. RPMA_E_INVAL */
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

/* Fills a receive of one piece in, for the verb alone: what librpma needs
 * besides is not touched. */
static inline void rt_wr_fill_recv(const struct rpma_mr_local *mr,
				   size_t offset, size_t len, uint64_t wr_id,
				   struct rpma_recv_wr *out)
{
	out->wr.wr_id = wr_id;
	rt_wr_fill_piece(mr, offset, len, &out->sge);
	out->wr.sg_list = &out->sge;
	out->wr.num_sge = 1;
}

/* A context of as many bits as a work request has room for. */
static inline bool rt_wr_is_context(uint64_t context)
{
	return (context & ~RT_COOKIE_MASK) == 0;
}

/* A receive of one piece, or none, that is right: the usual one. */
static inline bool rt_wr_is_plain_recv(const struct rpma_rt_recv_wr *wr)
{
	/* the first condition of all of them: few branches */
	return (wr->piece_count | wr->reserved32 | (uintptr_t)wr->future |
		(wr->context & ~RT_COOKIE_MASK)) == 0 &&
	       (wr->dst != NULL || (wr->offset | wr->len) == 0);
}

/* A valid receive that is not plain; its pieces go to sge. */
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
 * Work requests are given to the device by these calls, in which the calling
 * thread is not cancelled. The post of most devices writes to memory and to a
 * doorbell, and has no cancellation point. Where the post makes a system call,
 * as on Soft-RoCE, cancellation is disabled meanwhile. The calls show
 * ThreadSanitizer in a program that a post comes before its completion.
 */

/* May posting to the device be a system call? False only for devices that are
 * known to post without. */
bool rt_verb_enters_kernel(const struct ibv_context *ibv_ctx);

/* The verbs, of a device of which rt_verb_enters_kernel() said that. */

static inline int rt_verb_post_send(bool enters_kernel, struct ibv_qp *qp,
				    struct ibv_send_wr *wr,
				    struct ibv_send_wr **bad)
{
	int before;
	int ret;

	rt_order_posts(qp);
	if (likely(!enters_kernel))
		return ibv_post_send(qp, wr, bad);
	before = rt_cancel_disable();
	ret = ibv_post_send(qp, wr, bad);
	rt_cancel_restore(&before);
	return ret;
}

static inline int rt_verb_post_recv(bool enters_kernel, struct ibv_qp *qp,
				    struct ibv_recv_wr *wr,
				    struct ibv_recv_wr **bad)
{
	int before;
	int ret;

	rt_order_posts(qp);
	if (likely(!enters_kernel))
		return ibv_post_recv(qp, wr, bad);
	before = rt_cancel_disable();
	ret = ibv_post_recv(qp, wr, bad);
	rt_cancel_restore(&before);
	return ret;
}

static inline int rt_verb_post_srq_recv(bool enters_kernel, struct ibv_srq *srq,
					struct ibv_recv_wr *wr,
					struct ibv_recv_wr **bad)
{
	int before;
	int ret;

	rt_order_posts(srq);
	if (likely(!enters_kernel))
		return ibv_post_srq_recv(srq, wr, bad);
	before = rt_cancel_disable();
	ret = ibv_post_srq_recv(srq, wr, bad);
	rt_cancel_restore(&before);
	return ret;
}

#endif /* RT_BASE_WR_H */
