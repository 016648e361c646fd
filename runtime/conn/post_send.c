/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * post_send.c -- posting work requests of the send side: each is validated,
 * gets its credit, is prepared by librpma and noted in the ledger; then a chain
 * of them is given to the device. Any thread. See doc/protocols/ledger.md.
 */

#include <infiniband/verbs.h>

#include "base/wr.h"
#include "conn/peer.h"
#include "conn/post.h"
#include "poller/want.h"

#define unlikely(x) __builtin_expect(!!(x), 0)

/* A call of rpma_rt_post_send(), inside the gate. */
struct batch {
	struct rpma_rt_conn *conn;
	struct rt_gate *gate;
	const struct rpma_rt_wr *wr;
	int count;
	int checked;  /* those before it were validated ahead */
	int admitted; /* those before it, of a link, have their credit */
	int posted;   /* those before it are the device's */
	int n;	      /* so many after these are in the chain */
	bool has_native;
	struct rt_wr_pieces pieces;
	struct rpma_send_wr chain[RT_POST_CHUNK];
};

/* --------------------------------------------------------- validation --- */

#define COMPLETIONS    (RPMA_F_COMPLETION_ALWAYS | RPMA_F_COMPLETION_ON_ERROR)
#define HALF_OF_ALWAYS (RPMA_F_COMPLETION_ALWAYS & ~RPMA_F_COMPLETION_ON_ERROR)
#define ANY_OP	       (COMPLETIONS | RPMA_RT_F_LINKED | RPMA_RT_F_PART)

