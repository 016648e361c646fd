/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * poll.c -- the calls of an application that take from a queue: poll, wait.
 * Labels in brackets: doc/protocols/lane.md.
 */

#include "base/clock.h"
#include "base/context.h"
#include "base/lang.h"
#include "base/log.h"
#include "base/wait.h"
#include "queue/alone.h"
#include "queue/count.h"
#include "queue/impl.h"
#include "queue/lane_take.h"
#include "queue/queue.h"
#include "queue/shared.h"
#include "queue/take.h"

#define NS_PER_MS	  1000000
#define NS_PER_US	  1000
#define IDLE_POLLS_A_LOOK 1024 /* of which the dump gets to know one */

static int answer(const struct rpma_rt_queue *queue, uint32_t count,
		  enum rt_take_end why)
{
	if (count > 0)
		return (int)count;
	return why == RT_TAKE_CLOSED ? rt_queue_refuse_closed(queue) : 0;
}

/* 0: the call may take, unless max is 0. */
__attribute__((noinline)) static int
check_take(const struct rt_log_place *place, const struct rpma_rt_queue *queue,
	   const struct rpma_rt_completion *cmpl, int max)
{
	const void *const pointers[] = {queue,
					max > 0 ? (const void *)cmpl : queue};
	int ret = rt_refuse_null(place, "queue, cmpl", pointers,
				 sizeof(pointers));

	if (ret)
		return ret;
	if (max < 0)
		return rt_refuse(place, RPMA_E_INVAL,
				 "max is %d: give how many fit into cmpl, 0 or "
				 "more",
				 max);
	return rt_context_check_here(place, queue->rt);
}

static uint32_t poll_shared(struct rpma_rt_queue *queue,
			    struct rpma_rt_completion *cmpl, uint32_t max,
			    enum rt_take_end *why)
{
	uint32_t count;

	rt_queue_time_wakeup(queue);
	count = rt_shared_poll(queue, cmpl, max, why);
	rt_queue_count_take(queue, &queue->stats.polls, count);
	return count;
}

/*
 * Nothing to take, nothing owed, not closed, and no consumer inside: a poll of
 * a queue that is not shared answers without entering. Later items are found by
 * the next poll, or by the second look of a consumer before it sleeps.
 * REQUIRES: the lanes are empty
 */
static inline bool is_idle(const struct rpma_rt_queue *queue)
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

/* A function of its own: an idle poll saves no registers for it. */
__attribute__((noinline)) static int
poll_inside(struct rpma_rt_queue *queue, struct rpma_rt_completion *cmpl,
	    int max)
{
	enum rt_take_end why = RT_TAKE_EMPTY;
	uint32_t count = 0;
	int ret = 0;

	if (queue->params.shared)
		count = poll_shared(queue, cmpl, (uint32_t)max, &why);
	else
		ret = rt_alone_poll(queue, cmpl, (uint32_t)max, &count, &why);
	return ret ? ret : answer(queue, count, why);
}

/* Of its one lane, which the caller filled: dated as that, without a look at
 * the clock. */
static inline void count_poll(struct rpma_rt_queue *queue, uint32_t count)
{
	rt_queue_date_at(&queue->stats.last_take,
			 rt_lane_dated_mt(queue->lanes[0]));
	rt_stat_add(&queue->stats.polls, 1);
	rt_stat_add(&queue->stats.taken, count);
}

static inline void owe_pollers(struct rpma_rt_queue *queue)
{
	/* relaxed: the consumer's own */
	atomic_store_explicit(&queue->owes_pollers, true, memory_order_relaxed);
}

/* Inside, with count items of a queue's one lane, tokens among them, or none:
 * the rest of a poll. */
__attribute__((noinline)) static int end_poll(struct rpma_rt_queue *queue,
					      struct rpma_rt_completion *cmpl,
					      uint32_t count, uint32_t max)
{
	enum rt_take_end why = RT_TAKE_EMPTY;

	if (count > 0)
		owe_pollers(queue);
	count = rt_queue_take_tokens_consumer(queue, cmpl, count, max);
	if (count == 0)
		count = rt_queue_poll_consumer(queue, cmpl, max, &why);
	rt_queue_count_take(queue, &queue->stats.polls, count);
	rt_alone_leave(queue);
	return answer(queue, count, why);
}

