/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * waiter.c -- the stack of those that wait for a lane; see waiter.h.
 */

#include "queue/waiter.h"

#include <assert.h>
#include <stdlib.h>

struct rt_waiter *rt_waiter_new(void (*eased)(void *arg), void *arg)
{
	struct rt_waiter *waiter = calloc(1, sizeof(*waiter));

	if (waiter == NULL)
		return NULL;
	waiter->eased = eased;
	waiter->arg = arg;
	return waiter;
}

void rt_waiter_delete(struct rt_waiter *waiter)
{
	free(waiter);
}

void rt_waiter_leave_poller(struct rt_waiter *waiter)
{
	waiter->eased = NULL;
	/* relaxed: no thread adds it any more, and only the poller clears it */
	if (!atomic_load_explicit(&waiter->listed, memory_order_relaxed))
		free(waiter);
}

void rt_waiter_add_mt(struct rt_waiters *waiters, struct rt_waiter *waiter)
{
	struct rt_waiter *head;

	/* acq_rel [WAIT-1]: pairs with the exchange in take_first(). Listed
	 * still: the poller will see what the caller wants; not any more: the
	 * poller has read its next */
	if (atomic_exchange_explicit(&waiter->listed, true,
				     memory_order_acq_rel))
		return;
	/* relaxed: the exchange that follows compares it */
	head = atomic_load_explicit(&waiters->stack, memory_order_relaxed);
	do {
		waiter->next = head;
		/* release [WAIT-2]: next, to the poller's exchange; failure:
		 * nothing is read through head */
	} while (!atomic_compare_exchange_weak_explicit(
		&waiters->stack, &head, waiter, memory_order_release,
		memory_order_relaxed));
}

/* NULL: there is none. */
static struct rt_waiter *take_first(struct rt_waiters *waiters)
{
	struct rt_waiter *waiter;

	/* relaxed: a look, so that an empty stack costs no exchange; the
	 * caller's fence orders it [LEDGER-2] */
	if (waiters->due == NULL &&
	    atomic_load_explicit(&waiters->stack, memory_order_relaxed) != NULL)
		/* acquire [WAIT-2]: the next of each */
		waiters->due = atomic_exchange_explicit(&waiters->stack, NULL,
							memory_order_acquire);
	waiter = waiters->due;
	if (waiter == NULL)
		return NULL;
	waiters->due = waiter->next;
	/* acq_rel [WAIT-1]: pairs with rt_waiter_add_mt(): what those want
	 * that found it listed is seen after this, and next is theirs */
	atomic_exchange_explicit(&waiter->listed, false, memory_order_acq_rel);
	return waiter;
}

bool rt_waiter_answer_poller(struct rt_waiters *waiters)
{
	struct rt_waiter *waiter = take_first(waiters);

	if (waiter == NULL)
		return false;
	if (waiter->eased != NULL)
		waiter->eased(waiter->arg);
	else
		free(waiter);
	return true;
}

void rt_waiter_list_fini(struct rt_waiters *waiters)
{
	struct rt_waiter *waiter;

	while ((waiter = take_first(waiters)) != NULL) {
		assert(waiter->eased == NULL);
		free(waiter);
	}
}
