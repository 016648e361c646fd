/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * accept.c -- see accept.h. Where it says nothing else: on the poller of the
 * block.
 */

#include "conn/accept.h"

#include <stdlib.h>

#include "base/context.h"
#include "base/runtime.h"
#include "conn/conn.h"
#include "conn/item.h"
#include "future/future.h"
#include "poller/poller.h"

/* requests that wait for a future, at most: as in a queue */
#define WAITING_MAX RPMA_RT_DEFAULT_BACKLOG_LIMIT

struct rt_accept {
	struct rt_future_source source; /* first */
	struct rt_futures *futures;	/* immutable */
	/* requests that nobody has, in order */
	struct rt_conn_setup *first;
	struct rt_conn_setup *last;
	_Atomic uint32_t count; /* of them; read by the control thread */
	/* of whoever ends it */
	struct rt_msg end_msg;
	struct rpma_rt_completion last_item;
	struct rt_inbox *ended_inbox;
	struct rt_msg *ended_msg;
};

/* --------------------------------------------------- those that wait --- */

static void count(struct rt_accept *accept, uint32_t by)
{
	/* relaxed: a bound, which the control thread reads as it is */
	atomic_fetch_add_explicit(&accept->count, by, memory_order_relaxed);
}

bool rt_accept_has_room(const struct rt_accept *accept)
{
	/* relaxed: as above */
	return atomic_load_explicit(&accept->count, memory_order_relaxed) <
	       WAITING_MAX;
}

static bool take(struct rt_future_source *source, const struct rt_future *slot,
		 struct rpma_rt_completion *item)
{
	struct rt_accept *accept = (struct rt_accept *)source;
	struct rt_conn_setup *setup = accept->first;

	(void)slot;
	if (setup == NULL)
		return false;
	accept->first = setup->next;
	count(accept, UINT32_MAX);
	*item = setup->request;
	return true;
}

/* Its connection was not answered, so its setup is as it was. */
static void put_back(struct rt_future_source *source,
		     const struct rt_future *slot)
{
	struct rt_accept *accept = (struct rt_accept *)source;
	struct rt_conn_setup *setup =
		((struct rpma_rt_conn *)(uintptr_t)slot->result.context)->setup;

	setup->next = accept->first;
	if (accept->first == NULL)
		accept->last = setup;
	accept->first = setup;
	count(accept, 1);
}

/* --------------------------------------------------------- a request --- */

static void offered_message(struct rt_msg *msg, void *owner)
{
	struct rt_conn_setup *setup =
		RT_FROM(struct rt_conn_setup, begin_msg, msg);
	struct rt_accept *accept = setup->accept;

	setup->next = NULL;
	if (accept->first == NULL)
		accept->first = setup;
	else
		accept->last->next = setup;
	accept->last = setup;
	rt_deliver_events(owner, accept->futures);
}

void rt_accept_offer_poller(struct rt_accept *accept, struct rpma_rt_conn *conn)
{
	struct rt_conn_setup *setup = conn->setup;

	/* its handle, which nobody has yet, keeps it and its setup */
	setup->request = rt_item_event(conn, RPMA_RT_EVENT_REQUEST);
	setup->accept = accept;
	setup->begin_msg.fn = offered_message;
	count(accept, 1);
	rt_inbox_push_mt(&accept->futures->poller->inbox, &setup->begin_msg);
}

/* ------------------------------------------------------------- ending --- */

/* Behind every request that was offered. */
static void end_message(struct rt_msg *msg, void *owner)
{
	struct rt_accept *accept = RT_FROM(struct rt_accept, end_msg, msg);
	struct rt_poller *poller = owner;
	struct rpma_rt_completion item;

	rt_future_run_poller(accept->futures);
	while (take(&accept->source, NULL, &item))
		rt_context_drop_item(poller->rt, &item);
	accept->futures->source = NULL;
	rt_future_set_last_poller(accept->futures, &accept->last_item);
	rt_deliver_events(poller, accept->futures);
	rt_deliver_flush(poller);
	rt_inbox_push_mt(accept->ended_inbox, accept->ended_msg);
}

void rt_accept_end_mt(struct rt_accept *accept,
		      const struct rpma_rt_completion *last,
		      struct rt_inbox *inbox, struct rt_msg *msg)
{
	accept->last_item = *last;
	accept->ended_inbox = inbox;
	accept->ended_msg = msg;
	accept->end_msg.fn = end_message;
	rt_inbox_push_mt(&accept->futures->poller->inbox, &accept->end_msg);
}

/* -------------------------------------------------------------- making --- */

struct rt_accept *rt_accept_new(struct rt_poller *poller)
{
	struct rt_accept *accept = calloc(1, sizeof(*accept));

	if (accept == NULL)
		return NULL;
	accept->source.take = take;
	accept->source.put_back = put_back;
	pthread_mutex_lock(&poller->rt->lock);
	accept->futures =
		rt_future_block_take(poller, NULL, RT_FUTURE_EVENT_SLOTS);
	pthread_mutex_unlock(&poller->rt->lock);
	if (accept->futures == NULL) {
		free(accept);
		return NULL;
	}
	accept->futures->is_events = true;
	accept->futures->is_sequence = true;
	accept->futures->source = &accept->source;
	return accept;
}

void rt_accept_delete(struct rt_accept *accept)
{
	struct rpma_rt *rt;

	if (accept == NULL)
		return;
	rt = accept->futures->rt;
	pthread_mutex_lock(&rt->lock);
	rt_future_block_return(accept->futures);
	pthread_mutex_unlock(&rt->lock);
	free(accept);
}

/* ------------------------------------------------------------ futures --- */

int rt_accept_future(struct rt_accept *accept, const void *owner,
		     struct rpma_rt_future *future)
{
	struct rt_futures *futures = accept->futures;
	struct rt_future *slot;

	/* of two threads one takes a slot */
	pthread_mutex_lock(&futures->rt->ask_lock);
	slot = rt_future_take(futures, (uintptr_t)owner);
	pthread_mutex_unlock(&futures->rt->ask_lock);
	if (slot == NULL)
		return RPMA_RT_E_BUSY;
	slot->tag = RPMA_RT_EVENT_REQUEST;
	slot->result = (struct rpma_rt_completion){
		.context = (uintptr_t)owner,
		.opcode = RPMA_RT_EVENT_REQUEST,
	};
	rt_future_name(future, slot);
	rt_future_ask_mt(slot, RT_FUTURE_WATCH);
	return 0;
}
