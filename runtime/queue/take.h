/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/* take.h -- taking from a queue; the callers decide which thread consumes. */

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

/* How a take that found nothing ends. */
enum rt_take_end {
	RT_TAKE_EMPTY,
	RT_TAKE_SOME,  /* of a look only: there is something */
	RT_TAKE_BUSY,  /* a pusher is inside a closed queue */
	RT_TAKE_WOKEN, /* rpma_rt_queue_wake(), and nothing else */
	RT_TAKE_CLOSED
};

/* Up to max items from all sources, beginning with another one each time.
 * Thread: the consumer, or the one that deletes. */
uint32_t rt_queue_take_consumer(struct rpma_rt_queue *queue,
				struct rpma_rt_completion *cmpl, uint32_t max);
/* The end of a take of so many items: tokens of joints are dropped. If they
 * were all, takes again. */
uint32_t rt_queue_take_tokens_consumer(struct rpma_rt_queue *queue,
				       struct rpma_rt_completion *cmpl,
				       uint32_t count, uint32_t max);
/* A poll: takes; of nothing, says why and rings pollers that sleep on a spill.
 */
uint32_t rt_queue_poll_consumer(struct rpma_rt_queue *queue,
				struct rpma_rt_completion *cmpl, uint32_t max,
				enum rt_take_end *why);
/* The second look of a consumer about to sleep, after its fence: likewise. */
uint32_t rt_queue_take_again_consumer(struct rpma_rt_queue *queue,
				      struct rpma_rt_completion *cmpl,
				      uint32_t max, enum rt_take_end *why);
/* The same without taking: RT_TAKE_EMPTY if a take would find nothing. */
enum rt_take_end rt_queue_look_consumer(struct rpma_rt_queue *queue);

/* RPMA_RT_E_CLOSED, logged: a take that found the end. */
int rt_queue_refuse_closed(const struct rpma_rt_queue *queue);

/* When a wait of that length ends, of rt_now_ns(); -1: never */
static inline int64_t rt_queue_end_ns(int64_t timeout_ns)
{
	return timeout_ns < 0 ? -1 : (int64_t)rt_now_ns() + timeout_ns;
}

/* ---------------------------------------------------------------- count --- */

/*
 * Statistics of a consumer's calls. Inline: each call that takes from a queue
 * counts.
 */

#define RT_LOOKS_A_DATE 64
#define RT_TAKES_A_DATE 16

/* After a call that may have slept: records how long its wake-up took. */
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

/* The calling thread is the consumer from here on. */
static inline void rt_queue_go_in(struct rpma_rt_queue *queue)
{
	/* relaxed: statistic, orders nothing */
	atomic_store_explicit(&queue->inside, rt_self_tid(),
			      memory_order_relaxed);
}

/* The calling thread, whose tid is known, looked, or took, at ms. */
static inline void rt_queue_date_at(_Atomic uint64_t *when, uint32_t ms)
{
	/* relaxed: statistic, orders nothing */
	atomic_store_explicit(when, (uint64_t)rt_self_known_tid() << 32 | ms,
			      memory_order_relaxed);
}

/* The calling thread did so now. */
static inline void rt_queue_date(_Atomic uint64_t *when)
{
	(void)rt_self_tid();
	rt_queue_date_at(when, rt_now_ms());
}

/* The calling thread found nothing now, after many looks or a wait. */
static inline void rt_queue_date_look(struct rpma_rt_queue *queue)
{
	rt_queue_date(&queue->stats.last_look);
	/* relaxed: statistic, orders nothing */
	atomic_store_explicit(&queue->stats.date_due, true,
			      memory_order_relaxed);
}

/* The calling thread will sleep. */
static inline void rt_queue_count_sleep(struct rpma_rt_queue *queue)
{
	rt_stat_add_mt(&queue->stats.sleeps, 1);
	/* relaxed: statistic, orders nothing */
	atomic_store_explicit(&queue->stats.date_due, true,
			      memory_order_relaxed);
}

