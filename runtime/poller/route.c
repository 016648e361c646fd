/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * route.c -- the routes of a CQ: free numbers; the table; the trees that say
 * where closed routes lead. The root of the smaller tree goes below the root of
 * the larger tree, and a walk to the root halves the path. Also: room in the
 * lane to which a route leads.
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

/* Returns how many numbers the poller gave back and no thread has collected
 * yet. */
static uint32_t numbers_count_back(const struct rt_numbers *numbers)
{
	/* acquire [ROUTE-2]: pairs with the release in
	 * rt_numbers_return_poller(); the places below back_tail are written */
	return atomic_load_explicit(&numbers->back_tail, memory_order_acquire) -
	       numbers->back_head;
}

uint32_t rt_numbers_left(const struct rt_numbers *numbers)
{
	return numbers->returned_count + RT_ROUTE_COUNT - numbers->next +
	       numbers_count_back(numbers);
}

static void numbers_collect(struct rt_numbers *numbers)
{
	uint32_t count = numbers_count_back(numbers);

	while (count-- > 0)
		numbers->returned[numbers->returned_count++] =
			numbers->back[numbers->back_head++ % RT_ROUTE_COUNT];
}

/* Makes room for returned numbers: each number in use needs a place in the
 * stack. */
static int numbers_grow(struct rt_numbers *numbers)
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
		numbers_collect(numbers);
	if (numbers->returned_count > 0) {
		*number = numbers->returned[--numbers->returned_count];
		return 0;
	}
	if (numbers->next == RT_ROUTE_COUNT)
		return RPMA_E_NOMEM;
	if (numbers->next - RT_ROUTE_FIRST == numbers->returned_max &&
	    numbers_grow(numbers))
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
	/* relaxed: only the poller stores. A place is read before the place's
	 * number can be handed out again and come back, and there are as many
	 * places as numbers */
	uint32_t tail =
		atomic_load_explicit(&numbers->back_tail, memory_order_relaxed);

	numbers->back[tail % RT_ROUTE_COUNT] = (uint16_t)number;
	/* release [ROUTE-2]: pairs with the acquire in numbers_count_back() */
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
	/* zeroed entries are free; pages of numbers that were never used are
	 * not touched */
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
 * into the lane. Under the lock of the runtime.
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
	 * connections while the lane is over its limit */
	if (rt_lane_is_backlogged(lane))
		return RPMA_RT_E_BUSY;
	/* the reference comes before the check: a consumer that already got
	 * "closed, empty" saw the close before the reference, so this thread
	 * sees the close, too */
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
