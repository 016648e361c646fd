/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/* turn.c -- publishes work requests, passes the right to post; see turn.h. */

#include "base/turn.h"

#include <sched.h>
#include <time.h>

#include "base/cancel.h"

/* ------------------------------------------------------------- freelist --- */

#define FIRST_MASK ((uint64_t)0xffff)
#define USED_SHIFT 16
#define TAG_SHIFT  32

static uint16_t freelist_first_of(uint64_t word)
{
	return (uint16_t)(word & FIRST_MASK);
}

static uint16_t freelist_used_of(uint64_t word)
{
	return (uint16_t)(word >> USED_SHIFT);
}

/* Returns the word after `word`, with the next tag. */
static uint64_t freelist_word_of(uint64_t word, uint16_t used, uint16_t first)
{
	return ((word >> TAG_SHIFT) + 1) << TAG_SHIFT |
	       (uint64_t)used << USED_SHIFT | first;
}

void rt_freelist_init(struct rt_freelist *list, void *memory, uint32_t stride,
		      uint16_t slots)
{
	list->memory = memory;
	list->stride = stride;
	if (slots > 0)
		rt_freelist_link(list, slots, 0);
	/* relaxed: no other thread knows the list yet */
	atomic_store_explicit(&list->word, slots > 0, memory_order_relaxed);
}

/* Returns the number behind count free slots; *bottom: the last of these slots.
 * The link of a slot that is taken meanwhile may be any number: then the tag
 * has changed. */
static uint16_t freelist_walk(const struct rt_freelist *list, uint16_t from,
			      uint16_t count, uint16_t *bottom)
{
	*bottom = 0;
	while (count-- > 0 && from != 0) {
		*bottom = from;
		from = rt_freelist_next(list, from);
	}
	return from;
}

uint16_t rt_freelist_take(struct rt_freelist *list, uint16_t count,
			  uint16_t limit)
{
	uint16_t bottom;
	uint16_t next;
	uint64_t word;
	uint64_t to;

	/* acquire [FREE-1]: pairs with the release in rt_freelist_give() */
	word = atomic_load_explicit(&list->word, memory_order_acquire);
	do {
		if ((uint32_t)freelist_used_of(word) + count > limit)
			return 0;
		next = freelist_walk(list, freelist_first_of(word), count,
				     &bottom);
		to = freelist_word_of(
			word, (uint16_t)(freelist_used_of(word) + count), next);
		/* acquire [FREE-1]: as for the load above */
	} while (!atomic_compare_exchange_weak_explicit(&list->word, &word, to,
							memory_order_acquire,
							memory_order_acquire));
	rt_freelist_link(list, bottom, 0);
	return freelist_first_of(word);
}

void rt_freelist_give(struct rt_freelist *list, uint16_t top, uint16_t bottom,
		      uint16_t count)
{
	uint64_t word;
	uint64_t to;

	/* relaxed: the compare-and-swap looks again */
	word = atomic_load_explicit(&list->word, memory_order_relaxed);
	do {
		rt_freelist_link(list, bottom, freelist_first_of(word));
		to = freelist_word_of(
			word, (uint16_t)(freelist_used_of(word) - count), top);
		/* release [FREE-1]: pairs with the acquires in
		 * rt_freelist_take(): contents were read, and the chain is
		 * linked; relaxed: the word is read again */
	} while (!atomic_compare_exchange_weak_explicit(&list->word, &word, to,
							memory_order_release,
							memory_order_relaxed));
}

/* ----------------------------------------------------------------- turn --- */

/* steps of rt_turn_await() */
#define LOOKS	 100
#define YIELDS	 100
#define SLEEP_NS 50000

static uint16_t turn_top_of(uint64_t word)
{
	return (uint16_t)((word & RT_TURN_TOP_MASK) >> RT_TURN_TOP_SHIFT);
}

static bool turn_is_same_generation(uint64_t a, uint64_t b)
{
	return a / RT_TURN_GENERATION == b / RT_TURN_GENERATION;
}

uint32_t rt_turn_line_size(uint16_t slots)
{
	uint32_t size = 1;

	while (size < slots)
		size *= 2;
	return size;
}

