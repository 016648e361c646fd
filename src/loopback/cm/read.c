/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * read.c -- reading an event: the work of librdmacm's rdma_get_cm_event()
 * between the kernel's event and the application's. Makes the identifier of a
 * request, stores what was resolved in it, and moves the QP of an answered
 * request on. Runs in the thread that reads, without a lock.
 */

#include "cm/read.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <unistd.h>

#include "base/base.h"
#include "base/hook.h"
#include "base/list.h"
#include "cm/channel.h"
#include "cm/cm.h"
#include "cm/event.h"
#include "cm/id.h"
#include "cm/link.h"
#include "cm/publish.h"
#include "cm/qp.h"
#include "cm/request.h"
#include "cm/table.h"
#include "fault/fault.h"
#include "rpma_loopback.h"

/* ---- an event is taken from its channel ---------------------------------- */

/* [lock] */
static struct lb_cm_event *first_event(const struct lb_cm_channel *ch)
{
	if (lb_list_is_empty(&ch->events))
		return NULL;
	return lb_entry(ch->events.next, struct lb_cm_event, node);
}

static bool has_event(void *arg)
{
	const struct lb_cm_channel *ch = arg;
	bool has;

	lb_cm_lock();
	has = !lb_list_is_empty(&ch->events);
	lb_cm_unlock();
	return has;
}

/* The next event, which the caller must acknowledge; NULL: none any more. */
static struct lb_cm_event *take_event(struct lb_cm_channel *ch)
{
	struct lb_cm_event *event;

	lb_cm_lock();
	event = first_event(ch);
	if (event) {
		lb_list_del(&event->node);
		lb_list_del(&event->unread_node);
		lb_list_push(&event->owner->unacked, &event->node);
		event->from = ch;
		event->reader = pthread_self();
		if (event->child) {
			lb_cm_id_set_channel(event->child, ch);
			event->owner->unread_requests--;
			lb_cm_request_readmit(event->owner);
		}
	}
	lb_cm_unlock();
	lb_cm_flush();
	return event;
}

static struct lb_cm_event *take_next(struct lb_cm_channel *ch)
{
	struct lb_cm_event *event;
	uint64_t unit;

	do {
		if (!(fcntl(ch->ch.fd, F_GETFL) & O_NONBLOCK))
			lb_hook_block(has_event, ch);
		if (read(ch->ch.fd, &unit, sizeof(unit)) < 0)
			return NULL;
		event = take_event(ch);
	} while (!event);
	return event;
}

/* ---- what librdmacm does with it ----------------------------------------- */

/* The new identifier inherits from the one that listens. */
static int announce_child(struct lb_cm_event *event)
{
	struct lb_cm_id *listener = event->owner;
	struct lb_cm_id *child = event->child;

	child->id.context = listener->id.context;
	child->id.channel = &event->from->ch;
	child->opener = event->from->opener;
	event->ev.listen_id = &listener->id;
	event->ev.id = &child->id;
	if (lb_cm_id_is_sync(listener) && lb_cm_id_migrate(child, NULL))
		return -1;
	lb_cm_publish_addr(child);
	lb_cm_publish_route(child);
	return 0;
}

/* The peer has accepted: our QP goes to RTS, then the peer is told. */
static int answer(struct lb_cm_id *id)
{
	int err;

	if (lb_cm_qp_to_rtr(id, RDMA_MAX_RESP_RES) ||
	    lb_cm_qp_to_rts(id, RDMA_MAX_INIT_DEPTH))
		goto err_qp;
	lb_cm_lock();
	err = lb_cm_link_ready(id);
	lb_cm_unlock();
	if (err) {
		errno = err;
		goto err_qp;
	}
	lb_cm_flush();
	return 0;

err_qp:
	err = errno;
	lb_cm_qp_to_err(id);
	return lb_cm_err(err);
}

static bool has_failed(struct lb_cm_id *id)
{
	bool failed;

	lb_cm_lock();
	failed = id->connect_error;
	lb_cm_unlock();
	return failed;
}

