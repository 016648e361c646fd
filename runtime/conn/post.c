/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * post.c -- entering and leaving a post to a connection: the gate, the credit
 * that a work request needs, the result. Any thread. doc/protocols/ledger.md.
 */

#include "conn/post.h"

#include "base/chunks.h"
#include "base/context.h"
#include "base/failure.h"
#include "base/log.h"
#include "base/order.h"
#include "base/refuse.h"
#include "base/runtime.h"
#include "base/self.h"
#include "base/wr.h"
#include "conn/answer.h"
#include "conn/gate.h"
#include "conn/name.h"
#include "conn/reason.h"
#include "future/future.h"
#include "poller/callback.h"
#include "poller/poller.h"
#include "poller/want.h"

/* --------------------------------------------------------------- credit --- */

static void reap(struct rt_gate *gate)
{
	/* acquire [LEDGER-1]: pairs with publish_retired(); with the credit
	 * comes the backlog flag set before it was given back */
	rt_ledger_reap(&gate->ledger,
		       atomic_load_explicit(&gate->side->retired,
					    memory_order_acquire));
}

static enum rpma_rt_again
refusal(struct rt_gate *gate, const struct rpma_rt_route *route, uint32_t count)
{
	reap(gate);
	if (rt_ledger_room(&gate->ledger) < count)
		return RPMA_RT_AGAIN_CREDIT;
	if (rt_post_is_behind(route))
		return RPMA_RT_AGAIN_BACKLOG;
	return RPMA_RT_AGAIN_NONE;
}

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

/* With which waiter: it knows its lane. NULL: it leads to a function now. */
static struct rt_waiter *wait_for_lane(const struct rpma_rt_route *route)
{
	struct rt_waiter *waiter = rt_route_waiter(route);

	if (waiter != NULL)
		rt_lane_wait_mt(waiter->lane, waiter);
	return waiter;
}

/* Behind the fence: the lane that is behind is not the one waited for. */
static bool has_moved(const struct rpma_rt_route *route,
		      enum rpma_rt_again reason, const struct rt_waiter *waiter)
{
	return reason == RPMA_RT_AGAIN_BACKLOG &&
	       rt_route_waiter(route) != waiter;
}

/* Want is set where credit is missing, so that exactly one WRITABLE follows;
 * the second look finds credit that came meanwhile. */
int rt_post_await_credit(struct rt_gate *gate,
			 const struct rpma_rt_route *route, uint32_t count)
{
	struct rt_side *side = gate->side;
	struct rt_route_opened *running = running_route(rt_conn_of_side(side));
	struct rt_waiter *waiter = NULL;
	enum rpma_rt_again reason;
	uint32_t want;
	uint32_t before;

	while ((reason = refusal(gate, route, count)) != RPMA_RT_AGAIN_NONE) {
		want = reason == RPMA_RT_AGAIN_CREDIT ? RT_WANT_CREDIT
						      : RT_WANT_BACKLOG;
		if (running != NULL)
			want <<= RT_WANT_IN_CALL;
		/* relaxed: the fence orders it */
		before = atomic_fetch_or_explicit(&side->want, want,
						  memory_order_relaxed);
		if (reason == RPMA_RT_AGAIN_BACKLOG)
			waiter = wait_for_lane(route);
		/* pairs with flush_once() and the retry of spills [LEDGER-2]:
		 * either they see want, and the waiter, or the second look
		 * sees what they published */
		rt_fence_dekker();
		if ((refusal(gate, route, count) == reason &&
		     !has_moved(route, reason, waiter)) ||
		    !rt_want_take_back(&side->want, want, before)) {
			if (running != NULL)
				running->wants |=
					(uint8_t)RT_WANTS(side->which);
			return rt_want_again(reason);
		}
	}
	if (waiter != NULL)
		rt_answer_lock_left(side);
	return 0;
}

/* -------------------------------------------------------------- futures --- */

/* As with credit: the poller, which frees what was dropped before it was
 * complete, answers. What the program has yet to drop it frees itself. */
static struct rt_future *await_future(struct rpma_rt_conn *conn,
				      struct rt_side *side, uint64_t context)
{
	struct rt_route_opened *running = running_route(conn);
	struct rt_future *slot;
	uint32_t want = RT_WANT_CREDIT;
	uint32_t before;

