/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * device.c -- the devices and their addresses, contexts, protection domains,
 * and the removal of a device. Under lb.big where it changes anything.
 */

#include "loopback.h"
#include "internal.h"

#include <arpa/inet.h>
#include <endian.h>
#include <errno.h>
#include <ifaddrs.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#define GUID_BASE     0x024c420000000001u
#define MAX_LISTENERS 4

static _Atomic(void (*)(struct lb_device *)) removal_fns[MAX_LISTENERS];

/* --- addresses */

/* sa as the GID of a RoCE v2 port, false if it is not an IP address */
static bool gid_from(const struct sockaddr *sa, union ibv_gid *gid)
{
	const struct sockaddr_in *in = (const struct sockaddr_in *)sa;
	const struct sockaddr_in6 *in6 = (const struct sockaddr_in6 *)sa;

	memset(gid, 0, sizeof(*gid));
	if (sa->sa_family == AF_INET) {
		gid->raw[10] = gid->raw[11] = 0xff;
		memcpy(&gid->raw[12], &in->sin_addr, 4);
		return true;
	}
	if (sa->sa_family == AF_INET6) {
		memcpy(gid->raw, &in6->sin6_addr, 16);
		return true;
	}
	return false;
}

static bool gid_is_loopback4(const union ibv_gid *gid)
{
	static const uint8_t prefix[13] = {[10] = 0xff, 0xff, 127};

	return !memcmp(gid->raw, prefix, sizeof(prefix));
}

static bool gid_equal(const union ibv_gid *a, const union ibv_gid *b)
{
	return !memcmp(a->raw, b->raw, sizeof(a->raw));
}

static int gid_index(const struct lb_device *dev, const union ibv_gid *gid)
{
	int i;

	for (i = 0; i < dev->ngids; i++) {
		if (gid_equal(&dev->gids[i], gid))
			return i;
	}
	return -1;
}

static void gid_add(struct lb_device *dev, const union ibv_gid *gid)
{
	if (dev->ngids < LB_MAX_GIDS && gid_index(dev, gid) < 0)
		dev->gids[dev->ngids++] = *gid;
}

/* Is gid an address of this machine now? Tells fn every one of them. */
static bool machine_has(const union ibv_gid *gid, struct lb_device *collect)
{
	struct ifaddrs *list, *i;
	union ibv_gid have;
	bool found = false;

	if (getifaddrs(&list))
		return false;
	for (i = list; i; i = i->ifa_next) {
		if (!i->ifa_addr || !gid_from(i->ifa_addr, &have))
			continue;
		if (collect && !gid_is_loopback4(&have))
			gid_add(collect, &have);
		if (gid && gid_equal(gid, &have))
			found = true;
	}
	freeifaddrs(list);
	return found;
}

struct lb_device *lb_device_at(int index)
{
	struct lb_device *dev;

	lb_start();
	if (index < 0 || index >= lb.ndevices)
		return NULL;
	dev = &lb.devices[index];
	/* acquire: pairs with the release of rpma_loopback_remove_device() */
	return atomic_load_explicit(&dev->removed, memory_order_acquire) ? NULL
									 : dev;
}

struct lb_device *lb_device_by_gid(const union ibv_gid *gid)
{
	static const union ibv_gid none;

	lb_start();
	if (lb.ndevices == 0 || gid_equal(gid, &none))
		return NULL;
	if (gid_is_loopback4(gid))
		return lb_device_at(gid->raw[14] % lb.ndevices);
	if (gid_index(&lb.devices[0], gid) >= 0 || machine_has(gid, NULL))
		return lb_device_at(0);
	return NULL;
}

struct lb_device *lb_device_by_addr(const struct sockaddr *addr)
{
	union ibv_gid gid;

	return gid_from(addr, &gid) ? lb_device_by_gid(&gid) : NULL;
}

int lb_device_gid_index(const struct lb_device *dev,
			const struct sockaddr *addr)
{
	union ibv_gid gid;
	int index = gid_from(addr, &gid) ? gid_index(dev, &gid) : -1;

	return index < 0 ? 0 : index;
}

int lb_device_count(void)
{
	lb_start();
	return lb.ndevices;
}

void lb_device_start(void)
{
	int n;

	for (n = 0; n < lb.ndevices; n++) {
		struct lb_device *dev = &lb.devices[n];
		union ibv_gid gid = {.raw = {[10] = 0xff, 0xff, 127, 0}};

		gid.raw[14] = (uint8_t)n;
		gid.raw[15] = 1;
		gid_add(dev, &gid);
		dev->index = n;
		dev->guid = htobe64(GUID_BASE + (uint64_t)n);
		dev->ibv.node_type = IBV_NODE_CA;
		dev->ibv.transport_type = IBV_TRANSPORT_IB;
		snprintf(dev->ibv.name, sizeof(dev->ibv.name), "loop%d", n);
		snprintf(dev->ibv.dev_name, sizeof(dev->ibv.dev_name),
			 "uverbs%d", n);
		snprintf(dev->ibv.dev_path, sizeof(dev->ibv.dev_path),
			 "/sys/class/infiniband_verbs/uverbs%d", n);
		snprintf(dev->ibv.ibdev_path, sizeof(dev->ibv.ibdev_path),
			 "/sys/class/infiniband/loop%d", n);
	}
	if (lb.ndevices)
		machine_has(NULL, &lb.devices[0]);
}

