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
#include "base/wr.h"
#include "conn/fault.h"
#include "conn/post.h"

/* A call of rpma_rt_post_recv(), inside the gate; as that of post_send.c. */
struct batch {
	struct rt_chunks chunks; /* first */
	struct rpma_rt_conn *conn;
	struct rt_gate *gate;
	const struct rpma_rt_recv_wr *wr;
	int futures; /* those before it, if they have one, have its slot */
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
		if (b->wr[i].flags & RPMA_RT_F_FUTURE)
			rt_post_return_future(b->wr[i].future);
	}
}

/* One that is not plain, or has to wait for credit. */
__attribute__((noinline)) static int append_any(struct batch *b, int index,
						struct rpma_recv_wr *out)
{
	const struct rpma_rt_recv_wr *wr = &b->wr[index];
	bool has_future = wr->flags & RPMA_RT_F_FUTURE;
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
	route = rt_post_route(b->conn, has_future ? NULL : wr->route,
			      RPMA_RT_RECV_SIDE);
	if (!rt_post_has_credit(b->gate, route, 1))
		ret = await_credit(b, index, route);
	if (ret == 0 && has_future)
		ret = take_future(b, index);
	if (ret)
		return ret;
	wr_id = has_future ? rt_post_future_wr_id(wr->future)
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

	b->chain[chunks->n - 1].wr.next = NULL;
	/* by the queue pair: the request becomes a connection meanwhile */
	if (ibv_post_recv(b->conn->qp, &b->chain[0].wr, &bad) == 0)
		return chunks->n;
	taken = bad ? (int)((struct rpma_recv_wr *)bad - b->chain) : 0;
	rt_ledger_take_back(&b->gate->ledger, (uint32_t)(chunks->n - taken));
	return taken;
}

static void drop(struct rt_chunks *chunks)
{
	rt_ledger_take_back(&batch_of(chunks)->gate->ledger,
			    (uint32_t)chunks->n);
}

int rpma_rt_post_recv(struct rpma_rt_conn *conn,
		      const struct rpma_rt_recv_wr *wr, int count)
{
	static const struct rt_chunks_ops ops = {
		.check = check,
		.append = append,
		.ring = ring,
		.drop = drop,
	};
	struct batch b;
	int ret;

	if (!rt_post_has_some(conn, wr, count))
		return rt_post_nothing(conn, wr, count, RPMA_RT_RECV_SIDE);
	ret = rt_post_enter(conn, RPMA_RT_RECV_SIDE);
	if (unlikely(ret))
		return ret;
	rt_chunks_begin(&b.chunks, count);
	b.conn = conn;
	b.gate = &conn->gate[RPMA_RT_RECV_SIDE];
	b.wr = wr;
	b.futures = 0;
	ret = rt_chunks_post(&b.chunks, &ops);
	if (unlikely(b.futures > 0))
		return_futures(&b);
	rt_gate_leave(b.gate);
	return ret == 0 ? b.chunks.posted
			: rt_post_answer(conn, b.chunks.posted, ret);
}
