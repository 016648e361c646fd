/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * slots.c -- taking slots and giving slots back: a list of the free slots,
 * linked by their numbers; any thread takes from the list and gives back to the
 * list. The generation of a slot says whether the slot is out, and which lease
 * of the slot is valid. doc/protocols/pool.md.
 */

#include "pool/pool.h"

#include <assert.h>

#include "base/clock.h"
#include "base/context.h"
#include "base/lang.h"
#include "base/log.h"
#include "future/future.h"
#include "poller/poller.h"
#include "pool/feed.h"

_Atomic(struct rpma_rt_pool *) rt_pool_table[RT_POOL_POOLS];

static uint32_t pool_generation_of(uint64_t cookie)
{
	return (uint32_t)cookie & RT_POOL_GEN_MASK;
}

static uint32_t pool_generation_at(const _Atomic uint64_t *lease)
{
	/* relaxed: a caller that needs an order has the order, see the
	 * callers */
	return (uint32_t)(atomic_load_explicit(lease, memory_order_relaxed) >>
			  RT_POOL_LEASE_SHIFT);
}

static bool pool_is_of(uint64_t word, uint32_t generation)
{
	return word >> RT_POOL_LEASE_SHIFT == generation;
}

static bool pool_has_holders(uint64_t word)
{
	return word & (RT_POOL_PROGRAM | RT_POOL_SENDS_MASK);
}

/* Returns the word of a slot that is free, with the next generation. */
static uint64_t pool_free_word(uint32_t generation)
{
	return (uint64_t)((generation + 1) & RT_POOL_GEN_MASK)
	       << RT_POOL_LEASE_SHIFT;
}

/* --------------------------------------------------------------- taking --- */

static inline __attribute__((always_inline)) uint32_t
take_from(struct rpma_rt_pool *pool, _Atomic uint64_t *list, uint64_t *cookies,
	  uint32_t max, uint64_t barred)
{
	uint32_t count =
		rt_pool_list_take(list, pool->next, cookies, max, barred);
	/* the stores below may not change these words */
	_Atomic uint64_t *const leases = pool->leases;
	const uint64_t of_pool = rt_pool_cookie(pool, 0, 0);
	uint32_t i;

	for (i = 0; i < count; i++)
		cookies[i] = rt_pool_begin_lease(leases, of_pool, cookies[i]);
	return count;
}

uint32_t rt_pool_take(struct rpma_rt_pool *pool, uint64_t *cookies,
		      uint32_t max)
{
	return take_from(pool, &pool->head, cookies, max, 0);
}

/* Returns whether the program may have slots for receives: no receive can want
 * such a slot, because no slots were kept for sends, or no receive queue is
 * filled from the pool. */
static bool pool_has_receives_to_spare(const struct rpma_rt_pool *pool)
{
	/* seq_cst [POOL-4]: after AWAITED was set; pairs with rt_pool_disuse().
	 * A receive queue that comes meanwhile waits for the next give */
	return pool->receives == pool->count ||
	       atomic_load_explicit(&pool->fills, memory_order_seq_cst) == 0;
}

static bool pool_take_to_send(struct rpma_rt_pool *pool, uint64_t *cookie)
{
	return take_from(pool, &pool->head_of_sends, cookie, 1,
			 RT_POOL_AWAITED) == 1 ||
	       (pool_has_receives_to_spare(pool) &&
		take_from(pool, &pool->head, cookie, 1, RT_POOL_AWAITED) == 1);
}

/* Takes a slot. Returns false if the list is empty: the thread that gives the
 * next slot wakes the caller. */
static bool pool_take_or_mark(struct rpma_rt_pool *pool, _Atomic uint64_t *list,
			      uint64_t *cookie)
{
	do {
		if (take_from(pool, list, cookie, 1, 0) == 1)
			return true;
	} while (!rt_pool_list_mark(list));
	return false;
}

