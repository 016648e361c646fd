/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * others.c -- the snapshot of listeners, SRQs, adopted connections, pools,
 * under the directory's lock, which keeps the records. What else there is of
 * them may be gone: only words of the record are read.
 */

#include "dump/snapshot.h"

#include <stdio.h>
#include <string.h>

#include "adopt.h"
#include "base/clock.h"
#include "base/lang.h"
#include "base/runtime.h"
#include "base/stats.h"
#include "conn/listener.h"
#include "pool/feed.h"
#include "pool/pool.h"
#include "poller/poller.h"
#include "srq/srq.h"

void rt_dump_others_count(const struct rpma_rt *rt, struct rt_dump *dump)
{
	const struct cds_list_head *link;

	for (link = rt->listed_listeners.next; link != &rt->listed_listeners;
	     link = link->next)
		dump->listeners_count++;
	for (link = rt->listed_srqs.next; link != &rt->listed_srqs;
	     link = link->next)
		dump->srqs_count++;
	for (link = rt->listed_adopted.next; link != &rt->listed_adopted;
	     link = link->next)
		dump->adopted_count++;
	for (link = rt->listed_pools.next; link != &rt->listed_pools;
	     link = link->next)
		dump->pools_count++;
}

/* A listener that is not over holds its queues; one that was over lets them go,
 * and a queue that is deleted is unlisted before it is freed. */
static void hold_queues(const struct rpma_rt_listener *listener,
			struct rt_dump *dump)
{
	char label[RT_DUMP_LABEL];
	uint32_t i;

	snprintf(label, sizeof(label), "listener %u", listener->number);
	for (i = 0; i < (uint32_t)dump->pollers_count; i++) {
		if (listener->parts[i].queue != NULL)
			rt_dump_hold(dump,
				     rt_queue_id(listener->parts[i].queue),
				     label);
	}
}

static int for_of(const struct rpma_rt_listener *listener)
{
	/* relaxed: statistic, orders nothing */
	return atomic_load_explicit(&listener->refused_for,
				    memory_order_relaxed);
}

static void take_listener(const struct rpma_rt_listener *listener,
			  struct rt_dump *dump, struct rt_dump_listener *out)
{
	*out = (struct rt_dump_listener){
		.number = listener->number,
		.port = listener->port,
		.user = listener->cfg.user,
		.is_over = rt_stat_is(&listener->is_over),
		.refused = rt_stat_read32(&listener->refused),
		.refused_for = for_of(listener),
		.refused_ms = rt_ms_between(
			rt_stat_read32(&listener->refused_ms), dump->now_ms),
	};
	if (out->is_over)
		return;
	if (listener->cfg.queue != NULL)
		out->queue = rt_queue_id(listener->cfg.queue);
	hold_queues(listener, dump);
}

static void name_srq(const struct rt_dump_srq *srq, char label[RT_DUMP_LABEL])
{
	snprintf(label, RT_DUMP_LABEL, "SRQ %u of poller %d", srq->number,
		 srq->poller);
}

static void take_srq(const struct rpma_rt_srq *srq, struct rt_dump *dump,
		     struct rt_dump_srq *out)
{
	uint32_t posted = rt_stat_read32(&srq->posted);
	uint32_t retired = rt_stat_read32(&srq->retired);
	struct rt_dump_poller *poller = &dump->pollers[srq->poller->index];
	char label[RT_DUMP_LABEL];

	*out = (struct rt_dump_srq){
		.handle = srq,
		.poller = srq->poller->index,
		.number = srq->number,
		.user = srq->user,
		.size = srq->cfg.srq_size,
		.out = srq->cfg.srq_size - (retired - posted),
		.messages = rt_stat_read32(&srq->messages_listed),
		.retired_ms = rt_ms_between(rt_stat_read32(&srq->retired_ms),
					    dump->now_ms),
		.is_behind = rt_stat_is(&srq->behind),
		/* its queue lives as long: as a listener's */
		.is_over = rt_stat_is(&srq->is_over),
		.delete_refused = rt_stat_is(&srq->delete_refused),
	};
	/* of the two one was read later */
	if (out->out > out->size)
		out->out = 0;
	name_srq(out, label);
	if (poller->function == srq)
		memcpy(poller->function_of, label, sizeof(label));
	if (out->is_over || srq->queue == NULL)
		return;
	out->queue = rt_queue_id(srq->queue);
	rt_dump_hold(dump, out->queue, label);
}

static void take_adopted(const struct rpma_rt_adopted *adopted,
			 struct rt_dump *dump, struct rt_dump_adopted *out)
{
	*out = (struct rt_dump_adopted){
		.handle = adopted,
		.poller = adopted->poller->index,
		.user = adopted->raw.user,
		.is_over = rt_stat_is(&adopted->is_over),
	};
	if (out->is_over)
		return;
	out->queue = rt_queue_id(adopted->queue);
	rt_dump_hold(dump, out->queue, "an adopted connection");
}

static uint32_t low_for_ms(const struct rpma_rt_pool *pool, uint32_t now_ms)
{
	uint32_t longest = 0;
	uint32_t since;
	uint32_t ms;
	uint32_t i;

	for (i = 0; i < pool->rt->cfg.pollers; i++) {
		since = rt_stat_read32(&pool->feeders[i].low_ms);
		ms = since == 0 ? 0 : rt_ms_between(since, now_ms);
		if (ms > longest)
			longest = ms;
	}
	return longest;
}

static void take_pool(const struct rpma_rt_pool *pool,
		      const struct rt_dump *dump, struct rt_dump_pool *out)
{
	*out = (struct rt_dump_pool){
		.count = pool->count,
		.slot_size = pool->slot_size,
		.receives = pool->receives,
		.out = rt_pool_out(pool, pool->count),
		.receives_out = rt_pool_out(pool, pool->receives),
		.fills = rt_stat_read32(&pool->fills),
		.lows = rt_stat_read32(&pool->lows),
		.low_for_ms = low_for_ms(pool, dump->now_ms),
		.times_low = rt_stat_read(&pool->times_low),
		.delete_refused = rt_stat_is(&pool->delete_refused),
	};
	memcpy(out->name, pool->name, sizeof(out->name));
}

/* The entry of the list is followed, and not the object: the list's head is in
 * no object. */
void rt_dump_others_take(const struct rpma_rt *rt, struct rt_dump *dump)
{
	const struct cds_list_head *link;
	uint32_t i = 0;

	cds_list_for_each(link, &rt->listed_listeners) take_listener(
		RT_FROM(const struct rpma_rt_listener, listed, link), dump,
		&dump->listeners[i++]);
	i = 0;
	cds_list_for_each(link, &rt->listed_srqs)
		take_srq(RT_FROM(const struct rpma_rt_srq, listed, link), dump,
			 &dump->srqs[i++]);
	i = 0;
	cds_list_for_each(link, &rt->listed_adopted) take_adopted(
		RT_FROM(const struct rpma_rt_adopted, listed, link), dump,
		&dump->adopted[i++]);
	i = 0;
	cds_list_for_each(link, &rt->listed_pools)
		take_pool(RT_FROM(const struct rpma_rt_pool, listed, link),
			  dump, &dump->pools[i++]);
}
