/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * turn.h -- decides which thread posts next to a queue of a queue pair, and in
 * which order. Any number of threads publish work requests; a single thread at
 * a time holds the right to post, and posts what was published. No thread waits
 * for another thread. A work request stands in a slot; this file knows only the
 * slot's number, and the owner of the turn keeps the contents.
 * doc/protocols/ledger.md.
 *
 *   publish (any thread)   free slots -> stack
 *   hold (one at a time)   stack -> line, in order; line -> device, slots free
 */

#ifndef RT_BASE_TURN_H
#define RT_BASE_TURN_H

#include <assert.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/lang.h"
#include "base/order.h"
#include "base/self.h"

/* ------------------------------------------------------------- freelist --- */

/*
 * Free slots of an array, by number: any thread takes chains of slots and gives
 * chains back, by a compare-and-swap each. A tag tells a list from an equal
 * earlier list.
 */

#define RT_FREELIST_MAX 0xffff /* slots */

struct rt_freelist {
	/* tag:32 | slots in use:16 | number of the first free slot:16 */
	_Atomic uint64_t word;
	/* Slot n is the memory from (n - 1) * stride on. A slot begins with an
	 * _Atomic uint16_t, the link to the next slot, where 0 means slot n +
	 * 1. The link belongs to the owner while the slot is in use */
	char *memory;
	uint32_t stride;
};

/* Makes a list of `slots` free slots. REQUIRES: the memory is zeroed, which
 * links the slots in order (unused slots stay untouched); memory and stride are
 * aligned for the owner's slots */
void rt_freelist_init(struct rt_freelist *list, void *memory, uint32_t stride,
		      uint16_t slots);
/*
 * Takes a chain of count slots, unless more than limit slots would be in use
 * then. Returns the first slot; 0: there are too few slots. REQUIRES: limit is
 * at most the number of slots. Thread: any.
 */
uint16_t rt_freelist_take(struct rt_freelist *list, uint16_t count,
			  uint16_t limit);
/* Gives a chain of count slots back, from top to bottom. Thread: any. */
void rt_freelist_give(struct rt_freelist *list, uint16_t top, uint16_t bottom,
		      uint16_t count);

/* Returns how many slots are in use. */
static inline uint16_t rt_freelist_used(const struct rt_freelist *list)
{
	/* acquire [FREE-1]: pairs with the release in rt_freelist_give(): where
	 * the count is 0, what threads did while they had slots is over. The
	 * count may be old */
	return (uint16_t)(atomic_load_explicit(&list->word,
					       memory_order_acquire) >>
			  16);
}

/* Returns the memory of a slot. */
static inline void *rt_freelist_slot(const struct rt_freelist *list,
				     uint16_t slot)
{
	return list->memory + (size_t)(slot - 1) * list->stride;
}

/* Returns the slot behind a slot that the caller owns; 0: no slot. */
static inline uint16_t rt_freelist_next(const struct rt_freelist *list,
					uint16_t slot)
{
	const _Atomic uint16_t *next = rt_freelist_slot(list, slot);

	/* relaxed: the exchange that brought the chain orders the load */
	return (uint16_t)(atomic_load_explicit(next, memory_order_relaxed) +
			  slot + 1);
}

static inline void rt_freelist_link(struct rt_freelist *list, uint16_t slot,
				    uint16_t next)
{
	_Atomic uint16_t *to = rt_freelist_slot(list, slot);

	/* relaxed: the exchange that shows the chain orders the store */
	atomic_store_explicit(to, (uint16_t)(next - slot - 1),
			      memory_order_relaxed);
}

/* ----------------------------------------------------------------- turn --- */

/* bits of rt_turn.word; above the bits the number of the slot on top of the
 * stack, 0: no slot, and the generation of the routes */
