/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * context.c -- the list of devices, and contexts: what ibv_open_device() gives.
 * Under lb.big where it changes anything.
 */

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/base.h"
#include "base/cancel.h"
#include "base/hook.h"
#include "base/list.h"
#include "base/process.h"
#include "fault/fault.h"
#include "object/async.h"
#include "object/device.h"
#include "object/limits.h"
#include "object/object.h"
#include "rpma_loopback.h"
#include "verbs/config.h"
#include "verbs/ops.h"

/* verbs.h makes it a macro; here it is a function to define */
#undef ibv_get_device_list

LB_EXPORT struct ibv_device **ibv_get_device_list(int *num_devices)
{
	struct ibv_device **list;
	int err = lb_fault_errno("ibv_get_device_list");
	int n, found = 0;

	lb_config_start();
	list = calloc((size_t)lb_device_count + 1, sizeof(*list));
	if (!list || err) {
		free(list);
		errno = err ? err : ENOMEM;
		return NULL;
	}
	for (n = 0; n < lb_device_count; n++) {
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

static bool is_device(const struct ibv_device *device)
{
	int n;

	for (n = 0; n < lb_device_count; n++) {
		if (device == &lb_device_all[n].ibv)
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
	lb_opener_note(&ctx->opener);
	pthread_mutex_init(&ctx->lock, NULL);
	ctx->vctx.sz = sizeof(ctx->vctx);
	lb_stubs_fill_ops(&ctx->vctx);
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
	LB_NOT_CANCELLED;

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
	int err = lb_fault_errno("ibv_open_device");

	lb_config_start();
	if (!err && (!is_device(device) || !lb_device_at(dev->index)))
		err = ENODEV;
	ctx = err ? NULL : context_new(dev);
	if (!ctx) {
		errno = err ? err : ENOMEM;
		return NULL;
	}
	pthread_mutex_lock(&lb.big);
	err = lb_object_add(&ctx->obj, &ctx->vctx.context, LB_CONTEXT, dev,
			    NULL);
	if (!err)
		lb_list_push(&dev->contexts, &ctx->node);
	pthread_mutex_unlock(&lb.big);
	if (!err)
		return &ctx->vctx.context;
	context_delete(ctx);
	lb_error_of("ibv_open_device", err);
	return NULL;
}

static bool has_others(struct ibv_context *context)
{
	struct lb_obj *found;
	bool has;

	pthread_mutex_lock(&lb.big);
	found = lb_object_find(context, LB_CONTEXT);
	has = found && found->refs;
	pthread_mutex_unlock(&lb.big);
	return has;
}

/*
 * rdma-core's always returns 0, and the kernel ends what is left. Here that
 * stays, with the context; the strict mode complains.
 */
LB_EXPORT int ibv_close_device(struct ibv_context *context)
{
	struct lb_context *ctx;
	struct lb_obj *obj;
	int err;

	lb_hook(RPMA_LOOPBACK_DESTROY, context);
	err = lb_object_retire("ibv_close_device", context, LB_CONTEXT, &obj);
	if (err == EBUSY && has_others(context))
		return 0;
	if (err) {
		errno = err;
		return -1;
	}
	ctx = lb_device_context_of(context);
	lb_list_del(&ctx->node);
	pthread_mutex_unlock(&lb.big);
	lb_hook(RPMA_LOOPBACK_DESTROY_DONE, context);
	context_delete(ctx);
	return 0;
}
