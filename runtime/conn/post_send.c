/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * post_send.c -- posting work requests of the send side. A call that finds the
 * turn idle takes the right and posts from the caller's own arrays; any other
 * call copies its work requests into slots and publishes the slots. Posting a
 * plain work request, the usual post, has a straight way. Any thread.
 * doc/protocols/ledger.md.
 */

#include <infiniband/verbs.h>

#include "base/lang.h"
#include "base/log.h"
#include "base/wr.h"
#include "conn/conn.h"
#include "conn/post.h"
#include "pool/pool.h"
#include "poller/poller.h"

#define SIDE RPMA_RT_SEND_SIDE

/* enum ibv_wc_opcode of native operations; headers may lack them */
#define WC_FLUSH	8
#define WC_ATOMIC_WRITE 9

/* --------------------------------------------------------- validation --- */

static bool post_send_is_part(const struct rpma_rt_wr *wr)
{
	return wr->flags & RPMA_RT_F_PART;
}

static bool post_send_is_silent(const struct rpma_rt_wr *wr)
{
	return post_send_is_part(wr) ||
	       (wr->flags & RT_WR_COMPLETIONS) == RPMA_F_COMPLETION_ON_ERROR;
}

static inline bool post_send_is_plain_op(const struct rpma_rt_wr *wr)
{
	return wr->op == RPMA_RT_OP_SEND ||
	       ((wr->op == RPMA_RT_OP_WRITE || wr->op == RPMA_RT_OP_READ) &&
		wr->remote != NULL);
}

/* Returns whether the work request is plain: a valid send, write or read of a
 * single piece, without anything special; the route is not checked. The usual
 * work request, looked at once. */
static inline bool post_send_is_plain(const struct rpma_rt_wr *wr)
{
	const uint64_t special = (wr->flags & ~(uint32_t)RT_WR_COMPLETIONS) |
				 wr->piece_count | wr->reserved32 |
				 (uintptr_t)wr->future | (uintptr_t)wr->lease |
				 (wr->context & ~RT_COOKIE_MASK);

	if (unlikely(special || wr->local == NULL ||
		     wr->flags == RT_WR_HALF_OF_ALWAYS))
		return false;
	return post_send_is_plain_op(wr);
}

/* Checks the work requests that were not taken. Returns 0, RPMA_E_INVAL, or
 * RPMA_RT_E_CLOSED (a route). */
static int post_send_check(struct rt_post *post)
{
	const struct rpma_rt_wr *wr;
	int ret = 0;
	int i;

	post->goes_line = false;
	for (i = post->done; i < post->count && ret == 0; i++) {
		wr = &post->sends[i];
		if (likely(post_send_is_plain(wr) &&
			   rt_post_is_route(rt_post_conn(post), wr->route,
					    SIDE)))
			continue;
		/* also work requests whose native form only librpma knows */
		post->goes_line |= wr->op > RPMA_RT_OP_READ;
		ret = rt_fault_check(post, i);
	}
	return ret;
}

static int post_send_last_of_link(const struct rt_post *post, int index)
{
	while (post->sends[index].flags & RPMA_RT_F_LINKED)
		index++;
	return index;
}

/* ------------------------------------------------------ who is behind --- */

/* Returns where the completion goes; NULL: to a pool. A work request with a
 * future has the connection's own route, which gets the result of a dropped
 * future. */
static const struct rpma_rt_route *
post_send_route_of(const struct rt_post *post, const struct rpma_rt_wr *wr)
{
	if (wr->lease != NULL)
		return NULL;
	return rt_post_route(rt_post_conn(post),
			     wr->future != NULL ? NULL : wr->route, SIDE);
}

static const struct rpma_rt_route *post_send_behind(const struct rt_post *post,
						    int from, int to)
{
	const struct rpma_rt_route *route;

	for (; from <= to; from++) {
		route = post_send_route_of(post, &post->sends[from]);
		if (route != NULL && rt_post_is_behind(route))
			return route;
	}
	return NULL;
}

/* Returns the end of the links before `end` whose consumers are not behind;
 * notes the refusal of the rest. */