enum {
	RT_TURN_OPEN = 1 << 0, /* work requests may be published */
	RT_TURN_HELD = 1 << 1, /* a thread holds the right to post */
	/* the line is not empty, and no thread holds the right. With KEPT: the
	 * keeper was seen inside after a recall, and answers for everything
	 * that is published */
	RT_TURN_WAITS = 1 << 2,
	RT_TURN_PAUSED = 1 << 3,  /* no thread takes the right */
	RT_TURN_DRAINED = 1 << 4, /* nothing more is published */
	RT_TURN_CLOSED = 1 << 5,  /* nothing more is published or posted */
	/* with HELD: the right is kept for the turn's keeper, which takes and
	 * gives back the right by plain stores */
	RT_TURN_KEPT = 1 << 6,
	RT_TURN_RECALLED = 1 << 7, /* with KEPT: a thread ends the keeping */
	/* bits that say what may be published */
	RT_TURN_STATES = RT_TURN_OPEN | RT_TURN_DRAINED | RT_TURN_CLOSED
};
#define RT_TURN_TOP_SHIFT 8
#define RT_TURN_TOP_MASK  ((uint64_t)0xffff << RT_TURN_TOP_SHIFT)
/* the next generation; 40 bits */
#define RT_TURN_GENERATION ((uint64_t)1 << 24)

/* Word, free list and line have a cache line each: posters change the word and
 * the free list, and take no line from the holder. The owner aligns the turn,
 * and puts further words of the holder behind the turn. */
struct rt_turn {
	/* changed by posters, the holder, the poller and the control thread, by
	 * read-modify-write only */
	_Atomic uint64_t word;
	char apart[RT_CACHE_LINE - sizeof(uint64_t)];
	struct rt_freelist free;
	char also_apart[RT_CACHE_LINE - sizeof(struct rt_freelist)];
	/* used by the holder: the line, a ring of slots from head to tail,
	 * which count without end */
	uint16_t *line;
	uint16_t mask;
	uint16_t head;
	uint16_t tail;
	bool is_said;	     /* the poller knows that the line is not empty */
	bool has_keeper;     /* the keeper is chosen for good */
	_Atomic bool inside; /* the keeper has the kept right. Keeper */
	/* holds by the keeper alone, while no other thread held the right */
	uint16_t lone;
	/* number of the thread for which the right is kept; before that, of the
	 * last thread that held the right alone */
	_Atomic uint64_t keeper;
};

/* functions of the turn's owner for the holder */
struct rt_turn_ops {
	/* posts work requests at the front of the line, takes them off by
	 * rt_turn_leave_line(), and returns their number; 0: no room for the
	 * front. If the device refuses, calls rt_turn_close(); the rest stays
	 * in line */
	uint32_t (*post)(struct rt_turn *turn, void *arg);
	/* returns the room that the front of the line needs */
	uint32_t (*needs)(struct rt_turn *turn, void *arg);
	/* returns whether there is so much room by now. Called without the
	 * right */
	bool (*has_room)(struct rt_turn *turn, uint32_t needs, void *arg);
	/* tells the poller whether the line will be empty, by a word that the
	 * poller reads after the fence of its batch. Called with the right */
	void (*say)(struct rt_turn *turn, bool waits, void *arg);
};

/* Returns the size of the line of a turn with that many slots: a power of
 * two. */
uint32_t rt_turn_line_size(uint16_t slots);
/* Makes a turn with `slots` slots, see rt_freelist_init(), and with the memory
 * `line` for the line; nothing may be published yet. */
void rt_turn_init(struct rt_turn *turn, uint16_t *line, void *memory,
		  uint32_t stride, uint16_t slots);

/* -------------------------------------------------------------- posters --- */

/* Slots are taken from turn->free and given back there. The first slot of a
 * chain is for the last work request of the call. A thread that gives slots
 * back without a publication looks at the wants of refused posters, because no
 * completion will answer them. */

enum rt_turn_answer {
	RT_TURN_LEFT,	 /* published; another thread posts it */
	RT_TURN_HOLDS,	 /* published, and the caller holds the right */
	RT_TURN_STALE,	 /* a route was redirected: look at the routes again */
	RT_TURN_NOT_YET, /* not open yet */
	RT_TURN_REFUSED	 /* closed or drained */
};

