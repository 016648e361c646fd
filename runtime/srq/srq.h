/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * srq.h -- a shared receive queue of one poller: its life (life.c), its
 * posters (post.c), its poller's side (poll.c). doc/protocols/srq.md has the
 * states, the owners, and the ways in which a buffer comes back.
 */

#ifndef RT_SRQ_SRQ_H
#define RT_SRQ_SRQ_H

#include <pthread.h>
#include <stdalign.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include <infiniband/verbs.h>
#include <urcu/list.h>

#include "rpma_rt.h"
#include "events/events.h"
#include "base/inbox.h"
#include "base/line.h"
#include "base/turn.h"
#include "base/order.h"
#include "poller/post.h"
#include "poller/route.h"
#include "poller/schedule.h"
#include "poller/source.h"
#include "pool/feed.h"

struct rt_cq;
struct rt_device;
struct rt_futures;
struct rt_lane;
struct rt_poller;

#define RT_SRQ_FIRST	 2u /* route numbers; 1 is not an SRQ's */
#define RT_SRQ_END	 RT_ROUTE_FIRST
#define RT_SRQ_EVENTS	 8 /* items besides completions in its queue */
#define RT_SRQ_GEN_BITS	 24
#define RT_SRQ_GEN_MASK	 ((1u << RT_SRQ_GEN_BITS) - 1)
#define RT_SRQ_MAP_WORDS (RT_SRQ_END / 64)

/* one receive; read and written by the holder of the slot */
struct rt_srq_slot {
	uint64_t context;
	uint32_t generation; /* odd: out with the device */
	uint32_t next;	     /* in rpma_rt_srq.refused */
};

struct rpma_rt_srq {
	/* immutable after new */
	struct rpma_rt *rt;
	struct rpma_peer *peer;
	struct rt_device *device;
	struct rt_poller *poller;
	struct rpma_srq *srq;
	struct ibv_srq *ibv_srq;
	bool enters_kernel; /* see base/wr.h */
	struct rpma_rt_srq_cfg cfg;
	void *user;
	uint32_t number; /* its route */
	uint32_t mask;	 /* of returned[] */
	struct rt_srq_slot *slots;
	/* its own, its lane there and place; NULL, these three: it has none */
	struct rpma_rt_queue *queue;
	struct rt_lane *lane;
	struct rt_waiter *waiter; /* for that lane; the poller's */
	uint32_t reserved;
	/* of messages that no queue gets; NULL: it has no futures */
	struct rt_futures *messages;
	struct rt_async_object async;

	/* posters; the rest is the turn's holder's: doc/protocols/ledger.md */
	alignas(RT_CACHE_LINE) struct rt_turn turn;
	uint32_t taken; /* slots taken from returned[], in all */
	uint32_t since; /* posted since SRQ_LIMIT, armed again with limit */
	_Atomic uint32_t posted; /* = taken, for the poller: before the verb */
	_Atomic uint32_t shown;	 /* likewise, for posters: behind the verb */
	/* slots that the device refused, index + 1, to the poller */
	_Atomic uint32_t refused;

	/* shared, written seldom */
	alignas(RT_CACHE_LINE) _Atomic uint32_t want; /* of enum rt_want */
	_Atomic bool behind;			      /* a lane holds it */
	_Atomic bool armed; /* SRQ_LIMIT, or the device's */
	_Atomic bool arm_sent;
	_Atomic bool look_sent;
	_Atomic bool failed;	/* the device says so: control, once */
	_Atomic bool fail_sent; /* once */
	struct rt_msg arm_msg;	/* to the control thread */
	struct rt_msg fail_msg; /* likewise */
	struct rt_msg look_msg; /* to the poller */
	struct rt_msg told_msg; /* likewise: it has failed */

	/* the poller's; returned[] and retired are read by posters */
	alignas(RT_CACHE_LINE) _Atomic uint32_t retired;
	_Atomic uint32_t retired_ms;	  /* when it rose last, for the dump */
	_Atomic uint32_t messages_listed; /* that nobody has, likewise */
	uint32_t count; /* slots returned: what retired will be */
	uint32_t *returned;
	uint32_t held;	     /* lanes that hold it */
	uint32_t ended;	     /* slots that its end has looked at */
	struct rt_feed feed; /* with a pool */
	bool refilling;	     /* its function runs */
	bool refill_due;     /* whatever is out */
	bool refill_waits;   /* for a backlog to clear */
	bool refill_refused; /* the device refused what it posted */
	bool limit_pending;  /* SRQ_LIMIT waits for its queue */

