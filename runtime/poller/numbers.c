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
}

uint32_t rt_numbers_left(const struct rt_numbers *numbers)
{
	return numbers->returned_count + RT_ROUTE_COUNT - numbers->next;
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
