/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * cm.h -- the CM channel of a runtime on one device, and the devices of a
 * runtime.
 */

#ifndef RT_CM_CM_H
#define RT_CM_CM_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "rpma_rt.h"
#include "base/fds.h"
#include "base/runtime.h"
#include "base/thread.h"
#include "events/events.h"

/* ------------------------------------------------------------------- cm --- */

/*
 * The CM channel of a runtime on one device, read by that device's control
 * thread: an event is copied, acknowledged, and handled at once by the target
 * that its id's context names. And the watch for that device's end.
 * doc/protocols/connection.md, threads.md.
 */

struct rdma_cm_id;
struct rdma_event_channel;
struct rt_cm_target;
struct rt_device;

/* connections and listeners; both functions run on the control thread */
struct rt_cm_ops {
	void (*event)(struct rt_cm_target *target,
		      const struct rpma_cm_event *event);
	/* one holder less */
	void (*unref)(struct rt_cm_target *target);
};

/* what the context of a CM id points at; embedded as its first member */
struct rt_cm_target {
	const struct rt_cm_ops *ops; /* immutable */
	_Atomic uint32_t count;	     /* holders; the last one frees */
	/* the control thread's: an id that points here was not destroyed */
	bool is_kept;
	struct rt_cm_target *next_kept;
};

struct rt_cm {
	struct rt_source source;	 /* first; of the control thread */
	struct rpma_cm_channel *channel; /* immutable */
	struct rt_device *device;	 /* immutable */
	/* immutable; where ids are taken whose events nobody is to read */
	struct rdma_event_channel *quiet;
	/* the control thread's: targets of ids that were not destroyed */
	struct rt_cm_target *kept;
	/* errno for which it was given up; 0: it is read. Set by the control
	 * thread, before it looks for those who relied on it */
	_Atomic int error;
	/* DEVICE_FATAL, from the first use on: to the control thread */
	struct rt_async_device async;
	struct rt_msg fatal_msg;
	_Atomic bool fatal_sent;
	uint32_t fatals; /* handled; under the runtime's lock */
};

/* Any thread; once and for all where not 0. */
static inline int rt_cm_error(const struct rt_cm *cm)
{
	/* acquire: pairs with the release in give_up() */
	int err = atomic_load_explicit(&cm->error, memory_order_acquire);

	return err != 0 ? err : rt_fds_error(cm->device->rt);
}
/* May connections and listeners rely on its events? No lock is held.
 * ERRORS: RPMA_E_PROVIDER (they are not read any more), logged */
int rt_cm_check(const struct rt_cm *cm);

/* The channel of a device whose control thread runs; its asynchronous events
 * are watched. ERRORS: RPMA_E_NOMEM, RPMA_E_PROVIDER */
int rt_cm_new(struct rt_device *device, struct rt_cm **cm_ptr);
/* Any thread: its asynchronous events are not watched any more. */
void rt_cm_unwatch(struct rt_cm *cm);
/* REQUIRES: the only ids on it are those that could not be destroyed. */
void rt_cm_delete(struct rt_cm *cm);

/* An id that names the target was not destroyed, so events of it may come: the
 * target is held until nobody reads them any more. */
void rt_cm_keep_control(struct rt_cm *cm, struct rt_cm_target *target);
/*
 * Takes the id off the channel: no event of it is read any more, so librdmacm
 * does not touch its queue pair from here on. Waits for nothing, as each event
 * that was read was acknowledged by the caller before.
 * ERRORS: RPMA_E_PROVIDER (it is still on the channel)
 */
int rt_cm_silence_control(struct rt_cm *cm, struct rdma_cm_id *id);
/* Reads no more events; drops the references to targets that were kept. */
void rt_cm_end_control(struct rt_cm *cm);

/* --------------------------------------------------------------- device --- */

/*
 * The devices of a runtime (base/runtime.h): made by the thread that uses them
 * first, and ended by stop.
 */

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

#endif /* RT_CM_CM_H */
