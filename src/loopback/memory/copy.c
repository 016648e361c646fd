/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * copy.c -- moves bytes between registered memory. memcpy() stores in any
 * order, but an application may poll the last word of a message, so the last
 * 8 bytes go last, and at once when they are aligned.
 */

#include "memory/copy.h"

#include <errno.h>
#include <stdatomic.h>
#include <string.h>

#include "memory/mr.h"

/* what of a message becomes visible at once, and after the rest of it */
#define LAST_WORD 8

/* At most 8 bytes, in one store if size and addresses allow. */
static void copy_word(uint8_t *dst, const uint8_t *src, uint64_t len)
{
	uint64_t word;

	if (len == 8 && !((uintptr_t)dst & 7)) {
		if ((uintptr_t)src & 7)
			memcpy(&word, src, 8);
		else
			/* acquire: pairs with a CPU that stored it */
			word = atomic_load_explicit(
				(const _Atomic uint64_t *)src,
				memory_order_acquire);
		/* release: pairs with a poll of the last word by a CPU */
		atomic_store_explicit((_Atomic uint64_t *)dst, word,
				      memory_order_release);
		return;
	}
	while (len--)
		/* release: as above, for a reader that polls one byte */
		atomic_store_explicit((_Atomic uint8_t *)dst++, *src++,
				      memory_order_release);
}

static void copy(uint8_t *dst, const uint8_t *src, uint64_t len, bool last)
{
	uint64_t head;

	if (!last) {
		memcpy(dst, src, len);
		return;
	}
	head = len > 8 ? len - LAST_WORD : 0;
	if (head)
		memcpy(dst, src, head);
	if (len)
		copy_word(dst + head, src + head, len - head);
}

/* --- messages */

int lb_copy_spans(const struct ibv_sge *sge, uint32_t nsge, uint64_t length,
		  uint32_t access, const struct ibv_pd *pd,
		  struct lb_span *span)
{
	uint32_t i;
	int err;

	for (i = 0; i < nsge && length; i++) {
		uint64_t n = sge[i].length < length ? sge[i].length : length;

		if (!n)
			continue;
		err = lb_mr_local(sge[i].lkey, sge[i].addr, n, access, pd,
				  &span->addr);
		if (err)
			return err;
		span++->len = n;
		length -= n;
	}
	span->len = 0;
	return length ? ENOSPC : 0;
}

void lb_copy_move(const struct lb_span *dst, uint64_t to,
		  const struct lb_span *src, uint64_t at, uint64_t n, bool last)
{
	while (to && to >= dst->len)
		to -= dst++->len;
	while (at && at >= src->len)
		at -= src++->len;
	while (n) {
		uint64_t piece = n;

		if (piece > dst->len - to)
			piece = dst->len - to;
		if (piece > src->len - at)
			piece = src->len - at;
		n -= piece;
		copy(dst->addr + to, src->addr + at, piece, last && !n);
		to += piece;
		at += piece;
		if (to == dst->len)
			dst++, to = 0;
		if (at == src->len)
			src++, at = 0;
	}
}

/* The end of a message whose last word comes from several places. */
static void move_end(const struct lb_span *dst, const struct lb_span *src,
		     uint64_t from, uint64_t n)
{
	uint64_t word;
	const struct lb_span tail[2] = {{(uint8_t *)&word, sizeof(word)}};

	n -= sizeof(word);
	lb_copy_move(dst, from, src, from, n, false);
	lb_copy_move(tail, 0, src, from + n, sizeof(word), false);
	lb_copy_move(dst, from + n, tail, 0, sizeof(word), true);
}

/* The last word goes in one piece. */
uint64_t lb_copy_piece(uint64_t left, uint64_t budget)
{
	if (left <= budget || left <= LAST_WORD)
		return left;
	return left - budget < LAST_WORD ? left - LAST_WORD : budget;
}

uint64_t lb_copy_slice(const struct lb_span *dst, const struct lb_span *src,
		       uint64_t total, uint64_t done, uint64_t budget)
{
	uint64_t left = total - done, n = lb_copy_piece(left, budget);

	if (n == total && src->len >= total && dst->len >= total) {
		copy(dst->addr, src->addr, total, true);
		return total;
	}
	if (n == left && n >= LAST_WORD && src[0].len < total)
		move_end(dst, src, done, n);
	else
		lb_copy_move(dst, done, src, done, n, n == left);
	return n;
}
