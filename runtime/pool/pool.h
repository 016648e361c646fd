/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * pool.h -- registered memory in slots: life of a pool, futures of the next
 * slot (life.c); taking slots and giving slots back (slots.c). Receive queues
 * that a pool keeps filled: feed.h. doc/protocols/pool.md has states, owners,
 * and why no wake-up is lost.
 */

#ifndef RT_POOL_POOL_H
#define RT_POOL_POOL_H

#include <assert.h>
#include <pthread.h>
#include <stdalign.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include <urcu/list.h>

#include "rpma_rt.h"
#include "base/lang.h"
#include "base/order.h"

/* ----------------------------------------------------------------- list --- */

/*
 * A list of free slots, by number: any thread takes slots and gives slots back,
 * by a compare-and-swap each. Numbers are wider than in base/freelist.h, and
 * the head has no bound: the head has a count of takes, and says whether
 * futures wait for a slot. doc/protocols/pool.md.
 */

/* the head of a list: the number of the first free slot, from 1 on, 0 for an
 * empty list; above the number the bit AWAITED; above the bit a count of takes,
 * which tells an old head from a new head */
#define RT_POOL_FIRST_MASK ((UINT64_C(1) << 24) - 1)
#define RT_POOL_AWAITED	   (UINT64_C(1) << 24)
#define RT_POOL_TAKE	   (UINT64_C(1) << 25)

/* Makes a list of the slots from `first` to before `end`. next[i] is the number
 * behind free slot i + 1. No other thread uses the slots yet. */
static inline void rt_pool_list_init(_Atomic uint64_t *list,
				     _Atomic uint32_t *next, uint32_t first,
				     uint32_t end)
{
	uint32_t i;

	/* relaxed, both: no other thread knows the list */
	for (i = first; i + 1 < end; i++)
		atomic_store_explicit(&next[i], i + 2, memory_order_relaxed);
	atomic_store_explicit(list, first < end ? first + 1 : 0,
			      memory_order_relaxed);
}

/* Takes up to max slots; stores the slots' numbers, and returns how many. Takes
 * nothing from a list that has the bit `barred`. */
static inline __attribute__((always_inline)) uint32_t
rt_pool_list_take(_Atomic uint64_t *list, const _Atomic uint32_t *next,
		  uint64_t *numbers, uint32_t max, uint64_t barred)
{
	uint64_t head;
	size_t number; /* as wide as an address: no conversion in the walk */
	uint32_t count;

	/* acquire [POOL-1]: pairs with the exchange in rt_pool_list_push() */
	head = atomic_load_explicit(list, memory_order_acquire);
	do {
		number = head & RT_POOL_FIRST_MASK;
		if (number == 0 || unlikely(head & barred))
			return 0;
		count = 0;
		/* relaxed: `next` was written before the push that published
		 * the head. If another thread takes these slots meanwhile, the
		 * head has changed */
		do {
			numbers[count] = number;
			number = atomic_load_explicit(&next[number - 1],
						      memory_order_relaxed);
		} while (++count < max && number != 0);
		/* acquire [POOL-1]: as for the load above; takes and gives of
		 * other threads change the head */
	} while (!atomic_compare_exchange_weak_explicit(
		list, &head,
		((head & ~RT_POOL_FIRST_MASK) + RT_POOL_TAKE) | number,
		memory_order_acquire, memory_order_acquire));
	return count;
}

/* Gives slots back, linked from first to last; returns the former head. */
static inline uint64_t rt_pool_list_push(_Atomic uint64_t *list,
					 _Atomic uint32_t *next, uint32_t first,
					 uint32_t last)
{
	/* relaxed: the compare-and-swap looks again */
	uint64_t head = atomic_load_explicit(list, memory_order_relaxed);

	do {
		/* relaxed: the compare-and-swap publishes `next` */
		atomic_store_explicit(&next[last - 1],
				      (uint32_t)(head & RT_POOL_FIRST_MASK),
				      memory_order_relaxed);
		/* seq_cst: releases the slots, with all accesses to the slots'
		 * bytes, to rt_pool_list_take() [POOL-1]; comes before the look
		 * at `asking` [POOL-2]; pairs with rt_pool_list_mark()
		 * [POOL-4] */
	} while (!atomic_compare_exchange_weak_explicit(
		list, &head, (head & ~RT_POOL_FIRST_MASK) | first,
		memory_order_seq_cst, memory_order_relaxed));
	return head;
}

