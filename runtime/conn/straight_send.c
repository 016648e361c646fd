/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * straight_send.c -- the call that posts sends. Usual work requests go a
 * straight way (straight.h), any other call goes to post_send.c. Any thread.
 */

#include "conn/straight.h"

#include <assert.h>
#include <stddef.h>
#include <string.h>

#include <infiniband/verbs.h>

#include "base/wr.h"
#include "poller/poller.h"

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

/* Returns whether everything is plain that the kind does not say, but for the
 * future. */
static inline bool straight_send_is_plain_rest(const struct rpma_rt_wr *wr)
{
	const uint64_t special = wr->reserved32 | (uintptr_t)wr->lease |
				 (wr->context & ~RT_COOKIE_MASK);

	return likely(special == 0);
}

/* Fills in a plain work request, but for the wr_id, for the verb alone: fields
 * that only librpma uses are not touched. Returns false if the far region is
 * missing. */
static inline bool
straight_send_fill_plain(const struct rpma_rt_wr *wr,
			 const struct straight_send_kind *kind,
			 struct rpma_send_wr *out)
{
	const struct rpma_mr_remote_head *remote;

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

/* Notes a chain. wr: NULL if all work requests are messages. */
STRAIGHT bool straight_note_chain(struct rpma_rt_conn *conn,
				  const struct rpma_rt_wr *wr, int count,
				  struct rpma_send_wr *chain)
{
	uint32_t tick = rt_poller_date(conn->poller);
	struct rt_ledger_pen pen;
	bool is_signaled;
	uint8_t opcode;
	int i;

	if (count > 1)
		pen = rt_hold_begin_row(conn, RPMA_RT_SEND_SIDE);
	for (i = 0; i < count; i++) {
		opcode = wr == NULL ? IBV_WC_SEND
				    : straight_ops[wr[i].op].completes;
		is_signaled =
			count > 1 ? rt_hold_append(&pen, chain[i].wr.wr_id,
						   opcode, tick)
				  : rt_hold_append_one(conn, RPMA_RT_SEND_SIDE,
						       chain[i].wr.wr_id,
						       opcode, tick);
		chain[i].wr.send_flags = is_signaled ? IBV_SEND_SIGNALED : 0;
	}
	if (count > 1)
		rt_hold_end_row(conn, RPMA_RT_SEND_SIDE, &pen);
	return true;
}

STRAIGHT bool straight_note_sends(struct rpma_rt_conn *conn, const void *wrs,
				  int count, void *sends)
{
	return straight_note_chain(conn, wrs, count, sends);
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
		if (unlikely(!straight_send_is_plain_rest(&wr[i]) ||
			     (wr[i].future != NULL) != has_future ||
			     !straight_send_fill_plain(&wr[i], &kind,
						       &chain[i])))
			return 0;
		chain[i].wr.wr_id = kind.wr_id | wr[i].context;
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
	.side = RPMA_RT_SEND_SIDE,
};

STRAIGHT int straight_sends_to_futures(const struct rpma_rt_conn *conn,
				       const void *wrs, int count, void *sends)
{
	const struct rt_futures *futures =
		conn->side[RPMA_RT_SEND_SIDE].futures;

	if (unlikely(futures == NULL))
		return 0;
	rt_future_foresee_row(futures);
	return straight_fill_sends(conn, wrs, count, true, sends);
}

static const struct straight_way sends_to_futures; /* below */

STRAIGHT bool straight_note_send_futures(struct rpma_rt_conn *conn,
					 const void *wrs, int count,
					 void *sends)
{
	return likely(straight_name_futures(conn, &sends_to_futures, wrs, count,
					    sends, NULL, 0)) &&
	       straight_note_chain(conn, wrs, count, sends);
}

static const struct straight_way sends_to_futures = {
	.fill = straight_sends_to_futures,
	.is_ready = straight_futures_ready,
	.note = straight_note_send_futures,
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

	return ((uintptr_t)wr->route | (uintptr_t)wr->future) == 0 &&
	       (head == straight_message_head(RPMA_F_COMPLETION_ON_ERROR) ||
		head == straight_message_head(RPMA_F_COMPLETION_ALWAYS) ||
		head == straight_message_head(0));
}

/* Returns whether a work request that straight_is_message() is plain. */
STRAIGHT bool straight_is_plain_message(const struct rpma_rt_wr *wr)
{
	return likely(wr->local != NULL) && straight_send_is_plain_rest(wr);
}

/* Returns the wr_id of a message. own: of the route, as in a wr_id. */
STRAIGHT uint64_t straight_message_id(const struct rpma_rt_wr *wr, uint64_t own)
{
	return own | wr->context |
	       (wr->flags == RPMA_F_COMPLETION_ON_ERROR ? RT_ON_ERROR_ONLY : 0);
}

/* Fills in a message that straight_is_plain_message(), but for the wr_id. */
STRAIGHT void straight_fill_message(const struct rpma_rt_wr *wr,
				    struct rpma_send_wr *out)
{
	const struct rpma_mr_local_head *local =
		(const struct rpma_mr_local_head *)wr->local;
	const struct straight_send_kind kind = {
		.opcode = IBV_WR_SEND,
		.addr = local->addr,
		.lkey = local->ibv_mr->lkey,
	};