static inline int end_own(struct rpma_rt_queue *queue, uint32_t count)
{
	owe_pollers(queue);
	count_poll(queue, count);
	rt_alone_leave(queue);
	return (int)count;
}

/* Inside, more than a few items in the one lane, or in its spill. */
__attribute__((noinline)) static int poll_many(struct rpma_rt_queue *queue,
					       struct rpma_rt_completion *cmpl,
					       uint32_t max)
{
	uint32_t count = rt_lane_take_consumer(queue->lanes[0], cmpl, max);

	return unlikely(count == 0 || rt_queue_has_tokens(queue))
		       ? end_poll(queue, cmpl, count, max)
		       : end_own(queue, count);
}

/*
 * The caller filled the queue's one lane, and there are no messages beside it:
 * as poll_inside(), in a straight line, without a call if there are a few.
 * Which source comes first makes no difference then. A lane that another thread
 * fills is not taken from in this way: a consumer that comes back sooner finds
 * fewer items, and takes the lines from that thread more often.
 */
static inline int poll_own(struct rpma_rt_queue *queue,
			   struct rpma_rt_completion *cmpl, uint32_t max)
{
	uint32_t count;

	if (unlikely(!rt_alone_try_enter(queue)))
		return rt_alone_refuse(queue);
	count = rt_lane_take_few(queue->lanes[0], cmpl, max);
	if (unlikely(count == 0))
		return poll_many(queue, cmpl, max);
	if (unlikely(rt_queue_has_tokens(queue)))
		return end_poll(queue, cmpl, count, max);
	return end_own(queue, count);
}

/* All that there is to take is in its one lane, and the caller filled that. */
static inline bool is_own(const struct rpma_rt_queue *queue)
{
	/* relaxed: not finished, so nothing of the pollers' is touched */
	return rt_lane_is_own(queue->lanes[0]) &&
	       rt_mpsc_is_empty_owner(&queue->messages) &&
	       !atomic_load_explicit(&queue->finished, memory_order_relaxed);
}

/* Nothing in any lane. */
static bool is_empty(const struct rpma_rt_queue *queue, uint32_t lanes)
{
	uint32_t i;

	for (i = 0; i < lanes; i++) {
		if (!rt_lane_is_empty_mt(queue->lanes[i]))
			return false;
	}
	return true;
}

__attribute__((noinline)) static void date_idle(struct rpma_rt_queue *queue)
{
	rt_queue_date_look(queue);
}

static inline int end_idle(struct rpma_rt_queue *queue)
{
	if (unlikely(rt_stat_count(&queue->stats.idle_polls) %
			     IDLE_POLLS_A_LOOK ==
		     0))
		date_idle(queue);
	return 0;
}

int rpma_rt_queue_poll(struct rpma_rt_queue *queue,
		       struct rpma_rt_completion *cmpl, int max)
{
	uint32_t lanes;

	if (unlikely(queue == NULL || max <= 0 || rt_context_check(queue->rt) ||
		     cmpl == NULL))
		return check_take(RT_LOG_HERE, queue, cmpl, max);
	if (unlikely(queue->goes_in))
		return poll_inside(queue, cmpl, max);
	/* acquire [LANE-6]. Unseen: the array of lanes is no data of the
	 * program, and a take acquires the tail of the lane */
	lanes = rt_load_unseen(&queue->lane_count, memory_order_acquire);
	if (likely(lanes == 1) && !rt_lane_is_empty_mt(queue->lanes[0])) {
		if (is_own(queue))
			return poll_own(queue, cmpl, (uint32_t)max);
		return poll_inside(queue, cmpl, max);
	}
	if (lanes != 1 && !is_empty(queue, lanes))
		return poll_inside(queue, cmpl, max);
	return likely(is_idle(queue)) ? end_idle(queue)
				      : poll_inside(queue, cmpl, max);
}

