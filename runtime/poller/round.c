/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * round.c -- a round of a poller, the hot path: poll, route, deliver, flush,
 * then spills, messages, tasks. On the success path a round touches the
 * poller's own memory, lanes, and a retired count for each side; no lock, no
 * allocation, no system call, no clock. doc/protocols/wr_id.md, ledger.md,
 * lane.md.
 */

#include "poller/round.h"

#include <assert.h>
#include <stddef.h>
#include <string.h>

#include "base/clock.h"
#include "base/lang.h"
#include "base/order.h"
#include "base/runtime.h"
#include "poller/cq_pool.h"
#include "poller/poller.h"

/* rounds between two reads of the clock while the poller is never idle */
#define ROUNDS_PER_TICK 1024

/* -------------------------------------------------------------- routing --- */

/* Returns whether completions of the route go to the consumer: the round has
 * written nothing to the lane. */
static inline bool round_may_hand(const struct rt_round_taker *taker,
				  const struct rt_route_entry *entry)
{
	return entry->lane == taker->lane &&
	       likely(entry->lane->tail_next == taker->tail);
}

/* Returns whether a row begins: the next completion is of the same route, which
 * leads to a lane or to futures, and each success retires an entry. A row of a
 * single completion would cost more than round_route(). */
static inline bool round_begins_row(const struct rt_route_entry *entry,
				    const struct ibv_wc *wc,
				    const struct ibv_wc *end)
{
	return wc + 1 < end && entry->leads_to <= RT_TO_FUTURES &&
	       (wc[0].wr_id ^ wc[1].wr_id) <= RT_COOKIE_MASK &&
	       likely(rt_round_is_of(entry, wc)) &&
	       likely(!(wc->wr_id & RT_ON_ERROR_ONLY)) &&
	       likely(rt_side_marks(entry->side) == RT_SIDE_HEALTHY);
}

/* Delivers a completion in any way. Not inlined: an item whose address is taken
 * is built in memory, from narrow stores, which costs 5 ns a completion. */
__attribute__((noinline)) static void
round_deliver_any(struct rt_poller *poller, const struct rt_route_entry *entry,
		  const struct ibv_wc *wc)
{
	struct rpma_rt_completion item = rt_round_item(entry, wc);

	rt_deliver_item(poller, entry, &item);
}

/* Stores a single completion as rt_row_to_futures() stores a row, with fewer
 * instructions. */
static void round_deliver_future(struct rt_poller *poller,
				 const struct rt_route_entry *entry,
				 const struct ibv_wc *wc)
{
	uint64_t cookie = rt_wr_id_cookie(wc->wr_id);
	struct rt_future *slot = rt_future_of_cookie(cookie);

	if (unlikely(!rt_future_is_expected(slot, cookie) || slot->told != 0 ||
		     poller->futures.count == RT_FUTURE_BATCH)) {
		round_deliver_any(poller, entry, wc);
		return;
	}
	rt_future_fill(slot, rt_round_item(entry, wc));
	poller->futures.complete[poller->futures.count] = slot;
	rt_future_add_batch(&poller->futures, entry->futures, 1);
	rt_deliver_touch_number(poller, RT_ROUTE_FUTURES);
	poller->written++;
}

/* Not inlined; each call is the last step, so no register is saved. */
__attribute__((noinline)) static void
round_deliver_call(struct rt_poller *poller, const struct rt_route_entry *entry,
		   const struct ibv_wc *wc)
{
	if (entry->leads_to == RT_TO_SINK) {
		entry->sink(rt_wr_id_cookie(wc->wr_id));
		return;
	}
	poller->has_others = true;
	if (entry->leads_to == RT_TO_FUTURES)
		round_deliver_future(poller, entry, wc);
	else
		round_deliver_any(poller, entry, wc);
}

static inline void round_deliver(struct rt_poller *poller,
				 const struct rt_route_entry *entry,
				 const struct ibv_wc *wc,
				 struct rt_round_taker *taker)
{
	struct rpma_rt_completion item;

	if (unlikely(entry->leads_to != RT_TO_LANE)) {
		round_deliver_call(poller, entry, wc);
		return;
	}
	if (taker == NULL || !round_may_hand(taker, entry)) {
		rt_round_to_lane(poller, entry, wc);
		return;
	}
	item = rt_round_item(entry, wc);
	rt_lane_fill_slot(taker->to++, &item);
}