bool rt_pool_take_or_await(struct rpma_rt_pool *pool, uint64_t *cookie)
{
	if (pool_take_or_mark(pool, &pool->head_of_sends, cookie))
		return true;
	if (pool_has_receives_to_spare(pool))
		return pool_take_or_mark(pool, &pool->head, cookie);
	rt_pool_list_unmark(&pool->head);
	return false;
}

void rt_pool_end_await(struct rpma_rt_pool *pool)
{
	rt_pool_list_unmark(&pool->head_of_sends);
	rt_pool_list_unmark(&pool->head);
}

static void pool_fill_lease(struct rpma_rt_pool *pool, uint64_t cookie,
			    uint32_t len, struct rpma_rt_lease *lease)
{
	uint32_t at = rt_pool_at(cookie);

	lease->pool = pool;
	lease->offset = rt_pool_offset(pool, at);
	lease->data = pool->memory + lease->offset;
	lease->mr = pool->mr;
	lease->len = len;
	lease->slot = at;
	lease->generation = pool_generation_of(cookie);
	lease->reserved32 = 0;
}

int rpma_rt_pool_take(struct rpma_rt_pool *pool, struct rpma_rt_lease *lease)
{
	uint64_t cookie;
	int ret;

	if (unlikely(pool == NULL || lease == NULL))
		return RT_REFUSE_NULL(pool, lease);
	ret = RT_REFUSE_FORKED(pool->rt);
	if (unlikely(ret))
		return ret;
	if (unlikely(!pool_take_to_send(pool, &cookie)))
		return RPMA_E_AGAIN;
	pool_fill_lease(pool, cookie, pool->slot_size, lease);
	return 0;
}

bool rpma_rt_completion_lease(const struct rpma_rt_completion *cmpl,
			      struct rpma_rt_lease *lease)
{
	struct rpma_rt_pool *pool;

	if (!(cmpl->flags & RPMA_RT_C_LEASE))
		return false;
	/* relaxed: the entry was stored before the receive was posted, and
	 * stays while the lease is out */
	pool = atomic_load_explicit(
		&rt_pool_table[cmpl->context >>
			       (RT_POOL_AT_BITS + RT_POOL_GEN_BITS)],
		memory_order_relaxed);
	if (pool == NULL)
		return false;
	/* the data of a write is not in the slot, so the length does not
	 * count */
	pool_fill_lease(pool, cmpl->context,
			cmpl->opcode == IBV_WC_RECV ? cmpl->byte_len : 0,
			lease);
	return true;
}

/* ----------------------------------------------------------------- feed --- */

/*
 * Receive queues that are low while their pool is empty: the poller asks, and
 * the thread that gives the next slot back answers.
 */

/* --------------------------------------------------------------- shares --- */

/* Returns the first share of a queue: what the queue wants while a half of the
 * pool is free, or the program has set the size and the size fits; then less
 * and less, and one receive at least. */
static uint32_t feed_first_share(const struct rt_feed *feed, uint32_t shares)
{
	const uint32_t receives = feed->feeder->pool->receives;
	uint32_t left = shares < receives ? receives - shares : 0;
	uint64_t part = (uint64_t)feed->base * left / (receives - receives / 2);

	if (feed->base == feed->size && feed->base <= left)
		return feed->base;
	if (part < feed->base)
		return part > 0 ? (uint32_t)part : 1;
	return feed->base;
}

/* Changes the share, unless another queue has changed its own just now. */
static void feed_set_share(struct rt_feed *feed, uint32_t shares,
			   uint32_t share)
{
	/* relaxed, both: a sum that orders nothing */
	if (atomic_compare_exchange_strong_explicit(
		    &feed->feeder->pool->shares, &shares,
		    shares + share - feed->share, memory_order_relaxed,
		    memory_order_relaxed))
		feed->share = share;
}

