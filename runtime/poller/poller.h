/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * poller.h -- one poller: a thread (or, in manual mode, the application's
 * loop) that polls CQs, routes completions to lanes, rings consumers, and
 * sleeps on its channels. Only it reads its channels and writes its lanes.
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
 * items while it routes and calls at the end of the batch. Runs on the poller.
 * doc/protocols/callback.md.
 */

struct rt_poller;

#define RT_CALLBACKS 64 /* collected at most before the batch ends early */

/* a function of the application; immutable */
struct rt_callback {
	rpma_rt_route_fn *fn;
	void *arg;
};

/* a poller's; its own */
struct rt_callbacks {
	/* read by the dump: what the function that runs belongs to, a callback
	 * or an SRQ, NULL: none runs; the batch's functions since when */
	_Atomic(const void *) shown;
	_Atomic uint32_t since_ms;
	uint32_t count;
	struct rt_callback *running; /* its function runs now */
	struct {
		struct rt_callback *callback;
		struct rpma_rt_completion item;
	} due[RT_CALLBACKS];
};

/* Functions of a batch begin to run: one of them, of callback or SRQ. */
static inline void rt_callback_date(struct rt_callbacks *calls)
{
	/* relaxed: rt_callback_show() publishes it */
	atomic_store_explicit(&calls->since_ms, rt_now_ms(),
			      memory_order_relaxed);
}
static inline void rt_callback_show(struct rt_callbacks *calls, const void *of)
{
	/* release: the date, to the dump */
	atomic_store_explicit(&calls->shown, of, memory_order_release);
}

/* --------------------------------------------------------------- poller --- */

#define RT_BATCH 32 /* completions taken from a CQ at once */

struct rt_poller {
	/* immutable after init */
	struct rpma_rt *rt;
	int index;
	int cpu;
	bool threaded; /* not in manual mode */
	int epfd;
	int timer; /* in manual mode: in epfd, of the next deadline */
	struct rt_bell bell;
	struct rt_inbox inbox;
	pthread_t thread;
	_Atomic bool stopping;
	/* counts rounds; the rest in manual mode: by which thread */
	struct rt_owned owned;

	/* under the runtime's lock */
	struct rt_channel *channels;
	struct rt_cq_making *making; /* CQs that are being made */
	pthread_cond_t made;	     /* one was made, or not */
	uint32_t conns;
	bool numbers_taken[RT_ROUTE_FIRST]; /* of reserved */

	/* the poller's own; what each round looks at comes first */
	alignas(RT_CACHE_LINE) struct rt_cq **cqs;
	int cqs_count;
	int cqs_awake; /* the first, polled in each round: see rt_cqs_*() */
	int cqs_max;
	int cqs_first;	  /* where the next round begins */
	int cqs_rested;	  /* which was polled last of those that rest */
	uint32_t written; /* items since the last flush */
	struct rt_lane *touched_lanes;
	struct rt_side *touched_sides;
	struct rt_reserved *touched_numbers;
	struct rt_lane *spilling;
	/* in manual mode, numbers of threads: the last to run or arm the
	 * poller, 0 in a round that a wait runs; the last to arm the poller,
	 * which may sleep on epfd */
	uint64_t runner;
	uint64_t armed_by;
	struct rt_left_out left_out; /* lanes that were not rung for */
	struct rt_schedule schedule;
	struct rt_cq *leaving; /* CQs to let go */
	uint64_t polled_ns;    /* when a timed batch was polled; 0: none */
	uint32_t untimed;      /* batches since the last timed one */
	uint32_t idle_rounds;
	bool armed;	   /* the bell is prepared */
	bool timed_out;	   /* woken by the back-stop alone */
	bool has_lost_fds; /* naps instead of sleeping on epfd: base/fds.h */
	uint64_t idle_since_ns;
	uint64_t spinning_since_ns; /* with timing; 0: it is not idle */
	struct rt_channel *reading; /* its channels */
	/* aligned: copied into by the provider, then read, each round */
	/* the last ones are never polled: a future's is looked ahead to */
	alignas(RT_CACHE_LINE) struct ibv_wc wcs[RT_BATCH + RT_FUTURE_AHEAD];
	struct rt_callbacks calls;
	struct rt_reserved reserved[RT_ROUTE_FIRST];
	struct rt_future_batch futures;

	/* the poller's last look at the clock, in ms: what posts are dated by;
	 * 0: it sleeps since slept_ms, and who dates reads the clock. Apart
	 * from what changes with each round */
	alignas(RT_CACHE_LINE) _Atomic uint32_t tick_ms;
	_Atomic uint32_t slept_ms;

	/* written by the poller, read by anyone */
	alignas(RT_CACHE_LINE) struct {
		/* rounds of one completion that went straight into its lane:
		 * each a full poll, a completion, delivered, and a batch,
		 * which those do not count */
		_Atomic uint64_t alone;
		_Atomic uint64_t full_polls, empty_polls, completions,
			delivered, batches, doorbells, sleeps, events, acks,
			spilled, lost, stale, lost_events_recovered, keepalives,
			last_wqe_missing, spinning_ns, sleeping_ns;
	} stats;

