/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * lane.h -- a bounded ring of completions from one poller to one consumer, and
 * the spill behind it when the ring is full. The poller writes a batch behind
 * the tail and publishes the batch with one store; the consumer copies out in
 * bulk. Protocol, ordering labels, which calls may run at the same time:
 * doc/protocols/lane.md.
 *
 * A poller's round:
 *	write each completion; on true remember the lane as touched
 *	give credits back; publish every touched lane; retry every lane that
 *	spills
 *	rt_fence_dekker(), once
 *	rt_lane_bell_poller() every lane that was published or retried
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
#include "base/lang.h"
#include "base/order.h"
#include "base/self.h"
#include "base/stats.h"

/* ---------------------------------------------------------------- spill --- */

/* The ring behind a lane that is full: doc/protocols/lane.md, "Memory". */

struct rt_spill {
	uint32_t announced_before; /* of its lane, should it be undone */
	uint32_t entries;
	uint32_t first;
	uint32_t count;
	struct rpma_rt_completion items[];
};

/* entries > 0; NULL: no memory. */
struct rt_spill *rt_spill_new(uint32_t entries);
void rt_spill_delete(struct rt_spill *spill);

/* A place at the end, to be written; NULL: there is no room. */
struct rpma_rt_completion *rt_spill_place(struct rt_spill *spill);
/* Adds at the end; returns for how many there was room. */
uint32_t rt_spill_put(struct rt_spill *spill,
		      const struct rpma_rt_completion *items, uint32_t count);
/* The longest piece from items[first] on that does not wrap, up to max. */
uint32_t rt_spill_front(const struct rt_spill *spill, uint32_t max);
/* Removes so many from the front. */
void rt_spill_drop(struct rt_spill *spill, uint32_t count);

/* --------------------------------------------------------------- waiter --- */

/*
 * What waits for a lane's backlog to clear: a list of the poller's, which lists
 * and answers. doc/protocols/ledger.md, "Waiters of a lane".
 */

struct rt_waiter {
	struct cds_list_head link; /* of a lane's list; empty: not listed */
	void (*eased)(void *arg);
	void *arg;
};

/* NULL: no memory. */
struct rt_waiter *rt_waiter_new(void (*eased)(void *arg), void *arg);
/* Takes the waiter off its list, if the waiter is listed, and frees the waiter.
 * waiter may be NULL. The poller, or before the poller knows the waiter. */
void rt_waiter_delete(struct rt_waiter *waiter);

/* The rest: the poller. */

/* Lists the waiter, unless it is listed: it is answered when the backlog has
 * cleared. A waiter waits for one lane at a time. */
void rt_waiter_add(struct cds_list_head *waiters, struct rt_waiter *waiter);

/* ----------------------------------------------------------------- lane --- */

/* items of a batch, behind the first, whose lines are worth fetching */
#define RT_LANE_LARGE 15

#define RT_LANE_NUMBERS 256 /* reserved route numbers: those of SRQs */

struct rt_left_out;

struct rt_lane {
	/* immutable after init; the flags are written seldom, by the poller */
	alignas(RT_APART) struct rpma_rt_completion *ring;
	struct rt_bell *poller; /* the bells that wake the two */
	struct rt_bell *consumer;
	uint32_t size;		    /* a power of two */
	uint32_t backlog_limit;	    /* entries of the spill */
	_Atomic bool backlogged;    /* posters hold back */
	_Atomic bool spilled;	    /* the consumer rings the bell for room */
	_Atomic uint32_t spill_now; /* items in the spill, for statistics */
	/* a timed batch: its last item, and when it was polled; 0: none. The
	 * poller sets it, the consumer takes it */
	uint32_t stamped;
	_Atomic uint64_t stamp_ns;

