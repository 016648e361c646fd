/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * histogram.c: the buckets. A value below 64 has a bucket alone; from 64 on the
 * bucket is the exponent and the five bits after the leading bit.
 */

#include "histogram.h"

#define SUB_COUNT (1u << HIST_SUB_BITS)

static unsigned bucket_of(uint64_t ns)
{
	if (ns >> HIST_MAX_BITS)
		return HIST_BUCKETS - 1;
	if (ns < SUB_COUNT)
		return (unsigned)ns;
	unsigned shift = 63 - HIST_SUB_BITS - (unsigned)__builtin_clzll(ns);
	return (shift << HIST_SUB_BITS) + (unsigned)(ns >> shift);
}

uint64_t hist_top(unsigned bucket)
{
	if (bucket < 2 * SUB_COUNT)
		return bucket;
	unsigned shift = (bucket >> HIST_SUB_BITS) - 1;
	uint64_t first = SUB_COUNT + (bucket & (SUB_COUNT - 1));

	return ((first + 1) << shift) - 1;
}

void hist_add(struct histogram *hist, uint64_t ns)
{
	_Atomic uint64_t *count = &hist->count[bucket_of(ns)];

	/* relaxed: one writer; a reader may lag and needs no order */
	uint64_t n = atomic_load_explicit(count, memory_order_relaxed);
	atomic_store_explicit(count, n + 1, memory_order_relaxed);
	if (ns > atomic_load_explicit(&hist->max, memory_order_relaxed))
		atomic_store_explicit(&hist->max, ns, memory_order_relaxed);
}

void hist_read(const struct histogram *hist, struct hist_counts *sum)
{
	/* relaxed: as in hist_add() */
	for (unsigned i = 0; i < HIST_BUCKETS; i++)
		sum->count[i] += atomic_load_explicit(&hist->count[i],
						      memory_order_relaxed);
	uint64_t max = atomic_load_explicit(&hist->max, memory_order_relaxed);
	if (max > sum->max)
		sum->max = max;
}

void hist_subtract(struct hist_counts *counts, const struct hist_counts *before)
{
	uint64_t max = 0;

	for (unsigned i = 0; i < HIST_BUCKETS; i++) {
		counts->count[i] -= before->count[i];
		if (counts->count[i])
			max = hist_top(i);
	}
	if (max < counts->max)
		counts->max = max;
}

uint64_t hist_percentile(const struct hist_counts *counts, unsigned per_mille)
{
	uint64_t total = 0, seen = 0;

	for (unsigned i = 0; i < HIST_BUCKETS; i++)
		total += counts->count[i];
	/* rounded up: the 99.9th percentile of ten values is the tenth */
	uint64_t wanted = total / 1000 * per_mille +
			  (total % 1000 * per_mille + 999) / 1000;
	for (unsigned i = 0; total && i < HIST_BUCKETS; i++) {
		seen += counts->count[i];
		if (seen >= wanted)
			return hist_top(i) < counts->max ? hist_top(i)
							 : counts->max;
	}
	return counts->max;
}
