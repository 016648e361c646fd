/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * lane.c -- the ring between a poller and a consumer, see lane.h. Functions
 * whose name ends in _poller run on the poller, in _consumer on the consumer;
 * labels in brackets: doc/protocols/lane.md.
 */

#include "queue/lane.h"

#include <assert.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <urcu/compiler.h> /* caa_container_of: others bring it since 0.13 */

/* --------------------------------------------------------------- waiter --- */

struct rt_waiter *rt_waiter_new(void (*eased)(void *arg), void *arg)
{
	struct rt_waiter *waiter = calloc(1, sizeof(*waiter));

	if (waiter == NULL)
		return NULL;
	CDS_INIT_LIST_HEAD(&waiter->link);
	waiter->eased = eased;
	waiter->arg = arg;
	return waiter;
}

void rt_waiter_delete(struct rt_waiter *waiter)
{
	if (waiter == NULL)
		return;
	cds_list_del(&waiter->link);
	free(waiter);
}

void rt_waiter_add(struct cds_list_head *waiters, struct rt_waiter *waiter)
{
	if (cds_list_empty(&waiter->link))
		cds_list_add_tail(&waiter->link, waiters);
}

/* Takes a waiter off the list and answers the waiter. Returns false if the list
 * is empty. */
static bool rt_waiter_answer(struct cds_list_head *waiters)
{
	struct rt_waiter *waiter;

	if (cds_list_empty(waiters))
		return false;
	waiter = cds_list_first_entry(waiters, struct rt_waiter, link);
	cds_list_del_init(&waiter->link);
	waiter->eased(waiter->arg);
	return true;
}

/* ----------------------------------------------------------------- lane --- */

#define PAGE	     4096
#define INLINE_ITEMS 8 /* up to so many items are copied without a call */

static_assert(sizeof(struct rpma_rt_completion) == 32,
	      "two completions a cache line");
static_assert(offsetof(struct rt_lane, tail) % RT_APART == 0 &&
		      offsetof(struct rt_lane, head) -
				      offsetof(struct rt_lane, tail) ==
			      RT_APART &&
		      offsetof(struct rt_lane, head_next) -
				      offsetof(struct rt_lane, head) ==
			      RT_APART,
	      "tail, head and the consumer's private words stand apart");
static_assert(offsetof(struct rt_lane, spilled) < RT_CACHE_LINE,
	      "flags that are read each time beside what never changes");

/* -------------------------------------------------------------- copying --- */

/* Copies items. A batch that is fanned out to many lanes is a few items for
 * each lane: a call of memcpy() would cost as much as the copy. */
static void lane_copy_items(struct rpma_rt_completion *to,
			    const struct rpma_rt_completion *from,
			    uint32_t count)
{
	uint32_t i;

	if (count > INLINE_ITEMS) {
		memcpy(to, from, count * sizeof(*to));
		return;
	}
	for (i = 0; i < count; i++) {
		to[i] = from[i];
		/* keeps the compiler from turning the loop into a call of
		 * memcpy() again */
		__asm__ __volatile__("" ::: "memory");
	}
}

/* ----------------------------------------------------------------- lane --- */

/* Allocates a ring. A ring has no more pages than it fills, and the same
 * alignment in each lane: with alignment by chance, a lane handed over up to 5
 * % less. */
static struct rpma_rt_completion *lane_ring_new(uint32_t size)
{
	size_t bytes = size * sizeof(struct rpma_rt_completion);
	size_t alignment = bytes < PAGE ? bytes : PAGE;

	return aligned_alloc(alignment, bytes);
}

/* Computes room_end, after head_seen was read, or the spill became empty or not
 * empty. */
static void lane_note_room(struct rt_lane *lane)
{
	lane->room_end = lane->spill->count == 0 ? lane->head_seen + lane->size
						 : lane->tail_next;
}

int rt_lane_init(struct rt_lane *lane, struct rt_bell *poller,
		 struct rt_bell *consumer, uint32_t size,
		 uint32_t backlog_limit)
{
	assert(size >= 2 && (size & (size - 1)) == 0);
	memset(lane, 0, sizeof(*lane));
	CDS_INIT_LIST_HEAD(&lane->left_link);
	CDS_INIT_LIST_HEAD(&lane->waiters);
	rt_mark_init(&lane->waits);
	lane->poller = poller;
	lane->consumer = consumer;
	lane->size = size;
	lane->backlog_limit = backlog_limit;
	lane->ring = lane_ring_new(size);
	lane->spill = rt_spill_new(backlog_limit);
	if (lane->ring != NULL && lane->spill != NULL) {
		lane_note_room(lane);
		return 0;
	}
	rt_lane_fini(lane);
	return RPMA_E_NOMEM;
}