/* Handles a completion without a bound route: of a reserved number, late, or
 * stale. */
__attribute__((noinline)) static bool
round_route_otherwise(struct rt_poller *poller, struct rt_cq *cq,
		      const struct rt_route_entry *entry,
		      const struct ibv_wc *wc)
{
	uint32_t number = rt_wr_id_route(wc->wr_id);

	poller->has_others = true;
	if (number < RT_ROUTE_FIRST && poller->reserved[number].ops != NULL) {
		poller->reserved[number].ops->completion(poller, cq, wc);
		return true;
	}
	/* the message that binds the route was sent before the post, and may
	 * still be in the inbox */
	rt_inbox_run_owner(&poller->inbox, poller);
	if (rt_round_is_of(entry, wc))
		return false;
	RT_STAT_ADD(poller, stale, 1);
	return true;
}

/* Handles a completion that is no success, or of a side with further marks.
 * Returns true for a success, whose entries are counted. */
__attribute__((noinline)) static bool
round_retire_otherwise(struct rt_side *side, const struct ibv_wc *wc)
{
	if (wc->status != IBV_WC_SUCCESS || !rt_side_is_healthy(side)) {
		side->ops->failed(side, wc);
		return false;
	}
	side->ops->retire_group(side);
	return true;
}

__attribute__((always_inline)) static inline void
round_route(struct rt_poller *poller, struct rt_cq *cq, const struct ibv_wc *wc,
	    struct rt_round_taker *taker)
{
	struct rt_route_entry *entry = &cq->routes[rt_wr_id_route(wc->wr_id)];
	struct rt_side *side;

	if (unlikely(!rt_round_is_of(entry, wc)) &&
	    round_route_otherwise(poller, cq, entry, wc))
		return;
	side = entry->side;
	if (likely(wc->status == IBV_WC_SUCCESS &&
		   rt_side_marks(side) == RT_SIDE_HEALTHY))
		side->count++;
	else if (!round_retire_otherwise(side, wc))
		return;
	rt_deliver_touch_side(poller, side);
	if (!(wc->wr_id & RT_ON_ERROR_ONLY))
		round_deliver(poller, entry, wc, taker);
}

/* -------------------------------------------------------------- polling --- */

/* Makes tasks ready that wait for a poll of the CQ, as far as their wait is
 * over. */
__attribute__((noinline)) static void
round_end_waits(struct rt_poller *poller, struct rt_cq *cq, bool is_empty)
{
	struct rt_task *task;

	if (is_empty) {
		rt_schedule_ready_all(poller, &cq->sweeping);
		return;
	}
	while (!cds_list_empty(&cq->sweeping)) {
		task = cds_list_first_entry(&cq->sweeping, struct rt_task,
					    link);
		if (cq->taken < task->until_taken)
			break;
		rt_schedule_ready(poller, task);
	}
}

static void round_time_batch(struct rt_poller *poller)
{
	if (++poller->untimed < poller->rt->cfg.timing)
		return;
	poller->untimed = 0;
	if (poller->polled_ns == 0)
		poller->polled_ns = rt_now_ns();
}

/* Delivers a batch of completions. taker: NULL, or a consumer who takes what
 * nothing in the lane goes before. */
__attribute__((always_inline)) static inline void
round_deliver_routes(struct rt_poller *poller, struct rt_cq *cq, int n,
		     struct rt_round_taker *taker)
{
	const struct ibv_wc *end = poller->wcs + n;
	const struct ibv_wc *wc = poller->wcs;
	const struct rt_route_entry *entry;
	const struct ibv_wc *next;

	for (; wc < end; wc = next) {
		entry = &cq->routes[rt_wr_id_route(wc->wr_id)];
		if (!round_begins_row(entry, wc, end))
			next = wc;
		else if (entry->leads_to == RT_TO_FUTURES)
			next = rt_row_to_futures(poller, entry, wc, end);
		else if (taker != NULL && round_may_hand(taker, entry))
			next = rt_row_to_taker(entry, wc, end, taker);
		else
			next = rt_row_to_lane(poller, entry, wc, end);
		if (next == wc) {
			round_route(poller, cq, next++, taker);
			continue;
		}
		entry->side->count += (uint32_t)(next - wc);
		rt_deliver_touch_side(poller, entry->side);
	}
	if (unlikely(!cds_list_empty(&cq->sweeping)))
		round_end_waits(poller, cq, false);
}

