/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * callback.c -- the calls of a poller; see callback.h.
 */

#include "poller/callback.h"

#include <assert.h>

#include "base/clock.h"
#include "poller/poller.h"

void rt_callback_add(struct rt_poller *poller, struct rt_callback *callback,
		     const struct rpma_rt_completion *item)
{
	struct rt_callbacks *calls = &poller->calls;

	/* no call that a function may make adds items */
	assert(calls->running == NULL);
	assert(calls->count < RT_CALLBACKS);
	calls->due[calls->count].callback = callback;
	calls->due[calls->count].item = *item;
	calls->count++;
	poller->written++;
}

void rt_callback_date(struct rt_callbacks *calls)
{
	/* relaxed: rt_callback_show() publishes it */
	atomic_store_explicit(&calls->since_ms, rt_now_ms(),
			      memory_order_relaxed);
}

void rt_callback_run(struct rt_poller *poller)
{
	struct rt_callbacks *calls = &poller->calls;
	int cancel = rt_poller_disable_cancel(poller);
	uint32_t i;

	assert(calls->running == NULL);
	rt_callback_date(calls);
	for (i = 0; i < calls->count; i++) {
		calls->running = calls->due[i].callback;
		rt_callback_show(calls, calls->running);
		calls->running->fn(&calls->due[i].item, calls->running->arg);
	}
	rt_callback_show(calls, NULL);
	calls->running = NULL;
	calls->count = 0;
	rt_poller_restore_cancel(poller, cancel);
}
