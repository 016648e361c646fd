/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * ring.h -- the bytes of a ring: a record at a position, which counts bytes
 * without end. Who may write where, and when, is for link.c to know.
 */

#ifndef LB_WIRE_RING_H
#define LB_WIRE_RING_H

#include <stdbool.h>
#include <stdint.h>

#include "base/span.h"
#include "wire/record.h"
#include "wire/segment.h"

/* Write a record: of src, which ends with a length of 0, from offset `from`. */
void lb_ring_put(uint8_t *ring, uint64_t at, const struct lb_record *record,
		 const struct lb_span *src, uint64_t from);
/* Write n bytes of whole records. */
void lb_ring_copy(uint8_t *ring, uint64_t at, const uint8_t *bytes, uint32_t n);
/* The header of a record, copied once; and where its payload lies, in that copy
 * if it is small. */
void lb_ring_header(const uint8_t *ring, uint64_t at, struct lb_record *record);
void lb_ring_payload(const uint8_t *ring, uint64_t at,
		     const struct lb_record *record, struct lb_span payload[3]);

/*
 * lb_ring_is_tail(): the tail just read may follow the last tail, if the reader
 * is at head. lb_ring_is_head(): the head just read may follow the last head,
 * if the writer is at tail.
 */
static inline bool lb_ring_is_tail(uint64_t tail, uint64_t last, uint64_t head)
{
	return tail - last <= LB_SEGMENT_RING && tail >= last &&
	       tail - head <= LB_SEGMENT_RING && !(tail % LB_RECORD_UNIT);
}

static inline bool lb_ring_is_head(uint64_t head, uint64_t last, uint64_t tail)
{
	return head >= last && head <= tail && !(head % LB_RECORD_UNIT);
}

#endif /* LB_WIRE_RING_H */
