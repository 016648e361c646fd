/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * request.c -- requests arrive at a listener: each becomes an identifier
 * and a CONNECT_REQUEST, or waits until the listener has read some of those
 * that came before. Everything is under the lock.
 */

#include "cm/request.h"

#include <arpa/inet.h>
#include <stdlib.h>

#include "base/list.h"
#include "base/log.h"
#include "cm/addr.h"
#include "cm/cm.h"
#include "cm/event.h"
#include "cm/port.h"
#include "cm/table.h"
#include "cm/wire.h"
#include "object/device.h"

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
	listener->nwaiting++;
	lb_list_push(&listener->waiting, &w->node);
}

static struct waiting *first_waiting(const struct lb_cm_id *listener)
{
	if (lb_list_is_empty(&listener->waiting))
		return NULL;
	return lb_entry(listener->waiting.next, struct waiting, node);
}

/*
 * Does the requester still wait, and has this request not been received
 * before? In one process that can be seen; elsewhere its messages tell.
 */
static bool is_wanted(const struct lb_cm_msg *req)
{
	const struct lb_cm_id *id = lb_cm_id_find(req->from);

	return id && id->link == LB_CM_LINK_REQ_SENT && !id->peer;
}

void lb_cm_request_readmit(struct lb_cm_id *listener)
{
	struct waiting *w;

	while (listener->unread_requests < listener->backlog &&
	       (w = first_waiting(listener))) {
		lb_list_del(&w->node);
		listener->nwaiting--;
		if (is_wanted(&w->req))
			admit(listener, &w->req);
		free(w);
	}
}

void lb_cm_request_refuse_waiting(struct lb_cm_id *listener)
{
	struct waiting *w;

	while ((w = first_waiting(listener))) {
		lb_list_del(&w->node);
		lb_cm_wire_refuse(&w->req, LB_CM_REJ_NO_LISTENER);
		free(w);
	}
	listener->nwaiting = 0;
}

/* A request for a port that no identifier of this process listens at. */
static void log_nobody(const struct lb_cm_msg *req)
{
	const struct sockaddr *dst = (const struct sockaddr *)&req->dst;
	char addr[INET6_ADDRSTRLEN] = "?";
	struct lb_cm_addr to = {0};

	if (!lb_cm_addr_from(&to, dst))
		return;
	if (dst->sa_family == AF_INET)
		inet_ntop(AF_INET, &((const struct sockaddr_in *)dst)->sin_addr,
			  addr, sizeof(addr));
	else
		inet_ntop(AF_INET6, &to.ip, addr, sizeof(addr));
	lb_log(0,
	       "rdma_connect: nobody in this process listens at %s port %u: "
	       "refused. Both ends of a connection have to be in one process; "
	       "for two, use another device, Soft-RoCE for instance",
	       addr, ntohs(to.port));
}

void lb_cm_request_receive(const struct lb_cm_msg *req)
{
	struct lb_cm_id *listener = lb_cm_port_listener(req->ps, &req->dst);

	if (!listener)
		log_nobody(req);
	if (!listener || !lb_device_at(req->dst_dev))
		lb_cm_wire_refuse(req, LB_CM_REJ_NO_LISTENER);
	else if (listener->ps == RDMA_PS_IB &&
		 listener->id.qp_type != req->qp_type)
		lb_cm_wire_refuse(req, LB_CM_REJ_CONSUMER);
	else if (!is_wanted(req))
		return;
	else if (listener->unread_requests >= listener->backlog)
		keep_waiting(listener, req);
	else
		admit(listener, req);
}