/* Gives a queue twice its share, if the pool has the slots: a half of the pool
 * is for messages that the program holds, and for queues that come later.
 * Returns false if the pool has too few slots. */
static bool feed_grow(struct rt_feed *feed, uint32_t shares)
{
	const uint32_t receives = feed->feeder->pool->receives;
	uint32_t share = 2 * feed->share;
	uint32_t most = receives / 2;

	if (share > feed->size)
		share = feed->size;
	if (feed->share < feed->base) {
		most = receives;
		if (share > feed->base)
			share = feed->base;
	}
	if (shares + (share - feed->share) > most)
		return false;
	feed_set_share(feed, shares, share);
	return true;
}

void rt_feed_begin(struct rt_feed *feed, uint32_t out)
{
	const struct rpma_rt_pool *pool = feed->feeder->pool;
	uint32_t shares;

	if (likely(rt_feed_is_set(feed)))
		return;
	/* relaxed: a sum that orders nothing */
	shares = atomic_load_explicit(&pool->shares, memory_order_relaxed);
	if (feed->share > feed->base && shares > pool->receives / 2) {
		feed_set_share(feed, shares,
			       feed->share / 2 > feed->base ? feed->share / 2
							    : feed->base);
		feed->is_short = true;
	} else if (feed->share < feed->size && feed->was_full &&
		   out <= feed->share / 2) {
		feed->is_short = !feed_grow(feed, shares);
	}
	feed->was_full = false;
}

void rt_feed_join(struct rt_feed *feed)
{
	struct rpma_rt_pool *pool = feed->feeder->pool;
	/* relaxed, both: a sum that orders nothing */
	uint32_t shares =
		atomic_load_explicit(&pool->shares, memory_order_relaxed);

	feed->share = feed_first_share(feed, shares);
	atomic_fetch_add_explicit(&pool->shares, feed->share,
				  memory_order_relaxed);
}

void rt_feed_leave(struct rt_feed *feed)
{
	/* relaxed: a sum that orders nothing */
	atomic_fetch_sub_explicit(&feed->feeder->pool->shares, feed->share,
				  memory_order_relaxed);
}

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
		"receive queue of poller %d is low: its peer waits. Receive "
		"queues may hold %u slots, the others are leases. Give leases "
		"back sooner, or make rpma_rt_pool_cfg.count larger",
		pool->name, pool->receives, feeder->poller->index,
		/* relaxed: for the log */
		atomic_load_explicit(&pool->shares, memory_order_relaxed));
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
	/* seq_cst [POOL-2]: pairs with the exchange in feed_answer_mt():
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

bool rt_feed_leaves_slots(const struct rt_feed *feed, bool is_low)
{
	struct rt_feeder *feeder = feed->feeder;

	/* relaxed: a hint. A queue that is not low has time, and a queue that
	 * is low finds the truth in its own feeder */
	if (likely(atomic_load_explicit(&feeder->pool->lows,
					memory_order_relaxed) == 0) ||
	    feed->is_hungry)
		return false;
	/* where the message was asked for, rt_feed_end_poller() only lists the
	 * queue: the caller does not fill again */
	return !is_low || (feeder->asked && !cds_list_empty(&feeder->hungry));
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

/* Sends the messages that pollers asked for. Any thread that has given slots
 * back. */
static void feed_answer_mt(struct rpma_rt_pool *pool)
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
		  void (*fill)(struct rt_feed *feed), uint32_t size,
		  uint32_t base)
{
	*feed = (struct rt_feed){
		.feeder = &pool->feeders[poller->index],
		.fill = fill,
		.size = size,
		.base = base,
		.share = base,
	};
}

/* ---------------------------------------------------------- giving back --- */

static inline void pool_push(struct rpma_rt_pool *pool, _Atomic uint64_t *list,
			     uint32_t first, uint32_t last)
{
	if (unlikely(rt_pool_list_push(list, pool->next, first + 1, last + 1) &
		     RT_POOL_AWAITED))
		rt_source_wake_mt(pool->waits);
}

