/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * addr.c -- addresses of identifiers: binding, resolving, and reporting the
 * result to the application. lb_device_by_addr() decides which device an
 * address belongs to. Any thread; resolving does not wait, its event is there
 * when the call returns.
 */

#include <errno.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "cm/cm.h"
#include "fault/fault.h"
#include "object/device.h"
#include "qp/mcast.h"

#define FULL_PKEY 0xffff

/* ---- addresses ---------------------------------------------------------- */

socklen_t lb_cm_addr_len(const struct sockaddr *sa)
{
	if (sa && sa->sa_family == AF_INET)
		return sizeof(struct sockaddr_in);
	if (sa && sa->sa_family == AF_INET6)
		return sizeof(struct sockaddr_in6);
	return 0;
}

bool lb_cm_addr_from(struct lb_cm_addr *addr, const struct sockaddr *sa)
{
	static const uint8_t v4_prefix[12] = {[10] = 0xff, [11] = 0xff};

	memset(addr, 0, sizeof(*addr));
	if (sa->sa_family == AF_INET) {
		const struct sockaddr_in *sin = (const void *)sa;

		memcpy(addr->ip.s6_addr, v4_prefix, sizeof(v4_prefix));
		memcpy(addr->ip.s6_addr + 12, &sin->sin_addr, 4);
		addr->port = sin->sin_port;
		addr->v4 = true;
		addr->any = sin->sin_addr.s_addr == htonl(INADDR_ANY);
		return true;
	}
	if (sa->sa_family == AF_INET6) {
		const struct sockaddr_in6 *sin6 = (const void *)sa;

		addr->ip = sin6->sin6_addr;
		addr->port = sin6->sin6_port;
		addr->v4 = IN6_IS_ADDR_V4MAPPED(&addr->ip);
		addr->any = IN6_IS_ADDR_UNSPECIFIED(&addr->ip);
		return true;
	}
	return false;
}

bool lb_cm_addr_is_same_ip(const struct lb_cm_addr *a,
			   const struct lb_cm_addr *b)
{
	return !memcmp(&a->ip, &b->ip, sizeof(a->ip));
}

void lb_cm_addr_set_port(struct sockaddr_storage *ss, in_port_t port)
{
	if (ss->ss_family == AF_INET)
		((struct sockaddr_in *)ss)->sin_port = port;
	else
		((struct sockaddr_in6 *)ss)->sin6_port = port;
}

void lb_cm_addr_to_gid(const struct sockaddr *sa, union ibv_gid *gid)
{
	struct lb_cm_addr addr;

	lb_cm_addr_from(&addr, sa);
	memcpy(gid->raw, addr.ip.s6_addr, sizeof(gid->raw));
}

bool lb_cm_addr_is_multicast(const struct sockaddr *sa)
{
	union ibv_gid gid;

	lb_cm_addr_to_gid(sa, &gid);
	return lb_mcast_is(&gid);
}

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

/* ---- telling the application -------------------------------------------- */

static void publish_device(struct rdma_cm_id *id, int index)
{
	const struct lb_cm_dev *dev = lb_cm_dev(index);

	if (!dev || id->verbs)
		return;
	id->verbs = dev->verbs;
	id->pd = dev->pd;
	id->port_num = LB_CM_PORT_NUM;
}

void lb_cm_addr_publish(struct lb_cm_id *id)
{
	struct rdma_addr *addr = &id->id.route.addr;
	int index;

	lb_cm_lock();
	addr->src_storage = id->src;
	addr->dst_storage = id->dst;
	index = id->dev;
	if (index >= 0) {
		addr->addr.ibaddr.sgid = *lb_cm_dev_gid(index, id->gid_index);
		addr->addr.ibaddr.pkey = htons(FULL_PKEY);
	}
	lb_cm_unlock();
	publish_device(&id->id, index);
}

void lb_cm_route_publish(struct lb_cm_id *id)
{
	struct rdma_route *route = &id->id.route;
	struct ibv_sa_path_rec *path = calloc(1, sizeof(*path));
	const struct lb_cm_dev *dev;
	int index;

	if (!path)
		return;
	lb_cm_lock();
	index = id->dev;
	path->sgid = *lb_cm_dev_gid(id->dev, id->gid_index);
	path->dgid = id->dgid;
	path->traffic_class = id->tos;
	lb_cm_unlock();
	dev = lb_cm_dev(index);
	path->hop_limit = 64;
	path->reversible = 1;
	path->numb_path = 1;
	path->pkey = htons(FULL_PKEY);
	path->mtu_selector = 2; /* exactly */
	path->mtu = dev ? (uint8_t)dev->mtu : (uint8_t)IBV_MTU_1024;
	route->addr.addr.ibaddr.dgid = path->dgid;
	free(route->path_rec);
	route->path_rec = path;
	route->num_paths = 1;
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
	const struct lb_device *dev = lb_device_by_addr(sa);

	if (!dev)
		return EADDRNOTAVAIL;
	if (!lb_cm_dev(dev->index))
		return ENODEV;
	place->dev = dev->index;
	place->gid_index = lb_device_gid_index(dev, sa);
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

	if (!is_any(sa))
		err = find_place(sa, &place);
	if (err)
		return err;
	lb_cm_lock();
	err = bind_id(id, sa, &place);
	lb_cm_unlock();
	if (!err)
		lb_cm_addr_publish(id);
	return err;
}

int lb_cm_bind_any(struct lb_cm_id *id)
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
	err = lb_fail("cm.resolve_addr");
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
	return lb_cm_leave(cm_id, err ? lb_cm_err(err) : lb_cm_complete(id));
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
	err = lb_fail("cm.resolve_route");
	lb_cm_lock();
	err = resolve_route(id, err);
	lb_cm_unlock();
	lb_cm_flush();
	return lb_cm_leave(cm_id, err ? lb_cm_err(err) : lb_cm_complete(id));
}

LB_EXPORT __be16 rdma_get_src_port(struct rdma_cm_id *id)
{
	return port_of(&id->route.addr.src_addr);
}

LB_EXPORT __be16 rdma_get_dst_port(struct rdma_cm_id *id)
{
	return port_of(&id->route.addr.dst_addr);
}
