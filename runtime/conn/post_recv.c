/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * post_recv.c -- posting receives of a connection, as post_send.c posts sends.
 * Those of a connection on a shared receive queue are posted to that. Any
 * thread. doc/protocols/ledger.md, wr_id.md.
 */

#include <infiniband/verbs.h>

#include "base/wr.h"
#include "conn/post.h"
#include "poller/want.h"

/* A call of rpma_rt_post_recv(), inside the gate; as that of post_send.c. */
struct batch {
	struct rpma_rt_conn *conn;
	struct rt_gate *gate;
	const struct rpma_rt_recv_wr *wr;
	int count;
	int checked;
	int posted;
	int n;
	struct rpma_recv_wr chain[RT_POST_CHUNK];
	struct rt_wr_pieces pieces;
};

static int fault(const struct batch *b, int index)
{
	const struct rpma_rt_recv_wr *wr = &b->wr[index];
	const char *wrong = rt_wr_recv_fault(wr, b->conn->max_sge);

	if (wrong != NULL)
		return rt_wr_refuse(index, wrong);
	if (rt_post_is_route(b->conn, wr->route, RPMA_RT_RECV_SIDE))
		return 0;
	return rt_post_refuse_route(b->conn, wr->route, RPMA_RT_RECV_SIDE,
				    index);
}

/* 0, RPMA_E_INVAL, RPMA_RT_E_CLOSED (its route). */
static inline int check(const struct batch *b, int index)
{
	const struct rpma_rt_recv_wr *wr = &b->wr[index];

	if (rt_post_is_route(b->conn, wr->route, RPMA_RT_RECV_SIDE) &&
	    rt_wr_is_plain_recv(wr))
		return 0;
	return fault(b, index);
}

/* Checks the receives from index on, ahead of the chain. */
static int check_from(struct batch *b, int index)
{
	int ret;

	for (; index < b->count; index++) {
		ret = check(b, index);
		if (ret)
			return ret;
	}
	b->checked = b->count;
	return 0;
}

/* An error of a later receive comes before the lack of credit. */
static int await_credit(struct batch *b, int index,
			const struct rpma_rt_route *route)
{
	int ret = 0;

	if (b->checked < b->count)
		ret = check_from(b, index);
	return ret ? ret : rt_post_await_credit(b->gate, route, 1);
}

static int append(struct batch *b, int index, struct rpma_recv_wr *out)
{
	const struct rpma_rt_recv_wr *wr = &b->wr[index];
	const struct rpma_rt_route *route =
		rt_post_route(b->conn, wr->route, RPMA_RT_RECV_SIDE);
	uint64_t wr_id;
	int ret = 0;

	if (index >= b->checked)
		ret = check(b, index);
	if (ret)
		return ret;
	if (!rt_post_has_credit(b->gate, route, 1))
		ret = await_credit(b, index, route);
	if (ret)
		return ret;
	wr_id = rt_wr_id(route->number, wr->context);
	ret = rt_wr_prepare_recv(wr, wr_id, &b->pieces, out);
	if (ret)
		return ret;
	rt_ledger_append(&b->gate->ledger, wr_id, IBV_WC_RECV, true);
	return 0;
}

static int fill(struct batch *b)
{
	int most = b->count - b->posted;
	uint32_t count;
	int ret = 0;
	int n = 0;

	b->pieces.used = 0;
	if (most > RT_POST_CHUNK)
		most = RT_POST_CHUNK;
	while (n < most) {
		count = b->wr[b->posted + n].piece_count;
		if (count != 0 && !rt_wr_has_pieces(&b->pieces, count)) {
			if (b->checked < b->count)
				ret = check_from(b, b->posted + n);
			break;
		}
		ret = append(b, b->posted + n, &b->chain[n]);
		if (ret)
			break;
		n++;
	}
	b->n = n;
	return ret;
}

static int ring(struct batch *b)
{
	struct ibv_recv_wr *bad = NULL;
	int taken = b->n;
	int ret;
	int i;

	for (i = 0; i < b->n; i++)
		b->chain[i].wr.next = i + 1 < b->n ? &b->chain[i + 1].wr : NULL;
	/* by the queue pair: the request becomes a connection meanwhile */
	ret = ibv_post_recv(b->conn->qp, &b->chain[0].wr, &bad);
	if (ret) {
		taken = bad ? (int)((struct rpma_recv_wr *)bad - b->chain) : 0;
		rt_ledger_take_back(&b->gate->ledger, (uint32_t)(b->n - taken));
	}
	b->posted += taken;
	return ret ? RPMA_E_PROVIDER : 0;
}

static int post(struct batch *b)
{
	int refused = 0;
	int ret = 0;

	if (b->count > RT_POST_CHUNK)
		ret = check_from(b, 0);
	while (ret == 0 && refused == 0 && b->posted < b->count) {
		refused = fill(b);
		if (refused != 0 && refused != RPMA_E_AGAIN && b->posted == 0) {
			rt_ledger_take_back(&b->gate->ledger, (uint32_t)b->n);
			break;
		}
		if (b->n > 0)
			ret = ring(b);
	}
	return ret ? ret : refused;
}

int rpma_rt_post_recv(struct rpma_rt_conn *conn,
		      const struct rpma_rt_recv_wr *wr, int count)
{
	struct batch b;
	int ret = rt_post_check(conn, wr, count);

	if (ret == 0 && conn->srq != NULL)
		ret = RPMA_E_INVAL; /* its receives are the SRQ's */
	if (ret || count == 0)
		return ret;
	ret = rt_post_enter(conn, RPMA_RT_RECV_SIDE);
	if (ret)
		return ret;
	b.conn = conn;
	b.gate = &conn->gate[RPMA_RT_RECV_SIDE];
	b.wr = wr;
	b.count = count;
	b.checked = 0;
	b.posted = 0;
	ret = post(&b);
	rt_gate_leave(b.gate);
	return rt_post_answer(conn, b.posted, ret);
}
