/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * turn.h -- decides which thread posts next to one queue of a queue pair, and
 * in which order. Any number of threads publish work requests, one thread at a
 * time holds the right to post and posts what was published. No thread waits
 * for another thread. A work request stands in a slot, of which this file knows
 * the number; the owner of the turn keeps the contents.
 * doc/protocols/ledger.md.
 *
 *   publish (any thread)   free slots -> stack
 *   hold (one at a time)   stack -> line, in order; line -> device, slots free
 */

#ifndef RT_BASE_TURN_H
#define RT_BASE_TURN_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/lang.h"
#include "base/order.h"

/* ------------------------------------------------------------- freelist --- */

/*
 * Free slots of an array, by number: any thread takes chains of slots and gives
 * chains back, by one compare-and-swap each. A tag tells a list from an equal
 * list of before.
 */

#define RT_FREELIST_MAX 0xffff /* slots */

struct rt_freelist {
	/* tag:32 | slots in use:16 | number of the first free slot:16 */
	_Atomic uint64_t word;
	/* Slot n is the memory from (n - 1) * stride on, and begins with an
	 * _Atomic uint16_t that says which slot is behind slot n, 0 for slot
	 * n + 1: the link is the owner's while the slot is in use */
	char *memory;
	uint32_t stride;
};

/* Makes a list of so many free slots. REQUIRES: the memory is zeroed, which
 * links the slots in their order: slots that are never used stay untouched;
 * memory and stride are aligned for the owner's slots */
void rt_freelist_init(struct rt_freelist *list, void *memory, uint32_t stride,
		      uint16_t slots);
/*
 * Takes count slots, unless more than limit would be in use then: a chain from
 * the number returned on. 0: there are not so many. REQUIRES: limit is at most
 * the number of slots. Thread: any.
 */
uint16_t rt_freelist_take(struct rt_freelist *list, uint16_t count,
			  uint16_t limit);
/* Gives a chain of count slots back, from top to bottom. Thread: any. */
void rt_freelist_give(struct rt_freelist *list, uint16_t top, uint16_t bottom,
		      uint16_t count);

/* Returns how many slots are in use. */
static inline uint16_t rt_freelist_used(const struct rt_freelist *list)
{
	/* relaxed: a count that is old when it is read */
	return (uint16_t)(atomic_load_explicit(&list->word,
					       memory_order_relaxed) >>
			  16);
}

/* Returns the memory of a slot. */
static inline void *rt_freelist_slot(const struct rt_freelist *list,
				     uint16_t slot)
{
	return list->memory + (size_t)(slot - 1) * list->stride;
}

/* The slot behind one that the caller owns; 0: none. */
static inline uint16_t rt_freelist_next(const struct rt_freelist *list,
					uint16_t slot)
{
	const _Atomic uint16_t *next = rt_freelist_slot(list, slot);

	/* relaxed: the exchange that brought the chain orders it */
	return (uint16_t)(atomic_load_explicit(next, memory_order_relaxed) +
			  slot + 1);
}

static inline void rt_freelist_link(struct rt_freelist *list, uint16_t slot,
				    uint16_t next)
{
	_Atomic uint16_t *to = rt_freelist_slot(list, slot);

	/* relaxed: the exchange that shows the chain orders it */
	atomic_store_explicit(to, (uint16_t)(next - slot - 1),
			      memory_order_relaxed);
}

/* ----------------------------------------------------------------- turn --- */

/* bits of rt_turn.word; above them the generation of the routes and the number
 * of the slot on top of the stack, 0 for none */
enum {
	RT_TURN_OPEN = 1 << 0,	  /* work requests may be published */
	RT_TURN_HELD = 1 << 1,	  /* a thread holds the right to post */
	RT_TURN_WAITS = 1 << 2,	  /* the line is not empty, and nobody holds */
	RT_TURN_PAUSED = 1 << 3,  /* nobody takes the right */
	RT_TURN_DRAINED = 1 << 4, /* nothing more is published */
	RT_TURN_CLOSED = 1 << 5,  /* nor posted */
	/* those that say what may be published */
	RT_TURN_STATES = RT_TURN_OPEN | RT_TURN_DRAINED | RT_TURN_CLOSED
};
#define RT_TURN_TOP_SHIFT  8
#define RT_TURN_TOP_MASK   ((uint64_t)0xffff << RT_TURN_TOP_SHIFT)
#define RT_TURN_GENERATION ((uint64_t)1 << 24) /* one more; 40 bits */

