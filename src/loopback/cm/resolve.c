/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * resolve.c -- identifiers are bound, addresses and routes resolved.
 * lb_gid_device_of_addr() decides which device an address belongs to. Any
 * thread; resolving does not wait, its event is there when the call returns.
 */

#include "cm/resolve.h"

#include <errno.h>
#include <netinet/in.h>
#include <string.h>

#include "base/base.h"
#include "cm/addr.h"
#include "cm/cm.h"
#include "cm/dev.h"
#include "cm/event.h"
#include "cm/port.h"
#include "cm/publish.h"
#include "cm/read.h"
#include "cm/table.h"
#include "fault/fault.h"
#include "object/device.h"

static in_port_t port_of(const struct sockaddr *sa)
{
	struct lb_cm_addr addr;

	return lb_cm_addr_from(&addr, sa) ? addr.port : 0;
}

static bool is_any(const struct sockaddr *sa)
{
	struct lb_cm_addr addr;

	return lb_cm_addr_from(&addr, sa) && addr.any;
}

static struct sockaddr_storage any_of(sa_family_t family)
{
	struct sockaddr_storage ss = {.ss_family = family};

	return ss;
}

/* The wildcard as a destination is this machine. */
static struct sockaddr_storage destination(const struct sockaddr *dst)
{
	struct sockaddr_storage ss = {0};

	memcpy(&ss, dst, lb_cm_addr_len(dst));
	if (!is_any(dst))
		return ss;
	if (ss.ss_family == AF_INET)
		((struct sockaddr_in *)&ss)->sin_addr.s_addr =
			htonl(INADDR_LOOPBACK);
	else
		((struct sockaddr_in6 *)&ss)->sin6_addr = in6addr_loopback;
	return ss;
}

/* ---- binding ------------------------------------------------------------ */

struct place {
	int dev; /* -1: of no device */
	int gid_index;
};

/*
 * [lock] Has the device not been pulled since it was found? If it is now,
 * the removal comes after us to the identifier, and finds the device in it.
 */
static bool is_there(const struct place *place)
{
	return place->dev < 0 || lb_device_at(place->dev);
}

/* Where a local address is. 0 or an errno. */
static int find_place(const struct sockaddr *sa, struct place *place)
{
	const struct lb_device *dev = lb_gid_device_of_addr(sa);

	if (!dev)
		return EADDRNOTAVAIL;
	if (!lb_cm_dev(dev->index))
		return ENODEV;
	place->dev = dev->index;
	place->gid_index = lb_gid_index_of_addr(dev, sa);
	return 0;
}

/* [lock] */
static int bind_id(struct lb_cm_id *id, const struct sockaddr *sa,
		   const struct place *place)
{
	int err;

	if (id->state != LB_CM_IDLE)
		return lb_cm_id_state_errno(id);
	if (!is_there(place))
		return ENODEV;
	memset(&id->src, 0, sizeof(id->src));
	memcpy(&id->src, sa, lb_cm_addr_len(sa));
	if (!id->afonly_set)
		id->afonly = sa->sa_family == AF_INET;
	err = lb_cm_port_bind(id);
	if (err)
		return err;
	id->dev = place->dev;
	id->gid_index = place->gid_index;
	id->state = LB_CM_BOUND;
	return 0;
}

static int bind_addr(struct lb_cm_id *id, const struct sockaddr *sa)
{
	struct place place = {.dev = -1};
	int err = 0;

	lb_cm_port_start();
	if (!is_any(sa))
		err = find_place(sa, &place);
	if (err)
		return err;
	lb_cm_lock();
	err = bind_id(id, sa, &place);
	lb_cm_unlock();
	if (!err)
		lb_cm_publish_addr(id);
	return err;
}

int lb_cm_resolve_bind_any(struct lb_cm_id *id)
{
	struct sockaddr_storage any = any_of(AF_INET);

	return bind_addr(id, (struct sockaddr *)&any);
}

LB_EXPORT int rdma_bind_addr(struct rdma_cm_id *cm_id, struct sockaddr *addr)
{
	struct lb_cm_id *id = lb_cm_enter("rdma_bind_addr", cm_id);
	int err = EINVAL;

	if (!id)
		return -1;
	if (lb_cm_addr_len(addr))
		err = bind_addr(id, addr);
	return lb_cm_leave(cm_id, err ? lb_cm_err(err) : 0);
}

/* ---- resolving ---------------------------------------------------------- */

/* An address for somebody who wants to reach dst: all is local. */
static struct sockaddr_storage source_for(const struct sockaddr *dst)
{
	struct sockaddr_storage any = any_of(dst->sa_family);

	return destination(lb_cm_addr_is_multicast(dst) ? (void *)&any : dst);
}