	if (running != NULL)
		want <<= RT_WANT_IN_CALL;
	/* relaxed: the fence orders it */
	before = atomic_fetch_or_explicit(&side->want, want,
					  memory_order_relaxed);
	/* pairs with flush_once() [LEDGER-2]: either that sees want, or this
	 * look the slots that the poller freed */
	rt_fence_dekker();
	slot = rt_future_take(side->futures, context);
	if (slot != NULL && rt_want_take_back(&side->want, want, before))
		return slot;
	if (slot != NULL)
		rt_future_return(slot);
	if (running != NULL)
		running->wants |= (uint8_t)RT_WANTS(side->which);
	return NULL;
}

int rt_post_take_future(struct rpma_rt_conn *conn, enum rpma_rt_side side,
			uint64_t context, struct rpma_rt_future *future)
{
	struct rt_side *of = &conn->side[side];
	struct rt_future *slot = rt_future_take(of->futures, context);

	if (slot == NULL)
		slot = await_future(conn, of, context);
	if (slot == NULL)
		return rt_want_again(RPMA_RT_AGAIN_FUTURES);
	rt_future_name(future, slot);
	return 0;
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

/* A verb refused a post that had room: closes the connection. REQUIRES: the
 * gate was left */
static void give_up(struct rpma_rt_conn *conn)
{
	char name[RPMA_RT_NAME_MAX + 1];
	char words[RT_FAILURE_WORDS];

	rt_want_none();
	rt_name_copy(conn, name);
	RT_LOG_ERROR(
		"the device refused a post of \"%s\" (queue pair 0x%x), "
		"which closes: %s",
		name, conn->qp_num,
		rt_failure_2str(RT_STEP_POST, rt_reason_refusal(conn), words));
	rt_conn_close_for(conn, RT_CTL_REFUSED);
}

/* ----------------------------------------------------- waiting for room --- */

bool rt_post_is_full(struct rt_gate *gate, const struct rpma_rt_route *route,
		     uint32_t count)
{
	return refusal(gate, route, count) != RPMA_RT_AGAIN_NONE;
}

/* So many from the first on have their room and are not cancelled: links are
 * whole. What was cancelled before them is dropped. */
static uint32_t claim_run(struct rt_gate *gate, struct rt_waiting *waiting,
			  const struct rpma_rt_route *own)
{
	struct rt_future *slot;
	uint32_t count = 0;
	uint32_t last;
	uint32_t next;

	while (waiting->first + count < waiting->end && count < RT_POST_CHUNK) {
		last = rt_waiting_last(waiting, waiting->first + count);
		next = last + 1 - waiting->first;
		slot = rt_waiting_slot(waiting, last);
		if (slot != NULL && refusal(gate, own, next))
			return count;
		if (slot != NULL && rt_future_claim_post(slot)) {
			count = next;
			continue;
		}
		if (count > 0)
			return count;
		waiting->first = last + 1;
	}
	return count;
}

/* The device refused one: those left behind, whose futures are out, end with
 * the connection. */
static void give_back(struct rt_gate *gate, struct rt_waiting *waiting,
		      uint32_t count)
{
	const struct rpma_rt_wr *sends = waiting->sends;

	waiting->claimed = count;
	waiting->is_cut = sends != NULL && waiting->first > 0 &&
			  (sends[waiting->first - 1].flags & RPMA_RT_F_LINKED);
	rt_gate_close_inside(gate);
}

/* Posts runs until there is no room for the next one. */
static int post_runs(struct rpma_rt_conn *conn, struct rt_gate *gate,
		     struct rt_waiting *waiting, rt_post_run_fn *run)
{
	const struct rpma_rt_route *own = &conn->own[gate->side->which];
	uint32_t first;
	uint32_t count;

	while ((count = claim_run(gate, waiting, own)) > 0) {
		first = waiting->first;
		if (!run(conn, waiting, count)) {
			give_back(gate, waiting,
				  count - (waiting->first - first));
			return RPMA_E_PROVIDER;
		}
	}
	return rt_waiting_is_empty(waiting) ? 0 : RPMA_E_AGAIN;
}

/* Has the first one room now, or waits for another lane? Else the poller sees
 * that it waits: either it sees want, and the waiter, or this what it has
 * published [LEDGER-2]. */
static bool has_room_after_all(struct rt_gate *gate,
			       const struct rpma_rt_route *own, uint32_t count)
{
	enum rpma_rt_again reason = refusal(gate, own, count);
	const struct rt_waiter *waiter = NULL;

	if (reason == RPMA_RT_AGAIN_NONE)
		return true;
	if (reason == RPMA_RT_AGAIN_BACKLOG)
		waiter = wait_for_lane(own);
	/* pairs with flush_once() and the retry of spills [LEDGER-2] */
	rt_fence_dekker();
	return refusal(gate, own, count) != reason ||
	       has_moved(own, reason, waiter);
}

static void set_waiting(struct rt_gate *gate, bool is_waiting)
{
	_Atomic uint32_t *want = &gate->side->want;

	rt_gate_set_waiting(gate, is_waiting);
	/* release: pairs with the acquire in resume(): what resumes them. The
	 * fence orders it, for the rest. Relaxed: of the second the gate */
	if (is_waiting)
		atomic_fetch_or_explicit(want, RT_WANT_FUTURES,
					 memory_order_release);
	else
		atomic_fetch_and_explicit(want, ~(uint32_t)RT_WANT_FUTURES,
					  memory_order_relaxed);
}

int rt_post_go_on(struct rpma_rt_conn *conn, enum rpma_rt_side side,
		  rt_post_run_fn *run)
{
	struct rt_gate *gate = &conn->gate[side];
	struct rt_waiting *waiting = rt_post_waiting(gate);
	uint32_t first;
	int ret;

	while ((ret = post_runs(conn, gate, waiting, run)) == RPMA_E_AGAIN) {
		set_waiting(gate, true);
		first = waiting->first;
		if (!has_room_after_all(gate, &conn->own[side],
					rt_waiting_last(waiting, first) + 1 -
						first))
			return ret;
	}
	if (ret == 0) {
		set_waiting(gate, false);
		rt_answer_lock_left(gate->side);
	}
	return ret;
}

int rt_post_resume(struct rt_side *side, rt_post_run_fn *run)
{
	struct rpma_rt_conn *conn = rt_conn_of_side(side);
	struct rt_gate *gate = &conn->gate[side->which];
	int ret = rt_gate_enter_poller(gate);
	bool has_room;

	if (ret != 0 && ret != RT_GATE_BEHIND) /* closed: CLOSED answers */
		return ret == RPMA_E_AGAIN ? ret : RT_WAITING_STAYS;
	gate->ledger.tick = rt_poller_date(conn->poller);
	/* the log's function is the program's, and may post itself */
	rpma_log_hold();
	ret = rt_post_go_on(conn, (enum rpma_rt_side)side->which, run);
	reap(gate);
	has_room = rt_ledger_room(&gate->ledger) > 0;
	rt_gate_leave_poller(gate);
	rpma_log_release();
	if (ret == RPMA_E_PROVIDER)
		give_up(conn);
	return ret == 0 && has_room ? 0 : RT_WAITING_STAYS;
}

int rt_post_stay_behind(struct rpma_rt_conn *conn, enum rpma_rt_side side)
{
	struct rt_route_opened *running = running_route(conn);
	uint32_t want = RT_WANT_CREDIT;

	if (running != NULL)
		want <<= RT_WANT_IN_CALL;
	/* relaxed: the poller comes inside after this, or puts it off */
	atomic_fetch_or_explicit(&conn->side[side].want, want,
				 memory_order_relaxed);
	if (running != NULL)
		running->wants |= (uint8_t)RT_WANTS(side);
	return rt_want_again(RPMA_RT_AGAIN_CREDIT);
}

/* The gate is not open yet: as with credit, exactly one WRITABLE follows. */
static int await_open(struct rpma_rt_conn *conn, enum rpma_rt_side which)
{
	struct rt_route_opened *running = running_route(conn);
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

int rt_post_await_gate(struct rpma_rt_conn *conn, enum rpma_rt_side which,
		       int refused)
{
	struct rt_route_opened *running;

	if (refused == RT_GATE_REFUSED_YET)
		refused = await_open(conn, which);
	if (refused == RT_GATE_REFUSED_YET)
		return RPMA_E_AGAIN;
	if (refused == RT_GATE_BEHIND)
		return refused;
	if (refused != RPMA_E_AGAIN)
		return RT_REFUSED(refused, "nothing is posted");
	running = running_route(conn);
	if (running != NULL)
		rt_answer_lock_inside(running, which);
	else if (rt_answer_lock(conn, which) == RPMA_RT_E_CLOSED)
		return RPMA_RT_E_CLOSED;
	return rt_want_again(RPMA_RT_AGAIN_LOCK);
}

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

int rt_post_answer(struct rpma_rt_conn *conn, int taken, int ret)
{
	if (ret == RPMA_E_PROVIDER)
		give_up(conn);
	if (taken > 0)
		rt_refuse_forget();
	if (taken > 0 || ret == RPMA_E_AGAIN)
		return taken > 0 ? taken : ret;
	return RT_REFUSED(ret, "nothing is posted");
}
