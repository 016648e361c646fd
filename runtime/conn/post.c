/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * post.c -- shared by posting sends and posting receives of a connection:
 * refusals and their consequences, faults of work requests. Any thread.
 * doc/protocols/ledger.md, wr_id.md.
 */

#include "conn/post.h"

#include "base/context.h"
#include "base/log.h"
#include "base/order.h"
#include "base/self.h"
#include "base/wr.h"
#include "pool/pool.h"
#include "poller/poller.h"

/* ----------------------------------------------------- through the line --- */

static uint32_t post_limit(const struct rt_post *post)
{
	return rt_hold_limit(rt_post_conn(post), post->side);
}

static bool post_sweep(const struct rt_post *post)
{
	return rt_hold_sweep(rt_post_conn(post), post->side);
}

static void post_hold(const struct rt_post *post)
{
	rt_hold_published(rt_post_conn(post), post->side);
}

static void post_tell_places(const struct rt_post *post)
{
	rt_hold_tell_places(rt_post_conn(post), post->side); /* fences */
	/* the control thread may wait for these slots, to delete librpma's
	 * connection */
	if (rt_turn_look(post->turn) & RT_TURN_CLOSED)
		rt_conn_ask_control(rt_post_conn(post), RT_CTL_UNPINNED);
}

/* ------------------------------------------------------------- refusals --- */

/* Returns the route of this connection whose function is running; NULL: no
 * function of the connection runs. */
static struct rt_route_opened *
post_running_route(const struct rpma_rt_conn *conn)
{
	const struct rt_poller *self = rt_self_poller();
	struct rt_callback *callback = self ? self->calls.running : NULL;
	struct rt_route_opened *running;

	if (callback == NULL)
		return NULL;
	running = RT_FROM(struct rt_route_opened, callback, callback);
	/* a refusal inside the last call of a route is answered in the
	 * connection's queue */
	return running->route.conn == conn &&
			       !rt_route_is_closed(&running->route)
		       ? running
		       : NULL;
}

/* Returns whether there is a free slot again. */
static bool post_has_future(struct rpma_rt_conn *conn, enum rpma_rt_side side)
{
	const struct rt_futures *futures = conn->side[side].futures;

	return futures != NULL && rt_future_has_free(futures);
}

/* Returns whether the reason of the refusal, which is not BACKLOG, still
 * holds. */
static bool post_is_refused(const struct rt_post *post)
{
	struct rpma_rt_conn *conn = rt_post_conn(post);

	switch (post->refusal.reason) {
	/* the poller takes out cancelled work requests */
	case RPMA_RT_AGAIN_CREDIT:
		return rt_hold_places(conn, post->side) < post->refusal.count &&
		       !rt_hold_has_cancelled(conn, post->side);
	case RPMA_RT_AGAIN_FUTURES:
		return !post_has_future(conn, post->side);
	case RPMA_RT_AGAIN_NOT_YET:
		return rt_post_check_word(rt_turn_look(post->turn)) ==
		       RPMA_E_AGAIN;
	default:
		return false;
	}
}

/* Notes that a post to the route was refused for the backlog of its lane and
 * has left its want: the poller answers when the lane has eased. */
static void post_await_lane(struct rpma_rt_conn *conn,
			    const struct rpma_rt_route *route,
			    enum rpma_rt_side side)
{
	_Atomic uint32_t *awaited = &conn->side[side].awaited;
	uint32_t is = 0;
	uint32_t to;

	do {
		to = is == 0 || is == route->number ? route->number
						    : RT_LOOK_MANY;
		/* release: pairs with the acquire in answer_list_awaited(),
		 * answer.c: the want of the caller */
	} while (!atomic_compare_exchange_weak_explicit(
		awaited, &is, to, memory_order_release, memory_order_relaxed));
	rt_look_send(conn);
}