/* The word, the free list and the line each have a cache line: posters change
 * the first two, and take no line from the holder. The owner of the turn aligns
 * the turn, and puts what else is the holder's behind the turn. */
struct rt_turn {
	/* posters, the holder, the poller, the control thread: changed by
	 * read-modify-write alone */
	_Atomic uint64_t word;
	char apart[RT_CACHE_LINE - sizeof(uint64_t)];
	struct rt_freelist free;
	char also_apart[RT_CACHE_LINE - sizeof(struct rt_freelist)];
	/* the holder's: the line, a ring of slots from head to tail, which
	 * count on */
	uint16_t *line;
	uint16_t mask;
	uint16_t head;
	uint16_t tail;
	bool is_said; /* to the poller: the line is not empty */
};

/* what the owner of a turn does for the holder */
struct rt_turn_ops {
	/* Posts the front of the line, or several of them, takes what was
	 * posted from the line by rt_turn_leave_line(), and returns how many
	 * were posted; 0: there is no room for the front. Where the device
	 * refuses, rt_turn_close(); the rest stays in line. */
	uint32_t (*post)(struct rt_turn *turn, void *arg);
	/* Returns the room that the front of the line needs. */
	uint32_t (*needs)(struct rt_turn *turn, void *arg);
	/* Returns whether there is so much room by now. The caller does not
	 * hold the right. */
	bool (*has_room)(struct rt_turn *turn, uint32_t needs, void *arg);
	/* Shows to the poller that something will stand in line, or nothing any
	 * more: a word that the poller looks at behind the fence of its batch.
	 * The caller holds the right. */
	void (*say)(struct rt_turn *turn, bool waits, void *arg);
};

/* Returns how many numbers the line of a turn with so many slots is made of: a
 * power of two. */
uint32_t rt_turn_line_size(uint16_t slots);
/* Makes a turn with so many slots, as rt_freelist_init() takes them, and with
 * that memory for the line; nothing may be published yet. */
void rt_turn_init(struct rt_turn *turn, uint16_t *line, void *memory,
		  uint32_t stride, uint16_t slots);

/* -------------------------------------------------------------- posters --- */

/* Slots are taken from turn->free and given back there. Of the chain that was
 * taken the first one is for the last work request of the call. Whoever gives
 * slots back without a publication looks at what refused posters want: no
 * completion will tell them. */

enum rt_turn_answer {
	RT_TURN_LEFT,  /* published; another thread posts it */
	RT_TURN_HOLDS, /* published, and the caller holds the right */
	RT_TURN_STALE, /* routes were led elsewhere: look at the route again */
	RT_TURN_NOT_YET, /* not open yet */
	RT_TURN_REFUSED	 /* closed or drained */
};

/* Publishes a chain of slots by one exchange; seen: the word that the caller
 * read before it looked at its route. HOLDS: rt_turn_hold() has to follow. */
enum rt_turn_answer rt_turn_publish(struct rt_turn *turn, uint64_t seen,
				    uint16_t top, uint16_t bottom);

static inline uint64_t rt_turn_look(const struct rt_turn *turn)
{
	/* acquire: pairs with the release of rt_turn_move_routes(): routes of
	 * this generation */
	return atomic_load_explicit(&turn->word, memory_order_acquire);
}

/* Returns whether the word says that the side is open, nobody holds the right,
 * nothing is published and nothing waits. */
static inline bool rt_turn_is_idle(uint64_t word)
{
	return (word & (RT_TURN_TOP_MASK | 0xff)) == RT_TURN_OPEN;
}

/*
 * Takes the right if the side is open, nobody holds the right, nothing is
 * published and nothing waits, and no route was led elsewhere since seen was
 * read: the caller may post from memory of its own. rt_turn_leave_alone() ends
 * that.
 */
