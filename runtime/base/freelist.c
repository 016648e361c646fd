/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/* freelist.c -- takes and gives chains of free slots; see freelist.h. */

#include "base/freelist.h"

#define FIRST_MASK ((uint64_t)0xffff)
#define USED_SHIFT 16
#define TAG_SHIFT  32

static uint16_t first_of(uint64_t word)
{
	return (uint16_t)(word & FIRST_MASK);
}

static uint16_t used_of(uint64_t word)
{
	return (uint16_t)(word >> USED_SHIFT);
}

/* The word behind word, with the next tag. */
static uint64_t word_of(uint64_t word, uint16_t used, uint16_t first)
{
	return ((word >> TAG_SHIFT) + 1) << TAG_SHIFT |
	       (uint64_t)used << USED_SHIFT | first;
}

void rt_freelist_init(struct rt_freelist *list, _Atomic uint16_t *next,
		      uint16_t slots)
{
	uint16_t i;

	list->next = next;
	for (i = 1; i <= slots; i++)
		rt_freelist_link(list, i,
				 i < slots ? (uint16_t)(i + 1) : (uint16_t)0);
	/* relaxed: no other thread knows the list yet */
	atomic_store_explicit(&list->word, slots > 0, memory_order_relaxed);
}

/* The number behind count free slots, *bottom being the last of them. A slot
 * that is taken meanwhile has any number there: then the tag is another. */
static uint16_t walk(const struct rt_freelist *list, uint16_t from,
		     uint16_t count, uint16_t *bottom)
{
	*bottom = 0;
	while (count-- > 0 && from != 0) {
		*bottom = from;
		from = rt_freelist_next(list, from);
	}
	return from;
}

uint16_t rt_freelist_take(struct rt_freelist *list, uint16_t count,
			  uint16_t limit)
{
	uint16_t bottom;
	uint16_t next;
	uint64_t word;
	uint64_t to;

	/* acquire [FREE-1]: pairs with rt_freelist_give() */
	word = atomic_load_explicit(&list->word, memory_order_acquire);
	do {
		if ((uint32_t)used_of(word) + count > limit)
			return 0;
		next = walk(list, first_of(word), count, &bottom);
		to = word_of(word, (uint16_t)(used_of(word) + count), next);
		/* acquire: as above */
	} while (!atomic_compare_exchange_weak_explicit(&list->word, &word, to,
							memory_order_acquire,
							memory_order_acquire));
	rt_freelist_link(list, bottom, 0);
	return first_of(word);
}

void rt_freelist_give(struct rt_freelist *list, uint16_t top, uint16_t bottom,
		      uint16_t count)
{
	uint64_t word;
	uint64_t to;

	/* relaxed: the exchange looks again */
	word = atomic_load_explicit(&list->word, memory_order_relaxed);
	do {
		rt_freelist_link(list, bottom, first_of(word));
		to = word_of(word, (uint16_t)(used_of(word) - count), top);
		/* release [FREE-1]: contents were read, the chain is linked;
		 * relaxed: looked at again */
	} while (!atomic_compare_exchange_weak_explicit(&list->word, &word, to,
							memory_order_release,
							memory_order_relaxed));
}
