/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * world.h -- the objects of every runtime test: a device, a peer, registered
 * memory, a runtime, a pair of connections. Steps that must not fail abort the
 * test with file and line; a wait up to its bound is a failure.
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

/*
 * Opens the device at RPMA_TEST_ADDR, or at 127.0.0.1. Exits with 77 without a
 * device.
 */
void world_open(struct world *w);
void world_close(struct world *w);
/* Starts a runtime with so many pollers, and without the back-stop, which would
 * hide a lost wake-up. */
void world_start(struct world *w, int pollers, enum rpma_rt_mode mode);

/* Post a single work request: 0 or an error. */
int world_post_send(struct rpma_rt_conn *conn, const struct rpma_rt_wr *wr);
int world_post_recv(struct rpma_rt_conn *conn,
		    const struct rpma_rt_recv_wr *wr);

/* The next item, which must come. */
struct rpma_rt_completion world_next(struct rpma_rt_queue *queue);
/* The next item that is no WRITABLE. */
struct rpma_rt_completion world_next_but_writable(struct rpma_rt_queue *queue);
/* Returns the next item, asserted to be the event. */
struct rpma_rt_completion world_event(struct rpma_rt_queue *queue,
				      enum rpma_rt_event event);

struct world_pair {
	struct rpma_rt_conn *active;
	struct rpma_rt_conn *passive;
};

/*
 * Returns a configuration with the sizes of both queues; the caller frees the
 * configuration.
 */
struct rpma_rt_conn_cfg *world_cfg(uint32_t sq, uint32_t rq);
/* Calls rpma_rt_conn_new() with a copy of cfg that has the other arguments in
 * its fields; cfg NULL: the defaults. */
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
/* Deletes a listener; LISTENER_CLOSED is the next item of its only queue. */
void world_unlisten(struct rpma_rt_listener **listener,
		    struct rpma_rt_queue *queue);
/* Connects: events of active in aq, of passive in pq, both on the poller; both
 * queues are empty before and after. */
void world_connect(struct world *w, const struct rpma_rt_conn_cfg *cfg,
		   int poller, struct rpma_rt_queue *aq,
		   struct rpma_rt_queue *pq, struct world_pair *pair);

/* Begins a connection to the world's port, on the poller; READY is the next
 * item of the queue. */
struct rpma_rt_conn *world_ready(const struct world *w,
				 const struct rpma_rt_conn_cfg *cfg, int poller,
				 struct rpma_rt_queue *queue);
/* Returns the connection of the request that is the next item. */
struct rpma_rt_conn *world_request(struct rpma_rt_queue *queue);
/* Accepts: ESTABLISHED of both ends are the next items. */
void world_accept(const struct world_pair *pair, struct rpma_rt_queue *aq,
		  struct rpma_rt_queue *pq);
/* Takes CLOSED of the connection, the next item, and gives the handle back. The
 * reason is asserted, except WORLD_ANY_REASON. */
#define WORLD_ANY_REASON (-1)
struct rpma_rt_completion world_closed(struct rpma_rt_queue *queue,
				       struct rpma_rt_conn **conn, int reason);
/* Takes items up to CLOSED, the first event. */
void world_until_closed(struct rpma_rt_queue *queue);

/* Gives both handles back. */
void world_unref(struct world_pair *pair);

/* Returns the region as a peer sees the region. */
struct rpma_mr_remote *world_remote_of(const struct rpma_mr_local *mr);

/* A shard and its thread: the first member of the struct of a test, which has
 * an array of such structs. */
struct world_core {
	struct rpma_rt_shard *shard;
	pthread_t thread;
	uint32_t index;
};

/* Makes the shards of the runtime of the world, a shard per poller, with count
 * structs of the size as arguments of their functions. */
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