static void read_response(struct lb_cm_event *event)
{
	struct lb_cm_id *id = event->owner;

	if (!id->id.qp)
		return; /* the application calls rdma_establish() */
	event->ev.event = RDMA_CM_EVENT_ESTABLISHED;
	if (event->twin || !answer(id))
		return;
	event->ev.event = RDMA_CM_EVENT_CONNECT_ERROR;
	event->ev.status = -1;
	lb_cm_lock();
	id->connect_error = true;
	lb_cm_unlock();
}

/* A MULTICAST_JOIN is read: it becomes an error if the QP cannot join. */
static void read_join(struct lb_cm_event *event)
{
	struct lb_cm_group *group = event->group;
	struct ibv_qp *qp = event->owner->id.qp;

	if (!group)
		return; /* raised by a test */
	event->ev.param.ud.private_data = group->context;
	if (!qp || group->send_only || !ibv_attach_mcast(qp, &group->gid, 0))
		return;
	event->ev.event = RDMA_CM_EVENT_MULTICAST_ERROR;
	event->ev.status = -1;
}

/* false: the application does not see this event */
static bool read_event(struct lb_cm_event *event)
{
	struct lb_cm_id *id = event->owner;

	switch (event->ev.event) {
	case RDMA_CM_EVENT_CONNECT_REQUEST:
		return !announce_child(event);
	case RDMA_CM_EVENT_ADDR_RESOLVED:
		lb_cm_publish_addr(id);
		break;
	case RDMA_CM_EVENT_ROUTE_RESOLVED:
		lb_cm_publish_route(id);
		break;
	case RDMA_CM_EVENT_CONNECT_RESPONSE:
		read_response(event);
		break;
	case RDMA_CM_EVENT_MULTICAST_JOIN:
		read_join(event);
		break;
	case RDMA_CM_EVENT_REJECTED:
		if (has_failed(id))
			return false;
		lb_cm_qp_to_err(id);
		break;
	case RDMA_CM_EVENT_DISCONNECTED:
		return !has_failed(id);
	default:
		break;
	}
	return true;
}

static void discard(struct lb_cm_event *event)
{
	struct lb_cm_id *child = event->child;

	lb_cm_event_ack(&event->ev);
	if (child)
		lb_cm_id_destroy(child);
}

struct rdma_cm_event *lb_cm_read(struct lb_cm_channel *ch)
{
	struct lb_cm_event *event;

	for (;;) {
		event = take_next(ch);
		if (!event)
			return NULL;
		if (read_event(event))
			return &event->ev;
		discard(event);
	}
}

int lb_cm_read_sync(struct lb_cm_id *id)
{
	const struct rdma_cm_event *ev;

	if (!lb_cm_id_is_sync(id))
		return 0;
	if (id->id.event)
		lb_cm_event_ack(id->id.event);
	id->id.event = lb_cm_read(lb_cm_channel_of(id->id.channel));
	ev = id->id.event;
	if (!ev)
		return -1;
	if (!ev->status)
		return 0;
	if (ev->event == RDMA_CM_EVENT_REJECTED)
		return lb_cm_err(ECONNREFUSED);
	return lb_cm_err(ev->status < 0 ? -ev->status : ev->status);
}

LB_EXPORT int rdma_get_cm_event(struct rdma_event_channel *channel,
				struct rdma_cm_event **event)
{
	struct lb_cm_channel *ch = lb_cm_channel_of(channel);
	int err = lb_fault_errno("rdma_get_cm_event");
	struct rdma_cm_event *got;

	if (!err && ch)
		err = lb_opener_check(&ch->opener);
	if (err || !ch || !event)
		return lb_cm_err(err ? err : EINVAL);
	lb_hook(RPMA_LOOPBACK_CM_CALL, channel);
	got = lb_cm_read(ch);
	if (got)
		*event = got;
	return lb_cm_leave(channel, got ? 0 : -1);
}