void rt_turn_init(struct rt_turn *turn, uint16_t *line, void *memory,
		  uint32_t stride, uint16_t slots)
{
	rt_freelist_init(&turn->free, memory, stride, slots);
	turn->line = line;
	turn->mask = (uint16_t)(rt_turn_line_size(slots) - 1);
	turn->head = 0;
	turn->tail = 0;
	turn->is_said = false;
	turn->has_keeper = false;
	turn->lone = 0;
	/* relaxed, all: no other thread knows the turn yet */
	atomic_store_explicit(&turn->inside, false, memory_order_relaxed);
	atomic_store_explicit(&turn->keeper, UINT64_MAX, memory_order_relaxed);
	/* relaxed: no other thread knows the turn yet */
	atomic_store_explicit(&turn->word, 0, memory_order_relaxed);
}

/* ----------------------------------------------------------- the keeper --- */

bool rt_turn_keep(struct rt_turn *turn, uint64_t seen)
{
	uint64_t mine = seen | RT_TURN_HELD;
	uint64_t to = seen;

	if (rt_fence_is_ready()) {
		turn->has_keeper = true;
		to = mine | RT_TURN_KEPT;
	}
	/* release [TURN-1]: publishes the ledger to the next holder, and the
	 * keeper */
	if (!atomic_compare_exchange_strong_explicit(&turn->word, &mine, to,
						     memory_order_release,
						     memory_order_relaxed))
		return false;
	/* pairs with the fence of a refused poster, which looks at KEPT
	 * [TURN-6]: either that look sees KEPT, or the later batches of this
	 * thread see the want */
	rt_fence_dekker();
	return true;
}

/* Clears KEPT, by one attempt; true: the caller holds the right. *word: the
 * word that was read last, here too. A thread other than the keeper has looked
 * at `inside` behind a fence. The next generation tells this keeping from later
 * keepings. */
static bool turn_try_end_keeping(struct rt_turn *turn, uint64_t *word)
{
	const uint64_t bits = RT_TURN_KEPT | RT_TURN_RECALLED | RT_TURN_WAITS;
	uint64_t to = (*word & ~bits) + RT_TURN_GENERATION;

	/* acquire, both [TURN-1]: as a new holder; release [TURN-6]: pairs with
	 * the acquire in rt_turn_is_kept_elsewhere() */
	if (!atomic_compare_exchange_weak_explicit(&turn->word, word, to,
						   memory_order_acq_rel,
						   memory_order_acquire))
		return false;
	/* another thread wants the right, so the count begins again */
	if (*word & RT_TURN_RECALLED)
		turn->lone = 0;
	return true;
}

bool rt_turn_end_keeping(struct rt_turn *turn)
{
	uint64_t word = rt_turn_look(turn);

	while (word & RT_TURN_KEPT) {
		if (turn_try_end_keeping(turn, &word))
			return true;
	}
	return false;
}

bool rt_turn_ask_keeper(struct rt_turn *turn, uint64_t *asked)
{
	*asked = rt_turn_look(turn);
	do {
		if (!(*asked & RT_TURN_KEPT))
			return false;
		/* release: pairs with the acquire in rt_turn_look() of the
		 * keeper; acquire: as in rt_turn_look() */
	} while (!atomic_compare_exchange_weak_explicit(
		&turn->word, asked, *asked | RT_TURN_RECALLED,
		memory_order_acq_rel, memory_order_acquire));
	return true;
}

/* Notes that the keeper, seen inside behind a fence, will see RECALLED when
 * leaving: later publications need no fence. */
static void turn_leave_to_keeper(struct rt_turn *turn, uint64_t word)
{
	/* relaxed, both: the note is about the word alone, and a failure leaves
	 * the fence to the next thread */
	atomic_compare_exchange_strong_explicit(
		&turn->word, &word, word | RT_TURN_WAITS, memory_order_relaxed,
		memory_order_relaxed);
}

bool rt_turn_recall_asked(struct rt_turn *turn, uint64_t asked)
{
	uint64_t word = rt_turn_look(turn);

	/* another generation: a later keeping, with a keeper that may enter */
	while ((word & RT_TURN_KEPT) && turn_is_same_generation(word, asked)) {
		/* acquire [TURN-1]: pairs with the release in
		 * rt_turn_go_out(): the ledger */
		if (atomic_load_explicit(&turn->inside, memory_order_acquire)) {
			turn_leave_to_keeper(turn, word);
			return false;
		}
		if (turn_try_end_keeping(turn, &word))
			return true;
	}
	return false;
}

