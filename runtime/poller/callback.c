/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * callback.c -- the calls of a poller; see callback.h.
 */

#include "poller/callback.h"

#include <assert.h>

#include "conn/conn.h"
#include "poller/poller.h"

void rt_callback_add(struct rt_poller *poller, struct rpma_rt_route *route,
		     const struct rpma_rt_completion *item)
{
	struct rt_callbacks *calls = &poller->calls;

	/* what a function may call brings no items about */
	assert(calls->running == NULL);
	if (calls->count == RT_CALLBACKS)
		rt_deliver_flush(poller);
	calls->due[calls->count].route = route;
	calls->due[calls->count].item = *item;
	calls->count++;
	poller->written++;
}

/* Whatever waited for a lock may try again. */
static void lock_message(struct rt_msg *msg, void *owner)
{
	struct rpma_rt_conn *conn = RT_FROM(struct rpma_rt_conn, lock_msg, msg);
	struct rpma_rt_completion item;
	struct rpma_rt_route *route;
	int i;

	conn->lock_sent = false;
	for (route = conn->poll.routes; route != NULL; route = route->next) {
		for (i = 0; i < 2; i++) {
			if (!(route->wants & RT_WANTS_LOCK(i)))
				continue;
			route->wants &= (uint8_t)~RT_WANTS_LOCK(i);
			item = rt_deliver_writable_item(&conn->side[i]);
			if (conn->side[i].healthy) /* else CLOSED answers */
				rt_callback_add(owner, route, &item);
		}
	}
}

void rt_callback_retry_lock(struct rpma_rt_route *running, int side)
{
	struct rpma_rt_conn *conn = running->conn;

	running->wants |= (uint8_t)RT_WANTS_LOCK(side);
	if (conn->lock_sent)
		return;
	conn->lock_sent = true;
	conn->lock_msg.fn = lock_message;
	rt_inbox_push_mt(&conn->poller->inbox, &conn->lock_msg);
}

void rt_callback_run(struct rt_poller *poller)
{
	struct rt_callbacks *calls = &poller->calls;
	uint32_t i;

	assert(calls->running == NULL);
	for (i = 0; i < calls->count; i++) {
		calls->running = calls->due[i].route;
		calls->running->fn(&calls->due[i].item, calls->running->arg);
	}
	calls->running = NULL;
	calls->count = 0;
}
