/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * qp_table.h -- from a queue pair's number to the route of the receives that
 * the queue pair takes from an SRQ: a table for each CQ, used by the CQ's
 * poller only. A table is never more than half full, because making a
 * connection makes room first. doc/protocols/srq.md.
 */

#ifndef RT_POLLER_QP_TABLE_H
#define RT_POLLER_QP_TABLE_H

#include <stddef.h>
#include <stdint.h>

struct rt_qp_entry {
	uint32_t qp_num;
	uint32_t route; /* 0: the entry is free */
};

struct rt_qp_table {
	uint32_t mask; /* number of entries - 1 */
	uint32_t count;
	struct rt_qp_entry entries[];
};

/* Makes a table for `count` queue pairs, with free entries. NULL: no memory. */
struct rt_qp_table *rt_qp_table_new(uint32_t count);
void rt_qp_table_delete(struct rt_qp_table *table);

/* Returns for how many queue pairs the table has room. */
static inline uint32_t rt_qp_table_room(const struct rt_qp_table *table)
{
	return table == NULL ? 0 : (table->mask + 1) / 2;
}

/* Copies the entries of `from` into `to`, which has room for the entries. */
void rt_qp_table_move(struct rt_qp_table *to, const struct rt_qp_table *from);

static inline uint32_t rt_qp_table_home(const struct rt_qp_table *table,
					uint32_t qp_num)
{
	/* queue pairs are mostly numbered in sequence */
	return (qp_num ^ qp_num >> 12) & table->mask;
}

/* Returns the route of a queue pair, 0: none. table may be NULL. */
static inline uint32_t rt_qp_table_find(const struct rt_qp_table *table,
					uint32_t qp_num)
{
	const struct rt_qp_entry *entry;
	uint32_t at;

	if (table == NULL)
		return 0;
	at = rt_qp_table_home(table, qp_num);
	for (;;) {
		entry = &table->entries[at];
		if (entry->qp_num == qp_num || entry->route == 0)
			return entry->route;
		at = (at + 1) & table->mask;
	}
}

/* Sets the route of a queue pair, which may be new in the table. */
void rt_qp_table_set(struct rt_qp_table *table, uint32_t qp_num,
		     uint32_t route);
void rt_qp_table_remove(struct rt_qp_table *table, uint32_t qp_num);

#endif /* RT_POLLER_QP_TABLE_H */