	/* under the runtime's lock: blocks of no connection, by size, each a
	 * ring; its last, NULL: none */
	struct rt_futures *idle_futures[RT_FUTURE_SIZES];

	/* of a poller that lends itself: doc/protocols/lend.md */
	alignas(RT_CACHE_LINE) struct rt_lending lending;
	/* the poller's own: completions came that consumers do not handle, and
	 * when that was noticed last */
	bool has_others;
	uint64_t others_ns;
	/* of wcs: completions that a consumer polled and left */
	int left_at;
	int left;
};

/* one writer: a plain add, published relaxed since it orders nothing */
#define RT_STAT_ADD(poller, name, n)                                       \
	atomic_store_explicit(&(poller)->stats.name,                       \
			      atomic_load_explicit(&(poller)->stats.name,  \
						   memory_order_relaxed) + \
				      (uint64_t)(n),                       \
			      memory_order_relaxed)

/* Before a round calls functions of the program, and after: a thread that is
 * cancelled inside would leave the poller entered. The poller's own thread
 * cannot be cancelled, for the program does not know it. */
static inline int rt_poller_disable_cancel(const struct rt_poller *poller)
{
	return poller->threaded ? 0 : rt_cancel_disable();
}

static inline void rt_poller_restore_cancel(const struct rt_poller *poller,
					    int before)
{
	if (!poller->threaded)
		rt_cancel_restore(&before);
}

/* Date of what a round delivers, in ms. REQUIRES: the poller is awake */
static inline uint32_t rt_poller_tick(const struct rt_poller *poller)
{
	/* relaxed: a date, and a coarse one */
	return atomic_load_explicit(&poller->tick_ms, memory_order_relaxed);
}

/* Date of what is posted now, by any thread. */
static inline uint32_t rt_poller_date(const struct rt_poller *poller)
{
	uint32_t ms = rt_poller_tick(poller);

	return likely(ms != 0) ? ms : rt_now_ms();
}

/* The poller's last look at the clock, for the dump. */
static inline uint32_t rt_poller_last_tick(const struct rt_poller *poller)
{
	uint32_t ms = rt_poller_tick(poller);

	/* relaxed: as above */
	return ms != 0 ? ms
		       : atomic_load_explicit(&poller->slept_ms,
					      memory_order_relaxed);
}

static inline void rt_poller_set_tick_ms(struct rt_poller *poller, uint32_t ms)
{
	if (ms == 0) /* once in 49 days */
		ms = 1;
	/* the line is posters' as long as nothing changes. relaxed: as above */
	if (ms != rt_poller_tick(poller))
		atomic_store_explicit(&poller->tick_ms, ms,
				      memory_order_relaxed);
}

/* The poller sleeps from here on: its last look at the clock gets old. */
static inline void rt_poller_set_tick_asleep(struct rt_poller *poller)
{
	/* relaxed, both: as above */
	atomic_store_explicit(&poller->slept_ms, rt_now_ms(),
			      memory_order_relaxed);
	atomic_store_explicit(&poller->tick_ms, 0, memory_order_relaxed);
}

/* The poller has read the clock, for any reason. */
static inline void rt_poller_set_tick(struct rt_poller *poller, uint64_t now_ns)
{
	rt_poller_set_tick_ms(poller, (uint32_t)(now_ns / 1000000));
}

/* ERRORS: RPMA_E_NOMEM, RPMA_E_PROVIDER */
int rt_poller_init(struct rt_poller *poller, struct rpma_rt *rt, int index,
		   int cpu);
void rt_poller_fini(struct rt_poller *poller);
/* Starts its thread, pinned. ERRORS: RPMA_E_PROVIDER */
int rt_poller_start(struct rt_poller *poller);
/* Asks it to end and joins it; in manual mode only asks. */
void rt_poller_stop(struct rt_poller *poller);
/* After rt_poller_stop(): in manual mode no thread runs it any more. */
void rt_poller_close(struct rt_poller *poller);

/* Manual mode: the calling thread is the poller until it leaves. Waits for the
 * end of the round of another thread. ERRORS: as rt_owner_enter() */
int rt_poller_enter(struct rt_poller *poller);
void rt_poller_leave(struct rt_poller *poller);
/* The same for the thread that the poller belongs to; false: rt_poller_enter()
 * finds the reason. */
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

/* Runs fn(arg) on the poller and waits for its answer. Not on a poller.
 * REQUIRES: no lock */
int rt_poller_call(struct rt_poller *poller, int (*fn)(void *arg), void *arg);
/* In two steps: sent under a lock, awaited without it. */
void rt_poller_call_send(struct rt_poller *poller, struct rt_call *call,
			 int (*fn)(void *arg), void *arg);
int rt_poller_call_wait(struct rt_poller *poller, struct rt_call *call);

