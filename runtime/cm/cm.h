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
 * The CM channel of a runtime on a device, read by the device's control thread:
 * an event is copied, acknowledged, and handled at once by the target in the
 * context of the event's id. The struct also watches for the device's end.
 * doc/protocols/connection.md, threads.md.
 */

struct rdma_cm_id;
struct rdma_event_channel;
struct rt_cm_target;
struct rt_device;

/* functions of connections and listeners; both run on the control thread */
struct rt_cm_ops {
	void (*event)(struct rt_cm_target *target,
		      const struct rpma_cm_event *event);
	/* drops a count of the target */
	void (*unref)(struct rt_cm_target *target);
};

/* target of the context of a CM id; the first member of its owner */
struct rt_cm_target {
	const struct rt_cm_ops *ops; /* immutable */
	/* number of holders; the last holder frees the target */
	_Atomic uint32_t count;
	/* private to the control thread: an id that points to this target was
	 * not destroyed */
	bool is_kept;
	struct rt_cm_target *next_kept;
};

struct rt_cm {
	/* first; a source of the control thread */
	struct rt_source source;
	struct rpma_cm_channel *channel; /* immutable */
	struct rt_device *device;	 /* immutable */
	/* immutable; ids are moved to this channel if their events have to stay
	 * unread */
	struct rdma_event_channel *quiet;
	/* private to the control thread: targets of ids that were not
	 * destroyed */
	struct rt_cm_target *kept;
	/* errno for which reading was given up; 0: the channel is read. Set by
	 * the control thread, before the thread looks for objects that rely on
	 * the channel */
	_Atomic int error;
	/* reports DEVICE_FATAL to the control thread, from the first use on */
	struct rt_async_device async;
	struct rt_msg fatal_msg;
	_Atomic bool fatal_sent;
	/* number of handled DEVICE_FATAL events; under the runtime's lock */
	uint32_t fatals;
};

/* Returns the errno for which reading CM events was given up, or 0. Never
 * changes once set. Any thread. */
static inline int rt_cm_error(const struct rt_cm *cm)
{
	/* acquire: pairs with the release in cm_give_up(), cm.c */
	int err = atomic_load_explicit(&cm->error, memory_order_acquire);

	return err != 0 ? err : rt_fds_error(cm->device->rt);
}
/* Checks whether connections and listeners may rely on CM events of the device.
 * No lock is held. ERRORS: RPMA_E_PROVIDER (events are not read any more),
 * logged */
int rt_cm_check(const struct rt_cm *cm);

/* Makes the channel of a device whose control thread runs, and watches the
 * device's asynchronous events. ERRORS: RPMA_E_NOMEM, RPMA_E_PROVIDER */
int rt_cm_new(struct rt_device *device, struct rt_cm **cm_ptr);
/* Ends the watch for asynchronous events of the device. Any thread. */
void rt_cm_unwatch(struct rt_cm *cm);
/* Deletes the channel. REQUIRES: only ids that could not be destroyed are on
 * the channel. */
void rt_cm_delete(struct rt_cm *cm);

/* Holds the target until the channel is read no more: an id that names the
 * target was not destroyed, so events of that id may come. */
void rt_cm_keep_control(struct rt_cm *cm, struct rt_cm_target *target);
/*
 * Takes the id off the channel: no event of the id is read any more, so
 * librdmacm does not touch the id's queue pair from here on. Does not wait, as
 * the caller has acknowledged each event that was read before. ERRORS:
 * RPMA_E_PROVIDER (the id is still on the channel)
 */
int rt_cm_silence_control(struct rt_cm *cm, struct rdma_cm_id *id);
/* Stops reading events, and drops the references to the kept targets. */
void rt_cm_end_control(struct rt_cm *cm);

/* --------------------------------------------------------------- device --- */

/*
 * The devices of a runtime (base/runtime.h): made by the first thread that uses
 * the device, and ended by stop.
 */

/*
 * Returns the runtime's device of the context; makes the device if it is new.
 * The caller keeps the runtime from stopping, and holds no lock. ERRORS:
 * RPMA_E_NOMEM, RPMA_E_PROVIDER
 */
int rt_device_get(struct rpma_rt *rt, struct ibv_context *ibv_ctx,
		  struct rt_device **device_ptr);

/* The following functions are called by stop, when no other thread uses the
 * devices. */

/* Ends the reading of CM events and the watch for asynchronous events. */
void rt_device_end_reading(struct rpma_rt *rt);
/* Runs the messages in the inboxes of the devices' threads, ends the threads
 * and deletes the devices. */
void rt_device_delete_all(struct rpma_rt *rt);

#endif /* RT_CM_CM_H */