/* --- the list */

LB_EXPORT struct ibv_device **ibv_get_device_list(int *num_devices)
{
	struct ibv_device **list;
	int err = lb_fail("ibv_get_device_list");
	int n, found = 0;

	lb_start();
	list = calloc((size_t)lb.ndevices + 1, sizeof(*list));
	if (!list || err) {
		free(list);
		errno = err ? err : ENOMEM;
		return NULL;
	}
	for (n = 0; n < lb.ndevices; n++) {
		struct lb_device *dev = lb_device_at(n);

		if (dev)
			list[found++] = &dev->ibv;
	}
	if (num_devices)
		*num_devices = found;
	return list;
}

LB_EXPORT void ibv_free_device_list(struct ibv_device **list)
{
	free(list);
}

LB_EXPORT const char *ibv_get_device_name(struct ibv_device *device)
{
	return device->name;
}

LB_EXPORT int ibv_get_device_index(struct ibv_device *device)
{
	return ((struct lb_device *)device)->index;
}

LB_EXPORT __be64 ibv_get_device_guid(struct ibv_device *device)
{
	return ((struct lb_device *)device)->guid;
}

/* --- contexts */

static struct lb_context *from_context(struct ibv_context *context)
{
	return (struct lb_context *)((char *)context -
				     offsetof(struct lb_context, vctx.context));
}

struct lb_context *lb_context_of(struct ibv_context *context)
{
	return from_context(context);
}

struct lb_device *lb_device_of(struct ibv_context *context)
{
	return (struct lb_device *)context->device;
}

static bool is_device(const struct ibv_device *device)
{
	int n;

	for (n = 0; n < lb.ndevices; n++) {
		if (device == &lb.devices[n].ibv)
			return true;
	}
	return false;
}

static struct lb_context *context_new(struct lb_device *dev)
{
	struct lb_context *ctx = calloc(1, sizeof(*ctx));
	struct ibv_context *ibv;

	if (!ctx)
		return NULL;
	ibv = &ctx->vctx.context;
	ctx->last = &ctx->first;
	pthread_mutex_init(&ctx->lock, NULL);
	ctx->vctx.sz = sizeof(ctx->vctx);
	lb_fill_ops(&ctx->vctx);
	ibv->device = &dev->ibv;
	ibv->cmd_fd = -1;
	ibv->num_comp_vectors = LB_COMP_VECTORS;
	ibv->abi_compat = (void *)UINTPTR_MAX;
	pthread_mutex_init(&ibv->mutex, NULL);
	ibv->async_fd = eventfd(0, EFD_SEMAPHORE | EFD_CLOEXEC);
	if (ibv->async_fd >= 0)
		return ctx;
	free(ctx);
	return NULL;
}

static void context_delete(struct lb_context *ctx)
{
	struct lb_async *event;

	while ((event = ctx->first)) {
		ctx->first = event->next;
		free(event);
	}
	close(ctx->vctx.context.async_fd);
	pthread_mutex_destroy(&ctx->vctx.context.mutex);
	pthread_mutex_destroy(&ctx->lock);
	free(ctx);
}

LB_EXPORT struct ibv_context *ibv_open_device(struct ibv_device *device)
{
	struct lb_device *dev = (struct lb_device *)device;
	struct lb_context *ctx;
	int err = lb_fail("ibv_open_device");

	lb_start();
	if (!err && (!is_device(device) || !lb_device_at(dev->index)))
		err = ENODEV;
	ctx = err ? NULL : context_new(dev);
	if (!ctx) {
		errno = err ? err : ENOMEM;
		return NULL;
	}
	pthread_mutex_lock(&lb.big);
	err = lb_obj_add(&ctx->obj, &ctx->vctx.context, LB_CONTEXT, dev, NULL);
	if (!err) {
		ctx->next = dev->contexts;
		dev->contexts = ctx;
	}
	pthread_mutex_unlock(&lb.big);
	if (!err)
		return &ctx->vctx.context;
	context_delete(ctx);
	errno = err;
	return NULL;
}

LB_EXPORT int ibv_close_device(struct ibv_context *context)
{
	struct lb_context **at, *ctx;
	struct lb_obj *obj;
	int err;

	lb_hook(RPMA_LOOPBACK_DESTROY, context);
	err = lb_obj_retire("ibv_close_device", context, LB_CONTEXT, &obj);
	if (err) {
		errno = err;
		return -1;
	}
	ctx = from_context(context);
	for (at = &obj->dev->contexts; *at != ctx; at = &(*at)->next)
		;
	*at = ctx->next;
	pthread_mutex_unlock(&lb.big);
	lb_hook(RPMA_LOOPBACK_DESTROY_DONE, context);
	context_delete(ctx);
	return 0;
}

/* --- protection domains */

