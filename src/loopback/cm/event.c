/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * event.c -- the life of an event. An event is made under the lock and put on
 * the pending list; the making thread then flushes, which runs the hooks and
 * moves the event to the channel of its identifier; a reader takes the event
 * from there, does the work of librdmacm at a read, and the application
 * acknowledges the event. Events of an identifier never overtake each other,
 * not even an event in a hook or an event delayed by a fault.
 */

#include "cm/event.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "base/clock.h"
#include "base/hook.h"
#include "base/list.h"
#include "base/log.h"
#include "base/newer.h"
#include "base/service.h"
#include "cm/channel.h"
#include "cm/cm.h"
#include "cm/table.h"
#include "fault/fault.h"
#include "rpma_loopback.h"

#define EVENT_MAGIC 0x6c625f636d5f6576ull /* "lb_cm_ev" */
#define HOP_LIMIT   64

static struct lb_list pending = {&pending, &pending}; /* [lock] */
static uint64_t scans;				      /* [lock] */

static const char *const fault_names[] = {
	[RDMA_CM_EVENT_ADDR_RESOLVED] = "cm.addr_resolved",
	[RDMA_CM_EVENT_ADDR_ERROR] = "cm.addr_error",
	[RDMA_CM_EVENT_ROUTE_RESOLVED] = "cm.route_resolved",
	[RDMA_CM_EVENT_ROUTE_ERROR] = "cm.route_error",
	[RDMA_CM_EVENT_CONNECT_REQUEST] = "cm.connect_request",
	[RDMA_CM_EVENT_CONNECT_RESPONSE] = "cm.connect_response",
	[RDMA_CM_EVENT_CONNECT_ERROR] = "cm.connect_error",
	[RDMA_CM_EVENT_UNREACHABLE] = "cm.unreachable",
	[RDMA_CM_EVENT_REJECTED] = "cm.rejected",
	[RDMA_CM_EVENT_ESTABLISHED] = "cm.established",
	[RDMA_CM_EVENT_DISCONNECTED] = "cm.disconnected",
	[RDMA_CM_EVENT_DEVICE_REMOVAL] = "cm.device_removal",
	[RDMA_CM_EVENT_MULTICAST_JOIN] = "cm.multicast_join",
	[RDMA_CM_EVENT_MULTICAST_ERROR] = "cm.multicast_error",
	[RDMA_CM_EVENT_ADDR_CHANGE] = "cm.addr_change",
	[RDMA_CM_EVENT_TIMEWAIT_EXIT] = "cm.timewait_exit",
	[LB_CM_USER] = "cm.user",
	[LB_CM_INTERNAL] = "cm.internal",
};

/* To the application, the answer to a request with a QP is ESTABLISHED. */
static const char *fault_name(const struct lb_cm_id *owner,
			      enum rdma_cm_event_type type)
{
	if (type == RDMA_CM_EVENT_CONNECT_RESPONSE && owner->has_qp)
		type = RDMA_CM_EVENT_ESTABLISHED;
	return fault_names[type];
}

static void event_free(struct lb_cm_event *event)
{
	event->magic = 0;
	free(event);
}

/* ---- making ------------------------------------------------------------- */

static struct lb_cm_event *event_alloc(struct lb_cm_id *owner,
				       enum rdma_cm_event_type type, int status)
{
	struct lb_cm_event *event = calloc(1, sizeof(*event));

	if (!event) {
		lb_log(1, "rdma_cm: no memory for %s", fault_names[type]);
		return NULL;
	}
	event->magic = EVENT_MAGIC;
	event->owner = owner;
	event->ev.id = &owner->id;
	event->ev.event = type;
	event->ev.status = status;
	lb_list_push(&pending, &event->node);
	lb_list_push(&owner->unread, &event->unread_node);
	return event;
}

static void set_data(struct lb_cm_event *event, const void *data, uint8_t len)
{
	if (!len)
		return;
	if (data)
		memcpy(event->priv, data, len);
	event->ev.param.conn.private_data = event->priv;
	event->ev.param.conn.private_data_len = len;
}

