/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * route.c -- the table of a CQ's routes, and where closed routes lead: trees in
 * which the smaller goes below the larger, and a way that is gone is halved.
 */

#include "poller/route.h"

#include <stdlib.h>

struct block {
	struct rt_route_entry routes[RT_ROUTE_COUNT];
	struct cds_hlist_head by_lane[RT_LANE_BUCKETS];
};

int rt_route_table_new(struct rt_route_entry **table_ptr,
		       struct cds_hlist_head **by_lane_ptr)
{
	/* zeroed = free; pages of numbers never used are never touched */
	struct block *block = calloc(1, sizeof(*block));

	if (block == NULL)
		return RPMA_E_NOMEM;
	*table_ptr = block->routes;
	*by_lane_ptr = block->by_lane;
	return 0;
}

struct rt_led *rt_route_led_join(struct rt_led *one, struct rt_led *other)
{
	struct rt_led *root = one;
	struct rt_led *below = other;

	if (one == NULL || other == NULL)
		return one != NULL ? one : other;
	if (one->size < other->size) {
		root = other;
		below = one;
	}
	below->up = root;
	root->size += below->size;
	return root;
}

const struct rt_route_entry *rt_route_led_to(struct rt_led *led)
{
	while (led->up != NULL) {
		if (led->up->up != NULL)
			led->up = led->up->up;
		led = led->up;
	}
	return led->to;
}
