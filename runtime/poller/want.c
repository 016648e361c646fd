/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * want.c -- shared by refused posters of connections and of SRQs: the reason,
 * and the word by which the poller knows that a poster waits; see want.h.
 */

#include "poller/want.h"

#include "poller/side.h"

_Thread_local enum rpma_rt_again rt_want_reason;

enum rpma_rt_again rpma_rt_again_reason(void)
{
	return rt_want_reason;
}

bool rt_want_take_back(_Atomic uint32_t *want, uint32_t bit, uint32_t before)
{
	/* another poster set it first, and waits */
	if (before & bit)
		return true;
	/* acq_rel: of two takers one gets it */
	return atomic_fetch_and_explicit(want, ~bit, memory_order_acq_rel) &
	       bit;
}
