/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * dev.c -- a context and a default protection domain of every device,
 * opened at the first use and kept for the life of the process: identifiers
 * hand them out, and librdmacm's users never close them. Any thread.
 */

#include "cm/dev.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "base/base.h"
#include "cm/cm.h"
#include "object/device.h"
#include "object/limits.h"
#include "object/query.h"
#include "verbs/config.h"

/* each is set once, by whoever opens the device first */
static _Atomic(struct lb_cm_dev *) devs[LB_MAX_DEVICES];

static void dev_close(struct lb_cm_dev *dev)
{
	if (dev->pd)
		ibv_dealloc_pd(dev->pd);
	if (dev->verbs)
		ibv_close_device(dev->verbs);
	free(dev);
}

static struct lb_cm_dev *dev_open(struct lb_device *device)
{
	struct ibv_device_attr attr;
	struct ibv_port_attr port;
	struct lb_cm_dev *dev = calloc(1, sizeof(*dev));

	if (!dev)
		return NULL;
	dev->dev = device;
	dev->verbs = ibv_open_device(&device->ibv);
	if (!dev->verbs)
		goto err_close;
	if (ibv_query_device(dev->verbs, &attr) ||
	    lb_query_port(dev->verbs, LB_CM_PORT_NUM, &port, sizeof(port)))
		goto err_close;
	dev->pd = ibv_alloc_pd(dev->verbs);
	if (!dev->pd)
		goto err_close;
	dev->mtu = port.active_mtu;
	dev->responder_resources = (uint8_t)attr.max_qp_rd_atom;
	dev->initiator_depth = (uint8_t)attr.max_qp_init_rd_atom;
	return dev;

err_close:
	dev_close(dev);
	return NULL;
}

/*
 * Opens a device; if two threads open a device at once, the second context is
 * closed again.
 */
static const struct lb_cm_dev *dev_first(int index)
{
	struct lb_device *device = lb_device_at(index);
	struct lb_cm_dev *dev = device ? dev_open(device) : NULL;
	struct lb_cm_dev *other = NULL;

	if (!dev)
		return NULL;
	/* acq_rel: publishes *dev to, or gets it from, lb_cm_dev() */
	if (atomic_compare_exchange_strong_explicit(&devs[index], &other, dev,
						    memory_order_acq_rel,
						    memory_order_acquire))
		return dev;
	dev_close(dev);
	return other;
}

const struct lb_cm_dev *lb_cm_dev(int index)
{
	const struct lb_cm_dev *dev;

	if (index < 0 || index >= LB_MAX_DEVICES)
		return NULL;
	/* acquire: pairs with the exchange in dev_first() */
	dev = atomic_load_explicit(&devs[index], memory_order_acquire);
	return dev ? dev : dev_first(index);
}

const union ibv_gid *lb_cm_dev_gid(int index, int gid_index)
{
	return lb_gid_at(lb_cm_dev(index)->dev, gid_index);
}

LB_EXPORT struct ibv_context **rdma_get_devices(int *num_devices)
{
	struct ibv_context **list = calloc(LB_MAX_DEVICES + 1, sizeof(*list));
	int n = 0;

	lb_config_start();
	for (int i = 0; list && i < LB_MAX_DEVICES; i++) {
		const struct lb_cm_dev *dev = lb_cm_dev(i);

		/* relaxed: the caller cannot rely on what changes meanwhile */
		if (dev && !atomic_load_explicit(&dev->dev->removed,
						 memory_order_relaxed))
			list[n++] = dev->verbs;
	}
	if (num_devices)
		*num_devices = n;
	if (list && !n) {
		free(list);
		list = NULL;
		errno = ENODEV;
	}
	return list;
}

LB_EXPORT void rdma_free_devices(struct ibv_context **list)
{
	free(list);
}