static inline bool rt_turn_take_alone(struct rt_turn *turn, uint64_t seen)
{
	/* acquire [TURN-1]: the ledger, of the holder before */
	return likely(rt_turn_is_idle(seen)) &&
	       likely(atomic_compare_exchange_strong_explicit(
		       &turn->word, &seen, seen | RT_TURN_HELD,
		       memory_order_acquire, memory_order_relaxed));
}

/* ----------------------------------------------------------- the holder --- */

/*
 * Posts what was published, in order, and gives the right back. budget: so many
 * work requests at most, or few more. Returns true if the poller has to look at
 * the turn: something is left, or the side is drained.
 */
bool rt_turn_hold(struct rt_turn *turn, const struct rt_turn_ops *ops,
		  void *arg, uint32_t budget);
/* The end of rt_turn_take_alone(): gives the right back if nothing happened
 * meanwhile. False: rt_turn_hold() has to follow. */
static inline bool rt_turn_leave_alone(struct rt_turn *turn, uint64_t seen)
{
	uint64_t mine = seen | RT_TURN_HELD;

	/* release [TURN-1]: the ledger, to the next holder */
	return likely(atomic_compare_exchange_strong_explicit(
		&turn->word, &mine, seen, memory_order_release,
		memory_order_relaxed));
}

/* The end of rt_turn_try_take() of a thread that posts nothing: as
 * rt_turn_hold(), but what was published meanwhile is left to the poller. */
bool rt_turn_let_go(struct rt_turn *turn);
/* Holder: how many stand in line. */
static inline uint16_t rt_turn_length(const struct rt_turn *turn)
{
	return (uint16_t)(turn->tail - turn->head);
}

/* Holder: the slot at that place of the line; the front is 0. */
static inline uint16_t rt_turn_at(const struct rt_turn *turn, uint32_t place)
{
	return turn->line[(turn->head + place) & turn->mask];
}

/* Holder: the slot at the front of the line; 0: the line is empty. */
static inline uint16_t rt_turn_front(const struct rt_turn *turn)
{
	return rt_turn_length(turn) > 0 ? rt_turn_at(turn, 0) : 0;
}

/* Holder: takes count out of the line, from that place on; their slots are
 * free. */
void rt_turn_cut_line(struct rt_turn *turn, uint32_t place, uint16_t count);
/* Holder: takes so many from the front of the line; their slots are free. */
void rt_turn_leave_line(struct rt_turn *turn, uint16_t count);

/* ----------------------------------------------------------- the poller --- */

/* After it has published what retired, and a full fence [TURN-2]: takes the
 * right if something was published or waits that nobody posts. */
bool rt_turn_take_waiting(struct rt_turn *turn);
/* Any thread: takes the right, unless another thread has the right or nobody
 * may take the right. rt_turn_hold(), or rt_turn_let_go(), has to follow. */
bool rt_turn_try_take(struct rt_turn *turn);
/* Drained: is nothing published, in line or being posted any more? */
bool rt_turn_is_through(const struct rt_turn *turn);

/* --------------------------------------------------- the control thread --- */

void rt_turn_open(struct rt_turn *turn);
/* From here on no thread takes the right, and the holder gives the right back
 * soon: rt_turn_await(). */
bool rt_turn_pause(struct rt_turn *turn); /* false: another thread did */
void rt_turn_drain(struct rt_turn *turn);
/* Also the poller, and the holder. */
void rt_turn_close(struct rt_turn *turn);
/* Waits until none of these bits of the word is set: looks, then yields, then
 * sleeps, since a thread that does not run will not for a while. No bound: a
 * thread that is stopped inside a verb may be for long. */
void rt_turn_await(const struct rt_turn *turn, uint64_t bits);
/* The thread that has paused the turn: routes that were looked at before are
 * looked at again, or what names such a route is published already. */
void rt_turn_move_routes(struct rt_turn *turn);
/* Ends a pause, when nobody is inside. Returns true if the poller has to look
 * at the turn. */
bool rt_turn_resume(struct rt_turn *turn);

/* The poller, of a turn that was left for good, or the thread that has paused
 * the turn: everything that was published is in line. */
void rt_turn_gather(struct rt_turn *turn);

#endif /* RT_BASE_TURN_H */
