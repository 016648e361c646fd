/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * stats.h -- counters, histograms and marks, read while being written. Counters
 * order nothing, so every access is relaxed.
 */

#ifndef RT_BASE_STATS_H
#define RT_BASE_STATS_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "rpma_rt.h"

/* ------------------------------------------------------------- counters --- */

struct rt_histogram {
	_Atomic uint64_t buckets[RPMA_RT_HISTOGRAM];
	_Atomic uint64_t sum_ns;
};

static inline uint64_t rt_stat_read(const _Atomic uint64_t *stat)
{
	/* relaxed: see above */
	return atomic_load_explicit(stat, memory_order_relaxed);
}

static inline uint32_t rt_stat_read32(const _Atomic uint32_t *stat)
{
	/* relaxed: see above */
	return atomic_load_explicit(stat, memory_order_relaxed);
}

static inline bool rt_stat_is(const _Atomic bool *stat)
{
	/* relaxed: see above */
	return atomic_load_explicit(stat, memory_order_relaxed);
}

/* Adds n; one writer at a time. On x86-64 by a single instruction, without a
 * lock: the compiler makes three of the two accesses. */
static inline void rt_stat_add(_Atomic uint64_t *stat, uint64_t n)
{
#if defined(__x86_64__) && !defined(__SANITIZE_THREAD__)
	__asm__("addq %1, %0" : "+m"(*stat) : "er"(n) : "cc");
#else
	/* relaxed: see above */
	atomic_store_explicit(stat, rt_stat_read(stat) + n,
			      memory_order_relaxed);
#endif
}

/* Adds 1; returns the new count. */
static inline uint64_t rt_stat_count(_Atomic uint64_t *stat)
{
	uint64_t n = rt_stat_read(stat) + 1;

	/* relaxed: see above */
	atomic_store_explicit(stat, n, memory_order_relaxed);
	return n;
}

/* Several writers. */
static inline void rt_stat_add_mt(_Atomic uint64_t *stat, uint64_t n)
{
	/* relaxed: see above */
	atomic_fetch_add_explicit(stat, n, memory_order_relaxed);
}

/* Copies the first size bytes of the known statistics, then zeros, to a caller
 * whose struct may be of another release. */
static inline void rt_stats_give(void *out, size_t size, const void *known,
				 size_t known_size)
{
	size_t both = size < known_size ? size : known_size;

	memcpy(out, known, both);
	memset((char *)out + both, 0, size - both);
}

/*
 * Adds a duration: bucket i holds durations from 2^i ns to less than 2^(i + 1).
 */
static inline void rt_histogram_add_mt(struct rt_histogram *histogram,
				       uint64_t ns)
{
	unsigned bucket = 63 - (unsigned)__builtin_clzll(ns | 1);

	if (bucket >= RPMA_RT_HISTOGRAM)
		bucket = RPMA_RT_HISTOGRAM - 1;
	rt_stat_add_mt(&histogram->buckets[bucket], 1);
	rt_stat_add_mt(&histogram->sum_ns, ns);
}

static inline void rt_histogram_read(const struct rt_histogram *histogram,
				     struct rpma_rt_histogram *out)
{
	int i;

	for (i = 0; i < RPMA_RT_HISTOGRAM; i++)
		out->buckets[i] = rt_stat_read(&histogram->buckets[i]);
	out->sum_ns = rt_stat_read(&histogram->sum_ns);
}

/* ----------------------------------------------------------------- mark --- */

/*
 * How long the items of a queue have waited, for the dump, without a date in
 * each item: a single written item is marked, by its number and the time of
 * writing. The item stays marked until taken; then the writer marks another, at
 * most once a second. So a single load says that an item waits, and since when.
 * doc/protocols/directory.md, "How long an item waits".
 */

#define RT_MARK_MS 1000

struct rt_mark {
	_Atomic uint64_t word;	  /* the item's number, then when in ms */
	_Atomic uint32_t last_ms; /* when the last item was written */
};

/* No item is marked: number -1 was taken before number 0 is written. */
static inline void rt_mark_init(struct rt_mark *mark)
{
	/* relaxed, both: no other thread knows the mark yet */
	atomic_store_explicit(&mark->word, (uint64_t)UINT32_MAX << 32,
			      memory_order_relaxed);
	atomic_store_explicit(&mark->last_ms, 0, memory_order_relaxed);
}

/*
 * Returns true if the item of the number is still there after `taken` items
 * were taken.
 */
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

/* Marks an item, written at ms. If two writers mark at once, one mark stays;
 * either is right. */
static inline void rt_mark_put(struct rt_mark *mark, uint32_t number,
			       uint32_t ms, uint32_t taken)
{
	/* relaxed, both: statistics */
	uint64_t word = atomic_load_explicit(&mark->word, memory_order_relaxed);

	if (!rt_mark_is_there((uint32_t)(word >> 32), taken))
		atomic_store_explicit(&mark->word, (uint64_t)number << 32 | ms,
				      memory_order_relaxed);
}

/* Returns since when the oldest item waits, at least. For any thread that has
 * found items, by an acquire of the publishing store, after `taken` items were
 * taken. */
static inline uint32_t rt_mark_since(const struct rt_mark *mark, uint32_t taken)
{
	/* relaxed, both: statistics; whatever is there was written by last_ms
	 */
	uint64_t word = atomic_load_explicit(&mark->word, memory_order_relaxed);

	if (rt_mark_is_there((uint32_t)(word >> 32), taken))
		return (uint32_t)word;
	return atomic_load_explicit(&mark->last_ms, memory_order_relaxed);
}

#endif /* RT_BASE_STATS_H */
