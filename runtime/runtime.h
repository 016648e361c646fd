/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * runtime.h -- what a runtime consists of. Only runtime.c and listener.c
 * change the lists, under the lock.
 */

#ifndef RT_RUNTIME_H
#define RT_RUNTIME_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

#include "rpma_rt.h"
#include "cfg.h"
#include "base/thread.h"
#include "events/events.h"
#include "poller/poller.h"

struct rpma_rt {
	/* immutable after new */
	struct rpma_rt_cfg cfg;
	unsigned fork_generation;
	struct rt_poller *pollers;
	struct rt_thread control;
	struct rt_thread resolver; /* if has_resolver: see resolve.h */
	struct rpma_cm_channel *cm;
	struct rt_source cm_source;
	/* held by whoever destroys a queue pair whose CM handshake is under
	 * way, and by the event thread while it reads: librdmacm moves the
	 * queue pair's state inside rdma_get_cm_event() */
	pthread_mutex_t cm_lock;

	/* a leaf, nobody waits with it: a connection is asked for something
	 * while it is not DONE, also by callbacks, which never take the lock */
	pthread_mutex_t ask_lock;

	/* a leaf: held by who changes a list below it or a connection's routes,
	 * and by who looks on; whatever is listed lives meanwhile */
	pthread_mutex_t directory;

	/* the lock: CQ room, route numbers, slots, lists. Not on data paths */
	pthread_mutex_t lock;
	struct rpma_rt_listener *listeners;
	struct rpma_rt_queue *queues;
	struct rpma_rt_srq *srqs;
	unsigned next_poller;
	struct rpma_rt_conn *conns;
	struct rpma_rt_adopted *adopted;
	uint32_t in_use;      /* connections not DONE, calls that hold it */
	bool stopping;	      /* no further ones */
	bool has_resolver;    /* a name was given */
	pthread_cond_t quiet; /* in_use became 0 */

	/* handles not yet freed: listeners, connections, queues */
	_Atomic uint32_t handles;
	_Atomic bool stopped;

	/* event thread's: the message the next CM event goes into */
	struct rt_cm_msg *spare;
	/* control thread's: what ids that would not go still name */
	struct rt_cm_target *kept_targets;
};

/* Set by a fork in the child: objects of another generation are refused. */
extern _Atomic unsigned rt_fork_generation;

/* 0, RPMA_RT_E_FORKED. The queue's part of the interface is in queue.h. */
int rt_context_check(const struct rpma_rt *rt);
/* Likewise for calls that wait for a poller, or take the lock, which may be
 * held by who waits for one: RPMA_E_INVAL on a poller thread. */
int rt_context_check_wait(const struct rpma_rt *rt);

/* An index, or one of RPMA_RT_POLLER_*? */
bool rt_place_is_valid(const struct rpma_rt *rt, int poller);
/* The poller a new connection gets; among: bits of those that may be, 0: all.
 * REQUIRES: the lock, a checked index. */
struct rt_poller *rt_place_choose(struct rpma_rt *rt, int poller,
				  uint64_t among);
/* A connection is DONE; after the last one a stop goes on. */
void rt_context_unref(struct rpma_rt *rt);
/*
 * Keeps the runtime from ending, as a connection does: a stop waits for
 * rt_context_unref(). ERRORS: RPMA_RT_E_CLOSED (it has begun to stop)
 */
int rt_context_ref(struct rpma_rt *rt);
/* Until a stop that has begun is over. */
void rt_context_wait_stopped(struct rpma_rt *rt);
/* In manual mode runs a round of every poller that nobody runs. */
void rt_manual_assist(struct rpma_rt *rt);

#endif /* RT_RUNTIME_H */
