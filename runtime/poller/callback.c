/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * callback.c -- the calls of a poller; see callback.h.
 */

#include "poller/callback.h"

#include <assert.h>

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

void rt_callback_run(struct rt_poller *poller)
{
	struct rt_callbacks *calls = &poller->calls;
	uint32_t i;

	assert(calls->running == NULL);
	for (i = 0; i < calls->count; i++) {
		calls->running = calls->due[i].callback;
		calls->running->fn(&calls->due[i].item, calls->running->arg);
	}
	calls->running = NULL;
	calls->count = 0;
}
