/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * cq_pool.h -- a poller's completion channels and shared CQs: the room in the
 * CQs and the holders of the room, the verbs that make and destroy CQs, and the
 * events of the channels.
 *
 * Room is reserved when a connection request is made, under the runtime's lock,
 * so an overrun cannot happen. A CQ is made without the lock, and goes with its
 * last user: doc/protocols/channel.md.
 */

#ifndef RT_POLLER_CQ_POOL_H
#define RT_POLLER_CQ_POOL_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include <infiniband/verbs.h>

#include <urcu/hlist.h>
#include <urcu/list.h>

#include "rpma_rt.h"
#include "base/inbox.h"
#include "events/events.h"
#include "poller/route.h"
#include "queue/lane.h"

/* -------------------------------------------------------------- cq_pool --- */

struct rt_poller;

/* smaller in tests/interleave, where few events occur */
#ifndef RT_ACK_BATCH
/* events of a CQ that are read before they are acknowledged */
#define RT_ACK_BATCH 64
#endif

/* route numbers that a connection needs at first */
#define RT_CQ_CONN_ROUTES 3

/* a poller's completion channel on a device */
struct rt_channel {
	/* immutable */
	struct rt_poller *poller;
	struct ibv_context *ibv_ctx;
	/* the device's control thread handles failures */
	struct rt_device *dev;
	struct rpma_channel *channel;
	struct ibv_comp_channel *ibv_channel;
	uint32_t max_cqe; /* the device's limit */
	int fd;
	/* under the runtime's lock; changed under the directory's lock too */
	struct rt_channel *next;
	struct rt_cq *cqs;
	bool failed; /* the channel gets no new CQs */
	/* under the runtime's lock: */
	/* a CQ without users, kept for the next user; or NULL */
	struct rt_cq *spare;
	/* used by the poller only: */
	struct rt_channel *poller_next;
	bool known; /* in the poller's list */
	bool dead;
	bool is_adopted; /* immutable: the channel's CQs are adopted CQs */
	/* DEVICE_FATAL, on its way to the control thread */
	struct rt_async_device device;
	struct rt_msg fatal_msg;
	_Atomic bool fatal_sent;
	/* a failure of the channel, on its way to the control thread */
	struct rt_msg fail_msg;
};

/* where the completions of an adopted CQ lead */
struct rt_cq_raw {
	struct rt_lane *lane;
	void *user;
};

/* a shared CQ, or an adopted CQ, which has no routes and no room */
struct rt_cq {
	/* immutable */
	const struct rt_cq_raw *raw; /* NULL: the CQ is not adopted */
	struct rt_channel *channel;
	struct rpma_cq *cq;
	struct ibv_cq *ibv_cq;
	uint32_t cqe;
	/* under the runtime's lock: */
	struct rt_numbers numbers;
	struct cds_list_head users; /* rt_cq_user.in_cq */
	/* the CQ is about to go, and gets no new users */
	bool leaving;
	/* under the runtime's lock; changed under the directory's lock too */
	struct rt_cq *next;
	uint32_t room; /* entries that are not reserved */
	bool failed;   /* the CQ gets no new users */
	/* srq_users: number of connections with an SRQ, by the SRQ's number.
	 * qps_reserved: number of all such connections. qps_announced: size of
	 * the table qps */
	uint16_t srq_users[RT_ROUTE_FIRST];
	uint32_t qps_reserved;
	uint32_t qps_announced;
	/* used by the poller only: */
	struct rt_route_entry *routes;
	/* open routes to lanes, by connection and lane: RT_LANE_BUCKETS
	 * buckets, behind the routes in the same block */
	struct cds_hlist_head *by_lane;
	/* queue pairs of connections with an SRQ; or NULL */
	struct rt_qp_table *qps;
	/* events that were read and not acknowledged yet */
	_Atomic uint32_t unacked;
	uint64_t taken; /* number of polled completions */
	/* empty polls in a row; see poller/poller.h */
	uint32_t empty_polls;
	/* sweeping: tasks that wait until everything was taken that the CQ
	 * held, in the order in which they came. draining: tasks that wait only
	 * for the death of the CQ */
	struct cds_list_head sweeping;
	struct cds_list_head draining;
	/* index in the poller's cqs[]; -1: the CQ is not in the array */
	int place;
	bool dead;
	bool let_go; /* the CQ is polled and armed no more */
	struct rt_cq *leaving_next;
	/* messages on their way to the poller or to the control thread */
	struct rt_msg add_msg;
	struct rt_msg leave_msg;
	struct rt_msg gone_msg;
	struct rt_msg fail_msg;
	_Atomic bool fail_sent;
	struct rt_async_object async;
};

/* a holder of room in a CQ; embedded in the holder, which fills in the
 * fields */
struct rt_cq_user {
	/* reports that the CQ or the device failed: sends a message, no more.
	 * REQUIRES: the runtime's lock */
	void (*failed)(struct rt_cq_user *self);
	uint32_t room;	   /* number of entries */
	uint32_t srq;	   /* number of the user's SRQ; 0: no SRQ */
	uint32_t srq_room; /* entries for all users of that SRQ together */
	/* used by the pool, under the runtime's lock */
	struct cds_list_head in_cq;
};

