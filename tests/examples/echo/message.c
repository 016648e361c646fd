/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * The echo example's messages, and the private data of connection requests.
 */

#include <string.h>

#include "../../cases.h"
#include "message.h"

#define SEED	   UINT64_C(0x123456789abcdef0)
#define CONNECTION 17
#define SEQUENCE   UINT64_C(99)

TEST(message_check__filled_TRUE)
{
	uint8_t buf[200];

	for (uint32_t size = MESSAGE_MIN; size < sizeof(buf); size++) {
		memset(buf, 0xee, sizeof(buf));
		message_fill(buf, size, SEED, CONNECTION, SEQUENCE);
		assert_true(
			message_check(buf, size, SEED, CONNECTION, SEQUENCE));
		/* not a byte beyond */
		assert_int_equal(buf[size], 0xee);
	}
}

TEST(message_check__any_byte_changed_FALSE)
{
	uint8_t buf[61];

	message_fill(buf, sizeof(buf), SEED, CONNECTION, SEQUENCE);
	for (size_t i = 0; i < sizeof(buf); i++) {
		buf[i] ^= 0x10;
		assert_false(message_check(buf, sizeof(buf), SEED, CONNECTION,
					   SEQUENCE));
		buf[i] ^= 0x10;
	}
	assert_true(
		message_check(buf, sizeof(buf), SEED, CONNECTION, SEQUENCE));
}

TEST(message_check__of_another_FALSE)
{
	uint8_t buf[64];

	message_fill(buf, 64, SEED, CONNECTION, SEQUENCE);
	assert_false(message_check(buf, 64, SEED + 1, CONNECTION, SEQUENCE));
	assert_false(message_check(buf, 64, SEED, CONNECTION + 1, SEQUENCE));
	assert_false(message_check(buf, 64, SEED, CONNECTION, SEQUENCE + 1));
	assert_false(message_check(buf, 56, SEED, CONNECTION, SEQUENCE));
}

TEST(hello_decode__encoded_COMES_BACK)
{
	const struct hello hello = {1, 2, 3, SEED, UINT64_MAX};
	uint8_t bytes[56] = {0}; /* padded, as some devices do */
	struct hello back;

	hello_encode(&hello, bytes);
	assert_true(hello_decode(bytes, sizeof(bytes), &back));
	assert_int_equal(back.connection, 1);
	assert_int_equal(back.size, 2);
	assert_int_equal(back.depth, 3);
	assert_int_equal(back.seed, SEED);
	assert_int_equal(back.total, UINT64_MAX);
}

TEST(hello_decode__anything_else_FALSE)
{
	const struct hello hello = {1, 2, 3, SEED, 5};
	uint8_t bytes[HELLO_SIZE];
	struct hello back;

	hello_encode(&hello, bytes);
	for (size_t len = 0; len < HELLO_SIZE; len++)
		assert_false(hello_decode(bytes, len, &back));
	assert_false(hello_decode(NULL, 0, &back));
	bytes[0] ^= 1;
	assert_false(hello_decode(bytes, sizeof(bytes), &back));
	bytes[0] ^= 1;
	bytes[4] ^= 1;
	assert_false(hello_decode(bytes, sizeof(bytes), &back));
}

TEST(refusal_decode__encoded_COMES_BACK)
{
	const struct refusal refusal = {REFUSAL_DEPTH, 64};
	uint8_t bytes[REFUSAL_SIZE_BYTES];
	struct refusal back;

	refusal_encode(&refusal, bytes);
	assert_true(refusal_decode(bytes, sizeof(bytes), &back));
	assert_int_equal(back.reason, REFUSAL_DEPTH);
	assert_int_equal(back.limit, 64);
	for (size_t len = 0; len < sizeof(bytes); len++)
		assert_false(refusal_decode(bytes, len, &back));
	bytes[1] ^= 4;
	assert_false(refusal_decode(bytes, sizeof(bytes), &back));
}

TEST_MAIN()
