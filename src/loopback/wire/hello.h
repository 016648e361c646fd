/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * hello.h -- the records of the handshake, by which two processes find out that
 * they can have a link.
 */

#ifndef LB_WIRE_HELLO_H
#define LB_WIRE_HELLO_H

#include <stddef.h>
#include <stdint.h>

enum {
	LB_HELLO_MAGIC = 0x77617063,
	/* of layout, records and this: one number, see wire.md */
	LB_HELLO_VERSION = 4,
};

enum lb_hello_kind {
	LB_HELLO_HELLO = 1,
	LB_HELLO_ANSWER,
	LB_HELLO_READY,
	LB_HELLO_REFUSAL,
};

/* Why there is no link. */
enum lb_hello_reason {
	LB_HELLO_OK,
	LB_HELLO_COME_AGAIN, /* later: another life or contact is in the way */
	LB_HELLO_VERSIONS,
	LB_HELLO_USERS,
	LB_HELLO_DEVICES,
	LB_HELLO_WRONG, /* it is no such record */
	LB_HELLO_SEGMENT,
	LB_HELLO_REASONS,
};

struct lb_hello {
	/* these three never move */
	uint32_t magic;
	uint16_t version;
	uint16_t length;

	uint32_t kind;
	uint32_t number; /* of its sender */
	uint64_t cookie;
	uint64_t devices_hash;
	uint32_t devices;
	uint32_t user;
	uint32_t reason; /* of a refusal */
	uint32_t spare;
};

/*
 * Returns why there can be no link with the sender of the bytes, or that there
 * can be a link; fills *theirs.
 */
enum lb_hello_reason lb_hello_check(const struct lb_hello *mine,
				    const void *bytes, size_t size,
				    struct lb_hello *theirs);
/*
 * Say that there is none, with the values of both sides. theirs: as far as it
 * is known. Not of COME_AGAIN.
 */
void lb_hello_log(enum lb_hello_reason reason, const struct lb_hello *mine,
		  const struct lb_hello *theirs);

#endif /* LB_WIRE_HELLO_H */
