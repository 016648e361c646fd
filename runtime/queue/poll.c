/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * poll.c -- the public calls that take from a queue: poll, wait. Labels in
 * brackets: doc/protocols/lane.md.
 */

#include <assert.h>
#include <sched.h>

#include "base/cancel.h"
#include "base/clock.h"
#include "base/context.h"
#include "base/lang.h"
#include "base/log.h"
#include "base/self.h"
#include "base/wait.h"
#include "queue/impl.h"
#include "queue/queue.h"
#include "queue/take.h"

/* ---------------------------------------------------------------- alone --- */

/*
 * A queue with a single consumer at a time: taking, spinning, sleeping on a
 * futex, arming the eventfd. Runs on the consumer's thread.
 */

#define NS_PER_US     1000
#define SPINS_A_LOOK  64 /* takes between two reads of the clock */
#define SERVES_A_LOOK 32 /* rounds and takes between two reads of the clock */

/* Refuses a second consumer of a queue that is not shared, a mistake of the
 * program: an assertion where assertions are compiled, else RPMA_RT_E_BUSY. */
static int rt_alone_refuse(const struct rpma_rt_queue *queue)
{
	assert(!"two consumers at once on a queue that is not shared");
	return RT_REFUSE(
		RPMA_RT_E_BUSY,
		"another thread takes from queue %u (%s), which is not "
		"shared: set rpma_rt_queue_cfg.shared",
		queue->id, queue->name);
}

static int rt_alone_enter(struct rpma_rt_queue *queue)
{
	if (!rt_keep_take(&queue->alone))
		return rt_alone_refuse(queue);
	rt_queue_go_in(queue); /* the consumer may stay inside for long */
	return 0;
}

static void rt_alone_leave(struct rpma_rt_queue *queue)
{
	rt_keep_give_back(&queue->alone);
}

static uint32_t alone_take_some(struct rpma_rt_queue *queue,
				struct rpma_rt_completion *cmpl, uint32_t max)
{
	uint32_t count = 0;
	int i;

	for (i = 0; i < SPINS_A_LOOK && count == 0; i++) {
		if (i > 0)
			rt_cpu_relax();
		count = rt_queue_take_consumer(queue, cmpl, max);
	}
	return count;
}

/* Runs rounds of lent pollers, and takes, some times; then yields the CPU to
 * threads that want the CPU for a moment. *is_over: the caller has to sleep,
 * because threads that compute want the CPU, or a poller's thread is needed.
 * Moves the end of the wait by the time that other threads ran. */
static uint32_t alone_serve_some(struct rpma_rt_queue *queue,
				 struct rpma_rt_completion *cmpl, uint32_t max,
				 uint64_t *end, bool *is_over)
{
	uint64_t before;
	uint64_t now;
	uint32_t count;
	int i;

	for (i = 0; i < SERVES_A_LOOK; i++) {
		*is_over = !rt_serve_run(queue);
		count = rt_queue_take_consumer(queue, cmpl, max);
		if (count > 0 || *is_over)
			return count;
		/* the thread that brings the item may wait for this CPU */
		if (rt_share_known.share == RT_SHARE_SOME)
			break;
		rt_cpu_relax();
	}
	now = before = rt_now_ns();
	*is_over = rt_share_yield(&now) == RT_SHARE_BUSY;
	*end += now - before;
	return 0;
}

/* Takes until items come, the budget or the time is over, or other threads want
 * the CPU. The budget is the queue's; where the caller runs the rounds of a
 * poller, the poller's budget is added. */
static uint32_t alone_spin(struct rpma_rt_queue *queue,
			   struct rpma_rt_completion *cmpl, uint32_t max,
			   int64_t end_ns)
{
	bool is_over = false;
	uint32_t count = 0;
	uint64_t asked;
	uint64_t now;
	uint64_t end;

	if (queue->params.spin_us == 0)
		return 0;
	now = asked = rt_now_ns();
	end = now + (uint64_t)queue->params.spin_us * NS_PER_US;
	if (rt_serve_is_due(queue))
		end += rt_context_spin_ns(queue->rt);
	if (end_ns >= 0 && (uint64_t)end_ns < end)
		end = (uint64_t)end_ns;
	while (now < end && count == 0 && !is_over && !rt_wake_is_due(queue)) {
		if (rt_serve_is_due(queue)) {
			count = alone_serve_some(queue, cmpl, max, &end,
						 &is_over);
		} else {
			rt_serve_ask(queue);
			if (rt_share_ask_again(&now, &asked) != RT_SHARE_ALONE)
				break;
			count = alone_take_some(queue, cmpl, max);
		}
		now = rt_now_ns();
		is_over |= end_ns >= 0 && now >= (uint64_t)end_ns;
	}
	return count;
}

