/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * feed.c -- receive queues that are low while their pool is empty: the poller
 * asks, and the thread that gives the next slot back answers.
 * doc/protocols/pool.md.
 */

#include "pool/feed.h"

#include "base/clock.h"
#include "base/log.h"
#include "pool/pool.h"
#include "poller/poller.h"

/* ------------------------------------------------------ low and not low --- */

static void feed_become_low(struct rt_feeder *feeder)
{
	struct rpma_rt_pool *pool = feeder->pool;

	/* relaxed, the following: statistics, which order nothing */
	atomic_store_explicit(&feeder->low_ms, rt_now_ms() | 1,
			      memory_order_relaxed);
	if (atomic_fetch_add_explicit(&pool->lows, 1, memory_order_relaxed))
		return;
	atomic_fetch_add_explicit(&pool->times_low, 1, memory_order_relaxed);
	RT_LOG_ERROR(
		"pool \"%s\" has no free slot of %u for receives, and a "
		"receive queue of poller %d is less than a quarter full: the "
		"peers wait. Give leases back sooner, or make "
		"rpma_rt_pool_cfg.count larger",
		pool->name, pool->receives, feeder->poller->index);
}

static void feed_list_hungry(struct rt_feed *feed)
{
	struct rt_feeder *feeder = feed->feeder;

	if (feed->is_hungry)
		return;
	if (cds_list_empty(&feeder->hungry))
		feed_become_low(feeder);
	feed->is_hungry = true;
	cds_list_add_tail(&feed->link, &feeder->hungry);
}

/* --------------------------------------------------------------- asking --- */

/* Clears the feeder's bit. Returns false if the bit was still set, so that no
 * thread will answer. */
static bool feed_is_answered(struct rt_feeder *feeder)
{
	/* seq_cst [POOL-2]: pairs with the exchange in rt_feed_answer_mt():
	 * exactly one of two takers gets the bit */
	return !(atomic_fetch_and_explicit(&feeder->pool->asking, ~feeder->bit,
					   memory_order_seq_cst) &
		 feeder->bit);
}

/* Asks for a message with the next slot. Returns false if there is a slot
 * already. */
static bool feed_ask(struct rt_feeder *feeder)
{
	if (feeder->asked)
		return true;
	/* seq_cst [POOL-2]: before the second look at the list; pairs with the
	 * giver's look at `asking` after the push: at least one of the two sees
	 * the other */
	atomic_fetch_or_explicit(&feeder->pool->asking, feeder->bit,
				 memory_order_seq_cst);
	feeder->asked =
		rt_pool_is_empty(feeder->pool) || feed_is_answered(feeder);
	return feeder->asked;
}

static void feed_unlist_hungry(struct rt_feed *feed)
{
	struct rt_feeder *feeder = feed->feeder;

	if (!feed->is_hungry)
		return;
	feed->is_hungry = false;
	cds_list_del(&feed->link);
	if (!cds_list_empty(&feeder->hungry))
		return;
	/* relaxed, both: statistics, which order nothing */
	atomic_store_explicit(&feeder->low_ms, 0, memory_order_relaxed);
	atomic_fetch_sub_explicit(&feeder->pool->lows, 1, memory_order_relaxed);
	/* if the bit was taken, the message is on its way */
	if (feeder->asked && !feed_is_answered(feeder))
		feeder->asked = false;
}

bool rt_feed_end_poller(struct rt_feed *feed, bool is_hungry)
{
	if (__builtin_expect(!is_hungry, 1)) {
		feed_unlist_hungry(feed);
		return true;
	}
	if (!feed_ask(feed->feeder))
		return false;
	feed_list_hungry(feed);
	return true;
}

/* Fills hungry queues, as many as there are slots for, the longest waiting
 * queue first, when slots were given back. Each queue posts a slot at least or
 * is hungry no more, so the loop ends. */
static void feed_fill_hungry(struct rt_msg *msg, void *owner)
{
	struct rt_feeder *feeder = RT_FROM(struct rt_feeder, msg, msg);
	struct cds_list_head *hungry = &feeder->hungry;
	struct rt_feed *feed;

	(void)owner;
	/* the message is free, and the bit is clear */
	feeder->asked = false;
	do {
		while (!cds_list_empty(hungry) &&
		       !rt_pool_is_empty(feeder->pool)) {
			feed = cds_list_first_entry(hungry, struct rt_feed,
						    link);
			cds_list_del(&feed->link);
			cds_list_add_tail(&feed->link, hungry);
			feed->fill(feed);
		}
	} while (!cds_list_empty(hungry) && !feed_ask(feeder));
}

void rt_feed_answer_mt(struct rpma_rt_pool *pool)
{
	/* seq_cst [POOL-2]: pairs with feed_ask(). Each bit has a single taker,
	 * who sends the message */
	uint64_t asking = atomic_exchange_explicit(&pool->asking, 0,
						   memory_order_seq_cst);
	struct rt_feeder *feeder;

	while (asking != 0) {
		feeder = &pool->feeders[__builtin_ctzll(asking)];
		asking &= asking - 1;
		rt_inbox_push_mt(&feeder->poller->inbox, &feeder->msg);
	}
}

/* --------------------------------------------------------------- making --- */

void rt_feed_init_feeder(struct rt_feeder *feeder, struct rpma_rt_pool *pool,
			 struct rt_poller *poller)
{
	*feeder = (struct rt_feeder){
		.pool = pool,
		.poller = poller,
		.bit = UINT64_C(1) << poller->index,
		.msg.fn = feed_fill_hungry,
	};
	CDS_INIT_LIST_HEAD(&feeder->hungry);
}

void rt_feed_init(struct rt_feed *feed, struct rpma_rt_pool *pool,
		  const struct rt_poller *poller,
		  void (*fill)(struct rt_feed *feed))
{
	*feed = (struct rt_feed){
		.feeder = &pool->feeders[poller->index],
		.fill = fill,
	};
}
