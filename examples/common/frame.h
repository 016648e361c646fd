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

/* Reads and writes a number of len bytes, at most 8, where there is room. */
static inline uint64_t number_at(const uint8_t *at, size_t len)
{
	uint64_t number = 0;

	memcpy(&number, at, len);
	return le64toh(number);
}

static inline void number_to(uint8_t *at, uint64_t number, size_t len)
{
	number = htole64(number);
	memcpy(at, &number, len);
}

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

	return at != NULL ? number_at(at, len) : 0;
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

	if (at != NULL)
		number_to(at, number, len);
}

/* -------------------------------------------------------------- frames --- */

/* Reads a message of len bytes. Returns false for any bytes but a whole frame,
 * without bytes behind the frame. */
static inline bool frame_read(struct frame *frame, const void *bytes,
			      size_t len)
{
	const uint8_t *head = (const uint8_t *)bytes;

	if (len < FRAME_HEAD)
		return false;
	frame->kind = head[5];
	frame->status = head[6];
	frame->id = number_at(head + 8, 8);
	frame->left_us = (uint32_t)number_at(head + 16, 4);
	frame->body = head + FRAME_HEAD;
	frame->len = len - FRAME_HEAD;
	return number_at(head, 4) == frame->len && head[4] == FRAME_VERSION &&
	       head[7] == 0 && number_at(head + 20, 4) == 0;
}

/* Writes the head of a frame, whose body has frame->len bytes. */
static inline void frame_write(const struct frame *frame, void *bytes)
{
	uint8_t *head = (uint8_t *)bytes;

	number_to(head, frame->len, 4);
	head[4] = FRAME_VERSION;
	head[5] = frame->kind;
	head[6] = frame->status;
	head[7] = 0;
	number_to(head + 8, frame->id, 8);
	number_to(head + 16, frame->left_us, 4);
	number_to(head + 20, 0, 4);
}

#endif /* EXAMPLES_FRAME_H */
