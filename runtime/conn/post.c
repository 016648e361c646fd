/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * post.c -- posting from any thread: validation, credit, signaling, ledger,
 * doorbell, inside the side. doc/protocols/ledger.md, wr_id.md.
 */

#include <errno.h>
#include <inttypes.h>

#include <infiniband/verbs.h>

#include "base/context.h"
#include "base/log.h"
#include "base/order.h"
#include "base/runtime.h"
#include "base/self.h"
#include "conn/answer.h"
#include "conn/conn.h"
#include "conn/gate.h"
#include "conn/peer.h"
#include "conn/route.h"
#include "poller/callback.h"
#include "poller/poller.h"
#include "poller/want.h"
#include "queue/lane.h"

/* --------------------------------------------------------------- credit --- */

static void reap(struct rt_gate *gate)
{
	/* acquire [LEDGER-1]: pairs with publish_retired(); with the credit
	 * comes the backlog flag set before it was given back */
	rt_ledger_reap(&gate->ledger,
		       atomic_load_explicit(&gate->side->retired,
					    memory_order_acquire));
}

/* Is its consumer behind? A function never is. */
static bool is_behind(const struct rpma_rt_route *route)
{
	return route->lane != NULL && rt_lane_is_backlogged(route->lane);
}

static enum rpma_rt_again refusal(struct rt_gate *gate,
				  const struct rpma_rt_route *route)
{
	reap(gate);
	if (rt_ledger_room(&gate->ledger) == 0)
		return RPMA_RT_AGAIN_CREDIT;
	if (is_behind(route))
		return RPMA_RT_AGAIN_BACKLOG;
	return RPMA_RT_AGAIN_NONE;
}

/* The route of this connection inside whose function we are, NULL: none. */
static struct rpma_rt_route *running_route(const struct rpma_rt_conn *conn)
{
	const struct rt_poller *self = rt_self_poller();
	struct rt_callback *callback = self ? self->calls.running : NULL;
	struct rpma_rt_route *running;

	if (callback == NULL)
		return NULL;
	running = RT_FROM(struct rpma_rt_route, callback, callback);
	return running->conn == conn ? running : NULL;
}

/*
 * May one more be posted to that lane? If not, want is set, so that exactly
 * one WRITABLE follows; the second look catches what came meanwhile.
 */
static int take_credit(struct rt_gate *gate, const struct rpma_rt_route *route)
{
	struct rt_side *side = gate->side;
	struct rpma_rt_route *running;
	enum rpma_rt_again reason;
	uint32_t want;
	uint32_t before;

	/* what was reaped before serves as long as it lasts, if the lane's
	 * flag is looked at after */
	if (rt_ledger_room(&gate->ledger) > 0 && !is_behind(route))
		return 0;
	/* made without entries: no WRITABLE would ever come */
	if (gate->ledger.depth == 0)
		return RPMA_E_NOSUPP;
	running = running_route(route->conn);
	while ((reason = refusal(gate, route)) != RPMA_RT_AGAIN_NONE) {
		want = reason == RPMA_RT_AGAIN_CREDIT ? RT_WANT_CREDIT
						      : RT_WANT_BACKLOG;
		if (running != NULL)
			want <<= RT_WANT_IN_CALL;
		/* relaxed: the fence orders it */
		before = atomic_fetch_or_explicit(&side->want, want,
						  memory_order_relaxed);
		if (reason == RPMA_RT_AGAIN_BACKLOG)
			rt_lane_wait_mt(route->lane, route->waiter);
		/* pairs with flush_once() and the retry of spills [LEDGER-2]:
		 * either they see want, and the waiter, or the second look
		 * sees what they published */
		rt_fence_dekker();
		if (refusal(gate, route) == reason ||
		    !rt_want_take_back(&side->want, want, before)) {
			if (running != NULL)
				running->wants |=
					(uint8_t)RT_WANTS(side->which);
			return rt_want_again(reason);
		}
	}
	return 0;
}

