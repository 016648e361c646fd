/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * limit.c -- the limit of log messages, see log.h. Each place in the source has
 * an entry of a table for good; a word in the entry has the second and the
 * count of messages in that second. Any thread.
 */

#include "base/log.h"

#include <stdatomic.h>
#include <stddef.h>

#define NS_PER_S 1000000000u
/* a power of two; the library has fewer places that log */
#define ENTRIES 1024

struct entry {
	_Atomic uint64_t place; /* number of the place; 0: the entry is free */
	/* upper half: the second, from 1; lower 32 bits: messages in that
	 * second */
	_Atomic uint64_t used;
};

static struct entry entries[ENTRIES];

/* Makes a single number of file and line: addresses of user space have 47
 * bits. */
static uint64_t limit_number_of(const char *file, int line)
{
	return (uint64_t)(uintptr_t)file << 17 ^ (uint32_t)line;
}

/* Finds or claims the entry of a place. Returns NULL if the table is full. */
static struct entry *limit_entry_of(uint64_t place)
{
	/* the upper bits of a product depend on all bits of the factor */
	uint64_t at = place * UINT64_C(0x9e3779b97f4a7c15) >> 40;
	struct entry *entry;
	uint64_t found;
	uint32_t i;

	for (i = 0; i < ENTRIES; i++) {
		entry = &entries[(at + i) & (ENTRIES - 1)];
		found = 0;
		/* relaxed, both: an entry has no data besides the two words */
		if (atomic_compare_exchange_strong_explicit(
			    &entry->place, &found, place, memory_order_relaxed,
			    memory_order_relaxed) ||
		    found == place)
			return entry;
	}
	return NULL;
}

bool rt_limit_pass(uint64_t now_ns, const char *file, int line,
		   uint32_t *left_out, bool *is_last)
{
	struct entry *entry = limit_entry_of(limit_number_of(file, line));
	uint64_t second = (now_ns / NS_PER_S + 1) << 32;
	uint64_t old;
	uint64_t next;

	*left_out = 0;
	*is_last = false;
	if (entry == NULL)
		return false;
	/* relaxed, all: the word is the whole state, and orders no other
	 * data */
	old = atomic_load_explicit(&entry->used, memory_order_relaxed);
	do {
		/* of two threads, the thread that read the clock first may come
		 * last: its message then counts in the later second */
		next = old >= second ? old + 1 : second + 1;
	} while (!atomic_compare_exchange_weak_explicit(
		&entry->used, &old, next, memory_order_relaxed,
		memory_order_relaxed));
	if (old < second && (uint32_t)old > RT_LIMIT_A_SECOND)
		*left_out = (uint32_t)old - RT_LIMIT_A_SECOND;
	*is_last = (uint32_t)next == RT_LIMIT_A_SECOND;
	return (uint32_t)next <= RT_LIMIT_A_SECOND;
}