/* Returns whether the slot belongs to the list for sends. */
static inline bool pool_is_to_send(const struct rpma_rt_pool *pool, uint32_t at)
{
	return at >= pool->receives;
}

/* Gives slots of the same list back, linked from first to last. */
static inline void pool_give_back_some(struct rpma_rt_pool *pool,
				       uint32_t first, uint32_t last)
{
	if (pool_is_to_send(pool, first)) {
		pool_push(pool, &pool->head_of_sends, first, last);
		return;
	}
	pool_push(pool, &pool->head, first, last);
	/* seq_cst [POOL-2]: after the push; pairs with feed_ask() */
	if (unlikely(atomic_load_explicit(&pool->asking,
					  memory_order_seq_cst) != 0))
		feed_answer_mt(pool);
}

static inline void pool_give_back(struct rpma_rt_pool *pool, uint32_t at)
{
	pool_give_back_some(pool, at, at);
}

/* Does let_go() where the word is not the expected word: others hold the slot,
 * too, or the holder does not hold the slot. */
__attribute__((noinline)) static bool
pool_let_go_shared(struct rpma_rt_pool *pool, uint32_t at, uint64_t from,
		   uint32_t generation, uint64_t holder)
{
	uint64_t to;

	while (pool_is_of(from, generation) &&
	       (from & (holder == 1 ? RT_POOL_SENDS_MASK : RT_POOL_PROGRAM))) {
		to = from - holder;
		if (!pool_has_holders(to))
			to = pool_free_word(generation);
		/* acq_rel [POOL-3]: the accesses of each holder to the slot's
		 * bytes come before the last holder's push, which publishes
		 * them */
		if (!atomic_compare_exchange_weak_explicit(
			    &pool->leases[at], &from, to, memory_order_acq_rel,
			    memory_order_relaxed))
			continue;
		if (!pool_has_holders(to))
			pool_give_back(pool, at);
		return true;
	}
	return false;
}

/* Ends a hold on the lease of the slot. holder: the holder's part of the word,
 * RT_POOL_PROGRAM for the program or 1 for a send. The last holder gives the
 * slot back. Returns false if there is no such holder. */
static inline __attribute__((always_inline)) bool
let_go(struct rpma_rt_pool *pool, uint32_t at, uint32_t generation,
       uint64_t holder)
{
	/* mostly there is no other holder */
	uint64_t from = (uint64_t)generation << RT_POOL_LEASE_SHIFT | holder;

	/* acquire [POOL-3]: the accesses of earlier holders to the slot's bytes
	 * come before the push, which publishes them */
	if (unlikely(!atomic_compare_exchange_strong_explicit(
		    &pool->leases[at], &from, pool_free_word(generation),
		    memory_order_acquire, memory_order_relaxed)))
		return pool_let_go_shared(pool, at, from, generation, holder);
	pool_give_back(pool, at);
	return true;
}

void rt_pool_give_back(struct rpma_rt_pool *pool, uint64_t cookie)
{
	let_go(pool, rt_pool_at(cookie), pool_generation_of(cookie),
	       RT_POOL_PROGRAM);
}

/* -------------------------------------------------------------- sending --- */

static _Atomic uint64_t *pool_word_at(const struct rpma_rt_lease *lease)
{
	return &lease->pool->leases[lease->slot];
}

bool rt_pool_is_held(const struct rpma_rt_lease *lease)
{
	uint64_t word;

	if (lease->pool == NULL || lease->slot >= lease->pool->count)
		return false;
	/* relaxed: rt_pool_begin_send() decides */
	word = atomic_load_explicit(pool_word_at(lease), memory_order_relaxed);
	return (lease->generation & 1) && pool_is_of(word, lease->generation) &&
	       (word & RT_POOL_PROGRAM);
}

