/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * listener.h -- a listening endpoint on its device's CM channel: its requests
 * become connections on the device's control thread. A listener has a part for
 * each poller: which REQUESTs are still to be written there, and the end of the
 * listener in the queue of that poller. doc/protocols/connection.md.
 */

#ifndef RT_CONN_LISTENER_H
#define RT_CONN_LISTENER_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <urcu/list.h>

#include "rpma_rt.h"
#include "base/inbox.h"
#include "base/runtime.h"
#include "cm/cm.h"
#include "conn/cfg.h"
#include "queue/queue.h"

struct rpma_rt_conn;
struct rt_futures;
struct rt_lane;
struct rt_poller;
struct rt_spill;

struct rt_listener_poller {
	/* immutable */
	bool is_used; /* the listener uses this poller */
	struct rpma_rt_listener *listener;
	struct rt_poller *poller;
	/* held until the end; NULL, and no lane: its requests are futures */
	struct rpma_rt_queue *queue;
	struct rt_lane *lane;
	/* requests that the control thread has told the poller of, and of which
	 * it has written no REQUEST yet */
	_Atomic uint32_t due;
	struct rt_msg end_msg;
	/* before end_msg is sent: the closer's. NULL: no other poller's lane
	 * leads to the queue */
	struct rt_joint *joint;
	/* under the runtime's lock: its lane has a place for its last item. A
	 * larger spill is on its way to the poller, or NULL */
	bool is_reserved;
	struct rt_msg place_msg;
	struct rt_spill *spill;
	/* the poller's */
	bool is_ending;
};

struct rpma_rt_listener {
	/* immutable; target first: the CM id's context points here */
	struct rt_cm_target target;
	struct rpma_rt *rt;
	struct rt_device *device;
	struct rt_conn_cfg cfg;
	uint32_t number; /* in this process, from 1 */
	uint16_t port;
	/* one for each poller of the runtime */
	struct rt_listener_poller *parts;
	struct rt_futures *requests; /* NULL: it has queues */
	/* of whoever takes it off the list */
	struct rpma_ep *ep;
	enum rpma_rt_reason reason;
	int err;	/* errno that tells more, or 0 */
	bool is_silent; /* the call that made it failed: no LISTENER_CLOSED */
	bool closed;	/* the control thread's: requests are refused */
	/* requests that were refused for us, the error, or the errno of the
	 * device, of the last one and when
	 * it was; likewise */
	_Atomic uint32_t refused;
	_Atomic int refused_for;
	_Atomic uint32_t refused_ms;
	_Atomic bool is_over; /* LISTENER_CLOSED comes, or came; for the dump */
	bool is_id_kept;      /* the destroyer's, then the control thread's */
	struct rt_msg msg; /* its device is gone: to the destroyer and back */
	/* from the end on: parts that have not written their last item; the
	 * last one's message, first to the poller of requests, if there is one,
	 * then to the control thread */
	_Atomic uint32_t parts_left;
	struct rt_msg ended_msg;
	/* under the runtime's lock */
	bool has_srqs;	/* it is a user of those in cfg */
	bool is_listed; /* or was; requests that come before are refused */
	/* taken off the list neither by a delete nor by a stop: its device is
	 * lost, or it drains */
	bool is_removed;
	bool is_lost; /* its device was removed, maybe before it was listed */
	struct rpma_rt_listener *next;
	struct cds_list_head listed; /* as long as there is the handle */
};

/* Takes it off the network, waits until no further request can come of it, and
 * has LISTENER_CLOSED written, for that reason. The caller took it off the
 * runtime's list, and holds it. */
void rt_listener_close(struct rpma_rt_listener *listener,
		       enum rpma_rt_reason reason);
void rt_listener_unref(struct rpma_rt_listener *listener);

/* What a device has end when it is lost. */
extern const struct rt_device_ops rt_lost_ops;

/* ------------------------------------------------------------ the parts --- */

/* One of each poller for a listener with its configuration; holds the queues.
 * ERRORS: RPMA_E_NOMEM */
int rt_listener_poller_new_all(struct rpma_rt_listener *listener);
/* A place in each of its lanes for the last item. If it fails, the caller ends
 * the listener, silently; that end gives back what is reserved. REQUIRES: the
 * runtime's lock. ERRORS: RPMA_E_NOMEM, RPMA_RT_E_BUSY (a queue's consumer is
 * behind) */
int rt_listener_poller_reserve_all(struct rpma_rt_listener *listener);
/* Of a listener that was never listed: nobody knows it. */
void rt_listener_poller_undo_all(struct rpma_rt_listener *listener);
/* Frees them, which have ended or were undone. */
void rt_listener_poller_free_all(struct rpma_rt_listener *listener);

/* Pollers, as bits, that have room in their queue for one more of the
 * listener's connections. REQUIRES: the runtime's lock */
uint64_t rt_listener_poller_open(const struct rpma_rt_listener *listener);

/* Control thread: a request became no connection, for that error, or, where the
 * error is positive, for the errno with which the device refused a queue pair.
 * Not for a request that came when the listener had ended. */
void rt_listener_poller_count_refused(struct rpma_rt_listener *listener,
				      int error);
/* Control thread: the poller will write a REQUEST. */
void rt_listener_poller_expect(struct rt_listener_poller *part);
/* The connection's poller, of a listener without a queue: futures may have the
 * request. */
void rt_listener_poller_offer(struct rt_listener_poller *part,
			      struct rpma_rt_conn *conn);
/* Poller: it has written that. */
void rt_listener_poller_requested(struct rt_listener_poller *part);

/* Any thread, when no further request can come of the listener and it is off
 * the network: LISTENER_CLOSED comes in each of its queues, then the control
 * thread lets go of them. */
void rt_listener_poller_end_all(struct rpma_rt_listener *listener);

#endif /* RT_CONN_LISTENER_H */
