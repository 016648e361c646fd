/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * wire.c -- messages from one identifier to another, as the fault rules let
 * them pass: to one of this process by a call, to one of another over its link.
 * Everything is under the lock.
 */

#include "cm/wire.h"

#include <errno.h>
#include <stdlib.h>

#include "base/service.h"
#include "capture/file.h"
#include "cm/captured.h"
#include "cm/cm.h"
#include "cm/event.h"
#include "cm/pack.h"
#include "cm/table.h"
#include "fault/fault.h"
#include "wire/link.h"

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

/* false: it cannot be sent. To a dead process it can: death comes next. */
static bool deliver(const struct lb_cm_msg *msg)
{
	uint8_t bytes[LB_CM_PACK_SIZE];
	int err;

	if (!msg->via) {
		receive(msg);
		return true;
	}
	lb_cm_pack(bytes, msg);
	err = lb_link_send(msg->via, bytes, sizeof(bytes));
	return !err || err == ENOTCONN;
}

static void deliver_late(void *arg)
{
	struct lb_cm_msg *msg = arg;

	lb_cm_lock();
	deliver(msg);
	if (msg->via)
		lb_link_put(msg->via);
	lb_cm_unlock();
	lb_cm_flush();
	free(msg);
}

static bool deliver_again(const struct lb_cm_msg *msg)
{
	struct lb_cm_msg copy = *msg;

	copy.again = true;
	return deliver(msg) && deliver(&copy);
}

static bool send_late(const struct lb_cm_msg *msg, uint32_t delay_us)
{
	struct lb_cm_msg *copy = malloc(sizeof(*copy));

	if (!copy)
		return false;
	*copy = *msg;
	if (copy->via)
		lb_link_get(copy->via);
	if (lb_service_post(deliver_late, copy, (uint64_t)delay_us * 1000)) {
		if (copy->via)
			lb_link_put(copy->via);
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
		return deliver_again(msg);
	default:
		return deliver(msg);
	}
}

bool lb_cm_wire_post(struct lb_cm_id *id, struct lb_cm_msg *msg)
{
	msg->from = id->handle;
	msg->via = id->via;
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

	/* a request that waits elsewhere is found by where it came from */
	if (id->peer || id->via)
		lb_cm_wire_post(id, &msg);
}

void lb_cm_wire_refuse(const struct lb_cm_msg *msg, int reason)
{
	struct lb_cm_msg rej = {
		.type = LB_CM_MSG_REJ,
		.from = msg->to,
		.to = msg->from,
		.via = msg->via,
		.reason = reason,
	};

	lb_cm_wire_transmit(&rej);
}
