/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * straight.c -- the calls that post, with a straight way for the usual work
 * requests: a call whose work requests are all plain, and all go to routes or
 * all to futures, is filled into a chain, takes the right, and gives the chain
 * to the device. Any other call goes to post_send.c and post_recv.c. Any
 * thread. doc/protocols/ledger.md.
 */

#include <stddef.h>
#include <string.h>

#include <infiniband/verbs.h>

#include "base/lang.h"
#include "base/wr.h"
#include "conn/conn.h"
#include "conn/post.h"
#include "poller/poller.h"

/* ----------------------------------------------------- the straight way --- */

/* Where the completion of a work request goes: named alike on both sides. */
struct straight_target {
	uint64_t context;
	const struct rpma_rt_route *route;
	struct rpma_rt_future *future;
};

/* The functions of a way. wrs: the caller's work requests, of the kind
 * of the side; chain: librpma's work requests, filled in for the verb only. */
struct straight_way {
	/* fills the chain in and links the chain. Returns how many routes the
	 * work requests have; 0: a work request has to be posted in another
	 * way */
	int (*fill)(const struct rpma_rt_conn *conn, const void *wrs, int count,
		    void *chain);
	/* returns, with the right to post, whether all work requests may be
	 * posted now. Takes all futures, or no future */
	bool (*is_ready)(const struct rpma_rt_conn *conn,
			 const struct straight_way *way, const void *wrs,
			 int count, int routes, void *chain);
	struct straight_target (*target)(const void *wrs, int index);
	uint64_t *(*wr_id)(void *chain, int index);
	enum rpma_rt_side side;
	void (*note)(struct rpma_rt_conn *conn, const void *wrs, int count,
		     void *chain);
	/* returns how many work requests the device took */
	int (*give)(struct rpma_rt_conn *conn, void *chain, int count);
};

/* functions of the straight ways */
#define STRAIGHT __attribute__((always_inline)) static inline

/* Gives back a right that was taken at the word `seen`. */
STRAIGHT void straight_leave(struct rpma_rt_conn *conn, enum rpma_rt_side side,
			     uint64_t seen, bool is_kept)
{
	if (!is_kept)
		rt_hold_leave(conn, side, seen);
	else if (unlikely(!rt_turn_go_out(&conn->gate[side].turn, seen)))
		rt_hold_published(conn, side);
}

/* Posts the work requests of a call alone, as many as the chain holds. seen:
 * the word of the turn, read before the routes are looked at. is_kept: the word
 * is rt_turn_is_kept_idle(). The code is inlined into each caller, and so
 * generated for the side, for everything that is constant in the whole call,
 * for a kept right, and for a count of 1. Returns false if nothing is posted:
 * the call has to be made in another way. */
STRAIGHT bool straight_post_at(struct rpma_rt_conn *conn,
			       enum rpma_rt_side side, const void *wrs,
			       int count, void *chain,
			       const struct straight_way *way, uint64_t seen,
			       bool is_kept)
{
	struct rt_gate *gate = &conn->gate[side];
	int routes = way->fill(conn, wrs, count, chain);
	int taken;

	if (unlikely(routes == 0))
		return false;
	if (unlikely(!(is_kept ? rt_turn_go_in(&gate->turn, seen)
			       : rt_turn_take_idle(&gate->turn, seen)))) {
		rt_hold_answer_recall(conn, side, seen);
		return false;
	}
	if (unlikely(!rt_hold_has_room(conn, side, (uint32_t)count) ||
		     !way->is_ready(conn, way, wrs, count, routes, chain))) {
		straight_leave(conn, side, seen, is_kept);
		return false;
	}
	way->note(conn, wrs, count, chain);
	taken = way->give(conn, chain, count);
	if (unlikely(taken < count)) {
		rt_ledger_refuse(&gate->ledger, (uint32_t)(count - taken));
		rt_hold_refused(conn, side, seen);
		return true;
	}
	rt_hold_show_posted(conn, side);
	straight_leave(conn, side, seen, is_kept);
	return true;
}

