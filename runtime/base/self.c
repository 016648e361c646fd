/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * self.c -- what the calling thread is, and whether other threads want its CPU;
 * see self.h.
 */

#include "base/self.h"

#include <sched.h>
#include <stdatomic.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/clock.h"

/* ----------------------------------------------------------------- self --- */

_Thread_local struct rt_self rt_self;

static _Atomic uint64_t last_number;

uint64_t rt_self_new_number(void)
{
	/* relaxed: only the uniqueness of the number matters */
	rt_self.number = atomic_fetch_add_explicit(&last_number, 1,
						   memory_order_relaxed) +
			 1;
	return rt_self.number;
}

uint32_t rt_self_ask_tid(void)
{
	rt_self.tid = (uint32_t)syscall(SYS_gettid);
	return rt_self.tid;
}

/* ---------------------------------------------------------------- share --- */

/* a yield of this length ran another thread: two switches take longer */
#define SWITCH_NS UINT64_C(4000)
/* a yield of this length met a thread that used a whole slice of the CPU */
#define SLICE_NS UINT64_C(500000)
/* least time for which an answer holds */
#define HOLD_NS UINT64_C(1000000)
/* the answer of a long yield holds for a multiple of the yield: the largest
 * factor */
#define MAX_TIMES 32

/* a wait of this length asks again: a yield takes a tenth of this time */
#define AGAIN_NS UINT64_C(3000)

_Thread_local struct rt_share_known rt_share_known = {.times = 1};

static enum rt_share self_share_of(uint64_t away_ns)
{
	if (away_ns < SWITCH_NS)
		return RT_SHARE_ALONE;
	return away_ns < SLICE_NS ? RT_SHARE_SOME : RT_SHARE_BUSY;
}

enum rt_share rt_share_yield_now(uint64_t *now_ns)
{
	struct rt_share_known *known = &rt_share_known;
	uint64_t then_ns = *now_ns;
	enum rt_share share;
	uint64_t hold_ns;

	sched_yield();
	*now_ns = rt_now_ns();
	share = self_share_of(*now_ns - then_ns);
	/* other threads sleep from time to time: a single yield without other
	 * threads does not end an answer that still holds */
	if (share < known->share && *now_ns < known->until_ns)
		return known->share;
	/* a single long yield may be chance, several in a row are no chance */
	if (share != RT_SHARE_BUSY)
		known->times = 1;
	else if (known->times < MAX_TIMES)
		known->times *= 2;
	hold_ns = known->times * (*now_ns - then_ns);
	known->share = share;
	known->until_ns = *now_ns + (hold_ns > HOLD_NS ? hold_ns : HOLD_NS);
	return share;
}

enum rt_share rt_share_ask_again(uint64_t *now_ns, uint64_t *asked_ns)
{
	if (*now_ns - *asked_ns < AGAIN_NS)
		return rt_share_ask(now_ns);
	*asked_ns = *now_ns;
	return rt_share_yield_now(now_ns);
}

bool rt_share_goes_on(uint64_t now_ns, uint64_t spin_ns, uint64_t sleep_ns,
		      uint64_t *asked_ns)
{
	uint64_t now = now_ns;

	if (now_ns >= spin_ns + sleep_ns)
		return false;
	switch (rt_share_ask_again(&now, asked_ns)) {
	case RT_SHARE_ALONE:
		return now_ns < spin_ns;
	case RT_SHARE_SOME:
		return true;
	default:
		return false;
	}
}