/* The gate is not open yet: as with credit, exactly one WRITABLE follows. */
static int await_open(struct rpma_rt_conn *conn, enum rpma_rt_side which)
{
	struct rpma_rt_route *running = running_route(conn);
	struct rt_gate *gate = &conn->gate[which];
	uint32_t want = RT_WANT_CREDIT;
	int ret;

	if (running != NULL)
		want <<= RT_WANT_IN_CALL;
	ret = rt_gate_await_open(gate, want);
	if (ret == 0) /* it never goes back: this is the last time */
		ret = rt_gate_enter(gate);
	if (ret != RT_GATE_REFUSED_YET)
		return ret;
	if (running != NULL)
		running->wants |= (uint8_t)RT_WANTS(which);
	rt_want_again(RPMA_RT_AGAIN_NOT_YET);
	return ret;
}

static int enter(struct rpma_rt_conn *conn, enum rpma_rt_side which)
{
	struct rt_gate *gate = &conn->gate[which];
	int ret = rt_gate_enter(gate);
	struct rpma_rt_route *running;

	if (ret == RT_GATE_REFUSED_YET)
		ret = await_open(conn, which);
	if (ret == RT_GATE_REFUSED_YET)
		return RPMA_E_AGAIN;
	if (ret == 0)
		gate->ledger.tick = rt_poller_tick(conn->poller);
	if (ret != RPMA_E_AGAIN)
		return ret;
	running = running_route(conn);
	if (running != NULL)
		rt_answer_retry_lock(running, which);
	return rt_want_again(RPMA_RT_AGAIN_LOCK);
}

/* The route a WR names, its connection's own when it names none. */
static const struct rpma_rt_route *route_of(const struct rpma_rt_conn *conn,
					    const struct rpma_rt_route *route,
					    enum rpma_rt_side side)
{
	if (route == NULL)
		return conn->own[side];
	if (route->conn != conn || route->side != side)
		return NULL;
	return route;
}

/* 0: there is something to post. */
static int check(struct rpma_rt_conn *conn, const void *wr, int count)
{
	int ret;

	rt_want_none();
	if (conn == NULL || count < 0 || (wr == NULL && count > 0))
		return RPMA_E_INVAL;
	ret = rt_context_check(conn->rt);
	if (ret)
		return ret;
	/* relaxed: tells set_queue() of the same thread that it is too late */
	if (!(atomic_load_explicit(&conn->reached, memory_order_relaxed) &
	      RT_REACHED_POST))
		atomic_fetch_or_explicit(&conn->reached, RT_REACHED_POST,
					 memory_order_relaxed);
	return 0;
}

/* Bytes of a region, or none. */
static bool is_part(const struct rpma_mr_local *mr, size_t offset, size_t len)
{
	return mr != NULL || (offset == 0 && len == 0);
}

/* A verb refused what there was room for: no post succeeds any more. After the
 * gate was left. */
static void give_up(struct rpma_rt_conn *conn)
{
	rt_want_none();
	RT_LOG_ERROR("the device refused a post of the connection with the "
		     "queue pair %" PRIu32 ", which closes",
		     conn->qp_num);
	rt_conn_close_for(conn, RT_CTL_REFUSED);
}

/* How many were taken; none: why. */
static int answer(struct rpma_rt_conn *conn, int taken, int ret)
{
	if (ret == RPMA_E_PROVIDER)
		give_up(conn);
	return taken > 0 ? taken : ret;
}

/* ------------------------------------------------------------ send side --- */

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