/* The calling thread took something now. */
static inline void rt_queue_date_take(struct rpma_rt_queue *queue)
{
	/* relaxed: statistic, orders nothing */
	atomic_store_explicit(&queue->stats.date_due, false,
			      memory_order_relaxed);
	rt_queue_date(&queue->stats.last_take);
}

/* Calls that found something: those that went in, without the empty ones, which
 * are read first since a call counts itself first. */
static inline uint64_t rt_queue_batches(const struct rpma_rt_queue *queue)
{
	uint64_t empty = rt_stat_read(&queue->stats.empty);

	return rt_stat_read(&queue->stats.polls) +
	       rt_stat_read(&queue->stats.waits) - empty;
}

/*
 * A take is dated after a look that was, after a sleep, and every
 * RT_TAKES_A_DATE times else: where items come all the time the clock would
 * cost more than all else that is counted.
 */
static inline bool rt_queue_is_date_due(const struct rpma_rt_queue *queue)
{
	/* relaxed: statistic, orders nothing */
	return atomic_load_explicit(&queue->stats.date_due,
				    memory_order_relaxed) ||
	       rt_queue_batches(queue) % RT_TAKES_A_DATE == 1;
}

/* A call, and what it found; a consumer, of a shared queue any. */
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
 * A poll that finds nothing and does not go in, inline: loops poll without end.
 */

#define RT_IDLE_POLLS_A_LOOK 1024 /* of which the dump gets to know one */

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
 * Nothing to take, nothing owed, not closed, and no consumer inside: a poll of
 * a queue that is not shared returns 0 without entering. Later items are found
 * by the next poll, or by the second look of a consumer before it sleeps.
 * REQUIRES: the lanes are empty
 */
static inline bool rt_queue_is_idle(const struct rpma_rt_queue *queue)
{
	/* relaxed: a consumer that enters looks again; no items are read */
	return !atomic_load_explicit(&queue->owes_pollers,
				     memory_order_relaxed) &&
	       atomic_load_explicit(&queue->consumers, memory_order_relaxed) ==
		       0 &&
	       rt_mpsc_is_empty_owner(&queue->messages) &&
	       (atomic_load_explicit(&queue->gate, memory_order_relaxed) &
		RT_QUEUE_CLOSED) == 0;
}

/* Polls the queue if a poll finds nothing; false: rpma_rt_queue_poll() finds
 * what there is. */
static inline bool rt_queue_poll_idle_consumer(struct rpma_rt_queue *queue)
{
	/* acquire [LANE-6]. Unseen: the array of lanes is no data of the
	 * program */
	uint32_t lanes =
		rt_load_unseen(&queue->lane_count, memory_order_acquire);

	if (queue->goes_in || !rt_queue_lanes_are_empty(queue, lanes) ||
	    !rt_queue_is_idle(queue))
		return false;
	rt_queue_count_idle(queue);
	return true;
}

/* ---------------------------------------------------------------- alone --- */

/* The calls of a queue's one consumer. */

/* RT_TAKE_EMPTY: armed, a ring makes the fd readable. ERRORS: likewise */
int rt_alone_arm(struct rpma_rt_queue *queue, enum rt_take_end *end);

/* --------------------------------------------------------------- shared --- */

/* The calls of several workers of one queue. */

/* end_ns < 0: never, otherwise of rt_now_ns(). spins: before the caller sleeps.
 * How many; 0: why. */
uint32_t rt_shared_poll(struct rpma_rt_queue *queue,
			struct rpma_rt_completion *cmpl, uint32_t max,
			enum rt_take_end *why);
uint32_t rt_shared_wait(struct rpma_rt_queue *queue,
			struct rpma_rt_completion *cmpl, uint32_t max,
			int64_t end_ns, bool spins, enum rt_take_end *why);
/* RT_TAKE_EMPTY: armed, a ring makes the fd readable. */
enum rt_take_end rt_shared_arm(struct rpma_rt_queue *queue);

#endif /* RT_QUEUE_TAKE_H */