/* Is there anything that the following would do? */
static inline bool rt_deliver_is_due(const struct rt_poller *poller)
{
	return poller->touched_lanes != NULL || poller->touched_sides != NULL ||
	       poller->touched_numbers != NULL || poller->calls.count > 0;
}
/* A consumer inside: publishes lanes and retired counts, rings sleeping
 * consumers; sides that have posters to answer stay touched, for the poller's
 * thread. */
void rt_deliver_publish(struct rt_poller *poller);
/* Publishes lanes and retired counts, rings sleeping consumers. */
void rt_deliver_flush(struct rt_poller *poller);
/* After a fence: rings the lane's consumer, unless that is the thread that runs
 * this poller, and polls next. True: the consumer slept. */
bool rt_deliver_ring(struct rt_poller *poller, struct rt_lane *lane);
/* Writes an item into a lane of the poller. */
void rt_deliver_write(struct rt_poller *poller, struct rt_lane *lane,
		      const struct rpma_rt_completion *item);
/* The function is called with the item at the batch's end. */
void rt_deliver_call(struct rt_poller *poller, struct rt_callback *callback,
		     const struct rpma_rt_completion *item);
/* Of slots of futures, before what adds to the batch of them: makes room. */
void rt_deliver_futures(struct rt_poller *poller);
/* Completes slots that watch, of latches the event, as far as items have come.
 */
void rt_deliver_asked(struct rt_poller *poller, struct rt_futures *futures,
		      uint32_t event);
/* Where the route leads: into its lane, to its function or a future. */
void rt_deliver_item(struct rt_poller *poller,
		     const struct rt_route_entry *entry,
		     const struct rpma_rt_completion *item);
/* A lane was written to; it is published at the batch's end. */
static inline void rt_deliver_touch_lane(struct rt_poller *poller,
					 struct rt_lane *lane)
{
	if (rt_lane_touch_poller(lane)) {
		lane->touched_next = poller->touched_lanes;
		poller->touched_lanes = lane;
	}
}
/* Moves spills into rings that have room again; how many items. */
int rt_deliver_retry_spills(struct rt_poller *poller);
/* A side has retired work, to be published at the batch's end. */
static inline void rt_deliver_touch_side(struct rt_poller *poller,
					 struct rt_side *side)
{
	if (side->touched)
		return;
	side->touched = true;
	side->touched_next = poller->touched_sides;
	poller->touched_sides = side;
}

/* A reserved number takes part in the end of this batch. */
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
/* An item of number goes to that lane; over its limit, the lane holds it up. */
static inline void rt_deliver_mark_lane(struct rt_lane *lane, uint32_t number)
{
	lane->from_numbers[number / 64] |= UINT64_C(1) << number % 64;
}

/* ------------------------------------------------------------------ cqs --- */

/*
 * The CQs that a poller polls. Those that are awake are polled in each round;
 * of those that rest, because many polls in a row found nothing, one is polled
 * in a round, in turn. doc/protocols/channel.md.
 */

#define RT_CQS_EMPTY_POLLS 64 /* in a row: then the CQ rests */

struct rt_cq;
struct rt_msg;
struct rt_task;

static inline bool rt_cqs_is_awake_poller(const struct rt_poller *poller,
					  const struct rt_cq *cq)
{
	return cq->place < poller->cqs_awake;
}

/* The CQ is polled in each round from here on. */
void rt_cqs_wake_poller(struct rt_poller *poller, struct rt_cq *cq);
/* The CQ rests. REQUIRES: it is awake */
void rt_cqs_rest_poller(struct rt_poller *poller, struct rt_cq *cq);
/* All CQs are polled in the next round: before the poller sleeps. */
static inline void rt_cqs_wake_all_poller(struct rt_poller *poller)
{
	poller->cqs_awake = poller->cqs_count;
}
/* The poller polls the CQ no more. A CQ without a place: nothing. */
void rt_cqs_take_out_poller(struct rt_poller *poller, struct rt_cq *cq);

/* Takes a CQ in; the message is in the rt_cq. */
void rt_cqs_add_message(struct rt_msg *msg, void *owner);
/* The task becomes ready when what the CQ holds now was taken: a poll of it
 * finds nothing, or as many as it can hold are taken; or when it dies. */
void rt_cqs_await_sweep_poller(struct rt_poller *poller, struct rt_cq *cq,
			       struct rt_task *task);
/* A CQ of the poller has failed: its connections die. */
void rt_cqs_fail_poller(struct rt_poller *poller, struct rt_cq *cq);

/* ---------------------------------------------------------------- place --- */

/* An index, or one of RPMA_RT_POLLER_*? */
bool rt_place_is_valid(const struct rpma_rt *rt, int poller);
/* The poller of that index or by that rule; among: bits of those that may be,
 * 0: all. REQUIRES: the runtime's lock, a valid index. */
struct rt_poller *rt_place_choose(struct rpma_rt *rt, int poller,
				  uint64_t among);

/* ------------------------------------------------------------------ arm --- */

/* Arms the CQs; true: nothing to do, sleep on epfd; false: there is work. */
bool rt_arm_poller(struct rt_poller *poller);

#endif /* RT_POLLER_POLLER_H */
