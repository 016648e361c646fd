/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/* kv_store.c: see kv_store.h. */

#include "kv_store.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "kv_protocol.h"

struct value *value_new(struct arena *arena, uint32_t len)
{
	struct value *value = malloc(sizeof(*value));
	uint64_t offset = value ? arena_take(arena, len) : ARENA_FULL;

	if (offset == ARENA_FULL) {
		free(value);
		return NULL;
	}
	value->arena = arena;
	value->offset = offset;
	value->len = len;
	atomic_init(&value->refs, 1);
	return value;
}

struct value *value_ref(struct value *value)
{
	/* relaxed: the lock of the store orders */
	atomic_fetch_add_explicit(&value->refs, 1, memory_order_relaxed);
	return value;
}

void value_unref(struct value *value)
{
	/* the last holder sees what the others did before */
	if (atomic_fetch_sub_explicit(&value->refs, 1, memory_order_acq_rel) >
	    1)
		return;
	arena_give(value->arena, value->offset);
	free(value);
}

int store_open(struct store *store, struct arena *arena, size_t bucket_count)
{
	int i;

	store->arena = arena;
	store->bucket_count = bucket_count;
	for (i = 0; i < STORE_LOCKS; i++)
		pthread_mutex_init(&store->locks[i], NULL);
	store->buckets = calloc(bucket_count, sizeof(*store->buckets));
	return store->buckets ? 0 : RPMA_E_NOMEM;
}

/* Returns the link to the entry of the key, or to the end of the bucket; the
 * bucket is locked by *lock, until store_unlock(). */
static struct entry **lock_entry(struct store *store, const void *key,
				 size_t len, pthread_mutex_t **lock)
{
	uint64_t hash = kv_hash(key, len);
	struct entry **link;

	*lock = &store->locks[hash % STORE_LOCKS];
	if (!store->arena->has_one_thread)
		pthread_mutex_lock(*lock);
	link = &store->buckets[hash & (store->bucket_count - 1)];
	while (*link &&
	       ((*link)->key_len != len || memcmp((*link)->key, key, len) != 0))
		link = &(*link)->next;
	return link;
}

struct value *store_look(struct store *store, const void *key, size_t len,
			 pthread_mutex_t **lock)
{
	const struct entry *entry = *lock_entry(store, key, len, lock);

	if (entry != NULL)
		return entry->value;
	store_unlock(store, *lock);
	return NULL;
}

struct value *store_get(struct store *store, const void *key, size_t len)
{
	pthread_mutex_t *lock;
	struct value *value = store_look(store, key, len, &lock);

	if (value == NULL)
		return NULL;
	value_ref(value);
	store_unlock(store, lock);
	return value;
}

bool store_put(struct store *store, const void *key, size_t len,
	       struct value *value)
{
	pthread_mutex_t *lock;
	struct entry **link = lock_entry(store, key, len, &lock);
	struct entry *entry = *link;
	struct value *former = NULL;

	if (entry != NULL) {
		former = entry->value;
		entry->value = value;
	} else if ((entry = malloc(sizeof(*entry) + len)) != NULL) {
		*entry = (struct entry){NULL, value, (uint32_t)len};
		memcpy(entry->key, key, len);
		*link = entry;
	}
	store_unlock(store, lock);
	if (former != NULL)
		value_unref(former);
	return entry != NULL;
}

bool store_delete(struct store *store, const void *key, size_t len)
{
	pthread_mutex_t *lock;
	struct entry **link = lock_entry(store, key, len, &lock);
	struct entry *entry = *link;

	if (entry != NULL)
		*link = entry->next;
	store_unlock(store, lock);
	if (entry == NULL)
		return false;
	value_unref(entry->value);
	free(entry);
	return true;
}

void store_close(struct store *store)
{
	struct entry *entry;
	size_t i;

	for (i = 0; store->buckets && i < store->bucket_count; i++)
		while ((entry = store->buckets[i]) != NULL) {
			store->buckets[i] = entry->next;
			value_unref(entry->value);
			free(entry);
		}
	free(store->buckets);
	for (i = 0; i < STORE_LOCKS; i++)
		pthread_mutex_destroy(&store->locks[i]);
}

/* ------------------------------------------------------------ the file --- */

/* a record of the file, before key and value */
struct record {
	uint32_t key_len, value_len;
};

static void save_entry(const struct entry *entry, FILE *out)
{
	struct record record = {entry->key_len, entry->value->len};

	fwrite(&record, sizeof(record), 1, out);
	fwrite(entry->key, 1, entry->key_len, out);
	fwrite(value_bytes(entry->value), 1, entry->value->len, out);
}

static void save_entries(const struct store *store, FILE *out)
{
	const struct entry *entry;
	size_t i;

	for (i = 0; i < store->bucket_count; i++)
		for (entry = store->buckets[i]; entry; entry = entry->next)
			save_entry(entry, out);
}

static int file_error(const char *file, int error)
{
	fprintf(stderr, "%s: %s\n", file, strerror(error));
	return error;
}

/* The file has all records or keeps the former contents. */
int store_save(const struct store *stores, uint32_t count, const char *file)
{
	char other[4096];
	FILE *out;
	uint32_t i;
	int failed;

	snprintf(other, sizeof(other), "%s.new", file);
	out = fopen(other, "w");
	if (out == NULL)
		return file_error(other, errno);
	for (i = 0; i < count; i++)
		save_entries(&stores[i], out);
	failed = fflush(out) || ferror(out) || fsync(fileno(out));
	failed |= fclose(out) != 0;
	return failed || rename(other, file) ? file_error(file, errno) : 0;
}

static bool load_entry(struct store *stores, uint32_t count, FILE *in,
		       const struct record *record)
{
	struct store *store;
	struct value *value;
	uint8_t key[KV_KEY_MAX];

	if (record->key_len == 0 || record->key_len > sizeof(key) ||
	    record->value_len > KV_VALUE_MAX ||
	    fread(key, 1, record->key_len, in) != record->key_len)
		return false;
	store = &stores[kv_shard_of(kv_hash(key, record->key_len), count)];
	value = value_new(store->arena, record->value_len);
	if (value == NULL)
		return false;
	if (fread(value_bytes(value), 1, value->len, in) == value->len &&
	    store_put(store, key, record->key_len, value))
		return true;
	value_unref(value);
	return false;
}

/* Tries at the start what store_save() needs at the end. */
static int try_to_save(const char *file)
{
	char other[4096];
	FILE *out;

	snprintf(other, sizeof(other), "%s.new", file);
	out = fopen(other, "w");
	if (out == NULL)
		return file_error(other, errno);
	fclose(out);
	remove(other);
	return 0;
}

int store_load(struct store *stores, uint32_t count, const char *file)
{
	FILE *in = fopen(file, "r");
	struct record record;
	int ret = try_to_save(file);

	if (ret) {
		if (in != NULL)
			fclose(in);
		return ret;
	}
	if (in == NULL)
		/* at the first start there is no file */
		return errno == ENOENT ? 0 : file_error(file, errno);
	while (ret == 0 && fread(&record, sizeof(record), 1, in) == 1)
		ret = load_entry(stores, count, in, &record) ? 0 : EBADMSG;
	if (ferror(in))
		ret = EIO;
	fclose(in);
	if (ret == EBADMSG)
		fprintf(stderr,
			"%s: no file of values, or too many values for "
			"memory=\n",
			file);
	return ret == 0 || ret == EBADMSG ? ret : file_error(file, ret);
}
