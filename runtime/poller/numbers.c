/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/* numbers.c -- the numbers of a CQ's routes; see numbers.h. */

#include "poller/numbers.h"

#include <assert.h>
#include <stdlib.h>

#include "poller/route.h"

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