STRAIGHT bool straight_post(struct rpma_rt_conn *conn, enum rpma_rt_side side,
			    const void *wrs, int count, void *chain,
			    const struct straight_way *way)
{
	struct rt_turn *turn = &conn->gate[side].turn;
	uint64_t seen = rt_turn_look(turn);

	return likely(rt_turn_is_idle(turn, seen)) &&
	       straight_post_at(conn, side, wrs, count, chain, way, seen,
				false);
}

/* Returns whether the connection has a queue that is not behind: what goes to
 * the own route may be posted. */
STRAIGHT bool straight_own_ready(const struct rpma_rt_conn *conn,
				 const struct straight_way *way,
				 const void *wrs, int count, int routes,
				 void *chain)
{
	const struct rt_lane *lane = rt_route_lane(&conn->own[way->side]);

	(void)wrs;
	(void)count;
	(void)routes;
	(void)chain;
	return likely(lane != NULL) && likely(!rt_lane_is_backlogged(lane));
}

/* Returns whether no consumer is behind. */
STRAIGHT bool straight_routes_ready(const struct rpma_rt_conn *conn,
				    const struct straight_way *way,
				    const void *wrs, int count, int routes,
				    void *chain)
{
	int i;

	(void)chain;
	for (i = 0; i < count; i++) {
		if (unlikely(rt_post_is_behind(rt_post_route(
			    conn, way->target(wrs, i).route, way->side))))
			return false;
		if (likely(routes == 1))
			break; /* all work requests have this route */
	}
	return true;
}

/* Takes the slots of the futures of the call, and puts the wr_ids into the
 * chain. */
STRAIGHT bool straight_futures_ready(const struct rpma_rt_conn *conn,
				     const struct straight_way *way,
				     const void *wrs, int count, int routes,
				     void *chain)
{
	struct rt_futures *futures = conn->side[way->side].futures;
	const uint64_t number = rt_wr_id(futures->number, 0);
	struct straight_target to;
	struct rt_future *row = NULL;
	struct rt_future *slot;
	uint32_t n = 1;
	int end;
	int i;

	(void)routes;
	if (unlikely(rt_post_is_behind(&conn->own[way->side])))
		return false;
	for (i = 0; i < count && n > 0;) {
		n = rt_future_take_row(futures, (uint32_t)(count - i), &row);
		slot = row;
		for (end = i + (int)n; i < end; i++) {
			to = way->target(wrs, i);
			*way->wr_id(chain, i) = rt_post_name_future(
				slot++, number, to.context, to.future);
		}
	}
	if (likely(i == count))
		return true;
	while (i-- > 0)
		rt_post_return_future(way->target(wrs, i).future);
	return false;
}

/* ---------------------------------------------------------------- sends --- */

/* The opcodes of plain operations, by enum rpma_rt_op. */
static const struct {
	uint8_t verb;	   /* enum ibv_wr_opcode */
	uint8_t completes; /* enum ibv_wc_opcode */
	uint16_t is_plain; /* bool, and room for an index that is shifted */
} straight_ops[] = {
	[RPMA_RT_OP_SEND] = {IBV_WR_SEND, IBV_WC_SEND, true},
	[RPMA_RT_OP_WRITE] = {IBV_WR_RDMA_WRITE, IBV_WC_RDMA_WRITE, true},
	[RPMA_RT_OP_READ] = {IBV_WR_RDMA_READ, IBV_WC_RDMA_READ, true},
};

static inline bool straight_is_plain_op(uint32_t op)
{
	return likely(op < sizeof(straight_ops) / sizeof(straight_ops[0])) &&
	       likely(straight_ops[op].is_plain);
}

/* What a plain work request shares with the work request in front as long as
 * op, flags, route and region are the same: found once for most calls. */
struct straight_send_kind {
	uint64_t head; /* op and flags: the first bytes of the work request */
	const struct rpma_rt_route *route;
	const struct rpma_mr_local *local;
	uint64_t wr_id; /* without the context */
	uint64_t addr;	/* of the region */
	uint32_t lkey;
	enum ibv_wr_opcode opcode;
};

