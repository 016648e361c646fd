/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * ledger.h -- the ledger: work requests that were posted to a queue of a queue
 * pair and are not known to be finished, in posting order. A plain ring: conn.h
 * and doc/protocols/ledger.md say which thread may use the ledger when.
 */

#ifndef RT_CONN_LEDGER_H
#define RT_CONN_LEDGER_H

#include <assert.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

struct rt_ledger_entry {
	uint64_t wr_id;
	uint8_t opcode;	   /* enum ibv_wc_opcode of the completion */
	bool signaled : 1; /* a success gives a completion */
	/* the single completion was delivered, or inferred */
	bool finished : 1;
	unsigned link : 6; /* bits of enum rt_ledger_link */
	/* in the oldest entry of a group: how many entries retire with the
	 * signaled entry that ends the group; stored before the device has the
	 * signaled entry */
	uint16_t retires;
	uint32_t tick; /* when the entry was appended; in the caller's unit */
};
static_assert(sizeof(struct rt_ledger_entry) == 16, "four a cache line");
static_assert(offsetof(struct rt_ledger_entry, opcode) == 8 &&
		      offsetof(struct rt_ledger_entry, retires) == 10 &&
		      offsetof(struct rt_ledger_entry, tick) == 12,
	      "as rt_ledger_write() writes an entry");

enum rt_ledger_link {
	RT_LINK_GOES_ON = 1 << 0, /* the next entry belongs to the same link */
	/* no completion of its own: the link's last entry has the completion */
	RT_LINK_PART = 1 << 1,
	/* in the last entry: a part failed, and the last entry completed */
	RT_LINK_FAILED = 1 << 2,
	/* the device refused the work request, in a link or alone */
	RT_LINK_REFUSED = 1 << 3,
	/* in a refused last entry: the device has a part of the link */
	RT_LINK_CUT = 1 << 4
};

struct rt_ledger {
	struct rt_ledger_entry *entries; /* a power of two */
	uint32_t mask;
	uint32_t depth; /* most work requests */
	/* the oldest entry that was not reaped: number of retired entries */
	uint32_t head;
	uint32_t tail; /* the next free entry */
	/* value of `tail` for other threads, which count places in line */
	_Atomic uint32_t posted;
	/* number of further entries in a row that may be unsignaled: a full
	 * ledger always has a signaled entry, and the size of a group fits
	 * rt_ledger_entry.retires */
	uint16_t may_be_silent;
	bool in_group; /* the newest entry is unsignaled */
	/* finishing entries met an error */
	bool error_seen : 1;
	/* the side has the mark UNSIGNALED: noted here too, because the poller
	 * has the cache line of the side's marks */
	bool is_marked : 1;
};

/* Returns the bytes of a ledger's entries. depth may be 0. */
size_t rt_ledger_bytes(uint32_t depth);
/* Makes an empty ledger. memory: rt_ledger_bytes() bytes, which the caller
 * frees. */
void rt_ledger_init(struct rt_ledger *ledger, uint32_t depth, void *memory);

/* Frees retired entries. retired: number of entries that have ever retired. */
static inline void rt_ledger_reap(struct rt_ledger *ledger, uint32_t retired)
{
	assert(retired - ledger->head <= ledger->tail - ledger->head);
	ledger->head = retired;
}

/* Returns how many entries the next success retires when `retired` entries have
 * retired. On the side's poller, while posters append: the device had the
 * group's signaled entry after the group was complete. */
static inline uint32_t rt_ledger_group(const struct rt_ledger *ledger,
				       uint32_t retired)
{
	return ledger->entries[retired & ledger->mask].retires;
}

static inline uint32_t rt_ledger_room(const struct rt_ledger *ledger)
{
	return ledger->depth - (ledger->tail - ledger->head);
}

/* Ends the group of unsignaled entries with the newest entry, which is
 * signaled. */
void rt_ledger_end_group(struct rt_ledger *ledger);

/*
 * A pen appends entries in a row: the words of the ledger that an append reads
 * and changes stay in registers from rt_ledger_begin() to rt_ledger_end().
 * Between the two calls nothing else touches the ledger.
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

/* Writes a new entry, as two words. */
static inline void rt_ledger_write(struct rt_ledger_entry *entry,
				   uint64_t wr_id, uint8_t opcode,
				   bool signaled, uint32_t tick)
{
#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
	const uint64_t words[2] = {wr_id, opcode | (uint64_t)signaled << 8 |
						  UINT64_C(1) << 16 |
						  (uint64_t)tick << 32};

	memcpy(entry, words, sizeof(words));
#else
	*entry = (struct rt_ledger_entry){.wr_id = wr_id,
					  .opcode = opcode,
					  .signaled = signaled,
					  .retires = 1,
					  .tick = tick};
#endif
}

