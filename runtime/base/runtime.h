/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * runtime.h -- struct rpma_rt: configuration, locks and life of a runtime, and
 * for each room one pointer to what it keeps there. runtime.c at the top makes
 * it; base/context.h has what is asked of it without looking inside.
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

	/* a leaf, nobody waits with it: a connection is asked for something
	 * while it is not DONE, also by callbacks, which never take the lock */
	pthread_mutex_t ask_lock;

	/* a leaf, for the lists below and for a connection's routes: a thread
	 * holds it to change one and to read one. Nothing that is listed is
	 * freed meanwhile */
	pthread_mutex_t directory;
	/* handles that are not freed; of connections those that are DONE, the
	 * others are in conns. For the dump */
	struct cds_list_head listed_listeners;
	struct cds_list_head listed_srqs;
	struct cds_list_head listed_adopted;
	struct cds_list_head listed_pools;
	struct cds_list_head listed_shards; /* sets of them */
	_Atomic uint32_t shard_sets;	    /* how many */
	struct rpma_rt_conn *ended;
	/* freed on a poller, which does not take that lock: see
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
	struct rt_futures *futures;	  /* blocks of slots; all that are */
	/* lanes of queues that were deleted: a thread that posts may look at
	 * the flag of a lane whose queue has gone, so lanes are used again, and
	 * freed with the runtime */
	_Atomic(struct rt_queue_lane *) idle_lanes;
	uint32_t in_use;	/* connections not DONE, calls that hold it */
	bool stopping;		/* no further ones */
	pthread_cond_t quiet;	/* in_use became 0 */
	pthread_cond_t changed; /* a connection may be changed again */

	/* handles not yet freed: listeners, connections, queues */
	_Atomic uint32_t handles;
	_Atomic bool stopped;
	_Atomic uint64_t requests_refused; /* became no connection */
	_Atomic int cm_errno; /* for which CM events are read no more; or 0 */
	_Atomic bool delete_refused; /* for handles that were held */
	/* errno of descriptors that the program closed, or 0: base/fds.h */
	_Atomic int fds_error;
};

/* --------------------------------------------------------------- device --- */

/*
 * A runtime's part of one ibv_context: a thread for calls that may block, and
 * another one for calls that destroy, which may block for seconds. So a slow
 * device delays no other device, and a slow destroy no other connection. Made
 * by cm/cm.c at first use, until stop. doc/protocols/threads.md.
 */

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
	/* acquire: pairs with the release in cm/cm.c */
	struct rt_device *device =
		atomic_load_explicit(&rt->devices, memory_order_acquire);

	while (device != NULL && device->ibv_ctx != ibv_ctx)
		device = device->next;
	return device;
}

#endif /* RT_BASE_RUNTIME_H */
