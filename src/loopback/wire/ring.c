/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * ring.c -- copies records to and from the bytes of a ring. A header never
 * wraps around the end, because both are multiples of a unit; payload wraps in
 * two pieces. No lock, and no memory order.
 *
 * Large payload is written past the caches. The reader has had the lines of the
 * last round, so an ordinary store waits until the lines have come back from
 * the processor of the reader: five times as long for 16 KiB, without a shared
 * cache.
 */

#include "wire/ring.h"

#include <string.h>
#if defined(__SSE2__) && !defined(__SANITIZE_THREAD__) && \
	!defined(__SANITIZE_ADDRESS__)
#include <emmintrin.h>
#define CAN_STREAM 1
#else /* a sanitizer is to see each store */
#define CAN_STREAM 0
#endif

static uint32_t offset(uint64_t at)
{
	return (uint32_t)(at % LB_SEGMENT_RING);
}

/* spans are for both who reads and who writes */
static uint8_t *bytes_of(const void *from)
{
	return (uint8_t *)(uintptr_t)from;
}

/* Splits n bytes of a ring into one or two pieces, at the end of the ring. */
static void pieces_of(uint8_t *ring, uint64_t at, uint32_t n,
		      struct lb_span pieces[3])
{
	uint32_t begin = offset(at);
	uint32_t to_end = LB_SEGMENT_RING - begin;
	uint32_t first = n < to_end ? n : to_end;

	pieces[0] = (struct lb_span){ring + begin, first};
	pieces[1] = (struct lb_span){ring, n - first};
	pieces[2] = (struct lb_span){NULL, 0};
}

void lb_ring_payload(const uint8_t *ring, uint64_t at,
		     const struct lb_record *record, struct lb_span payload[3])
{
	if (record->flags & LB_RECORD_INLINE) {
		payload[0] = (struct lb_span){bytes_of(record->small),
					      record->length};
		payload[1] = payload[2] = (struct lb_span){NULL, 0};
		return;
	}
	pieces_of(bytes_of(ring), at + LB_RECORD_UNIT, record->length, payload);
}

void lb_ring_copy(uint8_t *ring, uint64_t at, const uint8_t *bytes, uint32_t n)
{
	struct lb_span to[3];

	pieces_of(ring, at, n, to);
	memcpy(to[0].addr, bytes, to[0].len);
	memcpy(to[1].addr, bytes + to[0].len, to[1].len);
}

void lb_ring_header(const uint8_t *ring, uint64_t at, struct lb_record *record)
{
	memcpy(record, ring + offset(at), sizeof(*record));
}

#define STREAMED 4096 /* least bytes for which streaming pays */

#if CAN_STREAM

/* `to` is aligned to 16. */
static void stream(uint8_t *to, const uint8_t *from, uint64_t n)
{
	for (; n >= LB_RECORD_UNIT; n -= LB_RECORD_UNIT) {
		const __m128i *src = (const __m128i *)(const void *)from;
		__m128i *dst = (__m128i *)(void *)to;
		__m128i a = _mm_loadu_si128(src), b = _mm_loadu_si128(src + 1);
		__m128i c = _mm_loadu_si128(src + 2);
		__m128i d = _mm_loadu_si128(src + 3);

		_mm_stream_si128(dst, a);
		_mm_stream_si128(dst + 1, b);
		_mm_stream_si128(dst + 2, c);
		_mm_stream_si128(dst + 3, d);
		from += LB_RECORD_UNIT;
		to += LB_RECORD_UNIT;
	}
	memcpy(to, from, n);
	/* [WIRE-1]: a release of the tail does not order these stores */
	_mm_sfence();
}

#else

static void stream(uint8_t *to, const uint8_t *from, uint64_t n)
{
	memcpy(to, from, n);
}

#endif

static void write_bytes(uint8_t *to, const uint8_t *from, uint64_t n)
{
	if (n >= STREAMED && !((uintptr_t)to % 16))
		stream(to, from, n);
	else
		memcpy(to, from, n);
}

/* Gathers the next n bytes of a list, from offset *at of the first span. */
static const struct lb_span *gather(uint8_t *to, uint64_t n,
				    const struct lb_span *src, uint64_t *at)
{
	while (n) {
		uint64_t piece = src->len - *at;

		if (piece > n)
			piece = n;
		write_bytes(to, src->addr + *at, piece);
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
	struct lb_record *header =
		(struct lb_record *)(void *)(ring + offset(at));
	struct lb_span payload[3];

	memcpy(header, record, sizeof(*record));
	if (!record->length)
		return;
	while (from >= src->len)
		from -= src++->len;
	lb_ring_payload(ring, at, header, payload);
	src = gather(payload[0].addr, payload[0].len, src, &from);
	gather(payload[1].addr, payload[1].len, src, &from);
}