/* Ends the sleep of a consumer that was cancelled: the next consumer finds all
 * items. */
static void alone_cancelled(void *arg)
{
	struct rpma_rt_queue *queue = arg;

	rt_bell_take_back(&queue->bell, RT_BELL_ON_FUTEX);
	rt_alone_leave(queue);
}

/* Sleeps once. Returns the number of items that the look before the sleep
 * found, or 0. */
static uint32_t alone_sleep_once(struct rpma_rt_queue *queue,
				 struct rpma_rt_completion *cmpl, uint32_t max,
				 int64_t timeout_ns, enum rt_take_end *why)
{
	uint32_t count;

	rt_bell_arm(&queue->bell, RT_BELL_ON_FUTEX);
	count = rt_queue_take_again_consumer(queue, cmpl, max, why);
	if (count == 0 && *why == RT_TAKE_EMPTY && rt_wake_take_consumer(queue))
		*why = RT_TAKE_WOKEN;
	if (count == 0 && *why == RT_TAKE_EMPTY) {
		rt_queue_count_sleep(queue);
		rt_cancel_sleep_armed(&queue->bell, timeout_ns, alone_cancelled,
				      queue);
		rt_queue_time_wakeup(queue);
	}
	rt_bell_take_back(&queue->bell, RT_BELL_ON_FUTEX);
	return count;
}

/* Sleeps until an item comes, a wake, the end of the queue, or the end of the
 * time (end_ns < 0: no end). */
static uint32_t alone_sleep_for(struct rpma_rt_queue *queue,
				struct rpma_rt_completion *cmpl, uint32_t max,
				int64_t end_ns, enum rt_take_end *why)
{
	int64_t left = -1;
	uint32_t count;

	for (;;) {
		if (end_ns >= 0) {
			left = end_ns - (int64_t)rt_now_ns();
			if (left <= 0)
				return rt_queue_poll_consumer(queue, cmpl, max,
							      why);
		}
		count = alone_sleep_once(queue, cmpl, max, left, why);
		if (count > 0 || *why == RT_TAKE_CLOSED ||
		    *why == RT_TAKE_WOKEN)
			return count;
		if (*why == RT_TAKE_BUSY)
			sched_yield();
	}
}

/* Polls: stores the number of taken items, and for 0 why nothing was taken.
 * ERRORS: RPMA_RT_E_BUSY (another thread is inside) */
static int rt_alone_poll(struct rpma_rt_queue *queue,
			 struct rpma_rt_completion *cmpl, uint32_t max,
			 uint32_t *count, enum rt_take_end *why)
{
	bool is_kept =
		rt_keep_is_here(&queue->alone) && rt_keep_go_in(&queue->alone);
	int ret = is_kept ? 0 : rt_alone_enter(queue);

	if (ret)
		return ret;
	rt_queue_time_wakeup(queue);
	*count = rt_queue_poll_consumer(queue, cmpl, max, why);
	rt_queue_count_take(queue, &queue->stats.polls, *count);
	if (is_kept)
		rt_keep_go_out(&queue->alone);
	else
		rt_alone_leave(queue);
	return 0;
}

/* Waits for items for timeout_ns (< 0: without end), with the results of
 * rt_alone_poll(). spins: the caller spins before it sleeps. */
static int rt_alone_wait(struct rpma_rt_queue *queue, int64_t timeout_ns,
			 bool spins, struct rpma_rt_completion *cmpl,
			 uint32_t max, uint32_t *count, enum rt_take_end *why)
{
	int64_t end_ns;
	int ret = rt_alone_enter(queue);

	if (ret)
		return ret;
	*count = rt_queue_take_consumer(queue, cmpl, max);
	if (*count == 0) {
		end_ns = rt_queue_end_ns(timeout_ns);
		if (spins)
			*count = alone_spin(queue, cmpl, max, end_ns);
		if (*count == 0)
			*count = alone_sleep_for(queue, cmpl, max, end_ns, why);
	}
	rt_queue_count_take(queue, &queue->stats.waits, *count);
	rt_alone_leave(queue);
	return 0;
}

