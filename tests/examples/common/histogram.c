/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * The echo example's histogram.
 */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

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

static void hist_percentile__any_value_WITHIN_3_PERCENT(void **state)
{
	(void)state;
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

static void hist_percentile__sixty_values_EXACT_RANK(void **state)
{
	(void)state;
	for (uint64_t i = 1; i <= 60; i++)
		hist_add(&hist, i);
	hist_read(&hist, &counts);
	assert_int_equal(hist_percentile(&counts, 500), 30);
	assert_int_equal(hist_percentile(&counts, 999), 60);
	assert_int_equal(hist_percentile(&counts, 1000), 60);
	assert_int_equal(counts.max, 60);
}

static void hist_percentile__empty_ZERO(void **state)
{
	(void)state;
	assert_int_equal(hist_percentile(&counts, 990), 0);
}

static void hist_add__beyond_the_last_bucket_MAX_IS_EXACT(void **state)
{
	(void)state;
	hist_add(&hist, UINT64_C(1) << 60);
	hist_read(&hist, &counts);
	assert_int_equal(counts.max, UINT64_C(1) << 60);
	assert_true(hist_percentile(&counts, 500) > 0);
}

static void hist_subtract__interval_HAS_ONLY_ITS_OWN(void **state)
{
	struct hist_counts before;

	(void)state;
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

static void hist_read__two_histograms_ADDED(void **state)
{
	static struct histogram other;

	(void)state;
	memset(&other, 0, sizeof(other));
	hist_add(&hist, 5);
	hist_add(&other, 50);
	hist_read(&hist, &counts);
	hist_read(&other, &counts);
	assert_int_equal(hist_percentile(&counts, 500), 5);
	assert_int_equal(counts.max, 50);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(
			hist_percentile__any_value_WITHIN_3_PERCENT, setup),
		cmocka_unit_test_setup(hist_percentile__sixty_values_EXACT_RANK,
				       setup),
		cmocka_unit_test_setup(hist_percentile__empty_ZERO, setup),
		cmocka_unit_test_setup(
			hist_add__beyond_the_last_bucket_MAX_IS_EXACT, setup),
		cmocka_unit_test_setup(hist_subtract__interval_HAS_ONLY_ITS_OWN,
				       setup),
		cmocka_unit_test_setup(hist_read__two_histograms_ADDED, setup),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
