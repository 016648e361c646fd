/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * record.h: records of any length, one behind the other, each with a checksum
 * over data, length and position. Meant to be copied: needs nothing but this
 * file. A position is a number of bytes, a multiple of 8.
 */

#ifndef EXAMPLES_RECORD_H
#define EXAMPLES_RECORD_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

struct record {
	uint64_t sum;
	uint32_t len; /* bytes of data */
	uint32_t reserved;
	char data[];
};

/* Returns the bytes of a record, of which len are data. */
static inline uint64_t record_size(uint32_t len)
{
	return (sizeof(struct record) + (uint64_t)len + 7) / 8 * 8;
}

/* Returns the checksum of a record at a position: each step is one to one, so
 * that no single changed word goes unnoticed. */
static inline uint64_t record_sum(const struct record *record, uint64_t at)
{
	const char *bytes = (const char *)record;
	uint64_t sum = at + 1, word, i;

	for (i = sizeof(record->sum); i < record_size(record->len);
	     i += sizeof(word)) {
		memcpy(&word, bytes + i, sizeof(word));
		sum = (sum ^ word) * 0x9e3779b97f4a7c15u;
		sum ^= sum >> 32;
	}
	return sum;
}

/* Writes a record at a position with room; returns the position behind. */
static inline uint64_t record_write(char *records, uint64_t at,
				    const void *data, uint32_t len)
{
	struct record *record = (void *)(records + at);

	memset(record, 0, record_size(len));
	record->len = len;
	memcpy(record->data, data, len);
	record->sum = record_sum(record, at);
	return at + record_size(len);
}

/* Returns the record at a position below end, NULL if the record is damaged. */
static inline const struct record *record_at(const char *records, uint64_t at,
					     uint64_t end)
{
	const struct record *record = (const void *)(records + at);

	if (end - at < sizeof(*record) || end - at < record_size(record->len) ||
	    record->sum != record_sum(record, at))
		return NULL;
	return record;
}

/* Returns where the first damaged record below end is; end if none is. */
static inline uint64_t records_whole(const char *records, uint64_t end)
{
	const struct record *record;
	uint64_t at = 0;

	while (at < end && (record = record_at(records, at, end)) != NULL)
		at += record_size(record->len);
	return at;
}

/* Returns up to where the records below both ends are the same; the records of
 * b are whole. */
static inline uint64_t records_common(const char *a, uint64_t a_end,
				      const char *b, uint64_t b_end)
{
	uint64_t at = 0, size;

	while (at < a_end && at < b_end) {
		size = record_size(((const struct record *)(b + at))->len);
		if (size > a_end - at || memcmp(a + at, b + at, size) != 0)
			break;
		at += size;
	}
	return at;
}

#endif /* EXAMPLES_RECORD_H */
