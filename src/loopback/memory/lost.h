/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * lost.h -- registered memory that the program unmapped, as free() does with a
 * large block, whose file became shorter, or that the program protected. A card
 * has the pages pinned; the device meets SIGSEGV or SIGBUS, and survives: the
 * access fails, or has its effect if the memory was only protected.
 *
 * The handler puts an empty page where there is no memory, so that the
 * interrupted instruction goes on, and marks the executor of the thread. After
 * an access the thread looks at the mark, and takes the page away again. The
 * handler takes the protection of a page away, for good: a protection set again
 * later could undo a change of the program.
 */

#ifndef LB_MEMORY_LOST_H
#define LB_MEMORY_LOST_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/base.h"
#include "base/span.h"
#include "memory/barrier.h"

struct lb_lost_region {
	uint32_t lkey;
	const void *base;
	size_t length;
};
/* Finds the region of an address; false: none. Called in an executor. */
typedef bool lb_lost_find(const void *addr, struct lb_lost_region *region);

/*
 * Installs the device's handler of SIGSEGV and SIGBUS, unless the handler is
 * installed: the program may have replaced the handler since the last call. The
 * device's handler passes signals with other causes on to the replaced handler.
 * Under lb.big, with the same function each time.
 */
void lb_lost_watch(lb_lost_find *find);

/*
 * Returns true if this thread met lost memory since the thread began to
 * execute, or since lb_lost_take(). Between lb_barrier_enter() and leave.
 */
static inline bool lb_lost_is(void)
{
	/* the mark is set by a handler in the same thread */
	atomic_signal_fence(memory_order_seq_cst);
	/* relaxed: as above */
	return !lb_likely(!atomic_load_explicit(&lb_barrier_executor.is_lost,
						memory_order_relaxed));
}

/*
 * Takes the mark and the empty pages away. Returns true if the lost memory is
 * in one of the spans.
 */
bool lb_lost_take(const struct lb_span *spans);

/*
 * Reads a byte of each page, so that lost memory is met before anything is
 * done with the bytes. lb_lost_touch_ends() reads the first and the last byte
 * of each span.
 */
void lb_lost_touch(const struct lb_span *spans);
static inline void lb_lost_touch_ends(const struct lb_span *span)
{
	for (; span->len; span++) {
		(void)*(const volatile uint8_t *)span->addr;
		(void)*(const volatile uint8_t *)(span->addr + span->len - 1);
	}
}

#endif /* LB_MEMORY_LOST_H */
