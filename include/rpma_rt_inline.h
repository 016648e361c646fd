/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * Inlines of rpma_rt.h, which includes this at its end: what a completion
 * holds, without casts. Each reads the completion only. Thread: any.
 */

#ifndef RPMA_RT_INLINE_H
#define RPMA_RT_INLINE_H

#ifndef RPMA_RT_H
#error "include rpma_rt.h, which includes this"
#endif

#include <arpa/inet.h>

#ifdef __cplusplus
extern "C" {
#endif

/* An operation that succeeded. */
static inline bool
rpma_rt_completion_is_ok(const struct rpma_rt_completion *cmpl)
{
	return cmpl->kind == RPMA_RT_COMPLETION &&
	       cmpl->status == IBV_WC_SUCCESS;
}

/* A message, or a write with immediate data, that was received. */
static inline bool
rpma_rt_completion_is_received(const struct rpma_rt_completion *cmpl)
{
	return rpma_rt_completion_is_ok(cmpl) &&
	       (cmpl->opcode & IBV_WC_RECV) != 0;
}

/* enum rpma_rt_event; 0 of what is no event. */
static inline unsigned
rpma_rt_completion_event(const struct rpma_rt_completion *cmpl)
{
	return cmpl->kind == RPMA_RT_EVENT ? cmpl->opcode : 0u;
}

/* The connection of an event or WRITABLE; NULL of an item whose context is the
 * program's, or a shared receive queue. */
static inline struct rpma_rt_conn *
rpma_rt_completion_conn(const struct rpma_rt_completion *cmpl)
{
	bool is_conn = (cmpl->kind == RPMA_RT_EVENT &&
			cmpl->opcode <= RPMA_RT_EVENT_ROUTE_CLOSED) ||
		       (cmpl->kind == RPMA_RT_WRITABLE &&
			cmpl->opcode != RPMA_RT_WRITABLE_SRQ);

	return is_conn ? (struct rpma_rt_conn *)(uintptr_t)cmpl->context : NULL;
}

/* The shared receive queue of SRQ_LIMIT, SRQ_CLOSED (to compare only) or its
 * WRITABLE; NULL of others. */
static inline struct rpma_rt_srq *
rpma_rt_completion_srq(const struct rpma_rt_completion *cmpl)
{
	bool is_srq = (cmpl->kind == RPMA_RT_EVENT &&
		       cmpl->opcode > RPMA_RT_EVENT_ROUTE_CLOSED) ||
		      (cmpl->kind == RPMA_RT_WRITABLE &&
		       cmpl->opcode == RPMA_RT_WRITABLE_SRQ);

	return is_srq ? (struct rpma_rt_srq *)(uintptr_t)cmpl->context : NULL;
}

/* The context as a pointer: of a completion or message, as posted or pushed. */
static inline void *
rpma_rt_completion_ptr(const struct rpma_rt_completion *cmpl)
{
	return (void *)(uintptr_t)cmpl->context;
}

/* Has it immediate data? Then *imm is that, in host order. */
static inline bool rpma_rt_completion_imm(const struct rpma_rt_completion *cmpl,
					  uint32_t *imm)
{
	if (!rpma_rt_completion_is_ok(cmpl) ||
	    !(cmpl->flags & RPMA_RT_F_WITH_IMM))
		return false;
	*imm = ntohl(cmpl->imm);
	return true;
}

/* What the CM said of CLOSED beside the reason: *value is 0, a positive errno
 * or a reject reason of the CM. */
static inline enum rpma_rt_detail
rpma_rt_completion_detail(const struct rpma_rt_completion *cmpl, int *value)
{
	int32_t imm = (int32_t)cmpl->imm;

	*value = 0;
	if (rpma_rt_completion_event(cmpl) != RPMA_RT_EVENT_CLOSED || imm == 0)
		return RPMA_RT_DETAIL_NONE;
	*value = imm < 0 ? -imm : imm;
	return imm < 0 ? RPMA_RT_DETAIL_ERRNO : RPMA_RT_DETAIL_REJECT;
}

#ifdef __cplusplus
}
#endif

#endif /* RPMA_RT_INLINE_H */
