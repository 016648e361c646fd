/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * mark.h -- how long the items of a queue have waited, for the dump, without a
 * date in each: of the items that are written one is marked, by its number and
 * when it was written. It stays marked until it is taken; then the writer marks
 * another one, at most once a second. So one load says that an item waits, and
 * since when. doc/protocols/directory.md, "How long an item waits".
 */

#ifndef RT_BASE_MARK_H
#define RT_BASE_MARK_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#define RT_MARK_MS 1000

struct rt_mark {
	_Atomic uint64_t word;	  /* the item's number, then when in ms */
	_Atomic uint32_t last_ms; /* when the last item was written */
};

/* No item is marked: number -1 was taken before number 0 is written. */
static inline void rt_mark_init(struct rt_mark *mark)
{
	/* relaxed, both: nobody else knows it yet */
	atomic_store_explicit(&mark->word, (uint64_t)UINT32_MAX << 32,
			      memory_order_relaxed);
	atomic_store_explicit(&mark->last_ms, 0, memory_order_relaxed);
}

/* Is the item of that number still there when so many were taken? */
static inline bool rt_mark_is_there(uint32_t number, uint32_t taken)
{
	return (int32_t)(taken - number) <= 0;
}

/* A writer, before the item is published: true: rt_mark_put() is due, which
 * needs to know how many were taken. */
static inline bool rt_mark_date(struct rt_mark *mark, uint32_t ms)
{
	/* relaxed, all: statistics; the item's publication carries last_ms */
	if (ms == atomic_load_explicit(&mark->last_ms, memory_order_relaxed))
		return false;
	atomic_store_explicit(&mark->last_ms, ms, memory_order_relaxed);
	return ms - (uint32_t)atomic_load_explicit(&mark->word,
						   memory_order_relaxed) >=
	       RT_MARK_MS;
}

/* When the last item was written. */
static inline uint32_t rt_mark_last(const struct rt_mark *mark)
{
	/* relaxed: statistics */
	return atomic_load_explicit(&mark->last_ms, memory_order_relaxed);
}

/* A writer: the item of that number was written at ms. Of two writers at once
 * one puts its mark; either is right. */
static inline void rt_mark_put(struct rt_mark *mark, uint32_t number,
			       uint32_t ms, uint32_t taken)
{
	/* relaxed, both: statistics */
	uint64_t word = atomic_load_explicit(&mark->word, memory_order_relaxed);

	if (!rt_mark_is_there((uint32_t)(word >> 32), taken))
		atomic_store_explicit(&mark->word, (uint64_t)number << 32 | ms,
				      memory_order_relaxed);
}

/* Any thread that has found items, by an acquire of what publishes them, of
 * which so many were taken before: since when the oldest waits, at least. */
static inline uint32_t rt_mark_since(const struct rt_mark *mark, uint32_t taken)
{
	/* relaxed, both: statistics; whatever is there was written by last_ms
	 */
	uint64_t word = atomic_load_explicit(&mark->word, memory_order_relaxed);

	if (rt_mark_is_there((uint32_t)(word >> 32), taken))
		return (uint32_t)word;
	return atomic_load_explicit(&mark->last_ms, memory_order_relaxed);
}

#endif /* RT_BASE_MARK_H */
