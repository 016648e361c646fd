/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * post_send.c -- posting work requests of the send side: each is validated,
 * gets its credit, is prepared by librpma and noted in the ledger; then a chain
 * of them is given to the device. The usual call, of one that is plain, has a
 * straight way. Any thread. See doc/protocols/ledger.md.
 */

#include <errno.h>
#include <infiniband/verbs.h>

#include "base/chunks.h"
#include "base/failure.h"
#include "base/likely.h"
#include "base/refuse.h"
#include "base/verb.h"
#include "base/wr.h"
#include "conn/fault.h"
#include "conn/post.h"
#include "conn/prepare.h"
#include "conn/reason.h"
#include "pool/pool.h"

/* A call of rpma_rt_post_send() with many, inside the gate. */
struct batch {
	struct rt_chunks chunks; /* first */
	struct rpma_rt_conn *conn;
	struct rt_gate *gate;
	const struct rpma_rt_wr *wr;
	int admitted; /* those before it, of a link, have their credit */
	int taken;    /* those before it hold the slot of their future or
		       * lease, if they have one */
	bool has_native;
	bool is_log_held; /* until the gate is left */
	struct rpma_send_wr chain[RT_POST_CHUNK];
	struct ibv_sge sge[RT_WR_MAX_SGE];
};

static inline struct batch *batch_of(struct rt_chunks *chunks)
{
	return (struct batch *)chunks;
}

/* What librpma may refuse is logged behind the gate: the log's function is the
 * program's, and may post itself. */
static void hold_log(struct batch *b)
{
	if (!b->is_log_held)
		rpma_log_hold();
	b->is_log_held = true;
}

/* --------------------------------------------------------- validation --- */

static bool is_part(const struct rpma_rt_wr *wr)
{
	return wr->flags & RPMA_RT_F_PART;
}

static bool has_future(const struct rpma_rt_wr *wr)
{
	return wr->future != NULL;
}

/* A valid send, write or read of one piece, without anything special: the usual
 * one, which is looked at once. */
static inline bool is_plain(const struct rpma_rt_conn *conn,
			    const struct rpma_rt_wr *wr)
{
	const uint64_t special = (wr->flags & ~(uint32_t)RT_WR_COMPLETIONS) |
				 wr->piece_count | wr->reserved32 |
				 (uintptr_t)wr->future | (uintptr_t)wr->lease |
				 (wr->context & ~RT_COOKIE_MASK);

	if (unlikely(special || wr->local == NULL ||
		     wr->flags == RT_WR_HALF_OF_ALWAYS ||
		     !rt_post_is_route(conn, wr->route, RPMA_RT_SEND_SIDE)))
		return false;
	return wr->op == RPMA_RT_OP_SEND ||
	       ((wr->op == RPMA_RT_OP_WRITE || wr->op == RPMA_RT_OP_READ) &&
		wr->remote != NULL);
}

/* 0, RPMA_E_INVAL, RPMA_RT_E_CLOSED (its route). */
static int check(const struct batch *b, int index)
{
	return is_plain(b->conn, &b->wr[index])
		       ? 0
		       : rt_fault_check_send(b->conn, b->wr, b->chunks.count,
					     index);
}

/* Ahead of the chain, with what only librpma knows. */
static int check_ahead(struct rt_chunks *chunks, int index)
{
	struct batch *b = batch_of(chunks);
	int ret = check(b, index);

	if (ret || !rt_prepare_may_refuse(&b->wr[index]))
		return ret;
	hold_log(b);
	return rt_prepare_check(b->conn, &b->wr[index], index);
}

/* -------------------------------------------------------------- credit --- */

/* The last of the link that begins there, or itself. */
static int last_of_link(const struct batch *b, int index)
{
	while (b->wr[index].flags & RPMA_RT_F_LINKED)
		index++;
	return index;
}

/* Has no lane, so nobody is behind: of work requests with a lease. */
static const struct rpma_rt_route to_pool;

/* A future is as the connection's own: there goes what is dropped of it. */
static const struct rpma_rt_route *route_of(const struct batch *b,
					    const struct rpma_rt_wr *wr)
{
	if (wr->lease != NULL)
		return &to_pool;
	return rt_post_route(b->conn, has_future(wr) ? NULL : wr->route,
			     RPMA_RT_SEND_SIDE);
}

