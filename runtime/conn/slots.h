/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * slots.h -- the connections of one poller by number, by which a completion of
 * the runtime's own work requests (marker, keep-alive) names its connection.
 * doc/protocols/wr_id.md.
 */

#ifndef RT_CONN_SLOTS_H
#define RT_CONN_SLOTS_H

#include <stdbool.h>
#include <stdint.h>

#include "poller/poller.h"

#define RT_MAX_SLOTS  65536 /* connections of one poller, from 1 */
#define RT_SLOT_WORDS (RT_MAX_SLOTS / 64)
#define RT_SLOT_PAGES 128 /* of the table, where pages are 4 KiB */

struct rpma_rt_conn;

struct rt_slots {
	/* the poller's. The table is mapped; a page of it on which nothing is
	 * left goes back to the system, but for the first one */
	struct rpma_rt_conn **conns;
	uint32_t page_slots;		 /* how many slots are on a page */
	uint16_t in_page[RT_SLOT_PAGES]; /* connections on each */
	struct rpma_rt_conn *late;	 /* bound late, see rt_bind_state */
	/* bind.c: connections whose end takes several rounds, behind the one
	 * whose turn it is */
	struct cds_list_head ending;
	bool is_ending;
	uint64_t marks; /* left in lanes so far */
	/* under the runtime's lock; the lowest free number is taken, so that
	 * those in use lie close together also after a crowd has left */
	uint32_t first; /* no word before it has a free number */
	uint64_t taken[RT_SLOT_WORDS];
};

static inline struct rt_slots *rt_slots_of(const struct rt_poller *poller)
{
	return poller->reserved[RT_ROUTE_INTERNAL].arg;
}

/* Before the poller runs; after it has ended. ERRORS: RPMA_E_NOMEM */
int rt_slots_new(struct rt_poller *poller);
void rt_slots_delete(struct rt_poller *poller);

/* REQUIRES: the runtime's lock. ERRORS: RPMA_E_NOMEM (all are in use) */
int rt_slots_take(struct rt_poller *poller, uint32_t *slot);
void rt_slots_return(struct rt_poller *poller, uint32_t slot);

/* The poller: gives the slot to that connection; NULL: to none. A slot is
 * returned empty. */
void rt_slots_set_poller(struct rt_poller *poller, uint32_t slot,
			 struct rpma_rt_conn *conn);

#endif /* RT_CONN_SLOTS_H */
