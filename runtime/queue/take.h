/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/* take.h -- taking from a queue. The callers make sure that a single thread
 * consumes. */

#ifndef RT_QUEUE_TAKE_H
#define RT_QUEUE_TAKE_H

#include <stdbool.h>
#include <stdint.h>

#include "rpma_rt.h"
#include "base/clock.h"
#include "base/lang.h"
#include "base/self.h"
#include "queue/impl.h"

/* ----------------------------------------------------------------- take --- */

/* The outcome of a take or a look that found nothing. */
enum rt_take_end {
	RT_TAKE_EMPTY,
	RT_TAKE_SOME,  /* of a look only: there is something to take */
	RT_TAKE_BUSY,  /* a pusher is inside a closed queue */
	RT_TAKE_WOKEN, /* only a wake of rpma_rt_queue_wake() was found */
	RT_TAKE_CLOSED
};

/* Takes up to max items from all sources, beginning with another source each
 * time. Thread: the consumer, or the thread that deletes the queue. */
uint32_t rt_queue_take_consumer(struct rpma_rt_queue *queue,
				struct rpma_rt_completion *cmpl, uint32_t max);
/* Finishes a take of `count` items: drops the tokens of joints. If all items
 * were tokens, takes again. */
uint32_t rt_queue_take_tokens_consumer(struct rpma_rt_queue *queue,
				       struct rpma_rt_completion *cmpl,
				       uint32_t count, uint32_t max);
/* Polls: takes items. If there are no items, stores why, and rings pollers that
 * sleep with a spill. */
uint32_t rt_queue_poll_consumer(struct rpma_rt_queue *queue,
				struct rpma_rt_completion *cmpl, uint32_t max,
				enum rt_take_end *why);
/* Takes again, for a consumer that is about to sleep, after the consumer's
 * fence. Without items stores why, and rings pollers that sleep with a
 * spill. */
uint32_t rt_queue_take_again_consumer(struct rpma_rt_queue *queue,
				      struct rpma_rt_completion *cmpl,
				      uint32_t max, enum rt_take_end *why);
/* Looks as rt_queue_take_again_consumer() does, without taking. Returns
 * RT_TAKE_EMPTY if a take would find nothing. */
enum rt_take_end rt_queue_look_consumer(struct rpma_rt_queue *queue);

/* Logs that a take found the end of the queue. Returns RPMA_RT_E_CLOSED. */
int rt_queue_refuse_closed(const struct rpma_rt_queue *queue);

/* Returns when a wait of this length ends, in terms of rt_now_ns(); -1:
 * never */
static inline int64_t rt_queue_end_ns(int64_t timeout_ns)
{
	return timeout_ns < 0 ? -1 : (int64_t)rt_now_ns() + timeout_ns;
}

/* ------------------------------------------------------------ straight --- */

/*
 * For a round whose completions go straight to the consumer: poller/take.c.
 */

/* Returns the poller that fills the queue alone. NULL: no such poller. */
static inline struct rt_owned *
rt_queue_filler(const struct rpma_rt_queue *queue)
{
	/* acquire [LANE-6]: pairs with the release in
	 * queue_set_filler_locked(): the lane is whole. Unseen by the
	 * sanitizer: the array of lanes is no data of the program */
	return rt_load_unseen(&queue->filler, memory_order_acquire);
}

/* Returns whether items may go past the queue: nothing but the lane may have
 * items, and no other thread consumes. Beside another consumer the call is
 * refused, but not here. */
static inline bool rt_queue_may_pass(struct rpma_rt_queue *queue)
{
	return rt_keep_is_free(&queue->alone) &&
	       rt_mpsc_is_empty_owner(&queue->messages) &&
	       !rt_queue_has_tokens(queue);
}

/* Returns whether the caller is a function of a round whose items go straight
 * to the consumer: what is in the queue comes after these items. */
static inline bool rt_queue_is_in_hand(const struct rpma_rt_queue *queue)
{
	/* relaxed: written by the consumer only, who calls the function */
	return atomic_load_explicit(&queue->in_hand, memory_order_relaxed);
}

static inline void rt_queue_set_in_hand(struct rpma_rt_queue *queue,
					bool in_hand)
{
	/* relaxed: as above */
	atomic_store_explicit(&queue->in_hand, in_hand, memory_order_relaxed);
}