static bool keeps_lease(const struct rpma_rt_wr *wr)
{
	return wr->flags & RPMA_RT_F_KEEP;
}

static int take_lease(struct batch *b, int index)
{
	const struct rpma_rt_wr *wr = &b->wr[index];

	if (!rt_pool_begin_send(wr->lease, keeps_lease(wr)))
		return rt_wr_refuse(index, "has a lease that was given away "
					   "before");
	b->taken = index + 1;
	return 0;
}

/* A slot for its future, or a hold of the slot of its lease, if it has one. */
static int take_slot(struct batch *b, int index)
{
	const struct rpma_rt_wr *wr = &b->wr[index];
	int ret;

	if (wr->lease != NULL)
		return take_lease(b, index);
	if (!has_future(wr))
		return 0;
	/* before a want is left */
	ret = rt_chunks_check_rest(&b->chunks, check_ahead, index);
	if (ret == 0)
		ret = rt_post_take_future(b->conn, RPMA_RT_SEND_SIDE,
					  wr->context, wr->future);
	if (ret == 0)
		b->taken = index + 1;
	return ret;
}

/* The slots of those that were not posted. */
static void return_slots(const struct batch *b)
{
	const struct rpma_rt_wr *wr = &b->wr[b->chunks.posted];

	for (; wr < &b->wr[b->taken]; wr++) {
		if (wr->lease != NULL)
			rt_pool_undo_send(wr->lease, keeps_lease(wr));
		else if (has_future(wr))
			rt_post_return_future(wr->future);
	}
}

/* An error of a later one comes before the lack of credit, which leaves a
 * want. */
static int await_credit(struct batch *b, int index, uint32_t count)
{
	const struct rpma_rt_route *route = route_of(b, &b->wr[index]);
	int ret;

	if (rt_post_has_credit(b->gate, route, count))
		return 0;
	ret = rt_chunks_check_rest(&b->chunks, check_ahead, index);
	return ret ? ret : rt_post_await_credit(b->gate, route, count);
}

/* All of a link, before its first is in the chain. */
static int admit_link(struct batch *b, int index)
{
	int last = last_of_link(b, index);
	uint32_t count = (uint32_t)(last - index + 1);
	int ret = 0;
	int i;

	for (i = index; i <= last && ret == 0; i++)
		ret = await_credit(b, i, count);
	for (i = index; i <= last && ret == 0; i++)
		ret = take_slot(b, i);
	b->admitted = last + 1;
	return ret;
}

/* ----------------------------------------------------- waiting for room --- */

/* Is it a work request, or a link, that one future stands for? Bytes that are
 * copied at the call have nowhere to wait. */
static bool may_wait(const struct batch *b, int index, int last)
{
	int i;

	if (!rt_post_may_wait(b->conn, b->gate) || !has_future(&b->wr[last]) ||
	    (uint32_t)(last - index) >= rt_post_waiting(b->gate)->limit)
		return false;
	for (i = index; i <= last; i++) {
		if ((b->wr[i].flags & RPMA_F_INLINE) ||
		    (i < last && !is_part(&b->wr[i])))
			return false;
	}
	return true;
}

/* There is no room, and it may wait for that. */
static bool has_to_wait(const struct batch *b, int index)
{
	int last = last_of_link(b, index);
	uint32_t count = (uint32_t)(last - index + 1);
	const struct rpma_rt_route *route = route_of(b, &b->wr[last]);

	return !rt_post_has_credit(b->gate, route, count) &&
	       may_wait(b, index, last) &&
	       rt_post_is_full(b->gate, route, count);
}

/* 0; RT_CHUNKS_WAIT: the next one, or its link, is behind others for which
 * there is no more room. ERRORS: RPMA_E_AGAIN */
static int wait_for_room(struct batch *b)
{
	struct rt_waiting *waiting = rt_post_waiting(b->gate);
	int index = b->chunks.posted;
	int last = last_of_link(b, index);
	struct rt_future *slot;
	int ret;

	if (!may_wait(b, index, last) ||
	    !rt_waiting_has_room(waiting, (uint32_t)(last - index + 1)))
		return RT_CHUNKS_WAIT;
	ret = rt_post_take_future(b->conn, RPMA_RT_SEND_SIDE,
				  b->wr[last].context, b->wr[last].future);
	if (ret)
		return ret;
	for (; index <= last; index++)
		rt_waiting_add_send(waiting, &b->wr[index], index == last);
	slot = rt_future_slot(b->wr[last].future);
	rt_future_wait_for_room(slot, rt_prepare_opcode(b->wr[last].op, false),
				b->conn->qp_num);
	b->chunks.posted = last + 1;
	return 0;
}

