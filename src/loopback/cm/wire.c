/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * wire.c -- messages from one identifier to another, as the fault rules let
 * them pass. Only this file knows that both are in one process. Everything is
 * under the lock.
 */

#include "cm/wire.h"

#include <stdlib.h>

#include "base/service.h"
#include "capture/file.h"
#include "cm/captured.h"
#include "cm/cm.h"
#include "cm/event.h"
#include "cm/table.h"
#include "fault/fault.h"

static void (*receive)(const struct lb_cm_msg *msg);

void lb_cm_wire_attach(void (*fn)(const struct lb_cm_msg *msg))
{
	receive = fn;
}

static const char *const fault_names[LB_CM_MSGS] = {
	[LB_CM_MSG_REQ] = "cm.msg_req",	  [LB_CM_MSG_MRA] = "cm.msg_mra",
	[LB_CM_MSG_REP] = "cm.msg_rep",	  [LB_CM_MSG_RTU] = "cm.msg_rtu",
	[LB_CM_MSG_REJ] = "cm.msg_rej",	  [LB_CM_MSG_DREQ] = "cm.msg_dreq",
	[LB_CM_MSG_DREP] = "cm.msg_drep",
};

static void receive_late(void *arg)
{
	struct lb_cm_msg *msg = arg;

	lb_cm_lock();
	receive(msg);
	lb_cm_unlock();
	lb_cm_flush();
	free(msg);
}

static bool send_late(const struct lb_cm_msg *msg, uint32_t delay_us)
{
	struct lb_cm_msg *copy = malloc(sizeof(*copy));

	if (!copy)
		return false;
	*copy = *msg;
	if (lb_service_post(receive_late, copy, (uint64_t)delay_us * 1000)) {
		free(copy);
		return false;
	}
	return true;
}

bool lb_cm_wire_transmit(const struct lb_cm_msg *msg)
{
	uint32_t delay_us = 0;

	if (lb_file_is_wanted())
		lb_cm_captured(msg);
	switch (lb_fault_event(fault_names[msg->type], &delay_us)) {
	case LB_EVENT_DROP:
		return false;
	case LB_EVENT_LATE:
		return send_late(msg, delay_us);
	case LB_EVENT_DOUBLE:
		receive(msg);
		break;
	default:
		break;
	}
	receive(msg);
	return true;
}

bool lb_cm_wire_post(struct lb_cm_id *id, struct lb_cm_msg *msg)
{
	msg->from = id->handle;
	if (!msg->to)
		msg->to = id->peer;
	return lb_cm_wire_transmit(msg);
}

bool lb_cm_wire_send(struct lb_cm_id *id, enum lb_cm_msg_type type)
{
	struct lb_cm_msg msg = {.type = type};

	return lb_cm_wire_post(id, &msg);
}

void lb_cm_wire_reject(struct lb_cm_id *id, int reason)
{
	struct lb_cm_msg msg = {.type = LB_CM_MSG_REJ, .reason = reason};

	if (id->peer)
		lb_cm_wire_post(id, &msg);
}

void lb_cm_wire_refuse(const struct lb_cm_msg *msg, int reason)
{
	struct lb_cm_msg rej = {
		.type = LB_CM_MSG_REJ,
		.from = msg->to,
		.to = msg->from,
		.reason = reason,
	};

	lb_cm_wire_transmit(&rej);
}