/* Publishes a chain of slots by a single exchange; seen: the word that the
 * caller read before looking at routes. After RT_TURN_HOLDS rt_turn_hold() has
 * to follow. */
enum rt_turn_answer rt_turn_publish(struct rt_turn *turn, uint64_t seen,
				    uint16_t top, uint16_t bottom);

static inline uint64_t rt_turn_look(const struct rt_turn *turn)
{
	/* acquire: pairs with the release in rt_turn_move_routes(): the routes
	 * of this generation. Unseen by the sanitizer: routes are no data of
	 * the program */
	return rt_load_unseen(&turn->word, memory_order_acquire);
}

static inline bool rt_turn_is_keeper(const struct rt_turn *turn)
{
	/* relaxed: only this thread writes its own number */
	return atomic_load_explicit(&turn->keeper, memory_order_relaxed) ==
	       rt_self_known_number();
}

/* Returns whether the calling thread may enter a kept right alone: the word
 * says that the side is open, nothing is published, the line is empty, and the
 * right is kept for the calling thread. */
static inline bool rt_turn_is_kept_idle(const struct rt_turn *turn,
					uint64_t word)
{
	const uint64_t bits = word & (RT_TURN_TOP_MASK | 0xff);

	return bits == (RT_TURN_OPEN | RT_TURN_HELD | RT_TURN_KEPT) &&
	       rt_turn_is_keeper(turn);
}

/* Returns whether the calling thread may take the right alone: as above, or no
 * thread holds the right. */
static inline bool rt_turn_is_idle(const struct rt_turn *turn, uint64_t word)
{
	return (word & (RT_TURN_TOP_MASK | 0xff)) == RT_TURN_OPEN ||
	       rt_turn_is_kept_idle(turn, word);
}

/*
 * Returns whether the right is kept for the calling thread. A thread that has
 * stored words before this look, and sees true, needs only rt_fence_light()
 * before its look at words that other threads store as holders [TURN-6].
 */
static inline bool rt_turn_is_kept_here(const struct rt_turn *turn)
{
	const uint64_t bits = RT_TURN_KEPT | RT_TURN_RECALLED;

	/* acquire: pairs with the release in rt_turn_keep(): the keeper, where
	 * the calling thread has been the last holder before. Another thread
	 * that takes the right has a heavy fence behind its change of the
	 * word. Unseen by the sanitizer, as in rt_turn_look() */
	return (rt_load_unseen(&turn->word, memory_order_acquire) & bits) ==
		       RT_TURN_KEPT &&
	       rt_turn_is_keeper(turn);
}

/* Returns whether the right is kept for another thread. After a fence. */
static inline bool rt_turn_is_kept_elsewhere(const struct rt_turn *turn)
{
	/* acquire: pairs with the release in rt_turn_keep(): the keeper; and
	 * with the release in turn_try_end_keeping(): whatever the keeper
	 * published with a light fence */
	return (atomic_load_explicit(&turn->word, memory_order_acquire) &
		RT_TURN_KEPT) &&
	       !rt_turn_is_keeper(turn);
}

/* Enters a kept right. Keeper, who may not post inside the verb. */
static inline bool rt_turn_go_in(struct rt_turn *turn, uint64_t seen)
{
	/* relaxed: written by this thread */
	assert(!atomic_load_explicit(&turn->inside, memory_order_relaxed));
	/* relaxed: the fences order the store */
	atomic_store_explicit(&turn->inside, true, memory_order_relaxed);
	/* pairs with the fence in turn_recall() [TURN-5]: either this look sees
	 * RECALLED, or that thread sees the keeper inside */
	rt_fence_light();
	if (likely(rt_turn_look(turn) == seen))
		return true;
	/* release: as in rt_turn_go_out() */
	atomic_store_explicit(&turn->inside, false, memory_order_release);
	return false;
}

/*
 * Takes the right if the word is still `seen`, so that no route was redirected:
 * the caller may post from its own memory. rt_turn_leave_alone() ends the hold.
 * After false rt_turn_answer_recall() has to follow. REQUIRES:
 * rt_turn_is_idle(seen)
 */
