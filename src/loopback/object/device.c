/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * device.c -- the devices: what they are called, and which there are. Constant
 * once started, but for the mark of a removal; any thread.
 */

#include "object/device.h"

#include <endian.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>

#include "base/base.h"
#include "base/fd.h"
#include "base/list.h"
#include "object/limits.h"

#define GUID_BASE 0x024c420000000001u

int lb_device_count;
struct lb_device lb_device_all[LB_MAX_DEVICES];

void lb_device_start(void)
{
	int n;

	for (n = 0; n < lb_device_count; n++) {
		struct lb_device *dev = &lb_device_all[n];

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
	}
}

struct lb_device *lb_device_at(int index)
{
	struct lb_device *dev;

	if (index < 0 || index >= lb_device_count)
		return NULL;
	dev = &lb_device_all[index];
	/* acquire: pairs with the release of rpma_loopback_remove_device() */
	return atomic_load_explicit(&dev->removed, memory_order_acquire) ? NULL
									 : dev;
}

struct lb_context *lb_device_context_of(struct ibv_context *context)
{
	return (struct lb_context *)((char *)context -
				     offsetof(struct lb_context, vctx.context));
}

struct lb_device *lb_device_of(struct ibv_context *context)
{
	return (struct lb_device *)context->device;
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

/* --- fork */

/* Events of the parent are the parent's, and so is the eventfd. */
static void inherit(struct lb_context *ctx)
{
	pthread_mutex_init(&ctx->lock, NULL);
	pthread_mutex_init(&ctx->vctx.context.mutex, NULL);
	lb_list_init(&ctx->asyncs);
	lb_fd_renew(ctx->vctx.context.async_fd);
}

void lb_device_fork(enum lb_fork_step step)
{
	struct lb_list *n;
	int i;

	for (i = 0; step == LB_FORK_CHILD && i < lb_device_count; i++) {
		struct lb_list *contexts = &lb_device_all[i].contexts;

		for (n = contexts->next; n != contexts; n = n->next)
			inherit(lb_entry(n, struct lb_context, node));
	}
}
