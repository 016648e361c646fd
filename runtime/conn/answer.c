/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * answer.c -- see answer.h. The thread that clears a bit of want owns it: it
 * writes exactly one WRITABLE for it.
 */

#include "conn/answer.h"

#include "base/runtime.h"
#include "conn/fill.h"
#include "conn/item.h"
#include "conn/owing.h"
#include "conn/route.h"
#include "poller/callback.h"
#include "poller/poller.h"
#include "queue/lane.h"

/* Calls each function of the connection with one of these wants: WRITABLE. */
static void call_writable(struct rt_poller *poller, struct rpma_rt_conn *conn,
			  int side, uint32_t wants)
{
	const struct rpma_rt_completion item = rt_item_writable(conn, side);
	struct rt_route_opened *opened;
	struct rpma_rt_route *route;

	for (route = conn->poll.routes; !route->is_own; route = opened->next) {
		opened = rt_route_opened(route);
		if (!(opened->wants & wants))
			continue;
		opened->wants &= (uint8_t)~wants;
		if (conn->side[side].healthy) /* else CLOSED answers */
			rt_deliver_call(poller, &opened->callback, &item);
	}
}

/*
 * While the connection's own queue is over its limit, WRITABLE waits for the
 * backlog to ease, or WRITABLEs that nobody takes would fill the spill. False:
 * the queue is not over its limit.
 */
static bool wait_for_own_lane(const struct rpma_rt_conn *conn,
			      const struct rt_side *side)
{
	const struct rpma_rt_route *own = &conn->own[side->which];
	struct rt_lane *lane = rt_route_lane(own);

	if (lane == NULL || !rt_lane_is_backlogged(lane))
		return false;
	rt_lane_wait_mt(lane, rt_route_waiter(own));
	return true;
}

void rt_answer_poller(struct rt_side *side, struct rt_poller *poller,
		      uint32_t wants)
{
	struct rpma_rt_conn *conn = rt_conn_of_side(side);
	uint32_t in_call = wants << RT_WANT_IN_CALL;
	struct rpma_rt_completion item;
	uint32_t taken;

	if (!side->healthy)
		return; /* CLOSED answers */
	if (rt_side_wants(side, RT_WANT_RETIRED)) {
		rt_owing_look_poller(side);
		if (!rt_side_wants(side, wants))
			return;
	}
	if (rt_side_wants(side, RT_WANT_POOL)) { /* it has no other poster */
		rt_fill_poller(conn);
		return;
	}
	/* relaxed: the caller's look [LEDGER-2] */
	if ((atomic_load_explicit(&side->want, memory_order_relaxed) & wants) &&
	    wait_for_own_lane(conn, side))
		wants = 0; /* no queue is in the way of a function */
	/* acq_rel: of two takers one gets it */
	taken = atomic_fetch_and_explicit(&side->want, ~(wants | in_call),
					  memory_order_acq_rel);
	if (taken & wants) {
		item = rt_item_writable(conn, side->which);
		rt_item_write(conn, &item);
	}
	if (taken & in_call)
		call_writable(poller, conn, side->which, RT_WANTS(side->which));
}

void rt_answer_eased_poller(void *arg)
{
	const uint32_t wants = RT_WANT_CREDIT | RT_WANT_BACKLOG | RT_WANT_LOCK;
	struct rt_side *side = arg;

	if (rt_side_wants(side, wants | RT_WANT_POOL | RT_WANT_FUTURES))
		side->ops->answer(side, rt_conn_of_side(side)->poller, wants);
}

/* What was put off, too, is answered by the side's operation. */
static void answer_lock(struct rt_side *side, struct rt_poller *poller)
{
	uint32_t wants = side->put_off | RT_WANT_LOCK;

	side->put_off = 0;
	if (wants != RT_WANT_LOCK || rt_side_wants(side, RT_WANT_LOCK))
		side->ops->answer(side, poller, wants);
}

/* Posts that could not wait for a lock may be tried again. Before the number of
 * the queue pair has come, what opens the side answers; after the side's first
 * failure, CLOSED does. */
static void lock_message(struct rt_msg *msg, void *owner)
{
	struct rpma_rt_conn *conn = RT_FROM(struct rpma_rt_conn, lock_msg, msg);
	int i;

	/* acq_rel: pairs with the exchange in send_lock_message(): either this
	 * sees the want of a post, or that post sends the message again */
	atomic_exchange_explicit(&conn->lock_sent, false, memory_order_acq_rel);
	for (i = 0; i < 2; i++) {
		if (!conn->side[i].healthy)
			continue;
		call_writable(owner, conn, i, RT_WANTS_LOCK(i));
		answer_lock(&conn->side[i], owner);
	}
	conn->target.ops->unref(&conn->target);
}

/* REQUIRES: the connection is not DONE, so that its poller goes on */
static void send_lock_message(struct rpma_rt_conn *conn)
{
	/* acq_rel: as above */
	if (atomic_exchange_explicit(&conn->lock_sent, true,
				     memory_order_acq_rel))
		return;
	/* relaxed: the caller holds the connection */
	atomic_fetch_add_explicit(&conn->target.count, 1, memory_order_relaxed);
	conn->lock_msg.fn = lock_message;
	rt_inbox_push_mt(&conn->poller->inbox, &conn->lock_msg);
}

void rt_answer_lock_inside(struct rt_route_opened *running, int side)
{
	running->wants |= (uint8_t)RT_WANTS_LOCK(side);
	send_lock_message(running->route.conn);
}

void rt_answer_put_off_poller(struct rt_side *side, uint32_t wants)
{
	side->put_off |= (uint16_t)wants;
	send_lock_message(rt_conn_of_side(side));
}

void rt_answer_lock_left(struct rt_side *side)
{
	if (rt_side_wants(side, RT_WANT_LOCK))
		send_lock_message(rt_conn_of_side(side));
}

int rt_answer_lock(struct rpma_rt_conn *conn, int side)
{
	int ret = RPMA_RT_E_CLOSED;

	/* it becomes DONE under this lock, after CLOSED */
	pthread_mutex_lock(&conn->rt->ask_lock);
	if (!conn->is_done && !rt_gate_is_closed(&conn->gate[side])) {
		/* relaxed: the message orders it */
		atomic_fetch_or_explicit(&conn->side[side].want, RT_WANT_LOCK,
					 memory_order_relaxed);
		send_lock_message(conn);
		ret = RPMA_E_AGAIN;
	}
	pthread_mutex_unlock(&conn->rt->ask_lock);
	return ret;
}
