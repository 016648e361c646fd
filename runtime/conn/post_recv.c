/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * post_recv.c -- posting receives of a connection, as post_send.c posts sends.
 * Those of a connection on a shared receive queue are posted to that. Any
 * thread. doc/protocols/ledger.md, wr_id.md.
 */

#include <infiniband/verbs.h>

#include "base/chunks.h"
#include "base/likely.h"
#include "base/refuse.h"
#include "base/verb.h"
#include "base/wr.h"
#include "conn/fault.h"
#include "conn/post.h"
#include "conn/reason.h"

/* A call of rpma_rt_post_recv(), inside the gate; as that of post_send.c. */
struct batch {
	struct rt_chunks chunks; /* first */
	struct rpma_rt_conn *conn;
	struct rt_gate *gate;
	const struct rpma_rt_recv_wr *wr;
	int admitted; /* those before it waited: they have credit and slots */
	int futures;  /* those before it, if they have one, have its slot */
	struct rpma_recv_wr chain[RT_POST_CHUNK];
	struct ibv_sge sge[RT_WR_MAX_SGE];
};

static inline struct batch *batch_of(struct rt_chunks *chunks)
{
	return (struct batch *)chunks;
}

/* One piece, or none, and a route of this side: the usual one, which is looked
 * at once. */
static inline bool is_plain(const struct rpma_rt_conn *conn,
			    const struct rpma_rt_recv_wr *wr)
{
	return rt_wr_is_plain_recv(wr) &&
	       rt_post_is_route(conn, wr->route, RPMA_RT_RECV_SIDE);
}

/* 0, RPMA_E_INVAL, RPMA_RT_E_CLOSED (its route). */
static int check(struct rt_chunks *chunks, int index)
{
	const struct batch *b = batch_of(chunks);

	return is_plain(b->conn, &b->wr[index])
		       ? 0
		       : rt_fault_check_recv(b->conn, &b->wr[index], index);
}

/* An error of a later receive comes before the lack of credit. */
static int await_credit(struct batch *b, int index,
			const struct rpma_rt_route *route)
{
	int ret = rt_chunks_check_rest(&b->chunks, check, index);

	return ret ? ret : rt_post_await_credit(b->gate, route, 1);
}

static bool has_future(const struct rpma_rt_recv_wr *wr)
{
	return wr->future != NULL;
}

static int take_future(struct batch *b, int index)
{
	const struct rpma_rt_recv_wr *wr = &b->wr[index];
	int ret = rt_chunks_check_rest(&b->chunks, check, index);

	if (ret == 0)
		ret = rt_post_take_future(b->conn, RPMA_RT_RECV_SIDE,
					  wr->context, wr->future);
	if (ret == 0)
		b->futures = index + 1;
	return ret;
}

/* The slots of those that were not posted. */
static void return_futures(const struct batch *b)
{
	int i;

	for (i = b->chunks.posted; i < b->futures; i++) {
		if (has_future(&b->wr[i]))
			rt_post_return_future(b->wr[i].future);
	}
}

/* ----------------------------------------------------- waiting for room --- */

static bool may_wait(const struct batch *b, int index)
{
	return rt_post_may_wait(b->conn, b->gate) && has_future(&b->wr[index]);
}

/* As in post_send.c: 0; RT_CHUNKS_WAIT. ERRORS: RPMA_E_AGAIN */
static int wait_for_room(struct batch *b)
{
	struct rt_waiting *waiting = rt_post_waiting(b->gate);
	const struct rpma_rt_recv_wr *wr = &b->wr[b->chunks.posted];
	int ret;

	if (!may_wait(b, b->chunks.posted) || !rt_waiting_has_room(waiting, 1))
		return RT_CHUNKS_WAIT;
	ret = rt_post_take_future(b->conn, RPMA_RT_RECV_SIDE, wr->context,
				  wr->future);
	if (ret)
		return ret;
	rt_waiting_add_recv(waiting, wr);
	rt_future_wait_for_room(rt_future_slot(wr->future), IBV_WC_RECV,
				b->conn->qp_num);
	b->chunks.posted++;
	return 0;
}

/* Its credit and, if it has a future, a slot; or it is among those that have
 * both. */
static int admit(struct batch *b, int index, const struct rpma_rt_route *route)
{
	int ret = 0;

	if (index < b->admitted)
		return 0;
	if (!rt_post_has_credit(b->gate, route, 1)) {
		if (may_wait(b, index) && rt_post_is_full(b->gate, route, 1)) {
			ret = rt_chunks_check_rest(&b->chunks, check, index);
			return ret ? ret : RT_CHUNKS_WAIT;
		}
		ret = await_credit(b, index, route);
	}
	if (ret == 0 && has_future(&b->wr[index]))
		ret = take_future(b, index);
	return ret;
}

/* One that is not plain, or has to wait for credit. */
__attribute__((noinline)) static int append_any(struct batch *b, int index,
						struct rpma_recv_wr *out)
{
	const struct rpma_rt_recv_wr *wr = &b->wr[index];
	const struct rpma_rt_route *route;
	uint64_t wr_id;
	int ret = 0;

	if (rt_chunks_is_full(&b->chunks, wr->piece_count))
		return RT_CHUNKS_FULL;
	if (index >= b->chunks.checked)
		ret = check(&b->chunks, index);
	if (ret)
		return ret;
	/* a future is as the connection's own: there goes its message when it
	 * is dropped */
	route = rt_post_route(b->conn, has_future(wr) ? NULL : wr->route,
			      RPMA_RT_RECV_SIDE);
	ret = admit(b, index, route);
	if (ret)
		return ret;
	wr_id = has_future(wr) ? rt_post_future_wr_id(wr->future)
			       : rt_wr_id(route->number, wr->context);
	ret = rt_wr_prepare_recv(wr, wr_id, &b->sge[b->chunks.pieces], out);
	if (ret)
		return rt_wr_refuse_for(index, ret);
	b->chunks.pieces += wr->piece_count;
	rt_ledger_append(&b->gate->ledger, wr_id, IBV_WC_RECV, true);
	return 0;
}

