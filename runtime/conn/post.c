/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * post.c -- what posting sends and posting receives of a connection share: why
 * a call is refused and what follows, what may be wrong with a work request.
 * And posting receives; those of a connection on a shared receive queue are
 * posted to that queue. Any thread. doc/protocols/ledger.md, wr_id.md.
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

static uint32_t limit(const struct rt_post *post)
{
	return rt_hold_limit(rt_post_conn(post), post->side);
}

static bool sweep(const struct rt_post *post)
{
	return rt_hold_sweep(rt_post_conn(post), post->side);
}

static void hold(const struct rt_post *post)
{
	rt_hold_published(rt_post_conn(post), post->side);
}

static void tell_places(const struct rt_post *post)
{
	rt_hold_tell_places(rt_post_conn(post), post->side); /* fences */
	/* the control thread may wait for these slots, to delete librpma's
	 * connection */
	if (rt_turn_look(post->turn) & RT_TURN_CLOSED)
		rt_conn_ask_control(rt_post_conn(post), RT_CTL_UNPINNED);
}

/* ------------------------------------------------------------- refusals --- */

/* The route of this connection whose function is running; NULL: none. */
static struct rt_route_opened *running_route(const struct rpma_rt_conn *conn)
{
	const struct rt_poller *self = rt_self_poller();
	struct rt_callback *callback = self ? self->calls.running : NULL;
	struct rt_route_opened *running;

	if (callback == NULL)
		return NULL;
	running = RT_FROM(struct rt_route_opened, callback, callback);
	/* what its last call is refused for, its connection's queue is told */
	return running->route.conn == conn &&
			       !rt_route_is_closed(&running->route)
		       ? running
		       : NULL;
}

/* Is there a free slot again? */
static bool has_future(struct rpma_rt_conn *conn, enum rpma_rt_side side)
{
	const struct rt_futures *futures = conn->side[side].futures;
	uint32_t i;

	for (i = 0; futures != NULL && i < futures->count; i++) {
		/* relaxed: behind the caller's fence */
		if (atomic_load_explicit(&futures->slots[i].state,
					 memory_order_relaxed) ==
		    RT_FUTURE_FREE)
			return true;
	}
	return false;
}

/* Does the reason, no backlog, hold still? */
static bool is_refused(const struct rt_post *post)
{
	struct rpma_rt_conn *conn = rt_post_conn(post);

	switch (post->refusal.reason) {
	case RPMA_RT_AGAIN_CREDIT: /* the poller takes out what was cancelled */
		return rt_hold_places(conn, post->side) < post->refusal.count &&
		       !rt_hold_has_cancelled(conn, post->side);
	case RPMA_RT_AGAIN_FUTURES:
		return !has_future(conn, post->side);
	case RPMA_RT_AGAIN_NOT_YET:
		return rt_post_check_word(rt_turn_look(post->turn)) ==
		       RPMA_E_AGAIN;
	default:
		return false;
	}
}

/* A post to that route was refused for the backlog of its lane, and has left
 * what it wants: the poller answers when the lane has eased. */
static void await_lane(struct rpma_rt_conn *conn,
		       const struct rpma_rt_route *route,
		       enum rpma_rt_side side)
{
	_Atomic uint32_t *awaited = &conn->side[side].awaited;
	uint32_t is = 0;
	uint32_t to;

	do {
		to = is == 0 || is == route->number ? route->number
						    : RT_LOOK_MANY;
		/* release: what the caller wants, to list_awaited() */
	} while (!atomic_compare_exchange_weak_explicit(
		awaited, &is, to, memory_order_release, memory_order_relaxed));
	rt_look_send(conn);
}

static int refuse(const struct rt_post *post)
{
	struct rpma_rt_conn *conn = rt_post_conn(post);
	struct rt_route_opened *running = running_route(conn);
	uint32_t want = rt_want_of(post->refusal.reason);

	if (running != NULL) {
		want <<= RT_WANT_IN_CALL;
		running->wants |= (uint8_t)RT_WANTS(post->side);
	}
	/* relaxed: the fence orders it */
	atomic_fetch_or_explicit(&conn->side[post->side].want, want,
				 memory_order_relaxed);
	/* pairs with flush_once(), and with whoever gives places back, or opens
	 * the side [LEDGER-2]: either those see want, or this look what they
	 * have published. The want stays in either case: it may be another
	 * thread's, too, whose look came before */
	rt_fence_dekker();
	if (post->refusal.reason == RPMA_RT_AGAIN_BACKLOG)
		await_lane(conn, post->refusal.route, post->side);
	else if (!is_refused(post))
		rt_look_send(conn);
	return rt_want_again(post->refusal.reason);
}