bool rt_pool_leaves_slot(const struct rpma_rt_lease *lease,
			 const struct rpma_mr_local *mr, uint64_t offset,
			 uint64_t len)
{
	return mr == lease->pool->mr &&
	       !rt_pool_is_in_slot(lease->pool, lease->slot, offset, len);
}

bool rt_pool_begin_send(const struct rpma_rt_lease *lease, bool keeps)
{
	const uint64_t change = keeps ? 1 : 1 - RT_POOL_PROGRAM;
	uint64_t word = rt_pool_word_of(lease->generation);

	/* relaxed on failure: the word is checked again. release [POOL-3]: a
	 * caller that gives the lease away has finished its accesses to the
	 * bytes */
	while (!atomic_compare_exchange_weak_explicit(
		pool_word_at(lease), &word, word + change, memory_order_release,
		memory_order_relaxed)) {
		if (!pool_is_of(word, lease->generation) ||
		    !(word & RT_POOL_PROGRAM))
			return false;
	}
	return true;
}

void rt_pool_undo_send(const struct rpma_rt_lease *lease, bool keeps)
{
	/* the program may have released the lease meanwhile: then the undone
	 * send was the last holder */
	if (keeps)
		let_go(lease->pool, lease->slot, lease->generation, 1);
	else
		/* relaxed: the undone send holds the slot, and gives its hold
		 * back to the caller */
		atomic_fetch_add_explicit(pool_word_at(lease),
					  RT_POOL_PROGRAM - 1,
					  memory_order_relaxed);
}

void rt_pool_end_send(uint64_t cookie)
{
	/* relaxed: as in rpma_rt_completion_lease() */
	struct rpma_rt_pool *pool = atomic_load_explicit(
		&rt_pool_table[cookie >> (RT_POOL_AT_BITS + RT_POOL_GEN_BITS)],
		memory_order_relaxed);

	if (pool != NULL)
		let_go(pool, rt_pool_at(cookie), pool_generation_of(cookie), 1);
}

__attribute__((cold, noinline)) static int
pool_refuse_lease(const struct rpma_rt_lease *lease)
{
	if (lease == NULL)
		return RT_REFUSE_NULL(lease);
	if (lease->pool == NULL)
		return RT_REFUSE(RPMA_E_INVAL,
				 "lease.pool is NULL: fill the lease by "
				 "rpma_rt_pool_take() or "
				 "rpma_rt_completion_lease()");
	if (lease->slot >= lease->pool->count)
		return RT_REFUSE(RPMA_E_INVAL,
				 "lease.slot is %u, pool \"%s\" has %u slots",
				 lease->slot, lease->pool->name,
				 lease->pool->count);
	return RT_REFUSE(RPMA_E_INVAL,
			 "the lease of slot %u of pool \"%s\" was given back "
			 "before, or given away with a work request "
			 "(generation %u): give each back once",
			 lease->slot, lease->pool->name, lease->generation);
}

int rpma_rt_lease_release(const struct rpma_rt_lease *lease)
{
	struct rpma_rt_pool *pool;
	int ret;

	if (unlikely(lease == NULL || lease->pool == NULL))
		return pool_refuse_lease(lease);
	pool = lease->pool;
	ret = RT_REFUSE_FORKED(pool->rt);
	if (unlikely(ret))
		return ret;
	if (unlikely(lease->slot >= pool->count || !(lease->generation & 1) ||
		     !let_go(pool, lease->slot, lease->generation,
			     RT_POOL_PROGRAM)))
		return pool_refuse_lease(lease);
	return 0;
}

/* Slots of the same list that are given back together. The slots of a list are
 * a range. */
struct given_back {
	struct rpma_rt_pool *pool; /* NULL: no list */
	uint32_t begin, size;	   /* of the range */
	/* of the slots, from 1 on; first 0: no slot, and last is the next */
	uint32_t first, last;
};

