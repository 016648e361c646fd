/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * ep.c -- endpoints: identifiers that are made ready in one call and used
 * synchronously. Runs in the thread of the caller.
 */

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <rdma/rdma_verbs.h>

#include "base/base.h"
#include "cm/channel.h"
#include "cm/cm.h"
#include "cm/event.h"
#include "cm/id.h"
#include "cm/read.h"
#include "cm/table.h"
#include "fault/fault.h"

#define RESOLVE_MS 2000

static int ep_listens(struct lb_cm_id *id, const struct rdma_addrinfo *res,
		      struct ibv_pd *pd, const struct ibv_qp_init_attr *attr)
{
	if (rdma_bind_addr(&id->id, res->ai_src_addr))
		return -1;
	if (pd)
		id->id.pd = pd;
	if (!attr)
		return 0;
	id->qp_init_attr = malloc(sizeof(*attr));
	if (!id->qp_init_attr)
		return lb_cm_err(ENOMEM);
	*id->qp_init_attr = *attr;
	id->qp_init_attr->qp_type = (enum ibv_qp_type)res->ai_qp_type;
	return 0;
}

/* Private data that the address comes with goes in front of the user's. */
static int keep_connect_data(struct lb_cm_id *id,
			     const struct rdma_addrinfo *res)
{
	if (!res->ai_connect_len)
		return 0;
	id->connect_data = malloc(res->ai_connect_len);
	if (!id->connect_data)
		return lb_cm_err(ENOMEM);
	memcpy(id->connect_data, res->ai_connect, res->ai_connect_len);
	id->connect_len = res->ai_connect_len;
	return 0;
}

static int ep_connects(struct lb_cm_id *id, const struct rdma_addrinfo *res,
		       struct ibv_pd *pd, struct ibv_qp_init_attr *attr)
{
	if (rdma_resolve_addr(&id->id, res->ai_src_addr, res->ai_dst_addr,
			      RESOLVE_MS))
		return -1;
	if (rdma_resolve_route(&id->id, RESOLVE_MS))
		return -1;
	if (attr) {
		attr->qp_type = (enum ibv_qp_type)res->ai_qp_type;
		if (rdma_create_qp(&id->id, pd, attr))
			return -1;
	}
	return keep_connect_data(id, res);
}

LB_EXPORT int rdma_create_ep(struct rdma_cm_id **id, struct rdma_addrinfo *res,
			     struct ibv_pd *pd,
			     struct ibv_qp_init_attr *qp_init_attr)
{
	struct rdma_cm_id *cm_id;
	int err = lb_fault_errno("rdma_create_ep");

	if (err || !id || !res)
		return lb_cm_err(err ? err : EINVAL);
	if (lb_cm_id_create(NULL, &cm_id, NULL,
			    (enum rdma_port_space)res->ai_port_space,
			    (enum ibv_qp_type)res->ai_qp_type))
		return -1;
	if (res->ai_flags & RAI_PASSIVE)
		err = ep_listens(lb_cm_id_of(cm_id), res, pd, qp_init_attr);
	else
		err = ep_connects(lb_cm_id_of(cm_id), res, pd, qp_init_attr);
	if (err) {
		err = errno;
		rdma_destroy_ep(cm_id);
		return lb_cm_err(err);
	}
	*id = cm_id;
	return 0;
}

LB_EXPORT void rdma_destroy_ep(struct rdma_cm_id *id)
{
	if (!lb_cm_id_of(id))
		return;
	if (id->qp)
		rdma_destroy_qp(id);
	if (id->srq)
		rdma_destroy_srq(id);
	rdma_destroy_id(id);
}

/* The request in event becomes the caller's identifier. */
static int take_request(struct lb_cm_id *listener,
			const struct rdma_cm_event *event,
			struct rdma_cm_id **id)
{
	struct ibv_qp_init_attr attr;

	if (event->event != RDMA_CM_EVENT_CONNECT_REQUEST)
		return lb_cm_err(event->status ? abs(event->status) : EINVAL);
	if (listener->qp_init_attr) {
		attr = *listener->qp_init_attr;
		if (rdma_create_qp(event->id, listener->id.pd, &attr))
			return -1;
	}
	*id = event->id;
	return 0;
}

static int get_request(struct lb_cm_id *listener, struct rdma_cm_id **id)
{
	struct rdma_cm_event *event;

	if (listener->id.event)
		lb_cm_event_ack(listener->id.event);
	listener->id.event = NULL;
	event = lb_cm_read(lb_cm_channel_of(listener->id.channel));
	if (!event)
		return -1;
	if (take_request(listener, event, id)) {
		listener->id.event = event;
		return -1;
	}
	(*id)->event = event;
	return 0;
}

LB_EXPORT int rdma_get_request(struct rdma_cm_id *listen,
			       struct rdma_cm_id **id)
{
	struct lb_cm_id *listener = lb_cm_enter("rdma_get_request", listen);

	if (!listener)
		return -1;
	if (!id || !lb_cm_id_is_sync(listener))
		return lb_cm_leave(listen, lb_cm_err(EINVAL));
	return lb_cm_leave(listen, get_request(listener, id));
}
