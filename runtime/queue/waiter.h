/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * waiter.h -- those that wait for a lane's backlog to clear: a lock-free stack
 * to which refused posters add, and from which the poller answers a few at a
 * time. doc/protocols/ledger.md, "Waiters of a lane".
 */

#ifndef RT_QUEUE_WAITER_H
#define RT_QUEUE_WAITER_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

struct rt_lane;

struct rt_waiter {
	_Atomic bool listed;	  /* in the stack, or taken from it and due */
	struct rt_waiter *next;	  /* its poster's, until it is answered */
	void (*eased)(void *arg); /* poller: the answer; NULL: it has left */
	void *arg;
	/* where it waits, of a waiter whose owner may move: set by the owner
	 * before anybody else knows it */
	struct rt_lane *lane;
};

struct rt_waiters {
	_Atomic(struct rt_waiter *) stack;
	struct rt_waiter *due; /* the poller's: taken from the stack */
};

/* NULL: no memory. */
struct rt_waiter *rt_waiter_new(void (*eased)(void *arg), void *arg);
/* REQUIRES: never listed; or NULL */
void rt_waiter_delete(struct rt_waiter *waiter);
/* Poller: the waiter is never answered again; freed at once or, if listed,
 * when it is taken off. REQUIRES: no thread adds it any more */
void rt_waiter_leave_poller(struct rt_waiter *waiter);

/* Any thread, before its fence and its second look: the waiter is answered when
 * the backlog has cleared. A waiter waits in one place at a time. */
void rt_waiter_add_mt(struct rt_waiters *waiters, struct rt_waiter *waiter);
/* Poller, after it cleared the backlog and fenced: answers one; false: there is
 * none. */
bool rt_waiter_answer_poller(struct rt_waiters *waiters);
/* REQUIRES: only waiters that have left are in it */
void rt_waiter_list_fini(struct rt_waiters *waiters);

#endif /* RT_QUEUE_WAITER_H */