/* parent: of a parent domain, else NULL */
static struct lb_pd *pd_new(struct ibv_context *context, struct ibv_pd *parent,
			    const char *verb)
{
	struct lb_pd *pd = NULL;
	struct lb_obj *ctx, *up = NULL;
	int err = lb_fail(verb);

	if (!err)
		pd = calloc(1, sizeof(*pd));
	if (!pd) {
		errno = err ? err : ENOMEM;
		return NULL;
	}
	pthread_mutex_lock(&lb.big);
	ctx = lb_obj_find(context, LB_CONTEXT);
	if (parent)
		up = lb_obj_find(parent, LB_PD);
	err = ctx && (up || !parent) ? 0 : EINVAL;
	if (!err)
		err = lb_obj_add(&pd->obj, &pd->ibv, LB_PD, ctx->dev,
				 &pd->ibv.handle);
	if (!err) {
		ctx->refs++;
		pd->ibv.context = context;
		pd->parent = (struct lb_pd *)parent;
		if (up)
			up->refs++;
	}
	pthread_mutex_unlock(&lb.big);
	if (!err)
		return pd;
	free(pd);
	errno = err;
	return NULL;
}

LB_EXPORT struct ibv_pd *ibv_alloc_pd(struct ibv_context *context)
{
	struct lb_pd *pd = pd_new(context, NULL, "ibv_alloc_pd");

	return pd ? &pd->ibv : NULL;
}

LB_EXPORT int ibv_dealloc_pd(struct ibv_pd *ibv)
{
	struct lb_pd *pd = (struct lb_pd *)ibv;
	struct lb_obj *obj;
	int err;

	lb_hook(RPMA_LOOPBACK_DESTROY, ibv);
	err = lb_obj_retire("ibv_dealloc_pd", ibv, LB_PD, &obj);
	if (err)
		return err;
	from_context(ibv->context)->obj.refs--;
	if (pd->parent)
		pd->parent->obj.refs--;
	pthread_mutex_unlock(&lb.big);
	lb_hook(RPMA_LOOPBACK_DESTROY_DONE, ibv);
	free(pd);
	return 0;
}

struct ibv_pd *lb_alloc_parent_domain(struct ibv_context *context,
				      struct ibv_parent_domain_init_attr *attr)
{
	struct lb_pd *pd;

	if (attr->comp_mask &
	    ~(uint32_t)IBV_PARENT_DOMAIN_INIT_ATTR_PD_CONTEXT) {
		errno = EOPNOTSUPP;
		return NULL;
	}
	pd = pd_new(context, attr->pd, "ibv_alloc_parent_domain");
	return pd ? &pd->ibv : NULL;
}

struct ibv_pd *lb_pd_root(struct ibv_pd *pd)
{
	struct lb_pd *parent = ((struct lb_pd *)pd)->parent;

	return parent ? &parent->ibv : pd;
}

/* --- removal */

void lb_on_removal(void (*fn)(struct lb_device *dev))
{
	int i;

	for (i = 0; i < MAX_LISTENERS; i++) {
		void (*none)(struct lb_device *) = NULL;

		/* release: pairs with the acquire in tell_removal() */
		if (atomic_compare_exchange_strong_explicit(
			    &removal_fns[i], &none, fn, memory_order_release,
			    memory_order_relaxed))
			return;
	}
}

static void tell_removal(struct lb_device *dev)
{
	int i;

	for (i = 0; i < MAX_LISTENERS; i++) {
		/* acquire: pairs with the release in lb_on_removal() */
		void (*fn)(struct lb_device *) = atomic_load_explicit(
			&removal_fns[i], memory_order_acquire);

		if (fn)
			fn(dev);
	}
}

/* Every QP of the device to error, as if its wire were cut. */
static void break_qps(struct lb_device *dev)
{
	struct lb_context *ctx;
	struct lb_run run;
	uint32_t i;

	lb_run_begin(&run);
	pthread_mutex_lock(&lb.big);
	for (i = 0; i < LB_MAX_QP; i++) {
		/* acquire: pairs with the release of the slot in qp.c */
		struct lb_qp *qp =
			atomic_load_explicit(&lb.qps[i], memory_order_acquire);

		if (qp)
			lb_qp_break(&run, qp, dev);
	}
	for (ctx = dev->contexts; ctx; ctx = ctx->next)
		lb_async_context(ctx, IBV_EVENT_DEVICE_FATAL);
	pthread_mutex_unlock(&lb.big);
	lb_run_end(&run);
}

LB_EXPORT int rpma_loopback_remove_device(int index)
{
	struct lb_device *dev = lb_device_at(index);

	if (!dev)
		return -ENODEV;
	/* release: pairs with the acquire in lb_device_at() */
	atomic_store_explicit(&dev->removed, 1, memory_order_release);
	break_qps(dev);
	tell_removal(dev);
	return 0;
}

LB_EXPORT int rpma_loopback_restore_device(int index)
{
	lb_start();
	if (index < 0 || index >= lb.ndevices)
		return -ENODEV;
	/* release: pairs with the acquire in lb_device_at() */
	atomic_store_explicit(&lb.devices[index].removed, 0,
			      memory_order_release);
	return 0;
}
