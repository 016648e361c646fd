/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * cq_pool.h -- a poller's completion channels and shared CQs: the room in them
 * and the holders of that room, the verbs that make and destroy them, and the
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

#ifndef RT_ACK_BATCH	/* tests/interleave has few events */
#define RT_ACK_BATCH 64 /* events read of a CQ before they are acknowledged */
#endif

/* route numbers that a connection begins with */
#define RT_CQ_CONN_ROUTES 3

/* a poller's completion channel on one device */
struct rt_channel {
	/* immutable */
	struct rt_poller *poller;
	struct ibv_context *ibv_ctx;
	struct rt_device *dev; /* its control thread handles failures */
	struct rpma_channel *channel;
	struct ibv_comp_channel *ibv_channel;
	uint32_t max_cqe; /* the device's */
	int fd;
	/* under the runtime's lock, and changed under the directory's too */
	struct rt_channel *next;
	struct rt_cq *cqs;
	bool failed; /* no new CQs */
	/* under the runtime's lock */
	struct rt_cq *spare; /* without users, kept for the next one; or NULL */
	/* the poller's */
	struct rt_channel *poller_next;
	bool known; /* in the poller's list */
	bool dead;
	bool is_adopted; /* immutable: its CQs are adopted ones */
	/* DEVICE_FATAL on its way to the control thread */
	struct rt_async_device device;
	struct rt_msg fatal_msg;
	_Atomic bool fatal_sent;
	/* on its way to the control thread */
	struct rt_msg fail_msg;
};

/* where the completions of an adopted CQ lead */
struct rt_cq_raw {
	struct rt_lane *lane;
	void *user;
};

/* a shared one, or an adopted one, which has no routes and no room */
struct rt_cq {
	/* immutable */
	const struct rt_cq_raw *raw; /* NULL: not adopted */
	struct rt_channel *channel;
	struct rpma_cq *cq;
	struct ibv_cq *ibv_cq;
	uint32_t cqe;
	/* under the runtime's lock */
	struct rt_numbers numbers;
	struct cds_list_head users; /* rt_cq_user.in_cq */
	bool leaving;		    /* no new users, it is about to go */
	/* likewise, and changed under the directory's too */
	struct rt_cq *next;
	uint32_t room; /* entries that are not reserved */
	bool failed;   /* no new users */
	/* connections with an SRQ, by its number; all of them; table's size */
	uint16_t srq_users[RT_ROUTE_FIRST];
	uint32_t qps_reserved;
	uint32_t qps_announced;
	/* the poller's */
	struct rt_route_entry *routes;
	/* open routes to lanes, by connection and lane: RT_LANE_BUCKETS, behind
	 * the routes in one block */
	struct cds_hlist_head *by_lane;
	struct rt_qp_table *qps;  /* of connections with an SRQ; or NULL */
	_Atomic uint32_t unacked; /* events read and not yet acknowledged */
	uint64_t taken;		  /* completions polled */
	uint32_t empty_polls;	  /* in a row; see poller/poller.h */
	/* tasks that wait until all that the CQ held was taken, in the order in
	 * which they came; and others that wait only for its death */
	struct cds_list_head sweeping;
	struct cds_list_head draining;
	int place; /* in the poller's cqs[]; -1: not there */
	bool dead;
	bool let_go; /* polled and armed no more */
	struct rt_cq *leaving_next;
	/* on their way to the poller, to the control thread */
	struct rt_msg add_msg;
	struct rt_msg leave_msg;
	struct rt_msg gone_msg;
	struct rt_msg fail_msg;
	_Atomic bool fail_sent;
	struct rt_async_object async;
};

/* a holder of room in a CQ: embedded in it, filled in by it */
struct rt_cq_user {
	/* The CQ or its device failed: sends a message, and does nothing else.
	 * REQUIRES: the runtime's lock */
	void (*failed)(struct rt_cq_user *self);
	uint32_t room;	   /* entries */
	uint32_t srq;	   /* its SRQ's number; 0: none */
	uint32_t srq_room; /* entries for all users of that SRQ together */
	struct cds_list_head in_cq; /* the pool's, under the runtime's lock */
};

/* a CQ that is being made; on the stack of its maker */
struct rt_cq_making {
	const struct ibv_context *ibv_ctx;
	struct rt_cq_making *next;
};

/* An adopted one is not polled while its consumer is behind: there are no
 * credits, so what completes waits in the CQ. Nor is it armed: some devices
 * answer the arming of a CQ that is not empty with an event at once. */
static inline bool rt_cq_is_held_up(const struct rt_cq *cq)
{
	return cq->raw != NULL && rt_lane_is_backlogged(cq->raw->lane);
}

