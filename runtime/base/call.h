/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * call.h -- a function that another thread runs, and its result: a message in
 * the inbox of that thread, which the caller sends, then waits for. Calls that
 * are sent under a lock run in the order of that lock; no thread waits under
 * one.
 */

#ifndef RT_BASE_CALL_H
#define RT_BASE_CALL_H

#include <pthread.h>
#include <stdbool.h>

#include "base/inbox.h"

struct rpma_rt;
struct rt_owned;

/* the caller's, until rt_call_wait() has answered */
struct rt_call {
	struct rt_msg msg;
	int (*fn)(void *arg);
	void *arg;
	pthread_mutex_t lock;
	pthread_cond_t changed;
	bool done;
	int result;
};

void rt_call_send(struct rt_call *call, struct rt_inbox *inbox,
		  int (*fn)(void *arg), void *arg);
/* Returns the result of fn. poller: the owner of the inbox in manual mode; else
 * NULL. */
int rt_call_wait(struct rt_call *call, struct rt_owned *poller);

/* Send and wait, for an inbox of a library thread, not from that. rt NULL:
 * the caller runs no pollers meanwhile, so it may hold a lock. */
int rt_call_sync(struct rpma_rt *rt, struct rt_inbox *inbox,
		 int (*fn)(void *arg), void *arg);

#endif /* RT_BASE_CALL_H */
