/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * histogram.h: latencies in buckets that grow with the value, 32 to each
 * power of two, so that a percentile is off by at most 3 %.
 *
 * A histogram is written by one thread and may be read by others meanwhile. A
 * reader takes a struct hist_counts, which can be added and subtracted: an
 * interval is the difference of two.
 */

#ifndef ECHO_HISTOGRAM_H
#define ECHO_HISTOGRAM_H

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

/* Thread: the writer. */
void hist_add(struct histogram *hist, uint64_t ns);
/* Adds what hist holds to sum. Thread: any. */
void hist_read(const struct histogram *hist, struct hist_counts *sum);
/* counts - before; its max is that of its highest bucket. */
void hist_subtract(struct hist_counts *counts,
		   const struct hist_counts *before);
/* The value that per_mille of 1000 do not exceed; 0 if there are none. */
uint64_t hist_percentile(const struct hist_counts *counts, unsigned per_mille);

#endif /* ECHO_HISTOGRAM_H */
