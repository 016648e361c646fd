/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * answer.c -- WRITABLE: a refused post may be tried again. A thread that clears
 * a bit of `want` owns the bit, and writes a single WRITABLE.
 */

#include "conn/conn.h"

#include "base/runtime.h"
#include "conn/fill.h"
#include "conn/hold.h"
#include "conn/route.h"
#include "poller/cq_pool.h"
#include "poller/poller.h"
#include "queue/lane.h"

/* Returns the item that reports room on the side. */
static struct rpma_rt_completion
answer_writable(const struct rpma_rt_conn *conn, int side)
{
	return (struct rpma_rt_completion){
		.context = (uintptr_t)conn,
		.user = rt_item_user(conn),
		.qp_num = conn->qp_num,
		.kind = RPMA_RT_WRITABLE,
		.opcode = (uint8_t)side,
	};
}

/* Calls each function of the connection with WRITABLE that has such a want. */
static void answer_call_writable(struct rt_poller *poller,
				 struct rpma_rt_conn *conn, int side,
				 uint32_t wants)
{
	const struct rpma_rt_completion item = answer_writable(conn, side);
	struct rt_route_opened *opened;
	struct rpma_rt_route *route;

	for (route = conn->poll.routes; !route->is_own; route = opened->next) {
		opened = rt_route_opened(route);
		if (!(opened->wants & wants))
			continue;
		opened->wants &= (uint8_t)~wants;
		if (rt_side_is_healthy(
			    &conn->side[side])) /* otherwise CLOSED answers */
			rt_deliver_call(poller, &opened->callback, &item);
	}
}

/*
 * Makes WRITABLE wait while the connection's own queue is over its limit:
 * otherwise WRITABLEs would fill the spill of a queue without a consumer.
 * Returns false if the queue is not over its limit.
 */
static bool answer_wait_for_own_lane(const struct rpma_rt_conn *conn,
				     const struct rt_side *side)
{
	const struct rpma_rt_route *own = &conn->own[side->which];
	struct rt_lane *lane = rt_route_lane(own);

	if (lane == NULL || !rt_lane_is_backlogged(lane))
		return false;
	rt_lane_wait_poller(lane, own->waiter);
	return true;
}

/* Returns the wants with an answer. While the side is not open, or all places
 * are taken, a WRITABLE for CREDIT would be useless: the opening answers later,
 * or the batch that gives a place back, or the thread that gives a slot back
 * unposted. */
static uint32_t answer_possible_wants(const struct rpma_rt_conn *conn, int side,
				      uint32_t wants)
{
	return rt_turn_look(&conn->gate[side].turn) & RT_TURN_OPEN &&
			       rt_hold_places(conn, (enum rpma_rt_side)side) > 0
		       ? wants
		       : wants & ~(uint32_t)RT_WANT_CREDIT;
}

static void answer_side(struct rt_side *side, struct rt_poller *poller,
			uint32_t wants)
{
	struct rpma_rt_conn *conn = rt_conn_of_side(side);
	struct rpma_rt_completion item;
	uint32_t in_call;
	uint32_t taken;

	if (!rt_side_wants(side, wants))
		return;
	wants = answer_possible_wants(conn, side->which, wants);
	in_call = wants << RT_WANT_IN_CALL;
	/* relaxed: ordered by the batch's fence, as the caller's look is
	 * [LEDGER-2] */
	if ((atomic_load_explicit(&side->want, memory_order_relaxed) & wants) &&
	    answer_wait_for_own_lane(conn, side))
		wants = 0; /* no queue is in the way of a function */
	/* acq_rel: exactly one of two takers gets the bits */
	taken = atomic_fetch_and_explicit(&side->want, ~(wants | in_call),
					  memory_order_acq_rel);
	if (taken & wants) {
		item = answer_writable(conn, side->which);
		rt_item_write(conn, &item);
	}
	if (taken & in_call)
		answer_call_writable(poller, conn, side->which,
				     RT_WANTS(side->which));
}