void rt_lane_fini(struct rt_lane *lane)
{
	rt_spill_delete(lane->spill);
	free(lane->ring);
}

/* ---------------------------------------------------- the owning poller --- */

/* Returns the number of free slots; reads head again if there are fewer than
 * `wanted`. */
static uint32_t lane_room(struct rt_lane *lane, uint32_t wanted)
{
	uint32_t free_count = lane->size - (lane->tail_next - lane->head_seen);

	if (free_count >= wanted)
		return free_count;
	/* acquire [LANE-2]: pairs with the release of head: the consumer has
	 * read the slots that are overwritten next */
	lane->head_seen =
		atomic_load_explicit(&lane->head, memory_order_acquire);
	lane_note_room(lane);
	return lane->size - (lane->tail_next - lane->head_seen);
}

/* Copies items to the ring behind tail_next, without publishing them. REQUIRES:
 * room */
static void lane_ring_put(struct rt_lane *lane,
			  const struct rpma_rt_completion *items,
			  uint32_t count)
{
	uint32_t at = lane->tail_next & (lane->size - 1);
	uint32_t straight = lane->size - at;

	if (straight > count)
		straight = count;
	lane_copy_items(&lane->ring[at], items, straight);
	lane_copy_items(lane->ring, items + straight, count - straight);
	lane->tail_next += count;
}

static void lane_tell_spill(struct rt_lane *lane)
{
	/* relaxed: statistic for rpma_rt_dump(), which orders nothing */
	atomic_store_explicit(&lane->spill_now, lane->spill->count,
			      memory_order_relaxed);
}

/* Returns a place in the spill. Without room, which cannot happen, the newest
 * item is lost. */
static struct rpma_rt_completion *lane_spill_one(struct rt_lane *lane)
{
	struct rt_spill *spill = lane->spill;
	struct rpma_rt_completion *place = rt_spill_place(spill);

	/* reserved with the routes that lead to the lane: limit + credits +
	 * events */
	assert(place != NULL);
	lane->spilled_new++;
	if (place == NULL) {
		lane->lost_new++;
		place = &spill->items[(spill->first + spill->count - 1) %
				      spill->entries];
	}
	lane_tell_spill(lane);
	lane_note_room(lane);
	if (spill->count >= lane->backlog_limit)
		/* relaxed [LANE-5]: the release of the retired count, which
		 * follows, publishes the flag to the posters concerned */
		atomic_store_explicit(&lane->backlogged, true,
				      memory_order_relaxed);
	return place;
}

struct rpma_rt_completion *rt_lane_find_slot_poller(struct rt_lane *lane)
{
	if (lane->spill->count > 0 || lane_room(lane, 1) == 0)
		return lane_spill_one(lane);
	return &lane->ring[lane->tail_next++ & (lane->size - 1)];
}

void rt_lane_fetch_poller(const struct rt_lane *lane, uint32_t count)
{
	uint32_t at = lane->tail_next;
	uint32_t end = at + count;

	/* slots behind room_end have items that the consumer may still read */
	if (lane->room_end - at < count)
		end = lane->room_end;
	for (; (int32_t)(end - at) > 0; at += 2)
		rt_fetch_to_write(&lane->ring[at & (lane->size - 1)]);
}

/* Updates the flags after a spill shrank. */
static void lane_ease(struct rt_lane *lane)
{
	/* relaxed: only the poller stores the flag */
	if (lane->spill->count <= lane->backlog_limit / 2 &&
	    atomic_load_explicit(&lane->backlogged, memory_order_relaxed)) {
		/* release: pairs with the acquire in rt_lane_is_backlogged(): a
		 * poster that sees the flag clear sees the room, too */
		atomic_store_explicit(&lane->backlogged, false,
				      memory_order_release);
		lane->eased = true;
		lane->answering = true;
	}
	if (lane->spill->count == 0)
		/* relaxed: seen late, the flag costs a useless ring */
		atomic_store_explicit(&lane->spilled, false,
				      memory_order_relaxed);
}

bool rt_lane_is_emptying_poller(struct rt_lane *lane)
{
	return lane->spill->count > 0 &&
	       lane_room(lane, lane->spill->count) >= lane->spill->count;
}

uint32_t rt_lane_retry_poller(struct rt_lane *lane)
{
	struct rt_spill *spill = lane->spill;
	uint32_t moved = 0;
	uint32_t count;

	while (spill->count > 0) {
		count = rt_spill_front(spill, lane_room(lane, spill->count));
		if (count == 0)
			break;
		lane_ring_put(lane, &spill->items[spill->first], count);
		rt_spill_drop(spill, count);
		moved += count;
	}
	if (moved == 0)
		return 0;
	lane_note_room(lane);
	rt_lane_release_tail_poller(lane);
	lane_tell_spill(lane);
	lane_ease(lane);
	return moved;
}

