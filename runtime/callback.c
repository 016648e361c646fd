/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * callback.c -- the calls of a poller; see callback.h.
 */

#include "callback.h"

#include <assert.h>

#include "poller.h"

void rt_call_later_owner(struct rt_poller *poller, struct rpma_rt_route *route,
			 const struct rpma_rt_completion *item)
{
	struct rt_calls *calls = &poller->calls;

	/* what a function may call brings no items about */
	assert(calls->running == NULL);
	if (calls->count == RT_CALLS)
		rt_poller_flush_owner(poller);
	calls->due[calls->count].route = route;
	calls->due[calls->count].item = *item;
	calls->count++;
	poller->written++;
}

void rt_call_all_owner(struct rt_poller *poller)
{
	struct rt_calls *calls = &poller->calls;
	uint32_t i;

	assert(calls->running == NULL);
	for (i = 0; i < calls->count; i++) {
		calls->running = calls->due[i].route;
		calls->running->fn(&calls->due[i].item, calls->running->arg);
	}
	calls->running = NULL;
	calls->count = 0;
}