static uint32_t wait_shared(struct rpma_rt_queue *queue, int64_t timeout_ns,
			    bool spins, struct rpma_rt_completion *cmpl,
			    uint32_t max, enum rt_take_end *why)
{
	uint32_t count;

	count = rt_shared_wait(queue, cmpl, max, rt_queue_end_ns(timeout_ns),
			       spins, why);
	rt_queue_count_take(queue, &queue->stats.waits, count);
	return count;
}

static int wait_once(struct rpma_rt_queue *queue, int64_t timeout_ns,
		     bool spins, struct rpma_rt_completion *cmpl, uint32_t max,
		     uint32_t *count, enum rt_take_end *why)
{
	if (!queue->params.shared)
		return rt_alone_wait(queue, timeout_ns, spins, cmpl, max, count,
				     why);
	*count = wait_shared(queue, timeout_ns, spins, cmpl, max, why);
	return 0;
}

static bool has_come(int ret, uint32_t count, enum rt_take_end why)
{
	return ret != 0 || count > 0 || why == RT_TAKE_CLOSED ||
	       why == RT_TAKE_WOKEN;
}

static int64_t least(int64_t a, int64_t b)
{
	return a < b ? a : b;
}

/*
 * The calling thread has pollers of manual mode, or the queue may get items
 * from such pollers without an owner. Runs their rounds, outside of the queue
 * since their functions may take from the queue, and takes in turn; after the
 * queue's budget for spinning sleeps for a moment in place of each take.
 */
static int wait_and_run(struct rpma_rt_queue *queue, int64_t timeout_ns,
			struct rpma_rt_completion *cmpl, uint32_t max,
			uint32_t *count, enum rt_take_end *why)
{
	struct rt_owned *pollers = rt_context_owned(queue->rt);
	bool is_running = rt_wait_run(pollers, rt_queue_pollers(queue));
	int ret = wait_once(queue, 0, false, cmpl, max, count, why);
	int64_t end_ns, spin_ns, now;
	int64_t most;

	if (timeout_ns == 0 || has_come(ret, *count, *why))
		return ret;
	now = (int64_t)rt_now_ns();
	spin_ns = now + (int64_t)queue->params.spin_us * NS_PER_US;
	end_ns = timeout_ns < 0 ? INT64_MAX : now + timeout_ns;
	do {
		most = !is_running     ? RT_WAIT_LOOK_NS
		       : now < spin_ns ? 0
				       : RT_WAIT_NS;
		ret = wait_once(queue, least(most, end_ns - now),
				!is_running && now < spin_ns, cmpl, max, count,
				why);
		if (has_come(ret, *count, *why))
			return ret;
		is_running = rt_wait_run(pollers, rt_queue_pollers(queue));
		now = (int64_t)rt_now_ns();
	} while (now < end_ns);
	return wait_once(queue, 0, false, cmpl, max, count, why);
}

static bool has_manual(const struct rpma_rt_queue *queue)
{
	return rt_context_owned(queue->rt) != NULL || rt_wait_has_pollers();
}

int rpma_rt_queue_wait(struct rpma_rt_queue *queue,
		       struct rpma_rt_completion *cmpl, int max, int timeout_ms)
{
	enum rt_take_end why = RT_TAKE_EMPTY;
	uint32_t count = 0;
	int64_t timeout_ns;
	int ret;

	if (timeout_ms < -1)
		return RT_REFUSE(
			RPMA_E_INVAL,
			"timeout_ms is %d: give milliseconds, or -1 to "
			"wait without an end",
			timeout_ms);
	ret = check_take(RT_LOG_HERE, queue, cmpl, max);
	if (ret == 0)
		ret = RT_REFUSE_THREAD();
	if (ret || max == 0)
		return ret;
	timeout_ns = timeout_ms < 0 ? -1 : (int64_t)timeout_ms * NS_PER_MS;
	if (has_manual(queue))
		ret = wait_and_run(queue, timeout_ns, cmpl, (uint32_t)max,
				   &count, &why);
	else
		ret = wait_once(queue, timeout_ns, true, cmpl, (uint32_t)max,
				&count, &why);
	return ret ? ret : answer(queue, count, why);
}
