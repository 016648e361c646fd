/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/* round.h -- a round of a poller, and the steps of a round that consumers make
 * as well: doc/protocols/lend.md. */

#ifndef RT_POLLER_ROUND_H
#define RT_POLLER_ROUND_H

#include <assert.h>

#include "base/lang.h"
#include "poller/cq_pool.h"
#include "poller/poller.h"

/* Runs a round; returns the number of handled items. */
int rt_round_run(struct rt_poller *poller, int budget);
/* Does the work that the rounds of consumers left. On the poller's thread,
 * after it lent the poller. */
void rt_round_take_over(struct rt_poller *poller);

/* Ends the sleep of a poller that the calling thread armed. Not inlined: a loop
 * that does not sleep saves no registers for this function. */
void rt_poller_wake(struct rt_poller *p);

/* Runs a round of a poller that the calling thread has entered as its owner;
 * returns the number of handled items. */
__attribute__((always_inline)) static inline int
rt_round_run_entered(struct rt_poller *p, int budget)
{
	if (unlikely(p->armed))
		rt_poller_wake(p);
	return rt_round_run(p, budget);
}

/* Returns whether the CQ has routes and can be polled. */
static inline bool rt_round_is_usual(const struct rt_cq *cq)
{
	return !cq->dead && cq->raw == NULL;
}

/* Returns whether the poller has only a single CQ, which rt_round_is_usual():
 * true for most pollers. */
static inline bool rt_round_has_single(const struct rt_poller *poller)
{
	assert((poller->single != NULL) ==
	       (poller->cqs_count == 1 && poller->cqs_awake == 1 &&
		rt_round_is_usual(poller->cqs[0])));
	return likely(poller->single != NULL);
}

static inline bool rt_round_is_of(const struct rt_route_entry *entry,
				  const struct ibv_wc *wc)
{
	return entry->qp_key == rt_qp_key(wc->qp_num);
}

/* Returns the flags of an item. */
static inline uint8_t rt_round_flags(const struct rt_route_entry *entry,
				     const struct ibv_wc *wc)
{
	return (uint8_t)(((uint8_t)wc->wc_flags &
			  (RPMA_RT_C_WITH_IMM | RPMA_RT_C_WITH_INV)) |
			 entry->flags);
}

static inline struct rpma_rt_completion
rt_round_item(const struct rt_route_entry *entry, const struct ibv_wc *wc)
{
	struct rpma_rt_completion item;

	item.context = rt_wr_id_cookie(wc->wr_id);
	item.user = entry->user;
	item.byte_len = wc->byte_len;
	item.imm = wc->imm_data;
	item.qp_num = wc->qp_num;
	item.kind = RPMA_RT_COMPLETION;
	item.status = IBV_WC_SUCCESS;
	item.opcode = (uint8_t)wc->opcode;
	item.flags = rt_round_flags(entry, wc);
	return item;
}

/* Delivers a completion to the lane of a route, as part of the batch. */
static inline void rt_round_to_lane(struct rt_poller *poller,
				    const struct rt_route_entry *entry,
				    const struct ibv_wc *wc)
{
	struct rpma_rt_completion item = rt_round_item(entry, wc);

	rt_lane_fill_slot(rt_lane_slot_poller(entry->lane), &item);
	rt_deliver_touch_lane(poller, entry->lane);
	poller->written++;
}

/* ----------------------------------------------------- parts of a round --- */

/* Polls a CQ; returns what ibv_poll_cq() does. REQUIRES: the CQ is not dead */
static inline int rt_round_poll_verb(struct rt_poller *poller,
				     const struct rt_cq *cq, int budget)
{
	int n = ibv_poll_cq(cq->ibv_cq, budget < RT_BATCH ? budget : RT_BATCH,
			    poller->wcs);

	if (n > 0)
		rt_order_polled(cq->ibv_cq);
	return n;
}

/*
 * Returns the route of a usual completion, or NULL: a success, of a route to a
 * lane, on a CQ with routes and without waiting tasks. *marks: of the side of
 * the route.
 */
static inline const struct rt_route_entry *
rt_round_usual_route(const struct rt_cq *cq, const struct ibv_wc *wc,
		     uint8_t *marks)
{
	const struct rt_route_entry *entry;

	if (unlikely(cq->sweeping.next != &cq->sweeping))
		return NULL;
	entry = &cq->routes[rt_wr_id_route(wc->wr_id)];
	if (!rt_round_is_of(entry, wc) || entry->leads_to != RT_TO_LANE ||
	    wc->status != IBV_WC_SUCCESS || wc->wr_id & RT_ON_ERROR_ONLY)
		return NULL;
	*marks = rt_side_marks(entry->side);
	/* first, so that nothing else asks for the usual marks again */
	if (likely(*marks == RT_SIDE_HEALTHY))
		return entry;
	return *marks & RT_SIDE_HEALTHY ? entry : NULL;
}

