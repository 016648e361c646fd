/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * device.c -- the devices, their contexts, and the removal of a device. Under
 * lb.big where it changes anything.
 */

#include "loopback.h"
#include "internal.h"

#include <endian.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#define GUID_BASE     0x024c420000000001u
#define MAX_LISTENERS 4

static _Atomic(void (*)(struct lb_device *)) removal_fns[MAX_LISTENERS];

void lb_device_start(void)
{
	int n;

	for (n = 0; n < lb.ndevices; n++) {
		struct lb_device *dev = &lb.devices[n];

		dev->index = n;
		lb_list_init(&dev->contexts);
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
		lb_gid_start(dev);
	}
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

int lb_device_count(void)
{
	lb_start();
	return lb.ndevices;
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
	lb_list_init(&ctx->asyncs);
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
	lb_async_fini(ctx);
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
		lb_list_push(&dev->contexts, &ctx->node);
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
	struct lb_context *ctx;
	struct lb_obj *obj;
	int err;

	lb_hook(RPMA_LOOPBACK_DESTROY, context);
	err = lb_obj_retire("ibv_close_device", context, LB_CONTEXT, &obj);
	if (err) {
		errno = err;
		return -1;
	}
	ctx = from_context(context);
	lb_list_del(&ctx->node);
	pthread_mutex_unlock(&lb.big);
	lb_hook(RPMA_LOOPBACK_DESTROY_DONE, context);
	context_delete(ctx);
	return 0;
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
	struct lb_run run;
	struct lb_list *n;
	struct lb_qp *qp;

	lb_run_begin(&run);
	pthread_mutex_lock(&lb.big);
	for (qp = lb_qp_slots(); qp; qp = qp->next)
		lb_qp_break(&run, qp, dev);
	for (n = dev->contexts.next; n != &dev->contexts; n = n->next)
		lb_async_context(lb_entry(n, struct lb_context, node),
				 IBV_EVENT_DEVICE_FATAL);
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
