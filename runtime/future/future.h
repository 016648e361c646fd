/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * future.h -- futures as their holders and their connections see them: blocks
 * of slots, what is asked of the poller, what is asked for (life.c), the public
 * calls (calls.c, wait.c). The slots: poller/future.h. doc/protocols/future.md.
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

/* Returns a block of so many free slots on that poller; side: whose work
 * requests they are of, or NULL. The caller sets its number. NULL: no memory.
 * REQUIRES: the runtime's lock */
struct rt_futures *rt_future_block_take(struct rt_poller *poller,
					const struct rt_future_kind *kind,
					struct rt_side *side, uint32_t count);
/* The connection is DONE, or was not made; slots may be out still. NULL:
 * nothing. REQUIRES: the runtime's lock */
void rt_future_block_return(struct rt_futures *futures);
/* How many futures of the runtime are not dropped. */
uint32_t rt_future_held(const struct rpma_rt *rt);
/* The pollers have ended and rt_context_is_stopped(): what was asked since. */
void rt_future_finish_all(struct rpma_rt *rt);
/* The runtime is freed. */
void rt_future_free_all(struct rpma_rt *rt);

/* -------------------------------------------------------------- asking --- */

/* Any thread that holds it: has the poller do that. */
void rt_future_ask_mt(struct rt_future *slot, uint32_t asked);
/* The poller: what was asked of the block's slots so far. */
void rt_future_run_poller(struct rt_futures *futures);

/* Has it no continuation, and was not cancelled? 0, or the error, logged. */
int rt_future_check_arm(const struct rt_log_place *place,
			const struct rt_future *slot);
/* Its holder: that is called, or it is led there. */
void rt_future_arm(struct rt_future *slot, const struct rt_future_then *then);

/* ---------------------------------------------------------- asking for --- */

/* parameters of a source */
struct rt_source_cfg {
	const struct rt_future_kind *kind;
	struct rt_poller *poller;
	uint32_t futures;  /* at a time */
	uint32_t messages; /* listed besides; 0: items bring their nodes */
	/* The poller: an item has left the list. NULL: nobody wants to know */
	void (*taken)(void *owner);
	/* as in struct rt_future_source */
	bool (*fetch)(void *owner, struct rpma_rt_completion *item);
	void *owner; /* the context of futures without an item */
};

/* Makes a source, and returns its block. NULL: no memory. REQUIRES: the
 * runtime's lock */
struct rt_futures *rt_source_new(const struct rt_source_cfg *cfg);
/* Gives an unpublished block back, with its source. NULL: nothing.
 * REQUIRES: the runtime's lock */
void rt_source_undo(struct rt_futures *futures);
/* Has the poller drop the listed items, and free the source: the owner's last
 * access. The block stays, to be returned. NULL, or dropped before: nothing.
 * Any thread */
void rt_source_drop_mt(struct rt_futures *futures);
/* Has the poller fetch items for the futures that wait. Any thread */
void rt_source_wake_mt(struct rt_futures *futures);
/* Ends a source: no item comes any more, and behind the listed items futures
 * get end. The poller */
void rt_source_end_poller(struct rt_futures *futures,
			  const struct rpma_rt_completion *end);
/* Takes a slot, of latches for the event. NULL: too many are held. REQUIRES:
 * the runtime's ask_lock */
struct rt_future *rt_source_take(struct rt_futures *futures, uint8_t event,
				 const void *owner);
/* Asks for a future of the next item. ERRORS: RPMA_RT_E_BUSY: too many are
 * held. Any thread */
int rt_source_next(struct rt_futures *futures, struct rpma_rt_future *future);

/* ------------------------------------------------------------- handles --- */

/* Says what is wrong with a handle that names no future: the error, logged. */
__attribute__((cold)) int rt_future_refuse(const struct rt_log_place *place,
					   const struct rpma_rt_future *future);

/* Does the handle name a future of this process that was not dropped? */
static inline bool rt_future_is_held(const struct rpma_rt_future *future)
{
	const struct rt_future *slot;

	if (unlikely(future == NULL || future->opaque[0] == 0))
		return false;
	slot = rt_future_slot(future);
	/* relaxed: the holder's own */
	return likely(
		rt_context_check(slot->of->rt) == 0 &&
		atomic_load_explicit(&slot->generation, memory_order_relaxed) ==
			future->opaque[1]);
}

/* The slot of a handle in *slot_ptr; 0, or the error, logged. */
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

/* The handle of a slot that was taken. */
static inline void rt_future_name(struct rpma_rt_future *future,
				  const struct rt_future *slot)
{
	future->opaque[0] = (uint64_t)(uintptr_t)slot;
	/* relaxed: the caller took it */
	future->opaque[1] =
		atomic_load_explicit(&slot->generation, memory_order_relaxed);
}

/* Takes a place where a thread waits, with an empty list. Places are never
 * freed: a poller may ring a moment longer. NULL: no memory. */
struct rt_future_place *rt_future_lot_take(void);
/* Gives the place back. REQUIRES: no slot points there, or will be pushed */
void rt_future_lot_return(struct rt_future_place *place);

#endif /* RT_FUTURE_FUTURE_H */