static inline uint64_t straight_send_head(const struct rpma_rt_wr *wr)
{
	uint64_t head;

	static_assert(offsetof(struct rpma_rt_wr, context) == sizeof(head),
		      "op, pieces and flags are in front of the context");
	memcpy(&head, wr, sizeof(head));
	return head;
}

static inline bool
straight_send_is_of_kind(const struct rpma_rt_wr *wr,
			 const struct straight_send_kind *kind)
{
	return likely(straight_send_head(wr) == kind->head &&
		      wr->route == kind->route && wr->local == kind->local);
}

/* Finds the number of the route as in a wr_id. Returns false if the work
 * request may not name the route. */
static inline bool straight_send_find_route(const struct rpma_rt_conn *conn,
					    const struct rpma_rt_route *route,
					    uint64_t *number)
{
	if (unlikely(!rt_post_is_route(conn, route, RPMA_RT_SEND_SIDE)))
		return false;
	*number = rt_wr_id(
		(route == NULL ? &conn->own[RPMA_RT_SEND_SIDE] : route)->number,
		0);
	return true;
}

/* Finds the kind of a work request that goes to a route or, has_future, to a
 * future. Returns false if the work request is not plain. */
static inline bool straight_send_find_kind(const struct rpma_rt_conn *conn,
					   const struct rpma_rt_wr *wr,
					   bool has_future,
					   struct straight_send_kind *kind)
{
	const struct rpma_mr_local_head *local =
		(const struct rpma_mr_local_head *)wr->local;
	const uint32_t special =
		(wr->flags & ~(uint32_t)RT_WR_COMPLETIONS) | wr->piece_count;

	/* what is silent has no future */
	if (unlikely(special || local == NULL ||
		     wr->flags == RT_WR_HALF_OF_ALWAYS ||
		     !straight_is_plain_op(wr->op) ||
		     (has_future && wr->flags == RPMA_F_COMPLETION_ON_ERROR)))
		return false;
	kind->opcode = (enum ibv_wr_opcode)straight_ops[wr->op].verb;
	kind->wr_id = 0;
	if (has_future
		    ? unlikely(wr->route != NULL)
		    : !straight_send_find_route(conn, wr->route, &kind->wr_id))
		return false;
	if (wr->flags == RPMA_F_COMPLETION_ON_ERROR)
		kind->wr_id |= RT_ON_ERROR_ONLY;
	kind->head = straight_send_head(wr);
	kind->route = wr->route;
	kind->local = wr->local;
	kind->addr = local->addr;
	kind->lkey = local->ibv_mr->lkey;
	return true;
}

/* Returns whether everything is plain that the kind does not say. */
static inline bool straight_send_is_plain_rest(const struct rpma_rt_wr *wr,
					       bool has_future)
{
	const uint64_t special = wr->reserved32 | (uintptr_t)wr->lease |
				 (has_future ? 0 : (uintptr_t)wr->future) |
				 (wr->context & ~RT_COOKIE_MASK);

	return likely(special == 0) && (!has_future || wr->future != NULL);
}

/* Fills in a plain work request, for the verb alone: fields that only librpma
 * uses are not touched. Returns false if the far region is missing. */
static inline bool
straight_send_fill_plain(const struct rpma_rt_wr *wr,
			 const struct straight_send_kind *kind,
			 struct rpma_send_wr *out)
{
	const struct rpma_mr_remote_head *remote;

	out->wr.wr_id = kind->wr_id | wr->context;
	out->sge.addr = kind->addr + wr->local_offset;
	out->sge.length = (uint32_t)wr->len;
	out->sge.lkey = kind->lkey;
	out->wr.sg_list = &out->sge;
	out->wr.num_sge = 1;
	out->wr.opcode = kind->opcode;
	out->wr.imm_data = 0;
	if (likely(kind->opcode == IBV_WR_SEND))
		return true;
	if (unlikely(wr->remote == NULL))
		return false;
	remote = (const struct rpma_mr_remote_head *)wr->remote;
	out->wr.wr.rdma.remote_addr = remote->addr + wr->remote_offset;
	out->wr.wr.rdma.rkey = remote->rkey;
	return true;
}

