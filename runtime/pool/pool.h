/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * pool.h -- registered memory in slots: its life (life.c), taking and giving
 * back slots (slots.c), futures of the next slot (waits.c). Receive queues that
 * are filled from it: feed.h.
 * doc/protocols/pool.md has states, owners, and why no wake-up is lost.
 */

#ifndef RT_POOL_POOL_H
#define RT_POOL_POOL_H

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
 * by one compare-and-swap each. Numbers are wider than those of base/turn.h,
 * and no bound stands in the word: a count of takes does, and whether futures
 * wait for a slot. doc/protocols/pool.md.
 */

/* the head: number of the first free slot, from 1 on, 0 for an empty list; the
 * bit; above these a count of takes, which tells an old head from a new head */
#define RT_POOL_FIRST_MASK ((UINT64_C(1) << 24) - 1)
#define RT_POOL_AWAITED	   (UINT64_C(1) << 24)
#define RT_POOL_TAKE	   (UINT64_C(1) << 25)

/* Makes a list of the slots from first to end. next[i] is the number behind
 * free slot i + 1. Nobody knows the slots yet. */
static inline void rt_pool_list_init(_Atomic uint64_t *list,
				     _Atomic uint32_t *next, uint32_t first,
				     uint32_t end)
{
	uint32_t i;

	/* relaxed, both: nobody knows the list */
	for (i = first; i + 1 < end; i++)
		atomic_store_explicit(&next[i], i + 2, memory_order_relaxed);
	atomic_store_explicit(list, first < end ? first + 1 : 0,
			      memory_order_relaxed);
}

/* Takes up to max slots; stores their numbers, and returns how many. Takes
 * nothing from a list with the bit barred. */
static inline __attribute__((always_inline)) uint32_t
rt_pool_list_take(_Atomic uint64_t *list, const _Atomic uint32_t *next,
		  uint64_t *numbers, uint32_t max, uint64_t barred)
{
	uint64_t head;
	uint32_t number;
	uint32_t count;

	/* acquire [POOL-1]: pairs with rt_pool_list_push() */
	head = atomic_load_explicit(list, memory_order_acquire);
	do {
		number = (uint32_t)(head & RT_POOL_FIRST_MASK);
		if (number == 0 || unlikely(head & barred))
			return 0;
		count = 0;
		/* relaxed: written before the push that the head came with.
		 * Others may take these slots: then the head is another */
		do {
			numbers[count] = number;
			number = atomic_load_explicit(&next[number - 1],
						      memory_order_relaxed);
		} while (++count < max && number != 0);
		/* acquire: as above; others' takes and gives change it */
	} while (!atomic_compare_exchange_weak_explicit(
		list, &head,
		((head & ~RT_POOL_FIRST_MASK) + RT_POOL_TAKE) | number,
		memory_order_acquire, memory_order_acquire));
	return count;
}

/* Gives a slot back; returns the former head. */
static inline uint64_t rt_pool_list_push(_Atomic uint64_t *list,
					 _Atomic uint32_t *next,
					 uint32_t number)
{
	/* relaxed: the exchange looks again */
	uint64_t head = atomic_load_explicit(list, memory_order_relaxed);

	do {
		/* relaxed: the exchange publishes it */
		atomic_store_explicit(&next[number - 1],
				      (uint32_t)(head & RT_POOL_FIRST_MASK),
				      memory_order_relaxed);
		/* seq_cst: releases the slot, with what was done to its bytes
		 * [POOL-1], and comes before the look at asking [POOL-2]; pairs
		 * with rt_pool_list_mark() [POOL-4] */
	} while (!atomic_compare_exchange_weak_explicit(
		list, &head, (head & ~RT_POOL_FIRST_MASK) | number,
		memory_order_seq_cst, memory_order_relaxed));
	return head;
}

