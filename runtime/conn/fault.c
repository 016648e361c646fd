/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * fault.c -- what may be wrong with a work request of a connection: looked for
 * in work requests that are not plain, and logged in words. Any thread.
 */

#include "conn/post.h"

#include <infiniband/verbs.h>

#include "base/log.h"
#include "base/wr.h"
#include "conn/post.h"
#include "pool/pool.h"

static int check_route(const struct rpma_rt_conn *conn,
		       const struct rpma_rt_route *route,
		       enum rpma_rt_side side, int index)
{
	if (rt_post_is_route(conn, route, side))
		return 0;
	if (route == NULL)
		return rt_wr_refuse(index,
				    "has neither a future nor a route, and the "
				    "connection was made without a queue");
	if (route->conn == conn && route->side == side &&
	    rt_route_is_closed(route))
		return rt_refuse_wr(RPMA_RT_E_CLOSED, index,
				    "names a route that was closed");
	return rt_wr_refuse(index,
			    "names a route of another connection or side");
}

/* Of one with a future in place of a route. */
static int check_future(const struct rpma_rt_conn *conn,
			const struct rpma_rt_route *route, uint32_t flags,
			enum rpma_rt_side side, int index)
{
	if (conn->side[side].futures == NULL)
		return rt_wr_refuse(index,
				    "has a future, and the connection was made "
				    "with rpma_rt_conn_cfg.futures 0");
	if (route != NULL)
		return rt_wr_refuse(index,
				    "has a future and a route: the result goes "
				    "to one of them");
	if ((flags & RT_WR_COMPLETIONS) == RPMA_F_COMPLETION_ON_ERROR)
		return rt_wr_refuse(index,
				    "has a future, and a completion on error "
				    "only: a future needs each");
	return 0;
}

/* Of one with a lease. */
static const char *lease_fault(const struct rpma_rt_wr *wr)
{
	if (wr->op != RPMA_RT_OP_SEND && wr->op != RPMA_RT_OP_SEND_WITH_IMM &&
	    wr->op != RPMA_RT_OP_WRITE && wr->op != RPMA_RT_OP_WRITE_WITH_IMM)
		return "has a lease, and is no send or write";
	if (wr->context || wr->route || wr->future ||
	    (wr->flags & (RT_WR_COMPLETIONS | RPMA_RT_F_PART)))
		return "has a lease and a context, a route, a future, a "
		       "completion, or is a part: its completion goes to the "
		       "pool";
	if (!rt_pool_is_held(wr->lease))
		return "has a lease that is none, or that was given back or "
		       "away before";
	return NULL;
}

#define ANY_OP (RT_WR_COMPLETIONS | RPMA_RT_F_LINKED | RPMA_RT_F_PART)

/* The flags that an operation may have; 0: there is no such operation. */
static uint32_t flags_of(uint32_t op)
{
	static const uint32_t flags[] = {
		[RPMA_RT_OP_SEND] = ANY_OP | RPMA_F_FENCE | RPMA_F_INLINE |
				    RPMA_F_SOLICITED | RPMA_RT_F_KEEP,
		[RPMA_RT_OP_SEND_WITH_IMM] = ANY_OP | RPMA_F_FENCE |
					     RPMA_F_INLINE | RPMA_F_SOLICITED |
					     RPMA_RT_F_KEEP,
		[RPMA_RT_OP_WRITE] =
			ANY_OP | RPMA_F_FENCE | RPMA_F_INLINE | RPMA_RT_F_KEEP,
		[RPMA_RT_OP_WRITE_WITH_IMM] = ANY_OP | RPMA_F_FENCE |
					      RPMA_F_INLINE | RPMA_F_SOLICITED |
					      RPMA_RT_F_KEEP,
		[RPMA_RT_OP_READ] = ANY_OP | RPMA_F_FENCE,
		[RPMA_RT_OP_FLUSH] = ANY_OP | RPMA_F_FENCE,
		[RPMA_RT_OP_ATOMIC_WRITE] = ANY_OP | RPMA_F_FENCE,
		[RPMA_RT_OP_COMPARE_SWAP] = ANY_OP | RPMA_F_FENCE,
		[RPMA_RT_OP_FETCH_ADD] = ANY_OP | RPMA_F_FENCE,
	};

	return op < sizeof(flags) / sizeof(flags[0]) ? flags[op] : 0;
}