/* Delivers the completions of a poll. Not inlined: a round that finds nothing
 * saves no registers for this function. */
__attribute__((noinline)) static int
round_deliver_batch(struct rt_poller *poller, struct rt_cq *cq, int n)
{
	if (unlikely(poller->rt->cfg.timing != 0))
		round_time_batch(poller);
	/* before the completions are routed: routing may run the inbox, and a
	 * GONE there counts from here the completions that the CQ still
	 * holds */
	cq->taken += (uint64_t)n;
	if (unlikely(cq->raw != NULL))
		rt_deliver_raw(poller, cq->raw, n);
	else
		round_deliver_routes(poller, cq, n, NULL);
	RT_STAT_ADD(poller, full_polls, 1);
	RT_STAT_ADD(poller, completions, n);
	return n;
}

/* Handles a poll that found no completion, or, n below 0, has failed. */
static inline void round_poll_none(struct rt_poller *poller, struct rt_cq *cq,
				   int n)
{
	if (unlikely(n < 0))
		rt_cqs_fail_poller(poller, cq);
	if (unlikely(!cds_list_empty(&cq->sweeping)))
		round_end_waits(poller, cq, true);
	RT_STAT_ADD(poller, empty_polls, 1);
}

/* Polls a CQ; returns the number of completions in wcs. REQUIRES: the CQ is not
 * dead */
static inline int round_poll_cq(struct rt_poller *poller, struct rt_cq *cq,
				int budget)
{
	int n = rt_round_poll_verb(poller, cq, budget);

	if (n > 0)
		return n;
	round_poll_none(poller, cq, n);
	return 0;
}

/* Returns how many completions more a consumer has room for. */
static inline int round_room(const struct rt_round_taker *taker)
{
	return (int)(taker->end - taker->to);
}

/* Delivers the completions of a poll, and hands those of the consumer to the
 * consumer. */
static void round_take_batch(struct rt_poller *poller, struct rt_cq *cq,
			     struct rt_round_taker *taker, int n)
{
	const struct rpma_rt_completion *first = taker->to;

	/* as in round_deliver_batch() */
	cq->taken += (uint64_t)n;
	round_deliver_routes(poller, cq, n, taker);
	poller->written += (uint32_t)(taker->to - first);
	RT_STAT_ADD(poller, full_polls, 1);
	RT_STAT_ADD(poller, completions, n);
	RT_STAT_ADD(poller, batches, taker->to != first);
}

/* Returns whether a round may poll the CQ at the place once more for the
 * consumer: nothing was polled but completions of the consumer, and silent
 * ones. No function was called, so that the completions come to an end. A
 * message may have moved the CQ. */
static bool round_may_take_again(const struct rt_poller *poller,
				 const struct rt_cq *cq, int place,
				 const struct rt_round_taker *taker)
{
	return poller->touched_lanes == NULL &&
	       poller->touched_numbers == NULL && poller->calls.count == 0 &&
	       taker->lane->tail_next == taker->tail &&
	       place < poller->cqs_awake && poller->cqs[place] == cq &&
	       rt_round_is_usual(cq);
}

/* Delivers the n completions of a poll of a usual CQ, and polls again after a
 * full poll, while the consumer has room: silent completions leave room.
 * Returns the number of completions. */
__attribute__((noinline)) static int
round_take_all(struct rt_poller *poller, struct rt_cq *cq,
	       struct rt_round_taker *taker, int n)
{
	const int place = cq->place;
	int done = 0;
	bool is_full;

	do {
		is_full = n == RT_BATCH || n == round_room(taker);
		done += n;
		round_take_batch(poller, cq, taker, n);
		n = 0;
		if (is_full && round_room(taker) > 0 &&
		    round_may_take_again(poller, cq, place, taker))
			n = round_poll_cq(poller, cq, round_room(taker));
	} while (n > 0);
	return done;
}

