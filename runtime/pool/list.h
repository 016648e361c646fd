/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * list.h -- a list of free slots, by number: any thread takes slots and gives
 * slots back, by one compare-and-swap each. Numbers are wider than those of
 * base/freelist.h, and no bound stands in the word: a count of takes does, and
 * whether futures wait for a slot. doc/protocols/pool.md.
 */

#ifndef RT_POOL_LIST_H
#define RT_POOL_LIST_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/likely.h"

/* the head: number of the first free slot, from 1 on, 0 for an empty list; the
 * bit; above these a count of takes, which tells an old head from a new head */
#define RT_POOL_FIRST_MASK ((UINT64_C(1) << 24) - 1)
#define RT_POOL_AWAITED	   (UINT64_C(1) << 24)
#define RT_POOL_TAKE	   (UINT64_C(1) << 25)

struct rt_pool_slot {
	_Atomic uint64_t lease; /* see pool.h */
	_Atomic uint32_t next;	/* of a free slot: the next, as in the head */
};

/* Returns the number behind a free slot, or behind a slot of the caller. */
static inline uint32_t rt_pool_list_next(const struct rt_pool_slot *slots,
					 uint32_t number)
{
	/* relaxed: written before the push that the head came with */
	return atomic_load_explicit(&slots[number - 1].next,
				    memory_order_relaxed);
}

/* Makes a list of the slots from first to end. Nobody knows the slots yet. */
static inline void rt_pool_list_init(_Atomic uint64_t *list,
				     struct rt_pool_slot *slots, uint32_t first,
				     uint32_t end)
{
	uint32_t i;

	/* relaxed, both: nobody knows the list */
	for (i = first; i + 1 < end; i++)
		atomic_store_explicit(&slots[i].next, i + 2,
				      memory_order_relaxed);
	atomic_store_explicit(list, first < end ? first + 1 : 0,
			      memory_order_relaxed);
}

/* Takes up to max slots; returns the number of the first, and how many. The
 * others are linked behind the first. Takes nothing from a list with the bit
 * barred. */
static inline __attribute__((always_inline)) uint32_t
rt_pool_list_take(_Atomic uint64_t *list, const struct rt_pool_slot *slots,
		  uint32_t max, uint64_t barred, uint32_t *count)
{
	uint64_t head;
	uint32_t next;

	/* acquire [POOL-1]: pairs with rt_pool_list_push() */
	head = atomic_load_explicit(list, memory_order_acquire);
	do {
		next = (uint32_t)(head & RT_POOL_FIRST_MASK);
		*count = 0;
		if (next == 0 || unlikely(head & barred))
			return 0;
		/* others may take these slots: then the head is another */
		do
			next = rt_pool_list_next(slots, next);
		while (++*count < max && next != 0);
		/* acquire: as above; others' takes and gives change it */
	} while (!atomic_compare_exchange_weak_explicit(
		list, &head,
		((head & ~RT_POOL_FIRST_MASK) + RT_POOL_TAKE) | next,
		memory_order_acquire, memory_order_acquire));
	return (uint32_t)(head & RT_POOL_FIRST_MASK);
}

/* Gives a slot back; returns the former head. */
static inline uint64_t rt_pool_list_push(_Atomic uint64_t *list,
					 struct rt_pool_slot *slots,
					 uint32_t number)
{
	/* relaxed: the exchange looks again */
	uint64_t head = atomic_load_explicit(list, memory_order_relaxed);

	do {
		/* relaxed: the exchange publishes it */
		atomic_store_explicit(&slots[number - 1].next,
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

#endif /* RT_POOL_LIST_H */
