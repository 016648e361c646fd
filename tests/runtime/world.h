/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * world.h -- the objects of every runtime test: a device, a peer, registered
 * memory, a runtime, a pair of connections made through it. Steps that must
 * not fail abort the test with file and line; a wait that reaches its bound is
 * a failure.
 */

#ifndef WORLD_H
#define WORLD_H

#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include "rpma_rt.h"

/* Ends a hang, decides nothing else. */
#define WORLD_PATIENCE_MS 300000

#define MUST_ANSWER(answer, expr)                                       \
	do {                                                            \
		int must_ret = (expr);                                  \
		if (must_ret != (answer))                               \
			world_die(__FILE__, __LINE__, #expr, must_ret); \
	} while (0)

#define MUST(expr) MUST_ANSWER(0, expr)

#define CHECK(cond)                                              \
	do {                                                     \
		if (!(cond))                                     \
			world_die(__FILE__, __LINE__, #cond, 0); \
	} while (0)

struct world {
	const char *addr;
	struct ibv_context *ibv_ctx;
	struct rpma_peer *peer;
	struct rpma_rt *rt;
	char port[8];
};

_Noreturn void world_die(const char *file, int line, const char *what, int ret);

/* The device at RPMA_TEST_ADDR, or 127.0.0.1. Exits with 77 without one. */
void world_open(struct world *w);
void world_close(struct world *w);
/* A runtime of so many pollers, the back-stop switched off: it would hide a
 * lost wake-up. */
void world_start(struct world *w, int pollers, enum rpma_rt_mode mode);

/* One work request: 0 or an error. */
int world_post_send(struct rpma_rt_conn *conn, const struct rpma_rt_wr *wr);
int world_post_recv(struct rpma_rt_conn *conn,
		    const struct rpma_rt_recv_wr *wr);

/* The next item, which must come. */
struct rpma_rt_completion world_next(struct rpma_rt_queue *queue);
/* The next item, which must be that event. */
struct rpma_rt_completion world_event(struct rpma_rt_queue *queue,
				      enum rpma_rt_event event);

struct world_pair {
	struct rpma_rt_conn *active;
	struct rpma_rt_conn *passive;
};

/* Sizes of both queues; free() it. */
struct rpma_rt_conn_cfg *world_cfg(uint32_t sq, uint32_t rq);
/* rpma_rt_conn_new() with a copy of cfg that has the others in it; cfg NULL:
 * the defaults. */
int world_conn_new(struct rpma_rt *rt, struct rpma_peer *peer, const char *addr,
		   const char *port, const struct rpma_rt_conn_cfg *cfg,
		   int poller, struct rpma_rt_queue *queue, void *user,
		   struct rpma_rt_conn **conn_ptr);
/* rpma_rt_listen() likewise. */
int world_listen_at(struct rpma_rt *rt, struct rpma_peer *peer,
		    const char *addr, const char *port, uint32_t backlog,
		    const struct rpma_rt_conn_cfg *cfg, int poller,
		    struct rpma_rt_queue *queue, void *user,
		    struct rpma_rt_listener **listener_ptr);

/* Listens with cfg on a port of the system's choice. */
struct rpma_rt_listener *world_listen(struct world *w,
				      const struct rpma_rt_conn_cfg *cfg,
				      struct rpma_rt_queue *queue);
/* Deletes it; LISTENER_CLOSED is the next item of its one queue. */
void world_unlisten(struct rpma_rt_listener **listener,
		    struct rpma_rt_queue *queue);
/* Connects: active's events in aq, passive's in pq, both on that poller; both
 * queues are empty before and after. */
void world_connect(struct world *w, const struct rpma_rt_conn_cfg *cfg,
		   int poller, struct rpma_rt_queue *aq,
		   struct rpma_rt_queue *pq, struct world_pair *pair);

/* Gives both handles back. */
void world_unref(struct world_pair *pair);

/* What a peer would make of the region's descriptor. */
struct rpma_mr_remote *world_remote_of(const struct rpma_mr_local *mr);

/* A shard and the thread that runs it: the first member of a test's own struct,
 * of which a test has an array. */
struct world_core {
	struct rpma_rt_shard *shard;
	pthread_t thread;
	uint32_t index;
};

/* Makes the shards of the world's runtime, one for each poller, with count
 * structs of that size as arguments of their functions. */
struct rpma_rt_shards *world_shards(struct world *w,
				    const struct rpma_rt_shards_cfg *cfg,
				    struct world_core *cores, uint32_t count,
				    size_t size);
/* Starts, and joins, their threads; main gets the struct. */
void world_cores_start(struct world_core *cores, uint32_t count, size_t size,
		       void *(*main)(void *));
void world_cores_join(const struct world_core *cores, uint32_t count,
		      size_t size);

uint64_t world_now_ms(void);

/* The next of a sequence by chance, below n: the same for the same seed. */
uint32_t world_roll(uint32_t *seed, uint32_t n);

#endif /* WORLD_H */