static inline bool rt_turn_take_idle(struct rt_turn *turn, uint64_t seen)
{
	if (likely(seen & RT_TURN_KEPT))
		return rt_turn_go_in(turn, seen);
	/* acquire [TURN-1]: pairs with the release of the former holder: the
	 * ledger */
	return likely(atomic_compare_exchange_strong_explicit(
		&turn->word, &seen, seen | RT_TURN_HELD, memory_order_acquire,
		memory_order_relaxed));
}

/* As rt_turn_take_idle(), if rt_turn_is_idle(seen). */
static inline bool rt_turn_take_alone(struct rt_turn *turn, uint64_t seen)
{
	return likely(rt_turn_is_idle(turn, seen)) &&
	       rt_turn_take_idle(turn, seen);
}

/* Ends a keeping, on the keeper, which is outside. Returns true if the caller
 * holds the right now: rt_turn_hold() has to follow. */
bool rt_turn_end_keeping(struct rt_turn *turn);

/* Follows rt_turn_take_alone() that has returned false. A thread that recalls
 * the right may have seen the keeper inside for a moment, and may have left
 * everything to the keeper. Returns true if rt_turn_hold() has to follow. */
static inline bool rt_turn_answer_recall(struct rt_turn *turn, uint64_t seen)
{
	return unlikely(seen & RT_TURN_KEPT) && rt_turn_is_keeper(turn) &&
	       rt_turn_end_keeping(turn);
}

/* ----------------------------------------------------------- the holder --- */

/*
 * Posts what was published, in order, and gives the right back. budget: most
 * work requests, or a few more. Returns true if the poller has to look at the
 * turn: something is left, or the side is drained.
 */
bool rt_turn_hold(struct rt_turn *turn, const struct rt_turn_ops *ops,
		  void *arg, uint32_t budget);
/* Leaves a kept right. Returns as rt_turn_leave_alone() does. Keeper. */
static inline bool rt_turn_go_out(struct rt_turn *turn, uint64_t seen)
{
	/* release [TURN-1]: pairs with the acquire in turn_recall(): the
	 * ledger. Unseen: the ledger is no data of the program */
	rt_store_unseen(&turn->inside, false, memory_order_release);
	/* pairs with the fence in turn_recall() [TURN-5]: either this look sees
	 * RECALLED, or that thread sees the keeper outside */
	rt_fence_light();
	return likely(rt_turn_look(turn) == seen) || !rt_turn_end_keeping(turn);
}

/* Keeps the right for the calling thread, which gives the right back; returns
 * as rt_turn_leave_alone() does. */
bool rt_turn_keep(struct rt_turn *turn, uint64_t seen);

/* Counts a hold of the calling thread. Returns whether the right is to be kept
 * from here on. Called with the right. */
static inline bool rt_turn_count_lone(struct rt_turn *turn)
{
	if (likely(rt_turn_is_keeper(turn))) {
		turn->lone += turn->lone < rt_keep_after;
		return turn->lone == rt_keep_after;
	}
	turn->lone = 0;
	if (!turn->has_keeper)
		/* relaxed: read by other threads behind the exchange that sets
		 * KEPT */
		atomic_store_explicit(&turn->keeper, rt_self_number(),
				      memory_order_relaxed);
	return false;
}

/* Ends rt_turn_take_alone(): gives the right back if nothing happened
 * meanwhile. Returns false if rt_turn_hold() has to follow. */
static inline bool rt_turn_leave_alone(struct rt_turn *turn, uint64_t seen)
{
	uint64_t mine = seen | RT_TURN_HELD;

	if (likely(seen & RT_TURN_KEPT))
		return rt_turn_go_out(turn, seen);
	if (unlikely(rt_turn_count_lone(turn)))
		return rt_turn_keep(turn, seen);
	/* release [TURN-1]: publishes the ledger to the next holder */
	return likely(atomic_compare_exchange_strong_explicit(
		&turn->word, &mine, seen, memory_order_release,
		memory_order_relaxed));
}

