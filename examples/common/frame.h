/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * frame.h: the head of every message, and readers and writers of the bytes
 * behind the head. Meant to be copied: needs nothing but this file.
 *
 *	0   4  bytes of the body
 *	4   1  version
 *	5   1  kind: a request, an answer; the numbers belong to the program
 *	6   1  status of an answer
 *	7   1  0
 *	8   8  id: the answer has the id of the request
 *	16  4  microseconds left until the deadline, 0: no deadline
 *	20  4  0
 *
 * Numbers are little-endian. A deadline travels as the time that is left,
 * since the clocks of two machines differ.
 */

#ifndef EXAMPLES_FRAME_H
#define EXAMPLES_FRAME_H

#include <endian.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define FRAME_HEAD    24
#define FRAME_VERSION 1

struct frame {
	uint8_t kind;
	uint8_t status;
	uint32_t left_us;
	uint64_t id;
	const uint8_t *body;
	size_t len; /* bytes of the body */
};

/* ------------------------------------------------------------- reading --- */

/* Bytes of a stranger. After a read beyond the end is_bad stays true, and reads
 * return zeros: a parser checks is_bad once, at the end. */
struct reader {
	const uint8_t *at;
	size_t left;
	bool is_bad;
};

/* Returns len bytes, or NULL beyond the end. */
static inline const uint8_t *read_bytes(struct reader *reader, size_t len)
{
	const uint8_t *at = reader->at;

	if (reader->is_bad || len > reader->left) {
		reader->is_bad = true;
		return NULL;
	}
	reader->at += len;
	reader->left -= len;
	return at;
}

/* Returns a number of len bytes, at most 8. */
static inline uint64_t read_number(struct reader *reader, size_t len)
{
	const uint8_t *at = read_bytes(reader, len);
	uint64_t number = 0;

	if (at != NULL)
		memcpy(&number, at, len);
	return le64toh(number);
}

/* ------------------------------------------------------------- writing --- */

/* Room for bytes. After a write beyond the room is_bad stays true. */
struct writer {
	uint8_t *at;
	size_t room;
	bool is_bad;
};

/* Returns the place of len bytes to be written, or NULL beyond the room. */
static inline uint8_t *write_place(struct writer *writer, size_t len)
{
	uint8_t *at = writer->at;

	if (writer->is_bad || len > writer->room) {
		writer->is_bad = true;
		return NULL;
	}
	writer->at += len;
	writer->room -= len;
	return at;
}

static inline void write_bytes(struct writer *writer, const void *bytes,
			       size_t len)
{
	uint8_t *at = write_place(writer, len);

	if (at != NULL && len > 0)
		memcpy(at, bytes, len);
}

/* Writes a number of len bytes, at most 8. */
static inline void write_number(struct writer *writer, uint64_t number,
				size_t len)
{
	uint8_t *at = write_place(writer, len);
	size_t i;

	for (i = 0; at != NULL && i < len; i++)
		at[i] = (uint8_t)(number >> 8 * i);
}

/* -------------------------------------------------------------- frames --- */

/* Reads a message of len bytes. Returns false for any bytes but a whole frame,
 * without bytes behind the frame. */
static inline bool frame_read(struct frame *frame, const void *bytes,
			      size_t len)
{
	struct reader head = {(const uint8_t *)bytes, len, false};
	uint64_t body = read_number(&head, 4);
	uint64_t version = read_number(&head, 1);

	frame->kind = (uint8_t)read_number(&head, 1);
	frame->status = (uint8_t)read_number(&head, 1);
	version |= read_number(&head, 1) << 8;
	frame->id = read_number(&head, 8);
	frame->left_us = (uint32_t)read_number(&head, 4);
	version |= read_number(&head, 4) << 8;
	frame->body = head.at;
	frame->len = head.left;
	return !head.is_bad && version == FRAME_VERSION && body == head.left;
}

/* Writes the head of a frame, whose body has frame->len bytes. */
static inline void frame_write(const struct frame *frame, void *bytes)
{
	struct writer head = {(uint8_t *)bytes, FRAME_HEAD, false};

	write_number(&head, frame->len, 4);
	write_number(&head, FRAME_VERSION, 1);
	write_number(&head, frame->kind, 1);
	write_number(&head, frame->status, 1);
	write_number(&head, 0, 1);
	write_number(&head, frame->id, 8);
	write_number(&head, frame->left_us, 4);
	write_number(&head, 0, 4);
}

#endif /* EXAMPLES_FRAME_H */
