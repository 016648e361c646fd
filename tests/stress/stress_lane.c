/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * Lane and spill under a consumer that is now fast, now slow: a ring of 64
 * with several times as much on its way, so that the poller spills, sleeps on
 * the spill and is rung for room, again and again.
 */

#include "exchange.h"
#include "stress.h"

int main(int argc, char **argv)
{
	struct stress stress = stress_begin(argc, argv);
	static const uint32_t windows[] = {65, 200, 1000};
	static const uint32_t dawdles[] = {0, 2000};
	struct exchange_cfg cfg = {
		.lane_size = 64,
		.seconds = stress.seconds / (3 * 3 * 2),
		.seed = stress.seed,
	};
	int sleep;
	int i;
	int j;

	for (sleep = ON_FUTEX; sleep <= BY_TURNS; sleep++) {
		for (i = 0; i < 3; i++) {
			for (j = 0; j < 2; j++) {
				cfg.sleep = (enum exchange_sleep)sleep;
				cfg.window = windows[i];
				cfg.dawdle = dawdles[j];
				exchange_run(&cfg);
			}
		}
	}
	return 0;
}