/* Sets the bit AWAITED of a list. Returns false if the list has a slot. */
static inline bool rt_pool_list_mark(_Atomic uint64_t *list)
{
	/* relaxed: the compare-and-swap looks again */
	uint64_t head = atomic_load_explicit(list, memory_order_relaxed);

	while (!(head & RT_POOL_FIRST_MASK)) {
		/* seq_cst [POOL-4]: pairs with the exchange in
		 * rt_pool_list_push(), and comes before the caller's look at
		 * `fills` */
		if (atomic_compare_exchange_weak_explicit(
			    list, &head, head | RT_POOL_AWAITED,
			    memory_order_seq_cst, memory_order_relaxed))
			return true;
	}
	return false;
}

/* Clears the bit AWAITED. REQUIRES: the caller is the thread that sets the
 * bit */
static inline void rt_pool_list_unmark(_Atomic uint64_t *list)
{
	/* relaxed, both: at worst a giver that saw the bit wakes this thread in
	 * vain */
	if (atomic_load_explicit(list, memory_order_relaxed) & RT_POOL_AWAITED)
		atomic_fetch_and_explicit(list, ~RT_POOL_AWAITED,
					  memory_order_relaxed);
}

/* ----------------------------------------------------------------- pool --- */

struct rt_feeder;
struct rt_futures;

/* the end of a sentence about a pool */
struct rt_pool_words {
	char text[320];
};

#define RT_POOL_POOLS	 1024u /* most pools in this process at a time */
#define RT_POOL_GEN_BITS RPMA_RT_LEASE_GENERATION_BITS
#define RT_POOL_GEN_MASK ((1u << RT_POOL_GEN_BITS) - 1)
#define RT_POOL_AT_BITS	 RPMA_RT_LEASE_SLOT_BITS
#define RT_POOL_AT_MASK	 ((1u << RT_POOL_AT_BITS) - 1)

/* parts of rpma_rt_pool.leases. The generation: odd means that the slot is out.
 * Below, the holders of such a slot: the bit of the program, and the number of
 * work requests */
#define RT_POOL_LEASE_SHIFT 32
#define RT_POOL_PROGRAM	    (UINT64_C(1) << 31)
#define RT_POOL_SENDS_MASK  (RT_POOL_PROGRAM - 1)

struct rpma_rt_pool {
	/* immutable after new */
	struct rpma_rt *rt;
	_Atomic uint64_t *leases; /* a word for each slot */
	/* a number for each slot, see the list above */
	_Atomic uint32_t *next;
	char *memory;
	struct rpma_mr_local *mr;
	uint64_t stride; /* bytes from a slot to the next slot */
	uint32_t slot_size;
	uint32_t count;
	/* number of slots for receives, the first slots; the other slots are
	 * for sends */
	uint32_t receives;
	uint32_t number; /* number of the pool in this process */
	struct rpma_peer *peer;
	struct rt_feeder *feeders; /* an element for each poller */
	struct rt_futures *waits;  /* futures of the next slot; a source */
	char name[RPMA_RT_NAME_MAX + 1];

	/* for any thread: the lists of free slots for receives, and for
	 * sends */
	alignas(RT_APART) _Atomic uint64_t head;
	alignas(RT_APART) _Atomic uint64_t head_of_sends;
	/* bits: pollers that ask for a message with the next slot. Every give
	 * reads the word, which is written seldom */
	alignas(RT_APART) _Atomic uint64_t asking;
	/* number of feeders with a receive queue that is low */
	_Atomic uint32_t lows;
	_Atomic uint32_t shares; /* the sum of the shares of all feeds */
	_Atomic uint64_t times_low;

