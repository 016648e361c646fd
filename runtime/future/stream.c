/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * stream.c -- see stream.h. Where it says nothing else: on the poller, or in
 * its place after a stop.
 */

#include "future/stream.h"

#include <assert.h>
#include <stdlib.h>

#include "base/context.h"
#include "base/runtime.h"
#include "future/future.h"
#include "poller/poller.h"

/* --------------------------------------------------------- those that wait */

static void set_count(struct rt_stream *stream, uint32_t count)
{
	/* relaxed: a statistic to all others */
	atomic_store_explicit(&stream->count, count, memory_order_relaxed);
}

static struct rt_stream_item *at(struct rt_stream *stream, uint32_t index)
{
	return &stream->waiting[(stream->first + index) & stream->mask];
}

static void put(struct rt_future_source *source,
		const struct rpma_rt_completion *item)
{
	struct rt_stream *stream = (struct rt_stream *)source;
	uint32_t count = rt_stream_waiting_poller(stream);

	assert(count <= stream->mask);
	at(stream, count)->item = *item;
	at(stream, count)->sequence = stream->sequence++;
	set_count(stream, count + 1);
}

static bool take(struct rt_future_source *source, const struct rt_future *slot,
		 struct rpma_rt_completion *item)
{
	struct rt_stream *stream = (struct rt_stream *)source;
	uint32_t count = rt_stream_waiting_poller(stream);

	if (count == 0)
		return false;
	*item = at(stream, 0)->item;
	stream->held[slot - stream->futures->slots] = at(stream, 0)->sequence;
	stream->first++;
	set_count(stream, count - 1);
	if (stream->taken != NULL)
		stream->taken(stream->arg);
	return true;
}

/* Where it was: in front, but behind what came before it. */
static void put_back(struct rt_future_source *source,
		     const struct rt_future *slot)
{
	struct rt_stream *stream = (struct rt_stream *)source;
	uint32_t sequence = stream->held[slot - stream->futures->slots];
	uint32_t count = rt_stream_waiting_poller(stream);
	uint32_t i;

	assert(count <= stream->mask);
	stream->first--;
	for (i = 0; i < count; i++) {
		if ((int32_t)(at(stream, i + 1)->sequence - sequence) > 0)
			break;
		*at(stream, i) = *at(stream, i + 1);
	}
	at(stream, i)->item = slot->result;
	at(stream, i)->sequence = sequence;
	set_count(stream, count + 1);
}

/* ------------------------------------------------------------- its life --- */

static void stream_free(struct rt_stream *stream)
{
	free(stream->held);
	free(stream->waiting);
	free(stream);
}

static void end(struct rt_future_source *source)
{
	struct rt_stream *stream = (struct rt_stream *)source;
	uint32_t count = rt_stream_waiting_poller(stream);
	uint32_t i;

	for (i = 0; i < count; i++)
		rt_context_drop_item(stream->futures->rt, &at(stream, i)->item);
	stream_free(stream);
}

static struct rt_future *take_slot(struct rt_futures *futures,
				   const void *owner)
{
	struct rt_future *slot = rt_future_take(futures, (uintptr_t)owner);

	if (slot == NULL)
		return NULL;
	slot->tag = 0;
	slot->result = (struct rpma_rt_completion){
		.context = (uintptr_t)owner,
		.kind = RPMA_RT_COMPLETION,
		.status = IBV_WC_GENERAL_ERR, /* no message yet */
		.opcode = IBV_WC_RECV,
	};
	return slot;
}

static struct rt_stream *stream_alloc(uint32_t futures, uint32_t messages)
{
	struct rt_stream *stream = calloc(1, sizeof(*stream));
	uint32_t room = 1;

	if (stream == NULL)
		return NULL;
	while (room < futures + messages)
		room *= 2;
	stream->mask = room - 1;
	stream->held = calloc(futures + 1, sizeof(*stream->held));
	stream->waiting = calloc(room, sizeof(*stream->waiting));
	if (stream->held != NULL && stream->waiting != NULL)
		return stream;
	stream_free(stream);
	return NULL;
}

struct rt_stream *rt_stream_new(struct rt_poller *poller, uint32_t futures,
				uint32_t messages, const void *owner)
{
	struct rt_stream *stream = stream_alloc(futures, messages);
	struct rt_futures *block;

	if (stream == NULL)
		return NULL;
	block = rt_future_block_take(poller, NULL, futures + 1);
	if (block == NULL) {
		stream_free(stream);
		return NULL;
	}
	stream->source = (struct rt_future_source){
		.put = put, .take = take, .put_back = put_back, .end = end};
	stream->futures = block;
	stream->keeper = take_slot(block, owner);
	stream->keeper->tag = RT_FUTURE_KEEPS_SOURCE;
	block->is_events = true;
	block->is_sequence = true;
	block->is_messages = true;
	block->source = &stream->source;
	return stream;
}

void rt_stream_undo(struct rt_stream *stream)
{
	if (stream == NULL)
		return;
	rt_future_free_holder(stream->keeper);
	rt_future_block_return(stream->futures);
	stream_free(stream);
}

void rt_stream_drop_mt(struct rt_stream *stream)
{
	if (stream == NULL)
		return;
	rt_future_end_generation(stream->keeper);
	rt_future_ask_mt(stream->keeper, RT_FUTURE_DROP);
}

void rt_stream_end_poller(struct rt_stream *stream,
			  const struct rpma_rt_completion *last)
{
	stream->taken = NULL;
	rt_future_run_poller(stream->futures);
	rt_future_set_last_poller(stream->futures, last);
	rt_deliver_events(stream->futures->poller, stream->futures);
}

/* ------------------------------------------------------------- futures --- */

int rt_stream_future(struct rt_futures *futures, const void *owner,
		     struct rpma_rt_future *future)
{
	struct rt_future *slot;

	/* of two threads one takes a slot */
	pthread_mutex_lock(&futures->rt->ask_lock);
	slot = take_slot(futures, owner);
	pthread_mutex_unlock(&futures->rt->ask_lock);
	if (slot == NULL)
		return RPMA_RT_E_BUSY;
	rt_future_name(future, slot);
	rt_future_ask_mt(slot, RT_FUTURE_WATCH);
	return 0;
}
