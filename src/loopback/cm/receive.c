/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * receive.c -- a message arrives: at a listener, at the identifier that it is
 * for, or at nobody. Everything is under the lock.
 */

#include "cm/receive.h"

#include "cm/cm.h"
#include "cm/link.h"
#include "cm/request.h"
#include "cm/table.h"
#include "cm/wire.h"

/* A message to a handle without identifier: answered if the sender waits. */
static void receive_stray(const struct lb_cm_msg *msg)
{
	struct lb_cm_msg drep = {
		.type = LB_CM_MSG_DREP,
		.from = msg->to,
		.to = msg->from,
		.via = msg->via,
	};

	if (msg->type == LB_CM_MSG_REP)
		lb_cm_wire_refuse(msg, LB_CM_REJ_COMM_ID);
	else if (msg->type == LB_CM_MSG_DREQ)
		lb_cm_wire_transmit(&drep);
}

/*
 * Returns true if id still exists, and the sender is the peer of the
 * connection.
 */
static bool is_for(const struct lb_cm_id *id, const struct lb_cm_msg *msg)
{
	if (!id || id->state == LB_CM_GONE)
		return false;
	if (id->via != msg->via)
		return false;
	return !id->peer || !msg->from || id->peer == msg->from;
}

void lb_cm_receive(const struct lb_cm_msg *msg)
{
	struct lb_cm_id *id = msg->to ? lb_cm_id_find(msg->to) : NULL;

	if (msg->type == LB_CM_MSG_REQ)
		lb_cm_request_receive(msg);
	else if (msg->type == LB_CM_MSG_REJ && !msg->to)
		lb_cm_request_withdraw(msg);
	else if (is_for(id, msg))
		lb_cm_link_receive(id, msg);
	else
		receive_stray(msg);
}