/* Waits in any way; checks the arguments. */
int rt_queue_wait_any(struct rpma_rt_queue *queue,
		      struct rpma_rt_completion *cmpl, int max, int timeout_ms);
/* Ends a wait without a timeout whose round gave the caller nothing. */
int rt_queue_wait_no_more(struct rpma_rt_queue *queue,
			  struct rpma_rt_completion *cmpl, int max);

/* ---------------------------------------------------------------- count --- */

/*
 * Statistics of a consumer's calls. Inline, because each call that takes from a
 * queue counts.
 */

#define RT_LOOKS_A_DATE 64
#define RT_TAKES_A_DATE 16

/* Records how long a wake-up took, after a call that may have slept. */
static inline void rt_queue_time_wakeup(struct rpma_rt_queue *queue)
{
	uint64_t ns;

	if (!queue->bell.timed)
		return;
	ns = rt_bell_take_rung_ns(&queue->bell);
	if (ns != 0)
		rt_histogram_add_mt(&queue->wakeup, rt_now_ns() - ns);
}

static inline void rt_queue_count(const struct rpma_rt_queue *queue,
				  _Atomic uint64_t *stat, uint64_t n)
{
	if (queue->params.shared)
		rt_stat_add_mt(stat, n);
	else
		rt_stat_add(stat, n);
}

/* Notes that the calling thread is the consumer from here on. */
static inline void rt_queue_go_in(struct rpma_rt_queue *queue)
{
	/* relaxed: statistic, orders nothing */
	atomic_store_explicit(&queue->inside, rt_self_tid(),
			      memory_order_relaxed);
}

/* Notes that the calling thread, whose tid is known, looked or took at `ms`. */
static inline void rt_queue_date_at(_Atomic uint64_t *when, uint32_t ms)
{
	/* relaxed: statistic, orders nothing */
	atomic_store_explicit(when, (uint64_t)rt_self_known_tid() << 32 | ms,
			      memory_order_relaxed);
}

/* Notes that the calling thread looked or took now. */
static inline void rt_queue_date(_Atomic uint64_t *when)
{
	(void)rt_self_tid();
	rt_queue_date_at(when, rt_now_ms());
}

/* Notes that the calling thread found nothing now, after many looks or a
 * wait. */
static inline void rt_queue_date_look(struct rpma_rt_queue *queue)
{
	rt_queue_date(&queue->stats.last_look);
	/* relaxed: statistic, orders nothing */
	atomic_store_explicit(&queue->stats.date_due, true,
			      memory_order_relaxed);
}

/* Notes that the calling thread will sleep. */
static inline void rt_queue_count_sleep(struct rpma_rt_queue *queue)
{
	rt_stat_add_mt(&queue->stats.sleeps, 1);
	/* relaxed: statistic, orders nothing */
	atomic_store_explicit(&queue->stats.date_due, true,
			      memory_order_relaxed);
}

/* Notes that the calling thread took something now. */
static inline void rt_queue_date_take(struct rpma_rt_queue *queue)
{
	/* relaxed: statistic, orders nothing */
	atomic_store_explicit(&queue->stats.date_due, false,
			      memory_order_relaxed);
	rt_queue_date(&queue->stats.last_take);
}

/* Returns the number of calls that found something: calls that went inside
 * minus the empty calls. The empty calls are read first, because a call counts
 * first as a call, then as empty. */
static inline uint64_t rt_queue_batches(const struct rpma_rt_queue *queue)
{
	uint64_t empty = rt_stat_read(&queue->stats.empty);

	return rt_stat_read(&queue->stats.polls) +
	       rt_stat_read(&queue->stats.waits) - empty;
}

/*
 * Returns whether a take has to be dated. A take is dated after a dated look,
 * after a sleep, and otherwise every RT_TAKES_A_DATE times: where items come
 * all the time, reading the clock would cost more than all the other
 * statistics.
 */
static inline bool rt_queue_is_date_due(const struct rpma_rt_queue *queue)
{
	/* relaxed: statistic, orders nothing */
	return atomic_load_explicit(&queue->stats.date_due,
				    memory_order_relaxed) ||
	       rt_queue_batches(queue) % RT_TAKES_A_DATE == 1;
}

/* Counts a call and the number of items that the call found. Called by a
 * consumer; of a shared queue by any of its consumers. */
