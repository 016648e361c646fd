/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * lane.h -- a bounded ring of completions from a poller to a consumer, and the
 * spill behind a full ring. The poller writes a batch behind the tail and
 * publishes the batch with a single store; the consumer copies items out in
 * bulk. Protocol, ordering labels, which calls may run at the same time:
 * doc/protocols/lane.md.
 *
 * A poller's round:
 * 	write each completion; on true remember the lane as touched
 * 	give credits back; publish every touched lane; retry every lane that
 * 	spills
 * 	rt_fence_dekker(), once
 * 	rt_lane_bell_poller() every lane that was published or retried
 */

#ifndef RT_QUEUE_LANE_H
#define RT_QUEUE_LANE_H

#include <pthread.h>
#include <stdalign.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include <urcu/list.h>

#include "rpma_rt.h"
#include "base/bell.h"
#include "base/keep.h"
#include "base/lang.h"
#include "base/order.h"
#include "base/self.h"
#include "base/stats.h"

/* ---------------------------------------------------------------- spill --- */

/* The spill: a ring behind a full lane. doc/protocols/lane.md, "Memory". */

struct rt_spill {
	/* value of lane.announced before this spill, to undo the reservation */
	uint32_t announced_before;
	uint32_t entries;
	uint32_t first;
	uint32_t count;
	struct rpma_rt_completion items[];
};

/* Makes a spill; entries > 0. NULL: no memory. */
struct rt_spill *rt_spill_new(uint32_t entries);
void rt_spill_delete(struct rt_spill *spill);

/* Returns a place at the end, to be written; NULL: the spill is full. */
struct rpma_rt_completion *rt_spill_place(struct rt_spill *spill);
/* Adds items at the end; returns for how many items there was room. */
uint32_t rt_spill_put(struct rt_spill *spill,
		      const struct rpma_rt_completion *items, uint32_t count);
/* Returns the length of the longest piece from items[first] on that does not
 * wrap, up to max. */
uint32_t rt_spill_front(const struct rt_spill *spill, uint32_t max);
/* Removes `count` items from the front. */
void rt_spill_drop(struct rt_spill *spill, uint32_t count);

/* --------------------------------------------------------------- waiter --- */

/*
 * A waiter: an object that waits until a lane's backlog clears, in a list of
 * the poller, which lists and answers waiters. doc/protocols/ledger.md,
 * "Waiters of a lane".
 */

struct rt_waiter {
	/* in the list of a lane; empty: not listed */
	struct cds_list_head link;
	void (*eased)(void *arg);
	void *arg;
};

/* Makes a waiter. NULL: no memory. */
struct rt_waiter *rt_waiter_new(void (*eased)(void *arg), void *arg);
/* Takes the waiter off its list, if listed, and frees the waiter. waiter may be
 * NULL. On the poller, or before the poller knows the waiter. */
void rt_waiter_delete(struct rt_waiter *waiter);

/* The following runs on the poller. */

/* Lists the waiter, if not listed yet: the waiter is answered when the backlog
 * has cleared. A waiter waits for a single lane at a time. */
void rt_waiter_add(struct cds_list_head *waiters, struct rt_waiter *waiter);

/* ----------------------------------------------------------------- lane --- */

/* least number of items in a batch, behind the first item, for which fetching
 * lines pays */
#define RT_LANE_LARGE 15

/* number of reserved route numbers, which SRQs use */
#define RT_LANE_NUMBERS 256

struct rt_left_out;

struct rt_lane {
	/* immutable after init; the poller writes the flags seldom */
	alignas(RT_APART) struct rpma_rt_completion *ring;
	struct rt_bell *poller; /* the bells of poller and consumer */
	struct rt_bell *consumer;
	const struct rt_keep *kept; /* the consumer's lock of the queue */
	uint32_t size;		    /* a power of two */
	/* entries of the spill at which posters hold back */
	uint32_t backlog_limit;
	/* the spill is over its limit: posters hold back */
	_Atomic bool backlogged;
	/* the consumer has to ring the poller when there is room */
	_Atomic bool spilled;
	_Atomic uint32_t spill_now; /* items in the spill, for statistics */
	/* stamped: the last item of a timed batch; stamp_ns: when the batch was
	 * polled, 0: no batch is timed. The poller sets the stamp, the consumer
	 * takes the stamp */
	uint32_t stamped;
	_Atomic uint64_t stamp_ns;