static void flush_job(void *arg)
{
	(void)arg;
	lb_cm_flush();
}

static void hold_back(struct lb_cm_event *event, uint32_t delay_us)
{
	uint64_t ns = (uint64_t)delay_us * 1000;

	if (lb_service_post(flush_job, NULL, ns) == 0)
		event->not_before = lb_clock_now() + ns;
}

struct lb_cm_event *lb_cm_event_new(struct lb_cm_id *owner,
				    enum rdma_cm_event_type type, int status,
				    const void *data, uint8_t len)
{
	struct lb_cm_event *event;
	enum lb_event_action action;
	uint32_t delay_us = 0;

	if (owner->quiet)
		return NULL;
	action = lb_fault_event(fault_name(owner, type), &delay_us);
	/* a request carries the new identifier, so a request cannot come
	 * twice */
	if (type == RDMA_CM_EVENT_CONNECT_REQUEST && action == LB_EVENT_DOUBLE)
		action = LB_EVENT_PASS;
	if (action == LB_EVENT_DROP)
		return NULL;
	event = event_alloc(owner, type, status);
	if (!event)
		return NULL;
	set_data(event, data, len);
	if (action == LB_EVENT_LATE)
		hold_back(event, delay_us);
	event->twice = action == LB_EVENT_DOUBLE;
	return event;
}

void lb_cm_event_set_params(struct lb_cm_event *event,
			    const struct lb_cm_params *params)
{
	struct rdma_conn_param *conn = &event->ev.param.conn;

	/* the depth that the peer can start must be answered here */
	conn->responder_resources = params->initiator_depth;
	conn->initiator_depth = params->responder_resources;
	conn->flow_control = params->flow_control;
	conn->retry_count = params->retry_count;
	conn->rnr_retry_count = params->rnr_retry_count;
	conn->srq = params->srq;
	conn->qp_num = params->qp_num;
}

void lb_cm_event_set_ud(struct lb_cm_event *event, const union ibv_gid *gid,
			uint32_t qpn)
{
	const struct lb_cm_id *owner = event->owner;
	struct rdma_ud_param *ud = &event->ev.param.ud;

	ud->ah_attr.is_global = 1;
	ud->ah_attr.port_num = LB_CM_PORT_NUM;
	ud->ah_attr.sl = owner->tos >> 5;
	ud->ah_attr.grh.dgid = *gid;
	ud->ah_attr.grh.sgid_index = (uint8_t)owner->gid_index;
	ud->ah_attr.grh.hop_limit = HOP_LIMIT;
	ud->ah_attr.grh.traffic_class = owner->tos;
	ud->qp_num = qpn;
	ud->qkey = RDMA_UDP_QKEY;
}

LB_EXPORT int rpma_loopback_raise_cm(int event_type, int status,
				     struct rdma_cm_id *id)
{
	enum rdma_cm_event_type type = (enum rdma_cm_event_type)event_type;
	struct lb_cm_id *owner = (struct lb_cm_id *)(void *)id;
	bool is_made;

	if (event_type < 0 || event_type > RDMA_CM_EVENT_TIMEWAIT_EXIT ||
	    type == RDMA_CM_EVENT_CONNECT_REQUEST || !owner)
		return -EINVAL;
	lb_cm_lock();
	is_made = owner->channel &&
		  lb_cm_event_new(owner, type, status, NULL, 0) != NULL;
	lb_cm_unlock();
	lb_cm_flush();
	return is_made ? 0 : -EINVAL;
}

/*
 * Puts an event of the program into the channel of an identifier, behind the
 * events there: exported by rdma-core since release 44. The reader finds arg
 * in the event's first parameter.
 */
