/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * item.c -- see item.h.
 */

#include "conn/item.h"

#include "poller/poller.h"

void *rt_item_user(const struct rpma_rt_conn *conn)
{
	/* relaxed: the application orders its own pointer */
	return atomic_load_explicit(&conn->user, memory_order_relaxed);
}

/* If a WR failed, reports ERROR rather than DISCONNECTED: the failure may have
 * caused the disconnect, which may be seen first. */
static enum rpma_rt_reason reason_of(const struct rpma_rt_conn *conn)
{
	return conn->poll.failed &&
			       conn->ctl.reason == RPMA_RT_REASON_DISCONNECTED
		       ? RPMA_RT_REASON_ERROR
		       : conn->ctl.reason;
}

struct rpma_rt_completion rt_item_event(const struct rpma_rt_conn *conn,
					enum rpma_rt_event event)
{
	struct rpma_rt_completion item = {
		.context = (uintptr_t)conn,
		.user = rt_item_user(conn),
		.qp_num = conn->poll.bind != RT_BIND_NONE ? conn->qp_num : 0,
		.kind = RPMA_RT_EVENT,
		.opcode = (uint8_t)event,
	};

	/* of a route that is closed before, the reason is LOCAL */
	if (conn->poll.state != RT_PS_HEALTHY &&
	    (event == RPMA_RT_EVENT_CLOSED ||
	     event == RPMA_RT_EVENT_ROUTE_CLOSED)) {
		item.status = (uint8_t)reason_of(conn);
		item.imm = conn->ctl.cm_status;
	}
	return item;
}

struct rpma_rt_completion rt_item_writable(const struct rpma_rt_conn *conn,
					   int side)
{
	return (struct rpma_rt_completion){
		.context = (uintptr_t)conn,
		.user = rt_item_user(conn),
		.qp_num = conn->qp_num,
		.kind = RPMA_RT_WRITABLE,
		.opcode = (uint8_t)side,
	};
}

void rt_item_write(struct rpma_rt_conn *conn,
		   const struct rpma_rt_completion *item)
{
	struct rt_lane *lane = rt_conn_lane(conn);

	if (lane != NULL)
		rt_deliver_write(conn->poller, lane, item);
}

void rt_item_write_event(struct rpma_rt_conn *conn, enum rpma_rt_event event)
{
	struct rpma_rt_completion item = rt_item_event(conn, event);

	rt_item_write(conn, &item);
}
