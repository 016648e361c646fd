/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * device.h -- the devices of a runtime (base/runtime.h): made by the thread that
 * uses them first, and ended by stop.
 */

#ifndef RT_CM_DEVICE_H
#define RT_CM_DEVICE_H

#include "base/runtime.h"

/*
 * The runtime's device of that context, made if it is new. The caller keeps the
 * runtime from stopping, and holds no lock.
 * ERRORS: RPMA_E_NOMEM, RPMA_E_PROVIDER
 */
int rt_device_get(struct rpma_rt *rt, struct ibv_context *ibv_ctx,
		  struct rt_device **device_ptr);

/* The following are called by stop: no other thread uses the devices. */

/* Ends the reading of CM events, and the watch for asynchronous ones. */
void rt_device_end_reading(struct rpma_rt *rt);
/* Runs what is in their inboxes, ends their threads, deletes them. */
void rt_device_delete_all(struct rpma_rt *rt);

#endif /* RT_CM_DEVICE_H */
