/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * lot.c -- the places where threads wait for futures, each with a bell and a
 * list of complete slots: of the process, as many as threads waited at once. A
 * poller that has just pushed a slot may ring when the thread has left, so
 * places are never freed, and a thread that is rung for nothing looks again.
 * Any thread, without a lock that a fork could leave behind.
 */

#include "future/future.h"

#include <stdatomic.h>
#include <stdlib.h>

#include "base/order.h"

static _Atomic(struct rt_future_place *) lot; /* those where no thread sleeps */

static void put_back(struct rt_future_place *first,
		     struct rt_future_place *last)
{
	/* relaxed: the compare-and-swap decides */
	struct rt_future_place *head =
		atomic_load_explicit(&lot, memory_order_relaxed);

	do {
		last->next = head;
		/* release [LOT-1]: their next; pairs with the taking of all */
	} while (!atomic_compare_exchange_weak_explicit(&lot, &head, first,
							memory_order_release,
							memory_order_relaxed));
}

static struct rt_future_place *make(void)
{
	struct rt_future_place *place =
		aligned_alloc(RT_CACHE_LINE, sizeof(*place));

	if (place == NULL)
		return NULL;
	rt_bell_init_futex(&place->bell);
	/* relaxed: slots that point here are released later */
	atomic_store_explicit(&place->pushed, NULL, memory_order_relaxed);
	place->next = NULL;
	return place;
}

struct rt_future_place *rt_future_lot_take(void)
{
	/* acquire [LOT-1]: all at once, so that none can have been away */
	struct rt_future_place *place =
		atomic_exchange_explicit(&lot, NULL, memory_order_acquire);
	struct rt_future_place *last;

	if (place == NULL)
		place = make();
	if (place == NULL)
		return NULL;
	if (place->next != NULL) {
		for (last = place->next; last->next != NULL; last = last->next)
			;
		put_back(place->next, last);
	}
	return place;
}

void rt_future_lot_return(struct rt_future_place *place)
{
	put_back(place, place);
}
