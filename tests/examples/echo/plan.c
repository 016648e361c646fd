/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * The echo example's plan of threads.
 */

#include "../../cases.h"
#include "options.h"

static unsigned threads(const struct options *o)
{
	return o->pollers + (o->role == ROLE_BOTH ? 2 : 1) * o->workers;
}

static unsigned spinning(const struct options *o)
{
	unsigned ends = o->role == ROLE_BOTH ? 2 : 1;

	return (o->pollers_spin ? o->pollers : 0) +
	       (o->workers_spin ? ends * o->workers : 0);
}

TEST(options_plan__anything_NEVER_MORE_SPIN_THAN_CPUS)
{
	for (unsigned i = 0; i < 3 * 2 * 5 * 5 * 4; i++) {
		static const unsigned COUNTS[] = {0, 1, 2, 7, MAX_THREADS};
		static const unsigned CPUS[] = {1, 2, 3, 96};
		struct options o = {
			.role = (enum role)(i % 3),
			.is_manual = i / 3 % 2,
			.pollers = i / 3 % 2 ? 0 : COUNTS[i / 6 % 5],
			.workers = COUNTS[i / 30 % 5],
			.connections = 100,
		};
		unsigned cpus = CPUS[i / 150];

		options_plan(&o, cpus);
		assert_true(spinning(&o) <= cpus);
		assert_true(o.workers >= 1 && o.workers <= MAX_THREADS);
		assert_true(o.is_manual ? o.pollers == 0 : o.pollers >= 1);
	}
}

TEST(options_plan__given_and_fits_KEPT)
{
	struct options o = {.role = ROLE_BOTH, .pollers = 2, .workers = 4};

	options_plan(&o, 10);
	assert_int_equal(o.pollers, 2);
	assert_int_equal(o.workers, 4);
	assert_true(o.pollers_spin && o.workers_spin);
}

TEST(options_plan__too_many_CUT_TO_FIT)
{
	struct options o = {.role = ROLE_SERVER, .pollers = 8, .workers = 8};

	options_plan(&o, 4);
	assert_int_equal(threads(&o), 4);
	assert_true(o.pollers >= 1 && o.workers >= 1);
	assert_true(o.pollers_spin && o.workers_spin);
}

TEST(options_plan__nothing_given_ONE_WORKER_A_CONNECTION)
{
	struct options o = {.role = ROLE_CLIENT, .connections = 2};

	options_plan(&o, 32);
	assert_int_equal(o.workers, 2);
}

TEST_MAIN()
