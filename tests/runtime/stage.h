/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * stage.h -- a world with more objects that most tests need: two queues, a
 * configuration for connections, a page of memory for both ends.
 */

#ifndef STAGE_H
#define STAGE_H

#include <stdbool.h>

#include "world.h"

struct stage_cfg {
	int pollers;
	enum rpma_rt_mode mode;
	const int32_t *cpus;  /* of the pollers, a CPU each; NULL: any */
	uint32_t cq_size;     /* 0: the default */
	uint32_t depth;	      /* of send and receive queue */
	uint32_t backstop_ms; /* 0: off */
	uint32_t teardown_ms; /* 0: the default */
	rpma_rt_async_fn *async_fn;
	void *async_arg;
	bool async_fed;
};

struct stage {
	struct world world;
	struct rpma_rt_queue *aq; /* the active ends' */
	struct rpma_rt_queue *pq; /* the passive ends' */
	struct rpma_rt_conn_cfg *cfg;
	struct rpma_mr_local *mr;
	struct rpma_mr_remote *remote; /* the same page, for writes */
	char *memory;
};

#define STAGE_SIZE 4096

void stage_open(struct stage *s, const struct stage_cfg *cfg);
/* Opens a stage for connections with futures, with one poller, which belongs to
 * the caller in manual mode. */
void stage_open_futures(struct stage *s, enum rpma_rt_mode mode, uint32_t depth,
			uint32_t futures);
/* Stops; nothing may be left in the queues. */
void stage_close(struct stage *s);

/* Registers the page again, for every operation. */
void stage_register_all(struct stage *s);

/* Begins a connection to the world's port, on poller 0, up to READY. */
struct rpma_rt_conn *stage_ready(struct stage *s);
/* Connects to the world's port, on poller 0, and does not wait. */
struct rpma_rt_conn *stage_begin(struct stage *s);
/* Accepts: both ends are established. */
void stage_accept(struct stage *s, const struct world_pair *pair);
/* A pair on poller 0. */
void stage_connect(struct stage *s, struct world_pair *pair);
/* Closes the active end; CLOSED of both must be the next items. */
void stage_disconnect(struct stage *s, struct world_pair *pair);

/* Makes a pool of the world's peer; sends as in struct rpma_rt_pool_cfg. */
struct rpma_rt_pool *stage_pool(const struct stage *s, const char *name,
				uint32_t count, uint32_t slot_size,
				uint32_t sends);
/* Takes every slot of a pool that fills no receive queue, each slot once, and
 * then finds the pool empty. Releases all slots. */
void stage_all_free(struct rpma_rt_pool *pool, uint32_t count);

/* Pushes an asynchronous event, with the type as context and the device as
 * user, into the queue at arg, a struct rpma_rt_queue **. Thread: events. */
void stage_heard(struct ibv_context *ibv_ctx,
		 const struct ibv_async_event *event, void *arg);

/* Returns a deregistered region, as seen by the other end. */
struct rpma_mr_remote *stage_vanished(struct stage *s);

/* Sends a message, and takes both completions. */
void stage_ping(struct stage *s, const struct world_pair *pair,
		uint64_t context);

/* Returns the next item, asserted to be the completion with the context. */
struct rpma_rt_completion stage_completion(struct rpma_rt_queue *queue,
					   uint64_t context,
					   enum ibv_wc_status status);

#endif /* STAGE_H */
