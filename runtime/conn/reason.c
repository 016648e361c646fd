/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/* reason.c -- see reason.h. */

#include "conn/reason.h"

#include <rdma/rdma_cma.h>

/* librdmacm's status where a call of its own failed; errno is not passed on */
#define CALL_FAILED (-1)

/*
 * The peer had accepted, and then either it ended the handshake before its
 * answer was taken here, or a verb refused to take it. librdmacm calls both
 * CONNECT_ERROR, and drops the peer's REJECTED or DISCONNECTED that follows.
 * The kernel knows which: it has nothing for the queue pair of a handshake that
 * is over.
 */
static enum rpma_rt_reason
reason_of_untaken_answer(const struct rpma_cm_event *event)
{
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_RTR};
	int mask;

	if (event->status == CALL_FAILED &&
	    rdma_init_qp_attr(event->id, &attr, &mask))
		return RPMA_RT_REASON_DISCONNECTED;
	return RPMA_RT_REASON_FAILED;
}

enum rpma_rt_reason rt_reason_control(const struct rpma_cm_event *event)
{
	switch (event->type) {
	case RDMA_CM_EVENT_DEVICE_REMOVAL:
		return RPMA_RT_REASON_DEVICE;
	case RDMA_CM_EVENT_REJECTED:
		return RPMA_RT_REASON_REJECTED;
	case RDMA_CM_EVENT_ADDR_ERROR:
	case RDMA_CM_EVENT_ROUTE_ERROR:
	case RDMA_CM_EVENT_UNREACHABLE:
		return RPMA_RT_REASON_UNREACHABLE;
	case RDMA_CM_EVENT_DISCONNECTED:
	case RDMA_CM_EVENT_TIMEWAIT_EXIT:
		return RPMA_RT_REASON_DISCONNECTED;
	case RDMA_CM_EVENT_CONNECT_ERROR:
		return reason_of_untaken_answer(event);
	default:
		return RPMA_RT_REASON_FAILED;
	}
}

uint32_t rt_reason_detail(const struct rpma_cm_event *event)
{
	return event->status == CALL_FAILED ? 0 : (uint32_t)event->status;
}
