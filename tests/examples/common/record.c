/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/* Records: a changed word, a missing end and another place are noticed. */

#include <stdio.h>

#include "../../cases.h"
#include "record.h"

#define COUNT 20

static uint64_t words[1024];
static char *const records = (char *)words;
static uint64_t ends[COUNT + 1]; /* of the first so many records */

static int setup(void **state)
{
	char data[64];
	int i, len;

	(void)state;
	for (i = 0; i < COUNT; i++) {
		len = snprintf(data, sizeof(data), "record %*d", i, i);
		ends[i + 1] =
			record_write(records, ends[i], data, (uint32_t)len);
	}
	return 0;
}

TEST(record_at__all_are_there)
{
	const struct record *record;
	char data[64];
	int i, len;

	for (i = 0; i < COUNT; i++) {
		len = snprintf(data, sizeof(data), "record %*d", i, i);
		record = record_at(records, ends[i], ends[COUNT]);
		assert_non_null(record);
		assert_int_equal(record->len, len);
		assert_memory_equal(record->data, data, (size_t)len);
		assert_int_equal(ends[i] + record_size(record->len),
				 ends[i + 1]);
	}
	assert_int_equal(records_whole(records, ends[COUNT]), ends[COUNT]);
}

TEST(records_whole__each_changed_word_is_found)
{
	uint64_t at;
	int i;

	for (i = 0; i < COUNT; i++)
		for (at = ends[i]; at < ends[i + 1]; at += 8) {
			words[at / 8] ^= 1u << at % 31;
			assert_int_equal(records_whole(records, ends[COUNT]),
					 ends[i]);
			words[at / 8] ^= 1u << at % 31;
		}
}

TEST(records_whole__missing_end_is_found)
{
	uint64_t end;
	int i;

	for (i = 0; i < COUNT; i++)
		for (end = ends[i]; end < ends[i + 1]; end += 8)
			assert_int_equal(records_whole(records, end), ends[i]);
}

TEST(record_at__moved_record_is_damaged)
{
	static uint64_t moved[1024];

	memcpy((char *)moved + ends[2], records + ends[1], ends[2] - ends[1]);
	assert_null(record_at((char *)moved, ends[2], sizeof(moved)));
}

int main(void)
{
	return tests_run(setup, NULL);
}
