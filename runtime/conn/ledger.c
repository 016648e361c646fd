/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * ledger.c -- the ring of outstanding work requests of a queue.
 */

#include "conn/ledger.h"

#include <assert.h>
#include <string.h>

#include "poller/route.h"

/*
 * Returns how many entries in a row may be unsignaled. A full group has a power
 * of two entries, at most half of the ledger: programs keep a power of two of
 * messages outstanding, so a group ends where a chain ends, and its completion
 * does not tear the completions of the next chain apart (doc/PERFORMANCE.md).
 */
static uint16_t ledger_period(const struct rt_ledger *ledger)
{
	uint32_t half = ledger->depth > 0 ? (ledger->depth - 1) / 2 : 0;
	uint32_t group = 1;

	while (2 * group <= half + 1 && group <= UINT16_MAX / 2)
		group *= 2;
	return (uint16_t)(group - 1);
}

static uint32_t ledger_entries_of(uint32_t depth)
{
	uint32_t count = 1;

	while (count < depth)
		count *= 2;
	return count;
}

size_t rt_ledger_bytes(uint32_t depth)
{
	return ledger_entries_of(depth) * sizeof(struct rt_ledger_entry);
}

void rt_ledger_init(struct rt_ledger *ledger, uint32_t depth, void *memory)
{
	*ledger = (struct rt_ledger){.mask = ledger_entries_of(depth) - 1,
				     .depth = depth,
				     .entries = memory};
	ledger->may_be_silent = ledger_period(ledger);
	/* ledger_is_cut() looks at the entry before the first */
	memset(memory, 0, rt_ledger_bytes(depth));
}

static struct rt_ledger_entry *ledger_at(struct rt_ledger *ledger, uint32_t i)
{
	return &ledger->entries[i & ledger->mask];
}

void rt_ledger_end_group(struct rt_ledger *ledger)
{
	uint16_t unsignaled =
		(uint16_t)(ledger_period(ledger) - ledger->may_be_silent);

	ledger_at(ledger, ledger->tail - 1 - unsignaled)->retires =
		(uint16_t)(unsignaled + 1);
	ledger->may_be_silent = ledger_period(ledger);
	ledger->in_group = false;
}

void rt_ledger_link(struct rt_ledger *ledger, uint8_t link)
{
	assert(ledger->head != ledger->tail);
	ledger_at(ledger, ledger->tail - 1)->link = link;
}

/* Returns whether the device has a part of the link that continues with entry
 * i. */
static bool ledger_is_cut(struct rt_ledger *ledger, uint32_t i)
{
	for (; ledger_at(ledger, i - 1)->link & RT_LINK_GOES_ON; i--) {
		if (ledger_at(ledger, i - 1)->link & RT_LINK_PART)
			return true;
	}
	return false;
}

void rt_ledger_refuse(struct rt_ledger *ledger, uint32_t count)
{
	uint32_t first = ledger->tail - count;
	uint32_t last = first;
	uint32_t i;

	/* nothing follows a link whose last entry was not appended */
	ledger_at(ledger, ledger->tail - 1)->link &= (uint8_t)~RT_LINK_GOES_ON;
	while (ledger_at(ledger, last)->link & RT_LINK_GOES_ON)
		last++;
	if (ledger_is_cut(ledger, first))
		ledger_at(ledger, last)->link |= RT_LINK_CUT;
	for (i = first; i != ledger->tail; i++)
		ledger_at(ledger, i)->link |= RT_LINK_REFUSED;
}

/* Infers the success of the unsignaled entries before `end`. */
static void ledger_infer(struct rt_ledger *ledger, uint32_t end)
{
	uint32_t i;

	for (i = ledger->head; i != end; i++) {
		if (!ledger_at(ledger, i)->signaled)
			ledger_at(ledger, i)->finished = true;
	}
}

/* Moves head over finished entries, so that a search starts at the oldest
 * unfinished entry. */
static void ledger_trim(struct rt_ledger *ledger)
{
	while (ledger->head != ledger->tail &&
	       ledger_at(ledger, ledger->head)->finished)
		ledger->head++;
}

const struct rt_ledger_entry *rt_ledger_finish(struct rt_ledger *ledger,
					       uint64_t wr_id, bool success)
{
	struct rt_ledger_entry *entry = NULL;
	uint32_t i;

	for (i = ledger->head; i != ledger->tail; i++) {
		entry = ledger_at(ledger, i);
		if (entry->wr_id == wr_id && !entry->finished &&
		    !(entry->link & RT_LINK_REFUSED) &&
		    (entry->signaled || !success))
			break;
	}
	if (i == ledger->tail)
		return NULL;
	if (!ledger->error_seen)
		ledger_infer(ledger, i);
	if (!success)
		ledger->error_seen = true;
	entry->finished = true;
	ledger_trim(ledger);
	return entry;
}

const struct rt_ledger_entry *
rt_ledger_due(struct rt_ledger *ledger, const struct rt_ledger_entry *finished,
	      bool success)
{
	uint32_t i = (uint32_t)(finished - ledger->entries);

	if (success)
		return finished->wr_id & RT_ON_ERROR_ONLY ? NULL : finished;
	if (finished->link & RT_LINK_FAILED)
		return NULL;
	if (!(finished->link & RT_LINK_PART))
		return finished;
	while (ledger_at(ledger, i)->link & RT_LINK_GOES_ON)
		i++;
	if (ledger_at(ledger, i)->link &
	    (RT_LINK_PART | RT_LINK_FAILED | RT_LINK_REFUSED))
		/* the last entry was cut off, or its completion was
		 * delivered */
		return NULL;
	ledger_at(ledger, i)->link |= RT_LINK_FAILED;
	return ledger_at(ledger, i);
}

void rt_ledger_finish_marker(struct rt_ledger *ledger)
{
	uint32_t i;

	for (i = ledger->head; i != ledger->tail; i++) {
		if ((ledger_at(ledger, i)->wr_id & RT_ON_ERROR_ONLY) &&
		    !(ledger_at(ledger, i)->link & RT_LINK_REFUSED))
			ledger_at(ledger, i)->finished = true;
	}
	ledger_trim(ledger);
}

const struct rt_ledger_entry *rt_ledger_take_unfinished(struct rt_ledger *l)
{
	struct rt_ledger_entry *entry;

	for (ledger_trim(l); l->head != l->tail; ledger_trim(l)) {
		entry = ledger_at(l, l->head);
		entry->finished = true;
		/* the last entry of a link has the outcome of the parts, too */
		if (!(entry->link & (RT_LINK_PART | RT_LINK_FAILED)))
			return entry;
	}
	return NULL;
}

uint32_t rt_ledger_unfinished(const struct rt_ledger *ledger)
{
	uint32_t count = 0;
	uint32_t i;

	for (i = ledger->head; i != ledger->tail; i++)
		count += !ledger->entries[i & ledger->mask].finished;
	return count;
}

bool rt_ledger_find_last(const struct rt_ledger *ledger, uint32_t route,
			 uint32_t *retired)
{
	const struct rt_ledger_entry *entry;
	bool is_found = false;
	uint32_t i;

	for (i = ledger->head; i != ledger->tail; i++) {
		entry = &ledger->entries[i & ledger->mask];
		if (rt_wr_id_route(entry->wr_id) != route)
			continue;
		is_found = true;
		*retired = i + 1;
	}
	return is_found;
}
