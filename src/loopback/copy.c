/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * copy.c -- moves bytes between registered memory. memcpy() stores in any
 * order, but an application may poll the last word of a message, so the last
 * 8 bytes go last, and at once when they are aligned.
 */

#include "loopback.h"
#include "internal.h"

#include <string.h>

/* At most 8 bytes, in one store if size and addresses allow. */
static void copy_word(uint8_t *dst, const uint8_t *src, uint64_t len)
{
	uint64_t word;

	if (len == 8 && !((uintptr_t)dst & 7)) {
		if ((uintptr_t)src & 7)
			memcpy(&word, src, 8);
		else
			/* relaxed: a word read by RDMA is whole, no more */
			word = atomic_load_explicit(
				(const _Atomic uint64_t *)src,
				memory_order_relaxed);
		/* release: pairs with a poll of the last word by a CPU */
		atomic_store_explicit((_Atomic uint64_t *)dst, word,
				      memory_order_release);
		return;
	}
	while (len--)
		/* release: as above, for who polls a byte of it */
		atomic_store_explicit((_Atomic uint8_t *)dst++, *src++,
				      memory_order_release);
}

void lb_copy(uint8_t *dst, const uint8_t *src, uint64_t len, bool last)
{
	uint64_t head;

	if (!last) {
		memcpy(dst, src, len);
		return;
	}
	head = len > 8 ? len - 8 : 0;
	if (head)
		memcpy(dst, src, head);
	if (len)
		copy_word(dst + head, src + head, len - head);
}