static int post_send_end_of_ready(struct rt_post *post, int end)
{
	const struct rpma_rt_route *route;
	int index = post->done;
	int last;

	for (; index < end; index = last + 1) {
		last = post_send_last_of_link(post, index);
		route = post_send_behind(post, index, last);
		if (route == NULL)
			continue;
		rt_post_refuse_backlog(post, route);
		return index;
	}
	return end;
}

/* -------------------------------------------------- futures and leases --- */

static bool post_send_keeps_lease(const struct rpma_rt_wr *wr)
{
	return wr->flags & RPMA_RT_F_KEEP;
}

/* Gives back the slots of the futures, and the leases, of the work requests
 * from `from` to before `to`. */
static void post_send_undo(const struct rt_post *post, int from, int to)
{
	const struct rpma_rt_wr *wr;

	for (; from < to; from++) {
		wr = &post->sends[from];
		if (wr->lease != NULL)
			rt_pool_undo_send(wr->lease, post_send_keeps_lease(wr));
		else if (wr->future != NULL)
			rt_post_return_future(wr->future);
	}
}

/* Takes the future or the lease of a work request. Returns false if the work
 * request has to be posted later, or never: then *ret is the error. */
static bool post_send_take_extra(struct rt_post *post, int index, int *ret)
{
	const struct rpma_rt_wr *wr = &post->sends[index];

	if (wr->lease != NULL) {
		if (rt_pool_begin_send(wr->lease, post_send_keeps_lease(wr)))
			return true;
		*ret = rt_wr_refuse(index, "has a lease that was given away "
					   "before");
		return false;
	}
	return wr->future == NULL ||
	       rt_post_take_future(post, wr->context, wr->future);
}

/* Takes futures and leases of the links before `end`, as far as there are any;
 * returns the end of the links that have everything. *ret: the error of a wrong
 * work request. */
static int post_send_take_extras(struct rt_post *post, int end, int *ret)
{
	int index = post->done;
	int last;
	int i;

	for (; index < end; index = last + 1) {
		last = post_send_last_of_link(post, index);
		for (i = index; i <= last; i++) {
			if (post_send_take_extra(post, i, ret))
				continue;
			post_send_undo(post, index, i);
			return index;
		}
	}
	return end;
}

/* ------------------------------------------------------------- wr_ids --- */

static uint64_t post_send_own_wr_id(const struct rt_post *post,
				    const struct rpma_rt_wr *wr)
{
	if (wr->lease != NULL)
		return rt_wr_id(rt_post_conn(post)->own[SIDE].leases,
				rt_pool_cookie_of(wr->lease));
	return wr->future != NULL
		       ? rt_post_future_wr_id(wr->future)
		       : rt_wr_id(post_send_route_of(post, wr)->number,
				  wr->context);
}

/* Returns the wr_id of a work request. A part has the wr_id of its link's last
 * work request: a failed part completes with the route and the context of the
 * last. */
static uint64_t post_send_wr_id_of(const struct rt_post *post, int index)
{
	const struct rpma_rt_wr *wr = &post->sends[index];
	int of = post_send_is_part(wr) ? post_send_last_of_link(post, index)
				       : index;

	return post_send_own_wr_id(post, &post->sends[of]) |
	       (post_send_is_silent(wr) ? RT_ON_ERROR_ONLY : 0);
}

static uint8_t post_send_link_of(const struct rpma_rt_wr *wr)
{
	return (uint8_t)((wr->flags & RPMA_RT_F_LINKED ? RT_LINK_GOES_ON : 0) |
			 (post_send_is_part(wr) ? RT_LINK_PART : 0));
}

/* ----------------------------------------------------- librpma's form --- */

static int post_send_prepare_flush(struct rpma_rt_conn *conn,
				   const struct rpma_rt_wr *wr, uint64_t wr_id,
				   int flags, struct rpma_send_wr *out)
{
	int ret = 0;

	if (wr->flush_type == RPMA_FLUSH_TYPE_PERSISTENT)
		ret = rt_peer_apply_poster(conn);
	if (ret)
		return ret;
	return rpma_wr_flush(conn->conn, wr->remote, wr->remote_offset, wr->len,
			     (enum rpma_flush_type)wr->flush_type, flags, wr_id,
			     out);
}