LB_EXPORT int rdma_write_cm_event(struct rdma_cm_id *cm_id,
				  enum rdma_cm_event_type type, int status,
				  uint64_t arg)
{
	struct lb_cm_id *id = lb_cm_enter("rdma_write_cm_event", cm_id);
	struct lb_cm_event *event;
	int err = EINVAL;

	if (!id)
		return -1;
	if ((int)type != LB_CM_USER && (int)type != LB_CM_INTERNAL)
		return lb_cm_leave(cm_id, lb_cm_err(EINVAL));
	lb_cm_lock();
	if (id->channel) {
		event = lb_cm_event_new(id, type, status, NULL, 0);
		if (event)
			memcpy(&event->ev.param, &arg, sizeof(arg));
		err = 0;
	}
	lb_cm_unlock();
	lb_cm_flush();
	return lb_cm_leave(cm_id, err ? lb_cm_err(err) : 0);
}

/* ---- delivering --------------------------------------------------------- */

/* [lock] Returns the next event in turn. */
static struct lb_cm_event *next_pending(void)
{
	uint64_t now = lb_clock_now();

	scans++;
	for (struct lb_list *n = pending.next; n != &pending; n = n->next) {
		struct lb_cm_event *event =
			lb_entry(n, struct lb_cm_event, node);
		struct lb_cm_id *owner = event->owner;

		if (!owner || owner->held == scans)
			continue;
		if (!event->delivering && event->not_before <= now)
			return event;
		owner->held = scans;
	}
	return NULL;
}

/* [lock] Delivers the second copy of an event doubled by a fault. */
static void deliver_twin(struct lb_cm_event *event)
{
	struct lb_cm_event *twin = malloc(sizeof(*twin));

	if (!twin)
		return;
	*twin = *event;
	twin->twin = true;
	if (twin->ev.param.conn.private_data)
		twin->ev.param.conn.private_data = twin->priv;
	/* right after the first: later events are not delivered yet */
	lb_list_push(event->unread_node.next, &twin->unread_node);
	lb_cm_channel_push(twin->owner->channel, twin);
}

/* [lock] */
static void deliver(struct lb_cm_event *event)
{
	struct lb_cm_id *owner = event->owner;

	lb_list_del(&event->node);
	event->delivering = false;
	if (!owner || !owner->channel) {
		lb_list_del(&event->unread_node);
		event_free(event);
		return;
	}
	lb_cm_channel_push(owner->channel, event);
	if (event->twice)
		deliver_twin(event);
}

void lb_cm_flush(void)
{
	struct lb_cm_event *event;
	struct rdma_cm_id *id;

	for (;;) {
		lb_cm_lock();
		event = next_pending();
		if (event) {
			event->delivering = true;
			id = &event->owner->id;
		}
		lb_cm_unlock();
		if (!event)
			return;
		lb_hook(RPMA_LOOPBACK_CM_EVENT, id);
		lb_cm_lock();
		deliver(event);
		lb_cm_unlock();
		lb_hook(RPMA_LOOPBACK_CM_EVENT_DONE, id);
	}
}

/* ---- unread events of an identifier ------------------------------------ */

static struct lb_cm_event *unread_entry(struct lb_list *node)
{
	return lb_entry(node, struct lb_cm_event, unread_node);
}

/* [lock] Drops an event that will never be read. */
static void drop(struct lb_cm_event *event)
{
	lb_list_del(&event->unread_node);
	if (event->delivered)
		lb_cm_channel_withdraw(event->owner->channel, event);
	event->owner = NULL;
	if (event->delivering)
		return; /* deliver() frees the event */
	lb_list_del(&event->node);
	event_free(event);
}

bool lb_cm_event_drop_first(struct lb_cm_id *id, struct lb_cm_id **child)
{
	struct lb_cm_event *event;

	if (lb_list_is_empty(&id->unread))
		return false;
	event = unread_entry(id->unread.next);
	*child = event->child;
	drop(event);
	return true;
}

void lb_cm_event_disown(struct lb_cm_id *id)
{
	while (!lb_list_is_empty(&id->unacked)) {
		struct lb_cm_event *event =
			lb_entry(id->unacked.next, struct lb_cm_event, node);

		lb_list_del(&event->node);
		event->owner = NULL;
	}
}

