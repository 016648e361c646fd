/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * device.h -- a runtime's part of one ibv_context: a thread for calls that may
 * block, and another one for calls that destroy, which may block for seconds.
 * So a slow device delays no other device, and a slow destroy no other
 * connection. Made by cm/device.c at first use, until stop.
 * doc/protocols/threads.md.
 */

#ifndef RT_BASE_DEVICE_H
#define RT_BASE_DEVICE_H

#include <stddef.h>

#include "base/runtime.h"
#include "base/thread.h"

struct ibv_context;
struct rt_device;

/* What becomes of all that a runtime has on a device. On its control thread,
 * with no lock. */
struct rt_device_ops {
	/* DEVICE_FATAL: connections learn of it from their CQs */
	void (*fatal)(struct rt_device *device);
	/* its CM events are read no more, see rt_cm_error() */
	void (*deaf)(struct rt_device *device);
	/* the program closed descriptors of the runtime, see base/fds.h */
	void (*lost)(struct rt_device *device);
};

struct rt_device {
	/* immutable */
	struct rpma_rt *rt;
	struct ibv_context *ibv_ctx;
	struct rt_thread control;   /* messages get rt */
	struct rt_thread destroyer; /* likewise */
	struct rt_cm *cm;	    /* its events: cm/cm.h */
	/* descriptors were lost, as a poller or the event thread noticed */
	struct rt_msg lost_msg;
	_Atomic bool lost_sent;
	/* a queue pair of an SRQ ended without LAST_WQE_REACHED: it is waited
	 * for shortly, until one comes */
	_Atomic bool no_last_wqe;
	struct rt_device *next;
};

/* The runtime's device of that context; NULL: it has not been used. Any thread
 * that keeps the runtime from stopping. */
static inline struct rt_device *
rt_device_find(const struct rpma_rt *rt, const struct ibv_context *ibv_ctx)
{
	/* acquire: pairs with the release in cm/device.c */
	struct rt_device *device =
		atomic_load_explicit(&rt->devices, memory_order_acquire);

	while (device != NULL && device->ibv_ctx != ibv_ctx)
		device = device->next;
	return device;
}

#endif /* RT_BASE_DEVICE_H */
