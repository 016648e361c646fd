/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/* reason.c -- reasons of the end of a connection, see reason.h. The meaning of
 * errnos: base/failure.c. */

#include "conn/reason.h"

#include <errno.h>
#include <rdma/rdma_cma.h>
#include <stdio.h>

#include "base/log.h"
#include "conn/conn.h"
#include "conn/resolve.h"

/* status of librdmacm when a call inside librdmacm failed; errno is not passed
 * on */
#define CALL_FAILED (-1)

/* reject reasons of the CM */
#define CM_NO_LISTENER 8
#define CM_BY_PROGRAM  28

/*
 * Returns whether the peer has left, in contrast to a verb that failed. The
 * peer had accepted; then either the peer ended the handshake before the answer
 * was taken here, or a verb refused to take the answer. librdmacm reports
 * CONNECT_ERROR in both cases, and drops the peer's REJECTED or DISCONNECTED
 * that follows. The kernel can tell the cases apart: for the queue pair of a
 * finished handshake the kernel has no attributes.
 */
static bool reason_has_peer_left(const struct rpma_cm_event *event)
{
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_RTR};
	int mask;

	return event->type == RDMA_CM_EVENT_CONNECT_ERROR &&
	       event->status == CALL_FAILED &&
	       rdma_init_qp_attr(event->id, &attr, &mask) != 0;
}

/* Returns the step whose failure the event reports. */
static enum rt_step reason_step_of(uint32_t type)
{
	switch (type) {
	case RDMA_CM_EVENT_ADDR_ERROR:
		return RT_STEP_ADDR;
	case RDMA_CM_EVENT_ROUTE_ERROR:
		return RT_STEP_PATH;
	case RDMA_CM_EVENT_UNREACHABLE:
		return RT_STEP_ANSWER;
	case RDMA_CM_EVENT_CONNECT_ERROR:
		return RT_STEP_ESTABLISH;
	default:
		return RT_STEP_NONE;
	}
}

/* Returns the reason for an event that is not the failure of a step. */
static enum rpma_rt_reason reason_of(uint32_t type)
{
	switch (type) {
	case RDMA_CM_EVENT_DEVICE_REMOVAL:
		return RPMA_RT_REASON_DEVICE;
	case RDMA_CM_EVENT_REJECTED:
		return RPMA_RT_REASON_REJECTED;
	case RDMA_CM_EVENT_CONNECT_ERROR: /* reason_has_peer_left() */
	case RDMA_CM_EVENT_DISCONNECTED:
	case RDMA_CM_EVENT_TIMEWAIT_EXIT:
		return RPMA_RT_REASON_DISCONNECTED;
	default:
		return RPMA_RT_REASON_FAILED;
	}
}

static int reason_errno_of(int status)
{
	if (status == CALL_FAILED)
		return RT_ERRNO_UNKNOWN;
	return status < 0 ? -status : 0;
}

struct rt_reason rt_reason_of_event(const struct rpma_cm_event *event)
{
	struct rt_reason why = {
		.step = reason_has_peer_left(event)
				? RT_STEP_NONE
				: reason_step_of(event->type),
		.err = reason_errno_of(event->status),
		.detail = event->status == CALL_FAILED
				  ? 0
				  : (uint32_t)event->status,
	};

	why.reason = why.step == RT_STEP_NONE
			     ? reason_of(event->type)
			     : rt_failure_reason(why.step, why.err);
	return why;
}

struct rt_reason rt_reason_of_step(enum rt_step step, int err)
{
	return (struct rt_reason){
		.reason = rt_failure_reason(step, err),
		.step = step,
		.err = err,
		.detail = (uint32_t)-err,
	};
}

static const char *reason_rejected_advice(int status)
{
	switch (status) {
	case CM_NO_LISTENER:
	case -ECONNREFUSED: /* iWARP */
		return ": no program listens at that port there";
	case CM_BY_PROGRAM:
		return ": the program there rejected it, or has no room; its "
		       "log says why";
	default:
		return "";
	}
}

/* Writes the reason of a connection before ESTABLISHED, and a remedy, as the
 * end of a message. */
static void reason_words(const struct rt_reason *why,
			 char buf[static RT_FAILURE_WORDS])
{
	char words[RT_FAILURE_WORDS];
	const char *reason = rpma_rt_reason_2str(why->reason);

	if (why->step != RT_STEP_NONE)
		snprintf(buf, RT_FAILURE_WORDS, "%s: %s", reason,
			 rt_failure_2str(why->step, why->err, words));
	else if (why->reason == RPMA_RT_REASON_REJECTED)
		snprintf(buf, RT_FAILURE_WORDS, "%s (status %d)%s", reason,
			 (int)why->detail,
			 reason_rejected_advice((int)why->detail));
	else
		snprintf(buf, RT_FAILURE_WORDS, "%s", reason);
}

/* Returns whether the peer was not reached. For a name without an address
 * resolve.c has logged already. */
static bool reason_is_unreached(const struct rpma_rt_conn *conn)
{
	return !conn->passive &&
	       conn->ctl.handshake != RT_HANDSHAKE_ESTABLISHED &&
	       conn->setup->addr[0] != '\0';
}

void rt_reason_log_death(struct rpma_rt_conn *conn, const struct rt_reason *why)
{
	char name[RPMA_RT_NAME_MAX + 1];
	char words[RT_FAILURE_WORDS];
	char target[512];

	rt_name_copy(conn, name);
	reason_words(why, words);
	if (reason_is_unreached(conn) &&
	    (why->step != RT_STEP_NONE ||
	     why->reason == RPMA_RT_REASON_REJECTED)) {
		rt_resolve_target(conn->setup, target, sizeof(target));
		RT_LOG_ERROR("\"%s\" is not connected to %s, port %s: %s", name,
			     target, conn->setup->port, words);
	} else if (why->step != RT_STEP_NONE &&
		   why->reason == RPMA_RT_REASON_FAILED)
		RT_LOG_ERROR("\"%s\" (queue pair 0x%x) closes: %s", name,
			     conn->qp_num, words);
	else
		RT_LOG_INFO("\"%s\" (queue pair 0x%x) closes, reason: %s", name,
			    conn->qp_num, rpma_rt_reason_2str(why->reason));
}

void rt_reason_refused(struct rpma_rt_conn *conn, int answer)
{
	int err = rt_failure_answer(answer);

	/* Linux has no errno above 133. relaxed: RT_CTL_REFUSED publishes the
	 * errno */
	atomic_store_explicit(&conn->post_errno,
			      (uint8_t)(err <= UINT8_MAX ? err : EIO),
			      memory_order_relaxed);
}

int rt_reason_refusal(const struct rpma_rt_conn *conn)
{
	/* relaxed: stored by the calling thread, or published by
	 * RT_CTL_REFUSED */
	return atomic_load_explicit(&conn->post_errno, memory_order_relaxed);
}