static int admit(struct batch *b, int index)
{
	int ret;

	if (index < b->admitted)
		return 0;
	if (unlikely(has_to_wait(b, index))) {
		ret = rt_chunks_check_rest(&b->chunks, check_ahead, index);
		return ret ? ret : RT_CHUNKS_WAIT;
	}
	if (b->wr[index].flags & RPMA_RT_F_LINKED)
		return admit_link(b, index);
	ret = await_credit(b, index, 1);
	return ret ? ret : take_slot(b, index);
}

/* ----------------------------------------------------------- appending --- */

static bool is_silent(const struct rpma_rt_wr *wr)
{
	return is_part(wr) ||
	       (wr->flags & RT_WR_COMPLETIONS) == RPMA_F_COMPLETION_ON_ERROR;
}

static void link_entry(struct batch *b, const struct rpma_rt_wr *wr)
{
	uint8_t link = RT_LINK_GOES_ON;

	if (is_part(wr))
		link |= RT_LINK_PART;
	rt_ledger_link(&b->gate->ledger, link);
}

static uint64_t wr_id_of(const struct batch *b, int index)
{
	const struct rpma_rt_wr *wr = &b->wr[index];

	if (wr->lease != NULL)
		return rt_wr_id(b->conn->own[RPMA_RT_SEND_SIDE].leases,
				rt_pool_cookie_of(wr->lease));
	return has_future(wr) ? rt_post_future_wr_id(wr->future)
			      : rt_wr_id(route_of(b, wr)->number, wr->context);
}

/* One that is not plain, or has to wait for credit. */
static int append_any(struct batch *b, int index, struct rpma_send_wr *out)
{
	struct rt_ledger *ledger = &b->gate->ledger;
	const struct rpma_rt_wr *wr = &b->wr[index];
	bool silent = is_silent(wr);
	bool signaled;
	uint64_t wr_id;
	int ret = 0;

	if (rt_chunks_is_full(&b->chunks, wr->piece_count))
		return RT_CHUNKS_FULL;
	if (index >= b->chunks.checked)
		ret = check(b, index);
	if (ret == 0)
		ret = admit(b, index);
	if (ret)
		return ret;
	signaled = !silent || rt_ledger_must_signal(ledger);
	/* a part has that of its link's last: with whose route and context it
	 * completes when it fails */
	wr_id = wr_id_of(b, is_part(wr) ? last_of_link(b, index) : index) |
		(silent ? RT_ON_ERROR_ONLY : 0);
	if (rt_prepare_may_refuse(wr))
		hold_log(b);
	ret = rt_prepare_send(b->conn, wr, wr_id, signaled,
			      &b->sge[b->chunks.pieces], out);
	if (ret)
		return rt_wr_refuse_for(index, ret);
	b->chunks.pieces += wr->piece_count;
	rt_gate_append(b->gate, wr_id,
		       rt_prepare_opcode(wr->op, out->native != 0), signaled);
	if (wr->flags & RPMA_RT_F_LINKED)
		link_entry(b, wr);
	b->has_native |= out->native != 0;
	return 0;
}

/* A plain one that has its credit; silent: of a success it says nothing. */
__attribute__((always_inline)) static inline int
append_as(const struct rpma_rt_conn *conn, struct rt_gate *gate,
	  const struct rpma_rt_wr *wr, const struct rpma_rt_route *route,
	  bool silent, struct rpma_send_wr *out)
{
	bool signaled = !silent || rt_ledger_must_signal(&gate->ledger);
	uint64_t wr_id = rt_wr_id(route->number, wr->context) |
			 (silent ? RT_ON_ERROR_ONLY : 0);
	int ret = rt_prepare_plain(conn->conn, wr, wr_id, signaled, out);

	if (likely(ret == 0))
		rt_gate_append(gate, wr_id, rt_prepare_opcode(wr->op, false),
			       signaled);
	return ret;
}