	/* under the runtime's lock */
	uint32_t users;		     /* connections, listeners */
	_Atomic uint32_t leaving;    /* of them: CLOSED is out, DONE comes */
	pthread_cond_t left;	     /* users became fewer */
	bool closing;		     /* no further ones */
	_Atomic bool delete_refused; /* to such, for the dump */
	struct rpma_rt_srq *next;
	/* for the dump: as long as there is the handle; its queue is not held
	 * any more */
	struct cds_list_head listed;
	_Atomic bool is_over;
};

static inline uint64_t rt_srq_cookie(uint32_t slot, uint32_t generation)
{
	return (uint64_t)slot << RT_SRQ_GEN_BITS |
	       (generation & RT_SRQ_GEN_MASK);
}

/* -------------------------------------------------------------- posting --- */

/* rpma_rt_srq_post_recv(), also where a pool has its receives posted. */
int rt_srq_post(struct rpma_rt_srq *srq, const struct rpma_rt_recv_wr *wr,
		int count);
/* The poller: posts what stands in line, if no thread has the right. */
void rt_srq_hold_poller(struct rpma_rt_srq *srq);
/* Sends the look message, unless it is on its way. Any thread. */
void rt_srq_look_mt(struct rpma_rt_srq *srq);
/* Returns how many slots of the line may be in use. Any thread. */
static inline uint32_t rt_srq_limit(const struct rpma_rt_srq *srq)
{
	/* acquire [SRQ-1]: pairs with publish() in poll.c */
	uint32_t retired =
		atomic_load_explicit(&srq->retired, memory_order_acquire) -
		srq->cfg.srq_size;

	/* relaxed: too old a count makes a thread count too few that are out */
	return rt_line_limit(
		&srq->turn,
		atomic_load_explicit(&srq->shown, memory_order_relaxed),
		retired);
}

/* Returns how many places are free. Any thread. */
static inline uint32_t rt_srq_places(const struct rpma_rt_srq *srq)
{
	return rt_post_places(&srq->turn, rt_srq_limit(srq));
}

/* Returns how many receives may complete that no poster can hold back any more:
 * those that are out, and those in line or in slots. */
static inline uint32_t rt_srq_items(const struct rpma_rt_srq *srq)
{
	return srq->cfg.srq_size + rt_line_of(&srq->turn)->slots;
}

/* ------------------------------------------------------------- its life --- */

/* The device failed, or reports an error of the SRQ. Any thread that keeps the
 * SRQ from ending; wait-free. */
void rt_srq_fail_mt(struct rpma_rt_srq *srq);
/* Any thread: may connections use it no more? Under the runtime's lock, the
 * answer holds until that is released. */
static inline bool rt_srq_has_failed(const struct rpma_rt_srq *srq)
{
	/* relaxed: a post that came before goes to the device, no more */
	return atomic_load_explicit(&srq->failed, memory_order_relaxed);
}

/* The runtime stops and has no connections any more: every SRQ gives back what
 * is out and ends; the handles stay. */
void rt_srq_finish_all(struct rpma_rt *rt);
/* With the runtime, whose pollers have no message any more. */
void rt_srq_free_left(struct rpma_rt *rt);
/* A connection is DONE; the poller said that it leaves before it wrote CLOSED.
 * REQUIRES: the runtime's lock. */
void rt_srq_unref_announced(struct rpma_rt_srq *srq);

/* The poller: messages that nobody has, each in the place of a receive. */
static inline uint32_t rt_srq_listed_poller(const struct rpma_rt_srq *srq)
{
	return srq->messages != NULL ? rt_source_count(srq->messages->source)
				     : 0;
}

/* ----------------------------------------------------------- the poller --- */

/* Before any other thread knows the SRQ: its poller's messages, its waiter in
 * the lane of its own queue; with a pool the refill is the runtime's. ERRORS:
 * RPMA_E_NOMEM */
int rt_srq_prepare_poller(struct rpma_rt_srq *srq);
/* The SRQ begins; it ends: receives out go back to its queue, a part with each
 * call. False: that was the last. */
void rt_srq_begin_poller(struct rpma_rt_srq *srq);
bool rt_srq_end_poller(struct rpma_rt_srq *srq);

#endif /* RT_SRQ_SRQ_H */