/* Sets the bit of a list; false: the list has a slot. */
static inline bool rt_pool_list_mark(_Atomic uint64_t *list)
{
	/* relaxed: the exchange looks again */
	uint64_t head = atomic_load_explicit(list, memory_order_relaxed);

	while (!(head & RT_POOL_FIRST_MASK)) {
		/* seq_cst [POOL-4]: pairs with rt_pool_list_push(), and comes
		 * before the caller's look at fills */
		if (atomic_compare_exchange_weak_explicit(
			    list, &head, head | RT_POOL_AWAITED,
			    memory_order_seq_cst, memory_order_relaxed))
			return true;
	}
	return false;
}

/* Clears the bit. REQUIRES: the caller is the thread with the mark. */
static inline void rt_pool_list_unmark(_Atomic uint64_t *list)
{
	/* relaxed, both: a giver that saw the bit wakes this thread in vain */
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

#define RT_POOL_POOLS	 1024u /* in this process, at once */
#define RT_POOL_GEN_BITS 18
#define RT_POOL_GEN_MASK ((1u << RT_POOL_GEN_BITS) - 1)
#define RT_POOL_AT_BITS	 20 /* of a slot's index */
#define RT_POOL_AT_MASK	 ((1u << RT_POOL_AT_BITS) - 1)

/* rpma_rt_pool.leases: the generation, odd: out; below the generation, of a
 * slot that is out, who holds the slot: the program, and so many work
 * requests */
#define RT_POOL_LEASE_SHIFT 32
#define RT_POOL_PROGRAM	    (UINT64_C(1) << 31)
#define RT_POOL_SENDS_MASK  (RT_POOL_PROGRAM - 1)

struct rpma_rt_pool {
	/* immutable after new */
	struct rpma_rt *rt;
	_Atomic uint64_t *leases; /* one a slot */
	_Atomic uint32_t *next;	  /* one a slot, see list.h */
	char *memory;
	struct rpma_mr_local *mr;
	uint64_t stride; /* from one slot to the next */
	uint32_t slot_size;
	uint32_t count;
	uint32_t receives; /* the first slots; the others are for sends */
	uint32_t number;   /* in the table of this process */
	struct rpma_peer *peer;
	struct rt_feeder *feeders; /* one a poller */
	struct rt_futures *waits;  /* of the next slot; a source */
	char name[RPMA_RT_NAME_MAX + 1];

	/* any thread: the free slots for receives, and for sends */
	alignas(RT_APART) _Atomic uint64_t head;
	alignas(RT_APART) _Atomic uint64_t head_of_sends;
	/* which pollers ask for a message with the next slot: bits. Read by
	 * whoever gives back, written seldom */
	alignas(RT_APART) _Atomic uint64_t asking;
	_Atomic uint32_t lows; /* feeders with a receive queue that is low */
	_Atomic uint64_t times_low;

	/* under the runtime's lock */
	uint32_t users;		  /* connections, listeners, SRQs */
	_Atomic uint32_t fills;	  /* receives of the users' full queues */
	_Atomic uint32_t leaving; /* of them: CLOSED is out, DONE comes */
	pthread_cond_t left;	  /* users became fewer */
	struct rpma_rt_pool *next_ended;
	struct cds_list_head listed; /* for the dump */
	_Atomic bool delete_refused; /* likewise */
	_Atomic bool is_short_logged;
};

/* ---------------------------------------------------------------- slots --- */

/* Where a slot is: 48 bits, the context of its receives. */
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

/* Any thread: is there no slot for a receive now? seq_cst: before a poller
 * sleeps on it. */
static inline bool rt_pool_is_empty(struct rpma_rt_pool *pool)
{
	/* seq_cst [POOL-2]: after the bit in asking; pairs with the push */
	return (atomic_load_explicit(&pool->head, memory_order_seq_cst) &
		RT_POOL_FIRST_MASK) == 0;
}

/* Any thread: takes up to max slots for receives, out from here on; their
 * cookies. How many. Lock-free. */
uint32_t rt_pool_take(struct rpma_rt_pool *pool, uint64_t *cookies,
		      uint32_t max);
/* On the poller of the pool's futures: takes a slot as the program may, and
 * returns true; or makes each later giver of such a slot call
 * rt_source_wake_mt(), until rt_pool_end_await(). [POOL-4] */
bool rt_pool_take_or_await(struct rpma_rt_pool *pool, uint64_t *cookie);
void rt_pool_end_await(struct rpma_rt_pool *pool);
/* Any thread: gives back the slot of a cookie that was taken, once. */
void rt_pool_give_back(struct rpma_rt_pool *pool, uint64_t cookie);
/* Returns the cookie of a lease. */
static inline uint64_t rt_pool_cookie_of(const struct rpma_rt_lease *lease)
{
	return rt_pool_cookie(lease->pool, lease->slot, lease->generation);
}
/* Does the program hold that lease? */
bool rt_pool_is_held(const struct rpma_rt_lease *lease);
/* Inside a gate: a work request takes a lease, and with keeps the program holds
 * the lease, too. False: the program does not hold the lease. */
bool rt_pool_begin_send(const struct rpma_rt_lease *lease, bool keeps);
/* Undoes rt_pool_begin_send(): the work request was not posted. */
void rt_pool_undo_send(const struct rpma_rt_lease *lease, bool keeps);
/* On the poller: the device has done with a work request with the lease of that
 * cookie. */
void rt_pool_end_send(uint64_t cookie);
/* A completion that no consumer will take: so does it, if it has a lease. */
void rt_pool_drop(const struct rpma_rt_completion *item);
/* How many of the first slots are out, up to count; walks over all of them, and
 * is exact only while no other thread takes or gives back. */
uint32_t rt_pool_out(const struct rpma_rt_pool *pool, uint32_t count);

/* The pools of this process, by number. */
extern _Atomic(struct rpma_rt_pool *) rt_pool_table[RT_POOL_POOLS]
	__attribute__((visibility("hidden")));

/* ---------------------------------------------------------------- users --- */

/* Is it a pool that an object of rt and peer may name? 0, or RPMA_E_INVAL,
 * logged by the name of the field. */
int rt_pool_check_of(const struct rpma_rt_pool *pool, const struct rpma_rt *rt,
		     const struct rpma_peer *peer, const char *field);
/* One more user, and one less; NULL: nothing. REQUIRES: the runtime's lock. */
void rt_pool_ref(struct rpma_rt_pool *pool);
void rt_pool_unref(struct rpma_rt_pool *pool);
/* rt_pool_use() counts a receive queue of that many receives, before the queue
 * has receives; rt_pool_disuse() takes the queue out of the count. NULL:
 * nothing. REQUIRES: the runtime's lock. */
void rt_pool_use(struct rpma_rt_pool *pool, uint32_t receives);
void rt_pool_disuse(struct rpma_rt_pool *pool, uint32_t receives);
/* Logs, once a pool, that the pool has not as many slots for receives as the
 * receive queues hold. NULL: nothing. Without locks, behind rt_pool_use(). */
void rt_pool_log_short(struct rpma_rt_pool *pool);
/* Returns how a pool is short, as the end of a sentence about that pool. */
struct rt_pool_words rt_pool_short_words(uint32_t receives, uint32_t fills);
/* Of a connection: before it writes CLOSED, on its poller; when it is DONE,
 * under the runtime's lock. NULL: nothing. */
void rt_pool_announce_unref(struct rpma_rt_pool *pool);
void rt_pool_unref_announced(struct rpma_rt_pool *pool);

/* -------------------------------------------------------------- waiting --- */

/* A stop: futures that wait for a slot of any pool get POOL_CLOSED, and so do
 * further futures. The pollers still run. */
void rt_pool_end_all(struct rpma_rt *rt);

/* The runtime is freed: what its stop left of deleted pools. */
void rt_pool_free_ended(struct rpma_rt *rt);

#endif /* RT_POOL_POOL_H */
