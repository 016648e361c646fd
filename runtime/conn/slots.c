/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * slots.c -- see slots.h. Numbers are taken and returned under the runtime's
 * lock, the table they index is the poller's.
 */

#include "conn/slots.h"

#include <assert.h>
#include <stdlib.h>

/* -------------------------------------------------------------- numbers --- */

int rt_slots_take(struct rt_poller *poller, uint32_t *slot)
{
	struct rt_slots *slots = rt_slots_of(poller);

	if (slots->returned_count > 0) {
		*slot = slots->returned[--slots->returned_count];
		return 0;
	}
	if (slots->next == RT_MAX_SLOTS)
		return RPMA_E_NOMEM;
	*slot = slots->next++;
	return 0;
}

void rt_slots_return(struct rt_poller *poller, uint32_t slot)
{
	struct rt_slots *slots = rt_slots_of(poller);

	assert(slot > 0 && slot < slots->next);
	slots->returned[slots->returned_count++] = slot;
}

/* ----------------------------------------------------------- the poller --- */

void rt_slots_set_poller(struct rt_poller *poller, uint32_t slot,
			 struct rpma_rt_conn *conn)
{
	struct rt_slots *slots = rt_slots_of(poller);

	slots->conns[slot] = conn;
}

/* ------------------------------------------------------------ its life --- */

int rt_slots_new(struct rt_poller *poller)
{
	struct rt_slots *slots = calloc(1, sizeof(*slots));

	if (slots == NULL)
		return RPMA_E_NOMEM;
	slots->next = 1;
	CDS_INIT_LIST_HEAD(&slots->ending);
	/* pages of numbers never used are never touched */
	slots->conns = calloc(RT_MAX_SLOTS, sizeof(struct rpma_rt_conn *));
	slots->returned = calloc(RT_MAX_SLOTS, sizeof(*slots->returned));
	poller->reserved[RT_ROUTE_INTERNAL].arg = slots;
	if (slots->conns != NULL && slots->returned != NULL)
		return 0;
	rt_slots_delete(poller);
	return RPMA_E_NOMEM;
}

void rt_slots_delete(struct rt_poller *poller)
{
	struct rt_slots *slots = rt_slots_of(poller);

	poller->reserved[RT_ROUTE_INTERNAL].arg = NULL;
	free(slots->conns);
	free(slots->returned);
	free(slots);
}
