/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/* calls.c: see calls.h. */

#include "calls.h"

#include <stddef.h>

#define PLACES 256 /* numbers of a byte */

void calls_init(struct calls *calls, uint32_t window)
{
	uint32_t i;

	calls->window = window;
	calls->open = 0;
	calls->earliest_ns = CALLS_NONE;
	for (i = 0; i < window; i++) {
		calls->free[i] = (uint8_t)(window - 1 - i);
		/* ids of the former window stay unknown */
		calls->calls[i].id = calls->calls[i].id / PLACES * PLACES + i;
		calls->calls[i].is_open = false;
	}
}

struct call *calls_open(struct calls *calls, void *user, uint64_t deadline_ns)
{
	struct call *call;

	if (calls->open == calls->window)
		return NULL;
	calls->open++;
	call = &calls->calls[calls->free[calls->window - calls->open]];
	call->id += PLACES;
	call->deadline_ns = deadline_ns;
	call->user = user;
	call->is_open = true;
	call->is_expired = false;
	if (deadline_ns < calls->earliest_ns)
		calls->earliest_ns = deadline_ns;
	return call;
}

struct call *calls_find(struct calls *calls, uint64_t id)
{
	struct call *call = &calls->calls[id % PLACES];

	return id % PLACES < calls->window && call->is_open && call->id == id
		       ? call
		       : NULL;
}

void calls_close(struct calls *calls, struct call *call)
{
	call->is_open = false;
	calls->free[calls->window - calls->open] = (uint8_t)(call->id % PLACES);
	calls->open--;
}

struct call *calls_expire(struct calls *calls, uint64_t now_ns)
{
	uint64_t earliest_ns = CALLS_NONE;
	uint32_t i;

	if (now_ns < calls->earliest_ns)
		return NULL;
	for (i = 0; i < calls->window; i++) {
		struct call *call = &calls->calls[i];

		if (!call->is_open || call->is_expired)
			continue;
		if (call->deadline_ns <= now_ns) {
			call->is_expired = true;
			return call;
		}
		if (call->deadline_ns < earliest_ns)
			earliest_ns = call->deadline_ns;
	}
	calls->earliest_ns = earliest_ns;
	return NULL;
}

struct call *calls_any(struct calls *calls)
{
	uint32_t i;

	for (i = 0; calls->open > 0 && i < calls->window; i++)
		if (calls->calls[i].is_open)
			return &calls->calls[i];
	return NULL;
}