/* Arms the fd, inside. A readable fd stays readable unless there is nothing to
 * take. A function that finds nothing in the queue, because the caller of its
 * round has items in hand, arms the fd, which is readable then: a loop that
 * polls and arms in turn would not end. */
static enum rt_take_end alone_arm(struct rpma_rt_queue *queue)
{
	enum rt_take_end end = rt_queue_look_consumer(queue);
	bool in_hand = rt_queue_is_in_hand(queue);

	if (end == RT_TAKE_WOKEN)
		rt_wake_take_consumer(queue);
	if (end != RT_TAKE_EMPTY && !(end == RT_TAKE_SOME && in_hand))
		return end;
	rt_bell_read(&queue->bell);
	rt_bell_set_armed_by(&queue->bell, rt_self_number());
	rt_bell_arm(&queue->bell, RT_BELL_ON_FD);
	end = rt_queue_look_consumer(queue);
	if (end != RT_TAKE_EMPTY)
		rt_bell_wake(&queue->bell);
	if (end == RT_TAKE_WOKEN)
		rt_wake_take_consumer(queue);
	return end == RT_TAKE_SOME && in_hand ? RT_TAKE_EMPTY : end;
}

int rt_alone_arm(struct rpma_rt_queue *queue, enum rt_take_end *end)
{
	int ret = rt_alone_enter(queue);

	if (ret)
		return ret;
	*end = alone_arm(queue);
	rt_alone_leave(queue);
	return 0;
}

/* ----------------------------------------------------------------- poll --- */

/*
 * Takes a few items, inline, from a lane that the consumer's own thread filled.
 */

#define RT_LANE_FEW 8 /* the most items that are taken without a call */

/* Returns whether, by a hint, the calling thread fills the lane. */
static inline bool rt_lane_is_own(const struct rt_lane *lane)
{
	/* relaxed: a hint, which orders nothing */
	return atomic_load_explicit(&lane->by, memory_order_relaxed) ==
	       &rt_self;
}

/*
 * Takes as rt_lane_take_consumer() does, if the lane has a few items that are
 * in one piece, and the poller does not wait for room. Returns 0 otherwise, and
 * leaves the lane to rt_lane_take_consumer().
 */
static inline uint32_t rt_lane_take_few(struct rt_lane *lane,
					struct rpma_rt_completion *cmpl,
					uint32_t max)
{
	/* acquire [LANE-1]: pairs with the release of the tail; the slots below
	 * the tail are written */
	uint32_t tail = atomic_load_explicit(&lane->tail, memory_order_acquire);
	uint32_t at = lane->head_next & (lane->size - 1);
	uint32_t count = tail - lane->head_next;
	uint32_t i;

	if (count > max)
		count = max;
	/* relaxed [LANE-4]: as in rt_lane_take_consumer() */
	if (count - 1 >= RT_LANE_FEW || at + count > lane->size ||
	    atomic_load_explicit(&lane->spilled, memory_order_relaxed))
		return 0;
	for (i = 0; i < count; i++) {
		cmpl[i] = lane->ring[at + i];
		/* keeps the compiler from turning the loop into a call of
		 * memcpy() */
		__asm__ __volatile__("" ::: "memory");
	}
	lane->tail_seen = tail;
	lane->head_next += count;
	/* release [LANE-2]: the reads of the slots come before their reuse.
	 * Unseen by the sanitizer, as the reads are: the slots belong to the
	 * lane */
	rt_store_unseen(&lane->head, lane->head_next, memory_order_release);
	return count;
}

#define NS_PER_MS 1000000

static int poll_answer(const struct rpma_rt_queue *queue, uint32_t count,
		       enum rt_take_end why)
{
	if (count > 0)
		return (int)count;
	return why == RT_TAKE_CLOSED ? rt_queue_refuse_closed(queue) : 0;
}

