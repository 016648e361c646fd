/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * side.h -- a side: one of a queue pair's two queues as the poller sees the
 * queue. A side has the retired count, the mark whether it is healthy, the
 * wishes of refused posters, and the handlers of completions that leave the
 * success path. doc/protocols/ledger.md.
 */

#ifndef RT_POLLER_SIDE_H
#define RT_POLLER_SIDE_H

#include <stdalign.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <infiniband/verbs.h>

#include "rpma_rt.h"
#include "base/order.h"
#include "base/turn.h"

/* ----------------------------------------------------------------- want --- */

/*
 * The bits that tell the poller that a poster waits, for connections and for
 * SRQs.
 */

/* bits of rt_side.want: what refused posters wait for. The answer goes to a
 * queue or, for bits shifted by RT_WANT_IN_CALL, to the function inside which
 * the post was refused */
enum rt_want {
	RT_WANT_CREDIT = 1 << 0,
	RT_WANT_BACKLOG = 1 << 1,
	/* set by the poller: closed routes of the side wait for their work
	 * requests */
	RT_WANT_RETIRED = 1 << 4,
	/* set by the poller, for the connection's life: a pool fills the
	 * side */
	RT_WANT_POOL = 1 << 8,
	/* set by the holder: work requests stand in line */
	RT_WANT_LINE = 1 << 9
};
#define RT_WANT_IN_CALL 2 /* shift of CREDIT and BACKLOG */

/* Returns the bit for a poster that was refused for this reason. */
static inline uint32_t rt_want_of(enum rpma_rt_again reason)
{
	return reason == RPMA_RT_AGAIN_BACKLOG ? RT_WANT_BACKLOG
					       : RT_WANT_CREDIT;
}
/* Sets whether work requests stand in line. Called by the holder of the
 * right. */
static inline void rt_want_line(_Atomic uint32_t *want, bool waits)
{
	/* relaxed, both: giving the right back orders the bit [TURN-2] */
	if (waits)
		atomic_fetch_or_explicit(want, RT_WANT_LINE,
					 memory_order_relaxed);
	else
		atomic_fetch_and_explicit(want, ~(uint32_t)RT_WANT_LINE,
					  memory_order_relaxed);
}

/* ----------------------------------------------------------------- side --- */

struct rt_futures;
struct rt_poller;
struct rt_route_entry;
struct rt_side;

/* functions for a kind of side; all run on the side's poller */
struct rt_side_ops {
	/* handles a completion that is no success, or that comes while the side
	 * is not healthy */
	void (*failed)(struct rt_side *side, const struct ibv_wc *wc);
	/* reports the failure of a work request that is in no ledger: a receive
	 * of an SRQ, a keep-alive */
	void (*broken)(struct rt_side *side, enum ibv_wc_status status);
	/* counts the entries of the ledger that a success retires; for a side
	 * with unsignaled entries */
	void (*retire_group)(struct rt_side *side);
	/* answers posters; called if `want` has one of these bits, or such a
	 * bit shifted by RT_WANT_IN_CALL */
	void (*answer)(struct rt_side *side, struct rt_poller *poller,
		       uint32_t wants);
	/* returns where a future of the side is delivered that is led to the
	 * route */
	const struct rt_route_entry *(*lead)(struct rt_side *side,
					     const void *route);
};

struct rt_led;

/* Bits of rt_side.marks. With HEALTHY alone, a success retires a single entry:
 * the success path of completions looks at a single byte. */
enum rt_side_mark {
	/* the poller's bit: the queue pair is bound, and no completion has
	 * failed */
	RT_SIDE_HEALTHY = 1 << 0,
	/* a poster's bit, set once, before the device has the entry: an entry
	 * was appended that ends a group of unsignaled entries */
	RT_SIDE_UNSIGNALED = 1 << 1
};

