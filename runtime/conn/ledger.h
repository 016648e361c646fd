/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * ledger.h -- the work requests posted to one queue of a queue pair and not
 * known to be finished, in posting order. A plain ring: conn.h and
 * doc/protocols/ledger.md say which thread may touch it when.
 */

#ifndef RT_CONN_LEDGER_H
#define RT_CONN_LEDGER_H

#include <assert.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct rt_ledger_entry {
	uint64_t wr_id;
	uint8_t opcode;	   /* enum ibv_wc_opcode of its completion */
	bool signaled : 1; /* success gives a completion */
	bool finished : 1; /* its one completion is out, or inferred */
	unsigned link : 6; /* bits of enum rt_ledger_link */
	/* of the oldest entry of a group: how many entries retire with the
	 * signaled entry that ends the group; stored before the device has
	 * that entry */
	uint16_t retires;
	uint32_t tick; /* when; the caller's unit */
};
static_assert(sizeof(struct rt_ledger_entry) == 16, "four a cache line");

enum rt_ledger_link {
	RT_LINK_GOES_ON = 1 << 0, /* the next entry is of the same link */
	RT_LINK_PART = 1 << 1,	  /* no completion: the link's last has it */
	RT_LINK_FAILED = 1 << 2,  /* last: a part failed, and it completed */
	/* of a link or alone: the device refused the work request */
	RT_LINK_REFUSED = 1 << 3,
	RT_LINK_CUT = 1 << 4 /* refused last: the device has a part */
};

struct rt_ledger {
	struct rt_ledger_entry *entries; /* a power of two of them */
	uint32_t mask;
	uint32_t depth; /* work requests at most */
	uint32_t head;	/* oldest not reaped: how many have retired */
	uint32_t tail;	/* next free */
	/* the tail as other threads see it, who count places in line by it */
	_Atomic uint32_t posted;
	/* so many more entries in a row may be unsignaled: a full ledger always
	 * holds a signaled entry, and a group fits rt_ledger_entry.retires */
	uint16_t may_be_silent;
	bool in_group;	 /* the newest entry is unsignaled */
	bool error_seen; /* finishing met an error */
};

/* Returns the bytes of the entries of a ledger. depth may be 0. */
size_t rt_ledger_bytes(uint32_t depth);
/* Makes an empty ledger. memory: so many bytes, for the entries; the caller
 * frees them. */
void rt_ledger_init(struct rt_ledger *ledger, uint32_t depth, void *memory);

/* Frees the entries that have retired, so many in all. */
static inline void rt_ledger_reap(struct rt_ledger *ledger, uint32_t retired)
{
	assert(retired - ledger->head <= ledger->tail - ledger->head);
	ledger->head = retired;
}

/* Returns how many entries the next success retires when so many have retired.
 * The poller of the side, while posters append: the device had the group's
 * signaled entry after the group was complete. */
static inline uint32_t rt_ledger_group(const struct rt_ledger *ledger,
				       uint32_t retired)
{
	return ledger->entries[retired & ledger->mask].retires;
}

static inline uint32_t rt_ledger_room(const struct rt_ledger *ledger)
{
	return ledger->depth - (ledger->tail - ledger->head);
}

/* Ends the group of unsignaled entries with a signaled one, the newest. */
__attribute__((cold)) void rt_ledger_end_group(struct rt_ledger *ledger);

/*
 * Appends entries of a row: the words of the ledger that an append reads and
 * changes, which stay in registers from rt_ledger_begin() to rt_ledger_end().
 * Between the two calls the ledger is not touched by anything else.
 */
struct rt_ledger_pen {
	struct rt_ledger *ledger;
	struct rt_ledger_entry *entries;
	uint32_t mask;
	uint32_t tail;
	uint32_t may_be_silent;
	bool in_group;
	bool has_group; /* a group was ended */
};

static inline struct rt_ledger_pen rt_ledger_begin(struct rt_ledger *ledger)
{
	return (struct rt_ledger_pen){.ledger = ledger,
				      .entries = ledger->entries,
				      .mask = ledger->mask,
				      .tail = ledger->tail,
				      .may_be_silent = ledger->may_be_silent,
				      .in_group = ledger->in_group};
}

