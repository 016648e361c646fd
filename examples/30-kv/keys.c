/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/* keys.c: see keys.h. */

#include "keys.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define ZIPF_EXPONENT 0.99
#define GOLDEN	      0x9e3779b97f4a7c15u

static uint64_t mix(uint64_t number)
{
	number = (number ^ number >> 30) * 0xbf58476d1ce4e5b9u;
	number = (number ^ number >> 27) * 0x94d049bb133111ebu;
	return number ^ number >> 31;
}

uint64_t keys_random(struct keys *keys)
{
	return mix(keys->random += GOLDEN);
}

bool keys_open(struct keys *keys, uint32_t count, uint64_t space, bool is_zipf)
{
	double sum = 0;
	uint32_t i;

	*keys = (struct keys){.count = count, .space = space, .random = space};
	keys->keys = calloc(count, sizeof(*keys->keys));
	if (is_zipf)
		keys->zipf = calloc(count, sizeof(*keys->zipf));
	if (keys->keys == NULL || (is_zipf && keys->zipf == NULL))
		return false;
	for (i = 0; is_zipf && i < count; i++)
		keys->zipf[i] = sum += 1 / pow(i + 1, ZIPF_EXPONENT);
	return true;
}

void keys_close(struct keys *keys)
{
	free(keys->keys);
	free(keys->zipf);
}

uint32_t keys_choose(struct keys *keys)
{
	uint64_t random = keys_random(keys);
	uint32_t low = 0, high = keys->count - 1;
	double share;

	if (keys->zipf == NULL)
		return (uint32_t)(random % keys->count);
	share = (double)(random >> 11) / (double)(1ull << 53) *
		keys->zipf[high];
	while (low < high) {
		uint32_t middle = low + (high - low) / 2;

		if (keys->zipf[middle] < share)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

void keys_name(const struct keys *keys, uint32_t key, char name[KEY_LEN])
{
	uint64_t number = key;

	memcpy(name, &keys->space, sizeof(keys->space));
	memcpy(name + sizeof(keys->space), &number, sizeof(number));
}

/* ------------------------------------------------------------- values --- */

struct head {
	uint32_t version;
	uint32_t len;
	uint64_t seed; /* of the words that follow */
};

static struct head head_of(const struct keys *keys, uint32_t key,
			   uint32_t version, size_t len)
{
	return (struct head){
		version, (uint32_t)len,
		mix(keys->space ^ mix(key ^ (uint64_t)version << 32))};
}

void keys_fill(const struct keys *keys, uint32_t key, uint32_t version,
	       void *bytes, size_t len)
{
	struct head head = head_of(keys, key, version, len);
	uint64_t word = head.seed;
	char *at = bytes;
	size_t done;

	memcpy(at, &head, sizeof(head));
	for (done = sizeof(head); done < len; done += sizeof(word)) {
		word += GOLDEN;
		memcpy(at + done, &word,
		       len - done < sizeof(word) ? len - done : sizeof(word));
	}
}

/* Returns whether the bytes are the value of a version, whole. */
static bool is_whole(const struct keys *keys, uint32_t key,
		     const struct head *head, const char *at, size_t len)
{
	struct head expected = head_of(keys, key, head->version, len);
	uint64_t word = expected.seed;
	size_t done;

	if (memcmp(head, &expected, sizeof(expected)) != 0)
		return false;
	for (done = sizeof(expected); done < len; done += sizeof(word)) {
		word += GOLDEN;
		if (memcmp(at + done, &word,
			   len - done < sizeof(word) ? len - done
						     : sizeof(word)) != 0)
			return false;
	}
	return true;
}

const char *keys_judge(const struct keys *keys, uint32_t key, uint32_t acked,
		       const void *value, size_t len)
{
	const struct key *state = &keys->keys[key];
	struct head head;

	if (value == NULL)
		return acked == 0 || state->deleted >= acked
			       ? NULL
			       : "an acknowledged value is gone";
	if (len < sizeof(head))
		return "a value is too short";
	memcpy(&head, value, sizeof(head));
	if (!is_whole(keys, key, &head, value, len))
		return "a value is damaged, or belongs to another key";
	if (head.version < acked)
		return "an acknowledged value is gone, an older one is there";
	if (head.version > state->sent)
		return "a value was never sent";
	return NULL;
}
