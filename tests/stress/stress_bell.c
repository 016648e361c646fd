/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * Ping-pong with one completion on its way: each side falls asleep before each
 * answer, and no timer wakes it, so one wake-up lost in all the rounds hangs.
 * A short, changing delay moves the two sides against each other.
 */

#include "exchange.h"
#include "stress.h"

int main(int argc, char **argv)
{
	struct stress stress = stress_begin(argc, argv);
	static const uint32_t dawdles[] = {0, 30, 300};
	struct exchange_cfg cfg = {
		.lane_size = 64,
		.window = 1,
		.seconds = stress.seconds / (3 * 3),
		.seed = stress.seed,
	};
	int sleep;
	int i;

	for (sleep = ON_FUTEX; sleep <= BY_TURNS; sleep++) {
		for (i = 0; i < 3; i++) {
			cfg.sleep = (enum exchange_sleep)sleep;
			cfg.dawdle = dawdles[i];
			exchange_run(&cfg);
		}
	}
	return 0;
}