/* a CQ that is being made; on the stack of the maker */
struct rt_cq_making {
	const struct ibv_context *ibv_ctx;
	struct rt_cq_making *next;
};

/* Returns whether an adopted CQ is held up: such a CQ is not polled while its
 * consumer is behind, because there are no credits, so completions wait in the
 * CQ. The CQ is not armed either, because some devices respond to the arming of
 * a CQ that is not empty with an event at once. */
static inline bool rt_cq_is_held_up(const struct rt_cq *cq)
{
	return cq->raw != NULL && rt_lane_is_backlogged(cq->raw->lane);
}

static inline uint32_t rt_cq_unacked(const struct rt_cq *cq)
{
	/* relaxed: only the poller writes; a statistic for other threads */
	return atomic_load_explicit(&cq->unacked, memory_order_relaxed);
}

static inline void rt_cq_set_unacked(struct rt_cq *cq, uint32_t unacked)
{
	/* relaxed: as in rt_cq_unacked() */
	atomic_store_explicit(&cq->unacked, unacked, memory_order_relaxed);
}

/*
 * Reserves room for `user` in a CQ of the poller on the device, a CQ that has
 * route numbers left. Makes channel and CQ as needed, without the lock; also
 * releases the lock while another thread makes a CQ there. On return, the lock
 * has been held since the room was taken. REQUIRES: the runtime's lock. ERRORS:
 * RPMA_E_NOMEM (more than the device has), RPMA_E_PROVIDER
 */
int rt_cq_pool_reserve(struct rt_poller *poller, struct ibv_context *ibv_ctx,
		       struct rt_cq_user *user, struct rt_cq **cq_ptr);
/* Gives the room of `user` back; the CQ may go with its last user. REQUIRES:
 * the runtime's lock */
void rt_cq_pool_unreserve(struct rt_cq *cq, struct rt_cq_user *user);

/* Reports to the users of the SRQ with that number that the SRQ has failed.
 * REQUIRES: the runtime's lock */
void rt_cq_pool_fail_srq(const struct rt_poller *poller, uint32_t srq);

/* Ends the watch for asynchronous events, before the control thread ends.
 * REQUIRES: no more CQs are made */
void rt_cq_pool_unwatch(struct rt_poller *poller);
/* Destroys all CQs and channels of a poller that does not run any more, after
 * the end of the control thread. Returns the first error. */
int rt_cq_pool_fini(struct rt_poller *poller);

/* ------------------------------------------------------------------- cq --- */

/*
 * Making and destroying channels and CQs. All of these calls may block in the
 * device, so no caller holds a lock or runs on a poller.
 */

struct rt_channel;
struct rt_cq;

/* Makes a channel, in the poller's epoll set. The caller sets the messages and
 * the watch. ERRORS: RPMA_E_NOMEM, RPMA_E_PROVIDER */
int rt_cq_channel_new(struct rt_poller *poller, struct ibv_context *ibv_ctx,
		      struct rt_channel **channel_ptr);
/* Deletes a channel; frees the channel even on an error. ERRORS:
 * RPMA_E_PROVIDER */
int rt_cq_channel_delete(struct rt_channel *channel);

/* Makes a CQ with at least `room` entries, at least as many as configured, and
 * `wanted` entries where the device has so many. A size that the device refuses
 * is halved. ERRORS: RPMA_E_NOMEM (more than the device has),
 * RPMA_E_PROVIDER */
int rt_cq_new(struct rt_channel *channel, uint32_t room, uint32_t wanted,
	      struct rt_cq **cq_ptr);
/* Destroys the CQ. REQUIRES: every event that was read of the CQ was
 * acknowledged, or the CQ's poller acknowledges. ERRORS: RPMA_E_AGAIN (the
 * device still uses the CQ, which is unchanged), RPMA_E_PROVIDER */
int rt_cq_destroy(struct rt_cq *cq);
/* Frees the record of a CQ that is destroyed or given up. */
void rt_cq_free(struct rt_cq *cq);

/* Reports that the CQ has failed: the users learn of the failure, and the CQ
 * gets no new users. Any thread. */
void rt_cq_fail_mt(struct rt_cq *cq);
/* Reports, on the poller, that the channel wakes the poller no more: new
 * connections get another channel. The caller fails the CQs afterwards, each by
 * itself. */
void rt_cq_fail_channel_poller(struct rt_channel *channel);

/* -------------------------------------------------------------- channel --- */

/* Events of a poller's channels, and CQs that the poller lets go. */

struct rt_msg;

/* Takes note that the program closed the poller's descriptors, or a channel's
 * descriptor. */
void rt_channel_lose_fds(struct rt_poller *poller, int err);
/* Ends a sleep: cancels the bell and reads channel events; returns the number
 * of events. */
int rt_channel_wake(struct rt_poller *poller);
/* Handles the message of a CQ that has to be let go; the message is in the
 * rt_cq. */
void rt_channel_leave_message(struct rt_msg *msg, void *owner);
/* Lets go of such CQs, not while a batch is routed; returns their number. */
int rt_channel_let_go(struct rt_poller *poller);
/* Gives an adopted CQ back to its owner, armed, with all events
 * acknowledged. */
void rt_channel_give_back_poller(struct rt_poller *poller, struct rt_cq *cq);

#endif /* RT_POLLER_CQ_POOL_H */
