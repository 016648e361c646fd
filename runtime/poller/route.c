/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * route.c -- the table of a CQ's routes.
 */

#include "poller/route.h"

#include <stdlib.h>

int rt_route_table_new(struct rt_route_entry **table_ptr)
{
	struct rt_route_entry *table;

	/* zeroed = free; pages of numbers never used are never touched */
	table = calloc(RT_ROUTE_COUNT, sizeof(*table));
	if (table == NULL)
		return RPMA_E_NOMEM;
	*table_ptr = table;
	return 0;
}
