/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * source.c -- sources of futures, see source.h. Runs on the poller, or in place
 * of the poller after a stop.
 */

#include "poller/source.h"

#include <assert.h>
#include <stdlib.h>

#include "base/context.h"
#include "poller/poller.h"

/* ------------------------------------------------------------ the list --- */

static void source_add_count(struct rt_future_source *source, uint32_t by)
{
	/* relaxed: a statistic for other threads */
	atomic_store_explicit(&source->count, rt_source_count(source) + by,
			      memory_order_relaxed);
}

static void source_link_node(struct rt_future_source *source,
			     struct rt_source_node **link,
			     struct rt_source_node *node)
{
	node->next = *link;
	*link = node;
	if (node->next == NULL)
		source->last = &node->next;
	source_add_count(source, 1);
}

void rt_source_add_poller(struct rt_future_source *source,
			  struct rt_source_node *node)
{
	node->sequence = source->sequence++;
	source_link_node(source, source->last, node);
}

void rt_source_put_poller(struct rt_future_source *source,
			  const struct rpma_rt_completion *item)
{
	struct rt_source_node *node = source->free;

	assert(node != NULL);
	source->free = node->next;
	node->item = *item;
	rt_source_add_poller(source, node);
}

static struct rt_source_node *
source_unlink_first(struct rt_future_source *source)
{
	struct rt_source_node *node = source->first;

	if (node == NULL)
		return NULL;
	source->first = node->next;
	if (node->next == NULL)
		source->last = &source->first;
	source_add_count(source, UINT32_MAX);
	return node;
}

/* Moves the first item of the list to the slot, which keeps the item's node for
 * the way back; the node of the slot's former item is free. */
static bool source_take_item(struct rt_future_source *source,
			     struct rt_future *slot,
			     struct rpma_rt_completion *item)
{
	struct rt_source_node **held =
		&source->held[slot - source->futures->slots];
	struct rt_source_node *node = source_unlink_first(source);

	if (node == NULL)
		return false;
	if (source->has_nodes && *held != NULL) {
		(*held)->next = source->free;
		source->free = *held;
	}
	*held = node;
	*item = node->item;
	if (source->taken != NULL)
		source->taken(source->arg);
	return true;
}

/* Returns the slot's item to the list: behind the items that came before. */
static void source_put_item_back(struct rt_future_source *source,
				 const struct rt_future *slot)
{
	struct rt_source_node **held =
		&source->held[slot - source->futures->slots];
	struct rt_source_node *node = *held;
	struct rt_source_node **link = &source->first;

	while (*link != NULL &&
	       (int32_t)((*link)->sequence - node->sequence) < 0)
		link = &(*link)->next;
	*held = NULL;
	source_link_node(source, link, node);
}

static bool source_is_keeper(const struct rt_future *slot)
{
	return slot->tag == RT_FUTURE_KEEPER;
}

/* Ends the source, whose keeper is dropped, and drops the listed items. */
static void source_end(const struct rt_future *slot)
{
	struct rt_future_source *source = slot->of->source;
	struct rt_source_node *node;

	slot->of->source = NULL;
	while ((node = source_unlink_first(source)) != NULL)
		rt_context_drop_item(slot->of->rt, &node->item);
	free(source);
}

bool rt_source_may_serve(const struct rt_future *slot, uint32_t asked)
{
	return slot->of->source != NULL &&
	       !(source_is_keeper(slot) && (asked & RT_FUTURE_DROP));
}

/* ------------------------------------------------- slots that watch --- */

/* Returns the link of a watching slot to the next slot: index + 1, or 0. A
 * watching slot has no result, so words of the result hold the slot's
 * neighbours in the order of watching. */
static uint32_t *source_watch_next(struct rt_future *slot)
{
	return &slot->result.byte_len;
}

static uint32_t *source_watch_before(struct rt_future *slot)
{
	return &slot->result.imm;
}

static struct rt_future *source_watch_at(struct rt_futures *futures,
					 uint32_t at)
{
	return at != 0 ? &futures->slots[at - 1] : NULL;
}

/* Makes the slot the last watching slot. */
static void source_watch(struct rt_future *slot)
{
	struct rt_futures *futures = slot->of;
	struct rt_awaited *awaited = &futures->awaited[slot->tag];
	struct rt_future *last = source_watch_at(futures, awaited->last);
	uint32_t at = (uint32_t)(slot - futures->slots) + 1;

	*source_watch_before(slot) = awaited->last;
	*source_watch_next(slot) = 0;
	*(last != NULL ? source_watch_next(last) : &awaited->first) = at;
	awaited->last = at;
	slot->told |= RT_FUTURE_WATCH;
}

