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

/* Returns whether a round that hands completions to a consumer may poll the CQ
 * once more: nothing else was polled but silent completions. No function was
 * called and no credit was published, so that the completions come to an
 * end. */
static inline bool rt_round_may_poll_again(const struct rt_poller *poller,
					   const struct rt_cq *cq)
{
	return poller->touched_lanes == NULL &&
	       poller->touched_numbers == NULL && poller->calls.count == 0 &&
	       rt_round_has_single(poller) && poller->single == cq;
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

/* ----------------------------------------------------------------- rows --- */

/* a consumer that runs the round, and takes from the lane */
struct rt_round_taker {
	struct rt_lane *lane;
	uint32_t tail;		       /* of the lane, which is empty */
	struct rpma_rt_completion *to; /* where the next completion goes */
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
