/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * server.h: a worker is a thread with a queue, and has all connections of one
 * poller; what belongs to a connection belongs to the worker. The store and the
 * arena are shared by all workers.
 */

#ifndef EXAMPLES_KV_SERVER_H
#define EXAMPLES_KV_SERVER_H

#include <semaphore.h>
#include <sys/queue.h>

#include <rpma_rt.h>

#include "../common/kv_store.h"
#include "../common/outbox.h"
#include "../common/workers.h"

#define WINDOW OUTBOX_WINDOW

struct server {
	struct workers threads; /* slots of the pool: messages, each way */
	struct arena arena;	/* values, and the bytes of KV_BYE */
	uint64_t bye;
	struct store store;
	uint64_t clients_max; /* of a worker */
	/* silence allowed: idle clients, and clients that owe something */
	uint64_t idle_ms, patience_ms;
};

struct stats {
	uint64_t clients, refused, broken, stuck; /* connections */
	uint64_t gets, puts, deletes, stored, pulled, pushed;
	uint64_t waited, full, expired;
};
#define STATS (sizeof(struct stats) / sizeof(uint64_t))

struct worker {
	struct server *server;
	struct rpma_rt_queue *queue;
	LIST_HEAD(, client) clients;
	uint64_t client_count;
	uint64_t now_ns; /* when the last items were taken */
	uint64_t swept_ns;
	bool is_draining;
	sem_t drained; /* posted when the last client has left */
	struct stats stats;
};

/* Runs a worker until the runtime has stopped. A message in the queue makes the
 * worker say goodbye to all clients. */
void *worker_run(void *worker);

#endif /* EXAMPLES_KV_SERVER_H */