/* Puts the next receive into the chain and the ledger. */
static inline int append(struct rt_chunks *chunks, int index, int n)
{
	struct batch *b = batch_of(chunks);
	struct rpma_recv_wr *out = &b->chain[n];
	const struct rpma_rt_recv_wr *wr = &b->wr[index];
	const struct rpma_rt_route *route;
	uint64_t wr_id;
	int ret;

	/* of the one before; this one's is NULL from its preparation on */
	if (n > 0)
		out[-1].wr.next = &out->wr;
	if (unlikely(!is_plain(b->conn, wr)))
		return append_any(b, index, out);
	route = rt_post_route(b->conn, wr->route, RPMA_RT_RECV_SIDE);
	if (unlikely(!rt_post_has_credit(b->gate, route, 1)))
		return append_any(b, index, out);
	wr_id = rt_wr_id(route->number, wr->context);
	ret = rpma_wr_recv(wr->dst, wr->offset, wr->len, wr_id, out);
	if (unlikely(ret))
		return ret;
	rt_ledger_append(&b->gate->ledger, wr_id, IBV_WC_RECV, true);
	return 0;
}

static inline int ring(struct rt_chunks *chunks)
{
	struct batch *b = batch_of(chunks);
	struct ibv_recv_wr *bad = NULL;
	int taken;
	int err;

	b->chain[chunks->n - 1].wr.next = NULL;
	/* by the queue pair: the request becomes a connection meanwhile */
	err = rt_verb_post_recv(b->gate->enters_kernel, b->conn->qp,
				&b->chain[0].wr, &bad);
	if (likely(err == 0))
		return chunks->n;
	rt_reason_refused(b->conn, err);
	taken = bad ? (int)((struct rpma_recv_wr *)bad - b->chain) : 0;
	rt_gate_refuse(b->gate, (uint32_t)(chunks->n - taken));
	chunks->posted += chunks->n - taken;
	return taken;
}

static void drop(struct rt_chunks *chunks)
{
	rt_ledger_take_back(&batch_of(chunks)->gate->ledger,
			    (uint32_t)chunks->n);
}

static const struct rt_chunks_ops ops = {
	.check = check,
	.append = append,
	.ring = ring,
	.drop = drop,
};

static inline void begin(struct batch *b, struct rpma_rt_conn *conn,
			 const struct rpma_rt_recv_wr *wr, int count)
{
	rt_chunks_begin(&b->chunks, count);
	b->conn = conn;
	b->gate = &conn->gate[RPMA_RT_RECV_SIDE];
	b->wr = wr;
	b->admitted = 0;
	b->futures = 0;
}

/* As in post_send.c. */
static bool run_waiting(struct rpma_rt_conn *conn, struct rt_waiting *waiting,
			uint32_t count)
{
	struct batch b;
	int ret;

	begin(&b, conn, &waiting->recvs[waiting->first], (int)count);
	b.chunks.checked = (int)count;
	b.admitted = (int)count;
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

	while (ret == 0 && b->chunks.posted < b->chunks.count)
		ret = wait_for_room(b);
	rt_post_waiting_by(b->gate, resume);
	gone = rt_post_go_on(b->conn, RPMA_RT_RECV_SIDE, run_waiting);
	if (gone == RPMA_E_PROVIDER || ret < 0)
		return gone == RPMA_E_PROVIDER ? gone : ret;
	if (gone == RPMA_E_AGAIN)
		return ret == 0 ? 0
				: rt_post_stay_behind(b->conn,
						      RPMA_RT_RECV_SIDE);
	return rt_chunks_post(&b->chunks, &ops);
}

/* The rest of a call, inside the gate. entered: with which answer. */
__attribute__((noinline)) static int go_behind(struct batch *b, int entered)
{
	int ret = RT_CHUNKS_WAIT;

	if (entered == RT_GATE_BEHIND) {
		b->gate->ledger.tick = rt_poller_date(b->conn->poller);
		ret = rt_chunks_check_rest(&b->chunks, check, 0);
		ret = ret ? ret : RT_CHUNKS_WAIT;
	}
	while (ret == RT_CHUNKS_WAIT)
		ret = post_behind(b);
	return ret;
}

int rpma_rt_post_recv(struct rpma_rt_conn *conn,
		      const struct rpma_rt_recv_wr *wr, int count)
{
	struct batch b;
	int entered;
	int ret;

	if (!rt_post_has_some(conn, wr, count))
		return rt_post_nothing(conn, wr, count, RPMA_RT_RECV_SIDE);
	entered = rt_post_enter(conn, RPMA_RT_RECV_SIDE);
	if (unlikely(entered < 0))
		return entered;
	begin(&b, conn, wr, count);
	ret = likely(entered == 0) ? rt_chunks_post(&b.chunks, &ops)
				   : RT_CHUNKS_WAIT;
	if (unlikely(ret == RT_CHUNKS_WAIT))
		ret = go_behind(&b, entered);
	if (unlikely(b.futures > 0))
		return_futures(&b);
	rt_gate_leave(b.gate);
	return ret == 0 ? b.chunks.posted
			: rt_post_answer(conn, b.chunks.posted, ret);
}
