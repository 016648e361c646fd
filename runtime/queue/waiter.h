/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * waiter.h -- what waits for a lane's backlog to clear: a list of the poller's,
 * which lists and answers. doc/protocols/ledger.md, "Waiters of a lane".
 */

#ifndef RT_QUEUE_WAITER_H
#define RT_QUEUE_WAITER_H

#include <stdbool.h>

#include <urcu/list.h>

struct rt_waiter {
	struct cds_list_head link; /* of a lane's list; empty: not listed */
	void (*eased)(void *arg);
	void *arg;
};

/* NULL: no memory. */
struct rt_waiter *rt_waiter_new(void (*eased)(void *arg), void *arg);
/* Takes the waiter off its list, if the waiter is listed, and frees the waiter.
 * waiter may be NULL. The poller, or before the poller knows the waiter. */
void rt_waiter_delete(struct rt_waiter *waiter);

/* The rest: the poller. */

/* Lists the waiter, unless it is listed: it is answered when the backlog has
 * cleared. A waiter waits for one lane at a time. */
void rt_waiter_add(struct cds_list_head *waiters, struct rt_waiter *waiter);
/* Takes one off the list and answers it; false: there is none. */
bool rt_waiter_answer(struct cds_list_head *waiters);

#endif /* RT_QUEUE_WAITER_H */
