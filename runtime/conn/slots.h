/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * slots.h -- the connections of a poller by number. A completion of the
 * runtime's own work requests (marker, keep-alive) names the connection by this
 * number. doc/protocols/wr_id.md.
 */

#ifndef RT_CONN_SLOTS_H
#define RT_CONN_SLOTS_H

#include <stdbool.h>
#include <stdint.h>

#include "poller/poller.h"

/* most connections of a poller, plus one: 0 is no slot */
#define RT_MAX_SLOTS  65536
#define RT_SLOT_WORDS (RT_MAX_SLOTS / 64)
#define RT_SLOT_PAGES 128 /* pages of the table, where pages have 4 KiB */

struct rpma_rt_conn;

struct rt_slots {
	/* used by the poller only. The table is mapped; an empty page of the
	 * table goes back to the system, but for the first page */
	struct rpma_rt_conn **conns;
	uint32_t page_slots; /* number of slots on a page */
	/* number of connections on each page */
	uint16_t in_page[RT_SLOT_PAGES];
	/* connections that wait for a number, see rt_bind_state */
	struct rpma_rt_conn *late;
	/* used by bind.c: connections whose end takes several rounds, behind
	 * the connection whose turn it is */
	struct cds_list_head ending;
	bool is_ending;
	uint64_t marks; /* marks left in lanes so far */
	/* under the runtime's lock. The lowest free number is taken, so that
	 * numbers in use stay close together, also after many connections have
	 * left */
	uint32_t first; /* no word before `first` has a free number */
	uint64_t taken[RT_SLOT_WORDS];
};

static inline struct rt_slots *rt_slots_of(const struct rt_poller *poller)
{
	return poller->reserved[RT_ROUTE_INTERNAL].arg;
}

/* Make the slots before the poller runs, and delete the slots after its end.
 * ERRORS: RPMA_E_NOMEM */
int rt_slots_new(struct rt_poller *poller);
void rt_slots_delete(struct rt_poller *poller);

/* Take and return a number. REQUIRES: the runtime's lock. ERRORS: RPMA_E_NOMEM
 * (all numbers are in use) */
int rt_slots_take(struct rt_poller *poller, uint32_t *slot);
void rt_slots_return(struct rt_poller *poller, uint32_t slot);

/* Gives the slot to the connection; NULL: empties the slot. A slot is returned
 * empty. On the poller. */
void rt_slots_set_poller(struct rt_poller *poller, uint32_t slot,
			 struct rpma_rt_conn *conn);

#endif /* RT_CONN_SLOTS_H */