/* Prepares an operation. part: the first piece. flags: librpma's flags */
static int post_send_prepare_op(struct rpma_rt_conn *conn,
				const struct rpma_rt_wr *wr,
				const struct rpma_sge *part, uint64_t wr_id,
				int flags, struct rpma_send_wr *out)
{
	struct rpma_conn *c = conn->conn;

	switch (wr->op) {
	case RPMA_RT_OP_SEND:
		return rpma_wr_send(c, part->mr, part->offset, part->len, flags,
				    wr_id, out);
	case RPMA_RT_OP_SEND_WITH_IMM:
		return rpma_wr_send_with_imm(c, part->mr, part->offset,
					     part->len, flags, wr->imm, wr_id,
					     out);
	case RPMA_RT_OP_WRITE:
		return rpma_wr_write(c, wr->remote, wr->remote_offset, part->mr,
				     part->offset, part->len, flags, wr_id,
				     out);
	case RPMA_RT_OP_WRITE_WITH_IMM:
		return rpma_wr_write_with_imm(c, wr->remote, wr->remote_offset,
					      part->mr, part->offset, part->len,
					      flags, wr->imm, wr_id, out);
	case RPMA_RT_OP_READ: /* a piece is const, whatever the piece is for */
		return rpma_wr_read(c,
				    (struct rpma_mr_local *)(uintptr_t)part->mr,
				    part->offset, wr->remote, wr->remote_offset,
				    part->len, flags, wr_id, out);
	case RPMA_RT_OP_FLUSH:
		return post_send_prepare_flush(conn, wr, wr_id, flags, out);
	case RPMA_RT_OP_ATOMIC_WRITE:
		return rpma_wr_atomic_write(c, wr->remote, wr->remote_offset,
					    wr->data, flags, wr_id, out);
	case RPMA_RT_OP_COMPARE_SWAP:
		return rpma_wr_atomic_cmp_swp(c, wr->local, wr->local_offset,
					      wr->remote, wr->remote_offset,
					      wr->compare_add, wr->swap, flags,
					      wr_id, out);
	case RPMA_RT_OP_FETCH_ADD:
		return rpma_wr_atomic_fetch_add(
			c, wr->local, wr->local_offset, wr->remote,
			wr->remote_offset, wr->compare_add, flags, wr_id, out);
	}
	return RPMA_E_INVAL;
}

/* Prepares a valid work request; the pieces are written to sge. ERRORS: errors
 * of librpma */
static int post_send_prepare_any(struct rpma_rt_conn *conn,
				 const struct rpma_rt_wr *wr, uint64_t wr_id,
				 bool signaled, struct ibv_sge *sge,
				 struct rpma_send_wr *out)
{
	const struct rpma_sge whole = {wr->local, wr->local_offset, wr->len};
	const struct rpma_sge *part = wr->piece_count ? wr->pieces : &whole;
	int flags = (int)(wr->flags &
			  (RPMA_F_FENCE | RPMA_F_SOLICITED | RPMA_F_INLINE)) |
		    (signaled ? RPMA_F_COMPLETION_ALWAYS
			      : RPMA_F_COMPLETION_ON_ERROR);
	int ret = post_send_prepare_op(conn, wr, part, wr_id, flags, out);

	if (ret || wr->piece_count == 0)
		return ret;
	return rpma_wr_set_sge_list(wr->pieces, (int)wr->piece_count, sge, out);
}

/* Returns whether librpma may refuse the operation of a valid work request. */
static bool post_send_may_refuse(const struct rpma_rt_wr *wr)
{
	return wr->op == RPMA_RT_OP_FLUSH || wr->op >= RPMA_RT_OP_COMPARE_SWAP;
}