/* Takes a kept right, see rt_turn_recall_asked(). */
static bool turn_recall(struct rt_turn *turn)
{
	uint64_t asked;

	/* relaxed: written by this thread. Inside, the keeper sees the change
	 * of the word when leaving */
	if (rt_turn_is_keeper(turn))
		return !atomic_load_explicit(&turn->inside,
					     memory_order_relaxed) &&
		       rt_turn_end_keeping(turn);
	if (likely(!rt_turn_ask_keeper(turn, &asked)))
		return false;
	/* pairs with the light fences of the keeper [TURN-5]: either the keeper
	 * sees RECALLED, or the look that follows sees the keeper inside */
	rt_fence_heavy();
	return rt_turn_recall_asked(turn, asked);
}

/* -------------------------------------------------------------- posters --- */

enum rt_turn_answer rt_turn_publish(struct rt_turn *turn, uint64_t seen,
				    uint16_t top, uint16_t bottom)
{
	uint64_t word = rt_turn_look(turn);
	uint64_t to;

	do {
		if (word & (RT_TURN_CLOSED | RT_TURN_DRAINED))
			return RT_TURN_REFUSED;
		if (!(word & RT_TURN_OPEN))
			return RT_TURN_NOT_YET;
		if (!turn_is_same_generation(word, seen))
			return RT_TURN_STALE;
		rt_freelist_link(&turn->free, bottom, turn_top_of(word));
		to = (word & ~RT_TURN_TOP_MASK) | (uint64_t)top
							  << RT_TURN_TOP_SHIFT;
		if (!(word & (RT_TURN_HELD | RT_TURN_PAUSED)))
			to = (to | RT_TURN_HELD) & ~(uint64_t)RT_TURN_WAITS;
		/* release [TURN-4]: pairs with the acquire in rt_turn_gather():
		 * the slots; acquire [TURN-1]: pairs with the release in
		 * turn_give_back(), because the caller may become the holder;
		 * acquire of a failure: as in rt_turn_look() */
	} while (!atomic_compare_exchange_weak_explicit(&turn->word, &word, to,
							memory_order_acq_rel,
							memory_order_acquire));
	if (unlikely(word & RT_TURN_KEPT)) {
		/* the keeper answers for this publication */
		if (word & RT_TURN_WAITS)
			return RT_TURN_LEFT;
		return turn_recall(turn) ? RT_TURN_HOLDS : RT_TURN_LEFT;
	}
	return word & (RT_TURN_HELD | RT_TURN_PAUSED) ? RT_TURN_LEFT
						      : RT_TURN_HOLDS;
}

/* ----------------------------------------------------------- the holder --- */

/* Appends a chain to the line. The newest slot is on top, and goes to the end
 * of the line. */
static void turn_line_up(struct rt_turn *turn, uint16_t top)
{
	uint16_t *line = turn->line;
	uint16_t first = turn->tail;
	uint16_t last;
	uint16_t slot;

	for (slot = top; slot != 0; turn->tail++) {
		line[turn->tail & turn->mask] = slot;
		slot = rt_freelist_next(&turn->free, slot);
	}
	for (last = turn->tail; (uint16_t)(last - first) > 1; first++) {
		last--;
		slot = line[first & turn->mask];
		line[first & turn->mask] = line[last & turn->mask];
		line[last & turn->mask] = slot;
	}
}

void rt_turn_gather(struct rt_turn *turn)
{
	uint64_t word;

	/* relaxed: the exchange below brings the chain */
	word = atomic_load_explicit(&turn->word, memory_order_relaxed);
	if (turn_top_of(word) == 0)
		return;
	/* acquire [TURN-4]: pairs with the release in rt_turn_publish(): the
	 * slots and the chain */
	word = atomic_fetch_and_explicit(&turn->word, ~RT_TURN_TOP_MASK,
					 memory_order_acquire);
	turn_line_up(turn, turn_top_of(word));
}

void rt_turn_cut_line(struct rt_turn *turn, uint32_t place, uint16_t count)
{
	uint16_t bottom = rt_turn_at(turn, place);
	uint16_t top = bottom;
	uint16_t older;
	uint32_t i;

	/* the newest slot is on top: a chain that was published whole stays
	 * linked */
	for (i = 1; i < count; i++) {
		older = top;
		top = rt_turn_at(turn, place + i);
		if (rt_freelist_next(&turn->free, top) != older)
			rt_freelist_link(&turn->free, top, older);
	}
	/* slots in front of the place move up */
	for (i = place; i > 0; i--)
		turn->line[(turn->head + i - 1 + count) & turn->mask] =
			rt_turn_at(turn, i - 1);
	turn->head = (uint16_t)(turn->head + count);
	rt_freelist_give(&turn->free, top, bottom, count);
}

void rt_turn_leave_line(struct rt_turn *turn, uint16_t count)
{
	rt_turn_cut_line(turn, 0, count);
}