/* The flags that an operation may have; 0: there is no such operation. */
static uint32_t flags_of(uint32_t op)
{
	static const uint32_t flags[] = {
		[RPMA_RT_OP_SEND] = ANY_OP | RPMA_F_FENCE | RPMA_F_INLINE |
				    RPMA_F_SOLICITED,
		[RPMA_RT_OP_SEND_WITH_IMM] = ANY_OP | RPMA_F_FENCE |
					     RPMA_F_INLINE | RPMA_F_SOLICITED,
		[RPMA_RT_OP_WRITE] = ANY_OP | RPMA_F_FENCE | RPMA_F_INLINE,
		[RPMA_RT_OP_WRITE_WITH_IMM] = ANY_OP | RPMA_F_FENCE |
					      RPMA_F_INLINE | RPMA_F_SOLICITED,
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

static const char *flags_fault(const struct rpma_rt_wr *wr)
{
	const uint32_t flags = flags_of(wr->op);

	if (flags == 0)
		return "has no operation: op is 0, or none of enum rpma_rt_op";
	if (wr->flags & ~flags)
		return "has a flag that is not for its operation, or none";
	if ((wr->flags & COMPLETIONS) == HALF_OF_ALWAYS)
		return "has half of RPMA_F_COMPLETION_ALWAYS";
	if (!is_part(wr))
		return NULL;
	if (!(wr->flags & RPMA_RT_F_LINKED))
		return "is a part of no link: RPMA_RT_F_LINKED is missing";
	if (wr->context || wr->route || (wr->flags & COMPLETIONS))
		return "is a part and has a context, a route or a completion";
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
static const char *link_fault(const struct batch *b, int index)
{
	int first = index;

	while (b->wr[index].flags & RPMA_RT_F_LINKED) {
		if (++index == b->count)
			return "is linked to the next, and there is none";
	}
	return (uint32_t)(index - first) <
			       rt_ledger_longest_link(&b->gate->ledger)
		       ? NULL
		       : "begins a link that is longer than half of sq_size";
}

static int fault(const struct batch *b, int index)
{
	const struct rpma_rt_wr *wr = &b->wr[index];
	const char *wrong = flags_fault(wr);

	if (wrong == NULL && wr->reserved32 != 0)
		wrong = "has reserved words that are not 0";
	if (wrong == NULL && !rt_wr_is_context(wr->context))
		wrong = "has a context of more than 48 bits";
	if (wrong == NULL)
		wrong = memory_fault(b->conn, wr);
	if (wrong == NULL)
		wrong = operands_fault(wr);
	if (wrong == NULL && (wr->flags & RPMA_RT_F_LINKED))
		wrong = link_fault(b, index);
	if (wrong != NULL)
		return rt_wr_refuse(index, wrong);
	if (rt_post_is_route(b->conn, wr->route, RPMA_RT_SEND_SIDE))
		return 0;
	return rt_post_refuse_route(b->conn, wr->route, RPMA_RT_SEND_SIDE,
				    index);
}

/* A valid send, write or read of one piece, without anything special: the usual
 * one, which is looked at once. */
static inline bool is_plain(const struct rpma_rt_conn *conn,
			    const struct rpma_rt_wr *wr)
{
	const uint64_t special = (wr->flags & ~(uint32_t)COMPLETIONS) |
				 wr->piece_count | wr->reserved32 |
				 wr->context >> RPMA_RT_CONTEXT_BITS;

	if (special || wr->local == NULL ||
	    (wr->flags & COMPLETIONS) == HALF_OF_ALWAYS ||
	    !rt_post_is_route(conn, wr->route, RPMA_RT_SEND_SIDE))
		return false;
	return wr->op == RPMA_RT_OP_SEND ||
	       ((wr->op == RPMA_RT_OP_WRITE || wr->op == RPMA_RT_OP_READ) &&
		wr->remote != NULL);
}

/* 0, RPMA_E_INVAL, RPMA_RT_E_CLOSED (its route). */
static int check(const struct batch *b, int index)
{
	const struct rpma_rt_wr *wr = &b->wr[index];

	return is_plain(b->conn, wr) ? 0 : fault(b, index);
}

/* ---------------------------------------------------------- preparing --- */

/* enum ibv_wc_opcode of native operations; headers may lack them */
#define WC_FLUSH	8
#define WC_ATOMIC_WRITE 9

/* The opcode that its completion has when it succeeds. */
static uint8_t opcode_of(uint32_t op, const struct rpma_send_wr *wr)
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
	case RPMA_RT_OP_COMPARE_SWAP:
		return IBV_WC_COMP_SWAP;
	case RPMA_RT_OP_FETCH_ADD:
		return IBV_WC_FETCH_ADD;
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
			     (enum rpma_flush_type)wr->flush_type, flags, wr_id,
			     out);
}

/* part: its first piece. flags: librpma's */
static int prepare(struct rpma_rt_conn *conn, const struct rpma_rt_wr *wr,
		   const struct rpma_sge *part, uint64_t wr_id, int flags,
		   struct rpma_send_wr *out)
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
	case RPMA_RT_OP_READ: /* a piece is const, whatever it is for */
		return rpma_wr_read(c,
				    (struct rpma_mr_local *)(uintptr_t)part->mr,
				    part->offset, wr->remote, wr->remote_offset,
				    part->len, flags, wr_id, out);
	case RPMA_RT_OP_FLUSH:
		return prepare_flush(conn, wr, wr_id, flags, out);
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

static int prepare_one(struct batch *b, const struct rpma_rt_wr *wr,
		       uint64_t wr_id, bool signaled, struct rpma_send_wr *out)
{
	const struct rpma_sge whole = {wr->local, wr->local_offset, wr->len};
	const struct rpma_sge *part = wr->piece_count ? wr->pieces : &whole;
	int flags = (int)(wr->flags &
			  (RPMA_F_FENCE | RPMA_F_SOLICITED | RPMA_F_INLINE)) |
		    (signaled ? RPMA_F_COMPLETION_ALWAYS
			      : RPMA_F_COMPLETION_ON_ERROR);
	int ret = prepare(b->conn, wr, part, wr_id, flags, out);

	if (ret || wr->piece_count == 0)
		return ret;
	ret = rpma_wr_set_sge_list(wr->pieces, (int)wr->piece_count,
				   &b->pieces.sge[b->pieces.used], out);
	b->pieces.used += wr->piece_count;
	return ret;
}

static inline int prepare_plain(struct rpma_conn *c,
				const struct rpma_rt_wr *wr, uint64_t wr_id,
				int flags, struct rpma_send_wr *out)
{
	if (wr->op == RPMA_RT_OP_WRITE)
		return rpma_wr_write(c, wr->remote, wr->remote_offset,
				     wr->local, wr->local_offset, wr->len,
				     flags, wr_id, out);
	if (wr->op == RPMA_RT_OP_SEND)
		return rpma_wr_send(c, wr->local, wr->local_offset, wr->len,
				    flags, wr_id, out);
	return rpma_wr_read(c, wr->local, wr->local_offset, wr->remote,
			    wr->remote_offset, wr->len, flags, wr_id, out);
}

/* Does only librpma know whether that is possible? */
static bool is_librpmas(const struct rpma_rt_wr *wr)
{
	return wr->op == RPMA_RT_OP_FLUSH || wr->op >= RPMA_RT_OP_COMPARE_SWAP;
}

/* Those from index on, ahead of the chain. */
static int check_from(struct batch *b, int index)
{
	struct rpma_send_wr scratch;
	int ret = 0;

	for (; index < b->count && ret == 0; index++) {
		ret = check(b, index);
		if (ret == 0 && is_librpmas(&b->wr[index]))
			ret = prepare_one(b, &b->wr[index], 0, true, &scratch);
	}
	b->checked = b->count;
	return ret;
}

/* ------------------------------------------------------------- posting --- */

/* The last of the link that begins there, or itself. */
static int last_of_link(const struct batch *b, int index)
{
	while (b->wr[index].flags & RPMA_RT_F_LINKED)
		index++;
	return index;
}

/* An error of a later one comes before the lack of credit, which leaves a
 * want. */
static int await_credit(struct batch *b, int index, uint32_t count)
{
	const struct rpma_rt_route *route =
		rt_post_route(b->conn, b->wr[index].route, RPMA_RT_SEND_SIDE);
	int ret = 0;

	if (rt_post_has_credit(b->gate, route, count))
		return 0;
	if (b->checked < b->count)
		ret = check_from(b, index);
	return ret ? ret : rt_post_await_credit(b->gate, route, count);
}

/* All of a link, before its first is in the chain. */
static int admit_link(struct batch *b, int index)
{
	int last = last_of_link(b, index);
	uint32_t count = (uint32_t)(last - index + 1);
	int ret = 0;

	for (; index <= last && ret == 0; index++)
		ret = await_credit(b, index, count);
	b->admitted = last + 1;
	return ret;
}

static int admit(struct batch *b, int index)
{
	if (index < b->admitted)
		return 0;
	if (b->wr[index].flags & RPMA_RT_F_LINKED)
		return admit_link(b, index);
	return await_credit(b, index, 1);
}

static bool is_silent(const struct rpma_rt_wr *wr)
{
	return is_part(wr) ||
	       (wr->flags & COMPLETIONS) == RPMA_F_COMPLETION_ON_ERROR;
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
	const struct rpma_rt_route *route =
		rt_post_route(b->conn, wr->route, RPMA_RT_SEND_SIDE);

	return rt_wr_id(route->number, wr->context);
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

	if (index >= b->checked)
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
	ret = prepare_one(b, wr, wr_id, signaled, out);
	if (ret)
		return ret;
	rt_ledger_append(ledger, wr_id, opcode_of(wr->op, out), signaled);
	if (wr->flags & RPMA_RT_F_LINKED)
		link_entry(b, wr);
	b->has_native |= out->native != 0;
	return 0;
}

/* Puts the next work request into the chain and the ledger. */
static int append(struct batch *b, int index, struct rpma_send_wr *out)
{
	static const uint8_t opcodes[] = {
		[RPMA_RT_OP_SEND] = IBV_WC_SEND,
		[RPMA_RT_OP_WRITE] = IBV_WC_RDMA_WRITE,
		[RPMA_RT_OP_READ] = IBV_WC_RDMA_READ,
	};
	struct rt_ledger *ledger = &b->gate->ledger;
	const struct rpma_rt_wr *wr = &b->wr[index];
	const struct rpma_rt_route *route;
	bool silent = is_silent(wr);
	bool signaled;
	uint64_t wr_id;
	int ret;

	if (unlikely(!is_plain(b->conn, wr)))
		return append_any(b, index, out);
	route = rt_post_route(b->conn, wr->route, RPMA_RT_SEND_SIDE);
	if (unlikely(!rt_post_has_credit(b->gate, route, 1)))
		return append_any(b, index, out);
	signaled = !silent || rt_ledger_must_signal(ledger);
	wr_id = rt_wr_id(route->number, wr->context) |
		(silent ? RT_ON_ERROR_ONLY : 0);
	ret = prepare_plain(b->conn->conn, wr, wr_id,
			    signaled ? RPMA_F_COMPLETION_ALWAYS
				     : RPMA_F_COMPLETION_ON_ERROR,
			    out);
	if (ret == 0)
		rt_ledger_append(ledger, wr_id, opcodes[wr->op], signaled);
	return ret;
}

/* Fills the chain, as far as it has room. */
static int fill(struct batch *b)
{
	int most = b->count - b->posted;
	int ret = 0;
	int n = 0;

	b->has_native = false;
	b->pieces.used = 0;
	if (most > RT_POST_CHUNK)
		most = RT_POST_CHUNK;
	while (n < most) {
		if (!rt_wr_has_pieces(&b->pieces,
				      b->wr[b->posted + n].piece_count)) {
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

/* Posts a chain without native operations: by verbs, on the queue pair, as
 * receives are posted. */
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

/* Posts the chain, with one doorbell. */
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

/* All work requests are validated before the first is posted: calls that need
 * more than one chain validate ahead of it, the others while they fill it. */
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
	b.admitted = 0;
	b.posted = 0;
	ret = post(&b);
	rt_gate_leave(b.gate);
	return rt_post_answer(conn, b.posted, ret);
}
