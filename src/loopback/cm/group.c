/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * group.c -- multicast groups of an identifier of datagrams. To join makes
 * an event, and the thread that reads it attaches the QP, as in librdmacm; to
 * leave waits until that event is acknowledged. Any thread.
 */

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "base/list.h"
#include "cm/addr.h"
#include "cm/cm.h"
#include "cm/event.h"
#include "cm/read.h"
#include "cm/table.h"
#include "qp/mcast.h"

static struct lb_cm_group *group_entry(struct lb_list *node)
{
	return lb_entry(node, struct lb_cm_group, node);
}

/* [lock] NULL: id has not joined it */
static struct lb_cm_group *find(struct lb_cm_id *id, const struct sockaddr *sa)
{
	for (struct lb_list *n = id->groups.next; n != &id->groups;
	     n = n->next) {
		if (!memcmp(&group_entry(n)->addr, sa, lb_cm_addr_len(sa)))
			return group_entry(n);
	}
	return NULL;
}

/* [lock] 0 or an errno */
static int join(struct lb_cm_id *id, struct lb_cm_group *group)
{
	struct lb_cm_event *event;

	if (id->state == LB_CM_GONE)
		return ENXIO;
	if (!lb_cm_id_is_ud(id) || id->dev < 0 ||
	    (id->state != LB_CM_BOUND && id->state != LB_CM_ADDR_RESOLVED))
		return EINVAL;
	lb_list_push(&id->groups, &group->node);
	event = lb_cm_event_new(id, RDMA_CM_EVENT_MULTICAST_JOIN, 0, NULL, 0);
	if (!event)
		return 0;
	event->group = group;
	lb_cm_event_set_ud(event, &group->gid, LB_MCAST_QPN);
	return 0;
}

static int join_addr(struct lb_cm_id *id, const struct sockaddr *addr,
		     bool send_only, void *context)
{
	struct lb_cm_group *group;
	int err;

	if (!lb_cm_addr_len(addr))
		return EINVAL;
	group = calloc(1, sizeof(*group));
	if (!group)
		return ENOMEM;
	memcpy(&group->addr, addr, lb_cm_addr_len(addr));
	group->context = context;
	group->send_only = send_only;
	lb_cm_addr_to_gid(addr, &group->gid);
	lb_cm_lock();
	err = join(id, group);
	lb_cm_unlock();
	lb_cm_flush();
	if (err)
		free(group);
	return err;
}

LB_EXPORT int rdma_join_multicast(struct rdma_cm_id *cm_id,
				  struct sockaddr *addr, void *context)
{
	struct lb_cm_id *id = lb_cm_enter("rdma_join_multicast", cm_id);
	int err;

	if (!id)
		return -1;
	err = join_addr(id, addr, false, context);
	return lb_cm_leave(cm_id, err ? lb_cm_err(err) : lb_cm_read_sync(id));
}

LB_EXPORT int rdma_join_multicast_ex(struct rdma_cm_id *cm_id,
				     struct rdma_cm_join_mc_attr_ex *attr,
				     void *context)
{
	const uint32_t all =
		RDMA_CM_JOIN_MC_ATTR_ADDRESS | RDMA_CM_JOIN_MC_ATTR_JOIN_FLAGS;
	struct lb_cm_id *id = lb_cm_enter("rdma_join_multicast_ex", cm_id);
	int err = EINVAL;

	if (!id)
		return -1;
	if (attr && attr->comp_mask >= RDMA_CM_JOIN_MC_ATTR_RESERVED)
		err = ENOTSUP;
	else if (attr && (attr->comp_mask & all) == all &&
		 attr->join_flags < RDMA_MC_JOIN_FLAG_RESERVED)
		err = join_addr(id, attr->addr,
				attr->join_flags ==
					RDMA_MC_JOIN_FLAG_SENDONLY_FULLMEMBER,
				context);
	return lb_cm_leave(cm_id, err ? lb_cm_err(err) : lb_cm_read_sync(id));
}

static int leave(struct lb_cm_id *id, const struct sockaddr *addr)
{
	struct lb_cm_group *group = NULL;

	lb_cm_lock();
	if (lb_cm_addr_len(addr))
		group = find(id, addr);
	if (group) {
		lb_list_del(&group->node);
		lb_cm_event_drop_group(id, group);
	}
	lb_cm_unlock();
	if (!group)
		return EADDRNOTAVAIL;
	/* a thread that reads the event attaches before it acknowledges */
	lb_cm_event_wait_group(id, group);
	if (id->id.qp && !group->send_only)
		ibv_detach_mcast(id->id.qp, &group->gid, 0);
	free(group);
	return 0;
}

LB_EXPORT int rdma_leave_multicast(struct rdma_cm_id *cm_id,
				   struct sockaddr *addr)
{
	struct lb_cm_id *id = lb_cm_enter("rdma_leave_multicast", cm_id);
	int err;

	if (!id)
		return -1;
	err = leave(id, addr);
	return lb_cm_leave(cm_id, err ? lb_cm_err(err) : 0);
}
