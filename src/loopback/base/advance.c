/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * advance.c -- a position that only grows: what of a ring may be used again.
 * Any thread.
 */

#include "base/advance.h"

#include <stdatomic.h>

void lb_advance(_Atomic uint32_t *word, uint32_t to)
{
	/* relaxed: only compared; the exchange below orders */
	uint32_t now = atomic_load_explicit(word, memory_order_relaxed);

	/*
	 * release: pairs with the acquire of a poster in search of room; the
	 * slots before to were read. A smaller value comes from a completion
	 * of an earlier life of the queue and changes nothing.
	 */
	while ((int32_t)(to - now) > 0 &&
	       !atomic_compare_exchange_weak_explicit(word, &now, to,
						      memory_order_release,
						      memory_order_relaxed))
		;
}
