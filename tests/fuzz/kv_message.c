/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * Any bytes as a message of the key-value store, and as private data: refused,
 * or whole; then everything lies inside the message, and the message that is
 * written from the result is the same.
 */

#include "fuzz.h"

#include <stdlib.h>
#include <string.h>

#include "kv_protocol.h"

/* Expects len bytes to lie inside the message. */
static void expect_inside(const uint8_t *data, size_t size, const uint8_t *at,
			  size_t len)
{
	expect(at >= data && at <= data + size);
	expect(len <= (size_t)(data + size - at));
}

static void request(const uint8_t *data, size_t size)
{
	uint8_t again[KV_MESSAGE];
	struct kv_request request;
	struct writer writer;

	if (!kv_request_read(&request, data, size))
		return;
	expect(request.key_len > 0 && request.key_len <= KV_KEY_MAX);
	expect_inside(data, size, request.key, request.key_len);
	expect_inside(data, size, request.value.at, request.value.left);
	expect(request.frame.kind >= KV_GET && request.frame.kind <= KV_DELETE);
	if (request.how == KV_IN_MESSAGE)
		expect(request.value.left == request.value_len);
	writer = kv_request_begin(&request, again, sizeof(again));
	write_bytes(&writer, request.value.at, request.value.left);
	expect(kv_request_end(&request, &writer, again) ==
	       (size > sizeof(again) ? 0 : size));
	/* a request has no status */
	expect(size > sizeof(again) || memcmp(again, data, size) == 0);
}

static void answer(const uint8_t *data, size_t size)
{
	struct kv_answer answer;
	uint8_t again[KV_MESSAGE], *place;
	size_t len;

	if (!kv_answer_read(&answer, data, size))
		return;
	len = answer.value ? answer.value_len : 0;
	if (answer.value)
		expect_inside(data, size, answer.value, len);
	if (answer.frame.status != KV_OK || size > sizeof(again) ||
	    (len != answer.value_len && answer.how == KV_IN_MESSAGE))
		return;
	expect(kv_answer_write(&answer, again, &place) == size);
	if (len > 0)
		memcpy(place, answer.value, len);
	expect(memcmp(again, data, size) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	uint8_t *copy = malloc(size ? size : 1); /* ends where the bytes end */
	struct kv_hello hello;
	uint8_t again[KV_HELLO];

	expect(copy != NULL);
	memcpy(copy, data, size);
	request(copy, size);
	answer(copy, size);
	if (kv_hello_read(&hello, copy, size)) {
		kv_hello_write(&hello, again);
		expect(memcmp(again, copy, sizeof(again)) == 0);
	}
	free(copy);
	return 0;
}