static inline void pool_end_group(struct given_back *group)
{
	if (group->first != 0)
		pool_give_back_some(group->pool, group->first - 1,
				    group->last - 1);
	group->first = 0;
}

/* Ends the program's hold on leases that no other thread uses; the slots join
 * the group. Returns the number of leases in front of the first lease whose
 * slot is in another list, has other holders, or is not held by the program. */
__attribute__((noinline)) static uint32_t
pool_join_group(struct given_back *group,
		const struct rpma_rt_lease *const *leases, uint32_t count)
{
	struct rpma_rt_pool *const pool = group->pool;
	const uint32_t begin = group->begin;
	const uint32_t size = group->size;
	uint32_t first = group->first;
	/* read once: the stores below may not change these words */
	_Atomic uint64_t *const words = pool->leases;
	_Atomic uint32_t *const next = pool->next;
	const struct rpma_rt_lease *lease;
	const struct rpma_rt_lease *const *at;
	uint32_t generation;
	uint64_t word;
	size_t slot;

	for (at = leases; at != leases + count; at++) {
		lease = *at;
		if (unlikely(lease == NULL || lease->pool != pool))
			break;
		slot = lease->slot;
		if (unlikely((uint32_t)slot - begin >= size))
			break;
		/* acquire [POOL-3]: as in let_go(). Only the program holds the
		 * slot, so no other thread changes the word */
		word = atomic_load_explicit(&words[slot], memory_order_acquire);
		generation = lease->generation;
		if (unlikely(word != rt_pool_word_of(generation)))
			break;
		/* relaxed, both: published by the push [POOL-1] */
		atomic_store_explicit(&words[slot], pool_free_word(generation),
				      memory_order_relaxed);
		atomic_store_explicit(&next[slot], first, memory_order_relaxed);
		first = (uint32_t)slot + 1;
	}
	group->first = first;
	return (uint32_t)(at - leases);
}

/* Begins the group of a lease. Returns false if the lease cannot be looked
 * at. */
static bool pool_begin_group(struct given_back *group,
			     const struct rpma_rt_lease *lease)
{
	struct rpma_rt_pool *pool;

	if (lease == NULL || lease->pool == NULL ||
	    rt_context_check(lease->pool->rt))
		return false;
	pool = lease->pool;
	group->pool = pool;
	group->last = lease->slot + 1;
	if (pool_is_to_send(pool, lease->slot)) {
		group->begin = pool->receives;
		group->size = pool->count - pool->receives;
	} else {
		group->begin = 0;
		group->size = pool->receives;
	}
	group->first = 0;
	return true;
}

int rpma_rt_leases_release(const struct rpma_rt_lease *const *leases,
			   uint32_t count)
{
	struct given_back group = {0};
	int ret = 0;
	int error;
	uint32_t joined;
	uint32_t i = 0;

	if (unlikely(leases == NULL && count > 0))
		return RT_REFUSE_NULL(leases);
	while (i < count) {
		joined =
			pool_begin_group(&group, leases[i])
				? pool_join_group(&group, &leases[i], count - i)
				: 0;
		pool_end_group(&group);
		i += joined;
		if (likely(joined > 0))
			continue;
		/* held by others, too, or refused */
		error = rpma_rt_lease_release(leases[i++]);
		ret = error ? error : ret;
	}
	return ret;
}

void rt_pool_drop(const struct rpma_rt_completion *item)
{
	struct rpma_rt_lease lease;

	if (rpma_rt_completion_lease(item, &lease))
		rt_pool_give_back(lease.pool, item->context);
}

uint32_t rt_pool_out(const struct rpma_rt_pool *pool, uint32_t count)
{
	uint32_t out = 0;
	uint32_t i;

	/* relaxed: a count; exact where the caller orders the gives */
	for (i = 0; i < count; i++)
		out += pool_generation_at(&pool->leases[i]) & 1;
	return out;
}