STRAIGHT void straight_note_sends(struct rpma_rt_conn *conn, const void *wrs,
				  int count, void *sends)
{
	struct rt_ledger_pen pen = rt_hold_begin_row(conn, RPMA_RT_SEND_SIDE);
	uint32_t tick = rt_poller_date(conn->poller);
	const struct rpma_rt_wr *wr = wrs;
	struct rpma_send_wr *chain = sends;
	int i;

	for (i = 0; i < count; i++)
		chain[i].wr.send_flags =
			rt_hold_append(&pen, chain[i].wr.wr_id,
				       straight_ops[wr[i].op].completes, tick)
				? IBV_SEND_SIGNALED
				: 0;
	rt_hold_end_row(conn, RPMA_RT_SEND_SIDE, &pen);
}

STRAIGHT int straight_give_sends(struct rpma_rt_conn *conn, void *sends,
				 int count)
{
	return rt_hold_give_linked_sends(conn, sends, count);
}

/* Fills in a chain whose work requests all go to routes, or all to futures.
 * Returns how many routes there are; 0: a work request is not plain. */
STRAIGHT int straight_fill_sends(const struct rpma_rt_conn *conn,
				 const struct rpma_rt_wr *wr, int count,
				 bool has_future, struct rpma_send_wr *chain)
{
	struct straight_send_kind kind = {.head = 0};
	int routes = 0;
	int i;

	for (i = 0; i < count; i++) {
		if (i == 0 || !straight_send_is_of_kind(&wr[i], &kind)) {
			routes += i == 0 || wr[i].route != kind.route;
			if (unlikely(!straight_send_find_kind(
				    conn, &wr[i], has_future, &kind)))
				return 0;
		}
		if (unlikely(!straight_send_is_plain_rest(&wr[i], has_future) ||
			     !straight_send_fill_plain(&wr[i], &kind,
						       &chain[i])))
			return 0;
		chain[i].wr.next = &chain[i + 1].wr;
	}
	chain[count - 1].wr.next = NULL;
	return routes;
}

STRAIGHT int straight_sends_to_routes(const struct rpma_rt_conn *conn,
				      const void *wrs, int count, void *sends)
{
	return straight_fill_sends(conn, wrs, count, false, sends);
}

STRAIGHT struct straight_target straight_send_target(const void *wrs, int index)
{
	const struct rpma_rt_wr *wr = (const struct rpma_rt_wr *)wrs + index;

	return (struct straight_target){wr->context, wr->route, wr->future};
}

STRAIGHT uint64_t *straight_send_wr_id(void *sends, int index)
{
	return &((struct rpma_send_wr *)sends)[index].wr.wr_id;
}

static const struct straight_way sends_to_routes = {
	.fill = straight_sends_to_routes,
	.is_ready = straight_routes_ready,
	.note = straight_note_sends,
	.give = straight_give_sends,
	.target = straight_send_target,
	.wr_id = straight_send_wr_id,
	.side = RPMA_RT_SEND_SIDE,
};

STRAIGHT int straight_sends_to_futures(const struct rpma_rt_conn *conn,
				       const void *wrs, int count, void *sends)
{
	if (unlikely(conn->side[RPMA_RT_SEND_SIDE].futures == NULL))
		return 0;
	return straight_fill_sends(conn, wrs, count, true, sends);
}

static const struct straight_way sends_to_futures = {
	.fill = straight_sends_to_futures,
	.is_ready = straight_futures_ready,
	.note = straight_note_sends,
	.give = straight_give_sends,
	.target = straight_send_target,
	.wr_id = straight_send_wr_id,
	.side = RPMA_RT_SEND_SIDE,
};

/* Returns the head of a message, a plain send. */
STRAIGHT uint64_t straight_message_head(uint32_t flags)
{
	const struct rpma_rt_wr wr = {.op = RPMA_RT_OP_SEND, .flags = flags};

	return straight_send_head(&wr);
}

/* Returns whether the work request is a plain message to the connection's own
 * route, but for straight_send_is_plain_rest(). */
STRAIGHT bool straight_is_message(const struct rpma_rt_wr *wr)
{
	const uint64_t head = straight_send_head(wr);

	return wr->route == NULL &&
	       (head == straight_message_head(RPMA_F_COMPLETION_ON_ERROR) ||
		head == straight_message_head(RPMA_F_COMPLETION_ALWAYS));
}