	straight_send_fill_plain(wr, &kind, out);
}

/* Fills in a chain of messages, of which the first straight_is_message(). */
STRAIGHT int straight_fill_messages(const struct rpma_rt_conn *conn,
				    const void *wrs, int count, void *sends)
{
	const uint64_t own = rt_wr_id(conn->own[RPMA_RT_SEND_SIDE].number, 0);
	struct rpma_send_wr *chain = sends;
	const struct rpma_rt_wr *wr = wrs;
	int i;

	for (i = 0; i < count; i++) {
		if (unlikely((i > 0 && !straight_is_message(&wr[i])) ||
			     !straight_is_plain_message(&wr[i])))
			return 0;
		chain[i].wr.wr_id = straight_message_id(&wr[i], own);
		straight_fill_message(&wr[i], &chain[i]);
		chain[i].wr.next = &chain[i + 1].wr;
	}
	chain[count - 1].wr.next = NULL;
	return 1;
}

STRAIGHT bool straight_note_messages(struct rpma_rt_conn *conn, const void *wrs,
				     int count, void *sends)
{
	(void)wrs;
	return straight_note_chain(conn, NULL, count, sends);
}

static const struct straight_way messages_to_own = {
	.fill = straight_fill_messages,
	.is_ready = straight_own_ready,
	.note = straight_note_messages,
	.give = straight_give_sends,
	.side = RPMA_RT_SEND_SIDE,
};

/* Fills in and notes a message alone, of which straight_is_message(). */
STRAIGHT bool straight_note_message(struct rpma_rt_conn *conn, const void *wrs,
				    int count, void *sends)
{
	const uint64_t own = rt_wr_id(conn->own[RPMA_RT_SEND_SIDE].number, 0);
	const struct rpma_rt_wr *wr = wrs;
	struct rpma_send_wr *out = sends;
	uint64_t wr_id;
	uint32_t tick;

	(void)count;
	if (unlikely(!straight_is_plain_message(wr)))
		return false;
	/* between the date and the rest: no register is saved for the wr_id */
	tick = rt_poller_date(conn->poller);
	wr_id = straight_message_id(wr, own);
	out->wr.wr_id = wr_id;
	out->wr.send_flags = rt_hold_append_one(conn, RPMA_RT_SEND_SIDE, wr_id,
						IBV_WC_SEND, tick)
				     ? IBV_SEND_SIGNALED
				     : 0;
	out->wr.next = NULL;
	straight_fill_message(wr, out);
	return true;
}

static const struct straight_way message_to_own = {
	.fill = straight_fill_later,
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

	return likely(straight_post_at(conn, wr, 1, &out, &message_to_own, seen,
				       true))
		       ? 1
		       : rt_post_send_any(conn, wr, 1);
}

__attribute__((noinline)) static int
straight_post_send(struct rpma_rt_conn *conn, const struct rpma_rt_wr *wr)
{
	struct rpma_send_wr out;

	return likely(straight_post(conn, wr, 1, &out, &sends_to_routes))
		       ? 1
		       : rt_post_send_any(conn, wr, 1);
}

/* Not inlined, because the chain is large. The functions post in any way. */

__attribute__((noinline)) static int
straight_post_sends(struct rpma_rt_conn *conn, const struct rpma_rt_wr *wr,
		    int count)
{
	struct rpma_send_wr chain[RT_POST_CHUNK];

	return likely(straight_post(conn, wr, count, chain, &sends_to_routes))
		       ? count
		       : rt_post_send_any(conn, wr, count);
}

__attribute__((noinline)) static int
straight_post_messages(struct rpma_rt_conn *conn, const struct rpma_rt_wr *wr,
		       int count)
{
	struct rpma_send_wr chain[RT_POST_CHUNK];

	return likely(straight_post(conn, wr, count, chain, &messages_to_own))
		       ? count
		       : straight_post_sends(conn, wr, count);
}

__attribute__((noinline)) static int
straight_post_send_futures(struct rpma_rt_conn *conn,
			   const struct rpma_rt_wr *wr, int count)
{
	struct rpma_send_wr chain[RT_POST_CHUNK];

	return likely(straight_post(conn, wr, count, chain, &sends_to_futures))
		       ? count
		       : rt_post_send_any(conn, wr, count);
}

/* REQUIRES: count is 1 or more, and rt_post_check() has returned 0 */
static inline int straight_send_some(struct rpma_rt_conn *conn,
				     const struct rpma_rt_wr *wr, int count)
{
	if (unlikely(wr->future != NULL))
		return straight_post_send_futures(conn, wr, count);
	if (count == 1)
		return straight_post_send(conn, wr);
	return likely(straight_is_message(wr))
		       ? straight_post_messages(conn, wr, count)
		       : straight_post_sends(conn, wr, count);
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
	return unlikely(ret) ? ret : straight_send_some(conn, wr, count);
}

int rpma_rt_post_send(struct rpma_rt_conn *conn, const struct rpma_rt_wr *wr,
		      int count)
{
	struct rt_turn *turn;
	uint64_t seen;

	rt_want_none();
	/* without a call besides the last, so that no register is saved; each
	 * condition by itself, because a single condition costs more */
	if (unlikely(conn == NULL))
		return straight_send_checked(conn, wr, count);
	if (unlikely(wr == NULL))
		return straight_send_checked(conn, wr, count);
	if (count == 1) {
		turn = &conn->gate[RPMA_RT_SEND_SIDE].turn;
		seen = rt_turn_look(turn);
		/* kept: for a thread that has posted often, in this process */
		if (likely(rt_turn_is_kept_idle(turn, seen)) &&
		    likely(straight_is_message(wr)) &&
		    likely(!rt_fill_is_deferred(conn)))
			return straight_post_message(conn, wr, seen);
	}
	if (unlikely(count <= 0) ||
	    unlikely(!rt_post_is_checked(conn, RPMA_RT_SEND_SIDE)))
		return straight_send_checked(conn, wr, count);
	return straight_send_some(conn, wr, count);
}