/* Returns the opcode of the completion after a success. */
static inline uint8_t post_send_opcode_of(uint32_t op, bool is_native)
{
	static const uint8_t opcodes[] = {
		[RPMA_RT_OP_SEND] = IBV_WC_SEND,
		[RPMA_RT_OP_SEND_WITH_IMM] = IBV_WC_SEND,
		[RPMA_RT_OP_WRITE] = IBV_WC_RDMA_WRITE,
		[RPMA_RT_OP_WRITE_WITH_IMM] = IBV_WC_RDMA_WRITE,
		[RPMA_RT_OP_READ] = IBV_WC_RDMA_READ,
		[RPMA_RT_OP_FLUSH] = IBV_WC_RDMA_READ,
		[RPMA_RT_OP_ATOMIC_WRITE] = IBV_WC_RDMA_WRITE,
		[RPMA_RT_OP_COMPARE_SWAP] = IBV_WC_COMP_SWAP,
		[RPMA_RT_OP_FETCH_ADD] = IBV_WC_FETCH_ADD,
	};

	if (is_native)
		return op == RPMA_RT_OP_FLUSH ? WC_FLUSH : WC_ATOMIC_WRITE;
	return opcodes[op];
}

/* -------------------------------------------------------------- alone --- */

/* Prepares a work request that librpma does not refuse. */
static void post_send_prepare(const struct rt_post *post, int index,
			      uint64_t wr_id, bool signaled,
			      struct ibv_sge *sge, struct rpma_send_wr *out)
{
	const struct rpma_rt_wr *wr = &post->sends[index];
	int ret = post_send_prepare_any(rt_post_conn(post), wr, wr_id, signaled,
					sge, out);

	assert(ret == 0);
	(void)ret;
}

/* Appends entries for the work requests before `end`, and gives the work
 * requests to the device. Returns false if the device refused a work
 * request. */
static bool post_noted(struct rt_post *post, int end)
{
	struct rt_ledger *ledger = &rt_post_conn(post)->gate[SIDE].ledger;
	uint32_t tick = rt_poller_date(rt_post_conn(post)->poller);
	uint32_t entry = ledger->tail;
	struct rpma_send_wr chain[RT_POST_CHUNK];
	struct ibv_sge sge[RT_WR_MAX_SGE];
	uint32_t pieces;
	int i;
	int n;

	for (i = post->done; i < end; i++) {
		rt_hold_append_one(
			rt_post_conn(post), SIDE, post_send_wr_id_of(post, i),
			post_send_opcode_of(post->sends[i].op, false), tick);
		if (post_send_link_of(&post->sends[i]) != 0)
			rt_ledger_link(ledger,
				       post_send_link_of(&post->sends[i]));
	}
	while (post->done < end) {
		pieces = 0;
		for (n = 0; n < RT_POST_CHUNK && post->done + n < end; n++) {
			i = post->done + n;
			if (pieces + post->sends[i].piece_count > RT_WR_MAX_SGE)
				break;
			post_send_prepare(
				post, i, post_send_wr_id_of(post, i),
				ledger->entries[(entry + (uint32_t)n) &
						ledger->mask]
					.signaled,
				&sge[pieces], &chain[n]);
			pieces += post->sends[i].piece_count;
		}
		i = rt_hold_give_sends(rt_post_conn(post), chain, n);
		post->done += i;
		entry += (uint32_t)i;
		if (i < n)
			return false;
	}
	return true;
}

/* Posts as many of the work requests before `end` as are ready. Returns false
 * if the device refused a work request. */
static bool post_any_alone(struct rt_post *post, int end)
{
	struct rt_ledger *ledger = &rt_post_conn(post)->gate[SIDE].ledger;

	end = post_send_take_extras(post, post_send_end_of_ready(post, end),
				    &post->error);
	if (post->error) {
		post_send_undo(post, post->done, end);
		return true;
	}
	if (post_noted(post, end))
		return true;
	rt_ledger_refuse(ledger, (uint32_t)(end - post->done));
	post->done = end; /* the refused work requests count as taken, too */
	return false;
}

/* ------------------------------------------------------------- in line --- */

/* Returns whether the future of a link may be taken back while the link is in
 * line: not if other work requests of the link complete by themselves. */
static bool post_send_may_take_back(const struct rt_post *post, int first,
				    int last)
{
	for (; first < last; first++) {
		if (!post_send_is_part(&post->sends[first]))
			return false;
	}
	return post->sends[last].future != NULL;
}