	/* under the runtime's lock: */
	uint32_t users; /* connections, listeners, SRQs */
	/* number of receives that the users' queues want */
	_Atomic uint32_t fills;
	/* users whose CLOSED was written and whose DONE will come */
	_Atomic uint32_t leaving;
	pthread_cond_t left; /* signalled when the number of users fell */
	struct rpma_rt_pool *next_ended;
	struct cds_list_head listed; /* for the dump */
	_Atomic bool delete_refused; /* for the dump */
	_Atomic bool is_short_logged;
};

/* ---------------------------------------------------------------- slots --- */

/* Returns the cookie of a slot: 48 bits, the context of the slot's receives. */
static inline uint64_t rt_pool_cookie(const struct rpma_rt_pool *pool,
				      uint32_t at, uint32_t generation)
{
	return (uint64_t)pool->number << (RT_POOL_AT_BITS + RT_POOL_GEN_BITS) |
	       (uint64_t)at << RT_POOL_GEN_BITS | generation;
}

static inline uint32_t rt_pool_at(uint64_t cookie)
{
	return (uint32_t)(cookie >> RT_POOL_GEN_BITS) & RT_POOL_AT_MASK;
}

static inline uint64_t rt_pool_offset(const struct rpma_rt_pool *pool,
				      uint32_t at)
{
	return at * pool->stride;
}

/* Returns whether the bytes of the region lie in the slot. */
static inline bool rt_pool_is_in_slot(const struct rpma_rt_pool *pool,
				      uint32_t at, uint64_t offset,
				      uint64_t len)
{
	uint64_t end;

	/* an offset before the slot is a difference below zero: the sum
	 * overflows, or is above slot_size */
	return !__builtin_add_overflow(offset - rt_pool_offset(pool, at), len,
				       &end) &&
	       end <= pool->slot_size;
}

/* Returns whether no slot for receives is free now. Any thread. seq_cst: for a
 * poller that sleeps then. */
static inline bool rt_pool_is_empty(struct rpma_rt_pool *pool)
{
	/* seq_cst [POOL-2]: after the bit in `asking`; pairs with
	 * rt_pool_list_push() */
	return (atomic_load_explicit(&pool->head, memory_order_seq_cst) &
		RT_POOL_FIRST_MASK) == 0;
}

/* Returns the word of a slot that only the program holds. */
static inline uint64_t rt_pool_word_of(uint32_t generation)
{
	return (uint64_t)generation << RT_POOL_LEASE_SHIFT | RT_POOL_PROGRAM;
}

/* Begins a lease with the next generation, and returns the cookie. The slot is
 * out of the list, so only the caller uses the slot. of_pool: the cookie of
 * slot 0, generation 0, or a word that has further bits. number: from
 * rt_pool_list_take() */
static inline uint64_t rt_pool_begin_lease(_Atomic uint64_t *leases,
					   uint64_t of_pool, uint64_t number)
{
	const uint64_t at = number - 1;
	/* relaxed: [POOL-1] ordered the former generation */
	const uint64_t word =
		atomic_load_explicit(&leases[at], memory_order_relaxed) +
		rt_pool_word_of(1);

	assert(word == rt_pool_word_of(
			       (uint32_t)(word >> RT_POOL_LEASE_SHIFT)) &&
	       (word >> RT_POOL_LEASE_SHIFT & 1));
	/* relaxed: the hand-over of the lease orders this generation */
	atomic_store_explicit(&leases[at], word, memory_order_relaxed);
	return of_pool + (at << RT_POOL_GEN_BITS) +
	       (word >> RT_POOL_LEASE_SHIFT);
}

/* Takes up to max slots for receives, which are out from here on, and stores
 * the slots' cookies. Returns the number of slots. Any thread. Lock-free. */
uint32_t rt_pool_take(struct rpma_rt_pool *pool, uint64_t *cookies,
		      uint32_t max);
/* Takes a slot as the program may, and returns true. Without a free slot
 * returns false: each later giver of such a slot calls rt_source_wake_mt(),
 * until rt_pool_end_await() [POOL-4]. On the poller of the pool's futures. */