	/* used by the poller only; after the queue's finish by the consumer */
	alignas(RT_APART) struct rt_spill *spill;
	/* the next slot: tail plus the items of the batch */
	uint32_t tail_next;
	/* tail_next behind the first item of the batch: reading tail would wait
	 * for the consumer's CPU */
	uint32_t begun;
	uint32_t head_seen; /* value of head when last read */
	/* tail_next stops here: at head_seen + size; with a spill, which goes
	 * first, at tail_next itself */
	uint32_t room_end;
	/* items that the poller has not counted yet */
	uint32_t spilled_new;
	/* lost items; 0 unless the spill was reserved too small */
	uint32_t lost_new;
	bool touched; /* written to since the last publish */
	/* backlogged was cleared, which was not reported yet */
	bool eased;
	/* backlogged was cleared, and waiters may not have been answered yet */
	bool answering;
	/* the lane is in the poller's list of spilling lanes */
	bool spill_listed;
	struct rt_lane *touched_next; /* list of the poller's touched lanes */
	struct rt_mark waits;	      /* read by the dump */
	struct rt_lane *spill_next;
	_Atomic uint64_t wakes; /* wake-ups of the consumer, for statistics */
	/* the list of lanes for which the poller did not ring, NULL: the lane
	 * was never listed; left_link is under the lock of the list */
	struct rt_left_out *left_out;
	struct cds_list_head left_link;
	/* marks of writers whose item comes only once into each lane, for two
	 * kinds of items */
	uint64_t marks[2];
	/* bits of reserved route numbers. from_numbers: numbers with items in
	 * this batch; held_numbers: numbers that the lane holds up while it is
	 * over its limit */
	uint64_t from_numbers[RT_LANE_NUMBERS / 64];
	uint64_t held_numbers[RT_LANE_NUMBERS / 64];

	/* used by the poller only: objects that wait for the end of a
	 * backlog */
	struct cds_list_head waiters;

	/* used by openers, under the runtime's lock: */
	/* reserved entries of the spill, beyond backlog_limit */
	uint32_t reserved;
	uint32_t announced; /* entries of the largest spill made so far */
	/* by the number of an SRQ: connections whose receives lead to this
	 * lane */
	uint16_t number_users[RT_LANE_NUMBERS];

	/* written by the poller, read by the consumer */
	alignas(RT_APART) _Atomic uint32_t tail; /* number of published items */
	/* the thread that published last, in manual mode, unless takes are
	 * timed. Only compared, because the thread may have ended */
	_Atomic(const struct rt_self *) by;

	/* written by the consumer, read by the poller */
	alignas(RT_APART) _Atomic uint32_t head; /* number of taken items */

	/* used by the consumer only: */
	alignas(RT_APART) uint32_t head_next; /* value of head */
	uint32_t tail_seen;		      /* value of tail when last read */
};

/* Initialises a lane, whose first spill has room for backlog_limit entries.
 * ERRORS: RPMA_E_NOMEM */
int rt_lane_init(struct rt_lane *lane, struct rt_bell *poller,
		 struct rt_bell *consumer, uint32_t size,
		 uint32_t backlog_limit);
void rt_lane_fini(struct rt_lane *lane);

/* ---------------------------------------------------- the owning poller --- */

/* Fills a slot by two wide stores. */
static inline void rt_lane_fill_slot(struct rpma_rt_completion *slot,
				     const struct rpma_rt_completion *cmpl)
{
	rt_two_words *to = (rt_two_words *)slot;

	to[0] = (rt_two_words){cmpl->context, (uint64_t)(uintptr_t)cmpl->user};
#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
	to[1] = (rt_two_words){
		cmpl->byte_len | (uint64_t)cmpl->imm << 32,
		cmpl->qp_num | (uint64_t)cmpl->kind << 32 |
			(uint64_t)cmpl->status << 40 |
			(uint64_t)cmpl->opcode << 48 |
			(uint64_t)cmpl->flags << 56,
	};
#else
	to[1] = (rt_two_words){
		cmpl->imm | (uint64_t)cmpl->byte_len << 32,
		(uint64_t)cmpl->qp_num << 32 | (uint64_t)cmpl->kind << 24 |
			(uint64_t)cmpl->status << 16 |
			(uint64_t)cmpl->opcode << 8 | cmpl->flags,
	};
#endif
}

