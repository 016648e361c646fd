/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * queue.h -- a queue: one thread at a time, always the same or any of several,
 * takes completions, events and messages from all lanes of the queue and its
 * inbox, and sleeps on a futex or an eventfd when there is nothing. Protocols:
 * doc/protocols/lane.md, shared-queue.md.
 *
 * What follows is for the runtime; the public calls are in rpma_rt.h.
 */

#ifndef RT_QUEUE_QUEUE_H
#define RT_QUEUE_QUEUE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "rpma_rt.h"
#include "queue/lane.h"

/* ---------------------------------------------------------------- queue --- */

/* The lane between a poller (its index and bell) and this queue, made when
 * they first meet. NULL: no memory. Any thread that holds the queue. */
struct rt_lane *rt_queue_lane(struct rpma_rt_queue *queue, int poller,
			      struct rt_bell *poller_bell);

/* Frees the lanes that no queue has, with the runtime. */
void rt_queue_free_idle(struct rpma_rt *rt);

/* A shard's queue; before any other thread has the queue. */
void rt_queue_set_shard(struct rpma_rt_queue *queue, uint32_t shard);
/* Returns bits: the pollers that a wait for the queue runs in manual mode, as
 * far as these belong to no thread: those with a lane to the queue, and of
 * pollers that shards run only the one whose shard's queue this is. Any
 * thread. */
uint64_t rt_queue_pollers(const struct rpma_rt_queue *queue);

/* After the caller published and fenced: wakes the consumer if it sleeps
 * (true). The caller holds the queue. Pollers use rt_lane_bell_poller(). */
bool rt_queue_bell(struct rpma_rt_queue *queue);

/*
 * Users are the objects that may still write items: connections, listeners.
 * Unref after the last item was published and rung. While there are users,
 * rpma_rt_queue_delete() answers RPMA_RT_E_BUSY.
 */
void rt_queue_ref(struct rpma_rt_queue *queue);
void rt_queue_unref(struct rpma_rt_queue *queue);
/* A user is about to write its last item: the consumer of that may delete the
 * queue, and the delete waits for rt_queue_unref_announced(). */
void rt_queue_announce_unref(struct rpma_rt_queue *queue);
void rt_queue_unref_announced(struct rpma_rt_queue *queue);

/* Poller: a spill is a user of its queue as well, from before the batch that
 * began it is published until its last item was published and rung. */
void rt_queue_ref_spill_poller(struct rt_lane *lane);
/* The spill's last item is about to be published, as with
 * rt_queue_announce_unref(); false: the spill stays a user, there are more. */
void rt_queue_announce_spill_poller(struct rt_lane *lane, bool is_leaving);
/* The lane may be gone when this returns. */
void rt_queue_unref_spill_poller(struct rt_lane *lane);

/* When every poller is gone: closes, wakes; the consumer takes the items left
 * in rings and spills and then gets RPMA_RT_E_CLOSED. */
void rt_queue_finish(struct rpma_rt_queue *queue);

/* Finishes each queue of the list; under the runtime's lock. */
void rt_queue_finish_all(struct rpma_rt_queue *list);

/* Was it made with that runtime? Lanes are known by the poller's index. */
bool rt_queue_is_of(const struct rpma_rt_queue *queue,
		    const struct rpma_rt *rt);
bool rt_queue_is_closed(const struct rpma_rt_queue *queue);
/* Rings after a fence of its own; counted. */
void rt_queue_ring(struct rpma_rt_queue *queue);

/* a thread did something; tid 0: none has */
struct rt_queue_date {
	uint32_t tid;
	uint32_t ago_ms;
};

/* The state of a queue, for rpma_rt_dump(); the caller keeps it alive. */
struct rt_queue_state {
	uint32_t id; /* of the process */
	char name[RPMA_RT_NAME_MAX + 1];
	bool shared;
	bool closed;
	bool finished;
	bool inside;	  /* a consumer is taking, or waits alone */
	bool asleep;	  /* a ring would wake somebody */
	uint32_t waiters; /* shared: on the futex */
	uint32_t lanes;
	uint32_t spilled;    /* items behind full lanes */
	uint32_t backlogged; /* lanes over the limit */
	bool delete_refused;
	bool has_waiting;    /* an item, */
	uint32_t waiting_ms; /* at least for so long */
	uint32_t inside_tid; /* of the last consumer; 0: none was inside */
	struct rt_queue_date look; /* the last that found nothing, as far as */
	struct rt_queue_date take; /* it was noted; that took something */
};
void rt_queue_snapshot(const struct rpma_rt_queue *queue, uint32_t now_ms,
		       struct rt_queue_state *view);
/* RPMA_E_INVAL, logged with the name of the field that holds it: it is another
 * runtime's. */
int rt_queue_check_of(const struct rpma_rt_queue *queue,
		      const struct rpma_rt *rt, const char *field);
/* The next one of the runtime's list. */
struct rpma_rt_queue *rt_queue_next(const struct rpma_rt_queue *queue);
uint32_t rt_queue_id(const struct rpma_rt_queue *queue);

/* ---------------------------------------------------------------- joint --- */

/*
 * An item that comes behind everything in several lanes of a queue. A token
 * goes into each of the lanes; the consumer drops all but the token that it
 * takes last, in whose place it sees the item. doc/protocols/lane.md.
 */

/* kind of a token: no value of enum rpma_rt_kind */
#define RT_JOINT_KIND 255

/* freed by the consumer that takes the last token */
struct rt_joint {
	_Atomic uint32_t lanes; /* whose tokens were not taken yet */
	struct rpma_rt_completion item;
};

/* Any thread that holds the queue, before the first token: they come. */
void rt_joint_announce(struct rpma_rt_queue *queue);
/* What a poller writes into its lane. */
static inline struct rpma_rt_completion
rt_joint_token(const struct rt_joint *joint)
{
	return (struct rpma_rt_completion){.context = (uintptr_t)joint,
					   .kind = RT_JOINT_KIND};
}

#endif /* RT_QUEUE_QUEUE_H */