/* Ends rt_turn_try_take() of a thread that posts nothing; what was published
 * meanwhile is left to the poller. Returns as rt_turn_hold() does. */
bool rt_turn_let_go(struct rt_turn *turn);
/* Returns the length of the line. Holder. */
static inline uint16_t rt_turn_length(const struct rt_turn *turn)
{
	return (uint16_t)(turn->tail - turn->head);
}

/* Returns the slot at the place of the line; the front is 0. Holder. */
static inline uint16_t rt_turn_at(const struct rt_turn *turn, uint32_t place)
{
	return turn->line[(turn->head + place) & turn->mask];
}

/* Returns the slot at the front of the line; 0: the line is empty. Holder. */
static inline uint16_t rt_turn_front(const struct rt_turn *turn)
{
	return rt_turn_length(turn) > 0 ? rt_turn_at(turn, 0) : 0;
}

/* Takes count slots out of the line, from the place on, and frees the slots.
 * Holder. */
void rt_turn_cut_line(struct rt_turn *turn, uint32_t place, uint16_t count);
/* Takes count slots off the front of the line, and frees the slots. Holder. */
void rt_turn_leave_line(struct rt_turn *turn, uint16_t count);

/* ----------------------------------------------------------- the poller --- */

/* Takes the right if published or waiting work requests have no holder. Poller,
 * after publishing what retired, and a full fence [TURN-2]. */
bool rt_turn_take_waiting(struct rt_turn *turn);
/* Takes the right, unless another thread has the right, the right is kept, or
 * no thread may take the right. rt_turn_hold() or rt_turn_let_go() has to
 * follow. Any thread. */
bool rt_turn_try_take(struct rt_turn *turn);
/* Returns whether a drained turn has nothing published, in line or being posted
 * any more. */
bool rt_turn_is_through(const struct rt_turn *turn);
/* Returns whether a thread is inside: has the right, and not only kept. */
bool rt_turn_is_held(const struct rt_turn *turn);

/* --------------------------------------------------- the control thread --- */

void rt_turn_open(struct rt_turn *turn);
/* Pauses the turn: no thread takes the right from here on, and the holder gives
 * the right back soon: rt_turn_await(). */
bool rt_turn_pause(struct rt_turn *turn); /* false: another thread has paused */
/* Returns as rt_turn_hold() does. */
bool rt_turn_drain(struct rt_turn *turn);
/* Closes the turn; also called by the poller and the holder. */
void rt_turn_close(struct rt_turn *turn);
/*
 * Recalls kept rights of many turns with a single fence: rt_turn_ask_keeper()
 * for each, rt_fence_heavy(), rt_turn_recall_asked() for each. Asking returns
 * false if the right is not kept; *asked is for the second call. That call
 * returns true if the caller holds the right, and false if the right is not
 * kept any more or the keeper is inside, and gives the right back when leaving.
 */
bool rt_turn_ask_keeper(struct rt_turn *turn, uint64_t *asked);
bool rt_turn_recall_asked(struct rt_turn *turn, uint64_t asked);
/* Recalls a kept right and gives the right back. Returns as rt_turn_hold()
 * does. */
bool rt_turn_let_keeper_go(struct rt_turn *turn);
/* Waits until no bit of `bits` is set in the word, of HELD after
 * rt_turn_let_keeper_go(): looks, then yields, then
 * sleeps, because a thread that does not run may not run for a while. Without a
 * limit: a thread may be stopped for long inside a verb. */
void rt_turn_await(struct rt_turn *turn, uint64_t bits);
/* Moves to the next generation, on the thread that paused the turn: a poster
 * that looked at routes before looks again, or has published already. */
void rt_turn_move_routes(struct rt_turn *turn);
/* Ends a pause, when no thread is inside. Returns true if the poller has to
 * look at the turn. */
bool rt_turn_resume(struct rt_turn *turn);

/* Moves everything published into the line. On the poller for a turn left for
 * good, or on the thread that paused the turn. */
void rt_turn_gather(struct rt_turn *turn);

#endif /* RT_BASE_TURN_H */
