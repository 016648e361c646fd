/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * source.h -- sources of the futures that a program asks for: items in an
 * order, each for one future, and behind the items an end for all further
 * futures. Requests of a listener, messages, and free slots of a pool are
 * items; an event of a connection, a latch, has the end alone.
 * doc/protocols/future.md.
 */

#ifndef RT_POLLER_SOURCE_H
#define RT_POLLER_SOURCE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "rpma_rt.h"
#include "poller/future.h"

struct rt_poller;

/* kinds of futures for which a program asks */
extern const struct rt_future_kind rt_source_requests;
extern const struct rt_future_kind rt_source_messages;
extern const struct rt_future_kind rt_source_slots;
extern const struct rt_future_kind rt_source_latches;

/* the place of an item in the list */
struct rt_source_node {
	struct rpma_rt_completion item;
	struct rt_source_node *next;
	uint32_t sequence;
};

/* a source; belongs to the poller or, after a stop, to the thread that does the
 * requests; the same thread frees the source when the keeper is dropped */
struct rt_future_source {
	struct rt_futures *futures; /* immutable */
	/* called when an item left the list: there is room for another item.
	 * NULL: no more items come */
	void (*taken)(void *arg);
	/* makes the next item, or returns false: fetch is called again when the
	 * keeper is asked to WATCH. item NULL: no future waits for an item any
	 * more. fetch NULL: items are listed */
	bool (*fetch)(void *arg, struct rpma_rt_completion *item);
	void *arg;		      /* immutable: the owner */
	struct rt_source_node *first; /* listed, in order */
	struct rt_source_node **last; /* where the next node is linked */
	struct rt_source_node *free;  /* list of the free nodes in nodes[] */
	/* listed items; a statistic for other threads */
	_Atomic uint32_t count;
	uint32_t sequence; /* of the next item to come */
	/* for each slot: the node of the slot's last item */
	struct rt_source_node **held;
	bool has_nodes; /* otherwise each item brings a node */
	struct rt_source_node nodes[];
};

/* Returns the number of listed items. Any thread that knows the source. */
static inline uint32_t rt_source_count(const struct rt_future_source *source)
{
	/* relaxed: only the poller writes; a statistic for other threads */
	return atomic_load_explicit(&source->count, memory_order_relaxed);
}

/* List an item: rt_source_put_poller() in a node of the source,
 * rt_source_add_poller() in the item's own node. The caller then serves the
 * watching slots: rt_deliver_asked(). */
void rt_source_put_poller(struct rt_future_source *source,
			  const struct rpma_rt_completion *item);
void rt_source_add_poller(struct rt_future_source *source,
			  struct rt_source_node *node);
/* Sets the end of a source; of latches the end of the event. The caller then
 * serves the watching slots. */
void rt_source_set_end_poller(struct rt_futures *futures, uint32_t event,
			      const struct rpma_rt_completion *end);
/* Completes the first watching slot. Returns false if no slot watches, or
 * nothing has come. REQUIRES: the batch is not full */
bool rt_source_serve_poller(struct rt_poller *poller,
			    struct rt_futures *futures, uint32_t event);
/* Returns whether watching slots may get an item because of this request to the
 * slot. Called before the request is done. */
bool rt_source_may_serve(const struct rt_future *slot, uint32_t asked);

#endif /* RT_POLLER_SOURCE_H */
