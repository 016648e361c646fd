/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * hear.c -- see hear.h. The event thread leaves a bit, and the control thread
 * does what is to be done. doc/EVENTS.md has every event there is.
 */

#include "conn/hear.h"

#include <rdma/rdma_cma.h>

#include "base/log.h"
#include "conn/conn.h"

/* Event thread. */
static void qp_event(struct rt_async_object *self, enum ibv_event_type type)
{
	struct rpma_rt_conn *conn =
		RT_FROM(struct rpma_rt_conn, ctl.async, self);

	switch (type) {
	case IBV_EVENT_QP_FATAL:
	case IBV_EVENT_QP_REQ_ERR:
	case IBV_EVENT_QP_ACCESS_ERR:
		rt_conn_tell_control(conn, RT_CTL_FATAL);
		break;
	case IBV_EVENT_QP_LAST_WQE_REACHED:
		rt_conn_tell_poller(conn, RT_POLL_LAST_WQE);
		break;
	case IBV_EVENT_COMM_EST:
	case IBV_EVENT_PATH_MIG:
	case IBV_EVENT_PATH_MIG_ERR:
		/* relaxed: the bit publishes it */
		atomic_fetch_or_explicit(&conn->ctl.heard, UINT32_C(1) << type,
					 memory_order_relaxed);
		rt_conn_tell_control(conn, RT_CTL_HEARD);
		break;
	default: /* what it says is not waited for: doc/EVENTS.md */
		break;
	}
}

void rt_hear_begin(struct rpma_rt_conn *conn)
{
	conn->ctl.async =
		(struct rt_async_object){.object = conn->qp, .event = qp_event};
	rt_async_own(&conn->ctl.async);
}

static void say_ignored(struct rpma_rt_conn *conn, const char *what)
{
	char name[RPMA_RT_NAME_MAX + 1];

	rt_name_copy(conn, name);
	RT_LOG_INFO("\"%s\" (queue pair 0x%x) goes on: %s", name, conn->qp_num,
		    what);
}

/* Asynchronous events of its queue pair that end nothing. */
void rt_hear_control(struct rpma_rt_conn *conn)
{
	/* relaxed: the bit published it */
	uint32_t heard = atomic_exchange_explicit(&conn->ctl.heard, 0,
						  memory_order_relaxed);

	/* a message has come before the peer's last word of the handshake,
	 * which may be lost: then the peer does not say it again */
	if (heard & UINT32_C(1) << IBV_EVENT_COMM_EST && conn->passive &&
	    conn->ctl.state == RT_CONN_CONNECTING)
		rdma_notify(conn->setup->id, IBV_EVENT_COMM_EST);
	if (heard & UINT32_C(1) << IBV_EVENT_PATH_MIG)
		say_ignored(conn, "its path has moved to the other one");
	if (heard & UINT32_C(1) << IBV_EVENT_PATH_MIG_ERR)
		say_ignored(conn, "its path cannot move to the other one");
}

/* Does it say something about a connection? Others are for multicast groups, or
 * only news: an address that has moved to another port of a bond. */
static bool is_of_connections(enum rdma_cm_event_type type)
{
	switch (type) {
	case RDMA_CM_EVENT_CONNECT_REQUEST:
	case RDMA_CM_EVENT_CONNECT_RESPONSE: /* without a queue pair only */
	case RDMA_CM_EVENT_MULTICAST_JOIN:
	case RDMA_CM_EVENT_MULTICAST_ERROR:
	case RDMA_CM_EVENT_ADDR_CHANGE:
		return false;
	default: /* also of a newer librdmacm */
		return type <= RDMA_CM_EVENT_TIMEWAIT_EXIT;
	}
}

bool rt_hear_concerns(struct rpma_rt_conn *conn, uint32_t type)
{
	if (is_of_connections((enum rdma_cm_event_type)type))
		return true;
	say_ignored(conn, rdma_event_str((enum rdma_cm_event_type)type));
	return false;
}
