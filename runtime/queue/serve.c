/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/* serve.c -- see serve.h. */

#include "queue/serve.h"

#include "base/context.h"
#include "base/owner.h"
#include "queue/impl.h"

/* REQUIRES: the pollers lend */
static struct rt_owned *owned_of(const struct rt_queue_lane *lane)
{
	struct rt_owned *owned = rt_context_lending(lane->queue->rt);
	int i;

	for (i = 0; i < lane->poller; i++)
		owned = owned->next;
	return owned;
}

/* Returns the number of lanes whose pollers may be lent. */
static uint32_t lanes_of(const struct rpma_rt_queue *queue)
{
	if (rt_context_lending(queue->rt) == NULL)
		return 0;
	/* acquire [LANE-6] */
	return atomic_load_explicit(&queue->lane_count, memory_order_acquire);
}

static struct rt_owned *poller_of(const struct rpma_rt_queue *queue, uint32_t i)
{
	return owned_of((const struct rt_queue_lane *)queue->lanes[i]);
}

void rt_serve_ask(const struct rpma_rt_queue *queue)
{
	uint32_t lanes = lanes_of(queue);
	uint32_t i;

	for (i = 0; i < lanes; i++)
		rt_lend_ask(poller_of(queue, i)->lending);
}

bool rt_serve_is_due(const struct rpma_rt_queue *queue)
{
	uint32_t lanes = lanes_of(queue);
	uint32_t i;

	for (i = 0; i < lanes; i++) {
		if (rt_lend_is_lent(poller_of(queue, i)->lending))
			return true;
	}
	return false;
}

bool rt_serve_run(const struct rpma_rt_queue *queue)
{
	uint32_t lanes = lanes_of(queue);
	struct rt_owned *owned;
	bool is_any = false;
	uint32_t i;

	for (i = 0; i < lanes; i++) {
		owned = poller_of(queue, i);
		if (!rt_lend_is_lent(owned->lending))
			continue;
		if (!rt_owner_serve(owned, owned->lending->serve))
			return false;
		is_any = true;
	}
	return is_any;
}

void rt_serve_arm(const struct rpma_rt_queue *queue)
{
	uint32_t lanes = lanes_of(queue);
	struct rt_owned *owned;
	uint32_t i;

	for (i = 0; i < lanes; i++) {
		owned = poller_of(queue, i);
		(void)rt_owner_serve(owned, owned->lending->arm);
	}
}

void rt_serve_add(struct rt_queue_lane *lane)
{
	if (rt_context_lending(lane->queue->rt) != NULL)
		rt_lend_add_bell(owned_of(lane)->lending, &lane->sleeps,
				 &lane->queue->bell);
}

void rt_serve_remove(struct rt_queue_lane *lane)
{
	if (rt_context_lending(lane->queue->rt) != NULL)
		rt_lend_remove_bell(owned_of(lane)->lending, &lane->sleeps);
}