/* Fills in a single work request that straight_is_message(). */
STRAIGHT int straight_fill_message(const struct rpma_rt_conn *conn,
				   const void *wrs, int count, void *sends)
{
	const struct rpma_rt_wr *wr = wrs;
	const struct rpma_mr_local_head *local =
		(const struct rpma_mr_local_head *)wr->local;
	struct rpma_send_wr *out = sends;
	struct straight_send_kind kind = {.opcode = IBV_WR_SEND};

	(void)count;
	if (unlikely(local == NULL || !straight_send_is_plain_rest(wr, false)))
		return 0;
	kind.wr_id = rt_wr_id(conn->own[RPMA_RT_SEND_SIDE].number, 0);
	if (wr->flags == RPMA_F_COMPLETION_ON_ERROR)
		kind.wr_id |= RT_ON_ERROR_ONLY;
	kind.addr = local->addr;
	kind.lkey = local->ibv_mr->lkey;
	out->wr.next = NULL;
	return straight_send_fill_plain(wr, &kind, out);
}

STRAIGHT void straight_note_message(struct rpma_rt_conn *conn, const void *wrs,
				    int count, void *sends)
{
	struct rt_ledger_pen pen = rt_hold_begin_row(conn, RPMA_RT_SEND_SIDE);
	struct rpma_send_wr *out = sends;

	(void)wrs;
	(void)count;
	out->wr.send_flags = rt_hold_append(&pen, out->wr.wr_id, IBV_WC_SEND,
					    rt_poller_date(conn->poller))
				     ? IBV_SEND_SIGNALED
				     : 0;
	rt_hold_end_row(conn, RPMA_RT_SEND_SIDE, &pen);
}

/* of a single message */
static const struct straight_way message_to_own = {
	.fill = straight_fill_message,
	.is_ready = straight_own_ready,
	.note = straight_note_message,
	.give = straight_give_sends,
	.side = RPMA_RT_SEND_SIDE,
};

/* Not inlined, so that a call saves only the registers of its way. */

__attribute__((noinline)) static int
straight_post_message(struct rpma_rt_conn *conn, const struct rpma_rt_wr *wr,
		      uint64_t seen)
{
	struct rpma_send_wr out;

	return likely(straight_post_at(conn, RPMA_RT_SEND_SIDE, wr, 1, &out,
				       &message_to_own, seen, true))
		       ? 1
		       : rt_post_send_any(conn, wr, 1);
}

__attribute__((noinline)) static int
straight_post_send(struct rpma_rt_conn *conn, const struct rpma_rt_wr *wr)
{
	struct rpma_send_wr out;

	return likely(straight_post(conn, RPMA_RT_SEND_SIDE, wr, 1, &out,
				    &sends_to_routes))
		       ? 1
		       : rt_post_send_any(conn, wr, 1);
}

static int straight_post_one_send(struct rpma_rt_conn *conn,
				  const struct rpma_rt_wr *wr)
{
	struct rt_turn *turn = &conn->gate[RPMA_RT_SEND_SIDE].turn;
	uint64_t seen = rt_turn_look(turn);

	return likely(rt_turn_is_kept_idle(turn, seen)) &&
			       straight_is_message(wr)
		       ? straight_post_message(conn, wr, seen)
		       : straight_post_send(conn, wr);
}

/* Not inlined, because the chain is large. */

__attribute__((noinline)) static bool
straight_post_sends(struct rpma_rt_conn *conn, const struct rpma_rt_wr *wr,
		    int count)
{
	struct rpma_send_wr chain[RT_POST_CHUNK];

	return count <= RT_POST_CHUNK &&
	       straight_post(conn, RPMA_RT_SEND_SIDE, wr, count, chain,
			     &sends_to_routes);
}

__attribute__((noinline)) static bool
straight_post_send_futures(struct rpma_rt_conn *conn,
			   const struct rpma_rt_wr *wr, int count)
{
	struct rpma_send_wr chain[RT_POST_CHUNK];

	return count <= RT_POST_CHUNK &&
	       straight_post(conn, RPMA_RT_SEND_SIDE, wr, count, chain,
			     &sends_to_futures);
}