/* Returns 0 if the call may take, unless max is 0. */
__attribute__((noinline)) static int
poll_check_take(const struct rt_log_place *place,
		const struct rpma_rt_queue *queue,
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

/* Polls inside the queue. Not inlined, so that an idle poll saves no registers
 * for this function. */
__attribute__((noinline)) static int
poll_inside(struct rpma_rt_queue *queue, struct rpma_rt_completion *cmpl,
	    int max)
{
	enum rt_take_end why = RT_TAKE_EMPTY;
	uint32_t count = 0;
	int ret = 0;

	if (unlikely(rt_queue_is_in_hand(queue))) {
		rt_queue_count_take(queue, &queue->stats.polls, 0);
		return 0;
	}
	if (queue->params.shared)
		count = poll_shared(queue, cmpl, (uint32_t)max, &why);
	else
		ret = rt_alone_poll(queue, cmpl, (uint32_t)max, &count, &why);
	return ret ? ret : poll_answer(queue, count, why);
}

/* Counts a poll of the queue's only lane, which the caller filled: the poll
 * gets the date of the lane, without a look at the clock. */
static inline void poll_count_poll(struct rpma_rt_queue *queue, uint32_t count)
{
	rt_queue_date_at(&queue->stats.last_take,
			 rt_lane_dated_mt(queue->lanes[0]));
	rt_stat_add(&queue->stats.polls, 1);
	rt_stat_add(&queue->stats.taken, count);
}

static inline void poll_owe_pollers(struct rpma_rt_queue *queue)
{
	/* relaxed: written and read by the consumer only */
	atomic_store_explicit(&queue->owes_pollers, true, memory_order_relaxed);
}

/* Finishes a poll, inside: `count` items of the queue's only lane were taken,
 * tokens among them, or no items. Returns the number of items. */
static uint32_t poll_end_own(struct rpma_rt_queue *queue,
			     struct rpma_rt_completion *cmpl, uint32_t count,
			     uint32_t max, enum rt_take_end *why)
{
	if (count > 0)
		poll_owe_pollers(queue);
	count = rt_queue_take_tokens_consumer(queue, cmpl, count, max);
	if (count == 0)
		count = rt_queue_poll_consumer(queue, cmpl, max, why);
	rt_queue_count_take(queue, &queue->stats.polls, count);
	return count;
}

static inline void poll_count_own(struct rpma_rt_queue *queue, uint32_t count)
{
	poll_owe_pollers(queue);
	poll_count_poll(queue, count);
}

/* Polls, inside: `count` items were taken. 0: the queue's only lane has more
 * than a few items, or a spill. */
static inline uint32_t poll_many(struct rpma_rt_queue *queue,
				 struct rpma_rt_completion *cmpl,
				 uint32_t count, uint32_t max,
				 enum rt_take_end *why)
{
	if (count == 0)
		count = rt_lane_take_consumer(queue->lanes[0], cmpl, max);
	if (unlikely(count == 0 || rt_queue_has_tokens(queue)))
		return poll_end_own(queue, cmpl, count, max, why);
	poll_count_own(queue, count);
	return count;
}

/* The rest of poll_own(), inside a queue that is kept for the caller. */
__attribute__((noinline)) static int
poll_own_rest(struct rpma_rt_queue *queue, struct rpma_rt_completion *cmpl,
	      uint32_t count, uint32_t max)
{
	enum rt_take_end why = RT_TAKE_EMPTY;

	count = poll_many(queue, cmpl, count, max, &why);
	rt_keep_go_out(&queue->alone);
	return poll_answer(queue, count, why);
}

/* Does poll_own() where the queue is not kept for the caller. */
__attribute__((noinline)) static int
poll_own_first(struct rpma_rt_queue *queue, struct rpma_rt_completion *cmpl,
	       uint32_t max)
{
	enum rt_take_end why = RT_TAKE_EMPTY;
	int ret = rt_alone_enter(queue);
	uint32_t count;

	if (ret)
		return ret;
	count = rt_lane_take_few(queue->lanes[0], cmpl, max);
	count = poll_many(queue, cmpl, count, max, &why);
	rt_alone_leave(queue);
	return poll_answer(queue, count, why);
}

/*
 * Polls a queue whose only lane the caller filled, and which has no messages:
 * as poll_inside() does, in a straight line, without a call if there are a few
 * items. With a single source the order of the sources makes no difference. A
 * lane that another thread fills is not polled in this way: a consumer that
 * returns sooner finds fewer items, and takes the cache lines from that thread
 * more often.
 */
static inline int poll_own(struct rpma_rt_queue *queue,
			   struct rpma_rt_completion *cmpl, uint32_t max)
{
	uint32_t count;

	if (unlikely(!rt_keep_is_here(&queue->alone) ||
		     !rt_keep_go_in(&queue->alone)))
		return poll_own_first(queue, cmpl, max);
	count = rt_lane_take_few(queue->lanes[0], cmpl, max);
	if (unlikely(count == 0 || rt_queue_has_tokens(queue)))
		return poll_own_rest(queue, cmpl, count, max);
	poll_count_own(queue, count);
	rt_keep_go_out(&queue->alone);
	return (int)count;
}

/* Returns whether everything to take is in the queue's only lane, and the
 * caller filled that lane, in an earlier round. */
static inline bool poll_is_own(const struct rpma_rt_queue *queue)
{
	/* relaxed: if the queue is not finished, no words of the pollers are
	 * touched */
	return rt_lane_is_own(queue->lanes[0]) && !rt_queue_is_in_hand(queue) &&
	       rt_mpsc_is_empty_owner(&queue->messages) &&
	       !atomic_load_explicit(&queue->finished, memory_order_relaxed);
}

__attribute__((noinline)) void rt_queue_date_idle(struct rpma_rt_queue *queue)
{
	rt_queue_date_look(queue);
}

static inline int poll_end_idle(struct rpma_rt_queue *queue)
{
	rt_queue_count_idle(queue);
	return 0;
}

int rpma_rt_queue_poll(struct rpma_rt_queue *queue,
		       struct rpma_rt_completion *cmpl, int max)
{
	uint32_t lanes;

	if (unlikely(queue == NULL || max <= 0 || rt_context_check(queue->rt) ||
		     cmpl == NULL))
		return poll_check_take(RT_LOG_HERE, queue, cmpl, max);
	if (unlikely(queue->goes_in))
		return poll_inside(queue, cmpl, max);
	/* acquire [LANE-6]: the lanes are initialised. Unseen by the sanitizer:
	 * the array of lanes is no data of the program, and a take acquires the
	 * tail of the lane */
	lanes = rt_load_unseen(&queue->lane_count, memory_order_acquire);
	if (likely(lanes == 1) && !rt_lane_is_empty_mt(queue->lanes[0])) {
		if (poll_is_own(queue))
			return poll_own(queue, cmpl, (uint32_t)max);
		return poll_inside(queue, cmpl, max);
	}
	if (lanes != 1 && !rt_queue_lanes_are_empty(queue, lanes))
		return poll_inside(queue, cmpl, max);
	return likely(rt_queue_is_idle(queue)) ? poll_end_idle(queue)
					       : poll_inside(queue, cmpl, max);
}

static uint32_t poll_wait_shared(struct rpma_rt_queue *queue,
				 int64_t timeout_ns, bool spins,
				 struct rpma_rt_completion *cmpl, uint32_t max,
				 enum rt_take_end *why)
{
	uint32_t count;

	count = rt_shared_wait(queue, cmpl, max, rt_queue_end_ns(timeout_ns),
			       spins, why);
	rt_queue_count_take(queue, &queue->stats.waits, count);
	return count;
}

static int poll_wait_once(struct rpma_rt_queue *queue, int64_t timeout_ns,
			  bool spins, struct rpma_rt_completion *cmpl,
			  uint32_t max, uint32_t *count, enum rt_take_end *why)
{
	if (!queue->params.shared)
		return rt_alone_wait(queue, timeout_ns, spins, cmpl, max, count,
				     why);
	*count = poll_wait_shared(queue, timeout_ns, spins, cmpl, max, why);
	return 0;
}

static bool poll_has_come(int ret, uint32_t count, enum rt_take_end why)
{
	return ret != 0 || count > 0 || why == RT_TAKE_CLOSED ||
	       why == RT_TAKE_WOKEN;
}

static int64_t poll_least(int64_t a, int64_t b)
{
	return a < b ? a : b;
}

/* Returns whether a take finds items that an earlier round of the caller left
 * in the queue's only lane, and the caller has no other poller: a wait that
 * takes without a round would leave the others to wait, for ever if each wait
 * finds items. */
static bool poll_has_own(const struct rpma_rt_queue *queue)
{
	/* acquire [LANE-6]: as in rpma_rt_queue_poll() */
	return !queue->goes_in &&
	       rt_load_unseen(&queue->lane_count, memory_order_acquire) == 1 &&
	       !rt_lane_is_empty_mt(queue->lanes[0]) &&
	       !rt_queue_has_tokens(queue) && poll_is_own(queue) &&
	       rt_owner_is_only(rt_queue_filler(queue));
}

/* Runs the pollers of the calling thread, and pollers without an owner that may
 * bring items. Returns false if there is no such poller. */
static bool poll_run(struct rpma_rt_queue *queue)
{
	return rt_wait_run(rt_queue_filler(queue), rt_context_owned(queue->rt),
			   rt_queue_pollers(queue));
}

/* Returns whether a wait runs another round at once. A wake is taken by a
 * sleep. */
static bool poll_goes_on(const struct rpma_rt_queue *queue, int64_t now_ns,
			 int64_t spin_ns, uint64_t *asked_ns)
{
	return queue->params.spin_us != 0 && !rt_wake_is_due(queue) &&
	       rt_share_goes_on((uint64_t)now_ns, (uint64_t)spin_ns, RT_WAIT_NS,
				asked_ns);
}

/*
 * Waits where the calling thread has pollers of manual mode, or where pollers
 * without an owner may bring items to the queue. Runs the pollers' rounds,
 * outside of the queue because their functions may take from the queue, and
 * takes in turn. When the queue's budget for spinning is spent, the caller
 * sleeps for a moment between two rounds. What an earlier round of the caller
 * left in the lane is taken without another round: rounds that add as much to
 * the lane as each wait takes would keep every wait from going straight.
 */
static int poll_wait_and_run(struct rpma_rt_queue *queue, int64_t timeout_ns,
			     struct rpma_rt_completion *cmpl, uint32_t max,
			     uint32_t *count, enum rt_take_end *why)
{
	bool is_running = false;
	int64_t end_ns, spin_ns, now;
	uint64_t asked;
	int64_t most;
	int ret;

	if (!poll_has_own(queue))
		is_running = poll_run(queue);
	ret = poll_wait_once(queue, 0, false, cmpl, max, count, why);
	if (timeout_ns == 0 || poll_has_come(ret, *count, *why))
		return ret;
	asked = rt_now_ns();
	now = (int64_t)asked;
	spin_ns = now + (int64_t)queue->params.spin_us * NS_PER_US;
	end_ns = timeout_ns < 0 ? INT64_MAX : now + timeout_ns;
	do {
		most = !is_running ? RT_WAIT_LOOK_NS
		       : poll_goes_on(queue, now, spin_ns, &asked) ? 0
								   : RT_WAIT_NS;
		ret = poll_wait_once(queue, poll_least(most, end_ns - now),
				     !is_running && now < spin_ns, cmpl, max,
				     count, why);
		if (poll_has_come(ret, *count, *why))
			return ret;
		is_running = poll_run(queue);
		now = (int64_t)rt_now_ns();
	} while (now < end_ns);
	return poll_wait_once(queue, 0, false, cmpl, max, count, why);
}

static bool poll_has_manual(const struct rpma_rt_queue *queue)
{
	return rt_context_owned(queue->rt) != NULL || rt_owner_has_any();
}

int rt_queue_wait_any(struct rpma_rt_queue *queue,
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
	ret = poll_check_take(RT_LOG_HERE, queue, cmpl, max);
	if (ret == 0)
		ret = RT_REFUSE_THREAD();
	if (ret || max == 0)
		return ret;
	timeout_ns = timeout_ms < 0 ? -1 : (int64_t)timeout_ms * NS_PER_MS;
	if (poll_has_manual(queue))
		ret = poll_wait_and_run(queue, timeout_ns, cmpl, (uint32_t)max,
					&count, &why);
	else
		ret = poll_wait_once(queue, timeout_ns, true, cmpl,
				     (uint32_t)max, &count, &why);
	return ret ? ret : poll_answer(queue, count, why);
}

int rt_queue_wait_no_more(struct rpma_rt_queue *queue,
			  struct rpma_rt_completion *cmpl, int max)
{
	/* acquire [LANE-6]: the lanes are initialised. Unseen by the sanitizer:
	 * as in rpma_rt_queue_poll() */
	uint32_t lanes =
		rt_load_unseen(&queue->lane_count, memory_order_acquire);
	enum rt_take_end why = RT_TAKE_EMPTY;
	uint32_t count = 0;
	int ret;

	if (likely(rt_queue_lanes_are_empty(queue, lanes) &&
		   rt_queue_is_idle(queue))) {
		rt_stat_add(&queue->stats.waits, 1);
		rt_stat_add(&queue->stats.empty, 1);
		if (rt_stat_read(&queue->stats.empty) % RT_LOOKS_A_DATE == 0)
			rt_queue_date_look(queue);
		return 0;
	}
	ret = poll_wait_once(queue, 0, false, cmpl, (uint32_t)max, &count,
			     &why);
	return ret ? ret : poll_answer(queue, count, why);
}
