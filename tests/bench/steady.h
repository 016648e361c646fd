/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * steady.h -- established traffic: one write each STEADY_NS, on the connections
 * of a crowd in turn, whose completions a thread takes that sleeps in between.
 */

#ifndef STEADY_H
#define STEADY_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "crowd.h"

#define STEADY_NS  100000
#define STEADY_MAX 1000000 /* writes: 100 s of them */

struct steady {
	struct crowd crowd;
	struct rpma_mr_local *mr;
	struct rpma_mr_remote *remote;
	pthread_t consumer;
	/* of each write: when the write was posted, then what the write took */
	uint64_t *ns;
	uint64_t posted;
	_Atomic uint64_t completed; /* by the consumer */
};

/* Connects so many ends, and starts the consumer. */
void steady_open(struct steady *steady, struct world *world, uint32_t ends);
/* Writes until so many seconds have passed, and *is_over if is_over is not
 * NULL; waits for the completions. */
void steady_write(struct steady *steady, double seconds,
		  const _Atomic bool *is_over);
/* Returns the share, 0.99 for instance, of the writes from the one with that
 * number on, in microseconds. Sorts these writes. */
double steady_percentile(struct steady *steady, uint64_t from, double share);
/* Ends the consumer, closes the connections, frees. */
void steady_close(struct steady *steady);

#endif /* STEADY_H */
