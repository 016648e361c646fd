/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * row.c -- a row: successes of a route, one behind the other, as those of a
 * chain that a thread has posted. Each function delivers a row in one loop,
 * which looks at route and queue pair once. On the poller.
 */

#include "base/lang.h"
#include "poller/poller.h"
#include "poller/round.h"

struct row {
	const struct rt_route_entry *entry;
	uint64_t of;			/* the wr_ids, but for the cookies */
	struct rpma_rt_completion item; /* of the last completion */
};

static inline struct row row_begin(const struct rt_route_entry *entry,
				   const struct ibv_wc *wc)
{
	return (struct row){entry, wc->wr_id & ~RT_COOKIE_MASK,
			    rt_round_item(entry, wc)};
}

/* Takes the context of the item from a completion. Returns false if the
 * completion is not of the row. */
static inline bool row_has(struct row *row, const struct ibv_wc *wc)
{
	row->item.context = wc->wr_id ^ row->of;
	return row->item.context <= RT_COOKIE_MASK &&
	       wc->qp_num == row->item.qp_num && wc->status == IBV_WC_SUCCESS;
}

/* Makes the rest of the item of a completion that the row has. */
static inline void row_fill(struct row *row, const struct ibv_wc *wc)
{
	row->item.byte_len = wc->byte_len;
	row->item.imm = wc->imm_data;
	row->item.opcode = (uint8_t)wc->opcode;
	row->item.flags = rt_round_flags(row->entry, wc);
}

/* Makes the item of a completion. Returns false if the completion is not of the
 * row, and the item is not to be used. */
static inline bool row_item(struct row *row, const struct ibv_wc *wc)
{
	if (!row_has(row, wc))
		return false;
	row_fill(row, wc);
	return true;
}

/* Delivers a row to the lane of the route, as far as the ring has room. */
const struct ibv_wc *rt_row_to_lane(struct rt_poller *poller,
				    const struct rt_route_entry *entry,
				    const struct ibv_wc *wc,
				    const struct ibv_wc *end)
{
	struct row row = row_begin(entry, wc);
	const struct ibv_wc *first = wc;
	struct rt_lane *lane = entry->lane;
	struct rpma_rt_completion *ring = lane->ring;
	const uint32_t mask = lane->size - 1;
	uint32_t tail = lane->tail_next;

	if ((uint32_t)(end - wc) > lane->room_end - tail)
		end = wc + (lane->room_end - tail);
	for (; wc < end && row_item(&row, wc); wc++)
		rt_lane_fill_slot(&ring[tail++ & mask], &row.item);
	if (unlikely(wc == first))
		return wc;
	/* what touches the lane notes where the batch begins */
	lane->tail_next++;
	rt_deliver_touch_lane(poller, lane);
	lane->tail_next = tail;
	poller->written += (uint32_t)(wc - first);
	return wc;
}

/* Stores a row in the slots of futures, as far as nothing but the result was
 * asked of the slots. */
const struct ibv_wc *rt_row_to_futures(struct rt_poller *poller,
				       const struct rt_route_entry *entry,
				       const struct ibv_wc *wc,
				       const struct ibv_wc *end)
{
	struct row row = row_begin(entry, wc);
	const struct ibv_wc *first = wc;
	struct rt_future_batch *batch = &poller->futures;
	struct rt_future **to = &batch->complete[batch->count];
	struct rt_future *slot;

	if (end - wc > RT_FUTURE_BATCH - (int)batch->count)
		end = wc + (RT_FUTURE_BATCH - batch->count);
	for (; wc < end && row_has(&row, wc); wc++) {
		slot = rt_future_of_cookie(row.item.context);
		/* the address of another route, or of an earlier poll, may be
		 * prefetched as well */
		rt_future_prefetch(rt_wr_id_cookie(wc[RT_FUTURE_AHEAD].wr_id));
		if (unlikely(!rt_future_is_expected(slot, row.item.context) ||
			     slot->told != 0))
			break;
		row_fill(&row, wc);
		rt_future_fill(slot, row.item);
		*to++ = slot;
	}
	if (unlikely(wc == first))
		return wc;
	rt_future_add_batch(batch, entry->futures, (uint32_t)(wc - first));
	rt_deliver_touch_number(poller, RT_ROUTE_FUTURES);
	poller->written += (uint32_t)(wc - first);
	poller->has_others = true;
	return wc;
}

/* Hands a row to the consumer. */
const struct ibv_wc *rt_row_to_taker(const struct rt_route_entry *entry,
				     const struct ibv_wc *wc,
				     const struct ibv_wc *end,
				     struct rt_round_taker *taker)
{
	struct row row = row_begin(entry, wc);
	struct rpma_rt_completion *to = taker->to;

	for (; wc < end && row_item(&row, wc); wc++)
		rt_lane_fill_slot(to++, &row.item);
	taker->to = to;
	return wc;
}