/* Returns whether the ring has a free slot, as far as the poller knows, and no
 * spill goes first. */
static inline bool rt_lane_has_place_poller(const struct rt_lane *lane)
{
	return lane->tail_next != lane->room_end;
}

static inline struct rpma_rt_completion *
rt_lane_place_poller(const struct rt_lane *lane)
{
	return &lane->ring[lane->tail_next & (lane->size - 1)];
}

/* Returns a slot after reading head again, or a place in the spill, which may
 * raise the backlog flag. */
__attribute__((cold)) struct rpma_rt_completion *
rt_lane_find_slot_poller(struct rt_lane *lane);

/*
 * Returns a slot for the next completion, to be written before the next call on
 * this lane. The consumer sees the completion after rt_lane_publish_poller().
 * Credits are given back between the two calls: a thread that takes a
 * completion finds its credit free, and sees the backlog flag that its
 * completion raised.
 */
static inline struct rpma_rt_completion *
rt_lane_slot_poller(struct rt_lane *lane)
{
	if (__builtin_expect(!rt_lane_has_place_poller(lane), 0))
		return rt_lane_find_slot_poller(lane);
	return &lane->ring[lane->tail_next++ & (lane->size - 1)];
}

static inline void rt_lane_release_tail_poller(struct rt_lane *lane)
{
	/* release [LANE-1]: pairs with the acquire of the consumer's take:
	 * publishes the slots */
	atomic_store_explicit(&lane->tail, lane->tail_next,
			      memory_order_release);
}

/* Notes the calling thread, before the lane is published, on a poller of manual
 * mode without timed takes: the thread may take from the lane in a straight
 * line. */
static inline void rt_lane_sign_poller(struct rt_lane *lane)
{
	/* relaxed: a hint, which orders nothing */
	atomic_store_explicit(&lane->by, &rt_self, memory_order_relaxed);
}

static inline void rt_lane_publish_one_poller(struct rt_lane *lane)
{
	lane->tail_next++;
	rt_lane_release_tail_poller(lane);
}

/* Returns true once between two publishes: the caller remembers the lane. */
static inline bool rt_lane_touch_poller(struct rt_lane *lane)
{
	bool first = !lane->touched;

	/* the consumer has the line, which is fetched back while the batch is
	 * routed */
	if (first) {
		lane->begun = lane->tail_next;
		__builtin_prefetch((const void *)&lane->tail, 1);
	}
	lane->touched = true;
	return first;
}

/* Writes a completion. Returns true for the first completion since the last
 * publish. */
static inline bool rt_lane_write_poller(struct rt_lane *lane,
					const struct rpma_rt_completion *cmpl)
{
	*rt_lane_slot_poller(lane) = *cmpl;
	return rt_lane_touch_poller(lane);
}

/* Fetches the lines to which the next batch will be written, if that batch has
 * as many items: all lines at once, because the stores of a batch would wait
 * for line after line, and the consumer has the lines. */
__attribute__((noinline)) void rt_lane_fetch_poller(const struct rt_lane *lane,
						    uint32_t count);

/* Publishes the items in the ring: the tail is released once for all items. */
static inline void rt_lane_publish_poller(struct rt_lane *lane)
{
	uint32_t count = lane->tail_next - lane->begun;

	lane->touched = false;
	rt_lane_release_tail_poller(lane);
	if (count >= RT_LANE_LARGE)
		rt_lane_fetch_poller(lane, count + 1);
}

/* Moves items from the spill to the ring as room allows; returns the number of
 * items. */
uint32_t rt_lane_retry_poller(struct rt_lane *lane);

/* Notes that the items written since the last publish were polled at ns. Called
 * before the items are published. */
void rt_lane_stamp_poller(struct rt_lane *lane, uint64_t ns);

