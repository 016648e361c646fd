/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * request.c -- requests arrive at a listener: each becomes an identifier
 * and a CONNECT_REQUEST, or waits until the listener has read some of those
 * that came before. Everything is under the lock.
 */

#include "cm/request.h"

#include <stdlib.h>

#include "base/list.h"
#include "base/log.h"
#include "cm/addr.h"
#include "cm/cm.h"
#include "cm/event.h"
#include "cm/link.h"
#include "cm/port.h"
#include "cm/table.h"
#include "cm/wire.h"
#include "object/device.h"
#include "wire/link.h"

/* A request that found the backlog of its listener full. */
struct waiting {
	struct lb_list node;
	struct lb_cm_msg req;
};

/* The addresses of a request, seen from here. */
static struct lb_cm_id *child_new(const struct lb_cm_id *listener,
				  const struct lb_cm_msg *req)
{
	struct lb_cm_id *id = lb_cm_id_new(listener->ps, listener->id.qp_type);

	if (!id)
		return NULL;
	if (lb_cm_id_insert(id)) {
		lb_cm_id_delete(id);
		return NULL;
	}
	id->src = req->dst;
	id->dst = req->src;
	id->dev = req->dst_dev;
	id->gid_index = req->dst_gid_index;
	id->tos = listener->tos;
	id->ack_timeout = listener->ack_timeout;
	id->afonly = listener->afonly;
	id->peer = req->from;
	id->via = req->via ? lb_link_get(req->via) : NULL;
	id->theirs = req->params;
	id->dgid = req->params.gid;
	id->responder_resources = req->params.initiator_depth;
	id->initiator_depth = req->params.responder_resources;
	id->retry_count = req->params.retry_count;
	id->rnr_retry_count = req->params.rnr_retry_count;
	id->state = LB_CM_CONNECT;
	id->link = LB_CM_LINK_REQ_RCVD;
	id->quiet = true;
	return id;
}

/* false: out of memory, as if the request had been lost */
static bool admit(struct lb_cm_id *listener, const struct lb_cm_msg *req)
{
	struct lb_cm_id *child = child_new(listener, req);
	struct lb_cm_event *event;

	if (!child)
		return false;
	event = lb_cm_event_new(
		listener, RDMA_CM_EVENT_CONNECT_REQUEST, 0, req->priv,
		lb_cm_id_is_ud(child) ? LB_CM_UD_REQ_PRIV : LB_CM_REQ_PRIV);
	if (!event) {
		lb_cm_id_remove(child);
		lb_cm_id_delete(child);
		return false;
	}
	event->child = child;
	if (!lb_cm_id_is_ud(child))
		lb_cm_event_set_params(event, &req->params);
	listener->unread_requests++;
	lb_cm_wire_send(child, LB_CM_MSG_MRA);
	return true;
}

/* As a kernel does, ask again later rather than refuse. */
static void keep_waiting(struct lb_cm_id *listener, const struct lb_cm_msg *req)
{
	struct waiting *w;

	w = listener->nwaiting < LB_CM_WAITING ? malloc(sizeof(*w)) : NULL;
	if (!w) {
		lb_log(1, "rdma_cm: no room for a request: it is lost");
		return;
	}
	w->req = *req;
	if (req->via)
		lb_link_get(req->via);
	listener->nwaiting++;
	lb_list_push(&listener->waiting, &w->node);
}

static void waiting_delete(struct lb_cm_id *listener, struct waiting *w)
{
	lb_list_del(&w->node);
	listener->nwaiting--;
	if (w->req.via)
		lb_link_put(w->req.via);
	free(w);
}

static struct waiting *first_waiting(const struct lb_cm_id *listener)
{
	if (lb_list_is_empty(&listener->waiting))
		return NULL;
	return lb_entry(listener->waiting.next, struct waiting, node);
}

/* The identifier that a request from another process has become, or NULL. */
static struct lb_cm_id *child_of(const struct lb_link *via, uint32_t from)
{
	struct lb_cm_id *id;
	uint32_t cursor = 0;

	while ((id = lb_cm_id_walk(&cursor))) {
		if (id->via == via && id->peer == from)
			return id;
	}
	return NULL;
}

/* That of another process, which waits at a listener; or NULL. */
static struct waiting *waiting_of(const struct lb_cm_id *listener,
				  const struct lb_link *via, uint32_t from)
{
	const struct lb_list *node = listener->waiting.next;

	for (; node != &listener->waiting; node = node->next) {
		struct waiting *w = lb_entry(node, struct waiting, node);

		if (w->req.via == via && w->req.from == from)
			return w;
	}
	return NULL;
}

static bool is_known(const struct lb_cm_msg *req)
{
	struct lb_cm_id *id;
	uint32_t cursor = 0;

	while ((id = lb_cm_id_walk(&cursor))) {
		if (waiting_of(id, req->via, req->from))
			return true;
	}
	return child_of(req->via, req->from) != NULL;
}

void lb_cm_request_withdraw(const struct lb_cm_msg *rej)
{
	struct lb_cm_id *id = child_of(rej->via, rej->from);
	struct waiting *w;
	uint32_t cursor = 0;

	if (id) {
		lb_cm_link_receive(id, rej);
		return;
	}
	while ((id = lb_cm_id_walk(&cursor))) {
		w = waiting_of(id, rej->via, rej->from);
		if (w)
			waiting_delete(id, w);
	}
}

/*
 * Returns true if the requester still waits, and this request has not been
 * received before. In one process both are visible; elsewhere the messages of
 * the requester tell.
 */
static bool is_wanted(const struct lb_cm_msg *req)
{
	const struct lb_cm_id *id = lb_cm_id_find(req->from);

	if (req->via)
		return lb_link_state(req->via) != LB_LINK_DEAD;
	return id && id->link == LB_CM_LINK_REQ_SENT && !id->peer;
}

void lb_cm_request_readmit(struct lb_cm_id *listener)
{
	struct waiting *w;

	while (listener->unread_requests < listener->backlog &&
	       (w = first_waiting(listener))) {
		if (is_wanted(&w->req))
			admit(listener, &w->req);
		waiting_delete(listener, w);
	}
}

void lb_cm_request_refuse_waiting(struct lb_cm_id *listener)
{
	struct waiting *w;

	while ((w = first_waiting(listener))) {
		lb_cm_wire_refuse(&w->req, LB_CM_REJ_NO_LISTENER);
		waiting_delete(listener, w);
	}
}

void lb_cm_request_receive(const struct lb_cm_msg *req)
{
	struct lb_cm_id *listener = lb_cm_port_listener(req->ps, &req->dst);

	if (!listener && !req->via) /* a line of the process that connects */
		lb_cm_addr_log_nobody(&req->dst);
	if (!listener || req->dst_dev < 0 || !lb_device_at(req->dst_dev))
		lb_cm_wire_refuse(req, LB_CM_REJ_NO_LISTENER);
	else if (listener->ps == RDMA_PS_IB &&
		 listener->id.qp_type != req->qp_type)
		lb_cm_wire_refuse(req, LB_CM_REJ_CONSUMER);
	else if (!is_wanted(req) || (req->via && req->again && is_known(req)))
		return;
	else if (listener->unread_requests >= listener->backlog)
		keep_waiting(listener, req);
	else
		admit(listener, req);
}
