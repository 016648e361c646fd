/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * post.c -- what posting sends and posting receives share: why a call is
 * refused and what follows, slots of the line, futures, the answer. Any thread.
 * doc/protocols/ledger.md.
 */

#include "conn/post.h"

#include "base/context.h"
#include "base/log.h"
#include "base/order.h"
#include "base/runtime.h"
#include "base/self.h"
#include "base/wr.h"
#include "conn/hold.h"
#include "conn/look.h"
#include "future/future.h"
#include "poller/poller.h"

/* --------------------------------------------------------------- places --- */

uint16_t rt_post_take_slots(struct rpma_rt_conn *conn, enum rpma_rt_side side,
			    uint32_t count)
{
	struct rt_turn *turn = &conn->gate[side].turn;
	uint16_t slots = rt_line_take(turn, count, rt_hold_limit(conn, side));

	/* what was cancelled takes no place from others */
	if (slots == 0 && rt_hold_sweep(conn, side))
		slots = rt_line_take(turn, count, rt_hold_limit(conn, side));
	return slots;
}

void rt_post_give_slots(struct rpma_rt_conn *conn, enum rpma_rt_side side,
			uint16_t first, uint32_t count)
{
	struct rt_turn *turn = &conn->gate[side].turn;
	uint16_t last = first;
	uint32_t i;

	for (i = 1; i < count; i++)
		last = rt_freelist_next(&turn->free, last);
	rt_freelist_give(&turn->free, first, last, (uint16_t)count);
	rt_hold_tell_places(conn, side); /* fences */
	/* the control thread may wait for these slots, to delete librpma's
	 * connection */
	if (rt_turn_look(turn) & RT_TURN_CLOSED)
		rt_conn_ask_control(conn, RT_CTL_UNPINNED);
}

uint16_t rt_post_give_surplus(struct rpma_rt_conn *conn, enum rpma_rt_side side,
			      uint16_t first, uint32_t count)
{
	uint16_t rest = first;
	uint32_t i;

	if (count == 0)
		return first;
	for (i = 0; i < count; i++)
		rest = rt_freelist_next(&conn->gate[side].turn.free, rest);
	rt_post_give_slots(conn, side, first, count);
	return rest;
}

static int of_generation(uint64_t word, uint64_t seen)
{
	return word / RT_TURN_GENERATION == seen / RT_TURN_GENERATION
		       ? 0
		       : RT_POST_STALE;
}

int rt_post_look_again(const struct rpma_rt_conn *conn, enum rpma_rt_side side,
		       uint64_t seen)
{
	uint64_t word;

	/* pairs with the one of rt_conn_is_pinned(): either that sees the
	 * slots, or this the closed side [LINE-1] */
	rt_fence_dekker();
	word = rt_turn_look(&conn->gate[side].turn);
	return word & (RT_TURN_CLOSED | RT_TURN_DRAINED)
		       ? RPMA_RT_E_CLOSED
		       : of_generation(word, seen);
}

int rt_post_publish(struct rpma_rt_conn *conn, enum rpma_rt_side side,
		    uint64_t seen, uint16_t first)
{
	struct rt_turn *turn = &conn->gate[side].turn;
	uint16_t last = first;
	uint16_t next;

	while ((next = rt_freelist_next(&turn->free, last)) != 0)
		last = next;
	switch (rt_turn_publish(turn, seen, first, last)) {
	case RT_TURN_LEFT:
		return 0;
	case RT_TURN_HOLDS:
		rt_hold_published(conn, side);
		return 0;
	case RT_TURN_STALE:
		return RT_POST_STALE;
	default: /* it was open, so it is closed */
		return RPMA_RT_E_CLOSED;
	}
}

/* ------------------------------------------------------------- refusals --- */

/* The route of this connection whose function is running; NULL: none. */
static struct rt_route_opened *running_route(const struct rpma_rt_conn *conn)
{
	const struct rt_poller *self = rt_self_poller();
	struct rt_callback *callback = self ? self->calls.running : NULL;
	struct rt_route_opened *running;

	if (callback == NULL)
		return NULL;
	running = RT_FROM(struct rt_route_opened, callback, callback);
	/* what its last call is refused for, its connection's queue is told */
	return running->route.conn == conn &&
			       !rt_route_is_closed(&running->route)
		       ? running
		       : NULL;
}