	/* the poller's own; after the queue's finish the consumer's */
	alignas(RT_APART) struct rt_spill *spill;
	uint32_t tail_next; /* tail, and what a batch has written behind it */
	/* tail_next behind the first item of the batch: a read of tail would
	 * wait for the consumer's CPU */
	uint32_t begun;
	uint32_t head_seen; /* head, as last read */
	/* tail_next stops here: size behind head_seen; with a spill, which goes
	 * first, where tail_next is */
	uint32_t room_end;
	/* to be counted by the poller */
	uint32_t spilled_new;
	uint32_t lost_new; /* 0, unless a spill was reserved too small */
	bool touched;	   /* written to since the last publish */
	bool eased;	   /* backlogged was cleared, not reported yet */
	bool answering;	   /* and waiters may not have been answered yet */
	bool spill_listed; /* in the poller's list of lanes that spill */
	struct rt_lane *touched_next; /* the poller's list of touched lanes */
	struct rt_mark waits;	      /* read by the dump */
	struct rt_lane *spill_next;
	_Atomic uint64_t wakes; /* of the consumer, for statistics */
	/* the list of lanes that the poller did not ring for, NULL: the lane
	 * was never in it; the link is under the lock of the list */
	struct rt_left_out *left_out;
	struct cds_list_head left_link;
	/* marks left by a writer of items of which a lane gets only one, for
	 * two kinds of them */
	uint64_t marks[2];
	/* reserved route numbers, as bits: those whose items came in this
	 * batch; those that it holds up while it is over its limit */
	uint64_t from_numbers[RT_LANE_NUMBERS / 64];
	uint64_t held_numbers[RT_LANE_NUMBERS / 64];

	/* the poller's: what waits for the end of a backlog */
	struct cds_list_head waiters;

	/* openers', under the runtime's lock */
	uint32_t reserved;  /* entries owed, beyond backlog_limit */
	uint32_t announced; /* entries of the largest spill made so far */
	/* connections whose receives lead here, by their SRQ's number */
	uint16_t number_users[RT_LANE_NUMBERS];

	/* written by the poller, read by the consumer */
	alignas(RT_APART) _Atomic uint32_t tail; /* items published */
	/* by which thread, in manual mode, unless takes are timed: compared
	 * only, it may have ended */
	_Atomic(const struct rt_self *) by;

	/* written by the consumer, read by the poller */
	alignas(RT_APART) _Atomic uint32_t head; /* items taken */

	/* the consumer's own */
	alignas(RT_APART) uint32_t head_next; /* = head */
	uint32_t tail_seen;		      /* tail, as last read */
};

/* The first spill has room for backlog_limit entries. ERRORS: RPMA_E_NOMEM */
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

/* Is there a place in the ring itself, as far as the poller knows, and no spill
 * that goes first? */
static inline bool rt_lane_has_place_poller(const struct rt_lane *lane)
{
	return lane->tail_next != lane->room_end;
}

static inline struct rpma_rt_completion *
rt_lane_place_poller(const struct rt_lane *lane)
{
	return &lane->ring[lane->tail_next & (lane->size - 1)];
}

/* After a look at the head, or in the spill, which may raise the backlog
 * flag. */
__attribute__((cold)) struct rpma_rt_completion *
rt_lane_find_slot_poller(struct rt_lane *lane);

/*
 * A place for the next completion, to be written before the next call on this
 * lane; nobody sees the completion before rt_lane_publish_poller(). Credits are
 * given back between the two: a thread that takes a completion finds its credit
 * free, and the backlog flag that its completion raised is set.
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
	/* release [LANE-1]: publishes the slots to the acquire in take */
	atomic_store_explicit(&lane->tail, lane->tail_next,
			      memory_order_release);
}

/* Before the lane is published, by a poller of manual mode, unless takes are
 * timed: the calling thread may take from it in a straight line. */
static inline void rt_lane_sign_poller(struct rt_lane *lane)
{
	/* relaxed: a hint */
	atomic_store_explicit(&lane->by, &rt_self, memory_order_relaxed);
}

static inline void rt_lane_publish_one_poller(struct rt_lane *lane)
{
	lane->tail_next++;
	rt_lane_release_tail_poller(lane);
}

/* True once between two publishes: the caller remembers the lane. */
static inline bool rt_lane_touch_poller(struct rt_lane *lane)
{
	bool first = !lane->touched;

	/* the consumer has it: fetched back while the batch is routed */
	if (first) {
		lane->begun = lane->tail_next;
		__builtin_prefetch((const void *)&lane->tail, 1);
	}
	lane->touched = true;
	return first;
}

/* Writes one completion; true: the first since the last publish. */
static inline bool rt_lane_write_poller(struct rt_lane *lane,
					const struct rpma_rt_completion *cmpl)
{
	*rt_lane_slot_poller(lane) = *cmpl;
	return rt_lane_touch_poller(lane);
}