static bool is_part(const struct rpma_rt_wr *wr)
{
	return wr->flags & RPMA_RT_F_PART;
}

static bool takes_pieces(const struct rpma_rt_wr *wr)
{
	return wr->op <= RPMA_RT_OP_READ;
}

/* strange: the flags that the operation does not have. */
static const char *strange_flag_fault(uint32_t strange)
{
	if (strange & RPMA_F_INLINE)
		return "has RPMA_F_INLINE, which is for sends and writes";
	if (strange & RPMA_F_SOLICITED)
		return "has RPMA_F_SOLICITED, which is for what takes a "
		       "receive of the peer";
	/* bits of enum ibv_send_flags; IBV_SEND_FENCE and IBV_SEND_SIGNALED are
	 * the two bits of RPMA_F_COMPLETION_ALWAYS */
	if (strange & IBV_SEND_SOLICITED)
		return "has IBV_SEND_SOLICITED, which is a flag of verbs: give "
		       "RPMA_RT_F_SOLICITED";
	if (strange & IBV_SEND_INLINE)
		return "has IBV_SEND_INLINE, which is a flag of verbs: give "
		       "RPMA_RT_F_INLINE";
	return "has a bit in flags that is no flag: give RPMA_F_... and "
	       "RPMA_RT_F_... only";
}

static const char *flags_fault(const struct rpma_rt_wr *wr)
{
	const uint32_t flags = flags_of(wr->op);

	if (wr->op == 0)
		return "has no operation: its op is 0; give one of enum "
		       "rpma_rt_op";
	if (flags == 0)
		return "has an op that is none of enum rpma_rt_op";
	if (wr->flags & ~flags)
		return strange_flag_fault(wr->flags & ~flags);
	if ((wr->flags & RT_WR_COMPLETIONS) == RT_WR_HALF_OF_ALWAYS)
		return "has IBV_SEND_SIGNALED, which is a flag of verbs: give "
		       "RPMA_F_COMPLETION_ALWAYS";
	if ((wr->flags & RPMA_RT_F_KEEP) && wr->lease == NULL)
		return "has RPMA_RT_F_KEEP, and no lease to keep";
	if (!is_part(wr))
		return NULL;
	if (!(wr->flags & RPMA_RT_F_LINKED))
		return "is a part of no link: RPMA_RT_F_LINKED is missing";
	if (wr->context || wr->route || wr->future ||
	    (wr->flags & RT_WR_COMPLETIONS))
		return "is a part and has a context, a route, a future or a "
		       "completion";
	return NULL;
}

/* As many bytes as may be inline, if they are? */
static bool is_inline_len(const struct rpma_rt_conn *conn,
			  const struct rpma_rt_wr *wr)
{
	uint64_t len = wr->len;
	uint32_t i;

	for (i = 0; i < wr->piece_count; i++)
		len += wr->pieces[i].len;
	return !(wr->flags & RPMA_F_INLINE) || len <= conn->max_inline;
}

static const char *memory_fault(const struct rpma_rt_conn *conn,
				const struct rpma_rt_wr *wr)
{
	const char *wrong = NULL;

	if (wr->piece_count != 0) {
		if (!takes_pieces(wr))
			return "has pieces, which its operation does not take";
		if (wr->local_offset | wr->len)
			return "has pieces, and an offset or length beside "
			       "them";
		wrong = rt_wr_pieces_fault(wr->pieces, wr->piece_count,
					   conn->max_sge);
	}
	if (wrong == NULL && !is_inline_len(conn, wr))
		wrong = "has more inline bytes than max_inline";
	return wrong;
}

