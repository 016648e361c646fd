/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * busy.h -- one busy connection of a stage, to measure how other connections
 * delay it: for each of its writes, the time from the call that posts to the
 * completion at its consumer, a thread that sleeps in between or a function
 * that the poller calls. Writes are posted by the clock, not when the one
 * before has completed: else only one write would measure a poller that stands
 * still, and the rest would wait unmeasured.
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
	struct stage *stage; /* its queue aq is the connection's alone */
	struct world_pair pair;
	struct rpma_rt_route *route; /* to the function; NULL: a thread */
	pthread_t consumer;
	/* of each write: when it was posted, then what it took */
	uint64_t *ns;
	uint64_t posted;
	_Atomic uint64_t completed; /* by the consumer */
};

/* Connects, on poller 0. */
void busy_open(struct busy *busy, struct stage *stage, bool to_function);
/* Starts the consumer. */
void busy_start(struct busy *busy);
/* Writes until the seconds have passed and, if there is one, is_over(arg). */
void busy_write(struct busy *busy, double seconds, bool (*is_over)(void *arg),
		void *arg);
/* Waits for all completions, ends the consumer. */
void busy_stop(struct busy *busy);
/* The time that this share of the writes did not exceed, in microseconds. */
double busy_percentile(struct busy *busy, double share);
void busy_close(struct busy *busy);

#endif /* BUSY_H */