/* Posts in any way; checks the arguments. */
__attribute__((noinline)) static int
straight_send_checked(struct rpma_rt_conn *conn, const struct rpma_rt_wr *wr,
		      int count)
{
	int ret;

	if (!rt_post_has_some(conn, wr, count))
		return rt_post_nothing(conn, wr, count, RPMA_RT_SEND_SIDE);
	ret = rt_post_check(conn, RPMA_RT_SEND_SIDE);
	if (unlikely(ret))
		return ret;
	if (wr->future == NULL && count == 1)
		return straight_post_one_send(conn, wr);
	if (wr->future != NULL
		    ? likely(straight_post_send_futures(conn, wr, count))
		    : likely(straight_post_sends(conn, wr, count)))
		return count;
	return rt_post_send_any(conn, wr, count);
}

int rpma_rt_post_send(struct rpma_rt_conn *conn, const struct rpma_rt_wr *wr,
		      int count)
{
	rt_want_none();
	/* without a call besides the last, so that no register is saved */
	return likely(conn != NULL && wr != NULL) && count == 1 &&
			       likely(rt_post_is_checked(conn,
							 RPMA_RT_SEND_SIDE)) &&
			       wr->future == NULL
		       ? straight_post_one_send(conn, wr)
		       : straight_send_checked(conn, wr, count);
}

/* ------------------------------------------------------------- receives --- */

/* What a plain receive shares with the receive in front as long as route and
 * region are the same: found once for most calls. */
struct straight_recv_kind {
	const struct rpma_rt_route *route;
	const struct rpma_mr_local *dst;
	uint64_t wr_id; /* without the context */
	uint64_t addr;	/* of the region */
	uint32_t lkey;
};

/* Finds the kind of a receive that goes to a route or, has_future, to a future.
 * Returns false if the receive is not plain. */
static inline bool straight_recv_find_kind(const struct rpma_rt_conn *conn,
					   const struct rpma_rt_recv_wr *wr,
					   bool has_future,
					   struct straight_recv_kind *kind)
{
	const struct rpma_mr_local_head *dst =
		(const struct rpma_mr_local_head *)wr->dst;

	if (unlikely(dst == NULL ||
		     (has_future ? wr->route != NULL
				 : !rt_post_is_route(conn, wr->route,
						     RPMA_RT_RECV_SIDE))))
		return false;
	kind->route = wr->route;
	kind->dst = wr->dst;
	kind->wr_id =
		has_future ? 0
			   : rt_wr_id((wr->route == NULL
					       ? &conn->own[RPMA_RT_RECV_SIDE]
					       : wr->route)
					      ->number,
				      0);
	kind->addr = dst->addr;
	kind->lkey = dst->ibv_mr->lkey;
	return true;
}

/* Returns whether everything is plain that the kind does not say. */
static inline bool straight_recv_is_plain_rest(const struct rpma_rt_recv_wr *wr,
					       bool has_future)
{
	const uint64_t special = wr->piece_count | wr->reserved32 |
				 (has_future ? 0 : (uintptr_t)wr->future) |
				 (wr->context & ~RT_COOKIE_MASK);

	return likely(special == 0) && (!has_future || wr->future != NULL);
}

/* Fills in a receive with a single piece, for the verb alone: fields that only
 * librpma uses are not touched. */
static inline void
straight_recv_fill_plain(const struct rpma_rt_recv_wr *wr,
			 const struct straight_recv_kind *kind,
			 struct rpma_recv_wr *out)
{
	out->wr.wr_id = kind->wr_id | wr->context;
	out->sge.addr = kind->addr + wr->offset;
	out->sge.length = (uint32_t)wr->len;
	out->sge.lkey = kind->lkey;
	out->wr.sg_list = &out->sge;
	out->wr.num_sge = 1;
}

