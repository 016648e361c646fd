/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/* look.c -- sends a connection's look message; see look.h. */

#include "conn/look.h"

#include "conn/route.h"
#include "poller/poller.h"

void rt_look_send(struct rpma_rt_conn *conn)
{
	/* acq_rel: pairs with the exchange in rt_answer_look(): either that
	 * sees what this thread left, or this thread sends the message again */
	if (atomic_exchange_explicit(&conn->look_sent, true,
				     memory_order_acq_rel))
		return;
	/* relaxed: the caller has a handle */
	atomic_fetch_add_explicit(&conn->target.count, 1, memory_order_relaxed);
	rt_inbox_push_mt(&conn->poller->inbox, &conn->look_msg);
}

void rt_look_await(struct rpma_rt_conn *conn, const struct rpma_rt_route *route,
		   enum rpma_rt_side side)
{
	_Atomic uint32_t *awaited = &conn->side[side].awaited;
	uint32_t is = 0;
	uint32_t to;

	do {
		to = is == 0 || is == route->number ? route->number
						    : RT_LOOK_MANY;
		/* release: what the caller wants, to take_awaited() */
	} while (!atomic_compare_exchange_weak_explicit(
		awaited, &is, to, memory_order_release, memory_order_relaxed));
	rt_look_send(conn);
}