/* Fetches the lines that the next batch will be written to, should the batch
 * have as many items: all lines at once, for the stores of a batch wait for one
 * line after the other, and the consumer has the lines. */
__attribute__((noinline)) void rt_lane_fetch_poller(const struct rt_lane *lane,
						    uint32_t count);

/* Shows the consumer what was written to the ring: the tail is released once
 * for all of it. */
static inline void rt_lane_publish_poller(struct rt_lane *lane)
{
	uint32_t count = lane->tail_next - lane->begun;

	lane->touched = false;
	rt_lane_release_tail_poller(lane);
	if (count >= RT_LANE_LARGE)
		rt_lane_fetch_poller(lane, count + 1);
}

/* Spill -> ring as room allows; returns how many moved. */
uint32_t rt_lane_retry_poller(struct rt_lane *lane);

/* The items written since the last publish were polled at ns; before they are
 * published. */
void rt_lane_stamp_poller(struct rt_lane *lane, uint64_t ns);

/* The number of the last item that was written. */
static inline uint32_t rt_lane_last_poller(const struct rt_lane *lane)
{
	return lane->tail_next + lane->spill->count - 1;
}

/* The item of that number was polled at about ms; it and what came before it
 * are published after this. */
static inline void rt_lane_date_poller(struct rt_lane *lane, uint32_t number,
				       uint32_t ms)
{
	if (rt_mark_date(&lane->waits, ms))
		/* relaxed: a statistic; the consumer's line, once a second */
		rt_mark_put(&lane->waits, number, ms,
			    atomic_load_explicit(&lane->head,
						 memory_order_relaxed));
}

/* The waiter is answered after the backlog has cleared. */
static inline void rt_lane_wait_poller(struct rt_lane *lane,
				       struct rt_waiter *waiter)
{
	rt_waiter_add(&lane->waiters, waiter);
}

/* True once after the backlog flag was cleared. */
bool rt_lane_take_eased_poller(struct rt_lane *lane);
/* After the fence that followed: answers waiters, up to max; how many. */
uint32_t rt_lane_answer_poller(struct rt_lane *lane, uint32_t max);
/* There may be waiters still, and no new backlog to wait for. */
/* The next retry empties the spill. */
bool rt_lane_is_emptying_poller(struct rt_lane *lane);
bool rt_lane_is_answering_poller(const struct rt_lane *lane);

/* After the caller's rt_fence_dekker(): wakes the consumer if it sleeps
 * (true); the last thing the poller does with the lane in a round. */
bool rt_lane_bell_poller(struct rt_lane *lane);

bool rt_lane_is_spilling_poller(const struct rt_lane *lane);
/* Items in the spill. */
uint32_t rt_lane_spill_count_poller(const struct rt_lane *lane);

/*
 * Before the poller sleeps, for each lane that spills: asks the consumer to
 * ring for room. True if it spills. Then once for all rt_bell_prepare(), which
 * fences, then rt_lane_has_room_poller(): room means do not sleep but retry.
 */
bool rt_lane_arm_spill_poller(struct rt_lane *lane);
bool rt_lane_has_room_poller(struct rt_lane *lane);

/* Moves the spill's content into bigger; the old one is the caller's, to free
 * elsewhere. A spill that is smaller than the old one comes back itself. */
struct rt_spill *rt_lane_swap_spill_poller(struct rt_lane *lane,
					   struct rt_spill *bigger);
/* The same, and the old one is freed; bigger may be NULL. */
void rt_lane_take_spill_poller(struct rt_lane *lane, struct rt_spill *bigger);

/* ----------------------------------------------------------- any poster --- */

/* A poster, after it acquired its credit [LANE-5]. */
static inline bool rt_lane_is_backlogged(const struct rt_lane *lane)
{
	/* acquire: pairs with the clear in rt_lane_retry_poller(), so that a
	 * poster goes on only after the room was made; that a set flag is seen
	 * comes from the acquire of the retired count before this [LANE-5].
	 * Unseen: the room is the lane's, no data of the program */
	return rt_load_unseen(&lane->backlogged, memory_order_acquire);
}