static int post_send_fill_slot(const struct rt_post *post, int index,
			       uint16_t slot)
{
	const struct rpma_rt_wr *wr = &post->sends[index];
	struct ibv_sge sge[RT_WR_MAX_SGE];
	struct rpma_send_wr out = {0};
	struct rt_line_send *send;
	int ret = post_send_prepare_any(rt_post_conn(post), wr,
					post_send_wr_id_of(post, index), false,
					sge, &out);

	if (ret)
		return rt_wr_refuse_for(index, ret);
	rt_line_put_send(post->turn, slot, &out);
	send = rt_line_slot(post->turn, slot);
	send->completes = post_send_opcode_of(wr->op, out.native != 0);
	send->link = post_send_link_of(wr);
	return 0;
}

/* Fills the work requests before `end` into slots, the last work request first.
 * librpma also looks at the work requests behind, which have no place yet. */
static int post_send_fill_slots(const struct rt_post *post, int end,
				uint16_t slot)
{
	struct rpma_send_wr scratch;
	int ret = 0;
	int i;

	for (i = end - 1; i >= post->done && ret == 0; i--) {
		ret = post_send_fill_slot(post, i, slot);
		slot = rt_freelist_next(&post->turn->free, slot);
	}
	for (i = end; i < post->count && ret == 0; i++) {
		if (!post_send_may_refuse(&post->sends[i]))
			continue;
		ret = post_send_prepare_any(rt_post_conn(post), &post->sends[i],
					    0, true, NULL, &scratch);
		if (ret)
			rt_wr_refuse_for(i, ret);
	}
	return ret;
}

/* Allows the futures of the work requests before `end` to be taken back from
 * here on. */
static void post_send_show_futures(const struct rt_post *post, int end,
				   uint16_t slot)
{
	struct rt_line_send *send;
	int first;
	int i;

	for (i = end - 1; i >= post->done; i--) {
		send = rt_line_slot(post->turn, slot);
		slot = rt_freelist_next(&post->turn->free, slot);
		if (post->sends[i].flags & RPMA_RT_F_LINKED)
			/* the link's last work request has the future */
			continue;
		first = i;
		while (first > post->done &&
		       (post->sends[first - 1].flags & RPMA_RT_F_LINKED))
			first--;
		if (!post_send_may_take_back(post, first, i))
			continue;
		rt_future_stand_in_line(
			rt_future_slot(post->sends[i].future),
			post_send_opcode_of(post->sends[i].op, false),
			rt_post_conn(post)->qp_num);
		send->is_waited = 1;
	}
}

static int post_send_fill(const struct rt_post *post, int end, uint16_t slot)
{
	int ret = post_send_fill_slots(post, end, slot);

	if (ret == 0)
		post_send_show_futures(post, end, slot);
	return ret;
}

static int post_send_take(struct rt_post *post, uint64_t seen, int end,
			  int *ret)
{
	*ret = rt_post_look_again(post, seen);
	return *ret ? post->done
		    : post_send_take_extras(
			      post, post_send_end_of_ready(post, end), ret);
}

/* ------------------------------------------------------------ the call --- */

static int post_send_alone(struct rt_post *post, uint64_t seen);

static const struct rt_post_ops send_ops = {
	.object = &rt_post_side_ops,
	.check = post_send_check,
	.alone = post_send_alone,
	.last_of_link = post_send_last_of_link,
	.take = post_send_take,
	.undo = post_send_undo,
	.fill = post_send_fill,
};

static int post_send_alone(struct rt_post *post, uint64_t seen)
{
	return rt_post_alone(post, &send_ops, SIDE, seen, post_any_alone);
}

int rt_post_send_any(struct rpma_rt_conn *conn, const struct rpma_rt_wr *wr,
		     int count)
{
	struct rt_post post = {.turn = &conn->gate[SIDE].turn,
			       .object = conn,
			       .sends = wr,
			       .count = count,
			       .side = SIDE};
	int ret = rt_post_run(&post, &send_ops);

	return ret == 0 ? post.done : rt_post_answer(post.done, ret);
}