void rt_lane_stamp_poller(struct rt_lane *lane, uint64_t ns)
{
	/* acquire: pairs with the release in rt_lane_take_stamp_consumer() */
	if (atomic_load_explicit(&lane->stamp_ns, memory_order_acquire) != 0)
		return;
	lane->stamped = rt_lane_last_poller(lane);
	/* release: pairs with the acquire in rt_lane_take_stamp_consumer():
	 * `stamped` */
	atomic_store_explicit(&lane->stamp_ns, ns, memory_order_release);
}

bool rt_lane_take_eased_poller(struct rt_lane *lane)
{
	bool eased = lane->eased;

	lane->eased = false;
	return eased;
}

uint32_t rt_lane_answer_poller(struct rt_lane *lane, uint32_t max)
{
	uint32_t count = 0;

	/* an answer may bring the backlog back: then the remaining waiters wait
	 * on */
	while (lane->answering && count < max) {
		lane->answering = !rt_lane_is_backlogged(lane) &&
				  rt_waiter_answer(&lane->waiters);
		count += lane->answering;
	}
	return count;
}

bool rt_lane_is_answering_poller(const struct rt_lane *lane)
{
	return lane->answering;
}

bool rt_lane_bell_poller(struct rt_lane *lane)
{
	if (!rt_bell_ring_fenced(lane->consumer))
		return false;
	rt_stat_add(&lane->wakes, 1);
	return true;
}

bool rt_lane_is_spilling_poller(const struct rt_lane *lane)
{
	return lane->spill->count > 0;
}

uint32_t rt_lane_spill_count_poller(const struct rt_lane *lane)
{
	return lane->spill->count;
}

bool rt_lane_arm_spill_poller(struct rt_lane *lane)
{
	if (lane->spill->count == 0)
		return false;
	/* relaxed [LANE-4]: the caller's fence orders the store before the look
	 * at the room; the consumer fences between head and this flag */
	atomic_store_explicit(&lane->spilled, true, memory_order_relaxed);
	return true;
}

bool rt_lane_has_room_poller(struct rt_lane *lane)
{
	/* half of the ring: see "A poller sleeps with a spill" on the page */
	return lane_room(lane, lane->size) >= lane->size / 2;
}

struct rt_spill *rt_lane_swap_spill_poller(struct rt_lane *lane,
					   struct rt_spill *bigger)
{
	struct rt_spill *old = lane->spill;
	uint32_t count;

	if (bigger->entries < old->entries)
		return bigger;
	assert(bigger->count == 0);
	while ((count = rt_spill_front(old, old->count)) > 0) {
		rt_spill_put(bigger, &old->items[old->first], count);
		rt_spill_drop(old, count);
	}
	lane->spill = bigger;
	return old;
}

void rt_lane_take_spill_poller(struct rt_lane *lane, struct rt_spill *bigger)
{
	if (bigger != NULL)
		rt_spill_delete(rt_lane_swap_spill_poller(lane, bigger));
}

/* --------------------------------------------------------- the consumer --- */

static void lane_copy_out(const struct rt_lane *lane,
			  struct rpma_rt_completion *cmpl, uint32_t count)
{
	uint32_t at = lane->head_next & (lane->size - 1);
	uint32_t straight = lane->size - at;

	if (straight > count)
		straight = count;
	memcpy(cmpl, &lane->ring[at], straight * sizeof(*cmpl));
	memcpy(cmpl + straight, lane->ring, (count - straight) * sizeof(*cmpl));
}

/* Returns whether the poller asked to be rung and there is enough room. */
static bool lane_is_ring_due(const struct rt_lane *lane)
{
	/* relaxed [LANE-4]: a consumer that stops taking fences first, and
	 * looks again; a consumer that goes on sees the store in time */
	return atomic_load_explicit(&lane->spilled, memory_order_relaxed) &&
	       lane->tail_seen - lane->head_next <= lane->size / 2;
}

static uint32_t lane_take(struct rt_lane *lane, struct rpma_rt_completion *cmpl,
			  uint32_t max)
{
	uint32_t count = lane->tail_seen - lane->head_next;

	/* a take of fewer items than there are would tear the completions of a
	 * chain apart, which are posted to one by one from then on */
	if (count < max) {
		/* acquire [LANE-1]: pairs with the release of the tail; the
		 * slots below the tail are written */
		lane->tail_seen =
			atomic_load_explicit(&lane->tail, memory_order_acquire);
		count = lane->tail_seen - lane->head_next;
		if (count == 0)
			return 0;
	}
	if (count > max)
		count = max;
	lane_copy_out(lane, cmpl, count);
	lane->head_next += count;
	/* release [LANE-2]: pairs with the acquire of head by the poller: the
	 * reads of the slots come before their reuse */
	atomic_store_explicit(&lane->head, lane->head_next,
			      memory_order_release);
	return count;
}

