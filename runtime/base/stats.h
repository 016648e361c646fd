/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * stats.h -- counters and histograms that are read while they are written.
 * They order nothing, so every access is relaxed.
 */

#ifndef RT_BASE_STATS_H
#define RT_BASE_STATS_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "rpma_rt.h"

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

static inline uint8_t rt_stat_read8(const _Atomic uint8_t *stat)
{
	/* relaxed: see above */
	return atomic_load_explicit(stat, memory_order_relaxed);
}

static inline bool rt_stat_is(const _Atomic bool *stat)
{
	/* relaxed: see above */
	return atomic_load_explicit(stat, memory_order_relaxed);
}

/* One writer at a time. */
static inline void rt_stat_add(_Atomic uint64_t *stat, uint64_t n)
{
	/* relaxed: see above */
	atomic_store_explicit(stat, rt_stat_read(stat) + n,
			      memory_order_relaxed);
}

/* One more; how many that are. */
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

/* The first size bytes of what is known, zeros behind them, to a caller whose
 * struct may be of another release. */
static inline void rt_stats_give(void *out, size_t size, const void *known,
				 size_t known_size)
{
	size_t both = size < known_size ? size : known_size;

	memcpy(out, known, both);
	memset((char *)out + both, 0, size - both);
}

/* Bucket i holds what took 2^i ns and less than 2^(i + 1). */
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

#endif /* RT_BASE_STATS_H */
