/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * kv_protocol.c: see kv_protocol.h. Bytes of a peer are checked here, and only
 * here, but for offers, which rendezvous.c checks.
 */

#include "kv_protocol.h"

bool kv_request_read(struct kv_request *request, const void *bytes, size_t len)
{
	struct frame *frame = &request->frame;
	size_t key_len, left;
	const uint8_t *body;
	uint8_t how;

	if (!frame_read(frame, bytes, len) || frame->len < KV_BODY)
		return false;
	body = frame->body;
	left = frame->len - KV_BODY;
	key_len = number_at(body, 2);
	how = body[2];
	request->key = body + KV_BODY;
	request->key_len = key_len;
	request->how = (enum kv_how)how;
	request->value_len = number_at(body + 4, 4);
	if (key_len == 0 || key_len > KV_KEY_MAX || key_len > left ||
	    how > KV_BY_OFFER || body[3] != 0)
		return false;
	left -= key_len;
	request->value = (struct reader){request->key + key_len, left, false};
	if (how == KV_BY_OFFER)
		return frame->kind == KV_GET || frame->kind == KV_PUT;
	if (frame->kind != KV_PUT && request->value_len != 0)
		return false;
	return frame->kind >= KV_GET && frame->kind <= KV_DELETE &&
	       left == request->value_len;
}

struct writer kv_request_begin(const struct kv_request *request, void *bytes,
			       size_t room)
{
	struct writer writer = {bytes, room, false};

	write_place(&writer, FRAME_HEAD);
	write_number(&writer, request->key_len, 2);
	write_number(&writer, request->how, 1);
	write_number(&writer, 0, 1);
	write_number(&writer, request->value_len, 4);
	write_bytes(&writer, request->key, request->key_len);
	return writer;
}

size_t kv_request_end(const struct kv_request *request,
		      const struct writer *writer, void *bytes)
{
	struct frame frame = request->frame;
	size_t len = (size_t)(writer->at - (uint8_t *)bytes);

	if (writer->is_bad)
		return 0;
	frame.len = len - FRAME_HEAD;
	frame_write(&frame, bytes);
	return len;
}

bool kv_answer_read(struct kv_answer *answer, const void *bytes, size_t len)
{
	struct reader body;
	uint64_t how, zero;

	if (!frame_read(&answer->frame, bytes, len))
		return false;
	body = (struct reader){answer->frame.body, answer->frame.len, false};
	how = read_number(&body, 1);
	zero = read_number(&body, 3);
	answer->value_len = read_number(&body, 4);
	answer->how = (enum kv_how)how;
	answer->value = body.left > 0 ? body.at : NULL;
	if (body.is_bad || how > KV_BY_OFFER || zero != 0 ||
	    (answer->frame.kind != KV_ANSWER && answer->frame.kind != KV_BYE))
		return false;
	return body.left == 0 ||
	       (how == KV_IN_MESSAGE && body.left == answer->value_len);
}

size_t kv_answer_write(const struct kv_answer *answer, void *bytes,
		       uint8_t **value)
{
	bool has_value =
		answer->frame.status == KV_OK && answer->how == KV_IN_MESSAGE;
	uint8_t *body = (uint8_t *)bytes + FRAME_HEAD;
	struct frame frame = answer->frame;

	frame.len = KV_BODY + (has_value ? answer->value_len : 0);
	frame_write(&frame, bytes);
	number_to(body, answer->how, 4); /* and zeros */
	number_to(body + 4, answer->value_len, 4);
	*value = body + KV_BODY;
	return FRAME_HEAD + frame.len;
}

static uint64_t hash_word(uint64_t hash, uint64_t word)
{
	hash = (hash ^ word) * 0x9e3779b97f4a7c15u;
	return hash ^ hash >> 32;
}

uint64_t kv_hash(const void *key, size_t len)
{
	const uint8_t *at = key;
	uint64_t hash = len, word;

	for (; len >= sizeof(word); len -= sizeof(word), at += sizeof(word))
		hash = hash_word(hash, number_at(at, sizeof(word)));
	word = 0;
	memcpy(&word, at, len);
	return len > 0 ? hash_word(hash, le64toh(word)) : hash;
}

bool kv_hello_read(struct kv_hello *hello, const void *bytes, size_t len)
{
	struct reader reader = {bytes, bytes ? len : 0, false};
	uint64_t magic = read_number(&reader, 4);

	/* some devices pad private data with zeros */
	hello->window = (uint32_t)read_number(&reader, 4);
	hello->value_max = (uint32_t)read_number(&reader, 4);
	hello->shard = (uint32_t)read_number(&reader, 2);
	hello->shards = (uint32_t)read_number(&reader, 2);
	return !reader.is_bad && magic == KV_MAGIC;
}

void kv_hello_write(const struct kv_hello *hello, uint8_t bytes[KV_HELLO])
{
	struct writer writer = {bytes, KV_HELLO, false};

	write_number(&writer, KV_MAGIC, 4);
	write_number(&writer, hello->window, 4);
	write_number(&writer, hello->value_max, 4);
	write_number(&writer, hello->shard, 2);
	write_number(&writer, hello->shards, 2);
}
