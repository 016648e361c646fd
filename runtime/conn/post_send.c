/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * post_send.c -- posting work requests of the send side: each is validated,
 * gets its credit, is prepared by librpma and noted in the ledger; then a chain
 * of them is given to the device. Any thread. See doc/protocols/ledger.md.
 */

#include <infiniband/verbs.h>

#include "conn/peer.h"
#include "conn/post.h"
#include "poller/want.h"

/* A call of rpma_rt_post_send(), inside the gate. */
struct batch {
	struct rpma_rt_conn *conn;
	struct rt_gate *gate;
	const struct rpma_rt_wr *wr;
	int count;
	int checked; /* those before it were validated ahead */
	int posted;  /* those before it are the device's */
	int n;	     /* so many after these are in the chain */
	bool has_native;
	struct rpma_send_wr chain[RT_POST_CHUNK];
};

/* ----------------------------------------------------------- preparing --- */

/* enum ibv_wc_opcode of what the device does itself; headers may lack them */
#define WC_FLUSH	8
#define WC_ATOMIC_WRITE 9

/* The opcode that its completion has when it succeeds. */
static uint8_t opcode_of(enum rpma_rt_op op, const struct rpma_send_wr *wr)
{
	switch (op) {
	case RPMA_RT_OP_WRITE:
	case RPMA_RT_OP_WRITE_WITH_IMM:
		return IBV_WC_RDMA_WRITE;
	case RPMA_RT_OP_ATOMIC_WRITE:
		return wr->native ? WC_ATOMIC_WRITE : IBV_WC_RDMA_WRITE;
	case RPMA_RT_OP_READ:
		return IBV_WC_RDMA_READ;
	case RPMA_RT_OP_FLUSH:
		return wr->native ? WC_FLUSH : IBV_WC_RDMA_READ;
	default:
		return IBV_WC_SEND;
	}
}

static int prepare_flush(struct rpma_rt_conn *conn, const struct rpma_rt_wr *wr,
			 uint64_t wr_id, int flags, struct rpma_send_wr *out)
{
	int ret = 0;

	if (wr->flush_type == RPMA_FLUSH_TYPE_PERSISTENT)
		ret = rt_peer_apply_poster(conn);
	if (ret)
		return ret;
	return rpma_wr_flush(conn->conn, wr->remote, wr->remote_offset, wr->len,
			     wr->flush_type, flags, wr_id, out);
}

static int prepare(struct rpma_rt_conn *conn, const struct rpma_rt_wr *wr,
		   uint64_t wr_id, int flags, struct rpma_send_wr *out)
{
	struct rpma_conn *c = conn->conn;

	switch (wr->op) {
	case RPMA_RT_OP_SEND:
		return rpma_wr_send(c, wr->local, wr->local_offset, wr->len,
				    flags, wr_id, out);
	case RPMA_RT_OP_SEND_WITH_IMM:
		return rpma_wr_send_with_imm(c, wr->local, wr->local_offset,
					     wr->len, flags, wr->imm, wr_id,
					     out);
	case RPMA_RT_OP_WRITE:
		return rpma_wr_write(c, wr->remote, wr->remote_offset,
				     wr->local, wr->local_offset, wr->len,
				     flags, wr_id, out);
	case RPMA_RT_OP_WRITE_WITH_IMM:
		return rpma_wr_write_with_imm(
			c, wr->remote, wr->remote_offset, wr->local,
			wr->local_offset, wr->len, flags, wr->imm, wr_id, out);
	case RPMA_RT_OP_READ:
		return rpma_wr_read(c, wr->local, wr->local_offset, wr->remote,
				    wr->remote_offset, wr->len, flags, wr_id,
				    out);
	case RPMA_RT_OP_FLUSH:
		return prepare_flush(conn, wr, wr_id, flags, out);
	case RPMA_RT_OP_ATOMIC_WRITE:
		return rpma_wr_atomic_write(c, wr->remote, wr->remote_offset,
					    wr->data, flags, wr_id, out);
	}
	return RPMA_E_INVAL;
}

/* ---------------------------------------------------------- validation --- */

