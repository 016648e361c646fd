/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * runtime.h -- struct rpma_rt: configuration, locks and life of a runtime, and
 * for each room a pointer to the data of the room. runtime.c at the top makes
 * the runtime; base/context.h has the questions for code that does not look
 * inside.
 */

#ifndef RT_BASE_RUNTIME_H
#define RT_BASE_RUNTIME_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

#include <urcu/list.h>

#include "rpma_rt.h"
#include "base/cfg.h"
#include "base/thread.h"

/* -------------------------------------------------------------- runtime --- */

struct rpma_rt {
	/* immutable after new */
	unsigned fork_generation; /* first: see rt_context_check() */
	struct rpma_rt_cfg cfg;
	void (*drop_item)(const struct rpma_rt_completion *item);
	const struct rt_device_ops *device_ops; /* see base/runtime.h */
	struct rt_poller *pollers;
	struct rt_owned *owned;	  /* all of them in manual mode; else NULL */
	struct rt_owned *lending; /* all of them in adaptive mode; else NULL */

	/* grows under the lock, shrinks in a stop: see base/runtime.h */
	_Atomic(struct rt_device *) devices;
	_Atomic uint32_t devices_made; /* numbers their threads */

	/* a leaf, held by no waiting thread: a connection other than DONE is
	 * asked for something, also by callbacks, which never take the lock */
	pthread_mutex_t ask_lock;

	/* a leaf, for the lists below and for the routes of a connection: a
	 * thread holds the lock to change or to read a list. No listed object
	 * is freed meanwhile */
	pthread_mutex_t directory;
	/* handles not yet freed; of connections only DONE connections, the
	 * others are in conns. For the dump */
	struct cds_list_head listed_listeners;
	struct cds_list_head listed_srqs;
	struct cds_list_head listed_adopted;
	struct cds_list_head listed_pools;
	struct cds_list_head listed_shards; /* sets of them */
	/* the pollers that shards run, or are going to run; changed under the
	 * lock of the list */
	_Atomic uint64_t sharded;
	struct rpma_rt_conn *ended;
	/* freed on a poller, which does not take the lock: see
	 * rt_listed_remove() */
	_Atomic(struct rpma_rt_conn *) left;

	/* the lock: CQ room, route numbers, slots, lists. Not on data paths */
	pthread_mutex_t lock;
	struct rpma_rt_listener *listeners;
	struct rpma_rt_queue *queues;
	struct rpma_rt_srq *srqs;
	struct rpma_rt_srq *left_srqs; /* deleted after the stop, see life.c */
	unsigned next_poller;
	struct rpma_rt_conn *conns;
	struct rpma_rt_adopted *adopted;
	struct rpma_rt_pool *ended_pools; /* deleted after the stop */
	struct rt_futures *futures;	  /* all blocks of slots */
	/* lanes of deleted queues: a posting thread may look at the flag of a
	 * lane whose queue has gone, so lanes are used again, and freed with
	 * the runtime */
	_Atomic(struct rt_queue_lane *) idle_lanes;
	uint32_t in_use;	/* connections other than DONE, and calls that
				 * hold the runtime */
	bool stopping;		/* no further ones */
	pthread_cond_t quiet;	/* in_use became 0 */
	pthread_cond_t changed; /* a connection may be changed again */

	/* handles not yet freed: listeners, connections, queues */
	_Atomic uint32_t handles;
	_Atomic bool stopped;
	_Atomic uint64_t requests_refused; /* became no connection */
	_Atomic int cm_errno; /* for which CM events are read no more; or 0 */
	_Atomic bool delete_refused; /* because of held handles */
	/* errno of descriptors closed by the program, or 0: base/fds.h */
	_Atomic int fds_error;
};

/* --------------------------------------------------------------- device --- */

/*
 * The part of a runtime for an ibv_context: a thread for calls that may block,
 * and another thread for destroying calls, which may block for seconds. So a
 * slow device delays no other device, and a slow destroy no other connection.
 * Made by cm/cm.c at first use, until stop. doc/protocols/threads.md.
 */

struct ibv_context;
struct rt_device;

/* The end of everything that a runtime has on a device. On the control thread,
 * without a lock. */
struct rt_device_ops {
	/* DEVICE_FATAL: connections learn of the failure from their CQs */
	void (*fatal)(struct rt_device *device);
	/* CM events of the device are no longer read, see rt_cm_error() */
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
	struct rt_cm *cm;	    /* CM events of the device: cm/cm.h */
	/* descriptors were lost, as a poller or the event thread noticed */
	struct rt_msg lost_msg;
	_Atomic bool lost_sent;
	/* a queue pair of an SRQ ended without LAST_WQE_REACHED: from now on
	 * the event is waited for only briefly, until an event comes */
	_Atomic bool no_last_wqe;
	struct rt_device *next;
};

/* Returns the device of the context in the runtime; NULL: never used. Any
 * thread that keeps the runtime from stopping. */
static inline struct rt_device *
rt_device_find(const struct rpma_rt *rt, const struct ibv_context *ibv_ctx)
{
	/* acquire: pairs with the release in cm/cm.c */
	struct rt_device *device =
		atomic_load_explicit(&rt->devices, memory_order_acquire);

	while (device != NULL && device->ibv_ctx != ibv_ctx)
		device = device->next;
	return device;
}

#endif /* RT_BASE_RUNTIME_H */
