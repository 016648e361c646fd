/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * poller.h -- a poller: a thread (or, in manual mode, the application's loop)
 * that polls CQs, routes completions to lanes, rings consumers, and sleeps on
 * its channels. Only the poller reads its channels and writes its lanes.
 */

#ifndef RT_POLLER_POLLER_H
#define RT_POLLER_POLLER_H

#include <pthread.h>
#include <stdalign.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "rpma_rt.h"
#include "base/bell.h"
#include "base/cancel.h"
#include "base/clock.h"
#include "base/inbox.h"
#include "base/lang.h"
#include "base/order.h"
#include "base/owner.h"
#include "base/self.h"
#include "base/wait.h"
#include "poller/cq_pool.h"
#include "poller/future.h"
#include "poller/route.h"
#include "poller/schedule.h"
#include "poller/side.h"
#include "queue/lane.h"

/* ------------------------------------------------------------- callback --- */

/*
 * Routes that lead to a function of the application: a poller collects their
 * items while routing, and calls the functions at the end of the batch. Runs on
 * the poller. doc/protocols/callback.md.
 */

struct rt_cq_raw;
struct rt_poller;

#define RT_CALLBACKS 64 /* most collected calls, before the batch ends early */

/* a function of the application; immutable */
struct rt_callback {
	rpma_rt_route_fn *fn;
	void *arg;
};

/* calls of a poller; used by the poller only */
struct rt_callbacks {
	/* for the dump. shown: the owner of the function that runs: a callback,
	 * an SRQ, or the batch of futures; NULL: no function runs. since_ms:
	 * when the functions of the batch began to run */
	_Atomic(const void *) shown;
	_Atomic uint32_t since_ms;
	uint32_t count;
	struct rt_callback *running; /* the callback whose function runs */
	struct {
		struct rt_callback *callback;
		struct rpma_rt_completion item;
	} due[RT_CALLBACKS];
};

/* Dates the functions of a batch, of callbacks, futures or an SRQ, which begin
 * to run. */
static inline void rt_callback_date(struct rt_callbacks *calls)
{
	/* relaxed: the release in rt_callback_show() publishes the date */
	atomic_store_explicit(&calls->since_ms, rt_now_ms(),
			      memory_order_relaxed);
}
static inline void rt_callback_show(struct rt_callbacks *calls, const void *of)
{
	/* release: publishes the date to the dump, which acquires `shown` */
	atomic_store_explicit(&calls->shown, of, memory_order_release);
}

/* --------------------------------------------------------------- poller --- */

#define RT_BATCH 32 /* completions that are taken from a CQ at once */

struct rt_poller {
	/* immutable after init */
	struct rpma_rt *rt;
	int index;
	int cpu;
	bool threaded; /* false in manual mode */
	int epfd;
	/* in manual mode: a timer in epfd, set to the next deadline */
	int timer;
	struct rt_bell bell;
	struct rt_inbox inbox;
	pthread_t thread;
	_Atomic bool stopping;
	/* counts rounds; in manual mode also says which thread runs the
	 * poller */
	struct rt_owned owned;

	/* under the runtime's lock */
	struct rt_channel *channels;
	struct rt_cq_making *making; /* CQs that are being made */
	/* signalled when a CQ was made, or could not be made */
	pthread_cond_t made;
	uint32_t conns;
	bool numbers_taken[RT_ROUTE_FIRST]; /* of `reserved` */

	/* used by the poller only; first the words that each round looks at */
	/* single: the poller's only CQ, as most pollers have a single one;
	 * awake: the only CQ that is awake. NULL: there are none or several, or
	 * the CQ is not rt_round_is_usual(). See rt_cqs_*() */
	alignas(RT_CACHE_LINE) struct rt_cq *single;
	struct rt_cq *awake;
	/* nothing spills, no CQ has to be let go, no task is ready, timed or
	 * deferred, and the back-stop woke nobody. Cleared by
	 * rt_poller_disturb(), set by a round that has looked at all of them */
	bool quiet;
	bool armed; /* the bell is prepared */
	struct rt_cq **cqs;
	int cqs_count;
	/* the first CQs of the array, polled in each round: see rt_cqs_*() */
	int cqs_awake;
	int cqs_max;
	int cqs_first;	  /* index of the CQ with which the next round begins */
	int cqs_rested;	  /* index of the resting CQ that was polled last */
	uint32_t written; /* items written since the last flush */
	struct rt_lane *touched_lanes;
	struct rt_side *touched_sides;
	struct rt_reserved *touched_numbers;
	struct rt_lane *spilling;
	/* the lane of the consumer who runs the round, and comes back for
	 * deferred tasks; NULL: the round is of another kind */
	const struct rt_lane *taking;
	/* in manual mode, numbers of threads. runner: the last thread to run or
	 * arm the poller, 0 in a round that a wait runs. armed_by: the last
	 * thread to arm the poller, which may sleep on epfd */
	uint64_t runner;
	uint64_t armed_by;
	struct rt_left_out left_out; /* lanes whose consumer was not rung */
	struct rt_schedule schedule;
	struct rt_cq *leaving; /* CQs that have to be let go */
	/* when a timed batch was polled; 0: the batch is not timed */
	uint64_t polled_ns;
	uint32_t untimed; /* batches since the last timed batch */
	uint32_t idle_rounds;
	bool timed_out; /* only the back-stop woke the poller */
	/* the poller naps instead of sleeping on epfd: base/fds.h */
	bool has_lost_fds;
	uint64_t idle_since_ns;
	uint64_t spinning_since_ns; /* with timing; 0: the poller is not idle */
	struct rt_channel *reading; /* channels that the poller reads */
	/* aligned: the provider copies into the array and the poller reads it,
	 * in each round */
	/* the last elements are never polled: a look ahead to a future reads
	 * them */
	alignas(RT_CACHE_LINE) struct ibv_wc wcs[RT_BATCH + RT_FUTURE_AHEAD];
	struct rt_callbacks calls;
	struct rt_reserved reserved[RT_ROUTE_FIRST];
	struct rt_future_batch futures;

	/* tick_ms: the poller's last look at the clock, in ms, which dates
	 * posts; 0: the poller sleeps since slept_ms, and a thread that needs a
	 * date reads the clock. Apart from the words that change with each
	 * round */
	alignas(RT_CACHE_LINE) _Atomic uint32_t tick_ms;
	_Atomic uint32_t slept_ms;

	/* written by the poller, read by any thread */
	alignas(RT_CACHE_LINE) struct {
		/* rounds with a single completion that went straight into its
		 * lane: each is a full poll, a completion, a delivered item and
		 * a batch, but the other counts do not include these rounds */
		_Atomic uint64_t alone;
		_Atomic uint64_t full_polls, empty_polls, completions,
			delivered, batches, doorbells, sleeps, events, acks,
			spilled, lost, stale, lost_events_recovered, keepalives,
			last_wqe_missing, spinning_ns, sleeping_ns;
	} stats;

	/* under the runtime's lock: blocks that belong to no connection, by
	 * size, each list a ring; points to the last block, NULL: no block */
	struct rt_futures *idle_futures[RT_FUTURE_SIZES];

	/* for a poller that lends itself: doc/protocols/lend.md */
	alignas(RT_CACHE_LINE) struct rt_lending lending;
	/* used by the poller only: completions came that the consumers do not
	 * handle, and when the poller noticed such completions last */
	bool has_others;
	uint64_t others_ns;
	/* index and number, in wcs, of completions that a consumer polled and
	 * left */
	int left_at;
	int left;
};

/* Has the next rounds look for work besides completions and messages. Called
 * with each such work. On the poller. */
static inline void rt_poller_disturb(struct rt_poller *poller)
{
	poller->quiet = false;
}

/* Notes that only the back-stop woke the poller: if the round finds
 * completions, an event was lost. */
static inline void rt_poller_time_out(struct rt_poller *poller)
{
	poller->timed_out = true;
	rt_poller_disturb(poller);
}

/* Adds to a statistic, which only the poller writes. */
#define RT_STAT_ADD(poller, name, n) \
	rt_stat_add(&(poller)->stats.name, (uint64_t)(n))

/* Begins functions that a round calls. Returns what rt_poller_end_functions()
 * takes. Disables cancellation: a thread that is cancelled inside would leave
 * the poller entered. The poller's own thread cannot be cancelled, because the
 * program does not know the thread. */
static inline int rt_poller_begin_own_functions(struct rt_poller *poller)
{
	rt_callback_date(&poller->calls);
	return poller->threaded ? 0 : rt_cancel_disable();
}

/* Begins functions of the program that a round calls. Runs deferred tasks: a
 * function that posts cannot do so, because the poller is entered. */
static inline int rt_poller_begin_functions(struct rt_poller *poller)
{
	if (unlikely(rt_schedule_has_deferred(&poller->schedule)))
		rt_schedule_run_deferred(poller);
	return rt_poller_begin_own_functions(poller);
}

static inline void rt_poller_end_functions(const struct rt_poller *poller,
					   int before)
{
	if (!poller->threaded)
		rt_cancel_restore(&before);
}

/* Returns the date of what a round delivers, in ms. REQUIRES: the poller is
 * awake */
static inline uint32_t rt_poller_tick(const struct rt_poller *poller)
{
	/* relaxed: a coarse date, which orders nothing */
	return atomic_load_explicit(&poller->tick_ms, memory_order_relaxed);
}

/* Returns the date of what is posted now, in ms. Any thread. */
static inline uint32_t rt_poller_date(const struct rt_poller *poller)
{
	uint32_t ms = rt_poller_tick(poller);

	return likely(ms != 0) ? ms : rt_now_ms();
}

/* Returns the poller's last look at the clock, for the dump. */
static inline uint32_t rt_poller_last_tick(const struct rt_poller *poller)
{
	uint32_t ms = rt_poller_tick(poller);

	/* relaxed: a coarse date, which orders nothing */
	return ms != 0 ? ms
		       : atomic_load_explicit(&poller->slept_ms,
					      memory_order_relaxed);
}

static inline void rt_poller_set_tick_ms(struct rt_poller *poller, uint32_t ms)
{
	if (ms == 0) /* 0 means asleep; happens once in 49 days */
		ms = 1;
	/* not stored without a change, so posters keep the cache line. relaxed:
	 * a coarse date, which orders nothing */
	if (ms != rt_poller_tick(poller))
		atomic_store_explicit(&poller->tick_ms, ms,
				      memory_order_relaxed);
}

/* Notes that the poller sleeps from here on, so its last look at the clock gets
 * old. */
static inline void rt_poller_set_tick_asleep(struct rt_poller *poller)
{
	/* relaxed, both: coarse dates, which order nothing */
	atomic_store_explicit(&poller->slept_ms, rt_now_ms(),
			      memory_order_relaxed);
	atomic_store_explicit(&poller->tick_ms, 0, memory_order_relaxed);
}

/* Notes that the poller has read the clock. */
static inline void rt_poller_set_tick(struct rt_poller *poller, uint64_t now_ns)
{
	rt_poller_set_tick_ms(poller, (uint32_t)(now_ns / 1000000));
}

/* Initialises a poller. ERRORS: RPMA_E_NOMEM, RPMA_E_PROVIDER */
int rt_poller_init(struct rt_poller *poller, struct rpma_rt *rt, int index,
		   int cpu);
void rt_poller_fini(struct rt_poller *poller);
/* Starts the poller's thread, pinned. ERRORS: RPMA_E_PROVIDER */
int rt_poller_start(struct rt_poller *poller);
/* Asks the poller to end and joins the poller's thread; in manual mode only
 * asks. */
void rt_poller_stop(struct rt_poller *poller);
/* Closes the poller, after rt_poller_stop(): in manual mode no thread runs the
 * poller any more. */
void rt_poller_close(struct rt_poller *poller);

/* Makes the calling thread the poller until rt_poller_leave(), in manual mode.
 * Waits for the end of a round of another thread. ERRORS: see
 * rt_owner_enter() */
int rt_poller_enter(struct rt_poller *poller);

static inline void rt_poller_leave(struct rt_poller *poller)
{
	rt_self_set_poller(NULL);
	rt_owner_leave(&poller->owned);
}

/* Enters as rt_poller_enter() does, for the thread that owns the poller.
 * Returns false to other callers: rt_poller_enter() finds the reason. */
static inline bool rt_poller_enter_own(struct rt_poller *poller)
{
	if (!rt_owner_enter_own(&poller->owned))
		return false;
	rt_self_set_poller(poller);
	return true;
}
static inline void rt_poller_leave_own(struct rt_poller *poller)
{
	rt_self_set_poller(NULL);
	rt_owner_leave_own(&poller->owned);
}

/* Runs fn(arg) on the poller, waits, and returns the result. Not on a poller.
 * REQUIRES: no lock */
int rt_poller_call(struct rt_poller *poller, int (*fn)(void *arg), void *arg);
/* Do the call in two steps: sent under a lock, awaited without the lock. */
void rt_poller_call_send(struct rt_poller *poller, struct rt_call *call,
			 int (*fn)(void *arg), void *arg);
int rt_poller_call_wait(struct rt_poller *poller, struct rt_call *call);

/* Returns whether a flush would do anything. */
static inline bool rt_deliver_is_due(const struct rt_poller *poller)
{
	return poller->touched_lanes != NULL || poller->touched_sides != NULL ||
	       poller->touched_numbers != NULL || poller->calls.count > 0;
}
/* Publishes lanes and retired counts, and rings sleeping consumers, for a
 * consumer that runs the round. Sides with posters to answer stay touched, for
 * the poller's thread. */
void rt_deliver_publish(struct rt_poller *poller);
/* Publishes lanes and retired counts, rings sleeping consumers. */
void rt_deliver_flush(struct rt_poller *poller);
/* Rings the lane's consumer, after a fence, unless the consumer is the thread
 * that runs this poller and polls next. Returns whether the consumer slept. */
bool rt_deliver_ring(struct rt_poller *poller, struct rt_lane *lane);
/* Writes an item into a lane of the poller. */
void rt_deliver_write(struct rt_poller *poller, struct rt_lane *lane,
		      const struct rpma_rt_completion *item);
/* Delivers the polled completions of an adopted CQ, whose wr_ids belong to the
 * program. */
void rt_deliver_raw(struct rt_poller *poller, const struct rt_cq_raw *raw,
		    int n);
/* Collects a call of the function with the item, for the end of the batch. */
void rt_deliver_call(struct rt_poller *poller, struct rt_callback *callback,
		     const struct rpma_rt_completion *item);

/* Makes room in the batch of futures, before something is added to that
 * batch. */
static inline void rt_deliver_futures(struct rt_poller *poller)
{
	if (rt_future_is_full(&poller->futures))
		rt_deliver_flush(poller);
}

/* Completes watching slots, of latches the slots that watch the event, as far
 * as items have come. */
void rt_deliver_asked(struct rt_poller *poller, struct rt_futures *futures,
		      uint32_t event);
/* Delivers an item where the route leads: into a lane, to a function or into a
 * future. */
void rt_deliver_item(struct rt_poller *poller,
		     const struct rt_route_entry *entry,
		     const struct rpma_rt_completion *item);
/* Notes that the lane was written to, to be published at the batch's end. */
static inline void rt_deliver_touch_lane(struct rt_poller *poller,
					 struct rt_lane *lane)
{
	if (rt_lane_touch_poller(lane)) {
		lane->touched_next = poller->touched_lanes;
		poller->touched_lanes = lane;
	}
}
/* Moves spills into rings that have room again; returns the number of items. */
int rt_deliver_retry_spills(struct rt_poller *poller);
/* Notes that the side has retired work, to be published at the batch's end. */
static inline void rt_deliver_touch_side(struct rt_poller *poller,
					 struct rt_side *side)
{
	if (side->touched)
		return;
	side->touched = true;
	side->touched_next = poller->touched_sides;
	poller->touched_sides = side;
}

/* Notes that the reserved number takes part in the end of this batch. */
static inline void rt_deliver_touch_number(struct rt_poller *poller,
					   uint32_t number)
{
	struct rt_reserved *reserved = &poller->reserved[number];

	if (reserved->touched)
		return;
	reserved->touched = true;
	reserved->touched_next = poller->touched_numbers;
	poller->touched_numbers = reserved;
}
/* Notes that an item of the number goes to the lane: if the lane gets over its
 * limit, the lane holds the number up. */
static inline void rt_deliver_mark_lane(struct rt_lane *lane, uint32_t number)
{
	lane->from_numbers[number / 64] |= UINT64_C(1) << number % 64;
}

/* ------------------------------------------------------------------ cqs --- */

/*
 * The CQs that a poller polls. CQs that are awake are polled in each round. A
 * CQ rests when many polls in a row found nothing; in each round a single
 * resting CQ is polled, in turn. doc/protocols/channel.md.
 */

/* after so many empty polls in a row the CQ rests */
#define RT_CQS_EMPTY_POLLS 64

struct rt_cq;
struct rt_msg;
struct rt_task;

static inline bool rt_cqs_is_awake_poller(const struct rt_poller *poller,
					  const struct rt_cq *cq)
{
	return cq->place < poller->cqs_awake;
}

/* Makes a CQ awake: polled in each round from here on. */
void rt_cqs_wake_poller(struct rt_poller *poller, struct rt_cq *cq);
/* Makes a CQ rest. REQUIRES: the CQ is awake */
void rt_cqs_rest_poller(struct rt_poller *poller, struct rt_cq *cq);
/* Makes all CQs awake for the next round, before the poller sleeps. */
void rt_cqs_wake_all_poller(struct rt_poller *poller);
/* Ends the polling of a CQ. Does nothing if the CQ has no place. */
void rt_cqs_take_out_poller(struct rt_poller *poller, struct rt_cq *cq);

/* Takes a CQ in; the message is in the rt_cq. */
void rt_cqs_add_message(struct rt_msg *msg, void *owner);
/* Makes the task ready when the present content of the CQ was taken: when a
 * poll finds nothing, when as many completions were taken as the CQ can hold,
 * or when the CQ dies. */
void rt_cqs_await_sweep_poller(struct rt_poller *poller, struct rt_cq *cq,
			       struct rt_task *task);
/* Takes note that a CQ of the poller has failed: the CQ's connections die. */
void rt_cqs_fail_poller(struct rt_poller *poller, struct rt_cq *cq);

/* ---------------------------------------------------------------- place --- */

/* Returns whether `poller` is an index of a poller or one of
 * RPMA_RT_POLLER_*. */
bool rt_place_is_valid(const struct rpma_rt *rt, int poller);

/* Returns the poller with the index, or chooses by the rule. among: bits of the
 * allowed pollers, 0: all pollers. REQUIRES: the runtime's lock, a valid
 * index. */
struct rt_poller *rt_place_choose(struct rpma_rt *rt, int poller,
				  uint64_t among);

/* ------------------------------------------------------------------ arm --- */

/* Arms the CQs. Returns true if there is nothing to do, so that the caller may
 * sleep on epfd; false: there is work. */
bool rt_arm_poller(struct rt_poller *poller);

#endif /* RT_POLLER_POLLER_H */