/* [lock] */
static void choose_source(struct lb_cm_id *id, const struct place *place)
{
	in_port_t port = port_of((struct sockaddr *)&id->src);

	if (id->dev >= 0)
		return;
	id->src = source_for((struct sockaddr *)&id->dst);
	lb_cm_addr_set_port(&id->src, port);
	id->dev = place->dev;
	id->gid_index = place->gid_index;
}

/* [lock] The outcome; err: why dst cannot be reached. 0 or an errno. */
static int resolve(struct lb_cm_id *id, const struct sockaddr_storage *dst,
		   const struct place *place, int err)
{
	if (id->state != LB_CM_BOUND)
		return lb_cm_id_state_errno(id);
	if (id->src.ss_family != dst->ss_family)
		return EINVAL;
	id->dst = *dst;
	if (!err && !is_there(place))
		err = ENODEV;
	if (err) {
		lb_cm_event_new(id, RDMA_CM_EVENT_ADDR_ERROR, -err, NULL, 0);
		return 0;
	}
	choose_source(id, place);
	id->dst_dev = place->dev;
	id->dst_gid_index = place->gid_index;
	if (lb_cm_addr_is_multicast((struct sockaddr *)dst))
		lb_cm_addr_to_gid((struct sockaddr *)dst, &id->dgid);
	else
		id->dgid = *lb_cm_dev_gid(place->dev, place->gid_index);
	id->state = LB_CM_ADDR_RESOLVED;
	lb_cm_event_new(id, RDMA_CM_EVENT_ADDR_RESOLVED, 0, NULL, 0);
	return 0;
}

static int resolve_addr(struct lb_cm_id *id, const struct sockaddr *src,
			const struct sockaddr *dst_sa)
{
	struct sockaddr_storage dst = destination(dst_sa);
	struct sockaddr_storage any = any_of(dst.ss_family);
	struct sockaddr_storage near = source_for((struct sockaddr *)&dst);
	struct place place = {.dev = -1};
	int err = 0;

	if (src && src->sa_family != dst.ss_family)
		return EINVAL;
	if (lb_cm_id_is_idle(id))
		err = bind_addr(id, src ? src : (struct sockaddr *)&any);
	if (err)
		return err;
	err = lb_fault_errno("cm.resolve_addr");
	if (!err && find_place((struct sockaddr *)&near, &place))
		err = EHOSTUNREACH;
	lb_cm_lock();
	err = resolve(id, &dst, &place, err);
	lb_cm_unlock();
	if (err)
		return err;
	memcpy(&id->id.route.addr.dst_storage, &dst, sizeof(dst));
	lb_cm_flush();
	return 0;
}

LB_EXPORT int rdma_resolve_addr(struct rdma_cm_id *cm_id,
				struct sockaddr *src_addr,
				struct sockaddr *dst_addr, int timeout_ms)
{
	struct lb_cm_id *id = lb_cm_enter("rdma_resolve_addr", cm_id);
	int err = EINVAL;

	(void)timeout_ms; /* the answer is there at once */
	if (!id)
		return -1;
	if (lb_cm_addr_len(dst_addr) && (!src_addr || lb_cm_addr_len(src_addr)))
		err = resolve_addr(id, src_addr, dst_addr);
	return lb_cm_leave(cm_id, err ? lb_cm_err(err) : lb_cm_read_sync(id));
}

/* [lock] 0 or an errno */
static int resolve_route(struct lb_cm_id *id, int err)
{
	if (id->state != LB_CM_ADDR_RESOLVED)
		return lb_cm_id_state_errno(id);
	if (err) {
		lb_cm_event_new(id, RDMA_CM_EVENT_ROUTE_ERROR, -err, NULL, 0);
		return 0;
	}
	id->state = LB_CM_ROUTE_RESOLVED;
	lb_cm_event_new(id, RDMA_CM_EVENT_ROUTE_RESOLVED, 0, NULL, 0);
	return 0;
}

LB_EXPORT int rdma_resolve_route(struct rdma_cm_id *cm_id, int timeout_ms)
{
	struct lb_cm_id *id = lb_cm_enter("rdma_resolve_route", cm_id);
	int err;

	if (!id)
		return -1;
	if (!timeout_ms) /* as the kernel */
		return lb_cm_leave(cm_id, lb_cm_err(EINVAL));
	err = lb_fault_errno("cm.resolve_route");
	lb_cm_lock();
	err = resolve_route(id, err);
	lb_cm_unlock();
	lb_cm_flush();
	return lb_cm_leave(cm_id, err ? lb_cm_err(err) : lb_cm_read_sync(id));
}

LB_EXPORT __be16 rdma_get_src_port(struct rdma_cm_id *id)
{
	return port_of(&id->route.addr.src_addr);
}

LB_EXPORT __be16 rdma_get_dst_port(struct rdma_cm_id *id)
{
	return port_of(&id->route.addr.dst_addr);
}
