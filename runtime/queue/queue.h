/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * queue.h -- a queue. A single thread at a time, always the same thread or any
 * of several, takes completions, events and messages from all lanes of the
 * queue and from the queue's inbox, and sleeps on a futex or an eventfd when
 * there is nothing. Protocols: doc/protocols/lane.md, shared-queue.md.
 *
 * The functions below are for the runtime; rpma_rt.h has the public calls.
 */

#ifndef RT_QUEUE_QUEUE_H
#define RT_QUEUE_QUEUE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "rpma_rt.h"
#include "queue/lane.h"

struct rt_owned;

/* ---------------------------------------------------------------- queue --- */

/* Returns the lane between a poller (given by index and bell) and the queue,
 * made when poller and queue first meet. NULL: no memory. Any thread that holds
 * the queue. */
struct rt_lane *rt_queue_lane(struct rpma_rt_queue *queue, int poller,
			      struct rt_bell *poller_bell);

/* Frees the idle lanes, together with the runtime. */
void rt_queue_free_idle(struct rpma_rt *rt);

/* Makes the queue the queue of a shard; before any other thread has the
 * queue. */
void rt_queue_set_shard(struct rpma_rt_queue *queue, uint32_t shard);

/* Returns the pollers, as bits, that a wait for the queue runs in manual mode
 * if they belong to no thread: the pollers with a lane to the queue. If shards
 * run the pollers, only the poller of the shard that owns the queue counts. Any
 * thread. */
uint64_t rt_queue_pollers(const struct rpma_rt_queue *queue);

/* Wakes the consumer if the consumer sleeps, and returns whether a consumer
 * slept. Called after the caller published and fenced; the caller holds the
 * queue. Pollers use rt_lane_bell_poller(). */
bool rt_queue_bell(struct rpma_rt_queue *queue);

/*
 * Count the users of a queue: the objects that may still write items, such as
 * connections and listeners. A user calls rt_queue_unref() after its last item
 * was published and rung. While there are users, rpma_rt_queue_delete() returns
 * RPMA_RT_E_BUSY.
 */
void rt_queue_ref(struct rpma_rt_queue *queue);
void rt_queue_unref(struct rpma_rt_queue *queue);
/* Announces that a user is about to write its last item. The consumer of the
 * item may delete the queue, and the delete waits for
 * rt_queue_unref_announced(). */
void rt_queue_announce_unref(struct rpma_rt_queue *queue);
void rt_queue_unref_announced(struct rpma_rt_queue *queue);

/* Makes a spill a user of its queue, on the poller. The spill is a user from
 * before the publication of the batch that began the spill until the spill's
 * last item was published and rung. */
void rt_queue_ref_spill_poller(struct rt_lane *lane);
/* Announces, like rt_queue_announce_unref(), that the spill's last item is
 * about to be published; is_leaving false: the spill got more items and stays a
 * user. */
void rt_queue_announce_spill_poller(struct rt_lane *lane, bool is_leaving);
/* Ends the use of the queue by a spill. The lane may be freed when the function
 * returns. */
void rt_queue_unref_spill_poller(struct rt_lane *lane);

/* Finishes a queue when every poller is gone: closes the queue and wakes the
 * consumer, which takes the remaining items from rings and spills and then gets
 * RPMA_RT_E_CLOSED. */
void rt_queue_finish(struct rpma_rt_queue *queue);

/* Finishes each queue of the list; under the runtime's lock. */
void rt_queue_finish_all(struct rpma_rt_queue *list);

/* Returns whether the queue belongs to the runtime. A queue of another runtime
 * is of no use, because the index of a poller selects the lane. */
bool rt_queue_is_of(const struct rpma_rt_queue *queue,
		    const struct rpma_rt *rt);
bool rt_queue_is_closed(const struct rpma_rt_queue *queue);
/* Rings the queue after a fence of its own, and counts the wake-up. */
void rt_queue_ring(struct rpma_rt_queue *queue);

/* when a thread did something; tid 0: no thread has done so */
struct rt_queue_date {
	uint32_t tid;
	uint32_t ago_ms;
};

/* The state of a queue, for rpma_rt_dump(); the caller keeps the queue
 * alive. */
struct rt_queue_state {
	uint32_t id; /* number of the queue in the process */
	char name[RPMA_RT_NAME_MAX + 1];
	bool shared;
	bool closed;
	bool finished;
	bool inside; /* a consumer is taking, or waits alone */
	bool asleep; /* a ring would wake a consumer */
	/* of a shared queue: consumers that wait on the futex */
	uint32_t waiters;
	uint32_t lanes;
	uint32_t spilled;    /* items behind full lanes */
	uint32_t backlogged; /* lanes over the limit */
	bool delete_refused;
	bool has_waiting;    /* at least an item waits */
	uint32_t waiting_ms; /* time for which an item has waited at least */
	/* tid of the last consumer; 0: no consumer was inside */
	uint32_t inside_tid;
	/* the last look that found nothing, as far as looks are dated */
	struct rt_queue_date look;
	/* the last take that found something, as far as takes are dated */
	struct rt_queue_date take;
};
void rt_queue_snapshot(const struct rpma_rt_queue *queue, uint32_t now_ms,
		       struct rt_queue_state *view);
/* Checks that the queue belongs to the runtime. Otherwise logs the name of the
 * field that has the queue, and returns RPMA_E_INVAL. */
int rt_queue_check_of(const struct rpma_rt_queue *queue,
		      const struct rpma_rt *rt, const char *field);
/* Returns the next queue of the runtime's list. */
struct rpma_rt_queue *rt_queue_next(const struct rpma_rt_queue *queue);
uint32_t rt_queue_id(const struct rpma_rt_queue *queue);

/* ---------------------------------------------------------------- joint --- */

/*
 * An item that comes behind everything in several lanes of a queue. A token
 * goes into each of the lanes; the consumer drops the tokens, and in place of
 * the token taken last sees the item. doc/protocols/lane.md.
 */

/* kind of a token: no value of enum rpma_rt_kind */
#define RT_JOINT_KIND 255

/* a joint; freed by the consumer that takes the last token */
struct rt_joint {
	_Atomic uint32_t lanes; /* lanes whose token was not taken yet */
	struct rpma_rt_completion item;
};

/* Announces to the queue that tokens of a joint will come. Any thread that
 * holds the queue, before the first token. */
void rt_joint_announce(struct rpma_rt_queue *queue);
/* Returns the token that a poller writes into its lane. */
static inline struct rpma_rt_completion
rt_joint_token(const struct rt_joint *joint)
{
	return (struct rpma_rt_completion){.context = (uintptr_t)joint,
					   .kind = RT_JOINT_KIND};
}

#endif /* RT_QUEUE_QUEUE_H */
