/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * route.c -- the routes of a CQ: free numbers, the table, and where closed
 * routes lead: trees in which the smaller goes below the larger, and a way that
 * is gone is halved. Room in the lane that a route leads to.
 */

#include "poller/route.h"

#include <assert.h>
#include <stdlib.h>

#include "poller/poller.h"
#include "queue/lane.h"
#include "queue/queue.h"

/* -------------------------------------------------------------- numbers --- */

#define LEAST_RETURNED 16

void rt_numbers_init(struct rt_numbers *numbers)
{
	*numbers = (struct rt_numbers){.next = RT_ROUTE_FIRST};
}

void rt_numbers_fini(struct rt_numbers *numbers)
{
	free(numbers->returned);
	numbers->returned = NULL;
	free(numbers->back);
	numbers->back = NULL;
}

/* Those that the poller gave back and nobody has collected. */
static uint32_t count_back(const struct rt_numbers *numbers)
{
	/* acquire [ROUTE-2]: the places below it are written */
	return atomic_load_explicit(&numbers->back_tail, memory_order_acquire) -
	       numbers->back_head;
}

uint32_t rt_numbers_left(const struct rt_numbers *numbers)
{
	return numbers->returned_count + RT_ROUTE_COUNT - numbers->next +
	       count_back(numbers);
}

static void collect(struct rt_numbers *numbers)
{
	uint32_t count = count_back(numbers);

	while (count-- > 0)
		numbers->returned[numbers->returned_count++] =
			numbers->back[numbers->back_head++ % RT_ROUTE_COUNT];
}

/* Each number that is out has its place when it comes back. */
static int grow(struct rt_numbers *numbers)
{
	uint32_t max = numbers->returned_max * 2 + LEAST_RETURNED;
	uint16_t *returned;

	returned = realloc(numbers->returned, max * sizeof(*returned));
	if (returned == NULL)
		return RPMA_E_NOMEM;
	numbers->returned = returned;
	numbers->returned_max = max;
	return 0;
}

int rt_numbers_take(struct rt_numbers *numbers, uint32_t *number)
{
	if (numbers->returned_count == 0)
		collect(numbers);
	if (numbers->returned_count > 0) {
		*number = numbers->returned[--numbers->returned_count];
		return 0;
	}
	if (numbers->next == RT_ROUTE_COUNT)
		return RPMA_E_NOMEM;
	if (numbers->next - RT_ROUTE_FIRST == numbers->returned_max &&
	    grow(numbers))
		return RPMA_E_NOMEM;
	*number = numbers->next++;
	return 0;
}

void rt_numbers_return(struct rt_numbers *numbers, uint32_t number)
{
	assert(number >= RT_ROUTE_FIRST && number < numbers->next);
	numbers->returned[numbers->returned_count++] = (uint16_t)number;
}

int rt_numbers_let_poller(struct rt_numbers *numbers)
{
	if (numbers->back == NULL)
		numbers->back = calloc(RT_ROUTE_COUNT, sizeof(*numbers->back));
	return numbers->back == NULL ? RPMA_E_NOMEM : 0;
}

void rt_numbers_return_poller(struct rt_numbers *numbers, uint32_t number)
{
	/* relaxed: our own store. A place is read before its number can be
	 * handed out again and come back, and there are as many as numbers */
	uint32_t tail =
		atomic_load_explicit(&numbers->back_tail, memory_order_relaxed);

	numbers->back[tail % RT_ROUTE_COUNT] = (uint16_t)number;
	/* release [ROUTE-2]: pairs with count_back() */
	atomic_store_explicit(&numbers->back_tail, tail + 1,
			      memory_order_release);
}

/* ---------------------------------------------------------------- route --- */

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

/* -------------------------------------------------------------- reserve --- */

/*
 * Room in the lane of a poller and a queue for all items that may be delivered
 * there. Under the lock of the runtime.
 */

int rt_reserve_spill(struct rt_lane *lane, uint32_t entries,
		     struct rt_spill **spill_ptr)
{
	struct rt_spill *spill = NULL;
	uint32_t needed = lane->backlog_limit + lane->reserved + entries;
	uint32_t have = lane->announced ? lane->announced : lane->backlog_limit;

	if (needed > have) {
		have = needed > 2 * have ? needed : 2 * have;
		spill = rt_spill_new(have);
		if (spill == NULL)
			return RPMA_E_NOMEM;
		lane->announced = have;
	}
	lane->reserved += entries;
	*spill_ptr = spill;
	return 0;
}

int rt_reserve_lane(struct rt_poller *poller, struct rpma_rt_queue *queue,
		    uint32_t entries, struct rt_lane **lane_ptr,
		    struct rt_spill **spill_ptr)
{
	struct rt_lane *lane =
		rt_queue_lane(queue, poller->index, &poller->bell);
	int ret;

	if (lane == NULL)
		return RPMA_E_NOMEM;
	/* items of connections that are gone may fill the spill: no new
	 * connections while it is over its limit */
	if (rt_lane_is_backlogged(lane))
		return RPMA_RT_E_BUSY;
	/* reference before check: a consumer that already got "closed, empty"
	 * saw the close before, so we see it too */
	rt_queue_ref(queue);
	ret = RPMA_RT_E_CLOSED;
	if (rt_queue_is_closed(queue))
		goto err_put_queue;
	ret = rt_reserve_spill(lane, entries, spill_ptr);
	if (ret)
		goto err_put_queue;
	*lane_ptr = lane;
	return 0;
err_put_queue:
	rt_queue_unref(queue);
	return ret;
}