static inline uint32_t rt_cq_unacked(const struct rt_cq *cq)
{
	/* relaxed: the poller's own; to others a statistic */
	return atomic_load_explicit(&cq->unacked, memory_order_relaxed);
}

static inline void rt_cq_set_unacked(struct rt_cq *cq, uint32_t unacked)
{
	/* relaxed: likewise */
	atomic_store_explicit(&cq->unacked, unacked, memory_order_relaxed);
}

/*
 * Reserves room for user in a CQ of poller on that device, in which route
 * numbers are left. Makes channel and CQ as needed; the lock is released
 * meanwhile, and while another thread makes one there. When it returns, the
 * lock has been held since the room was taken.
 * REQUIRES: the runtime's lock.
 * ERRORS: RPMA_E_NOMEM (more than the device has), RPMA_E_PROVIDER
 */
int rt_cq_pool_reserve(struct rt_poller *poller, struct ibv_context *ibv_ctx,
		       struct rt_cq_user *user, struct rt_cq **cq_ptr);
/* The CQ may go with its last user. REQUIRES: the runtime's lock */
void rt_cq_pool_unreserve(struct rt_cq *cq, struct rt_cq_user *user);

/* The SRQ of that number has failed: so do its users. REQUIRES: the runtime's
 * lock */
void rt_cq_pool_fail_srq(const struct rt_poller *poller, uint32_t srq);

/* Ends the watch for asynchronous events, before the control thread ends.
 * REQUIRES: no more CQs are made */
void rt_cq_pool_unwatch(struct rt_poller *poller);
/* Destroys all CQs and channels of a poller that does not run any more, after
 * the control thread's end. Answers the first error. */
int rt_cq_pool_fini(struct rt_poller *poller);

/* ------------------------------------------------------------------- cq --- */

/*
 * Makes and destroys channels and CQs. All of these calls may block in the
 * device, so no caller holds a lock or runs on a poller.
 */

struct rt_channel;
struct rt_cq;

/* In the poller's epoll set; its messages and its watch are the caller's.
 * ERRORS: RPMA_E_NOMEM, RPMA_E_PROVIDER */
int rt_cq_channel_new(struct rt_poller *poller, struct ibv_context *ibv_ctx,
		      struct rt_channel **channel_ptr);
/* Frees the channel even on an error. ERRORS: RPMA_E_PROVIDER */
int rt_cq_channel_delete(struct rt_channel *channel);

/* Makes a CQ: with that room at least, as large as configured at least, and as
 * large as wanted where the device has so many entries. A size that the device
 * refuses is halved. ERRORS: RPMA_E_NOMEM (more than the device has),
 * RPMA_E_PROVIDER */
int rt_cq_new(struct rt_channel *channel, uint32_t room, uint32_t wanted,
	      struct rt_cq **cq_ptr);
/* REQUIRES: every event that was read of the CQ was acknowledged, or its poller
 * does it. ERRORS: RPMA_E_AGAIN (the device still uses the CQ, which is as it
 * was), RPMA_E_PROVIDER */
int rt_cq_destroy(struct rt_cq *cq);
/* Frees the record of a CQ that is destroyed or given up. */
void rt_cq_free(struct rt_cq *cq);

/* Any thread: the CQ has failed. Calls its users; it gets no new ones. */
void rt_cq_fail_mt(struct rt_cq *cq);
/* The poller: nothing on the channel wakes it any more; new connections get
 * another channel. The CQs are failed one by one, after this. */
void rt_cq_fail_channel_poller(struct rt_channel *channel);
/* The poller has let go of a CQ that left: sends it to be destroyed. The record
 * may be gone when this returns. */
void rt_cq_gone_poller(struct rt_cq *cq);

/* -------------------------------------------------------------- channel --- */

/* Events of a poller's channels, and CQs that the poller lets go. */

struct rt_msg;

/* The program closed the poller's descriptors, or one of a channel. */
void rt_channel_lose_fds(struct rt_poller *poller, int err);
/* What follows a sleep: bell off, channel events read; how many. */
int rt_channel_wake(struct rt_poller *poller);
/* A CQ is to be let go; the message is in the rt_cq. */
void rt_channel_leave_message(struct rt_msg *msg, void *owner);
/* Lets go of those CQs, not while a batch is routed; how many. */
int rt_channel_let_go(struct rt_poller *poller);
/* Gives an adopted CQ back to its owner, armed, its events acknowledged. */
void rt_channel_give_back_poller(struct rt_poller *poller, struct rt_cq *cq);

#endif /* RT_POLLER_CQ_POOL_H */