static bool turn_may_post(uint64_t word)
{
	return !(word & (RT_TURN_CLOSED | RT_TURN_PAUSED));
}

static bool turn_may_post_now(const struct rt_turn *turn)
{
	/* relaxed: a close or pause waits until the right is given back */
	return turn_may_post(
		atomic_load_explicit(&turn->word, memory_order_relaxed));
}

/* Tells the poller whether there is a line, while the right is held: the poller
 * knows of a line before the poller can find the right free [TURN-2]. */
static void turn_say_line(struct rt_turn *turn, const struct rt_turn_ops *ops,
			  void *arg)
{
	bool waits = rt_turn_length(turn) > 0;

	if (waits != turn->is_said)
		ops->say(turn, waits, arg);
	turn->is_said = waits;
}

/* Gives the right back by a single exchange. Returns false if more was
 * published that the holder has to post. *word: the word that is left. */
static bool turn_give_back(struct rt_turn *turn, bool goes_on, uint64_t *word)
{
	/* relaxed: the compare-and-swap looks again */
	uint64_t is = atomic_load_explicit(&turn->word, memory_order_relaxed);

	do {
		if (goes_on && turn_may_post(is) && turn_top_of(is) != 0)
			return false;
		*word = is & ~(uint64_t)RT_TURN_HELD;
		if (rt_turn_length(turn) > 0)
			*word |= RT_TURN_WAITS;
		/* release [TURN-1]: publishes ledger and line to the next
		 * holder; relaxed: the word is read again */
	} while (!atomic_compare_exchange_weak_explicit(&turn->word, &is, *word,
							memory_order_release,
							memory_order_relaxed));
	return true;
}

/* Takes the right again if room came while the right was held: no other thread
 * would see the room. */
static bool turn_take_again(struct rt_turn *turn, const struct rt_turn_ops *ops,
			    void *arg, uint32_t needs, uint64_t word)
{
	if (needs == 0 || !turn_may_post(word))
		return false;
	/* pairs with the fence of the poller's batch [TURN-2]: either the
	 * poller sees that the line waits, or this look sees the room */
	rt_fence_dekker();
	/* acquire [TURN-1]: as a new holder. If the word has changed, a thread
	 * that took the right, or ended a pause, looks after the line */
	return ops->has_room(turn, needs, arg) &&
	       atomic_compare_exchange_strong_explicit(
		       &turn->word, &word,
		       (word | RT_TURN_HELD) & ~(uint64_t)RT_TURN_WAITS,
		       memory_order_acquire, memory_order_relaxed);
}

static bool turn_is_waiting(uint64_t word)
{
	return (word & RT_TURN_WAITS) || turn_top_of(word) != 0;
}

/* Returns whether a drain may go on: nothing waits any more. A line that waits
 * for room is posted by the poller when room comes. */
static bool turn_is_through(uint64_t word)
{
	return (word & RT_TURN_DRAINED) && !turn_is_waiting(word);
}

bool rt_turn_hold(struct rt_turn *turn, const struct rt_turn_ops *ops,
		  void *arg, uint32_t budget)
{
	uint32_t needs;
	uint64_t word;
	uint32_t n;

	if (!rt_turn_is_keeper(turn))
		turn->lone = 0;
	do {
		do {
			rt_turn_gather(turn);
			for (n = 1; n > 0 && budget > 0 &&
				    rt_turn_length(turn) > 0 &&
				    turn_may_post_now(turn);) {
				n = ops->post(turn, arg);
				budget -= n < budget ? n : budget;
			}
			needs = rt_turn_length(turn) > 0 ? ops->needs(turn, arg)
							 : 0;
			turn_say_line(turn, ops, arg);
		} while (!turn_give_back(turn, budget > 0, &word));
	} while (budget > 0 && turn_take_again(turn, ops, arg, needs, word));
	return turn_is_through(word) || (budget == 0 && turn_is_waiting(word));
}

bool rt_turn_let_go(struct rt_turn *turn)
{
	uint64_t word;

	if (!rt_turn_is_keeper(turn))
		turn->lone = 0;
	turn_give_back(turn, false, &word);
	return turn_is_through(word) || turn_is_waiting(word);
}

/* ----------------------------------------------------------- the poller --- */

