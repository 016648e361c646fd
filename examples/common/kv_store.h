/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * kv_store.h: values by key. A value lies in the arena, does not change, and is
 * counted: a request writes a value to its client while another request
 * replaces the value in the store. Thread: any; a bucket has one of LOCKS
 * locks. A single thread, without a lock, if arena.has_one_thread.
 */

#ifndef EXAMPLES_KV_STORE_H
#define EXAMPLES_KV_STORE_H

#ifdef __cplusplus
#include <atomic>
using std::atomic_uint;
#else
#include <stdatomic.h>
#endif
#include <stdio.h>

#include "arena.h"

struct value {
	struct arena *arena;
	uint64_t offset;
	uint32_t len;
	atomic_uint refs;
};

struct entry {
	struct entry *next;
	struct value *value;
	uint32_t key_len;
	uint8_t key[];
};

#define STORE_LOCKS 64

struct store {
	struct arena *arena;
	struct entry **buckets;
	size_t bucket_count; /* a power of two */
	pthread_mutex_t locks[STORE_LOCKS];
};

/* Makes a value of len bytes, to be filled; returns NULL without memory. */
struct value *value_new(struct arena *arena, uint32_t len);
static inline char *value_bytes(const struct value *value)
{
	return value->arena->memory + value->offset;
}
/* Takes a reference, and returns the value; drops a reference. */
struct value *value_ref(struct value *value);
void value_unref(struct value *value);

int store_open(struct store *store, struct arena *arena, size_t bucket_count);
void store_close(struct store *store);
/* Returns the value with a reference of the caller, or NULL. */
struct value *store_get(struct store *store, const void *key, size_t len);
/* Returns the value, or NULL, without a reference: the value stays in the store
 * until store_unlock(), which the caller owes for a value, and soon. */
struct value *store_look(struct store *store, const void *key, size_t len,
			 pthread_mutex_t **lock);
static inline void store_unlock(const struct store *store,
				pthread_mutex_t *lock)
{
	if (!store->arena->has_one_thread)
		pthread_mutex_unlock(lock);
}
/* Stores the value with the reference of the caller; returns false, and takes
 * nothing, without memory. */
bool store_put(struct store *store, const void *key, size_t len,
	       struct value *value);
/* Removes the value; returns false if there is none. */
bool store_delete(struct store *store, const void *key, size_t len);

/* Writes the values of all stores to the file, and reads the file, each value
 * into the store kv_shard_of() the key, while no other thread uses the stores.
 * Reading fails also if the file could not be written later.
 * Returns 0, or prints what failed and returns an errno. */
int store_save(const struct store *stores, uint32_t count, const char *file);
int store_load(struct store *stores, uint32_t count, const char *file);

#endif /* EXAMPLES_KV_STORE_H */