bool rt_pool_take_or_await(struct rpma_rt_pool *pool, uint64_t *cookie);
void rt_pool_end_await(struct rpma_rt_pool *pool);
/* Gives back the slot of a cookie that was taken, once. Any thread. */
void rt_pool_give_back(struct rpma_rt_pool *pool, uint64_t cookie);
/* Returns the cookie of a lease. */
static inline uint64_t rt_pool_cookie_of(const struct rpma_rt_lease *lease)
{
	return rt_pool_cookie(lease->pool, lease->slot, lease->generation);
}
/* Returns whether the program holds the lease. */
bool rt_pool_is_held(const struct rpma_rt_lease *lease);
/* Returns whether the bytes are in the region of the pool, and leave the slot
 * of the lease, which is held. */
bool rt_pool_leaves_slot(const struct rpma_rt_lease *lease,
			 const struct rpma_mr_local *mr, uint64_t offset,
			 uint64_t len);
/* Makes a work request a holder of the lease, inside a gate. With `keeps` the
 * program stays a holder, too. Returns false if the program does not hold the
 * lease. */
bool rt_pool_begin_send(const struct rpma_rt_lease *lease, bool keeps);
/* Undoes rt_pool_begin_send(): the work request was not posted. */
void rt_pool_undo_send(const struct rpma_rt_lease *lease, bool keeps);
/* Ends the hold of a work request on the lease with that cookie: the device has
 * done with the work request. On the poller. */
void rt_pool_end_send(uint64_t cookie);
/* Gives back the lease, if any, of a completion that no consumer will take. */
void rt_pool_drop(const struct rpma_rt_completion *item);
/* Returns how many of the first `count` slots are out. Looks at each slot, and
 * is exact only while no other thread takes slots or gives slots back. */
uint32_t rt_pool_out(const struct rpma_rt_pool *pool, uint32_t count);

/* The pools of this process, by number. */
extern _Atomic(struct rpma_rt_pool *) rt_pool_table[RT_POOL_POOLS]
	__attribute__((visibility("hidden")));

/* ---------------------------------------------------------------- users --- */

/* Checks that an object of rt and peer may name the pool. Returns 0, or
 * RPMA_E_INVAL, logged with the name of the field. */
int rt_pool_check_of(const struct rpma_rt_pool *pool, const struct rpma_rt *rt,
		     const struct rpma_peer *peer, const char *field);
/* Count a user, and take a user out of the count; NULL: do nothing. REQUIRES:
 * the runtime's lock. */
void rt_pool_ref(struct rpma_rt_pool *pool);
void rt_pool_unref(struct rpma_rt_pool *pool);
/* rt_pool_use() counts a receive queue with that many receives, before the
 * queue has receives; rt_pool_disuse() takes the queue out of the count. NULL:
 * do nothing. REQUIRES: the runtime's lock. */
void rt_pool_use(struct rpma_rt_pool *pool, uint32_t receives);
void rt_pool_disuse(struct rpma_rt_pool *pool, uint32_t receives);
/* Logs, once for each pool, that the pool has fewer slots for receives than the
 * receive queues want. NULL: does nothing. Without locks, after
 * rt_pool_use(). */
void rt_pool_log_short(struct rpma_rt_pool *pool);
/* Returns how a pool is short of slots, as the end of a sentence about the
 * pool. */
struct rt_pool_words rt_pool_short_words(uint32_t receives, uint32_t fills);

/* Take a connection out of the users in two steps: before the connection writes
 * CLOSED, on its poller; when the connection is DONE, under the runtime's lock.
 * NULL: do nothing. */
static inline void rt_pool_announce_unref(struct rpma_rt_pool *pool)
{
	if (pool != NULL)
		/* relaxed: the later publication of CLOSED orders the store */
		atomic_fetch_add_explicit(&pool->leaving, 1,
					  memory_order_relaxed);
}

void rt_pool_unref_announced(struct rpma_rt_pool *pool);

/* -------------------------------------------------------------- waiting --- */

/* Ends the futures of slots in a stop: futures that wait for a slot of any pool
 * get POOL_CLOSED, and so do further futures. The pollers still run. */
void rt_pool_end_all(struct rpma_rt *rt);

/* Frees the rest of deleted pools, together with the runtime. */
void rt_pool_free_ended(struct rpma_rt *rt);

#endif /* RT_POOL_POOL_H */
