/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * want.h -- shared by posters of connections and of SRQs: why they are refused,
 * and the bits by which the poller knows that a poster waits.
 */

#ifndef RT_POLLER_WANT_H
#define RT_POLLER_WANT_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "rpma_rt.h"

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

/* the calling thread's rpma_rt_again_reason() */
extern _Thread_local enum rpma_rt_again rt_want_reason;

/* RPMA_E_AGAIN, for that reason */
static inline int rt_want_again(enum rpma_rt_again reason)
{
	rt_want_reason = reason;
	return RPMA_E_AGAIN;
}
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
/* A post begins, or failed for something else than room. */
static inline void rt_want_none(void)
{
	rt_want_reason = RPMA_RT_AGAIN_NONE;
}

#endif /* RT_POLLER_WANT_H */