/* Returns the number of the item that was written last. */
static inline uint32_t rt_lane_last_poller(const struct rt_lane *lane)
{
	return lane->tail_next + lane->spill->count - 1;
}

/* Notes that the item with the number was polled at about ms. The item, and all
 * earlier items, are published afterwards. */
static inline void rt_lane_date_poller(struct rt_lane *lane, uint32_t number,
				       uint32_t ms)
{
	if (rt_mark_date(&lane->waits, ms))
		/* relaxed: a statistic; reads the consumer's line once a
		 * second */
		rt_mark_put(&lane->waits, number, ms,
			    atomic_load_explicit(&lane->head,
						 memory_order_relaxed));
}

/* Lists a waiter, to be answered when the backlog has cleared. */
static inline void rt_lane_wait_poller(struct rt_lane *lane,
				       struct rt_waiter *waiter)
{
	rt_waiter_add(&lane->waiters, waiter);
}

/* Returns true once after the backlog flag was cleared. */
bool rt_lane_take_eased_poller(struct rt_lane *lane);
/* Answers waiters, up to max, after the fence that followed; returns their
 * number. */
uint32_t rt_lane_answer_poller(struct rt_lane *lane, uint32_t max);
/* Returns whether the next retry empties the spill. */
bool rt_lane_is_emptying_poller(struct rt_lane *lane);
/* Returns whether waiters may be left, and no new backlog has begun. */
bool rt_lane_is_answering_poller(const struct rt_lane *lane);

/* Wakes the consumer if the consumer sleeps, and returns whether it slept.
 * Called after the caller's rt_fence_dekker(); the poller's last access to the
 * lane in a round. */
bool rt_lane_bell_poller(struct rt_lane *lane);

bool rt_lane_is_spilling_poller(const struct rt_lane *lane);
/* Returns the number of items in the spill. */
uint32_t rt_lane_spill_count_poller(const struct rt_lane *lane);

/*
 * rt_lane_arm_spill_poller() asks the consumer to ring for room, and returns
 * whether the lane spills; called for each lane before the poller sleeps. Then,
 * once for all lanes, rt_bell_prepare(), which fences, then
 * rt_lane_has_room_poller(): with room the poller retries and does not sleep.
 */
bool rt_lane_arm_spill_poller(struct rt_lane *lane);
bool rt_lane_has_room_poller(struct rt_lane *lane);

/* Moves the spill's content into `bigger`. Returns the old spill, which the
 * caller frees elsewhere; or `bigger` itself if it is smaller than the old
 * spill. */
struct rt_spill *rt_lane_swap_spill_poller(struct rt_lane *lane,
					   struct rt_spill *bigger);
/* Replaces the spill and frees the old spill; bigger may be NULL. */
void rt_lane_take_spill_poller(struct rt_lane *lane, struct rt_spill *bigger);

/* ----------------------------------------------------------- any poster --- */

/* Returns whether the lane is over its limit. A poster, after acquiring its
 * credit [LANE-5]. */
static inline bool rt_lane_is_backlogged(const struct rt_lane *lane)
{
	/* acquire: pairs with the release of the clear in lane_ease(), so that
	 * a poster goes on only after the room was made; the earlier acquire of
	 * the retired count makes a set flag visible [LANE-5]. Unseen by the
	 * sanitizer: the room belongs to the lane, and is no data of the
	 * program */
	return rt_load_unseen(&lane->backlogged, memory_order_acquire);
}

/* Returns whether no published item is untaken, as far as the caller sees. */
static inline bool rt_lane_is_empty_mt(const struct rt_lane *lane)
{
	/* acquire [LANE-1]: for the consumer; a hint for other threads. Unseen
	 * by the sanitizer: a take of the items acquires the tail again */
	return rt_load_unseen(&lane->tail, memory_order_acquire) ==
	       /* relaxed: the consumer's own word, or a hint */
	       atomic_load_explicit(&lane->head, memory_order_relaxed);
}

/* Returns the number of items that were published or spilled and not taken; a
 * statistic. */
