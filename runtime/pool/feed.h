/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * feed.h -- receive queues that a pool keeps filled. Each queue has a feed,
 * which says how many receives the queue may have; each poller has a feeder of
 * each pool, which knows the receive queues that are low while the pool is
 * empty, and asks for a message with the next slot. Runs on the poller.
 * doc/protocols/pool.md.
 */

#ifndef RT_POOL_FEED_H
#define RT_POOL_FEED_H

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
	/* receives that the queue has room for, and that the queue wants of any
	 * pool; immutable */
	uint32_t size;
	uint32_t base;
	uint32_t share; /* receives that the queue may have now, 1 or more */
	bool was_full;	/* the last fill has posted the whole share */
	bool is_short;	/* the pool had too few slots for a larger share */
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
/* Initialises the feed of a receive queue of a poller. base: the size; less if
 * the share is to grow with the messages that come at a time. */
void rt_feed_init(struct rt_feed *feed, struct rpma_rt_pool *pool,
		  const struct rt_poller *poller,
		  void (*fill)(struct rt_feed *feed), uint32_t size,
		  uint32_t base);
/* Give the queue its first share, before the queue has receives, and take the
 * share back, beside rt_pool_use() and rt_pool_disuse(). REQUIRES: the
 * runtime's lock. */
void rt_feed_join(struct rt_feed *feed);
void rt_feed_leave(struct rt_feed *feed);

/* Begins a fill of a queue of which so many receives are out: the share may
 * change. */
void rt_feed_begin(struct rt_feed *feed, uint32_t out);
/* Returns how many receives may be posted, in a queue with that much room. */
static inline uint32_t rt_feed_room(const struct rt_feed *feed, uint32_t out,
				    uint32_t room)
{
	uint32_t left = out < feed->share ? feed->share - out : 0;

	return room < left ? room : left;
}

/*
 * Ends a fill. is_hungry: the fill found the pool empty, and the queue has less
 * than a quarter of its share; `fill` is called again when there are slots.
 * Returns false if there are slots already: the caller fills again.
 */
bool rt_feed_end_poller(struct rt_feed *feed, bool is_hungry);
/* Returns whether the queue leaves the free slots to hungry queues, which were
 * first: a queue that is low, `is_low`, is hungry then, too. A slot that was
 * given back would else be posted again by the same busy queue, before the
 * message to the hungry queues is run. */
bool rt_feed_leaves_slots(const struct rt_feed *feed, bool is_low);
/* Returns whether the queue has the share that the program has set: the share
 * does not change. */
static inline bool rt_feed_is_set(const struct rt_feed *feed)
{
	return feed->share == feed->base && feed->base == feed->size;
}
/* Returns whether so few receives are out that the queue is low. */
static inline bool rt_feed_is_low(const struct rt_feed *feed, uint32_t out)
{
	return out < feed->share / 4 || out == 0;
}

#endif /* RT_POOL_FEED_H */