static int post_refuse(const struct rt_post *post)
{
	struct rpma_rt_conn *conn = rt_post_conn(post);
	struct rt_route_opened *running = post_running_route(conn);
	uint32_t want = rt_want_of(post->refusal.reason);

	if (running != NULL) {
		want <<= RT_WANT_IN_CALL;
		running->wants |= (uint8_t)RT_WANTS(post->side);
	}
	/* relaxed: the fence orders the bit */
	atomic_fetch_or_explicit(&conn->side[post->side].want, want,
				 memory_order_relaxed);
	/* pairs with the fence in deliver_publish(), and with the fence of a
	 * thread that gives places back, or opens the side [LEDGER-2]: either
	 * that thread sees `want`, or this look sees what that thread
	 * published. The want stays in either case: the want may also belong to
	 * another thread, whose look came before */
	rt_fence_dekker();
	/* the keeper of the side may be the poller, whose batches then have no
	 * fence of their own [TURN-6] */
	if (unlikely(rt_turn_is_kept_elsewhere(post->turn)))
		rt_fence_heavy();
	if (post->refusal.reason == RPMA_RT_AGAIN_BACKLOG)
		post_await_lane(conn, post->refusal.route, post->side);
	else if (!post_is_refused(post))
		rt_look_send(conn);
	return rt_want_again(post->refusal.reason);
}

const struct rt_post_object_ops rt_post_side_ops = {
	.limit = post_limit,
	.sweep = post_sweep,
	.hold = post_hold,
	.tell_places = post_tell_places,
	.refuse = post_refuse,
};

/* -------------------------------------------------------- first checks --- */

int rt_post_refuse_recv(const struct rpma_rt_conn *conn)
{
	if (rt_conn_fed(conn) != NULL)
		return RT_REFUSE(RPMA_E_INVAL,
				 "conn takes receives from a pool, which keeps "
				 "them posted: give leases back instead");
	return RT_REFUSE(RPMA_E_INVAL,
			 "conn takes receives from a shared queue: post them "
			 "with rpma_rt_srq_post_recv()");
}

/* --------------------------------------------------------------- fault --- */