STRAIGHT void straight_note_recvs(struct rpma_rt_conn *conn, const void *wrs,
				  int count, void *recvs)
{
	struct rt_ledger *ledger = &conn->gate[RPMA_RT_RECV_SIDE].ledger;
	uint32_t tick = rt_poller_date(conn->poller);
	const struct rpma_recv_wr *chain = recvs;
	int i;

	(void)wrs;
	for (i = 0; i < count; i++)
		rt_ledger_append_signaled(ledger, chain[i].wr.wr_id,
					  IBV_WC_RECV, tick);
}

STRAIGHT int straight_give_recvs(struct rpma_rt_conn *conn, void *recvs,
				 int count)
{
	return rt_hold_give_linked_recvs(conn, recvs, count);
}

/* Fills in a chain whose receives all go to routes, or all to futures. Returns
 * how many routes there are; 0: a receive is not plain. */
STRAIGHT int straight_fill_recvs(const struct rpma_rt_conn *conn,
				 const struct rpma_rt_recv_wr *wr, int count,
				 bool has_future, struct rpma_recv_wr *chain)
{
	struct straight_recv_kind kind = {.dst = NULL};
	int routes = 0;
	int i;

	for (i = 0; i < count; i++) {
		/* first, because the pieces of a receive are no region */
		if (unlikely(!straight_recv_is_plain_rest(&wr[i], has_future)))
			return 0;
		if (i == 0 || unlikely(wr[i].route != kind.route ||
				       wr[i].dst != kind.dst)) {
			routes += i == 0 || wr[i].route != kind.route;
			if (unlikely(!straight_recv_find_kind(
				    conn, &wr[i], has_future, &kind)))
				return 0;
		}
		straight_recv_fill_plain(&wr[i], &kind, &chain[i]);
		chain[i].wr.next = &chain[i + 1].wr;
	}
	chain[count - 1].wr.next = NULL;
	return routes;
}

STRAIGHT int straight_recvs_to_routes(const struct rpma_rt_conn *conn,
				      const void *wrs, int count, void *recvs)
{
	return straight_fill_recvs(conn, wrs, count, false, recvs);
}

STRAIGHT struct straight_target straight_recv_target(const void *wrs, int index)
{
	const struct rpma_rt_recv_wr *wr =
		(const struct rpma_rt_recv_wr *)wrs + index;

	return (struct straight_target){wr->context, wr->route, wr->future};
}

STRAIGHT uint64_t *straight_recv_wr_id(void *recvs, int index)
{
	return &((struct rpma_recv_wr *)recvs)[index].wr.wr_id;
}

static const struct straight_way recvs_to_routes = {
	.fill = straight_recvs_to_routes,
	.is_ready = straight_routes_ready,
	.note = straight_note_recvs,
	.give = straight_give_recvs,
	.target = straight_recv_target,
	.wr_id = straight_recv_wr_id,
	.side = RPMA_RT_RECV_SIDE,
};

STRAIGHT int straight_recvs_to_futures(const struct rpma_rt_conn *conn,
				       const void *wrs, int count, void *recvs)
{
	if (unlikely(conn->side[RPMA_RT_RECV_SIDE].futures == NULL))
		return 0;
	return straight_fill_recvs(conn, wrs, count, true, recvs);
}

static const struct straight_way recvs_to_futures = {
	.fill = straight_recvs_to_futures,
	.is_ready = straight_futures_ready,
	.note = straight_note_recvs,
	.give = straight_give_recvs,
	.target = straight_recv_target,
	.wr_id = straight_recv_wr_id,
	.side = RPMA_RT_RECV_SIDE,
};

/* Fills in a single receive to the connection's own route. */
STRAIGHT int straight_fill_recv(const struct rpma_rt_conn *conn,
				const void *wrs, int count, void *recvs)
{
	const struct rpma_rt_recv_wr *wr = wrs;
	const struct rpma_mr_local_head *dst =
		(const struct rpma_mr_local_head *)wr->dst;
	struct rpma_recv_wr *out = recvs;
	struct straight_recv_kind kind;

	(void)count;
	/* first, because the pieces of a receive are no region */
	if (unlikely(!straight_recv_is_plain_rest(wr, false) || dst == NULL))
		return 0;
	kind.wr_id = rt_wr_id(conn->own[RPMA_RT_RECV_SIDE].number, 0);
	kind.addr = dst->addr;
	kind.lkey = dst->ibv_mr->lkey;
	straight_recv_fill_plain(wr, &kind, out);
	out->wr.next = NULL;
	return 1;
}

