/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * thousands.h -- the workers of thousands.c: what they know of their
 * connections, and what one of them does.
 */

#ifndef THOUSANDS_H
#define THOUSANDS_H

#include <pthread.h>
#include <stdbool.h>

#include "world.h"

#define POLLERS 2
#define WORKERS 2
#define WINDOW	128 /* pairs of a worker that do something */
#define WARM	64
#define DEPTH	4
#define SIZE	8 /* of a message */

struct pair;

struct end {
	struct pair *pair;
	struct rpma_rt_conn *conn;
	uint32_t index;
	bool is_up;
	bool owes;	 /* an answer, to a message before ESTABLISHED */
	uint32_t posted; /* in this life, and what completed of it */
	uint32_t completed;
	uint32_t received; /* numbers, from 1 */
	uint32_t sent;
};

struct pair {
	struct end end[2]; /* the active one, the passive one */
	uint32_t index;
	uint32_t lives; /* still to begin */
	uint32_t up;	/* ends that are established */
	uint32_t alive; /* ends whose CLOSED has not come */
	bool is_closing;
	bool is_idle; /* established, and no number is under way */
};

struct worker {
	struct soak *soak;
	pthread_t thread;
	struct rpma_rt_queue *queue;
	struct rpma_rt_listener *listener;
	char port[8];
	uint32_t first; /* its pairs are every second one from there */
	uint32_t begun; /* of the first lives */
	uint32_t making;
	uint32_t up;	    /* pairs with both ends */
	uint32_t next;	    /* whose turn it is */
	uint32_t turns;	    /* pairs that had one */
	uint32_t under_way; /* pairs that are not idle */
	uint32_t churning;  /* lives to begin */
	uint64_t messages;
	bool is_running;
};

struct soak {
	struct world world;
	struct pair *pairs;
	uint32_t count;
	uint32_t lives;
	char *memory;
	struct rpma_mr_local *mr;
	struct rpma_rt_conn_cfg *cfg;
	struct worker workers[WORKERS];
	pthread_barrier_t barrier;
};

/* Runs the thread of a struct worker: connects WARM pairs, then the others, has
 * messages sent and connections made again, closes all. Between the first steps
 * the worker meets the main thread at the barrier twice. */
void *worker_main(void *arg);

#endif /* THOUSANDS_H */
