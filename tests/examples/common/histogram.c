/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * The echo example's histogram.
 */

#include <string.h>

#include "../../cases.h"
#include "histogram.h"

static struct histogram hist;
static struct hist_counts counts;

static int setup(void **state)
{
	(void)state;
	memset(&hist, 0, sizeof(hist));
	memset(&counts, 0, sizeof(counts));
	return 0;
}

/* What a histogram with only this value answers for its median. */
static uint64_t median_beside(uint64_t value)
{
	setup(NULL);
	/* the larger one keeps the maximum from answering */
	hist_add(&hist, value);
	hist_add(&hist, UINT64_MAX);
	hist_read(&hist, &counts);
	return hist_percentile(&counts, 500);
}

TEST_WITH(hist_percentile__any_value_WITHIN_3_PERCENT, setup, NULL)
{
	for (unsigned bit = 0; bit < HIST_MAX_BITS; bit++) {
		uint64_t power = UINT64_C(1) << bit;
		const uint64_t values[] = {power - 1, power, power + power / 3,
					   power + power / 2};

		for (size_t i = 0; i < 4; i++) {
			uint64_t median = median_beside(values[i]);

			assert_true(median >= values[i]);
			assert_true(median - values[i] <= values[i] / 32);
		}
	}
}

TEST_WITH(hist_percentile__sixty_values_EXACT_RANK, setup, NULL)
{
	for (uint64_t i = 1; i <= 60; i++)
		hist_add(&hist, i);
	hist_read(&hist, &counts);
	assert_int_equal(hist_percentile(&counts, 500), 30);
	assert_int_equal(hist_percentile(&counts, 999), 60);
	assert_int_equal(hist_percentile(&counts, 1000), 60);
	assert_int_equal(counts.max, 60);
}

TEST_WITH(hist_percentile__empty_ZERO, setup, NULL)
{
	assert_int_equal(hist_percentile(&counts, 990), 0);
}

TEST_WITH(hist_add__beyond_the_last_bucket_MAX_IS_EXACT, setup, NULL)
{
	hist_add(&hist, UINT64_C(1) << 60);
	hist_read(&hist, &counts);
	assert_int_equal(counts.max, UINT64_C(1) << 60);
	assert_true(hist_percentile(&counts, 500) > 0);
}

TEST_WITH(hist_subtract__interval_HAS_ONLY_ITS_OWN, setup, NULL)
{
	struct hist_counts before;

	hist_add(&hist, 1000000);
	hist_read(&hist, &counts);
	before = counts;
	hist_add(&hist, 10);
	memset(&counts, 0, sizeof(counts));
	hist_read(&hist, &counts);
	hist_subtract(&counts, &before);
	assert_int_equal(hist_percentile(&counts, 990), 10);
	assert_int_equal(counts.max, 10);
}

TEST_WITH(hist_read__two_histograms_ADDED, setup, NULL)
{
	static struct histogram other;

	memset(&other, 0, sizeof(other));
	hist_add(&hist, 5);
	hist_add(&other, 50);
	hist_read(&hist, &counts);
	hist_read(&other, &counts);
	assert_int_equal(hist_percentile(&counts, 500), 5);
	assert_int_equal(counts.max, 50);
}

TEST_MAIN()