/* Is there a free slot again? */
static bool has_future(struct rpma_rt_conn *conn, enum rpma_rt_side side)
{
	const struct rt_futures *futures = conn->side[side].futures;
	uint32_t i;

	for (i = 0; futures != NULL && i < futures->count; i++) {
		/* relaxed: behind the caller's fence */
		if (atomic_load_explicit(&futures->slots[i].state,
					 memory_order_relaxed) ==
		    RT_FUTURE_FREE)
			return true;
	}
	return false;
}

/* Does the reason, no backlog, hold still? */
static bool is_refused(struct rpma_rt_conn *conn, enum rpma_rt_side side,
		       const struct rt_post_refusal *refusal)
{
	switch (refusal->reason) {
	case RPMA_RT_AGAIN_CREDIT: /* the poller takes out what was cancelled */
		return rt_hold_places(conn, side) < refusal->count &&
		       !rt_hold_has_cancelled(conn, side);
	case RPMA_RT_AGAIN_FUTURES:
		return !has_future(conn, side);
	case RPMA_RT_AGAIN_NOT_YET:
		return !(rt_turn_look(&conn->gate[side].turn) &
			 (RT_TURN_OPEN | RT_TURN_CLOSED | RT_TURN_DRAINED));
	default:
		return false;
	}
}

int rt_post_refuse(struct rpma_rt_conn *conn, enum rpma_rt_side side,
		   const struct rt_post_refusal *refusal)
{
	struct rt_route_opened *running = running_route(conn);
	uint32_t want = refusal->reason == RPMA_RT_AGAIN_BACKLOG
				? RT_WANT_BACKLOG
				: RT_WANT_CREDIT;

	if (running != NULL)
		want <<= RT_WANT_IN_CALL;
	if (running != NULL)
		running->wants |= (uint8_t)RT_WANTS(side);
	/* relaxed: the fence orders it */
	atomic_fetch_or_explicit(&conn->side[side].want, want,
				 memory_order_relaxed);
	/* pairs with flush_once(), and with whoever gives places back, or opens
	 * the side [LEDGER-2]: either those see want, or this look what they
	 * have published. The want stays in either case: it may be another
	 * thread's, too, whose look came before */
	rt_fence_dekker();
	if (refusal->reason == RPMA_RT_AGAIN_BACKLOG)
		rt_look_await(conn, refusal->route, side);
	else if (!is_refused(conn, side, refusal))
		rt_look_send(conn);
	return rt_want_again(refusal->reason);
}

/* -------------------------------------------------------------- futures --- */

bool rt_post_take_future(struct rpma_rt_conn *conn, enum rpma_rt_side side,
			 uint64_t context, struct rpma_rt_future *future)
{
	struct rt_future *slot =
		rt_future_take(conn->side[side].futures, context);

	if (slot != NULL)
		rt_future_name(future, slot);
	return slot != NULL;
}

void rt_post_return_future(struct rpma_rt_future *future)
{
	if (future->opaque[0] == 0) /* two of the call named it */
		return;
	rt_future_return(rt_future_slot(future));
	*future = (struct rpma_rt_future){{0, 0}};
}

uint64_t rt_post_future_wr_id(const struct rpma_rt_future *future)
{
	const struct rt_future *slot = rt_future_slot(future);

	return rt_wr_id(slot->of->number, rt_future_cookie(slot));
}

/* ----------------------------------------------------------- the answer --- */

int rt_post_refuse_recv(const struct rpma_rt_conn *conn)
{
	if (rt_conn_fed(conn) != NULL)
		return RT_REFUSE(RPMA_E_INVAL,
				 "conn takes receives from a pool, which keeps "
				 "them posted: give leases back instead");
	return RT_REFUSE(RPMA_E_INVAL,
			 "conn takes receives from a shared queue: post them "
			 "with rpma_rt_srq_post_recv()");
}

int rt_post_nothing(struct rpma_rt_conn *conn, const void *wr, int count,
		    enum rpma_rt_side which)
{
	if (conn == NULL || count < 0 || (wr == NULL && count > 0))
		return rt_wr_refuse_call("conn", conn, count);
	return rt_post_check(conn, which);
}

void rt_post_mark(struct rpma_rt_conn *conn)
{
	/* relaxed: as in rt_post_check() */
	atomic_fetch_or_explicit(&conn->reached, RT_REACHED_POST,
				 memory_order_relaxed);
}

int rt_post_answer(int taken, int ret)
{
	if (taken > 0)
		rt_refuse_forget();
	if (taken > 0 || ret == RPMA_E_AGAIN)
		return taken > 0 ? taken : ret;
	return RT_REFUSED(ret, "nothing is posted");
}