/* Nothing published and not taken, as far as the caller sees. */
static inline bool rt_lane_is_empty_mt(const struct rt_lane *lane)
{
	/* acquire [LANE-1]: for the consumer; to others it is a hint. Unseen:
	 * a take of the items acquires the tail again */
	return rt_load_unseen(&lane->tail, memory_order_acquire) ==
	       /* relaxed: the consumer's own, or a hint */
	       atomic_load_explicit(&lane->head, memory_order_relaxed);
}

/* Items published or spilled and not taken; a statistic. */
static inline uint32_t rt_lane_count_mt(const struct rt_lane *lane)
{
	/* relaxed: head first, so that the difference is none too small */
	uint32_t head = atomic_load_explicit(&lane->head, memory_order_relaxed);
	/* acquire: after the head */
	uint32_t tail = atomic_load_explicit(&lane->tail, memory_order_acquire);

	/* relaxed: statistic, orders nothing */
	return tail - head +
	       atomic_load_explicit(&lane->spill_now, memory_order_relaxed);
}

/* Any thread: does an item wait, and since when at least, in ms? */
static inline bool rt_lane_waits_mt(const struct rt_lane *lane,
				    uint32_t *since_ms)
{
	/* relaxed: what is taken meanwhile is still counted as there, and by
	 * the mark as well */
	uint32_t head = atomic_load_explicit(&lane->head, memory_order_relaxed);

	/* acquire [LANE-1]: the date of what is published. Without that, what
	 * a spill has may be newer than the date */
	if (atomic_load_explicit(&lane->tail, memory_order_acquire) == head)
		return false;
	*since_ms = rt_mark_since(&lane->waits, head);
	return true;
}

/* When the last item was written. */
static inline uint32_t rt_lane_dated_mt(const struct rt_lane *lane)
{
	return rt_mark_last(&lane->waits);
}

/* --------------------------------------------------------- the consumer --- */

/* Up to max items in order; how many. Rings the poller if that made room it
 * sleeps for. */
uint32_t rt_lane_take_consumer(struct rt_lane *lane,
			       struct rpma_rt_completion *cmpl, uint32_t max);
/* After finish: likewise from ring, then spill. */
uint32_t rt_lane_drain_consumer(struct rt_lane *lane,
				struct rpma_rt_completion *cmpl, uint32_t max);
/* When the timed batch was polled whose last item has been taken; 0: none. */
uint64_t rt_lane_take_stamp_consumer(struct rt_lane *lane);
/* After the consumer's rt_fence_dekker(), having found the lane empty: if the
 * poller sleeps on its spill, rings it [LANE-4]. */
void rt_lane_ring_poller_consumer(struct rt_lane *lane);

/* ------------------------------------------------------------- left_out --- */

/*
 * Lanes whose consumer a poller of manual mode did not ring: the thread that
 * runs the poller is the thread that armed their queue, and polls the queue
 * next. Until then the poller does not sleep. doc/protocols/lane.md, "A ring
 * that is left out".
 */

/* a poller's */
struct rt_left_out {
	_Atomic uint32_t count;	    /* written under the lock */
	uint64_t by;		    /* the thread that left them out */
	pthread_mutex_t lock;	    /* a leaf: the poller, and delete */
	struct cds_list_head lanes; /* under it */
};

void rt_left_out_init(struct rt_left_out *list);
void rt_left_out_fini(struct rt_left_out *list);

/* After the poller's fence, in place of rt_lane_bell_poller(), for a thread
 * that runs it by hand: may its ring be left out? */
static inline bool rt_left_out_may(const struct rt_lane *lane, uint64_t thread)
{
	return thread != 0 && rt_bell_is_armed_by(lane->consumer, thread);
}
void rt_left_out_add_poller(struct rt_left_out *list, struct rt_lane *lane,
			    uint64_t thread);

/* Before that thread sleeps: are there items that it did not take? Rings the
 * thread that is to take them now, if that is another. */
bool rt_left_out_is_due_poller(struct rt_left_out *list, uint64_t thread);
/* Another thread runs the poller next, or none does: rings all lanes. */
void rt_left_out_ring_poller(struct rt_left_out *list);

static inline bool rt_left_out_is_empty(const struct rt_left_out *list)
{
	/* relaxed: only the poller adds */
	return atomic_load_explicit(&list->count, memory_order_relaxed) == 0;
}

/* The lane's queue is deleted: no poller writes to the lane any more. */
void rt_left_out_forget(struct rt_lane *lane);

#endif /* RT_QUEUE_LANE_H */
