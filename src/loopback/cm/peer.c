/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * peer.c -- messages of other processes arrive, and the death of a process
 * tells each identifier what destroying its peer would tell. Run by the link
 * thread.
 */

#include "cm/peer.h"

#include <pthread.h>

#include "cm/cm.h"
#include "cm/dev.h"
#include "cm/event.h"
#include "cm/forked.h"
#include "cm/link.h"
#include "cm/pack.h"
#include "cm/receive.h"
#include "cm/table.h"
#include "exec/inbound.h"
#include "object/device.h"
#include "wire/link.h"

/* Where a request wants to go, as this process sees its own addresses. */
static void find_destination(struct lb_cm_msg *req)
{
	const struct sockaddr *dst = (const struct sockaddr *)&req->dst;
	const struct lb_device *dev = lb_gid_device_of_addr(dst);

	if (!dev || !lb_cm_dev(dev->index))
		return;
	req->dst_gid_index = lb_gid_index_of_addr(dev, dst);
	if (req->dst_gid_index >= 0)
		req->dst_dev = dev->index;
}

static void message(struct lb_link *link, const void *data, size_t size)
{
	struct lb_cm_msg msg;

	if (!lb_cm_unpack(&msg, data, size)) {
		lb_link_break(link, "message of the connection manager");
		return;
	}
	msg.via = link;
	if (msg.type == LB_CM_MSG_REQ)
		find_destination(&msg);
	lb_cm_lock();
	lb_cm_receive(&msg);
	lb_cm_unlock();
	lb_cm_flush();
}

/* [lock] What the end of its process would have sent last, if anything. */
static bool last_words(const struct lb_cm_id *id, struct lb_cm_msg *msg)
{
	switch (id->link) {
	case LB_CM_LINK_REQ_SENT:
		msg->type = LB_CM_MSG_REJ;
		msg->reason =
			id->peer ? LB_CM_REJ_CONSUMER : LB_CM_REJ_NO_LISTENER;
		return true;
	case LB_CM_LINK_REQ_RCVD:
		msg->type = LB_CM_MSG_REJ;
		msg->reason = LB_CM_REJ_TIMEOUT;
		return true;
	case LB_CM_LINK_REP_SENT:
	case LB_CM_LINK_REP_RCVD:
		msg->type = LB_CM_MSG_REJ;
		msg->reason = LB_CM_REJ_CONSUMER;
		return true;
	case LB_CM_LINK_ESTABLISHED:
		msg->type = LB_CM_MSG_DREQ;
		return true;
	case LB_CM_LINK_DREQ_SENT:
		msg->type = LB_CM_MSG_DREP;
		return true;
	default:
		return false;
	}
}

static void dead(struct lb_link *link)
{
	struct lb_cm_id *id;
	uint32_t cursor = 0;

	lb_cm_lock();
	while ((id = lb_cm_id_walk(&cursor))) {
		struct lb_cm_msg msg = {.from = id->peer, .to = id->handle};

		msg.via = link;
		if (id->via == link && id->state != LB_CM_GONE &&
		    last_words(id, &msg))
			lb_cm_link_receive(id, &msg);
	}
	lb_cm_unlock();
	lb_cm_flush();
}

/* The mutex comes before every lock of the device, in a fork too. */
static void after_fork(void)
{
	lb_cm_unlock();
}

static void in_child(void)
{
	lb_cm_forked();
	lb_cm_unlock();
}

void lb_cm_peer_start(void)
{
	static const struct lb_inbound_ops ops = {
		.message = message,
		.dead = dead,
	};

	pthread_atfork(lb_cm_lock, after_fork, in_child);
	lb_inbound_listen(&ops);
}
