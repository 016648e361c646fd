/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * slots.c -- slots of connections, see slots.h. Numbers are taken and returned
 * under the runtime's lock; only the poller uses the table.
 */

#include "conn/slots.h"

#include <assert.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#define TABLE_SIZE (RT_MAX_SLOTS * sizeof(struct rpma_rt_conn *))

/* -------------------------------------------------------------- numbers --- */

int rt_slots_take(struct rt_poller *poller, uint32_t *slot)
{
	struct rt_slots *slots = rt_slots_of(poller);
	uint64_t *word;
	int bit;

	while (slots->first < RT_SLOT_WORDS &&
	       slots->taken[slots->first] == UINT64_MAX)
		slots->first++;
	if (slots->first == RT_SLOT_WORDS)
		return RPMA_E_NOMEM;
	word = &slots->taken[slots->first];
	bit = __builtin_ctzll(~*word);
	*word |= UINT64_C(1) << bit;
	*slot = slots->first * 64 + (uint32_t)bit;
	return 0;
}

void rt_slots_return(struct rt_poller *poller, uint32_t slot)
{
	struct rt_slots *slots = rt_slots_of(poller);
	uint64_t bit = UINT64_C(1) << slot % 64;

	assert(slot > 0 && slot < RT_MAX_SLOTS);
	assert(slots->taken[slot / 64] & bit);
	slots->taken[slot / 64] &= ~bit;
	if (slot / 64 < slots->first)
		slots->first = slot / 64;
}

/* ----------------------------------------------------------- the poller --- */

/* Takes a connection off a page. A page that was given back reads as NULL. */
static void slots_leave_page(struct rt_slots *slots, uint32_t page)
{
	/* page 0 stays: a program with few connections makes no system call */
	if (--slots->in_page[page] > 0 || page == 0)
		return;
	/* on failure the page only stays */
	madvise(&slots->conns[page * slots->page_slots],
		slots->page_slots * sizeof(*slots->conns), MADV_DONTNEED);
}

void rt_slots_set_poller(struct rt_poller *poller, uint32_t slot,
			 struct rpma_rt_conn *conn)
{
	struct rt_slots *slots = rt_slots_of(poller);
	uint32_t page = slot / slots->page_slots;
	bool was_empty = slots->conns[slot] == NULL;

	slots->conns[slot] = conn;
	if (was_empty && conn != NULL)
		slots->in_page[page]++;
	else if (!was_empty && conn == NULL)
		slots_leave_page(slots, page);
}

/* ------------------------------------------------------------ its life --- */

int rt_slots_new(struct rt_poller *poller)
{
	struct rt_slots *slots = calloc(1, sizeof(*slots));
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	void *table;

	if (slots == NULL)
		return RPMA_E_NOMEM;
	/* pages of numbers that were never used are not touched */
	table = mmap(NULL, TABLE_SIZE, PROT_READ | PROT_WRITE,
		     MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (table == MAP_FAILED) {
		free(slots);
		return RPMA_E_NOMEM;
	}
	slots->conns = table;
	slots->page_slots = (uint32_t)(page / sizeof(*slots->conns));
	assert(slots->page_slots * RT_SLOT_PAGES >= RT_MAX_SLOTS);
	slots->taken[0] = 1; /* 0 is no slot */
	CDS_INIT_LIST_HEAD(&slots->ending);
	poller->reserved[RT_ROUTE_INTERNAL].arg = slots;
	return 0;
}

void rt_slots_delete(struct rt_poller *poller)
{
	struct rt_slots *slots = rt_slots_of(poller);

	poller->reserved[RT_ROUTE_INTERNAL].arg = NULL;
	munmap(slots->conns, TABLE_SIZE);
	free(slots);
}