static inline void rt_ledger_end(const struct rt_ledger_pen *pen)
{
	pen->ledger->tail = pen->tail;
	pen->ledger->may_be_silent = (uint16_t)pen->may_be_silent;
	pen->ledger->in_group = pen->in_group;
}

/* Returns whether the next work request has to be signaled although the caller
 * wants no completion. */
static inline bool rt_ledger_must_signal(const struct rt_ledger_pen *pen)
{
	return pen->may_be_silent == 0;
}

/* REQUIRES: room */
static inline void rt_ledger_append(struct rt_ledger_pen *pen, uint64_t wr_id,
				    uint8_t opcode, bool signaled,
				    uint32_t tick)
{
	assert(pen->tail - pen->ledger->head < pen->ledger->depth);
	pen->entries[pen->tail++ & pen->mask] =
		(struct rt_ledger_entry){.wr_id = wr_id,
					 .opcode = opcode,
					 .signaled = signaled,
					 .retires = 1,
					 .tick = tick};
	if (!signaled) {
		pen->may_be_silent--;
		pen->in_group = true;
	} else if (__builtin_expect(pen->in_group, 0)) {
		rt_ledger_end(pen);
		rt_ledger_end_group(pen->ledger);
		pen->may_be_silent = pen->ledger->may_be_silent;
		pen->in_group = false;
		pen->has_group = true;
	}
}
/* The newest one is of a link; bits of enum rt_ledger_link. */
void rt_ledger_link(struct rt_ledger *ledger, uint8_t link);
/* The most that a link may be, so that its room comes without it: what can be
 * ahead of it and gives no completion is less than half of the ledger. */
static inline uint32_t rt_ledger_longest_link(const struct rt_ledger *ledger)
{
	return ledger->depth / 2 + 1;
}

/* Marks the newest count entries: the device refused them. REQUIRES: nothing is
 * appended any more */
void rt_ledger_refuse(struct rt_ledger *ledger, uint32_t count);
/* Returns whether the work request of an entry that rt_ledger_take_unfinished()
 * returned has no effect: the device has neither the work request nor a part of
 * its link. */
static inline bool rt_ledger_is_not_posted(const struct rt_ledger_entry *entry)
{
	return (entry->link & (RT_LINK_REFUSED | RT_LINK_CUT)) ==
	       RT_LINK_REFUSED;
}

/*
 * The oldest unfinished entry with that wr_id that was not refused is finished,
 * for a success the oldest signaled one, since others give no completion;
 * unsignaled ones before it succeeded, if no error was seen before. NULL: there
 * is none.
 */
const struct rt_ledger_entry *rt_ledger_finish(struct rt_ledger *ledger,
					       uint64_t wr_id, bool success);
/*
 * Whose completion is due now that this one of rt_ledger_finish() is finished:
 * its own; if it is a part that failed, that of the last of its link, the first
 * time, unless the last was refused. NULL: none.
 */
const struct rt_ledger_entry *
rt_ledger_due(struct rt_ledger *ledger, const struct rt_ledger_entry *finished,
	      bool success);
/* Everything before a marker is out: what wanted a completion on error only
 * and had none has succeeded (entries with equal wr_id are interchangeable). */
void rt_ledger_finish_marker(struct rt_ledger *ledger);
/* How many are not finished; walks over them. */
uint32_t rt_ledger_unfinished(const struct rt_ledger *ledger);
/*
 * Is a work request of that route outstanding? Then none is any more when so
 * many entries have retired in all. Of a ledger that is not handed over; walks
 * over what is under way.
 */
bool rt_ledger_find_last(const struct rt_ledger *ledger, uint32_t route,
			 uint32_t *retired);
/* The oldest unfinished entry whose completion is due, now finished; NULL: none
 * is left. */
const struct rt_ledger_entry *rt_ledger_take_unfinished(struct rt_ledger *l);

#endif /* RT_CONN_LEDGER_H */