__attribute__((always_inline)) static inline int
append_plain(const struct rpma_rt_conn *conn, struct rt_gate *gate,
	     const struct rpma_rt_wr *wr, const struct rpma_rt_route *route,
	     struct rpma_send_wr *out)
{
	return is_silent(wr) ? append_as(conn, gate, wr, route, true, out)
			     : append_as(conn, gate, wr, route, false, out);
}

/* Puts the next work request into the chain and the ledger. */
static inline int append(struct rt_chunks *chunks, int index, int n)
{
	struct batch *b = batch_of(chunks);
	struct rpma_send_wr *out = &b->chain[n];
	const struct rpma_rt_wr *wr = &b->wr[index];
	const struct rpma_rt_route *route;

	/* of the one before; this one's is NULL from its preparation on */
	if (n > 0)
		out[-1].wr.next = &out->wr;
	if (unlikely(!is_plain(b->conn, wr)))
		return append_any(b, index, out);
	route = rt_post_route(b->conn, wr->route, RPMA_RT_SEND_SIDE);
	if (unlikely(!rt_post_has_credit(b->gate, route, 1)))
		return append_any(b, index, out);
	return append_plain(b->conn, b->gate, wr, route, out);
}

/* ------------------------------------------------------------- posting --- */

/* Posts a chain without native operations: by verbs, on the queue pair, as
 * receives are posted. */
static int give_plain(struct batch *b, int *taken)
{
	struct ibv_send_wr *bad = NULL;
	int ret = rt_verb_post_send(b->gate->enters_kernel, b->conn->qp,
				    &b->chain[0].wr, &bad);

	if (ret) {
		rt_reason_refused(b->conn, ret);
		*taken = bad ? (int)((struct rpma_send_wr *)bad - b->chain) : 0;
	}
	return ret;
}

static int give(struct batch *b, int *taken)
{
	RT_NOT_CANCELLED;
	struct rpma_send_wr *bad = NULL;
	int ret;

	hold_log(b);
	ret = rpma_conn_post_send(b->conn->conn, b->conn, b->chain, &bad);
	if (ret) {
		/* RPMA_E_AGAIN: the device has no memory */
		rt_reason_refused(b->conn, ret == RPMA_E_AGAIN
						   ? ENOMEM
						   : rt_failure_errno(ret));
		*taken = bad ? (int)(bad - b->chain) : 0;
	}
	return ret;
}

static inline int ring(struct rt_chunks *chunks)
{
	struct batch *b = batch_of(chunks);
	int taken = chunks->n;
	int ret;

	/* a chain that ended early was linked to what was not appended */
	b->chain[chunks->n - 1].wr.next = NULL;
	ret = b->has_native ? give(b, &taken) : give_plain(b, &taken);
	if (ret) {
		rt_gate_refuse(b->gate, (uint32_t)(chunks->n - taken));
		chunks->posted += chunks->n - taken;
	}
	b->has_native = false;
	return taken;
}

static void drop(struct rt_chunks *chunks)
{
	rt_ledger_take_back(&batch_of(chunks)->gate->ledger,
			    (uint32_t)chunks->n);
}

static const struct rt_chunks_ops ops = {
	.check = check_ahead,
	.append = append,
	.ring = ring,
	.drop = drop,
};

static void begin(struct batch *b, struct rpma_rt_conn *conn,
		  const struct rpma_rt_wr *wr, int count)
{
	rt_chunks_begin(&b->chunks, count);
	b->conn = conn;
	b->gate = &conn->gate[RPMA_RT_SEND_SIDE];
	b->wr = wr;
	b->admitted = 0;
	b->taken = 0;
	b->has_native = false;
	b->is_log_held = false;
}

/* Posts what waited, and has its slots: checked when they were taken. */
static bool run_waiting(struct rpma_rt_conn *conn, struct rt_waiting *waiting,
			uint32_t count)
{
	struct batch b;
	int ret;

	begin(&b, conn, &waiting->sends[waiting->first], (int)count);
	b.chunks.checked = (int)count;
	b.admitted = (int)count;
	b.is_log_held = true; /* by the caller */
	/* what librpma refuses now is as what the device does */
	ret = rt_chunks_post(&b.chunks, &ops);
	if (ret != 0)
		rt_refuse_forget();
	waiting->first += (uint32_t)b.chunks.posted;
	return ret == 0;
}

