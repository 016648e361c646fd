/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * side.h -- one of a queue pair's two queues as its poller sees it: the retired
 * count, whether it is healthy, what refused posters wait for, and the handlers
 * of completions that leave the success path. doc/protocols/ledger.md.
 */

#ifndef RT_POLLER_SIDE_H
#define RT_POLLER_SIDE_H

#include <stdalign.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include <infiniband/verbs.h>

#include "rpma_rt.h"
#include "base/order.h"

/* ----------------------------------------------------------------- want --- */

/*
 * The bits by which the poller knows that a poster waits, of connections and of
 * SRQs.
 */

/* what refused posters wait for: bits of rt_side.want; answered in a queue, or,
 * shifted by RT_WANT_IN_CALL, to the function inside which it was */
enum rt_want {
	RT_WANT_CREDIT = 1 << 0,
	RT_WANT_BACKLOG = 1 << 1,
	/* not a poster's but the poller's own: closed routes of that side wait
	 * for their work requests */
	RT_WANT_RETIRED = 1 << 4,
	/* the poller's own, for the connection's life: a pool fills it */
	RT_WANT_POOL = 1 << 8,
	/* the holder's: work requests stand in line */
	RT_WANT_LINE = 1 << 9
};
#define RT_WANT_IN_CALL 2 /* of the first two */

/* Returns the bit by which a poster waits that was refused for that reason. */
static inline uint32_t rt_want_of(enum rpma_rt_again reason)
{
	return reason == RPMA_RT_AGAIN_BACKLOG ? RT_WANT_BACKLOG
					       : RT_WANT_CREDIT;
}
/* The holder of a right: work requests stand in line, or none any more. */
static inline void rt_want_line(_Atomic uint32_t *want, bool waits)
{
	/* relaxed, both: the giving back orders it [TURN-2] */
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

/* of a kind of side; all on its poller */
struct rt_side_ops {
	/* a completion of it that is no success, or while it is not healthy */
	void (*failed)(struct rt_side *side, const struct ibv_wc *wc);
	/* a work request failed that is in no ledger: an SRQ's, a keep-alive */
	void (*broken)(struct rt_side *side, enum ibv_wc_status status);
	/* counts the entries of the ledger that a success retires; of a side
	 * with unsignaled entries */
	void (*retire_group)(struct rt_side *side);
	/* want has one of these bits, or the same inside a function */
	void (*answer)(struct rt_side *side, struct rt_poller *poller,
		       uint32_t wants);
	/* where a future of it that is led to that route is delivered */
	const struct rt_route_entry *(*lead)(struct rt_side *side,
					     const void *route);
};

struct rt_led;

/* Bits of rt_side.marks. Where HEALTHY stands alone, a success retires a
 * single entry: the success path of completions looks at one byte. */
enum rt_side_mark {
	/* the poller's: the queue pair is bound, no completion failed */
	RT_SIDE_HEALTHY = 1 << 0,
	/* a poster's, once, before the device has the entry: a signaled entry
	 * was appended that ends a group of unsignaled entries */
	RT_SIDE_UNSIGNALED = 1 << 1
};

struct rt_side {
	/* read by posters; want is written by them, when they are refused */
	alignas(RT_CACHE_LINE) _Atomic uint32_t retired;
	_Atomic uint32_t want;	     /* of enum rt_want */
	_Atomic uint32_t retired_ms; /* when it rose last, for the dump */
	/* the route whose backlog refused a post; see answer.c */
	_Atomic uint32_t awaited;
	_Atomic uint32_t owed; /* for the directory: see RT_OWED_UNKNOWN */
	/* the poller's */
	uint32_t count;	       /* entries retired: what retired will be */
	_Atomic uint8_t marks; /* bits of enum rt_side_mark */
	bool touched;
	uint8_t which; /* enum rpma_rt_side; immutable */
	struct rt_side *touched_next;
	const struct rt_side_ops *ops; /* immutable */
	/* NULL: it has none, or is DONE: the send side's under ask_lock */
	struct rt_futures *futures;
	/* closed routes that lead where the side's own route leads */
	struct rt_led *followers;
};

/* Returns the bits of the side. On its poller, or for UNSIGNALED. */
static inline uint8_t rt_side_marks(const struct rt_side *side)
{
	/* relaxed: HEALTHY is the poller's own; a completion came after the
	 * device had its work request, and UNSIGNALED before that */
	return atomic_load_explicit(&side->marks, memory_order_relaxed);
}

/* On its poller, or under the runtime's lock when there is no poller. */
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

/* On its poller: from here on each completion goes to ops->failed. */
static inline void rt_side_end_healthy(struct rt_side *side)
{
	/* relaxed: as in rt_side_marks() */
	atomic_fetch_and_explicit(&side->marks, (uint8_t)~RT_SIDE_HEALTHY,
				  memory_order_relaxed);
}

/* A work request succeeded: counts what retires with that success. REQUIRES:
 * the side is healthy */
static inline void rt_side_retire(struct rt_side *side)
{
	if (__builtin_expect(rt_side_marks(side) != RT_SIDE_HEALTHY, 0))
		side->ops->retire_group(side);
	else
		side->count++;
}

/* Gives back the credits of what has retired. */
static inline void rt_side_publish(struct rt_side *side, uint32_t ms)
{
	/* relaxed: statistic, orders nothing */
	atomic_store_explicit(&side->retired_ms, ms, memory_order_relaxed);
	/* release [LEDGER-1]: pairs with the acquire in post.c; what was
	 * delivered, and the backlog flag, come with the credit */
	atomic_store_explicit(&side->retired, side->count,
			      memory_order_release);
}

/* of rt_side.owed: the ledger is not handed over yet; else how many were
 * unfinished when the connection made its last step */
#define RT_OWED_UNKNOWN UINT32_MAX

/* what the end of a batch answers; a backlog's end is answered when it eases */
#define RT_SIDE_ANSWERS RT_WANT_CREDIT

/* Is one of these wanted? In the rounds of its poller only. */
static inline bool rt_side_wants(const struct rt_side *side, uint32_t wants)
{
	/* relaxed: ordered by the batch's fence, which pairs with the one
	 * between the poster's store and its second look [LEDGER-2] */
	return atomic_load_explicit(&side->want, memory_order_relaxed) &
	       (wants | wants << RT_WANT_IN_CALL);
}

/* After the batch's fence: does anybody wait for its end? */
static inline bool rt_side_is_due(const struct rt_side *side)
{
	return rt_side_wants(side, RT_SIDE_ANSWERS | RT_WANT_RETIRED |
					   RT_WANT_POOL | RT_WANT_LINE);
}

#endif /* RT_POLLER_SIDE_H */
