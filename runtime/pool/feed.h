/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * feed.h -- receive queues that a pool keeps filled: each has a feed, each
 * poller has a feeder of each pool, which knows whose receive queue is low
 * while the pool is empty, and asks for a message with the next slot. Runs on
 * the poller. doc/protocols/pool.md.
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

/* receives posted to a queue at once */
#define RT_FEED_CHUNK 32

/* of one receive queue */
struct rt_feed {
	struct rt_feeder *feeder;
	/* slots are there: posts receives, ends with rt_feed_end_poller() */
	void (*fill)(struct rt_feed *feed);
	struct cds_list_head link; /* among the hungry */
	bool is_hungry;
};

/* a pool's, of one poller */
struct rt_feeder {
	struct rpma_rt_pool *pool; /* these three are immutable */
	struct rt_poller *poller;
	uint64_t bit; /* in rt_pool.asking */
	/* the poller's */
	struct cds_list_head hungry;
	bool asked; /* the bit was set, and its message did not come yet */
	_Atomic uint32_t low_ms; /* since when some are hungry, odd; 0: none */
	/* of whoever took the bit, then of the poller */
	struct rt_msg msg;
};

/* Before anybody knows the pool. */
void rt_feed_init_feeder(struct rt_feeder *feeder, struct rpma_rt_pool *pool,
			 struct rt_poller *poller);
/* The feed of a receive queue on that poller. */
void rt_feed_init(struct rt_feed *feed, struct rpma_rt_pool *pool,
		  const struct rt_poller *poller,
		  void (*fill)(struct rt_feed *feed));

/*
 * The end of a fill. is_hungry: it found the pool empty, and fewer receives are
 * out than a quarter: fill is called when there are slots. False: there are
 * some already, fill again.
 */
bool rt_feed_end_poller(struct rt_feed *feed, bool is_hungry);
/* Is that few for a receive queue of this size? */
static inline bool rt_feed_is_low(uint32_t out, uint32_t size)
{
	return out < size / 4 || out == 0;
}

/* Any thread that has given slots back: sends the messages asked for. */
void rt_feed_answer_mt(struct rpma_rt_pool *pool);

#endif /* RT_POOL_FEED_H */