static bool turn_take(struct rt_turn *turn, bool only_waiting)
{
	/* relaxed: the exchange orders; the caller's fence makes the word
	 * visible */
	uint64_t word = atomic_load_explicit(&turn->word, memory_order_relaxed);

	do {
		if ((word & RT_TURN_HELD) || !turn_may_post(word) ||
		    (only_waiting && !turn_is_waiting(word)))
			return false;
		/* acquire [TURN-1]: pairs with the release in turn_give_back();
		 * relaxed: the word is read again */
	} while (!atomic_compare_exchange_weak_explicit(
		&turn->word, &word,
		(word | RT_TURN_HELD) & ~(uint64_t)RT_TURN_WAITS,
		memory_order_acquire, memory_order_relaxed));
	return true;
}

bool rt_turn_take_waiting(struct rt_turn *turn)
{
	return turn_take(turn, true);
}

bool rt_turn_try_take(struct rt_turn *turn)
{
	return turn_take(turn, false);
}

bool rt_turn_is_through(const struct rt_turn *turn)
{
	uint64_t word = rt_turn_look(turn);

	return turn_is_through(word) && !(word & RT_TURN_HELD);
}

bool rt_turn_is_held(const struct rt_turn *turn)
{
	uint64_t word = rt_turn_look(turn);

	/* relaxed: for the dump; the keeper may enter or leave meanwhile */
	return (word & RT_TURN_HELD) &&
	       (!(word & RT_TURN_KEPT) ||
		atomic_load_explicit(&turn->inside, memory_order_relaxed));
}

/* --------------------------------------------------- the control thread --- */

/* Sets bits; returns the former word. */
static uint64_t turn_set(struct rt_turn *turn, uint64_t bits)
{
	/* acq_rel [TURN-1]: publishes earlier writes to threads that see the
	 * bits, and sees the ledger of a holder that has left */
	return atomic_fetch_or_explicit(&turn->word, bits,
					memory_order_acq_rel);
}

void rt_turn_open(struct rt_turn *turn)
{
	turn_set(turn, RT_TURN_OPEN);
}

bool rt_turn_pause(struct rt_turn *turn)
{
	return !(turn_set(turn, RT_TURN_PAUSED) & RT_TURN_PAUSED);
}

bool rt_turn_let_keeper_go(struct rt_turn *turn)
{
	return turn_recall(turn) && rt_turn_let_go(turn);
}

bool rt_turn_drain(struct rt_turn *turn)
{
	turn_set(turn, RT_TURN_DRAINED);
	return rt_turn_let_keeper_go(turn);
}

void rt_turn_close(struct rt_turn *turn)
{
	turn_set(turn, RT_TURN_CLOSED);
}

void rt_turn_await(struct rt_turn *turn, uint64_t bits)
{
	RT_NOT_CANCELLED;
	const struct timespec nap = {.tv_nsec = SLEEP_NS};
	uint32_t looks = 0;

	/* what is left is looked at when the pause ends, or when the side is
	 * handed over */
	if (bits & RT_TURN_HELD)
		rt_turn_let_keeper_go(turn);

	/* acquire [TURN-1]: pairs with the release in turn_give_back() of the
	 * thread that has left: ledger and line */
	while (rt_turn_look(turn) & bits) {
		if (++looks < LOOKS)
			rt_cpu_relax();
		else if (looks < LOOKS + YIELDS)
			sched_yield();
		else
			nanosleep(&nap, NULL);
	}
}

void rt_turn_move_routes(struct rt_turn *turn)
{
	/* release: pairs with the acquire in rt_turn_look(): the routes;
	 * acquire [TURN-4]: work requests published in the former generation
	 * are gathered after this */
	atomic_fetch_add_explicit(&turn->word, RT_TURN_GENERATION,
				  memory_order_acq_rel);
}

bool rt_turn_resume(struct rt_turn *turn)
{
	/* relaxed: the compare-and-swap looks again */
	uint64_t word = atomic_load_explicit(&turn->word, memory_order_relaxed);
	uint64_t to;

	do {
		to = word & ~(uint64_t)RT_TURN_PAUSED;
		/* the caller may have gathered the stack; the line of a closed
		 * turn may belong to the poller by now */
		if (!(word & RT_TURN_CLOSED) && rt_turn_length(turn) > 0)
			to |= RT_TURN_WAITS;
		/* release [TURN-1]: publishes the line; relaxed: the word is
		 * read again */
	} while (!atomic_compare_exchange_weak_explicit(&turn->word, &word, to,
							memory_order_release,
							memory_order_relaxed));
	/* rt_turn_await() may have taken the right while a poller looked
	 * whether a drain was through */
	return turn_is_waiting(to) || turn_is_through(to);
}
