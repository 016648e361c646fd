/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * histogram.h: latencies in buckets that grow with the value, 32 for each power
 * of two, so that the error of a percentile is at most 3 %.
 *
 * One thread writes a histogram; other threads may read the histogram
 * meanwhile. A reader takes a struct hist_counts, which can be added and
 * subtracted: an interval is the difference of two.
 */

#ifndef EXAMPLES_HISTOGRAM_H
#define EXAMPLES_HISTOGRAM_H

#include <stdatomic.h>
#include <stdint.h>

#define HIST_SUB_BITS 5
#define HIST_MAX_BITS 40 /* 2^40 ns are 18 minutes */
#define HIST_BUCKETS  ((HIST_MAX_BITS - HIST_SUB_BITS + 1) << HIST_SUB_BITS)

struct histogram {
	_Atomic uint64_t count[HIST_BUCKETS];
	_Atomic uint64_t max;
};

struct hist_counts {
	uint64_t count[HIST_BUCKETS];
	uint64_t max;
};

/* Returns the largest value of a bucket. */
uint64_t hist_top(unsigned bucket);
/* Adds a value. Thread: the writer. */
void hist_add(struct histogram *hist, uint64_t ns);
/* Adds the counts of hist to sum. Thread: any. */
void hist_read(const struct histogram *hist, struct hist_counts *sum);
/* Subtracts before; max becomes the maximum of the highest bucket. */
void hist_subtract(struct hist_counts *counts,
		   const struct hist_counts *before);
/*
 * Returns the value not exceeded by per_mille of 1000 values; 0 without values.
 */
uint64_t hist_percentile(const struct hist_counts *counts, unsigned per_mille);

#endif /* EXAMPLES_HISTOGRAM_H */
