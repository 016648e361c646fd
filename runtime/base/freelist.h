/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * freelist.h -- free slots of an array, by number: any thread takes chains of
 * slots and gives chains back, by one compare-and-swap each. A tag tells a list
 * from an equal list of before.
 */

#ifndef RT_BASE_FREELIST_H
#define RT_BASE_FREELIST_H

#include <stdatomic.h>
#include <stdint.h>

#define RT_FREELIST_MAX 0xffff /* slots */

struct rt_freelist {
	/* tag:32 | slots in use:16 | number of the first free slot:16 */
	_Atomic uint64_t word;
	/* of slot n the slot behind it, at n - 1; of a slot that is in use the
	 * owner's */
	_Atomic uint16_t *next;
};

/* Makes a list of so many free slots in the memory of next. */
void rt_freelist_init(struct rt_freelist *list, _Atomic uint16_t *next,
		      uint16_t slots);
/*
 * Takes count slots, unless more than limit would be in use then: a chain from
 * the number returned on. 0: there are not so many. REQUIRES: limit is at most
 * the number of slots. Thread: any.
 */
uint16_t rt_freelist_take(struct rt_freelist *list, uint16_t count,
			  uint16_t limit);
/* Gives a chain of count slots back, from top to bottom. Thread: any. */
void rt_freelist_give(struct rt_freelist *list, uint16_t top, uint16_t bottom,
		      uint16_t count);

/* Returns how many slots are in use. */
static inline uint16_t rt_freelist_used(const struct rt_freelist *list)
{
	/* relaxed: a count that is old when it is read */
	return (uint16_t)(atomic_load_explicit(&list->word,
					       memory_order_relaxed) >>
			  16);
}

/* The slot behind one that the caller owns; 0: none. */
static inline uint16_t rt_freelist_next(const struct rt_freelist *list,
					uint16_t slot)
{
	/* relaxed: the exchange that brought the chain orders it */
	return atomic_load_explicit(&list->next[slot - 1],
				    memory_order_relaxed);
}

static inline void rt_freelist_link(struct rt_freelist *list, uint16_t slot,
				    uint16_t next)
{
	/* relaxed: the exchange that shows the chain orders it */
	atomic_store_explicit(&list->next[slot - 1], next,
			      memory_order_relaxed);
}

#endif /* RT_BASE_FREELIST_H */
