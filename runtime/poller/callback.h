/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * callback.h -- routes that lead to a function of the application: a poller
 * collects their items while it routes and calls at the batch's end. Runs on
 * the poller. doc/protocols/callback.md.
 */

#ifndef RT_POLLER_CALLBACK_H
#define RT_POLLER_CALLBACK_H

#include <stdatomic.h>
#include <stdint.h>

#include "rpma_rt.h"

struct rt_poller;

#define RT_CALLBACKS 64 /* collected at most before the batch ends early */

/* a function of the application; immutable */
struct rt_callback {
	rpma_rt_route_fn *fn;
	void *arg;
};

/* a poller's; its own */
struct rt_callbacks {
	/* read by the dump: what the function that runs belongs to, a callback
	 * or an SRQ, NULL: none runs; the batch's functions since when */
	_Atomic(const void *) shown;
	_Atomic uint32_t since_ms;
	uint32_t count;
	struct rt_callback *running; /* its function runs now */
	struct {
		struct rt_callback *callback;
		struct rpma_rt_completion item;
	} due[RT_CALLBACKS];
};

/* The function gets the item at the batch's end. REQUIRES: room; callers are
 * rt_deliver_call() alone */
void rt_callback_add(struct rt_poller *poller, struct rt_callback *callback,
		     const struct rpma_rt_completion *item);
/* Functions of a batch begin to run: one of them, of callback or SRQ. */
void rt_callback_date(struct rt_callbacks *calls);
static inline void rt_callback_show(struct rt_callbacks *calls, const void *of)
{
	/* release: the date, to the dump */
	atomic_store_explicit(&calls->shown, of, memory_order_release);
}
/* Calls what is due, in order. */
void rt_callback_run(struct rt_poller *poller);

#endif /* RT_POLLER_CALLBACK_H */
