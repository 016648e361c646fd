/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * listener.h -- a listening endpoint on its device's CM channel. The device's
 * control thread makes connections of the listener's requests. A listener has a
 * part for each poller: how many REQUESTs are still to be written there, and
 * the end of the listener in the queue of that poller.
 * doc/protocols/connection.md.
 */

#ifndef RT_CONN_LISTENER_H
#define RT_CONN_LISTENER_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
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
	/* immutable: */
	bool is_used; /* the listener uses this poller */
	struct rpma_rt_listener *listener;
	struct rt_poller *poller;
	/* held until the end; NULL, and no lane: requests are futures */
	struct rpma_rt_queue *queue;
	struct rt_lane *lane;
	/* requests that the control thread has announced to the poller and
	 * whose REQUEST the poller has not written yet */
	_Atomic uint32_t due;
	struct rt_msg end_msg;
	/* written by the closer, before end_msg is sent. NULL: no other
	 * poller's lane leads to the queue */
	struct rt_joint *joint;
	/* under the runtime's lock. is_reserved: the lane has a place for the
	 * last item. spill: a larger spill on its way to the poller, or NULL */
	bool is_reserved;
	struct rt_msg place_msg;
	struct rt_spill *spill;
	/* used by the poller only */
	bool is_ending;
};

struct rpma_rt_listener {
	/* immutable; target first: the context of the CM id points to target */
	struct rt_cm_target target;
	struct rpma_rt *rt;
	struct rt_device *device;
	struct rt_conn_cfg cfg;
	uint32_t number; /* number of the listener in this process, from 1 */
	uint16_t port;
	/* an element for each poller of the runtime */
	struct rt_listener_poller *parts;
	struct rt_futures *requests; /* NULL: the listener has queues */
	/* used by the thread that takes the listener off the list */
	struct rpma_ep *ep;
	enum rpma_rt_reason reason;
	int err; /* errno with more detail, or 0 */
	/* the call that makes the listener failed: no LISTENER_CLOSED */
	bool is_silent;
	bool closed; /* used by the control thread: requests are refused */
	/* used by the control thread. refused: number of refused requests;
	 * refused_for: error of the last refusal, or errno of the device;
	 * refused_ms: when that was */
	_Atomic uint32_t refused;
	_Atomic int refused_for;
	_Atomic uint32_t refused_ms;
	/* LISTENER_CLOSED will come, or came; for the dump */
	_Atomic bool is_over;
	/* used by the destroyer, then by the control thread */
	bool is_id_kept;
	/* to the destroyer and back, when the device is gone */
	struct rt_msg msg;
	/* from the end on. parts_left: parts that have not written their last
	 * item yet. ended_msg: sent by the last part, first to the poller of
	 * requests, if there is such a poller, then to the control thread */
	_Atomic uint32_t parts_left;
	struct rt_msg ended_msg;
	/* under the runtime's lock: */
	/* the listener is a user of the SRQs and the pool in cfg */
	bool has_srqs;
	/* the listener is or was listed; earlier requests are refused */
	bool is_listed;
	/* neither a delete nor a stop took the listener off the list, but a
	 * loss of the device, or a drain */
	bool is_removed;
	/* the device was removed, maybe before the listener was listed */
	bool is_lost;
	struct rpma_rt_listener *next;
	struct cds_list_head listed; /* as long as the handle exists */
};

/* Closes a listener: takes the listener off the network, waits until no further
 * request can come, and has LISTENER_CLOSED written, for that reason. The
 * caller took the listener off the runtime's list, and holds the listener. */
void rt_listener_close(struct rpma_rt_listener *listener,
		       enum rpma_rt_reason reason);
void rt_listener_unref(struct rpma_rt_listener *listener);

/* operations that end the objects of a lost device */
extern const struct rt_device_ops rt_lost_ops;

/* ------------------------------------------------------------ the parts --- */

/* Makes the parts for each poller of a listener that has its configuration;
 * holds the queues. ERRORS: RPMA_E_NOMEM */
int rt_listener_poller_new_all(struct rpma_rt_listener *listener);
/* Reserves a place for the last item in each of the listener's lanes. On
 * failure the caller ends the listener, silently; that end gives the reserved
 * places back. REQUIRES: the runtime's lock. ERRORS: RPMA_E_NOMEM,
 * RPMA_RT_E_BUSY (a queue's consumer is behind) */
int rt_listener_poller_reserve_all(struct rpma_rt_listener *listener);
/* Frees the parts of a listener that was never listed, and that no other thread
 * knows. */
void rt_listener_poller_undo_all(struct rpma_rt_listener *listener);

/* Frees the parts, which have ended or were undone. */
static inline void
rt_listener_poller_free_all(struct rpma_rt_listener *listener)
{
	free(listener->parts);
	listener->parts = NULL;
}

/* Returns the pollers, as bits, whose queue has room for another connection of
 * the listener. REQUIRES: the runtime's lock */
uint64_t rt_listener_poller_open(const struct rpma_rt_listener *listener);

/* Counts a request that became no connection. error: the error or, if positive,
 * the errno with which the device refused a queue pair. Not for requests that
 * came after the listener's end. Control thread. */
void rt_listener_poller_count_refused(struct rpma_rt_listener *listener,
				      int error);

/* Announces that the poller will write a REQUEST. Control thread. */
static inline void rt_listener_poller_expect(struct rt_listener_poller *part)
{
	/* relaxed: the later message with READY publishes the count, and
	 * end_msg is sent after that message */
	atomic_fetch_add_explicit(&part->due, 1, memory_order_relaxed);
}

/* Offers a request to futures, for a listener without a queue. On the
 * connection's poller. */
void rt_listener_poller_offer(struct rt_listener_poller *part,
			      struct rpma_rt_conn *conn);
/* Notes that the poller has written an announced REQUEST. On the poller. */
void rt_listener_poller_requested(struct rt_listener_poller *part);

/* Ends the parts when the listener is off the network and no further request
 * can come: LISTENER_CLOSED comes in each queue, then the control thread lets
 * the queues go. Any thread. */
void rt_listener_poller_end_all(struct rpma_rt_listener *listener);

#endif /* RT_CONN_LISTENER_H */
