/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * client.h: a client of the key-value store on one connection, which is made
 * again when it ends. Requests overtake each other, up to the window of the
 * server. Thread: the consumer of the queue.
 */

#ifndef EXAMPLES_KV_CLIENT_H
#define EXAMPLES_KV_CLIENT_H

#include "../common/arena.h"
#include "../common/calls.h"
#include "../common/kv_protocol.h"
#include "../common/reconnect.h"

/* A request, which belongs to the client from kv_client_start() to done(). */
struct kv_op {
	enum kv_kind kind;
	const void *key; /* read by kv_client_start() */
	size_t key_len;
	/* PUT: the value; GET: room for a large value, or NULL. More than
	 * KV_SMALL_MAX bytes lie in the arena. */
	void *bytes;
	uint64_t len;
	uint64_t deadline_ns; /* CALLS_NONE: none */
	bool is_late;	      /* the deadline has passed */
};

struct kv_client {
	struct reconnect link; /* the program fills rt, address, port, cfg */
	struct rpma_rt_pool *pool;
	struct arena *arena;
	/* Called once for each request: with the answer, or, when the
	 * connection has ended, with the status KV_LOST: then nothing is known
	 * of the outcome. The value is valid during the call. */
	void (*done)(struct kv_client *client, struct kv_op *op,
		     const struct kv_answer *answer, const void *value);
	/* Called once when the deadline of a request passes; done() follows,
	 * and until then the memory of the request stays in use. */
	void (*late)(struct kv_client *client, struct kv_op *op);
	void *user;

	struct calls calls; /* window 0: not connected, or leaving */
	uint64_t now_ns;
	uint64_t connects;
	uint64_t broken;	/* messages that are no answers to open calls */
	bool is_leaving;	/* the server has said KV_BYE */
	uint32_t shard, shards; /* as the server's hello says */
	uint8_t hello[KV_HELLO];
};

/* Prepares a client; the first kv_client_tick() connects. */
void kv_client_init(struct kv_client *client);
/* Sends a request. Returns 0, or RPMA_E_AGAIN: not connected, or no room. */
int kv_client_start(struct kv_client *client, struct kv_op *op);
/* Handles an item of the connection. */
void kv_client_item(struct kv_client *client,
		    const struct rpma_rt_completion *item, uint64_t now_ns);
/* Connects, and reports deadlines; returns when to call again. */
uint64_t kv_client_tick(struct kv_client *client, uint64_t now_ns);

#endif /* EXAMPLES_KV_CLIENT_H */
