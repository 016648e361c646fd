/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * feed.h -- receive queues that a pool keeps filled. Each queue has a feed;
 * each poller has a feeder of each pool, which knows the receive queues that
 * are low while the pool is empty, and asks for a message with the next slot.
 * Runs on the poller. doc/protocols/pool.md.
 */

#ifndef RT_POOL_FEED_H
#define RT_POOL_FEED_H

#include <stdbool.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include <urcu/list.h>

#include "base/inbox.h"

struct rpma_rt_pool;
struct rt_poller;

/* receives that are posted to a queue at a time */
#define RT_FEED_CHUNK 32

/* the feed of a receive queue */
struct rt_feed {
	struct rt_feeder *feeder;
	/* called when there are slots: posts receives, and ends with
	 * rt_feed_end_poller() */
	void (*fill)(struct rt_feed *feed);
	struct cds_list_head link; /* in the list of hungry feeds */
	bool is_hungry;
};

/* the feeder of a pool for a poller */
struct rt_feeder {
	struct rpma_rt_pool *pool; /* these three words are immutable */
	struct rt_poller *poller;
	uint64_t bit; /* the poller's bit in rt_pool.asking */
	/* used by the poller only: */
	struct cds_list_head hungry;
	bool asked; /* the bit was set, and the message has not come yet */
	/* since when there are hungry queues, made odd; 0: no queue is
	 * hungry */
	_Atomic uint32_t low_ms;
	/* belongs to the thread that took the bit, then to the poller */
	struct rt_msg msg;
};

/* Initialises a feeder, before any other thread knows the pool. */
void rt_feed_init_feeder(struct rt_feeder *feeder, struct rpma_rt_pool *pool,
			 struct rt_poller *poller);
/* Initialises the feed of a receive queue on the poller. */
void rt_feed_init(struct rt_feed *feed, struct rpma_rt_pool *pool,
		  const struct rt_poller *poller,
		  void (*fill)(struct rt_feed *feed));

/*
 * Ends a fill. is_hungry: the fill found the pool empty, and the queue has less
 * than a quarter of its receives; `fill` is called again when there are slots.
 * Returns false if there are slots already: the caller fills again.
 */
bool rt_feed_end_poller(struct rt_feed *feed, bool is_hungry);
/* Returns whether the queue leaves the free slots to hungry queues, which were
 * first: a queue that is low, `is_low`, is hungry then, too. A slot that was
 * given back would else be posted again by the same busy queue, before the
 * message to the hungry queues is run. */
bool rt_feed_leaves_slots(const struct rt_feed *feed, bool is_low);
/* Returns whether so few receives are out that a queue of this size is low. */
static inline bool rt_feed_is_low(uint32_t out, uint32_t size)
{
	return out < size / 4 || out == 0;
}

#endif /* RT_POOL_FEED_H */
