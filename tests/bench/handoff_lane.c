/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * The runtime's ways: lanes, taken bare ("lane") or through
 * rpma_rt_queue_poll() with the fence and the bell of a poller ("queue"); and
 * messages of rpma_rt_queue_push() ("push").
 */

#include "handoff.h"

#include <stdlib.h>

#include "bench.h"
#include "queue/lane.h"
#include "queue/queue.h"
#include "rt_stub.h"

struct lanes {
	struct rpma_rt rt;
	struct rpma_rt_queue *queues[MAX_FANOUT];
	struct rt_lane *lanes[MAX_FANOUT];
	struct rt_lane *touched[MAX_FANOUT]; /* the poller's */
};

static void init(struct handoff *handoff)
{
	struct lanes *lanes = calloc(1, sizeof(*lanes));
	uint32_t i;

	if (lanes == NULL)
		bench_fail("no memory");
	stub_rt_init(&lanes->rt, 1);
	for (i = 0; i < handoff->fanout; i++) {
		lanes->queues[i] =
			stub_queue_new(&lanes->rt, IN_FLIGHT, IN_FLIGHT);
		if (lanes->queues[i] == NULL)
			bench_fail("no queue");
		lanes->lanes[i] =
			rt_queue_lane(lanes->queues[i], 0, &lanes->rt.bells[0]);
		if (lanes->lanes[i] == NULL)
			bench_fail("no lane");
	}
	handoff->state = lanes;
}

/* Returns how many lanes were touched. */
static inline uint32_t stage(struct handoff *handoff, const struct ibv_wc *wcs,
			     uint32_t count)
{
	struct lanes *lanes = handoff->state;
	struct handoff_route *route;
	struct rt_lane *lane;
	uint32_t touched = 0;
	uint32_t i;

	for (i = 0; i < count; i++) {
		route = handoff_look_up(handoff, &wcs[i]);
		if (route == NULL)
			continue;
		lane = lanes->lanes[route->destination];
		handoff_convert(route, &wcs[i], rt_lane_slot_poller(lane));
		if (rt_lane_touch_poller(lane))
			lanes->touched[touched++] = lane;
	}
	return touched;
}

static void send_lane(struct handoff *handoff, const struct ibv_wc *wcs,
		      uint32_t count)
{
	struct lanes *lanes = handoff->state;
	uint32_t touched = stage(handoff, wcs, count);
	uint32_t i;

	for (i = 0; i < touched; i++)
		rt_lane_publish_poller(lanes->touched[i]);
}

static void send_queue(struct handoff *handoff, const struct ibv_wc *wcs,
		       uint32_t count)
{
	struct lanes *lanes = handoff->state;
	uint32_t touched = stage(handoff, wcs, count);
	uint32_t i;

	for (i = 0; i < touched; i++)
		rt_lane_publish_poller(lanes->touched[i]);
	rt_fence_dekker();
	for (i = 0; i < touched; i++)
		rt_lane_bell_poller(lanes->touched[i]);
}

/* Each by itself: the call has no form for several. */
static void send_push(struct handoff *handoff, const struct ibv_wc *wcs,
		      uint32_t count)
{
	struct lanes *lanes = handoff->state;
	struct rpma_rt_completion item;
	struct handoff_route *route;
	uint32_t i;

	for (i = 0; i < count; i++) {
		route = handoff_look_up(handoff, &wcs[i]);
		if (route == NULL)
			continue;
		handoff_convert(route, &wcs[i], &item);
		if (rpma_rt_queue_push(lanes->queues[route->destination],
				       &item))
			bench_fail("rpma_rt_queue_push");
	}
}

static uint32_t take_lane(struct handoff *handoff, uint32_t destination,
			  uint64_t *sum)
{
	struct lanes *lanes = handoff->state;
	struct rpma_rt_completion cmpl[BATCH];
	uint32_t count;

	count = rt_lane_take_consumer(lanes->lanes[destination], cmpl, BATCH);
	*sum += handoff_handle_all(cmpl, count);
	return count;
}

static uint32_t take_queue(struct handoff *handoff, uint32_t destination,
			   uint64_t *sum)
{
	struct lanes *lanes = handoff->state;
	struct rpma_rt_completion cmpl[BATCH];
	int got = rpma_rt_queue_poll(lanes->queues[destination], cmpl, BATCH);

	if (got <= 0)
		return 0;
	*sum += handoff_handle_all(cmpl, (uint32_t)got);
	return (uint32_t)got;
}

const struct handoff_way handoff_lane = {
	.name = "lane",
	.init = init,
	.send = send_lane,
	.take = take_lane,
};

const struct handoff_way handoff_queue = {
	.name = "queue",
	.init = init,
	.send = send_queue,
	.take = take_queue,
};

const struct handoff_way handoff_push = {
	.name = "push",
	.init = init,
	.send = send_push,
	.take = take_queue,
};
