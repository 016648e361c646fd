/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * dump_cases.h -- what may look wrong in a runtime: how each is brought about,
 * and ended.
 */

#ifndef DUMP_CASES_H
#define DUMP_CASES_H

#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <stdbool.h>

#include "rpma_rt.h"
#include "stage.h"

#define CASES_DEPTH 8
#define CASES_ALSO  2

struct scene {
	struct stage s;
	struct world_pair pair; /* either may be NULL */
	struct rpma_rt_listener *listener;
	struct rpma_rt_queue *work;
	struct rpma_rt_srq *srq;
	struct rpma_rt_pool *pool;
	struct rpma_rt_lease leases[3 * CASES_DEPTH]; /* all that it has */
	struct rpma_rt_route *route;
	struct rpma_rt_shards *shards;
	struct rpma_rt_future future;
	bool has_future;
	bool is_stopped;
	sem_t entered;
	sem_t leave;
	pthread_t worker;
	_Atomic bool is_over;
	_Atomic int taken;
	char object[128]; /* how the dump names it */
};

struct dump_case {
	const char *kind;
	const char *words;	      /* of its line; NULL: any */
	const char *also[CASES_ALSO]; /* kinds that come with it */
	enum rpma_rt_mode mode;
	bool is_at_once;  /* it needs no time */
	bool is_awake;	  /* a poller is */
	bool of_loopback; /* which keeps a thread */
	void (*provoke)(struct scene *c);
	void (*mend)(struct scene *c); /* NULL: the end of the scene does */
};

extern const struct dump_case dump_cases[];
extern const int dump_cases_count;

void scene_open(struct scene *c, enum rpma_rt_mode mode);
/* Stops; what is in the queues is dropped. */
void scene_close(struct scene *c);

#endif /* DUMP_CASES_H */
