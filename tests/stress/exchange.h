/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * An exchange: one poller thread sends numbered completions through one lane
 * to one consumer, which gives credits back through the poller's inbox. Both
 * sleep whenever they can, without any timer, so that a lost wake-up is a hang.
 * Every completion arrives once and in order.
 */

#ifndef EXCHANGE_H
#define EXCHANGE_H

#include <stdint.h>

enum exchange_sleep { ON_FUTEX, ON_FD, BY_TURNS };

struct exchange_cfg {
	enum exchange_sleep sleep; /* how the consumer does */
	uint32_t window;	   /* completions on their way at most */
	uint32_t lane_size;
	uint32_t dawdle; /* how slow the consumer may be, in turns */
	double seconds;
	uint64_t seed;
};

/* Prints what happened; ends the program when a promise is broken. */
void exchange_run(const struct exchange_cfg *cfg);

#endif /* EXCHANGE_H */