/* Stores the item of the only completion of a poll, with the steps of
 * deliver_flush_once() in their order, up to the fence. lane, side, marks: of
 * the entry, which the stores may change for all that the compiler knows. lane
 * NULL: the item goes to `to`, for the consumer of the entry's lane. Returns
 * whether no consumer sleeps and no poster waits. */
__attribute__((always_inline)) static inline bool
rt_round_store_one(struct rt_poller *poller, struct rt_cq *cq,
		   const struct rt_route_entry *entry, struct rt_lane *lane,
		   struct rt_side *side, uint8_t marks,
		   struct rpma_rt_completion *to)
{
	struct rpma_rt_completion item;
	uint32_t ms = rt_poller_tick(poller);

	/* otherwise these would be published too late */
	assert(!rt_deliver_is_due(poller));
	/* first, because a call between the other steps would cost registers */
	rt_side_retire(side, marks);
	item = rt_round_item(entry, &poller->wcs[0]);
	rt_lane_fill_slot(lane != NULL ? rt_lane_place_poller(lane) : to,
			  &item);
	/* without `lane` the entry's lane never has the item */
	rt_lane_date_poller(entry->lane,
			    entry->lane->tail_next - (lane == NULL), ms);
	rt_side_publish(side, ms);
	if (lane != NULL) {
		if (!poller->threaded)
			rt_lane_sign_poller(lane);
		rt_lane_publish_one_poller(lane);
	}
	cq->taken++;
	RT_STAT_ADD(poller, alone, 1);
	/* as in deliver_fence() [LANE-3] [LEDGER-2] */
	rt_fence_light();
	if (likely(lane == NULL || rt_keep_is_here(lane->kept)) &&
	    likely(rt_side_is_kept_here(side)))
		rt_fence_light();
	else
		rt_fence_dekker();
	return (lane == NULL || !rt_bell_is_due(lane->consumer)) &&
	       !rt_side_is_due(side);
}

/* Looks at everything that rt_poller_disturb() tells of. */
static inline bool rt_round_find_quiet(const struct rt_poller *poller)
{
	return poller->spilling == NULL && poller->leaving == NULL &&
	       !poller->timed_out &&
	       !rt_schedule_has_tasks(&poller->schedule) &&
	       !rt_schedule_has_deferred(&poller->schedule);
}

/* Returns whether there is nothing to look for but completions. */
static inline bool rt_round_is_quiet(const struct rt_poller *poller)
{
	assert(!poller->quiet || rt_round_find_quiet(poller));
	return likely(poller->quiet && rt_inbox_is_empty(&poller->inbox));
}

/* ------------------------------------------- straight to the consumer --- */

/* results of a round of a consumer besides a number of completions */
#define RT_TAKE_NO_ROUND (-1) /* the round is an unusual one: not run */
#define RT_TAKE_OTHERS	 (-2) /* the round worked for others only */

/*
 * Runs, or ends, a round of a consumer in which functions may be called: the
 * calling thread is the poller meanwhile. Usual completions of the lane go to
 * cmpl. n: of a poller with a single CQ, what ibv_poll_cq() returned for up to
 * max completions. side: NULL, or of the only completion, which went to cmpl
 * already. Returns how many completions went to cmpl, or RT_TAKE_OTHERS.
 */
int rt_round_take_rest(struct rt_poller *poller, struct rt_side *side,
		       struct rt_lane *lane, struct rpma_rt_completion *cmpl,
		       int max, int n);

/* ----------------------------------------------------------------- rows --- */

/* a consumer that runs the round, and takes from the lane */
struct rt_round_taker {
	struct rt_lane *lane;
	uint32_t tail;			/* of the lane, which is empty */
	struct rpma_rt_completion *to;	/* where the next completion goes */
	struct rpma_rt_completion *end; /* of the consumer's array */
};

/*
 * Deliver a row of successes of the route, from wc on, up to another completion
 * or `end`, and return behind the last: to the route's lane, as far as the ring
 * has room; to futures of which nothing but the result was asked; to the
 * consumer. The caller retires the entries.
 */
const struct ibv_wc *rt_row_to_lane(struct rt_poller *poller,
				    const struct rt_route_entry *entry,
				    const struct ibv_wc *wc,
				    const struct ibv_wc *end);
const struct ibv_wc *rt_row_to_futures(struct rt_poller *poller,
				       const struct rt_route_entry *entry,
				       const struct ibv_wc *wc,
				       const struct ibv_wc *end);
const struct ibv_wc *rt_row_to_taker(const struct rt_route_entry *entry,
				     const struct ibv_wc *wc,
				     const struct ibv_wc *end,
				     struct rt_round_taker *taker);

#endif /* RT_POLLER_ROUND_H */
