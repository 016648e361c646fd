/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * list.h -- a list of free slots, by number: any thread takes slots and gives
 * slots back, by one compare-and-swap each. Numbers are wider than those of
 * base/turn.h, and no bound stands in the word: a count of takes does, and
 * whether futures wait for a slot. doc/protocols/pool.md.
 */

#ifndef RT_POOL_LIST_H
#define RT_POOL_LIST_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/lang.h"

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

#endif /* RT_POOL_LIST_H */