/* The operation and the memory that it needs. */
static bool is_operation(const struct rpma_rt_wr *wr)
{
	switch (wr->op) {
	case RPMA_RT_OP_SEND:
	case RPMA_RT_OP_SEND_WITH_IMM:
		return (wr->local != NULL ||
			(wr->local_offset == 0 && wr->len == 0));
	case RPMA_RT_OP_WRITE:
	case RPMA_RT_OP_WRITE_WITH_IMM:
	case RPMA_RT_OP_READ:
		/* both regions, or neither and no bytes */
		return wr->local != NULL
			       ? wr->remote != NULL
			       : wr->remote == NULL && wr->local_offset == 0 &&
					 wr->remote_offset == 0 && wr->len == 0;
	case RPMA_RT_OP_FLUSH:
		return wr->remote != NULL &&
		       (wr->flush_type == RPMA_FLUSH_TYPE_PERSISTENT ||
			wr->flush_type == RPMA_FLUSH_TYPE_VISIBILITY);
	case RPMA_RT_OP_ATOMIC_WRITE:
		return wr->remote != NULL &&
		       wr->remote_offset % RPMA_ATOMIC_WRITE_ALIGNMENT == 0;
	}
	return false;
}

static bool is_valid(const struct rpma_rt_conn *conn,
		     const struct rpma_rt_wr *wr)
{
	return (wr->flags == RPMA_F_COMPLETION_ALWAYS ||
		wr->flags == RPMA_F_COMPLETION_ON_ERROR) &&
	       wr->context <= RT_COOKIE_MASK &&
	       rt_post_is_route(conn, wr->route, RPMA_RT_SEND_SIDE) &&
	       is_operation(wr);
}

/* Those from index on, ahead of the chain. Whether a region may be flushed is
 * known to librpma, which prepares it. */
static int check_from(struct batch *b, int index)
{
	struct rpma_send_wr scratch;
	int ret = 0;

	for (; index < b->count && ret == 0; index++) {
		if (!is_valid(b->conn, &b->wr[index]))
			return RPMA_E_INVAL;
		if (b->wr[index].op == RPMA_RT_OP_FLUSH)
			ret = prepare(b->conn, &b->wr[index], 0,
				      RPMA_F_COMPLETION_ALWAYS, &scratch);
	}
	b->checked = b->count;
	return ret;
}

/* ------------------------------------------------------------- posting --- */

/* The slow way: an error of a later one comes before the lack of credit, which
 * leaves a want. */
static int await_credit(struct batch *b, int index,
			const struct rpma_rt_route *route)
{
	int ret = 0;

	if (b->checked < b->count)
		ret = check_from(b, index);
	return ret ? ret : rt_post_await_credit(b->gate, route, 1);
}

/* The next one, into the chain and the ledger. */
static int append(struct batch *b, int index, struct rpma_send_wr *out)
{
	const struct rpma_rt_wr *wr = &b->wr[index];
	const struct rpma_rt_route *route =
		rt_post_route(b->conn, wr->route, RPMA_RT_SEND_SIDE);
	bool always = wr->flags == RPMA_F_COMPLETION_ALWAYS;
	bool signaled;
	uint64_t wr_id;
	int ret = 0;

	if (index >= b->checked && !is_valid(b->conn, wr))
		return RPMA_E_INVAL;
	if (!rt_post_has_credit(b->gate, route, 1))
		ret = await_credit(b, index, route);
	if (ret)
		return ret;
	signaled = always || rt_ledger_must_signal(&b->gate->ledger);
	wr_id = rt_wr_id(route->number, wr->context) |
		(always ? 0 : RT_ON_ERROR_ONLY);
	ret = prepare(b->conn, wr, wr_id,
		      signaled ? RPMA_F_COMPLETION_ALWAYS
			       : RPMA_F_COMPLETION_ON_ERROR,
		      out);
	if (ret)
		return ret;
	rt_ledger_append(&b->gate->ledger, wr_id, opcode_of(wr->op, out),
			 signaled);
	b->has_native |= out->native != 0;
	return 0;
}