/* of a single receive */
static const struct straight_way recv_to_own = {
	.fill = straight_fill_recv,
	.is_ready = straight_own_ready,
	.note = straight_note_recvs,
	.give = straight_give_recvs,
	.side = RPMA_RT_RECV_SIDE,
};

/* Not inlined, so that a call saves only the registers of its way. */

__attribute__((noinline)) static int
straight_post_own_recv(struct rpma_rt_conn *conn,
		       const struct rpma_rt_recv_wr *wr, uint64_t seen)
{
	struct rpma_recv_wr out;

	return likely(straight_post_at(conn, RPMA_RT_RECV_SIDE, wr, 1, &out,
				       &recv_to_own, seen, true))
		       ? 1
		       : rt_post_recv_any(conn, wr, 1);
}

__attribute__((noinline)) static int
straight_post_recv(struct rpma_rt_conn *conn, const struct rpma_rt_recv_wr *wr)
{
	struct rpma_recv_wr out;

	return likely(straight_post(conn, RPMA_RT_RECV_SIDE, wr, 1, &out,
				    &recvs_to_routes))
		       ? 1
		       : rt_post_recv_any(conn, wr, 1);
}

static int straight_post_one_recv(struct rpma_rt_conn *conn,
				  const struct rpma_rt_recv_wr *wr)
{
	struct rt_turn *turn = &conn->gate[RPMA_RT_RECV_SIDE].turn;
	uint64_t seen = rt_turn_look(turn);

	return likely(rt_turn_is_kept_idle(turn, seen)) && wr->route == NULL
		       ? straight_post_own_recv(conn, wr, seen)
		       : straight_post_recv(conn, wr);
}

/* Not inlined, because the chain is large. */

__attribute__((noinline)) static bool
straight_post_recvs(struct rpma_rt_conn *conn, const struct rpma_rt_recv_wr *wr,
		    int count)
{
	struct rpma_recv_wr chain[RT_POST_CHUNK];

	return count <= RT_POST_CHUNK &&
	       straight_post(conn, RPMA_RT_RECV_SIDE, wr, count, chain,
			     &recvs_to_routes);
}

__attribute__((noinline)) static bool
straight_post_recv_futures(struct rpma_rt_conn *conn,
			   const struct rpma_rt_recv_wr *wr, int count)
{
	struct rpma_recv_wr chain[RT_POST_CHUNK];

	return count <= RT_POST_CHUNK &&
	       straight_post(conn, RPMA_RT_RECV_SIDE, wr, count, chain,
			     &recvs_to_futures);
}

/* Posts in any way; checks the arguments. */
__attribute__((noinline)) static int
straight_recv_checked(struct rpma_rt_conn *conn,
		      const struct rpma_rt_recv_wr *wr, int count)
{
	int ret;

	if (!rt_post_has_some(conn, wr, count))
		return rt_post_nothing(conn, wr, count, RPMA_RT_RECV_SIDE);
	ret = rt_post_check(conn, RPMA_RT_RECV_SIDE);
	if (unlikely(ret))
		return ret;
	if (wr->future == NULL && count == 1)
		return straight_post_one_recv(conn, wr);
	if (wr->future != NULL
		    ? likely(straight_post_recv_futures(conn, wr, count))
		    : likely(straight_post_recvs(conn, wr, count)))
		return count;
	return rt_post_recv_any(conn, wr, count);
}

int rpma_rt_post_recv(struct rpma_rt_conn *conn,
		      const struct rpma_rt_recv_wr *wr, int count)
{
	rt_want_none();
	/* without a call besides the last, so that no register is saved */
	return likely(conn != NULL && wr != NULL) && count == 1 &&
			       likely(rt_post_is_checked(conn,
							 RPMA_RT_RECV_SIDE)) &&
			       wr->future == NULL
		       ? straight_post_one_recv(conn, wr)
		       : straight_recv_checked(conn, wr, count);
}