/* Polls a CQ, if the CQ can be polled now. Returns the number of completions in
 * wcs. */
static inline int round_poll_able(struct rt_poller *poller, struct rt_cq *cq,
				  int budget)
{
	if (unlikely(cq->dead || rt_cq_is_held_up(cq)))
		return 0;
	return round_poll_cq(poller, cq, budget);
}

/* Delivers the n completions of a poll. taker: NULL, or a consumer, who gets
 * what round_take_all() hands over. */
static inline int round_deliver_polled(struct rt_poller *poller,
				       struct rt_cq *cq, int n,
				       struct rt_round_taker *taker)
{
	return taker != NULL && likely(cq->raw == NULL)
		       ? round_take_all(poller, cq, taker, n)
		       : round_deliver_batch(poller, cq, n);
}

/* Polls and delivers a batch of a CQ that is awake, if the CQ can be polled
 * now. */
static inline int round_poll_one(struct rt_poller *poller, struct rt_cq *cq,
				 int budget, struct rt_round_taker *taker)
{
	int n = round_poll_able(poller, cq, budget);

	if (n == 0) {
		cq->empty_polls++;
		return 0;
	}
	cq->empty_polls = 0;
	return round_deliver_polled(poller, cq, n, taker);
}

/* Lets a single CQ rest whose polls found nothing for long enough. */
__attribute__((noinline)) static void round_rest_one(struct rt_poller *poller)
{
	int i;

	for (i = 0; i < poller->cqs_awake; i++) {
		if (poller->cqs[i]->empty_polls < RT_CQS_EMPTY_POLLS)
			continue;
		rt_cqs_rest_poller(poller, poller->cqs[i]);
		return;
	}
}

/* Returns how many completions the next poll of a round may give, which has
 * handled `done`. What the consumer does not get takes no room: else a round
 * with many silent completions would give the consumer few others. */
static inline int round_left(int budget, int done,
			     const struct rt_round_taker *taker)
{
	return taker != NULL ? round_room(taker) : budget - done;
}

/* Polls a batch of each CQ that is awake, beginning with another CQ each time,
 * as long as the budget, or the consumer's array, lasts. Delivering may run the
 * inbox, and a message there may add or remove a CQ: no index is kept from a CQ
 * to the next. */
static int round_poll_awake(struct rt_poller *poller, int budget,
			    struct rt_round_taker *taker)
{
	bool is_any_idle = false;
	struct rt_cq *cq;
	int done = 0;
	int at;
	int i;

	/* back to 0 also where no CQ is awake: an idle poller runs billions of
	 * rounds */
	at = poller->cqs_first + 1 < poller->cqs_awake ? poller->cqs_first + 1
						       : 0;
	poller->cqs_first = at;
	for (i = 0;
	     i < poller->cqs_awake && round_left(budget, done, taker) > 0;
	     i++) {
		if (at >= poller->cqs_awake)
			at = 0;
		cq = poller->cqs[at++];
		done += round_poll_one(poller, cq,
				       round_left(budget, done, taker), taker);
		is_any_idle |= cq->empty_polls >= RT_CQS_EMPTY_POLLS;
	}
	if (is_any_idle)
		round_rest_one(poller);
	return done;
}

/* Delivers the completion of a resting CQ, and wakes the CQ. Not inlined: a
 * round whose resting CQ has nothing saves no registers for this function. */
__attribute__((noinline)) static int
round_wake_resting(struct rt_poller *poller, struct rt_cq *cq, int n,
		   struct rt_round_taker *taker)
{
	int done = round_deliver_polled(poller, cq, n, taker);

	rt_cqs_wake_poller(poller, cq);
	return done;
}

/* Polls the next resting CQ for a completion, which wakes the CQ: others are
 * polled with those of the CQs that are awake. */
static inline int round_poll_resting(struct rt_poller *poller,
				     struct rt_round_taker *taker)
{
	struct rt_cq *cq;
	int n;

	if (unlikely(--poller->cqs_rested < poller->cqs_awake))
		poller->cqs_rested = poller->cqs_count - 1;
	cq = poller->cqs[poller->cqs_rested];
	n = round_poll_able(poller, cq, 1);
	return likely(n == 0) ? 0 : round_wake_resting(poller, cq, n, taker);
}