static inline uint32_t rt_lane_count_mt(const struct rt_lane *lane)
{
	/* relaxed: head is read first, so that the difference is never too
	 * small */
	uint32_t head = atomic_load_explicit(&lane->head, memory_order_relaxed);
	/* acquire: after the head */
	uint32_t tail = atomic_load_explicit(&lane->tail, memory_order_acquire);

	/* relaxed: statistic, which orders nothing */
	return tail - head +
	       atomic_load_explicit(&lane->spill_now, memory_order_relaxed);
}

/* Returns whether an item waits, and in *since_ms since when at least, in ms.
 * Any thread. */
static inline bool rt_lane_waits_mt(const struct rt_lane *lane,
				    uint32_t *since_ms)
{
	/* relaxed: an item that is taken meanwhile still counts as waiting,
	 * also in the mark */
	uint32_t head = atomic_load_explicit(&lane->head, memory_order_relaxed);

	/* acquire [LANE-1]: pairs with the release of the tail: the date of
	 * published items. Without published items, items in the spill may be
	 * newer than the date */
	if (atomic_load_explicit(&lane->tail, memory_order_acquire) == head)
		return false;
	*since_ms = rt_mark_since(&lane->waits, head);
	return true;
}

/* Returns when the last item was written. */
static inline uint32_t rt_lane_dated_mt(const struct rt_lane *lane)
{
	return rt_mark_last(&lane->waits);
}

/* --------------------------------------------------------- the consumer --- */

/* Takes up to max items in order; returns their number. Rings the poller if
 * there is now the room for which the poller sleeps. */
uint32_t rt_lane_take_consumer(struct rt_lane *lane,
			       struct rpma_rt_completion *cmpl, uint32_t max);
/* Takes items after finish: from the ring, then from the spill. */
uint32_t rt_lane_drain_consumer(struct rt_lane *lane,
				struct rpma_rt_completion *cmpl, uint32_t max);
/* Returns when the timed batch was polled whose last item has been taken; 0:
 * there is no such batch. */
uint64_t rt_lane_take_stamp_consumer(struct rt_lane *lane);
/* Rings the poller if the poller sleeps with a spill [LANE-4]. Called after the
 * consumer's rt_fence_dekker(), when the lane was found empty. */
void rt_lane_ring_poller_consumer(struct rt_lane *lane);

/* ------------------------------------------------------------- left_out --- */

/*
 * Lanes whose consumer a poller of manual mode did not ring: the thread that
 * runs the poller has armed their queue, and polls the queue next. Until then
 * the poller does not sleep. doc/protocols/lane.md, "A ring that is left out".
 */

/* the lanes of a poller that were left out */
struct rt_left_out {
	_Atomic uint32_t count; /* written under the lock */
	/* number of the thread that left the lanes out */
	uint64_t by;
	/* a leaf: taken by the poller and by a delete */
	pthread_mutex_t lock;
	struct cds_list_head lanes; /* under the lock */
};

void rt_left_out_init(struct rt_left_out *list);
void rt_left_out_fini(struct rt_left_out *list);

/* Returns whether the ring of a lane may be left out. Called after the poller's
 * fence, in place of rt_lane_bell_poller(), for a thread that runs the poller
 * by hand. */
static inline bool rt_left_out_may(const struct rt_lane *lane, uint64_t thread)
{
	return thread != 0 && rt_bell_is_armed_by(lane->consumer, thread);
}
void rt_left_out_add_poller(struct rt_left_out *list, struct rt_lane *lane,
			    uint64_t thread);

/* Returns, before the thread sleeps, whether there are items that the thread
 * did not take. If another thread has to take the items by now, rings that
 * thread. */
bool rt_left_out_is_due_poller(struct rt_left_out *list, uint64_t thread);
/* Rings all lanes: another thread runs the poller next, or no thread does. */
void rt_left_out_ring_poller(struct rt_left_out *list);

static inline bool rt_left_out_is_empty(const struct rt_left_out *list)
{
	/* relaxed: only the poller adds */
	return atomic_load_explicit(&list->count, memory_order_relaxed) == 0;
}

/* Takes a lane off the list, whose queue is deleted: no poller writes to the
 * lane any more. */
void rt_left_out_forget(struct rt_lane *lane);

#endif /* RT_QUEUE_LANE_H */
