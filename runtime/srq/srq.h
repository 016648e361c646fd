/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * srq.h -- a shared receive queue of a poller: the SRQ's life (life.c), posters
 * (post.c), the poller's side (poll.c). doc/protocols/srq.md has the states,
 * the owners, and the ways in which a buffer comes back.
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

#define RT_SRQ_FIRST 2u /* numbers of routes of SRQs */
#define RT_SRQ_END   RT_ROUTE_FIRST
/* most items besides completions in the SRQ's queue */
#define RT_SRQ_EVENTS	 8
#define RT_SRQ_GEN_BITS	 24
#define RT_SRQ_GEN_MASK	 ((1u << RT_SRQ_GEN_BITS) - 1)
#define RT_SRQ_MAP_WORDS (RT_SRQ_END / 64)

/* a receive; read and written by the holder of the slot */
struct rt_srq_slot {
	uint64_t context;
	uint32_t generation; /* odd: the receive is out with the device */
	uint32_t next;	     /* next slot in rpma_rt_srq.refused */
};

struct rpma_rt_srq {
	/* immutable after new */
	struct rpma_rt *rt;
	struct rpma_peer *peer;
	struct rt_device *device;
	struct rt_poller *poller;
	struct rpma_srq *srq;
	struct ibv_srq *ibv_srq;
	bool verb_is_plain; /* see base/wr.h */
	struct rpma_rt_srq_cfg cfg;
	void *user;
	uint32_t number; /* number of the SRQ's route */
	uint32_t mask;	 /* size of returned[] - 1 */
	struct rt_srq_slot *slots;
	/* the SRQ's own queue, its lane for that queue, and the reserved
	 * places; all three are 0 without a queue */
	struct rpma_rt_queue *queue;
	struct rt_lane *lane;
	struct rt_waiter *waiter; /* waiter for that lane; used by the poller */
	uint32_t reserved;
	/* messages that no queue gets; NULL: the SRQ has no futures */
	struct rt_futures *messages;
	struct rt_async_object async;

	/* used by posters. The words behind the turn belong to the turn's
	 * holder: doc/protocols/ledger.md */
	alignas(RT_CACHE_LINE) struct rt_turn turn;
	uint32_t taken; /* number of slots ever taken from returned[] */
	/* receives that were posted since SRQ_LIMIT; armed again at `limit` */
	uint32_t since;
	/* value of `taken` for the poller: stored before the verb */
	_Atomic uint32_t posted;
	/* value of `taken` for posters: stored after the verb */
	_Atomic uint32_t shown;
	/* slots that the device refused, index + 1, on their way to the
	 * poller */
	_Atomic uint32_t refused;

	/* shared, written seldom */
	alignas(RT_CACHE_LINE) _Atomic uint32_t want; /* bits of enum rt_want */
	/* a lane holds the SRQ up */
	_Atomic bool behind;
	_Atomic bool armed; /* SRQ_LIMIT, or the device's limit, is armed */
	_Atomic bool arm_sent;
	_Atomic bool look_sent;
	/* the device reported an error; set once by the control thread */
	_Atomic bool failed;
	_Atomic bool fail_sent; /* set once */
	struct rt_msg arm_msg;	/* to the control thread */
	struct rt_msg fail_msg; /* to the control thread */
	struct rt_msg look_msg; /* to the poller */
	struct rt_msg told_msg; /* to the poller: the SRQ has failed */

	/* written by the poller; posters read returned[] and retired */
	alignas(RT_CACHE_LINE) _Atomic uint32_t retired;
	/* when retired rose last, for the dump */
	_Atomic uint32_t retired_ms;
	_Atomic uint32_t messages_listed; /* listed messages, for the dump */
	/* number of returned slots: the next value of retired */
	uint32_t count;
	uint32_t *returned;
	uint32_t held;	     /* number of lanes that hold the SRQ up */
	uint32_t ended;	     /* slots that the end of the SRQ has looked at */
	struct rt_feed feed; /* used with a pool */
	bool refilling;	     /* the refill function runs */
	/* the refill is due, however many receives are out */
	bool refill_due;
	bool refill_waits; /* the refill waits for a backlog to clear */
	/* the device refused a receive that the refill function posted */
	bool refill_refused;
	/* repeats a refill that the device refused; again_ms: the pause before
	 * the last repetition, 0: the last refill was not refused */
	struct rt_task again;
	uint32_t again_ms;
	bool limit_pending; /* SRQ_LIMIT waits for room in the SRQ's queue */