/* See rt_waiting.resume. */
static int resume(struct rt_side *side)
{
	return rt_post_resume(side, run_waiting);
}

/* From the next one of the call on: behind what waits, as long as some does. */
static int post_behind(struct batch *b)
{
	int ret = 0;
	int gone;

	hold_log(b);
	while (ret == 0 && b->chunks.posted < b->chunks.count)
		ret = wait_for_room(b);
	rt_post_waiting_by(b->gate, resume);
	gone = rt_post_go_on(b->conn, RPMA_RT_SEND_SIDE, run_waiting);
	if (gone == RPMA_E_PROVIDER || ret < 0)
		return gone == RPMA_E_PROVIDER ? gone : ret;
	if (gone == RPMA_E_AGAIN)
		return ret == 0 ? 0
				: rt_post_stay_behind(b->conn,
						      RPMA_RT_SEND_SIDE);
	return rt_chunks_post(&b->chunks, &ops);
}

/* Any number of any kind; leaves the gate. entered: with which answer. */
__attribute__((noinline)) static int post_any(struct rpma_rt_conn *conn,
					      const struct rpma_rt_wr *wr,
					      int count, int entered)
{
	struct batch b;
	int ret;

	begin(&b, conn, wr, count);
	if (unlikely(entered == RT_GATE_BEHIND)) {
		b.gate->ledger.tick = rt_poller_date(conn->poller);
		ret = rt_chunks_check_rest(&b.chunks, check_ahead, 0);
		ret = ret ? ret : RT_CHUNKS_WAIT;
	} else {
		ret = rt_chunks_post(&b.chunks, &ops);
	}
	while (unlikely(ret == RT_CHUNKS_WAIT))
		ret = post_behind(&b);
	if (unlikely(b.taken > 0))
		return_slots(&b);
	rt_gate_leave(b.gate);
	if (b.is_log_held)
		rpma_log_release();
	return ret == 0 ? b.chunks.posted
			: rt_post_answer(conn, b.chunks.posted, ret);
}

/* Is it plain and has its credit? Then its route. */
static inline const struct rpma_rt_route *
ready_route(const struct rpma_rt_conn *conn, const struct rt_gate *gate,
	    const struct rpma_rt_wr *wr)
{
	const struct rpma_rt_route *route;

	if (!is_plain(conn, wr))
		return NULL;
	route = rt_post_route(conn, wr->route, RPMA_RT_SEND_SIDE);
	return rt_post_has_credit(gate, route, 1) ? route : NULL;
}

/* Such a one, in a straight line. */
static inline int post_plain(struct rpma_rt_conn *conn, struct rt_gate *gate,
			     const struct rpma_rt_wr *wr,
			     const struct rpma_rt_route *route)
{
	struct ibv_send_wr *bad;
	struct rpma_send_wr out;
	int ret = append_plain(conn, gate, wr, route, &out);

	if (unlikely(ret))
		return ret;
	ret = rt_verb_post_send(gate->enters_kernel, conn->qp, &out.wr, &bad);
	if (likely(ret == 0))
		return 0;
	rt_reason_refused(conn, ret);
	rt_gate_refuse(gate, 1);
	return RPMA_E_PROVIDER;
}

int rpma_rt_post_send(struct rpma_rt_conn *conn, const struct rpma_rt_wr *wr,
		      int count)
{
	const struct rpma_rt_route *route;
	struct rt_gate *gate;
	int ret;

	if (!rt_post_has_some(conn, wr, count))
		return rt_post_nothing(conn, wr, count, RPMA_RT_SEND_SIDE);
	ret = rt_post_enter(conn, RPMA_RT_SEND_SIDE);
	if (unlikely(ret))
		return ret < 0 ? ret : post_any(conn, wr, count, ret);
	gate = &conn->gate[RPMA_RT_SEND_SIDE];
	route = count == 1 ? ready_route(conn, gate, wr) : NULL;
	if (unlikely(route == NULL))
		return post_any(conn, wr, count, 0);
	ret = post_plain(conn, gate, wr, route);
	rt_gate_leave(gate);
	if (likely(ret == 0))
		return 1;
	return rt_post_answer(conn, ret == RPMA_E_PROVIDER, ret);
}