/* The memory that the operation needs. */
static const char *operands_fault(const struct rpma_rt_wr *wr)
{
	switch (wr->op) {
	case RPMA_RT_OP_SEND:
	case RPMA_RT_OP_SEND_WITH_IMM:
		if (wr->local == NULL && (wr->local_offset | wr->len))
			return "has a length and no region";
		return NULL;
	case RPMA_RT_OP_WRITE:
	case RPMA_RT_OP_WRITE_WITH_IMM:
	case RPMA_RT_OP_READ:
		/* both regions, or neither and no bytes */
		if ((wr->local != NULL) != (wr->remote != NULL))
			return "names one region, local or remote, of two";
		if (wr->remote == NULL &&
		    (wr->local_offset | wr->remote_offset | wr->len))
			return "has a length and no regions";
		return NULL;
	case RPMA_RT_OP_FLUSH:
		if (wr->flush_type != RPMA_FLUSH_TYPE_PERSISTENT &&
		    wr->flush_type != RPMA_FLUSH_TYPE_VISIBILITY)
			return "has no flush_type";
		return wr->remote ? NULL : "flushes no remote region";
	case RPMA_RT_OP_ATOMIC_WRITE:
		if (wr->remote_offset % RPMA_ATOMIC_WRITE_ALIGNMENT)
			return "has a remote_offset that is no multiple of 8";
		return wr->remote ? NULL : "names no remote region";
	default: /* compare and swap, fetch and add */
		if (wr->len != 0 && wr->len != sizeof(uint64_t))
			return "is an atomic of other than 8 bytes";
		if (wr->local == NULL || wr->remote == NULL)
			return "names one region, local or remote, of two";
		return NULL;
	}
}

/* A link that begins there: does its last come, and soon enough? */
static const char *link_fault(const struct rpma_rt_conn *conn,
			      const struct rpma_rt_wr *wr, int left)
{
	const struct rt_ledger *ledger = &conn->gate[RPMA_RT_SEND_SIDE].ledger;
	int length = 1;

	for (; wr->flags & RPMA_RT_F_LINKED; wr++) {
		if (length++ == left)
			return "is linked to the next, and there is none";
	}
	return (uint32_t)length <= rt_ledger_longest_link(ledger)
		       ? NULL
		       : "begins a link that is longer than half of sq_size";
}

int rt_fault_check_send(const struct rpma_rt_conn *conn,
			const struct rpma_rt_wr *wrs, int count, int index)
{
	const struct rpma_rt_wr *wr = &wrs[index];
	const char *wrong = flags_fault(wr);

	if (wrong == NULL && wr->reserved32 != 0)
		wrong = "has reserved words that are not 0";
	if (wrong == NULL && !rt_wr_is_context(wr->context))
		wrong = RT_WR_CONTEXT_FAULT;
	if (wrong == NULL)
		wrong = memory_fault(conn, wr);
	if (wrong == NULL)
		wrong = operands_fault(wr);
	if (wrong == NULL && (wr->flags & RPMA_RT_F_LINKED))
		wrong = link_fault(conn, wr, count - index);
	if (wrong == NULL && wr->lease != NULL)
		wrong = lease_fault(wr);
	if (wrong != NULL)
		return rt_wr_refuse(index, wrong);
	if (wr->lease != NULL)
		return 0;
	if (wr->future != NULL)
		return check_future(conn, wr->route, wr->flags,
				    RPMA_RT_SEND_SIDE, index);
	return is_part(wr)
		       ? 0
		       : check_route(conn, wr->route, RPMA_RT_SEND_SIDE, index);
}

int rt_fault_check_recv(const struct rpma_rt_conn *conn,
			const struct rpma_rt_recv_wr *wr, int index)
{
	const char *wrong = rt_wr_recv_fault(wr, conn->max_sge);

	if (wrong != NULL)
		return rt_wr_refuse(index, wrong);
	if (wr->future != NULL)
		return check_future(conn, wr->route, 0, RPMA_RT_RECV_SIDE,
				    index);
	return check_route(conn, wr->route, RPMA_RT_RECV_SIDE, index);
}