uint32_t rt_lane_take_consumer(struct rt_lane *lane,
			       struct rpma_rt_completion *cmpl, uint32_t max)
{
	uint32_t count = lane_take(lane, cmpl, max);

	if (count > 0 && lane_is_ring_due(lane))
		rt_bell_ring(lane->poller);
	return count;
}

uint64_t rt_lane_take_stamp_consumer(struct rt_lane *lane)
{
	/* acquire: pairs with the release in rt_lane_stamp_poller() */
	uint64_t ns =
		atomic_load_explicit(&lane->stamp_ns, memory_order_acquire);

	if (ns == 0 || (int32_t)(lane->head_next - lane->stamped) <= 0)
		return 0;
	/* release: pairs with the acquire in rt_lane_stamp_poller(): `stamped`
	 * was read, and belongs to the poller again */
	atomic_store_explicit(&lane->stamp_ns, 0, memory_order_release);
	return ns;
}

void rt_lane_ring_poller_consumer(struct rt_lane *lane)
{
	if (lane_is_ring_due(lane))
		rt_bell_ring_fenced(lane->poller);
}

uint32_t rt_lane_drain_consumer(struct rt_lane *lane,
				struct rpma_rt_completion *cmpl, uint32_t max)
{
	struct rt_spill *spill = lane->spill;
	uint32_t total = 0;
	uint32_t count;

	while (total < max) {
		count = lane_take(lane, cmpl + total, max - total);
		if (count == 0)
			break;
		total += count;
	}
	while (total < max && spill->count > 0) {
		count = rt_spill_front(spill, max - total);
		memcpy(cmpl + total, &spill->items[spill->first],
		       count * sizeof(*cmpl));
		rt_spill_drop(spill, count);
		total += count;
	}
	lane_tell_spill(lane);
	return total;
}

/* ------------------------------------------------------------- left_out --- */

/*
 * Lanes that were left out. Runs on the poller, but for the end of a queue,
 * which may come on any thread: hence the lock.
 */

void rt_left_out_init(struct rt_left_out *list)
{
	/* relaxed: no other thread has the list yet */
	atomic_store_explicit(&list->count, 0, memory_order_relaxed);
	list->by = 0;
	pthread_mutex_init(&list->lock, NULL);
	CDS_INIT_LIST_HEAD(&list->lanes);
}

void rt_left_out_fini(struct rt_left_out *list)
{
	pthread_mutex_destroy(&list->lock);
}

/* REQUIRES: the lock */
static void lane_take_off(struct rt_left_out *list, struct rt_lane *lane)
{
	cds_list_del_init(&lane->left_link);
	/* relaxed: changed under the lock */
	atomic_fetch_sub_explicit(&list->count, 1, memory_order_relaxed);
}

void rt_left_out_add_poller(struct rt_left_out *list, struct rt_lane *lane,
			    uint64_t thread)
{
	pthread_mutex_lock(&list->lock);
	list->by = thread;
	lane->left_out = list;
	if (cds_list_empty(&lane->left_link)) {
		cds_list_add(&lane->left_link, &list->lanes);
		/* relaxed: changed under the lock */
		atomic_fetch_add_explicit(&list->count, 1,
					  memory_order_relaxed);
	}
	pthread_mutex_unlock(&list->lock);
}

bool rt_left_out_is_due_poller(struct rt_left_out *list, uint64_t thread)
{
	struct cds_list_head *at;
	struct cds_list_head *next;
	struct rt_lane *lane;
	bool is_due = false;

	if (rt_left_out_is_empty(list))
		return false;
	pthread_mutex_lock(&list->lock);
	for (at = list->lanes.next; at != &list->lanes; at = next) {
		next = at->next;
		lane = caa_container_of(at, struct rt_lane, left_link);
		if (!rt_lane_is_empty_mt(lane) &&
		    rt_left_out_may(lane, thread)) {
			is_due = true;
			continue;
		}
		/* under the lock, so that the lane's queue is not deleted
		 * before */
		if (!rt_lane_is_empty_mt(lane))
			rt_bell_ring(lane->consumer);
		lane_take_off(list, lane);
	}
	pthread_mutex_unlock(&list->lock);
	return is_due;
}

void rt_left_out_ring_poller(struct rt_left_out *list)
{
	rt_left_out_is_due_poller(list, 0);
}

void rt_left_out_forget(struct rt_lane *lane)
{
	struct rt_left_out *list = lane->left_out;

	if (list == NULL)
		return;
	pthread_mutex_lock(&list->lock);
	if (!cds_list_empty(&lane->left_link))
		lane_take_off(list, lane);
	pthread_mutex_unlock(&list->lock);
}