/* As many as the chain holds. */
static int fill(struct batch *b)
{
	int most = b->count - b->posted;
	int ret = 0;
	int n = 0;

	b->has_native = false;
	if (most > RT_POST_CHUNK)
		most = RT_POST_CHUNK;
	while (n < most) {
		ret = append(b, b->posted + n, &b->chain[n]);
		if (ret)
			break;
		n++;
	}
	b->n = n;
	return ret;
}

/* The device's own verb where it knows all of the chain; by the queue pair, as
 * receives are. */
static int give_plain(struct batch *b, int *taken)
{
	struct ibv_send_wr *bad = NULL;
	int ret = ibv_post_send(b->conn->qp, &b->chain[0].wr, &bad);

	if (ret)
		*taken = bad ? (int)((struct rpma_send_wr *)bad - b->chain) : 0;
	return ret;
}

static int give(struct batch *b, int *taken)
{
	struct rpma_send_wr *bad = NULL;
	int ret = rpma_conn_post_send(b->conn->conn, b->conn, b->chain, &bad);

	if (ret)
		*taken = bad ? (int)(bad - b->chain) : 0;
	return ret;
}

/* One doorbell. */
static int ring(struct batch *b)
{
	int taken = b->n;
	int ret;
	int i;

	for (i = 0; i < b->n; i++)
		b->chain[i].wr.next = i + 1 < b->n ? &b->chain[i + 1].wr : NULL;
	ret = b->has_native ? give(b, &taken) : give_plain(b, &taken);
	if (ret)
		rt_ledger_take_back(&b->gate->ledger, (uint32_t)(b->n - taken));
	b->posted += taken;
	/* the ledger had room: a full queue here is the provider's fault */
	return ret ? RPMA_E_PROVIDER : 0;
}

/* All are validated before the first is the device's: those that need more than
 * one chain ahead of it, the others on their way into it. */
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

int rpma_rt_post_send(struct rpma_rt_conn *conn, const struct rpma_rt_wr *wr,
		      int count)
{
	struct batch b;
	int ret = rt_post_check(conn, wr, count);

	if (ret || count == 0)
		return ret;
	ret = rt_post_enter(conn, RPMA_RT_SEND_SIDE);
	if (ret)
		return ret;
	b.conn = conn;
	b.gate = &conn->gate[RPMA_RT_SEND_SIDE];
	b.wr = wr;
	b.count = count;
	b.checked = 0;
	b.posted = 0;
	ret = post(&b);
	rt_gate_leave(b.gate);
	return rt_post_answer(conn, b.posted, ret);
}

/* ------------------------------------------------------------- one each --- */

/* Taken, or an error. */
static int post_one(struct rpma_rt_conn *conn, const struct rpma_rt_wr *wr)
{
	int ret = rpma_rt_post_send(conn, wr, 1);

	return ret < 0 ? ret : 0;
}

int rpma_rt_send(struct rpma_rt_conn *conn, struct rpma_mr_local *src,
		 size_t offset, size_t len, int flags, uint64_t context)
{
	struct rpma_rt_wr wr = {.op = RPMA_RT_OP_SEND,
				.flags = flags,
				.context = context,
				.local = src,
				.local_offset = offset,
				.len = len};

	return post_one(conn, &wr);
}

int rpma_rt_read(struct rpma_rt_conn *conn, struct rpma_mr_local *dst,
		 size_t dst_offset, struct rpma_mr_remote *src,
		 size_t src_offset, size_t len, int flags, uint64_t context)
{
	struct rpma_rt_wr wr = {.op = RPMA_RT_OP_READ,
				.flags = flags,
				.context = context,
				.local = dst,
				.local_offset = dst_offset,
				.remote = src,
				.remote_offset = src_offset,
				.len = len};

	return post_one(conn, &wr);
}

int rpma_rt_write(struct rpma_rt_conn *conn, struct rpma_mr_remote *dst,
		  size_t dst_offset, struct rpma_mr_local *src,
		  size_t src_offset, size_t len, int flags, uint64_t context)
{
	struct rpma_rt_wr wr = {.op = RPMA_RT_OP_WRITE,
				.flags = flags,
				.context = context,
				.local = src,
				.local_offset = src_offset,
				.remote = dst,
				.remote_offset = dst_offset,
				.len = len};

	return post_one(conn, &wr);
}
