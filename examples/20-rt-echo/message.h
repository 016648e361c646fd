/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * message.h: the bytes that the two ends exchange.
 *
 * hello travels with the connection request (56 bytes at most), refusal with a
 * rejection; both are little endian, and trusted only after a check. A message
 * is connection, length, sequence number and a pattern drawn from seed,
 * connection and sequence number; the reply has the same bytes.
 */

#ifndef ECHO_MESSAGE_H
#define ECHO_MESSAGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define MESSAGE_MIN 24
#define MESSAGE_MAX (1u << 20)

struct hello {
	uint32_t connection; /* number of the connection at the client */
	uint32_t size;	     /* of each message */
	uint32_t depth;	     /* messages in flight */
	uint64_t seed;
	uint64_t total; /* number of messages, 0 = until the connection
			 * closes */
};

#define HELLO_SIZE 40

void hello_encode(const struct hello *hello, uint8_t bytes[HELLO_SIZE]);
/*
 * Decodes a hello; returns false if the bytes are no hello. len may be larger.
 */
bool hello_decode(const void *bytes, size_t len, struct hello *hello);

enum refusal_reason {
	REFUSAL_NOT_HELLO = 1,
	REFUSAL_SIZE = 2,
	REFUSAL_DEPTH = 3,
	REFUSAL_CONNECTIONS = 4,
	REFUSAL_MEMORY = 5,
	REFUSAL_STOPPING = 6
};

struct refusal {
	uint32_t reason;
	uint32_t limit; /* the most that the server takes */
};

#define REFUSAL_SIZE_BYTES 16

void refusal_encode(const struct refusal *refusal,
		    uint8_t bytes[REFUSAL_SIZE_BYTES]);
bool refusal_decode(const void *bytes, size_t len, struct refusal *refusal);

/* buf has size bytes, at least MESSAGE_MIN */
void message_fill(void *buf, uint32_t size, uint64_t seed, uint32_t connection,
		  uint64_t sequence);
bool message_check(const void *buf, uint32_t size, uint64_t seed,
		   uint32_t connection, uint64_t sequence);

#endif /* ECHO_MESSAGE_H */