/* ------------------------------------------------------------ the round --- */

/* Does the rest of a round besides completions: spills, messages, tasks. */
__attribute__((noinline)) static int round_do_others(struct rt_poller *poller,
						     int done)
{
	if (unlikely(poller->timed_out)) {
		poller->timed_out = false;
		if (done > 0 && rt_channel_wake(poller) == 0)
			RT_STAT_ADD(poller, lost_events_recovered, 1);
	}
	if (poller->spilling != NULL)
		done += rt_deliver_retry_spills(poller);
	if (!rt_inbox_is_empty(&poller->inbox))
		done += rt_inbox_run_some_owner(&poller->inbox, poller,
						RT_SCHEDULE_UNITS);
	if (unlikely(poller->leaving != NULL))
		done += rt_channel_let_go(poller);
	if (unlikely(rt_schedule_has_tasks(&poller->schedule)))
		done += rt_schedule_run(poller, done == 0);
	if (poller->taking != NULL)
		rt_schedule_run_overdue(poller, done == 0);
	else
		rt_schedule_run_deferred(poller);
	if (rt_deliver_is_due(poller))
		rt_deliver_flush(poller);
	poller->quiet = rt_round_find_quiet(poller);
	return done;
}

__attribute__((noinline)) static int round_end_batches(struct rt_poller *poller,
						       int done)
{
	if (rt_deliver_is_due(poller))
		rt_deliver_flush(poller);
	return rt_round_is_quiet(poller) ? done : round_do_others(poller, done);
}

__attribute__((noinline)) static int round_deliver_all(struct rt_poller *poller,
						       struct rt_cq *cq, int n)
{
	return round_end_batches(poller, round_deliver_batch(poller, cq, n));
}

/* Ends a round with a single completion, when a consumer or a poster waits.
 * lane: NULL if a consumer took the completion. */
__attribute__((noinline)) static int round_ring_one(struct rt_poller *poller,
						    struct rt_lane *lane,
						    struct rt_side *side)
{
	if (lane != NULL && rt_deliver_ring(poller, lane))
		RT_STAT_ADD(poller, doorbells, 1);
	if (rt_side_is_due(side))
		side->ops->answer(side, poller, RT_SIDE_ANSWERS);
	return round_end_batches(poller, 1);
}

/* Ends a round whose only CQ had n completions. A usual completion, alone, goes
 * a straight way; calls are the last step in each branch, so no register is
 * saved for a call. Not inlined: a round that finds nothing would save a
 * register more. */
__attribute__((noinline)) static int round_end_single(struct rt_poller *poller,
						      struct rt_cq *cq, int n)
{
	const struct rt_route_entry *entry = NULL;
	uint8_t marks = 0;

	if (n == 1)
		entry = rt_round_usual_route(cq, &poller->wcs[0], &marks);
	if (entry == NULL || unlikely(poller->rt->cfg.timing != 0) ||
	    !rt_lane_has_place_poller(entry->lane))
		return round_deliver_all(poller, cq, n);
	if (unlikely(!rt_round_store_one(poller, cq, entry, entry->lane,
					 entry->side, marks, NULL)))
		return round_ring_one(poller, entry->lane, entry->side);
	return rt_round_is_quiet(poller) ? 1 : round_do_others(poller, 1);
}

/* Ends a round that found no completion. */
static inline int round_end_empty(struct rt_poller *poller)
{
	/* polls that found nothing wrote nothing */
	assert(!rt_deliver_is_due(poller));
	return rt_round_is_quiet(poller) ? 0 : round_do_others(poller, 0);
}

/* Runs a round with a single CQ awake, after the resting CQs had no
 * completions. */
static inline int round_run_awake(struct rt_poller *poller, struct rt_cq *cq,
				  int budget)
{
	int n = round_poll_cq(poller, cq, budget);

	if (n > 0) {
		cq->empty_polls = 0;
		return round_end_single(poller, cq, n);
	}
	if (++cq->empty_polls >= RT_CQS_EMPTY_POLLS)
		rt_cqs_rest_poller(poller, cq);
	return round_end_empty(poller);
}

/* Ends a round that has handled `done` completions of a resting CQ: polls all
 * that are awake. Not inlined: a round with a single CQ awake saves no
 * registers for this function. */
