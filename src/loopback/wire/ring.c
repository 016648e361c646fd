/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * ring.c -- copies records to and from the bytes of a ring. A header never goes
 * around the end, for both are multiples of a unit; payload does in two pieces.
 * No lock and no order of its own.
 */

#include "wire/ring.h"

#include <string.h>

static uint32_t offset(uint64_t at)
{
	return (uint32_t)(at % LB_SEGMENT_RING);
}

void lb_ring_payload(const uint8_t *ring, uint64_t at, uint32_t length,
		     struct lb_span payload[3])
{
	uint32_t begin = offset(at + LB_RECORD_UNIT);
	uint32_t to_end = LB_SEGMENT_RING - begin;
	uint32_t first = length < to_end ? length : to_end;
	uint8_t *bytes = (uint8_t *)(uintptr_t)ring; /* spans are for both */

	payload[0] = (struct lb_span){bytes + begin, first};
	payload[1] = (struct lb_span){bytes, length - first};
	payload[2] = (struct lb_span){NULL, 0};
}

void lb_ring_header(const uint8_t *ring, uint64_t at, struct lb_record *record)
{
	memcpy(record, ring + offset(at), sizeof(*record));
}

/* The next n bytes of a list, which is at offset *at of its first span. */
static const struct lb_span *gather(uint8_t *to, uint64_t n,
				    const struct lb_span *src, uint64_t *at)
{
	while (n) {
		uint64_t piece = src->len - *at;

		if (piece > n)
			piece = n;
		memcpy(to, src->addr + *at, piece);
		to += piece;
		n -= piece;
		*at += piece;
		if (*at == src->len) {
			src++;
			*at = 0;
		}
	}
	return src;
}

void lb_ring_put(uint8_t *ring, uint64_t at, const struct lb_record *record,
		 const struct lb_span *src, uint64_t from)
{
	struct lb_span payload[3];

	memcpy(ring + offset(at), record, sizeof(*record));
	if (!record->length)
		return;
	while (from >= src->len)
		from -= src++->len;
	lb_ring_payload(ring, at, record->length, payload);
	src = gather(payload[0].addr, payload[0].len, src, &from);
	gather(payload[1].addr, payload[1].len, src, &from);
}
