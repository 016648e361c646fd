/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * kv.h: the common part of a key-value server and its clients. The server
 * greets each client with KV_READY. From then on a client has at most KV_WINDOW
 * requests without an answer. An answer has the key of the request.
 */

#ifndef EXAMPLES_KV_H
#define EXAMPLES_KV_H

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <rpma_rt.h>

#include "../common/peer.h"

#define KV_WINDOW    4
#define KV_VALUE_MAX 256

enum kv_op {
	KV_GET = 1,
	KV_SET,
	KV_SHUTDOWN, /* the server ends */
	KV_READY,
	KV_VALUE,
	KV_STORED,
	KV_NONE
};

/* value: len bytes, for KV_SET and KV_VALUE */
struct kv_message {
	uint32_t op;
	uint32_t len;
	uint64_t key;
	char value[KV_VALUE_MAX];
};

/* Returns the bytes of a message on the wire. */
static inline size_t kv_size(const struct kv_message *message)
{
	return offsetof(struct kv_message, value) + message->len;
}

/* Returns true for a whole message. Bytes of a peer are checked before use. */
static inline int kv_is_whole(const struct rpma_rt_lease *lease)
{
	const struct kv_message *message = lease->data;

	return lease->len >= offsetof(struct kv_message, value) &&
	       message->len <= KV_VALUE_MAX && lease->len >= kv_size(message);
}

/* Writes a message, but for the value. */
static inline void kv_fill(struct kv_message *message, enum kv_op op,
			   uint64_t key, uint32_t len)
{
	message->op = op;
	message->len = len;
	message->key = key;
}

/* Ends the program if a call fails that has to succeed. */
#define MUST(call) kv_must(#call, call)

static inline int kv_must(const char *what, int ret)
{
	if (ret >= 0)
		return ret;
	fprintf(stderr, "%s: %s\n", what, rpma_rt_err_2str(ret));
	exit(1);
}

/* the common objects of both ends, with default configurations */
struct kv {
	struct rpma_peer *peer;
	struct rpma_rt *rt;
	struct rpma_rt_pool *pool;
};

static inline void kv_open(struct kv *kv, const char *address,
			   enum rpma_util_ibv_context_type type, int pollers)
{
	struct rpma_rt_pool_cfg pool_cfg = RPMA_RT_POOL_CFG_INIT;
	struct rpma_rt_cfg cfg = RPMA_RT_CFG_INIT;

	MUST(open_peer(address, type, &kv->peer));
	cfg.pollers = pollers;
	MUST(rpma_rt_new(&cfg, &kv->rt));
	pool_cfg.peer = kv->peer;
	MUST(rpma_rt_pool_new(kv->rt, &pool_cfg, &kv->pool));
}

/*
 * Closes everything, after the runtime has stopped and its queues are deleted.
 */
static inline void kv_close(struct kv *kv)
{
	MUST(rpma_rt_pool_delete(&kv->pool));
	MUST(rpma_rt_delete(&kv->rt));
	MUST(rpma_peer_delete(&kv->peer));
}

#endif /* EXAMPLES_KV_H */