__attribute__((noinline)) static int round_run_several(struct rt_poller *poller,
						       int budget, int done)
{
	done += round_poll_awake(poller, budget - done, NULL);
	return done > 0 ? round_end_batches(poller, done)
			: round_end_empty(poller);
}

/* Runs a round of a poller with several CQs, or with an unusual CQ. */
__attribute__((noinline)) static int round_run_any(struct rt_poller *poller,
						   int budget)
{
	int done;

	/* first: CQs that are awake may use up each budget, but a resting CQ
	 * does so only once, and is awake then */
	if (poller->cqs_awake < poller->cqs_count) {
		done = round_poll_resting(poller, NULL);
		if (unlikely(done > 0))
			return round_run_several(poller, budget, done);
	}
	if (unlikely(poller->awake == NULL))
		return round_run_several(poller, budget, 0);
	return round_run_awake(poller, poller->awake, budget);
}

__attribute__((noinline)) static void round_read_clock(struct rt_poller *poller)
{
	rt_poller_set_tick(poller, rt_now_ns());
}

int rt_round_run(struct rt_poller *poller, int budget)
{
	struct rt_cq *cq;
	int n;

	if (unlikely(rt_owner_count_turn(&poller->owned) % ROUNDS_PER_TICK ==
		     0))
		round_read_clock(poller);
	if (!rt_round_has_single(poller))
		return round_run_any(poller, budget);
	cq = poller->single;
	n = round_poll_cq(poller, cq, budget);
	return n > 0 ? round_end_single(poller, cq, n)
		     : round_end_empty(poller);
}

void rt_round_take_over(struct rt_poller *poller)
{
	int left = poller->left;

	poller->left = 0;
	if (left > 0) {
		memmove(poller->wcs, &poller->wcs[poller->left_at],
			(size_t)left * sizeof(poller->wcs[0]));
		round_end_batches(
			poller,
			round_deliver_batch(poller, poller->cqs[0], left));
	} else if (rt_deliver_is_due(poller)) {
		rt_deliver_flush(poller);
	}
}

/* ------------------------------------------- straight to the consumer --- */

/* Ends the polls of a round that handled `done` completions. Returns how many
 * of the completions the consumer got, or RT_TAKE_OTHERS. */
static int round_end_take(struct rt_poller *poller,
			  const struct rt_round_taker *taker,
			  const struct rpma_rt_completion *cmpl, int done)
{
	/* the lane never has the items */
	if (done > 0)
		rt_lane_date_poller(taker->lane, taker->tail - 1,
				    rt_poller_tick(poller));
	done = round_end_batches(poller, done);
	if (taker->to > cmpl)
		return (int)(taker->to - cmpl);
	return done > 0 ? RT_TAKE_OTHERS : 0;
}

/* Polls a poller without a single CQ as any round does, for a consumer. Returns
 * the number of completions. */
static int round_take_several(struct rt_poller *poller,
			      struct rt_round_taker *taker)
{
	int done = 0;

	if (poller->cqs_awake < poller->cqs_count)
		done = round_poll_resting(poller, taker);
	return done + round_poll_awake(poller, 0, taker);
}

int rt_round_take_rest(struct rt_poller *poller, struct rt_side *side,
		       struct rt_lane *lane, struct rpma_rt_completion *cmpl,
		       int max, int n)
{
	struct rt_round_taker taker = {lane, lane->tail_next, cmpl, cmpl + max};
	uint64_t runner = poller->runner;
	int count = 1;

	rt_self_set_poller(poller);
	/* rings are not left out: the caller may sleep on another queue */
	poller->runner = 0;
	if (side != NULL) {
		round_ring_one(poller, NULL, side);
	} else if (poller->single != NULL && n <= 0) {
		round_poll_none(poller, poller->single, n);
		count = round_end_empty(poller) > 0 ? RT_TAKE_OTHERS : 0;
	} else {
		n = poller->single != NULL
			    ? round_take_all(poller, poller->single, &taker, n)
			    : round_take_several(poller, &taker);
		count = round_end_take(poller, &taker, cmpl, n);
	}
	poller->runner = runner;
	rt_self_set_poller(NULL);
	return count;
}