const struct rt_post_object_ops rt_post_side_ops = {
	.limit = limit,
	.sweep = sweep,
	.hold = hold,
	.tell_places = tell_places,
	.refuse = refuse,
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

static int check_any_recv(const struct rpma_rt_conn *conn,
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

/* ------------------------------------------------------------- receives --- */

#define SIDE RPMA_RT_RECV_SIDE

static int check(struct rt_post *post)
{
	const struct rpma_rt_recv_wr *wr = &post->recvs[post->done];
	const struct rpma_rt_recv_wr *end = &post->recvs[post->count];
	struct rpma_rt_conn *conn = rt_post_conn(post);
	int ret;

	for (; wr < end; wr++) {
		/* one piece, or none, and a route of this side: the usual one,
		 * which is looked at once */
		if (likely(rt_wr_is_plain_recv(wr) &&
			   rt_post_is_route(conn, wr->route, SIDE)))
			continue;
		ret = check_any_recv(conn, wr, (int)(wr - post->recvs));
		if (ret)
			return ret;
	}
	return 0;
}

/* A future is as the connection's own: there goes its message when it is
 * dropped. */
static inline const struct rpma_rt_route *
route_of(const struct rt_post *post, const struct rpma_rt_recv_wr *wr)
{
	return rt_post_route(rt_post_conn(post),
			     wr->future != NULL ? NULL : wr->route, SIDE);
}

/* May that one be posted? Else why not is in the refusal. Takes the slot of its
 * future. */
static inline bool is_ready(struct rt_post *post,
			    const struct rpma_rt_recv_wr *wr,
			    const struct rpma_rt_route *route)
{
	if (unlikely(rt_post_is_behind(route))) {
		rt_post_refuse_backlog(post, route);
		return false;
	}
	return likely(wr->future == NULL) ||
	       rt_post_take_future(post, wr->context, wr->future);
}

static inline uint64_t wr_id_of(const struct rpma_rt_recv_wr *wr,
				const struct rpma_rt_route *route)
{
	return unlikely(wr->future != NULL)
		       ? rt_post_future_wr_id(wr->future)
		       : rt_wr_id(route->number, wr->context);
}

static void undo(const struct rt_post *post, int from, int to)
{
	for (; from < to; from++) {
		if (post->recvs[from].future != NULL)
			rt_post_return_future(post->recvs[from].future);
	}
}

/* Fills a chain with those before *end, and notes them, as far as they are
 * ready: else *end is the end of these. Returns how many there are. */
static int fill_chain(struct rt_post *post, int *end, uint32_t tick,
		      struct rpma_recv_wr *chain, struct ibv_sge *sge)
{
	const struct rpma_rt_recv_wr *wr = &post->recvs[post->done];
	int most = *end - post->done;
	const struct rpma_rt_route *route;
	uint32_t pieces = 0;
	uint64_t wr_id;
	int n;

	if (most > RT_POST_CHUNK)
		most = RT_POST_CHUNK;
	for (n = 0; n < most; n++, wr++) {
		if (unlikely(pieces + wr->piece_count > RT_WR_MAX_SGE))
			return n;
		route = route_of(post, wr);
		if (unlikely(!is_ready(post, wr, route)))
			break;
		wr_id = wr_id_of(wr, route);
		post->error =
			rt_wr_prepare_recv(wr, wr_id, &sge[pieces], &chain[n]);
		if (unlikely(post->error)) {
			undo(post, post->done + n, post->done + n + 1);
			break;
		}
		pieces += wr->piece_count;
		rt_hold_append_one(rt_post_conn(post), SIDE, wr_id, IBV_WC_RECV,
				   tick);
	}
	if (unlikely(n < most))
		*end = post->done + n;
	return n;
}

static bool give(struct rt_post *post, int end)
{
	struct rt_ledger *ledger = &rt_post_conn(post)->gate[SIDE].ledger;
	uint32_t tick = rt_poller_date(rt_post_conn(post)->poller);
	struct rpma_recv_wr chain[RT_POST_CHUNK];
	struct ibv_sge sge[RT_WR_MAX_SGE];
	int taken;
	int n;

	while (post->done < end) {
		n = fill_chain(post, &end, tick, chain, sge);
		if (n == 0)
			break;
		taken = rt_hold_give_recvs(rt_post_conn(post), chain, n);
		post->done += n;
		if (unlikely(taken < n)) {
			rt_ledger_refuse(ledger, (uint32_t)(n - taken));
			return false;
		}
	}
	return true;
}

static int take(struct rt_post *post, uint64_t seen, int end, int *ret)
{
	const struct rpma_rt_recv_wr *wr;
	int i = post->done;

	*ret = rt_post_look_again(post, seen);
	for (; *ret == 0 && i < end; i++) {
		wr = &post->recvs[i];
		if (!is_ready(post, wr, route_of(post, wr)))
			break;
	}
	return i;
}

static uint64_t wr_id_at(const struct rt_post *post, int index)
{
	const struct rpma_rt_recv_wr *wr = &post->recvs[index];

	return wr_id_of(wr, route_of(post, wr));
}

static int fill(const struct rt_post *post, int end, uint16_t slot)
{
	int ret = rt_post_fill_recvs(post, end, slot, wr_id_at);
	struct rt_line_recv *recv;
	int i;

	for (i = end - 1; i >= post->done && ret == 0; i--) {
		recv = rt_line_slot(post->turn, slot);
		slot = rt_freelist_next(&post->turn->free, slot);
		if (post->recvs[i].future == NULL)
			continue;
		rt_future_stand_in_line(rt_future_slot(post->recvs[i].future),
					IBV_WC_RECV,
					rt_post_conn(post)->qp_num);
		recv->is_waited = 1;
	}
	return ret;
}

static int alone(struct rt_post *post, uint64_t seen);

static const struct rt_post_ops recv_ops = {
	.object = &rt_post_side_ops,
	.check = check,
	.alone = alone,
	.take = take,
	.undo = undo,
	.fill = fill,
};

static int alone(struct rt_post *post, uint64_t seen)
{
	return rt_post_alone(post, &recv_ops, SIDE, seen, give);
}

/* ------------------------------------------------------ the usual call --- */

static inline bool is_plain_recv(const struct rpma_rt_recv_wr *wr)
{
	return likely(wr->dst != NULL && rt_wr_is_plain_recv(wr));
}

/* A receive of one piece with a future, otherwise plain. */
static inline bool is_future_recv(const struct rpma_rt_recv_wr *wr)
{
	const uint64_t special = wr->piece_count | wr->reserved32 |
				 (uintptr_t)wr->route |
				 (wr->context & ~RT_COOKIE_MASK);

	return likely(special == 0 && wr->dst != NULL && wr->future != NULL);
}

/* Returns whether the receive of that index has another route than the receive
 * in front: the routes of a call are looked at where they change. */
static inline bool is_other_route(const struct rpma_rt_recv_wr *wr, int index)
{
	return index == 0 || unlikely(wr[index].route != wr[index - 1].route);
}

/* The consumer of one of them is behind. */
static inline bool are_behind(const struct rpma_rt_conn *conn,
			      const struct rpma_rt_recv_wr *wr, int count,
			      int routes)
{
	int i;

	for (i = 0; i < count; i++) {
		if (unlikely(rt_post_is_behind(
			    rt_post_route(conn, wr[i].route, SIDE))))
			return true;
		if (likely(routes == 1))
			break; /* all have that route */
	}
	return false;
}

/* Notes those in the chain, of which none has room or consumers missing. */
__attribute__((always_inline)) static inline void
note_plain_recvs(struct rpma_rt_conn *conn, int count,
		 const struct rpma_recv_wr *chain)
{
	struct rt_ledger_pen pen = rt_hold_begin_row(conn, SIDE);
	uint32_t tick = rt_poller_date(conn->poller);
	int i;

	for (i = 0; i < count; i++)
		rt_hold_append(&pen, chain[i].wr.wr_id, IBV_WC_RECV, tick);
	rt_hold_end_row(conn, SIDE, &pen);
}

/* As many plain ones as a chain holds, alone, in a straight line; generated for
 * a count of 1 and for any count. False: they are to be posted another way. */
__attribute__((always_inline)) static inline bool
post_plain_recvs(struct rpma_rt_conn *conn, const struct rpma_rt_recv_wr *wr,
		 int count, struct rpma_recv_wr *chain)
{
	struct rt_gate *gate = &conn->gate[SIDE];
	/* before the routes are looked at */
	uint64_t seen = rt_turn_look(&gate->turn);
	uint64_t route = 0; /* as wr_ids name the route */
	int routes = 0;
	int taken;
	int i;

	for (i = 0; i < count; i++) {
		if (unlikely(!is_plain_recv(&wr[i])))
			return false;
		if (is_other_route(wr, i)) {
			if (unlikely(
				    !rt_post_is_route(conn, wr[i].route, SIDE)))
				return false;
			route = rt_wr_id(
				rt_post_route(conn, wr[i].route, SIDE)->number,
				0);
			routes++;
		}
		rt_wr_fill_recv(wr[i].dst, wr[i].offset, wr[i].len,
				route | wr[i].context, &chain[i]);
		chain[i].wr.next = &chain[i + 1].wr;
	}
	chain[count - 1].wr.next = NULL;
	if (unlikely(!rt_turn_take_alone(&gate->turn, seen)))
		return false;
	if (unlikely(!rt_hold_has_room(conn, SIDE, (uint32_t)count) ||
		     are_behind(conn, wr, count, routes))) {
		rt_hold_leave(conn, SIDE, seen);
		return false;
	}
	note_plain_recvs(conn, count, chain);
	taken = rt_hold_give_linked_recvs(conn, chain, count);
	if (unlikely(taken < count)) {
		rt_ledger_refuse(&gate->ledger, (uint32_t)(count - taken));
		rt_hold_refused(conn, SIDE, seen);
		return true;
	}
	rt_hold_show_posted(conn, SIDE);
	rt_hold_leave(conn, SIDE, seen);
	return true;
}

/* Takes the slots of the futures of the call, and puts the wr_ids into the
 * chain. False: a slot is missing, and none is taken. */
static inline bool take_futures(struct rpma_rt_conn *conn,
				const struct rpma_rt_recv_wr *wr, int count,
				struct rpma_recv_wr *chain)
{
	struct rt_futures *futures = conn->side[SIDE].futures;
	struct rt_future *slot;
	int i;

	for (i = 0; i < count; i++) {
		slot = rt_future_take(futures, wr[i].context);
		if (unlikely(slot == NULL))
			break;
		rt_future_name(wr[i].future, slot);
		chain[i].wr.wr_id = rt_post_slot_wr_id(slot);
	}
	if (likely(i == count))
		return true;
	while (i-- > 0)
		rt_post_return_future(wr[i].future);
	return false;
}

static bool post_one_recv(struct rpma_rt_conn *conn,
			  const struct rpma_rt_recv_wr *wr)
{
	struct rpma_recv_wr out;

	return post_plain_recvs(conn, wr, 1, &out);
}

/* A function of its own: the chain is large. */
__attribute__((noinline)) static bool
post_some_recvs(struct rpma_rt_conn *conn, const struct rpma_rt_recv_wr *wr,
		int count)
{
	struct rpma_recv_wr chain[RT_POST_CHUNK];

	return count <= RT_POST_CHUNK &&
	       post_plain_recvs(conn, wr, count, chain);
}

/* Posts as many with futures as a chain holds, as post_plain_recvs() does: the
 * whole call or none of it. */
__attribute__((noinline)) static bool
post_futures(struct rpma_rt_conn *conn, const struct rpma_rt_recv_wr *wr,
	     int count)
{
	struct rt_gate *gate = &conn->gate[SIDE];
	uint64_t seen = rt_turn_look(&gate->turn);
	struct rpma_recv_wr chain[RT_POST_CHUNK];
	int taken;
	int i;

	if (unlikely(count > RT_POST_CHUNK || conn->side[SIDE].futures == NULL))
		return false;
	for (i = 0; i < count; i++) {
		if (unlikely(!is_future_recv(&wr[i])))
			return false;
		rt_wr_fill_recv(wr[i].dst, wr[i].offset, wr[i].len, 0,
				&chain[i]);
		chain[i].wr.next = &chain[i + 1].wr;
	}
	chain[count - 1].wr.next = NULL;
	if (unlikely(!rt_turn_take_alone(&gate->turn, seen)))
		return false;
	if (unlikely(!rt_hold_has_room(conn, SIDE, (uint32_t)count) ||
		     rt_post_is_behind(&conn->own[SIDE]) ||
		     !take_futures(conn, wr, count, chain))) {
		rt_hold_leave(conn, SIDE, seen);
		return false;
	}
	note_plain_recvs(conn, count, chain);
	taken = rt_hold_give_linked_recvs(conn, chain, count);
	if (unlikely(taken < count)) {
		rt_ledger_refuse(&gate->ledger, (uint32_t)(count - taken));
		rt_hold_refused(conn, SIDE, seen);
		return true;
	}
	rt_hold_show_posted(conn, SIDE);
	rt_hold_leave(conn, SIDE, seen);
	return true;
}

/* Any number of any kind. */
__attribute__((noinline)) static int
post_any_recvs(struct rpma_rt_conn *conn, const struct rpma_rt_recv_wr *wr,
	       int count)
{
	struct rt_post post = {.turn = &conn->gate[SIDE].turn,
			       .object = conn,
			       .recvs = wr,
			       .count = count,
			       .side = SIDE};
	int ret = rt_post_run(&post, &recv_ops);

	return ret == 0 ? post.done : rt_post_answer(post.done, ret);
}

int rpma_rt_post_recv(struct rpma_rt_conn *conn,
		      const struct rpma_rt_recv_wr *wr, int count)
{
	int ret;

	if (!rt_post_has_some(conn, wr, count))
		return rt_post_nothing(conn, wr, count, SIDE);
	ret = rt_post_check(conn, SIDE);
	if (unlikely(ret))
		return ret;
	if (wr->future != NULL ? likely(post_futures(conn, wr, count))
	    : count == 1       ? likely(post_one_recv(conn, wr))
			       : likely(post_some_recvs(conn, wr, count)))
		return count;
	return post_any_recvs(conn, wr, count);
}
