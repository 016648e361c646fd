/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * lot.c -- the places where threads sleep that wait for futures: bells of the
 * process, as many as threads slept at once. A poller that has just read where
 * a thread sleeps may ring there when that has left, so they are never freed,
 * and a thread that is rung for nothing looks again. Any thread, without a lock
 * that a fork could leave behind.
 */

#include "future/future.h"

#include <stdalign.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "base/from.h"
#include "base/order.h"

struct place {
	alignas(RT_CACHE_LINE) struct rt_bell bell;
	struct place *next;
};

static _Atomic(struct place *) lot; /* those where no thread sleeps */

static void put_back(struct place *first, struct place *last)
{
	/* relaxed: the compare-and-swap decides */
	struct place *head = atomic_load_explicit(&lot, memory_order_relaxed);

	do {
		last->next = head;
		/* release [LOT-1]: their next; pairs with the taking of all */
	} while (!atomic_compare_exchange_weak_explicit(&lot, &head, first,
							memory_order_release,
							memory_order_relaxed));
}

static struct place *make(void)
{
	struct place *place = aligned_alloc(RT_CACHE_LINE, sizeof(*place));

	if (place == NULL)
		return NULL;
	rt_bell_init_futex(&place->bell);
	place->next = NULL;
	return place;
}

struct rt_bell *rt_future_lot_take(void)
{
	/* acquire [LOT-1]: all at once, so that none can have been away */
	struct place *place =
		atomic_exchange_explicit(&lot, NULL, memory_order_acquire);
	struct place *last;

	if (place == NULL)
		place = make();
	if (place == NULL)
		return NULL;
	if (place->next != NULL) {
		for (last = place->next; last->next != NULL; last = last->next)
			;
		put_back(place->next, last);
	}
	return &place->bell;
}

void rt_future_lot_return(struct rt_bell *bell)
{
	struct place *place = RT_FROM(struct place, bell, bell);

	put_back(place, place);
}