static void source_unwatch(struct rt_future *slot)
{
	struct rt_futures *futures = slot->of;
	struct rt_awaited *awaited = &futures->awaited[slot->tag];
	struct rt_future *before;
	struct rt_future *next;

	if (!(slot->told & RT_FUTURE_WATCH))
		return;
	before = source_watch_at(futures, *source_watch_before(slot));
	next = source_watch_at(futures, *source_watch_next(slot));
	slot->told &= (uint8_t)~RT_FUTURE_WATCH;
	*(before != NULL ? source_watch_next(before) : &awaited->first) =
		*source_watch_next(slot);
	*(next != NULL ? source_watch_before(next) : &awaited->last) =
		*source_watch_before(slot);
	*source_watch_before(slot) = 0;
	*source_watch_next(slot) = 0;
}

static bool source_fetch(const struct rt_future_source *source,
			 struct rpma_rt_completion *item)
{
	return source->fetch != NULL && source->fetch(source->arg, item);
}

/* Stores the next item, or the end, in the slot. Returns false if nothing has
 * come. */
static bool source_take_next(struct rt_future *slot)
{
	struct rt_future_source *source = slot->of->source;
	const struct rt_awaited *awaited = &slot->of->awaited[slot->tag];
	struct rpma_rt_completion item;

	if (source != NULL && (source_take_item(source, slot, &item) ||
			       source_fetch(source, &item)))
		slot->result.context = item.context;
	else if (awaited->is_over)
		item = awaited->end;
	else
		return false;
	source_unwatch(slot);
	rt_future_fill(slot, item);
	return true;
}

void rt_source_set_end_poller(struct rt_futures *futures, uint32_t event,
			      const struct rpma_rt_completion *end)
{
	futures->awaited[event].end = *end;
	futures->awaited[event].is_over = true;
}

bool rt_source_serve_poller(struct rt_poller *poller,
			    struct rt_futures *futures, uint32_t event)
{
	struct rt_future *slot =
		source_watch_at(futures, futures->awaited[event].first);
	struct rpma_rt_completion left;

	if (slot == NULL && futures->source != NULL)
		source_fetch(futures->source, NULL);
	if (slot == NULL || !source_take_next(slot))
		return false;
	/* the result is led nowhere */
	rt_future_finish_poller(poller, slot, &left);
	return true;
}

/* ------------------------------------------------- what a holder asks --- */

/* Does a request at once: the device has nothing to do with the slot. A new
 * slot goes behind the watching slots: an item that is listed while slots watch
 * was put back, and is for the first watching slot. The keeper never
 * watches. */
static bool source_ask(struct rt_future *slot, uint32_t asked)
{
	if (asked & (RT_FUTURE_CANCEL | RT_FUTURE_DROP)) {
		if (source_is_keeper(slot))
			source_end(slot);
		else
			source_unwatch(slot);
		slot->told |= RT_FUTURE_FILLED;
	} else if (!source_is_keeper(slot) && !(slot->told & RT_FUTURE_WATCH) &&
		   (slot->of->awaited[slot->tag].first != 0 ||
		    !source_take_next(slot))) {
		source_watch(slot);
	}
	return slot->told & RT_FUTURE_FILLED;
}

/* Drops an item that no holder has: a slot goes back to its pool. */
static void source_give_back(struct rt_future *slot)
{
	rt_context_drop_item(slot->of->rt, &slot->result);
}

/* Returns an item that no holder has to the list; drops the item if the source
 * is gone. */
static void source_put_back(struct rt_future *slot)
{
	if (slot->of->source != NULL)
		source_put_item_back(slot->of->source, slot);
	else
		source_give_back(slot);
}

const struct rt_future_kind rt_source_requests = {
	.item = RPMA_RT_EVENT,
	.opcode = RPMA_RT_EVENT_REQUEST,
	.is_kept = true,
	.ask = source_ask,
	.put_back = source_put_back,
	.not_delivered = "future is of the next request: drop it, and the "
			 "request is the next one's",
};

const struct rt_future_kind rt_source_messages = {
	.item = RPMA_RT_COMPLETION,
	.opcode = IBV_WC_RECV,
	.is_kept = true,
	.ask = source_ask,
	.put_back = source_put_back,
	.not_delivered = "future is of the next message: drop it, and the "
			 "message is the next one's",
};

const struct rt_future_kind rt_source_slots = {
	.item = RPMA_RT_COMPLETION,
	.opcode = IBV_WC_RECV,
	.is_kept = true,
	.ask = source_ask,
	.put_back = source_give_back,
	.not_delivered = "future is of the next free slot of a pool: drop it, "
			 "and the slot is the next one's",
};

const struct rt_future_kind rt_source_latches = {
	.item = RPMA_RT_EVENT,
	.opcode = RT_FUTURE_EVENT_FIRST,
	.ask = source_ask,
	.not_delivered = "future is of an event, which comes to the "
			 "connection's queue by itself",
};