static inline void rt_queue_count_take(struct rpma_rt_queue *queue,
				       _Atomic uint64_t *calls, uint32_t count)
{
	rt_queue_count(queue, calls, 1);
	if (count == 0) {
		rt_queue_count(queue, &queue->stats.empty, 1);
		if (calls == &queue->stats.waits ||
		    rt_stat_read(&queue->stats.empty) % RT_LOOKS_A_DATE == 0)
			rt_queue_date_look(queue);
		return;
	}
	rt_queue_count(queue, &queue->stats.taken, count);
	if (rt_queue_is_date_due(queue))
		rt_queue_date_take(queue);
}

/* ----------------------------------------------------------------- idle --- */

/*
 * A poll that finds nothing and does not go inside. Inline, because loops poll
 * without end.
 */

/* of so many idle polls a single poll is dated for the dump */
#define RT_IDLE_POLLS_A_LOOK 1024

/* Dates a look of the calling thread. */
void rt_queue_date_idle(struct rpma_rt_queue *queue);

static inline void rt_queue_count_idle(struct rpma_rt_queue *queue)
{
	if (unlikely(rt_stat_count(&queue->stats.idle_polls) %
			     RT_IDLE_POLLS_A_LOOK ==
		     0))
		rt_queue_date_idle(queue);
}

/* Returns whether the first `lanes` lanes are empty. */
static inline bool rt_queue_lanes_are_empty(const struct rpma_rt_queue *queue,
					    uint32_t lanes)
{
	uint32_t i;

	for (i = 0; i < lanes; i++) {
		if (!rt_lane_is_empty_mt(queue->lanes[i]))
			return false;
	}
	return true;
}

/*
 * Returns whether a poll of a queue that is not shared would return 0 without
 * entering: nothing is there to take, nothing is owed to pollers, no consumer
 * is inside, and the queue is not closed. Later items are found by the next
 * poll, or by the second look of a sleeping consumer. REQUIRES: the lanes are
 * empty
 */
static inline bool rt_queue_is_idle(const struct rpma_rt_queue *queue)
{
	/* relaxed: a consumer that enters looks again; no items are read
	 * here */
	return !atomic_load_explicit(&queue->owes_pollers,
				     memory_order_relaxed) &&
	       rt_keep_is_free(&queue->alone) &&
	       rt_mpsc_is_empty_owner(&queue->messages) &&
	       !atomic_load_explicit(&queue->is_closed, memory_order_relaxed);
}

/* Does a poll without items. Returns false if there may be something to take:
 * rpma_rt_queue_poll() has to be called then. */
static inline bool rt_queue_poll_idle_consumer(struct rpma_rt_queue *queue)
{
	/* acquire [LANE-6]: the lanes are initialised. Unseen by the sanitizer:
	 * the array of lanes is no data of the program */
	uint32_t lanes =
		rt_load_unseen(&queue->lane_count, memory_order_acquire);

	if (queue->goes_in || !rt_queue_lanes_are_empty(queue, lanes) ||
	    !rt_queue_is_idle(queue))
		return false;
	rt_queue_count_idle(queue);
	return true;
}

/* ---------------------------------------------------------------- alone --- */

/* The calls for a queue with a single consumer at a time. */

/* Arms the fd. RT_TAKE_EMPTY: armed, the next ring makes the fd readable.
 * ERRORS: RPMA_RT_E_BUSY (another thread is inside) */
int rt_alone_arm(struct rpma_rt_queue *queue, enum rt_take_end *end);

/* --------------------------------------------------------------- shared --- */

/* The calls for a queue that several workers share. */

/* Take up to max items; return their number, and for 0 store why. end_ns: when
 * the wait ends, in terms of rt_now_ns(); < 0: never. spins: the caller spins
 * before it sleeps. */
uint32_t rt_shared_poll(struct rpma_rt_queue *queue,
			struct rpma_rt_completion *cmpl, uint32_t max,
			enum rt_take_end *why);
uint32_t rt_shared_wait(struct rpma_rt_queue *queue,
			struct rpma_rt_completion *cmpl, uint32_t max,
			int64_t end_ns, bool spins, enum rt_take_end *why);
/* Arms the fd. RT_TAKE_EMPTY: armed, the next ring makes the fd readable. */
enum rt_take_end rt_shared_arm(struct rpma_rt_queue *queue);

#endif /* RT_QUEUE_TAKE_H */