/* Appends an entry. REQUIRES: room */
static inline void rt_ledger_append(struct rt_ledger_pen *pen, uint64_t wr_id,
				    uint8_t opcode, bool signaled,
				    uint32_t tick)
{
	assert(pen->tail - pen->ledger->head < pen->ledger->depth);
	rt_ledger_write(&pen->entries[pen->tail++ & pen->mask], wr_id, opcode,
			signaled, tick);
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

/* Appends unsignaled entries with the same wr_id, at most count, as long as the
 * next entry may be unsignaled. Returns their number. REQUIRES: room */
static inline int rt_ledger_append_silent(struct rt_ledger_pen *pen,
					  uint64_t wr_id, uint8_t opcode,
					  int count, uint32_t tick)
{
	const uint32_t n = (uint32_t)count < pen->may_be_silent
				   ? (uint32_t)count
				   : pen->may_be_silent;
	const uint32_t end = pen->tail + n;
	uint32_t tail = pen->tail;

	assert(end - pen->ledger->head <= pen->ledger->depth);
	if (n == 0)
		return 0;
	do {
		rt_ledger_write(&pen->entries[tail++ & pen->mask], wr_id,
				opcode, false, tick);
	} while (tail != end);
	pen->tail = end;
	pen->may_be_silent -= n;
	pen->in_group = true;
	return (int)n;
}

/* Appends an unsignaled entry, without a pen. Returns false, and appends
 * nothing, if the next work request has to be signaled. REQUIRES: room */
static inline bool rt_ledger_append_unsignaled(struct rt_ledger *ledger,
					       uint64_t wr_id, uint8_t opcode,
					       uint32_t tick)
{
	assert(ledger->tail - ledger->head < ledger->depth);
	if (__builtin_expect(ledger->may_be_silent == 0, 0))
		return false;
	rt_ledger_write(&ledger->entries[ledger->tail++ & ledger->mask], wr_id,
			opcode, false, tick);
	ledger->may_be_silent--;
	ledger->in_group = true;
	return true;
}

/* Appends a signaled entry, without a pen. REQUIRES: room, and the newest entry
 * is signaled */
static inline void rt_ledger_append_alone(struct rt_ledger *ledger,
					  uint64_t wr_id, uint8_t opcode,
					  uint32_t tick)
{
	assert(ledger->tail - ledger->head < ledger->depth);
	assert(!ledger->in_group);
	rt_ledger_write(&ledger->entries[ledger->tail++ & ledger->mask], wr_id,
			opcode, true, tick);
}

/* Appends a signaled entry by a pen that appends no other entries. REQUIRES:
 * room, and the newest entry is signaled. rt_ledger_end_signaled() ends the
 * row. */
static inline void rt_ledger_append_signaled(struct rt_ledger_pen *pen,
					     uint64_t wr_id, uint8_t opcode,
					     uint32_t tick)
{
	assert(!pen->in_group);
	pen->in_group = false; /* known to the compiler */
	rt_ledger_append(pen, wr_id, opcode, true, tick);
}
static inline void rt_ledger_end_signaled(const struct rt_ledger_pen *pen)
{
	pen->ledger->tail = pen->tail;
}

/* Marks the newest entry as a part of a link; link: bits of enum
 * rt_ledger_link. */
void rt_ledger_link(struct rt_ledger *ledger, uint8_t link);
/* Returns the longest possible link. The room for such a link comes back before
 * the link is posted: the entries ahead that give no completion are less than
 * half of the ledger. */
static inline uint32_t rt_ledger_longest_link(const struct rt_ledger *ledger)
{
	return ledger->depth / 2 + 1;
}

/* Marks the newest `count` entries: the device refused the work requests.
 * REQUIRES: nothing is appended any more */
void rt_ledger_refuse(struct rt_ledger *ledger, uint32_t count);
/* Returns whether the work request of an entry of rt_ledger_take_unfinished()
 * has no effect: the device has neither the work request nor a part of its
 * link. */
static inline bool rt_ledger_is_not_posted(const struct rt_ledger_entry *entry)
{
	return (entry->link & (RT_LINK_REFUSED | RT_LINK_CUT)) ==
	       RT_LINK_REFUSED;
}

/*
 * Finishes the oldest unfinished entry with that wr_id that was not refused;
 * for a success the oldest such signaled entry, because unsignaled entries give
 * no completion. Unsignaled entries before have succeeded, if no error was seen
 * before. Returns the entry; NULL: there is no such entry.
 */
const struct rt_ledger_entry *rt_ledger_finish(struct rt_ledger *ledger,
					       uint64_t wr_id, bool success);
/*
 * Returns the entry whose completion is due after rt_ledger_finish() has
 * finished an entry: the finished entry; for a failed part of a link the link's
 * last entry, the first time, unless the last entry was refused. NULL: no
 * completion is due.
 */
const struct rt_ledger_entry *
rt_ledger_due(struct rt_ledger *ledger, const struct rt_ledger_entry *finished,
	      bool success);
/* Finishes everything before a marker: an entry that wanted a completion on
 * error only and had no completion has succeeded (entries with equal wr_id are
 * interchangeable). */
void rt_ledger_finish_marker(struct rt_ledger *ledger);
/* Returns how many entries are not finished; walks over all entries. */
uint32_t rt_ledger_unfinished(const struct rt_ledger *ledger);
/*
 * Returns whether a work request of the route is outstanding. *retired: when so
 * many entries have retired, no work request of the route is outstanding any
 * more. For a ledger that is not handed over; walks over all entries.
 */
bool rt_ledger_find_last(const struct rt_ledger *ledger, uint32_t route,
			 uint32_t *retired);
/* Finishes and returns the oldest unfinished entry whose completion is due;
 * NULL: all entries are finished. */
const struct rt_ledger_entry *rt_ledger_take_unfinished(struct rt_ledger *l);

#endif /* RT_CONN_LEDGER_H */