	/* under the runtime's lock: */
	uint32_t users; /* connections, listeners */
	/* users whose CLOSED was written and whose DONE will come */
	_Atomic uint32_t leaving;
	/* signalled when the number of users fell */
	pthread_cond_t left;
	bool closing; /* the SRQ gets no further users */
	/* a delete was refused because of users, for the dump */
	_Atomic bool delete_refused;
	struct rpma_rt_srq *next;
	/* for the dump. listed: as long as the handle exists. is_over: the SRQ
	 * does not hold its queue any more */
	struct cds_list_head listed;
	_Atomic bool is_over;
};

static inline uint64_t rt_srq_cookie(uint32_t slot, uint32_t generation)
{
	return (uint64_t)slot << RT_SRQ_GEN_BITS |
	       (generation & RT_SRQ_GEN_MASK);
}

/* -------------------------------------------------------------- posting --- */

/* Posts receives: rpma_rt_srq_post_recv(), and also the posts for a pool. */
int rt_srq_post(struct rpma_rt_srq *srq, const struct rpma_rt_recv_wr *wr,
		int count);
/* Posts the line, if no thread has the right. On the poller. */
void rt_srq_hold_poller(struct rpma_rt_srq *srq);
/* Sends the look message, unless the message is on its way. Any thread. */
void rt_srq_look_mt(struct rpma_rt_srq *srq);
/* Returns how many slots of the line may be in use. Any thread. */
static inline uint32_t rt_srq_limit(const struct rpma_rt_srq *srq)
{
	/* acquire [SRQ-1]: pairs with the release in srq_poll_publish(),
	 * poll.c */
	uint32_t retired =
		atomic_load_explicit(&srq->retired, memory_order_acquire) -
		srq->cfg.srq_size;

	/* relaxed: with an older value a thread counts too few outstanding
	 * receives */
	return rt_line_limit(
		&srq->turn,
		atomic_load_explicit(&srq->shown, memory_order_relaxed),
		retired);
}

/* Returns the number of free places. Any thread. */
static inline uint32_t rt_srq_places(const struct rpma_rt_srq *srq)
{
	return rt_post_places(&srq->turn, rt_srq_limit(srq));
}

/* Returns how many receives may still complete when no poster posts any more:
 * receives that are out, in line or in slots. */
static inline uint32_t rt_srq_items(const struct rpma_rt_srq *srq)
{
	return srq->cfg.srq_size + rt_line_of(&srq->turn)->slots;
}

/* ------------------------------------------------------------- its life --- */

/* Notes that the device failed, or reports an error of the SRQ. Any thread that
 * keeps the SRQ from ending; wait-free. */
void rt_srq_fail_mt(struct rpma_rt_srq *srq);
/* Returns whether the SRQ has failed, so that connections may not use the SRQ
 * any more. Any thread. Under the runtime's lock the result holds until the
 * lock is released. */
static inline bool rt_srq_has_failed(const struct rpma_rt_srq *srq)
{
	/* relaxed: a post that comes before the flag goes to the device, which
	 * is harmless */
	return atomic_load_explicit(&srq->failed, memory_order_relaxed);
}

/* Ends every SRQ in a stop, when the runtime has no connections any more: gives
 * back the receives that are out. The handles stay. */
void rt_srq_finish_all(struct rpma_rt *rt);
/* Frees left-over SRQs, together with the runtime, when the pollers have no
 * messages any more. */
void rt_srq_free_left(struct rpma_rt *rt);
/* Takes a connection that is DONE out of the users. The poller announced the
 * leave before the connection wrote CLOSED. REQUIRES: the runtime's lock. */
void rt_srq_unref_announced(struct rpma_rt_srq *srq);

/* Returns the number of listed messages, each of which takes the place of a
 * receive. On the poller. */
static inline uint32_t rt_srq_listed_poller(const struct rpma_rt_srq *srq)
{
	return srq->messages != NULL ? rt_source_count(srq->messages->source)
				     : 0;
}

/* ----------------------------------------------------------- the poller --- */

/* Prepares the poller's part before any other thread knows the SRQ: messages,
 * the waiter in the lane of the SRQ's queue, and with a pool the runtime's
 * refill function. ERRORS: RPMA_E_NOMEM */
int rt_srq_prepare_poller(struct rpma_rt_srq *srq);
/* Begin and end an SRQ on the poller. rt_srq_end_poller() gives the outstanding
 * receives back to the SRQ's queue, a part with each call, and returns false
 * when that was the last part. */
void rt_srq_begin_poller(struct rpma_rt_srq *srq);
bool rt_srq_end_poller(struct rpma_rt_srq *srq);

#endif /* RT_SRQ_SRQ_H */
