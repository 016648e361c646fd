/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * qp_table.c -- a table of queue pairs with open addressing, linear probing and
 * no tombstones: removing an entry moves later entries up. Runs on the poller,
 * but for new and delete.
 */

#include "poller/qp_table.h"

#include <assert.h>
#include <stdlib.h>

#define LEAST 16 /* least number of entries */

struct rt_qp_table *rt_qp_table_new(uint32_t count)
{
	struct rt_qp_table *table;
	uint32_t entries = LEAST;

	while (entries < 2 * count)
		entries *= 2;
	table = calloc(1, sizeof(*table) + entries * sizeof(table->entries[0]));
	if (table != NULL)
		table->mask = entries - 1;
	return table;
}

void rt_qp_table_delete(struct rt_qp_table *table)
{
	free(table);
}

void rt_qp_table_set(struct rt_qp_table *table, uint32_t qp_num, uint32_t route)
{
	uint32_t at = rt_qp_table_home(table, qp_num);

	assert(route != 0);
	while (table->entries[at].route != 0 &&
	       table->entries[at].qp_num != qp_num)
		at = (at + 1) & table->mask;
	if (table->entries[at].route == 0)
		table->count++;
	assert(table->count <= rt_qp_table_room(table));
	table->entries[at] = (struct rt_qp_entry){qp_num, route};
}

void rt_qp_table_move(struct rt_qp_table *to, const struct rt_qp_table *from)
{
	uint32_t i;

	if (from == NULL)
		return;
	for (i = 0; i <= from->mask; i++) {
		if (from->entries[i].route != 0)
			rt_qp_table_set(to, from->entries[i].qp_num,
					from->entries[i].route);
	}
}

void rt_qp_table_remove(struct rt_qp_table *table, uint32_t qp_num)
{
	uint32_t hole = rt_qp_table_home(table, qp_num);
	uint32_t at;
	uint32_t home;

	while (table->entries[hole].qp_num != qp_num) {
		assert(table->entries[hole].route != 0);
		hole = (hole + 1) & table->mask;
	}
	table->count--;
	for (at = (hole + 1) & table->mask; table->entries[at].route != 0;
	     at = (at + 1) & table->mask) {
		/* the entry may fill the hole if the entry's home is not behind
		 * the hole */
		home = rt_qp_table_home(table, table->entries[at].qp_num);
		if (((at - home) & table->mask) < ((at - hole) & table->mask))
			continue;
		table->entries[hole] = table->entries[at];
		hole = at;
	}
	table->entries[hole] = (struct rt_qp_entry){0};
}
