/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * kv_protocol.h: the messages of the key-value store: frames
 * (frame.h) with a body.
 *
 *	request  2 bytes of the key, 1 how, 1 zero, 4 bytes of the value, the
 *	         key; PUT: the value or an offer; GET: nothing or an offer
 *	answer   1 how, 3 zero, 4 bytes of the value; GET: the value, if the
 *	         value was not written into the offer
 *
 * A client opens with the magic number in the private data, and the server
 * accepts or rejects with struct kv_hello. A client has at most hello.window
 * requests without an answer, and receives for window + 1 messages, since
 * KV_BYE comes without a request: the server is about to stop, answers what was
 * sent, and waits for the client to close.
 */

#ifndef EXAMPLES_KV_PROTOCOL_H
#define EXAMPLES_KV_PROTOCOL_H

#include "frame.h"

#define KV_MAGIC     0x3076766b /* kvv0 */
#define KV_MESSAGE   4096	/* bytes of the largest message */
#define KV_KEY_MAX   64
#define KV_VALUE_MAX ((uint64_t)1 << 26)
#define KV_HELLO     16 /* bytes */
#define KV_BODY	     8	/* bytes before the key, or the value of an answer */
/* the largest value in a message, with any key */
#define KV_SMALL_MAX (KV_MESSAGE - FRAME_HEAD - KV_BODY - KV_KEY_MAX)
/* the largest value in an answer */
#define KV_ANSWER_MAX (KV_MESSAGE - FRAME_HEAD - KV_BODY)

enum kv_kind { KV_GET = 1, KV_PUT, KV_DELETE, KV_ANSWER, KV_BYE };
enum kv_how { KV_IN_MESSAGE, KV_BY_OFFER };
enum kv_status {
	KV_OK,
	KV_NONE,    /* no such key */
	KV_LARGE,   /* the value, whose length is in the answer, has no room in
		     * a message, or in the offer */
	KV_FULL,    /* the server has no memory for the value */
	KV_EXPIRED, /* the deadline has passed; nothing was done */
	KV_INVALID, /* the server cannot do that */
	KV_LOST	    /* the client's: the connection ended before the answer */
};

struct kv_request {
	struct frame frame;
	const uint8_t *key;
	size_t key_len;
	enum kv_how how;
	uint64_t value_len;  /* PUT; GET with an offer: the room */
	struct reader value; /* PUT: the value, or the offer */
};

struct kv_answer {
	struct frame frame;
	enum kv_how how;
	uint64_t value_len;
	const uint8_t *value; /* NULL, unless in the message */
};

struct kv_hello {
	uint32_t window; /* 0: rejected, the server has no room or stops */
	uint32_t value_max;
	/* the shard of the connection, of so many; 0 of 0: no shards */
	uint32_t shard, shards;
};

/* Reads a message of a client; returns false for anything else. */
bool kv_request_read(struct kv_request *request, const void *bytes, size_t len);
/*
 * Writes a request up to the key. Returns the writer at the end of the key,
 * where the value or the offer follows; kv_request_end() returns the bytes of
 * the message, 0 if the room was too small.
 */
struct writer kv_request_begin(const struct kv_request *request, void *bytes,
			       size_t room);
size_t kv_request_end(const struct kv_request *request,
		      const struct writer *writer, void *bytes);

/* Reads a message of a server, KV_ANSWER or KV_BYE. */
bool kv_answer_read(struct kv_answer *answer, const void *bytes, size_t len);
/*
 * Writes an answer without the value, whose place the caller gets: in
 * value_len bytes if the value is in the message. Returns the bytes of the
 * message.
 */
size_t kv_answer_write(const struct kv_answer *answer, void *bytes,
		       uint8_t **value);

/* Returns the hash of a key: the shard kv_shard_of() has the key. */
uint64_t kv_hash(const void *key, size_t len);
static inline uint32_t kv_shard_of(uint64_t hash, uint32_t shards)
{
	return (uint32_t)((hash >> 32) % shards);
}

bool kv_hello_read(struct kv_hello *hello, const void *bytes, size_t len);
void kv_hello_write(const struct kv_hello *hello, uint8_t bytes[KV_HELLO]);

#endif /* EXAMPLES_KV_PROTOCOL_H */