void rt_answer_poller(struct rt_side *side, struct rt_poller *poller,
		      uint32_t wants)
{
	struct rpma_rt_conn *conn = rt_conn_of_side(side);

	if (!rt_side_is_healthy(side))
		return; /* CLOSED answers */
	if (rt_side_wants(side, RT_WANT_RETIRED))
		rt_owing_look_poller(side);
	/* the side has no other poster */
	if (rt_side_wants(side, RT_WANT_POOL)) {
		rt_fill_answer_poller(conn);
		return;
	}
	/* the line goes first */
	if (rt_side_wants(side, RT_WANT_LINE))
		rt_hold_poller(conn, (enum rpma_rt_side)side->which);
	answer_side(side, poller, wants);
}

void rt_answer_eased_poller(void *arg)
{
	struct rt_side *side = arg;

	if (rt_side_wants(side,
			  RT_WANT_CREDIT | RT_WANT_BACKLOG | RT_WANT_POOL))
		side->ops->answer(side, rt_conn_of_side(side)->poller,
				  RT_WANT_CREDIT | RT_WANT_BACKLOG);
}

/* ------------------------------------------------------------- looking --- */

/* Lists the route with its lane, if the lane is over its limit. */
static bool answer_list(struct rpma_rt_route *route)
{
	struct rt_lane *lane = rt_route_lane(route);

	if (rt_route_is_closed(route) || lane == NULL ||
	    !rt_lane_is_backlogged(lane))
		return false;
	rt_lane_wait_poller(lane, route->waiter);
	return true;
}

/* Lists the awaited routes whose lanes are over their limit. Returns whether
 * the lane of an awaited route is below the limit, so that the refused post may
 * be tried again. */
static bool answer_list_awaited(struct rpma_rt_conn *conn, int side)
{
	/* acquire: pairs with the release in post_await_lane(), post.c */
	uint32_t number = atomic_exchange_explicit(&conn->side[side].awaited, 0,
						   memory_order_acquire);
	struct rpma_rt_route *route = conn->poll.routes;
	bool is_eased = false;

	if (number == 0)
		return false;
	if (number == conn->own[side].number)
		return !answer_list(&conn->own[side]);
	for (; route != NULL; route = rt_route_next(route)) {
		if (route->side != side ||
		    (number != RT_LOOK_MANY && route->number != number))
			continue;
		is_eased |= !answer_list(route);
		if (number != RT_LOOK_MANY)
			return is_eased;
	}
	/* the route is closed by now, which the next post learns */
	return is_eased || number != RT_LOOK_MANY;
}

static void answer_look_at(struct rpma_rt_conn *conn, int side)
{
	uint32_t wants = RT_SIDE_ANSWERS;

	rt_hold_poller(conn, (enum rpma_rt_side)side);
	if (rt_side_wants(&conn->side[side], RT_WANT_CREDIT))
		rt_hold_sweep(conn, (enum rpma_rt_side)side);
	if (answer_list_awaited(conn, side))
		wants |= RT_WANT_BACKLOG;
	conn->side[side].ops->answer(&conn->side[side], conn->poller, wants);
}

void rt_answer_look(struct rt_msg *msg, void *owner)
{
	struct rpma_rt_conn *conn = RT_FROM(struct rpma_rt_conn, look_msg, msg);
	int i;

	(void)owner;
	/* acq_rel: pairs with the exchange in rt_look_send(): either this
	 * exchange sees what the sender left, or the sender sends the message
	 * again */
	atomic_exchange_explicit(&conn->look_sent, false, memory_order_acq_rel);
	for (i = 0; i < 2; i++) {
		/* before a side's first completion there is nothing to look at;
		 * after the first failure CLOSED answers */
		if (rt_side_is_healthy(&conn->side[i]))
			answer_look_at(conn, i);
	}
	if (rt_side_is_healthy(&conn->side[RPMA_RT_SEND_SIDE]) &&
	    rt_turn_is_through(&conn->gate[RPMA_RT_SEND_SIDE].turn))
		rt_conn_tell_control(conn, RT_CTL_THROUGH);
	conn->target.ops->unref(&conn->target);
}
