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

#include "rpma_rt.h"
#include "base/cfg.h"
#include "base/thread.h"

struct rpma_rt {
	/* immutable after new */
	unsigned fork_generation; /* first: see rt_context_check() */
	struct rpma_rt_cfg cfg;
	void (*drop_item)(const struct rpma_rt_completion *item);
	struct rt_poller *pollers;
	struct rt_owned *owned;	   /* all of them in manual mode; else NULL */
	struct rt_thread resolver; /* if has_resolver: see resolve.h */

	/* grows under the lock, shrinks in a stop: see base/device.h */
	_Atomic(struct rt_device *) devices;

	/* a leaf, nobody waits with it: a connection is asked for something
	 * while it is not DONE, also by callbacks, which never take the lock */
	pthread_mutex_t ask_lock;

	/* a leaf, for the lists below and for a connection's routes: a thread
	 * holds it to change one and to read one. Nothing that is listed is
	 * freed meanwhile */
	pthread_mutex_t directory;

	/* the lock: CQ room, route numbers, slots, lists. Not on data paths */
	pthread_mutex_t lock;
	struct rpma_rt_listener *listeners;
	struct rpma_rt_queue *queues;
	struct rpma_rt_srq *srqs;
	unsigned next_poller;
	struct rpma_rt_conn *conns;
	struct rpma_rt_adopted *adopted;
	uint32_t in_use;	/* connections not DONE, calls that hold it */
	bool stopping;		/* no further ones */
	bool has_resolver;	/* a name was given */
	pthread_cond_t quiet;	/* in_use became 0 */
	pthread_cond_t changed; /* a connection may be changed again */

	/* handles not yet freed: listeners, connections, queues */
	_Atomic uint32_t handles;
	_Atomic bool stopped;
	_Atomic uint64_t requests_refused; /* every queue was over its limit */
};

#endif /* RT_BASE_RUNTIME_H */
