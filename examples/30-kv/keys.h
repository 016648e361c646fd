/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * keys.h: the keys of a thread of the load generator, and which values the
 * server may return. Each write has a version, the value names key and version,
 * and a key has at most one write without an answer. So the load knows: a read
 * returns a version not older than the last version acknowledged before the
 * read began, and not newer than the last version sent.
 */

#ifndef EXAMPLES_KV_KEYS_H
#define EXAMPLES_KV_KEYS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define KEY_LEN	  16
#define VALUE_MIN 16

struct key {
	uint32_t sent;	  /* the version of the last write */
	uint32_t acked;	  /* the last version that the server acknowledged */
	uint32_t deleted; /* the version of the last delete */
	bool is_busy;	  /* a write has no answer */
};

struct keys {
	struct key *keys;
	uint32_t count;
	uint64_t space; /* differs between threads, and between processes */
	double *zipf;	/* cumulated shares by rank; NULL: uniform */
	uint64_t random;
};

bool keys_open(struct keys *keys, uint32_t count, uint64_t space, bool is_zipf);
void keys_close(struct keys *keys);
uint64_t keys_random(struct keys *keys);
/* Chooses a key by the distribution. */
uint32_t keys_choose(struct keys *keys);
void keys_name(const struct keys *keys, uint32_t key, char name[KEY_LEN]);

/* Fills the value of a version. */
void keys_fill(const struct keys *keys, uint32_t key, uint32_t version,
	       void *bytes, size_t len);
/* Judges a read that began when the version acked was acknowledged; value NULL:
 * the server has no such key. Returns NULL, or what is wrong. */
const char *keys_judge(const struct keys *keys, uint32_t key, uint32_t acked,
		       const void *value, size_t len);

#endif /* EXAMPLES_KV_KEYS_H */