/* The operation and the memory that it needs. */
static bool is_operation(const struct rpma_rt_wr *wr)
{
	switch (wr->op) {
	case RPMA_RT_OP_SEND:
	case RPMA_RT_OP_SEND_WITH_IMM:
		return is_part(wr->local, wr->local_offset, wr->len);
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

static bool is_send(const struct rpma_rt_conn *conn,
		    const struct rpma_rt_wr *wr)
{
	return (wr->flags == RPMA_F_COMPLETION_ALWAYS ||
		wr->flags == RPMA_F_COMPLETION_ON_ERROR) &&
	       wr->context <= RT_COOKIE_MASK &&
	       route_of(conn, wr->route, RPMA_RT_SEND_SIDE) != NULL &&
	       is_operation(wr);
}

/* All of them, before the first is posted or waits for credit. Whether a region
 * may be flushed librpma says when it prepares that, for the first in time. */
static int check_sends(struct rpma_rt_conn *conn, const struct rpma_rt_wr *wr,
		       int count)
{
	struct rpma_send_wr scratch;
	int ret = 0;
	int i;

	for (i = 0; i < count && ret == 0; i++) {
		if (!is_send(conn, &wr[i]))
			return RPMA_E_INVAL;
		if (i > 0 && wr[i].op == RPMA_RT_OP_FLUSH)
			ret = prepare(conn, &wr[i], 0, RPMA_F_COMPLETION_ALWAYS,
				      &scratch);
	}
	return ret;
}

/* One WR into the chain's next place and into the ledger. */
static int append_send(struct rpma_rt_conn *conn, const struct rpma_rt_wr *wr,
		       struct rpma_send_wr *out)
{
	struct rt_gate *gate = &conn->gate[RPMA_RT_SEND_SIDE];
	const struct rpma_rt_route *route =
		route_of(conn, wr->route, RPMA_RT_SEND_SIDE);
	bool always = wr->flags == RPMA_F_COMPLETION_ALWAYS;
	bool signaled = always || rt_ledger_must_signal(&gate->ledger);
	uint64_t wr_id;
	int ret;

	ret = take_credit(gate, route);
	if (ret)
		return ret;
	wr_id = rt_wr_id(route->number, wr->context) |
		(always ? 0 : RT_ON_ERROR_ONLY);
	ret = prepare(conn, wr, wr_id,
		      signaled ? RPMA_F_COMPLETION_ALWAYS
			       : RPMA_F_COMPLETION_ON_ERROR,
		      out);
	if (ret)
		return ret;
	rt_ledger_append(&gate->ledger, wr_id, opcode_of(wr->op, out),
			 signaled);
	return 0;
}

/* One doorbell; *posted grows by what the device took. */
static int ring_send(struct rpma_rt_conn *conn, struct rpma_send_wr *chain,
		     int count, int *posted)
{
	struct rpma_send_wr *bad = NULL;
	int taken = count;
	int ret;
	int i;

	for (i = 0; i < count; i++)
		chain[i].wr.next = i + 1 < count ? &chain[i + 1].wr : NULL;
	ret = rpma_conn_post_send(conn->conn, conn, chain, &bad);
	if (ret) {
		taken = bad ? (int)(bad - chain) : 0;
		rt_ledger_take_back(&conn->gate[RPMA_RT_SEND_SIDE].ledger,
				    (uint32_t)(count - taken));
	}
	*posted += taken;
	/* the ledger had room: a full queue here is the provider's fault */
	return ret ? RPMA_E_PROVIDER : 0;
}

static int post_sends(struct rpma_rt_conn *conn, const struct rpma_rt_wr *wr,
		      int count, int *posted)
{
	struct rpma_send_wr chain[RT_POST_CHUNK];
	int refused = 0;
	int ret = 0;
	int n;

	while (*posted < count && refused == 0 && ret == 0) {
		for (n = 0; n < RT_POST_CHUNK && *posted + n < count; n++) {
			refused =
				append_send(conn, &wr[*posted + n], &chain[n]);
			if (refused)
				break;
		}
		if (n > 0)
			ret = ring_send(conn, chain, n, posted);
	}
	return ret ? ret : refused;
}

int rpma_rt_post_send(struct rpma_rt_conn *conn, const struct rpma_rt_wr *wr,
		      int count)
{
	int taken = 0;
	int ret = check(conn, wr, count);

	if (ret || count == 0)
		return ret;
	ret = enter(conn, RPMA_RT_SEND_SIDE);
	if (ret)
		return ret;
	ret = check_sends(conn, wr, count);
	if (ret == 0)
		ret = post_sends(conn, wr, count, &taken);
	rt_gate_leave(&conn->gate[RPMA_RT_SEND_SIDE]);
	return answer(conn, taken, ret);
}

/* --------------------------------------------------------- receive side --- */

static int check_recvs(const struct rpma_rt_conn *conn,
		       const struct rpma_rt_recv_wr *wr, int count)
{
	int i;

	for (i = 0; i < count; i++) {
		if (wr[i].context > RT_COOKIE_MASK ||
		    route_of(conn, wr[i].route, RPMA_RT_RECV_SIDE) == NULL ||
		    !is_part(wr[i].dst, wr[i].offset, wr[i].len))
			return RPMA_E_INVAL;
	}
	return 0;
}

static int append_recv(struct rpma_rt_conn *conn,
		       const struct rpma_rt_recv_wr *wr,
		       struct rpma_recv_wr *out)
{
	struct rt_gate *gate = &conn->gate[RPMA_RT_RECV_SIDE];
	const struct rpma_rt_route *route =
		route_of(conn, wr->route, RPMA_RT_RECV_SIDE);
	uint64_t wr_id;
	int ret;

	ret = take_credit(gate, route);
	if (ret)
		return ret;
	wr_id = rt_wr_id(route->number, wr->context);
	ret = rpma_wr_recv(wr->dst, wr->offset, wr->len, wr_id, out);
	if (ret)
		return ret;
	rt_ledger_append(&gate->ledger, wr_id, IBV_WC_RECV, true);
	return 0;
}

static int ring_recv(struct rpma_rt_conn *conn, struct rpma_recv_wr *chain,
		     int count, int *posted)
{
	struct ibv_recv_wr *bad = NULL;
	int taken = count;
	int ret;
	int i;

	for (i = 0; i < count; i++)
		chain[i].wr.next = i + 1 < count ? &chain[i + 1].wr : NULL;
	/* by the queue pair: the request becomes a connection meanwhile */
	ret = ibv_post_recv(conn->qp, &chain[0].wr, &bad);
	if (ret) {
		taken = bad ? (int)((struct rpma_recv_wr *)bad - chain) : 0;
		rt_ledger_take_back(&conn->gate[RPMA_RT_RECV_SIDE].ledger,
				    (uint32_t)(count - taken));
	}
	*posted += taken;
	return ret ? RPMA_E_PROVIDER : 0;
}

static int post_recvs(struct rpma_rt_conn *conn,
		      const struct rpma_rt_recv_wr *wr, int count, int *posted)
{
	struct rpma_recv_wr chain[RT_POST_CHUNK];
	int refused = 0;
	int ret = 0;
	int n;

	while (*posted < count && refused == 0 && ret == 0) {
		for (n = 0; n < RT_POST_CHUNK && *posted + n < count; n++) {
			refused =
				append_recv(conn, &wr[*posted + n], &chain[n]);
			if (refused)
				break;
		}
		if (n > 0)
			ret = ring_recv(conn, chain, n, posted);
	}
	return ret ? ret : refused;
}

int rpma_rt_post_recv(struct rpma_rt_conn *conn,
		      const struct rpma_rt_recv_wr *wr, int count)
{
	int taken = 0;
	int ret = check(conn, wr, count);

	if (ret == 0 && conn->srq != NULL)
		ret = RPMA_E_INVAL; /* its receives are the SRQ's */
	if (ret || count == 0)
		return ret;
	ret = enter(conn, RPMA_RT_RECV_SIDE);
	if (ret)
		return ret;
	ret = check_recvs(conn, wr, count);
	if (ret == 0)
		ret = post_recvs(conn, wr, count, &taken);
	rt_gate_leave(&conn->gate[RPMA_RT_RECV_SIDE]);
	return answer(conn, taken, ret);
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

int rpma_rt_recv(struct rpma_rt_conn *conn, struct rpma_mr_local *dst,
		 size_t offset, size_t len, uint64_t context)
{
	struct rpma_rt_recv_wr wr = {
		.context = context, .dst = dst, .offset = offset, .len = len};
	int ret = rpma_rt_post_recv(conn, &wr, 1);

	return ret < 0 ? ret : 0;
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
