/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * busy.h -- a busy connection of a stage, to measure how other connections
 * delay the connection: for each write, the time from the posting call to the
 * completion at the consumer, a thread that sleeps in between or a function
 * called by the poller. Writes are posted by the clock, not after the
 * completion before: otherwise only a single write would measure a stalled
 * poller, and the rest would wait unmeasured.
 */

#ifndef BUSY_H
#define BUSY_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "stage.h"

#define BUSY_DEPTH 4096 /* of the stage's connections: 100 ms of writes */

struct busy {
	struct stage *stage; /* its queue aq belongs to the connection alone */
	struct world_pair pair;
	struct rpma_rt_route *route; /* to the function; NULL: a thread */
	pthread_t consumer;
	/* of each write: time of the post, then duration */
	uint64_t *ns;
	uint64_t posted;
	_Atomic uint64_t completed; /* by the consumer */
};

/* Connects, on poller 0. */
void busy_open(struct busy *busy, struct stage *stage, bool to_function);
/* Starts the consumer. */
void busy_start(struct busy *busy);
/* Writes until the seconds have passed and, if given, is_over(arg). */
void busy_write(struct busy *busy, double seconds, bool (*is_over)(void *arg),
		void *arg);
/* Waits for all completions, ends the consumer. */
void busy_stop(struct busy *busy);
/* Returns the percentile of the writes in microseconds. */
double busy_percentile(struct busy *busy, double share);
void busy_close(struct busy *busy);

#endif /* BUSY_H */
