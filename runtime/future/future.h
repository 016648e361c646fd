/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * future.h -- futures as holders and connections see them: blocks of slots,
 * requests to the poller, sources (life.c), the public calls (calls.c, wait.c).
 * The slots: poller/future.h. doc/protocols/future.md.
 */

#ifndef RT_FUTURE_FUTURE_H
#define RT_FUTURE_FUTURE_H

#include <stdbool.h>
#include <stdint.h>

#include "rpma_rt.h"
#include "base/context.h"
#include "base/log.h"
#include "poller/future.h"

struct rpma_rt;
struct rt_poller;
struct rt_side;

/* -------------------------------------------------------------- blocks --- */

/* Returns a block of `count` free slots on the poller. side: the side whose
 * work requests use the slots, or NULL. The caller sets the number. NULL: no
 * memory. REQUIRES: the runtime's lock */
struct rt_futures *rt_future_block_take(struct rt_poller *poller,
					const struct rt_future_kind *kind,
					struct rt_side *side, uint32_t count);
/* Gives a block back to the poller: the owner of the block (connection,
 * listener or pool) has ended, or was not made. The program may still hold
 * futures of the block. NULL: does nothing. REQUIRES: the runtime's lock */
void rt_future_block_return(struct rt_futures *futures);
/* Returns how many futures of the runtime are not dropped. */
uint32_t rt_future_held(const struct rpma_rt *rt);
/* Does the requests that were made since the pollers ended. Called when
 * rt_context_is_stopped() is true. */
void rt_future_finish_all(struct rpma_rt *rt);
/* Frees all blocks, together with the runtime. */
void rt_future_free_all(struct rpma_rt *rt);

/* -------------------------------------------------------------- asking --- */

/* Asks the poller to do `asked` with the slot. Any thread that holds the
 * future. */
void rt_future_ask_mt(struct rt_future *slot, uint32_t asked);
/* Does all requests to slots of the block. On the poller. */
void rt_future_run_poller(struct rt_futures *futures);

/* Checks that the future has no continuation and was not cancelled. Returns 0,
 * or the error, logged. */
int rt_future_check_arm(const struct rt_log_place *place,
			const struct rt_future *slot);
/* Arms a continuation, for the holder: the function is called, or the result is
 * delivered to the route. */
void rt_future_arm(struct rt_future *slot, const struct rt_future_then *then);

/* ---------------------------------------------------------- asking for --- */

/* parameters of a source */
struct rt_source_cfg {
	const struct rt_future_kind *kind;
	struct rt_poller *poller;
	uint32_t futures; /* number of futures at a time */
	/* most messages that are listed; 0: items bring their nodes */
	uint32_t messages;
	/* called on the poller when an item has left the list. NULL: not
	 * called */
	void (*taken)(void *owner);
	/* as in struct rt_future_source */
	bool (*fetch)(void *owner, struct rpma_rt_completion *item);
	void *owner; /* the context of futures without an item */
};

/* Makes a source, and returns its block. NULL: no memory. REQUIRES: the
 * runtime's lock */
struct rt_futures *rt_source_new(const struct rt_source_cfg *cfg);
/* Gives an unpublished block back, with its source. NULL: does nothing.
 * REQUIRES: the runtime's lock */
void rt_source_undo(struct rt_futures *futures);
/* Asks the poller to drop the listed items and to free the source: the owner's
 * last access. The block stays, to be returned. Does nothing if the source is
 * NULL or was dropped before. Any thread. */
void rt_source_drop_mt(struct rt_futures *futures);
/* Asks the poller to fetch items for the waiting futures. Any thread. */
void rt_source_wake_mt(struct rt_futures *futures);
/* Ends a source: no item comes any more, and behind the listed items futures
 * get `end`. On the poller. */
void rt_source_end_poller(struct rt_futures *futures,
			  const struct rpma_rt_completion *end);
/* Takes a slot, for latches a slot for the event. NULL: too many futures are
 * held. REQUIRES: the runtime's ask_lock */
struct rt_future *rt_source_take(struct rt_futures *futures, uint8_t event,
				 const void *owner);
/* Asks for a future of the next item. ERRORS: RPMA_RT_E_BUSY: too many futures
 * are held. Any thread. */
int rt_source_next(struct rt_futures *futures, struct rpma_rt_future *future);

/* ------------------------------------------------------------- handles --- */

/* Logs why a handle names no future. Returns the error. */
__attribute__((cold)) int rt_future_refuse(const struct rt_log_place *place,
					   const struct rpma_rt_future *future);

/* Returns the upper half of the second word of all handles of this process: a
 * call that looks at many handles asks once. */
static inline uint64_t rt_future_here(void)
{
	return (uint64_t)rt_context_generation() << 32;
}

/* Returns the second word of the handle of a slot that is held: this process
 * and this use of the slot. here: rt_future_here() */
static inline uint64_t rt_future_use(const struct rt_future *slot,
				     uint64_t here)
{
	/* relaxed: written by the holder */
	return here |
	       atomic_load_explicit(&slot->generation, memory_order_relaxed);
}

/* Returns whether the handle names a future of this process that was not
 * dropped. */
static inline bool rt_future_is_held_here(const struct rpma_rt_future *future,
					  uint64_t here)
{
	return likely(future->opaque[0] != 0) &&
	       likely(rt_future_use(rt_future_slot(future), here) ==
		      future->opaque[1]);
}

static inline bool rt_future_is_held(const struct rpma_rt_future *future)
{
	/* the process last: an empty handle needs no look */
	return likely(future != NULL && future->opaque[0] != 0) &&
	       rt_future_is_held_here(future, rt_future_here());
}

/* Finds the slot of a handle. Returns 0, or the error, logged. */
static inline int rt_future_find(const struct rt_log_place *place,
				 const struct rpma_rt_future *future,
				 struct rt_future **slot_ptr)
{
	if (unlikely(!rt_future_is_held(future)))
		return rt_future_refuse(place, future);
	*slot_ptr = rt_future_slot(future);
	return 0;
}

/* Copies the result. REQUIRES: the future is ready. Returns 1, as the calls of
 * the holder do. */
static inline int rt_future_read(struct rt_future *slot,
				 struct rpma_rt_completion *cmpl)
{
	slot->mine |= RT_FUTURE_READ;
	*cmpl = slot->result;
	return 1;
}

/* Makes the handle of a slot that the caller took. use: rt_future_use() */
static inline void rt_future_name_use(struct rpma_rt_future *future,
				      const struct rt_future *slot,
				      uint64_t use)
{
	future->opaque[0] = (uint64_t)(uintptr_t)slot;
	future->opaque[1] = use;
}

/* Makes the handle. here: rt_future_here() */
static inline void rt_future_name(struct rpma_rt_future *future,
				  const struct rt_future *slot, uint64_t here)
{
	rt_future_name_use(future, slot, rt_future_use(slot, here));
}

/* Takes a place where a thread waits, with an empty list. Places are never
 * freed, because a poller may ring a moment longer. NULL: no memory. */
struct rt_future_place *rt_future_lot_take(void);
/* Gives the place back. REQUIRES: no slot points to the place or will be pushed
 * there */
void rt_future_lot_return(struct rt_future_place *place);

#endif /* RT_FUTURE_FUTURE_H */
