/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * message.c: encoding, decoding and the pattern.
 */

#include "message.h"

#include <endian.h>
#include <string.h>

#define HELLO_MAGIC   0x6f686365u /* "echo" */
#define REFUSAL_MAGIC 0x6f6e6365u
#define VERSION	      1u

static uint8_t *put32(uint8_t *at, uint32_t value)
{
	value = htole32(value);
	memcpy(at, &value, sizeof(value));
	return at + sizeof(value);
}

static uint8_t *put64(uint8_t *at, uint64_t value)
{
	value = htole64(value);
	memcpy(at, &value, sizeof(value));
	return at + sizeof(value);
}

static uint32_t get32(const uint8_t *at)
{
	uint32_t value;

	memcpy(&value, at, sizeof(value));
	return le32toh(value);
}

static uint64_t get64(const uint8_t *at)
{
	uint64_t value;

	memcpy(&value, at, sizeof(value));
	return le64toh(value);
}

void hello_encode(const struct hello *hello, uint8_t bytes[HELLO_SIZE])
{
	uint8_t *at = bytes;

	at = put32(at, HELLO_MAGIC);
	at = put32(at, VERSION);
	at = put32(at, hello->connection);
	at = put32(at, hello->size);
	at = put32(at, hello->depth);
	at = put32(at, 0);
	at = put64(at, hello->seed);
	put64(at, hello->total);
}

bool hello_decode(const void *bytes, size_t len, struct hello *hello)
{
	const uint8_t *at = bytes;

	/* more bytes than sent are fine: some devices pad with zeros */
	if (!at || len < HELLO_SIZE || get32(at) != HELLO_MAGIC ||
	    get32(at + 4) != VERSION)
		return false;
	*hello = (struct hello){
		.connection = get32(at + 8),
		.size = get32(at + 12),
		.depth = get32(at + 16),
		.seed = get64(at + 24),
		.total = get64(at + 32),
	};
	return true;
}

void refusal_encode(const struct refusal *refusal,
		    uint8_t bytes[REFUSAL_SIZE_BYTES])
{
	uint8_t *at = bytes;

	at = put32(at, REFUSAL_MAGIC);
	at = put32(at, VERSION);
	at = put32(at, refusal->reason);
	put32(at, refusal->limit);
}

bool refusal_decode(const void *bytes, size_t len, struct refusal *refusal)
{
	const uint8_t *at = bytes;

	if (!at || len < REFUSAL_SIZE_BYTES || get32(at) != REFUSAL_MAGIC ||
	    get32(at + 4) != VERSION)
		return false;
	*refusal = (struct refusal){
		.reason = get32(at + 8),
		.limit = get32(at + 12),
	};
	return true;
}

/*
 * splitmix64: each step is independent of the step before, so the compiler can
 * vectorize
 */
static uint64_t mix(uint64_t x)
{
	x = (x ^ x >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
	x = (x ^ x >> 27) * UINT64_C(0x94d049bb133111eb);
	return x ^ x >> 31;
}

static uint64_t pattern_start(uint64_t seed, uint32_t connection,
			      uint64_t sequence)
{
	return mix(seed + mix((uint64_t)connection << 40 ^ sequence));
}

static uint64_t pattern_word(uint64_t start, uint32_t i)
{
	return htole64(mix(start + i * UINT64_C(0x9e3779b97f4a7c15)));
}

void message_fill(void *buf, uint32_t size, uint64_t seed, uint32_t connection,
		  uint64_t sequence)
{
	uint64_t start = pattern_start(seed, connection, sequence);
	uint8_t *at = buf;
	uint32_t left = size - 16;

	at = put32(at, connection);
	at = put32(at, size);
	at = put64(at, sequence);
	uint64_t word = pattern_word(start, 0);
	for (uint32_t i = 1; left >= sizeof(word); i++) {
		memcpy(at, &word, sizeof(word));
		at += sizeof(word);
		left -= (uint32_t)sizeof(word);
		word = pattern_word(start, i);
	}
	memcpy(at, &word, left);
}

bool message_check(const void *buf, uint32_t size, uint64_t seed,
		   uint32_t connection, uint64_t sequence)
{
	uint64_t start = pattern_start(seed, connection, sequence);
	const uint8_t *at = buf;
	uint32_t left = size - 16;

	if (get32(at) != connection || get32(at + 4) != size ||
	    get64(at + 8) != sequence)
		return false;
	at += 16;
	uint64_t word = pattern_word(start, 0);
	for (uint32_t i = 1; left >= sizeof(word); i++) {
		if (memcmp(at, &word, sizeof(word)))
			return false;
		at += sizeof(word);
		left -= (uint32_t)sizeof(word);
		word = pattern_word(start, i);
	}
	return memcmp(at, &word, left) == 0;
}
