/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * share.h -- whether other threads want the CPU of the calling thread, for
 * threads that spin before they sleep. A thread learns by a sched_yield(): the
 * call returns within a microsecond where no other thread runs in between. The
 * answer holds for a millisecond, and after long calls in a row for up to 32
 * times the call, so that questions cost a few percent of the time at most.
 * doc/protocols/threads.md.
 */

#ifndef RT_BASE_SHARE_H
#define RT_BASE_SHARE_H

#include <stdint.h>

enum rt_share {
	/* no other thread wanted the CPU: spinning costs other threads nothing
	 */
	RT_SHARE_ALONE = 0,
	/* threads with little to do, as those that the caller waits for: the
	 * CPU comes back within microseconds */
	RT_SHARE_SOME = 1,
	/* threads that compute: a sleep ends sooner than a yield */
	RT_SHARE_BUSY = 2
};

struct rt_share_known {
	uint64_t until_ns; /* then the answer has to be asked for again */
	enum rt_share share;
	uint32_t times; /* that the answer of a long yield holds */
};

/* what the calling thread knows */
extern _Thread_local struct rt_share_known rt_share_known;

/* Yields, and brings *now_ns up to date. */
enum rt_share rt_share_yield_now(uint64_t *now_ns);

/* Returns what is known, or asks where nothing is known any more. */
static inline enum rt_share rt_share_ask(uint64_t *now_ns)
{
	return *now_ns < rt_share_known.until_ns ? rt_share_known.share
						 : rt_share_yield_now(now_ns);
}

/* Likewise, and gives the CPU up each time while some threads want the CPU. */
static inline enum rt_share rt_share_yield(uint64_t *now_ns)
{
	return rt_share_known.share == RT_SHARE_SOME
		       ? rt_share_yield_now(now_ns)
		       : rt_share_ask(now_ns);
}

#endif /* RT_BASE_SHARE_H */