struct rt_side {
	/* read by posters; a refused poster writes want */
	alignas(RT_CACHE_LINE) _Atomic uint32_t retired;
	_Atomic uint32_t want; /* bits of enum rt_want */
	/* when `retired` rose last, for the dump */
	_Atomic uint32_t retired_ms;
	/* the route whose backlog refused a post; see conn/answer.c */
	_Atomic uint32_t awaited;
	_Atomic uint32_t owed; /* for the directory: see RT_OWED_UNKNOWN */
	/* used by the poller only: */
	/* number of retired entries: the next value of `retired` */
	uint32_t count;
	_Atomic uint8_t marks; /* bits of enum rt_side_mark */
	bool touched;
	uint8_t which;	 /* enum rpma_rt_side; immutable */
	int32_t turn_at; /* bytes to the turn of the posters; immutable */
	struct rt_side *touched_next;
	const struct rt_side_ops *ops; /* immutable */
	/* NULL: the side has no futures, or is DONE; of the send side under
	 * ask_lock */
	struct rt_futures *futures;
	/* closed routes that lead where the side's own route leads */
	struct rt_led *followers;
};

/* Returns whether the right to post to the side is kept for the calling
 * thread. */
static inline bool rt_side_is_kept_here(const struct rt_side *side)
{
	const void *turn = (const char *)side + side->turn_at;

	return rt_turn_is_kept_here(turn);
}

/* Returns the bits of the side. On the side's poller, or for UNSIGNALED. */
static inline uint8_t rt_side_marks(const struct rt_side *side)
{
	/* relaxed: only the poller writes HEALTHY; UNSIGNALED was set before
	 * the device had the work request, and the completion came after
	 * that */
	return atomic_load_explicit(&side->marks, memory_order_relaxed);
}

/* Returns whether the side is healthy. On the side's poller, or under the
 * runtime's lock when there is no poller. */
static inline bool rt_side_is_healthy(const struct rt_side *side)
{
	return rt_side_marks(side) & RT_SIDE_HEALTHY;
}

/* Sets a bit, by read-modify-write: the bits have different owners. */
static inline void rt_side_mark(struct rt_side *side, enum rt_side_mark mark)
{
	/* relaxed: as in rt_side_marks() */
	atomic_fetch_or_explicit(&side->marks, (uint8_t)mark,
				 memory_order_relaxed);
}

/* Ends the success path, on the side's poller: from here on each completion
 * goes to ops->failed. */
static inline void rt_side_end_healthy(struct rt_side *side)
{
	/* relaxed: as in rt_side_marks() */
	atomic_fetch_and_explicit(&side->marks, (uint8_t)~RT_SIDE_HEALTHY,
				  memory_order_relaxed);
}

/* Counts the entries that a successful work request retires. marks: of the
 * side, read since the completion was polled. REQUIRES: the side is healthy */
static inline void rt_side_retire(struct rt_side *side, uint8_t marks)
{
	if (__builtin_expect(marks != RT_SIDE_HEALTHY, 0))
		side->ops->retire_group(side);
	else
		side->count++;
}

/* Gives back the credits of the retired entries. */
static inline void rt_side_publish(struct rt_side *side, uint32_t ms)
{
	/* relaxed: statistic, orders nothing */
	atomic_store_explicit(&side->retired_ms, ms, memory_order_relaxed);
	/* release [LEDGER-1]: pairs with the acquires of `retired` in
	 * conn/hold.h: a poster that sees the credit sees the delivered items
	 * and the backlog flag. Unseen: a credit hands over no data of the
	 * program */
	rt_store_unseen(&side->retired, side->count, memory_order_release);
}

/* value of rt_side.owed while the ledger is not handed over yet; later values
 * are the number of unfinished entries at the connection's last step */
#define RT_OWED_UNKNOWN UINT32_MAX

/* bits that the end of a batch answers; BACKLOG is answered when the lane
 * eases */
#define RT_SIDE_ANSWERS RT_WANT_CREDIT

/* Returns whether one of the bits is wanted. Only in rounds of the side's
 * poller. */
static inline bool rt_side_wants(const struct rt_side *side, uint32_t wants)
{
	/* relaxed: ordered by the batch's fence, which pairs with the fence
	 * between the poster's store and the poster's second look [LEDGER-2] */
	return atomic_load_explicit(&side->want, memory_order_relaxed) &
	       (wants | wants << RT_WANT_IN_CALL);
}

/* Returns whether a poster, a route, a pool or a line waits for the end of the
 * batch. After the batch's fence. */
static inline bool rt_side_is_due(const struct rt_side *side)
{
	return rt_side_wants(side, RT_SIDE_ANSWERS | RT_WANT_RETIRED |
					   RT_WANT_POOL | RT_WANT_LINE);
}

#endif /* RT_POLLER_SIDE_H */
