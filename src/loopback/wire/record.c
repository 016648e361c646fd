/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/* record.c -- what a record may look like. Any thread. */

#include "wire/record.h"

#include <stddef.h>
#include <string.h>

#include "base/random.h"

uint32_t lb_record_largest_answer(const struct lb_record *request)
{
	switch (request->type) {
	case LB_RECORD_DATAGRAM:
	case LB_RECORD_MULTICAST:
		return 0;
	case LB_RECORD_READ:
		return lb_record_room(request->total);
	default:
		return request->flags & LB_RECORD_UNRELIABLE
			       ? 0
			       : lb_record_room(0);
	}
}

uint64_t lb_record_group(const uint8_t gid[16])
{
	uint64_t half[2];

	memcpy(half, gid, sizeof(half));
	return 1ull << (lb_random_mix(half[0] ^ lb_random_mix(half[1])) & 63);
}

/* The most payload of a type, -1 of one that is not known. */
static int most_payload(unsigned type)
{
	switch (type) {
	case LB_RECORD_SEND:
	case LB_RECORD_WRITE:
	case LB_RECORD_DATAGRAM:
	case LB_RECORD_MULTICAST:
	case LB_RECORD_BYTES:
		return LB_RECORD_PAYLOAD;
	case LB_RECORD_ATOMIC_WRITE:
		return 8;
	case LB_RECORD_READ:
	case LB_RECORD_FETCH_ADD:
	case LB_RECORD_CMP_SWP:
	case LB_RECORD_FLUSH:
	case LB_RECORD_ACK:
	case LB_RECORD_VALUE:
	case LB_RECORD_RNR:
	case LB_RECORD_NAK:
	case LB_RECORD_NOBODY:
		return 0;
	default:
		return -1;
	}
}

const char *lb_record_wrong(const struct lb_record *record, bool is_answer)
{
	int most = most_payload(record->type);

	if (most < 0 || is_answer != (record->type >= LB_RECORD_ACK))
		return "type";
	if (record->length > most ||
	    (record->type == LB_RECORD_ATOMIC_WRITE && record->length != 8))
		return "length";
	if ((record->flags & LB_RECORD_INLINE) &&
	    (record->length > LB_RECORD_SMALL ||
	     (record->type != LB_RECORD_SEND &&
	      record->type != LB_RECORD_WRITE)))
		return "flags";
	if (record->type == LB_RECORD_READ && record->total > LB_RECORD_PAYLOAD)
		return "total";
	return NULL;
}