void lb_cm_event_drop_group(struct lb_cm_id *id,
			    const struct lb_cm_group *group)
{
	struct lb_list *n, *next;

	for (n = id->unread.next; n != &id->unread; n = next) {
		next = n->next;
		if (unread_entry(n)->group == group)
			drop(unread_entry(n));
	}
}

void lb_cm_event_move_all(struct lb_cm_id *id, struct lb_cm_channel *to)
{
	if (id->channel == to)
		return;
	for (struct lb_list *n = id->unread.next; n != &id->unread;
	     n = n->next) {
		struct lb_cm_event *event = unread_entry(n);

		if (!event->delivered)
			continue;
		lb_cm_channel_withdraw(id->channel, event);
		lb_cm_channel_push(to, event);
	}
}

/* ---- acknowledging ------------------------------------------------------ */

void lb_cm_event_ack(struct rdma_cm_event *ev)
{
	struct lb_cm_event *event = (struct lb_cm_event *)(void *)ev;

	lb_cm_lock();
	lb_list_del(&event->node);
	if (event->owner)
		pthread_cond_broadcast(&event->owner->acked);
	lb_cm_unlock();
	event_free(event);
}

struct acks {
	struct lb_cm_id *id;
	const struct lb_cm_channel *from; /* NULL: any */
	const struct lb_cm_group *group;  /* NULL: any */
};

/* [lock] Returns an unacknowledged event, or NULL. */
static struct lb_cm_event *first_unacked(const struct acks *acks)
{
	const struct lb_list *list = &acks->id->unacked;

	for (struct lb_list *n = list->next; n != list; n = n->next) {
		struct lb_cm_event *event =
			lb_entry(n, struct lb_cm_event, node);

		if ((!acks->from || event->from == acks->from) &&
		    (!acks->group || event->group == acks->group))
			return event;
	}
	return NULL;
}

static bool is_acked(void *arg)
{
	bool acked;

	lb_cm_lock();
	acked = !first_unacked(arg);
	lb_cm_unlock();
	return acked;
}

static void wait_acked(struct acks *acks)
{
	struct lb_cm_event *event;
	bool own;

	lb_cm_lock();
	event = first_unacked(acks);
	own = event && pthread_equal(event->reader, pthread_self());
	lb_cm_unlock();
	if (own)
		lb_log_misuse(
			"rdma_cm: waits for an event that this thread read "
			"and has not acknowledged");
	if (event)
		lb_hook_block(is_acked, acks);
	lb_cm_lock();
	while (first_unacked(acks))
		lb_cm_wait(&acks->id->acked);
	lb_cm_unlock();
}

void lb_cm_event_wait_acked(struct lb_cm_id *id,
			    const struct lb_cm_channel *from)
{
	struct acks acks = {.id = id, .from = from};

	wait_acked(&acks);
}

void lb_cm_event_wait_group(struct lb_cm_id *id,
			    const struct lb_cm_group *group)
{
	struct acks acks = {.id = id, .group = group};

	wait_acked(&acks);
}

LB_EXPORT int rdma_ack_cm_event(struct rdma_cm_event *ev)
{
	struct lb_cm_event *event = (struct lb_cm_event *)(void *)ev;
	int err = lb_fault_errno("rdma_ack_cm_event");
	const struct rdma_cm_id *id;

	if (err)
		return lb_cm_err(err);
	if (!event || (uintptr_t)event % alignof(struct lb_cm_event) ||
	    event->magic != EVENT_MAGIC)
		return lb_cm_err(EINVAL);
	id = ev->id; /* may be gone as soon as this is acknowledged */
	lb_hook(RPMA_LOOPBACK_CM_CALL, id);
	lb_cm_event_ack(ev);
	lb_hook(RPMA_LOOPBACK_CM_CALL_DONE, id);
	return 0;
}