static int post_check_route(const struct rpma_rt_conn *conn,
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

/* Checks a work request with a future in place of a route. */
static int post_check_future(const struct rpma_rt_conn *conn,
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

/* Returns the fault of a work request with a lease, or NULL. */
static const char *post_lease_fault(const struct rpma_rt_wr *wr)
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
	if (wr->piece_count == 0 &&
	    rt_pool_leaves_slot(wr->lease, wr->local, wr->local_offset,
				wr->len))
		return "leaves the slot of its lease: the bytes end behind "
		       "rpma_rt_pool_cfg.slot_size, or begin before the slot. "
		       "A length of snprintf() may be above the slot's";
	return NULL;
}

#define ANY_OP (RT_WR_COMPLETIONS | RPMA_RT_F_LINKED | RPMA_RT_F_PART)

/* Returns the flags that an operation may have; 0: there is no such
 * operation. */
static uint32_t post_flags_of(uint32_t op)
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

static bool post_is_part(const struct rpma_rt_wr *wr)
{
	return wr->flags & RPMA_RT_F_PART;
}

static bool post_takes_pieces(const struct rpma_rt_wr *wr)
{
	return wr->op <= RPMA_RT_OP_READ;
}

/* Returns the fault for flags that the operation does not have. */
static const char *post_strange_flag_fault(uint32_t strange)
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

static const char *post_flags_fault(const struct rpma_rt_wr *wr)
{
	const uint32_t flags = post_flags_of(wr->op);

	if (wr->op == 0)
		return "has no operation: its op is 0; give one of enum "
		       "rpma_rt_op";
	if (flags == 0)
		return "has an op that is none of enum rpma_rt_op";
	if (wr->flags & ~flags)
		return post_strange_flag_fault(wr->flags & ~flags);
	if ((wr->flags & RT_WR_COMPLETIONS) == RT_WR_HALF_OF_ALWAYS)
		return "has IBV_SEND_SIGNALED, which is a flag of verbs: give "
		       "RPMA_F_COMPLETION_ALWAYS";
	if ((wr->flags & RPMA_RT_F_KEEP) && wr->lease == NULL)
		return "has RPMA_RT_F_KEEP, and no lease to keep";
	if (!post_is_part(wr))
		return NULL;
	if (!(wr->flags & RPMA_RT_F_LINKED))
		return "is a part of no link: RPMA_RT_F_LINKED is missing";
	if (wr->context || wr->route || wr->future ||
	    (wr->flags & RT_WR_COMPLETIONS))
		return "is a part and has a context, a route, a future or a "
		       "completion";
	return NULL;
}

/* Returns whether the work request has no more inline bytes than allowed. */
static bool post_is_inline_len(const struct rpma_rt_conn *conn,
			       const struct rpma_rt_wr *wr)
{
	uint64_t len = wr->len;
	uint32_t i;

	for (i = 0; i < wr->piece_count; i++)
		len += wr->pieces[i].len;
	return !(wr->flags & RPMA_F_INLINE) || len <= conn->max_inline;
}

static const char *post_memory_fault(const struct rpma_rt_conn *conn,
				     const struct rpma_rt_wr *wr)
{
	const char *wrong = NULL;

	if (wr->piece_count != 0) {
		if (!post_takes_pieces(wr))
			return "has pieces, which its operation does not take";
		if (wr->local_offset | wr->len)
			return "has pieces, and an offset or length beside "
			       "them";
		wrong = rt_wr_pieces_fault(wr->pieces, wr->piece_count,
					   conn->max_sge);
	}
	if (wrong == NULL && !post_is_inline_len(conn, wr))
		wrong = "has more inline bytes than max_inline";
	return wrong;
}

/* Returns the fault of the memory that the operation needs, or NULL. */
static const char *post_operands_fault(const struct rpma_rt_wr *wr)
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
		/* both regions, or no region and no bytes */
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

/* Returns the fault of a link that begins at wr, or NULL: the link has to end
 * in this call, and must not be too long. */
static const char *post_link_fault(const struct rpma_rt_conn *conn,
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

static int post_check_send(const struct rpma_rt_conn *conn,
			   const struct rpma_rt_wr *wrs, int count, int index)
{
	const struct rpma_rt_wr *wr = &wrs[index];
	const char *wrong = post_flags_fault(wr);

	if (wrong == NULL && wr->reserved32 != 0)
		wrong = "has reserved words that are not 0";
	if (wrong == NULL && !rt_wr_is_context(wr->context))
		wrong = RT_WR_CONTEXT_FAULT;
	if (wrong == NULL)
		wrong = post_memory_fault(conn, wr);
	if (wrong == NULL)
		wrong = post_operands_fault(wr);
	if (wrong == NULL && (wr->flags & RPMA_RT_F_LINKED))
		wrong = post_link_fault(conn, wr, count - index);
	if (wrong == NULL && wr->lease != NULL)
		wrong = post_lease_fault(wr);
	if (wrong != NULL)
		return rt_wr_refuse(index, wrong);
	if (wr->lease != NULL)
		return 0;
	if (wr->future != NULL)
		return post_check_future(conn, wr->route, wr->flags,
					 RPMA_RT_SEND_SIDE, index);
	return post_is_part(wr) ? 0
				: post_check_route(conn, wr->route,
						   RPMA_RT_SEND_SIDE, index);
}

static int post_check_recv(const struct rpma_rt_conn *conn,
			   const struct rpma_rt_recv_wr *wr, int index)
{
	const char *wrong = rt_wr_recv_fault(wr, conn->max_sge);

	if (wrong != NULL)
		return rt_wr_refuse(index, wrong);
	if (wr->future != NULL)
		return post_check_future(conn, wr->route, 0, RPMA_RT_RECV_SIDE,
					 index);
	return post_check_route(conn, wr->route, RPMA_RT_RECV_SIDE, index);
}

int rt_fault_check(const struct rt_post *post, int index)
{
	const struct rpma_rt_conn *conn = rt_post_conn(post);

	return post->side == RPMA_RT_SEND_SIDE
		       ? post_check_send(conn, post->sends, post->count, index)
		       : post_check_recv(conn, &post->recvs[index], index);
}
