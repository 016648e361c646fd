/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * pair.h -- two ends that one thread runs: of the runtime, each on a poller of
 * its own in manual mode; and bare, a queue pair and a CQ each, for programs
 * that use verbs.
 */

#ifndef BENCH_PAIR_H
#define BENCH_PAIR_H

#include <infiniband/verbs.h>

#include "stage.h"

/* The stage has two pollers of manual mode, and a queue for each end. */
void pair_stage_open(struct stage *s, uint32_t depth);

/* Active on poller 0 and s->aq, passive on poller 1 and s->pq. */
void pair_connect(struct stage *s, const struct rpma_rt_conn_cfg *cfg,
		  struct world_pair *pair);
/* Receives that are posted come back. */
void pair_disconnect(struct stage *s, struct world_pair *pair);

/* connected by librpma, which has nothing to do with it after that */
struct pair_bare {
	struct rpma_conn *conn;
	struct ibv_qp *qp;
	struct ibv_cq *cq; /* of sends and receives */
	uint32_t lkey;	   /* of the stage's memory */
};

/* The active end, the passive one; their queues have room for depth. */
void pair_bare_open(const struct stage *s, uint32_t depth,
		    struct pair_bare ends[2]);
void pair_bare_close(struct pair_bare ends[2]);

#endif /* BENCH_PAIR_H */
