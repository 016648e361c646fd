/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * deliver.c -- the writes of a poller: writes items to lanes, publishes and
 * rings once for each batch, retries spills, answers refused posters. Runs on
 * the poller. doc/protocols/lane.md, ledger.md.
 */

#include "poller/poller.h"

#include <assert.h>
#include <string.h>

#include "base/clock.h"
#include "base/lang.h"
#include "base/runtime.h"
#include "poller/cq_pool.h"
#include "poller/source.h"
#include "queue/queue.h"

/* ------------------------------------------------------------- callback --- */

/*
 * Collects the calls of a batch, and makes the calls at the batch's end.
 * doc/protocols/callback.md.
 */

/* Collects a call of the function with the item. REQUIRES: room; only
 * rt_deliver_call() calls this function */
static void rt_callback_add(struct rt_poller *poller,
			    struct rt_callback *callback,
			    const struct rpma_rt_completion *item)
{
	struct rt_callbacks *calls = &poller->calls;

	/* no call that a function may make adds items */
	assert(calls->running == NULL);
	assert(calls->count < RT_CALLBACKS);
	calls->due[calls->count].callback = callback;
	calls->due[calls->count].item = *item;
	calls->count++;
	poller->written++;
}

/* Makes the collected calls, in order. */
static void rt_callback_run(struct rt_poller *poller)
{
	struct rt_callbacks *calls = &poller->calls;
	int cancel = rt_poller_begin_functions(poller);
	uint32_t i;

	assert(calls->running == NULL);
	for (i = 0; i < calls->count; i++) {
		calls->running = calls->due[i].callback;
		rt_callback_show(calls, calls->running);
		calls->running->fn(&calls->due[i].item, calls->running->arg);
	}
	rt_callback_show(calls, NULL);
	calls->running = NULL;
	calls->count = 0;
	rt_poller_end_functions(poller, cancel);
}

/* -------------------------------------------------------------- deliver --- */

/* most answers in a round to routes and SRQs that wait for lanes */
#define ANSWERS 64
#define SPILLS	64 /* most lanes in a round that get items of their spills */

static_assert(RT_LANE_NUMBERS == RT_ROUTE_FIRST, "a bit for each number");

void rt_deliver_write(struct rt_poller *poller, struct rt_lane *lane,
		      const struct rpma_rt_completion *item)
{
	*rt_lane_slot_poller(lane) = *item;
	rt_deliver_touch_lane(poller, lane);
	poller->written++;
}

/* Not inlined: a call for which there is room saves no registers. */
__attribute__((noinline)) static void
deliver_call_full(struct rt_poller *poller, struct rt_callback *callback,
		  const struct rpma_rt_completion *item)
{
	rt_deliver_flush(poller);
	rt_callback_add(poller, callback, item);
}

void rt_deliver_call(struct rt_poller *poller, struct rt_callback *callback,
		     const struct rpma_rt_completion *item)
{
	if (unlikely(poller->calls.count == RT_CALLBACKS))
		deliver_call_full(poller, callback, item);
	else
		rt_callback_add(poller, callback, item);
}

void rt_deliver_asked(struct rt_poller *poller, struct rt_futures *futures,
		      uint32_t event)
{
	do {
		rt_deliver_futures(poller);
	} while (rt_source_serve_poller(poller, futures, event));
}

/* Lists a message for futures, and serves the first watching slot. */
static void deliver_message(struct rt_poller *poller,
			    struct rt_futures *futures,
			    const struct rpma_rt_completion *item)
{
	rt_source_put_poller(futures->source, item);
	poller->written++;
	rt_deliver_asked(poller, futures, 0);
}

static void deliver_future(struct rt_poller *poller, struct rt_futures *futures,
			   const struct rpma_rt_completion *item)
{
	const struct rt_route_entry *to;
	struct rpma_rt_completion left;

	rt_deliver_futures(poller);
	to = rt_future_complete_poller(poller, futures, item, &left);
	if (unlikely(to != NULL))
		rt_deliver_item(poller, to, &left);
}

void rt_deliver_item(struct rt_poller *poller,
		     const struct rt_route_entry *entry,
		     const struct rpma_rt_completion *item)
{
	switch ((enum rt_leads_to)entry->leads_to) {
	case RT_TO_LANE:
		rt_deliver_write(poller, entry->lane, item);
		break;
	case RT_TO_FUTURES:
		deliver_future(poller, entry->futures, item);
		break;
	case RT_TO_CALLBACK:
		rt_deliver_call(poller, entry->callback, item);
		break;
	case RT_TO_SOURCE:
		deliver_message(poller, entry->futures, item);
		break;
	case RT_TO_SINK:
		entry->sink(item->context);
		break;
	case RT_TO_ROUTE:
		rt_deliver_item(poller, rt_route_led_to(entry->led), item);
		break;
	}
}

void rt_deliver_raw(struct rt_poller *poller, const struct rt_cq_raw *raw,
		    int n)
{
	struct rpma_rt_completion item;
	int i;

	for (i = 0; i < n; i++) {
		item = rt_item_of_wc(&poller->wcs[i], poller->wcs[i].wr_id,
				     raw->user, RPMA_RT_OPCODE_UNKNOWN);
		rt_deliver_write(poller, raw->lane, &item);
	}
}

/* Lists a lane that spills, and holds the lane's queue until the spill was
 * emptied and the consumer rung. */
static void deliver_list_spilling(struct rt_poller *poller,
				  struct rt_lane *lane)
{
	if (lane->spill_listed || !rt_lane_is_spilling_poller(lane))
		return;
	lane->spill_listed = true;
	rt_queue_ref_spill_poller(lane);
	lane->spill_next = poller->spilling;
	poller->spilling = lane;
	rt_poller_disturb(poller);
}

static void deliver_count_spilled(struct rt_poller *poller,
				  struct rt_lane *lane)
{
	RT_STAT_ADD(poller, spilled, lane->spilled_new);
	RT_STAT_ADD(poller, lost, lane->lost_new);
	lane->spilled_new = 0;
	lane->lost_new = 0;
}

/* Dates the items of the batch, before consumers see the items and before
 * credits go back. */
static void deliver_date_lanes(struct rt_poller *poller, struct rt_lane *lanes)
{
	uint32_t ms = rt_poller_tick(poller);
	struct rt_lane *lane;

	for (lane = lanes; lane != NULL; lane = lane->touched_next) {
		rt_lane_date_poller(lane, rt_lane_last_poller(lane), ms);
		if (unlikely(poller->polled_ns != 0))
			rt_lane_stamp_poller(lane, poller->polled_ns);
		RT_STAT_ADD(poller, batches, 1);
		if (unlikely(rt_lane_is_spilling_poller(lane))) {
			deliver_count_spilled(poller, lane);
			deliver_list_spilling(poller, lane);
		}
	}
	poller->polled_ns = 0;
}

/* Publishes the lanes, after the credits: a thread that takes a completion may
 * post in its place at once. */
static void deliver_publish_lanes(const struct rt_poller *poller,
				  struct rt_lane *lanes)
{
	bool is_signed = !poller->threaded && poller->rt->cfg.timing == 0;
	struct rt_lane *lane;

	for (lane = lanes; lane != NULL; lane = lane->touched_next) {
		if (is_signed)
			rt_lane_sign_poller(lane);
		rt_lane_publish_poller(lane);
	}
}

static void deliver_publish_retired(struct rt_side *sides, uint32_t ms)
{
	struct rt_side *side;

	for (side = sides; side != NULL; side = side->touched_next) {
		side->touched = false;
		rt_side_publish(side, ms);
	}
}

/* Takes the first bit out of the word; returns the number of that bit. */
static const struct rt_reserved *deliver_take_number(struct rt_poller *poller,
						     int word, uint64_t *bits)
{
	int bit = __builtin_ctzll(*bits);

	*bits &= *bits - 1;
	return &poller->reserved[word * 64 + bit];
}

/* Holds up the numbers that have items in a lane over its limit: such numbers
 * get no more credit. */
static void deliver_hold_numbers(struct rt_poller *poller, struct rt_lane *lane)
{
	const struct rt_reserved *reserved;
	uint64_t bits;
	int word;

	for (word = 0; word < RT_LANE_NUMBERS / 64; word++) {
		bits = lane->from_numbers[word] & ~lane->held_numbers[word];
		lane->held_numbers[word] |= bits;
		while (bits != 0) {
			reserved = deliver_take_number(poller, word, &bits);
			reserved->ops->held(reserved->arg);
		}
	}
}

static void deliver_publish_numbers(struct rt_poller *poller,
				    struct rt_lane *lanes,
				    struct rt_reserved *numbers)
{
	struct rt_reserved *reserved;
	struct rt_lane *lane;

	for (lane = lanes; lane != NULL; lane = lane->touched_next) {
		if (rt_lane_is_backlogged(lane))
			deliver_hold_numbers(poller, lane);
		memset(lane->from_numbers, 0, sizeof(lane->from_numbers));
	}
	for (reserved = numbers; reserved != NULL;
	     reserved = reserved->touched_next) {
		reserved->touched = false;
		reserved->ops->publish(reserved->arg);
	}
}

/* Answers the posters of the numbers. An answer may touch the number again, for
 * the next batch. */
static void deliver_answer_numbers(struct rt_reserved *numbers)
{
	struct rt_reserved *next;

	for (; numbers != NULL; numbers = next) {
		next = numbers->touched_next;
		numbers->ops->answer(numbers->arg);
	}
}

bool rt_deliver_ring(struct rt_poller *poller, struct rt_lane *lane)
{
	if (!rt_left_out_may(lane, poller->runner))
		return rt_lane_bell_poller(lane);
	rt_left_out_add_poller(&poller->left_out, lane, poller->runner);
	return false;
}

static void deliver_ring_lanes(struct rt_poller *poller, struct rt_lane *lanes)
{
	struct rt_lane *lane;
	struct rt_lane *next;

	for (lane = lanes; lane != NULL; lane = next) {
		next = lane->touched_next;
		if (rt_deliver_ring(poller, lane))
			RT_STAT_ADD(poller, doorbells, 1);
	}
}

/* Returns whether the calling thread is the only consumer of the lanes, and the
 * only poster to the sides: other threads have a heavy fence before they sleep
 * on a queue, or are refused a post. */
static bool deliver_is_own(const struct rt_lane *lanes,
			   const struct rt_side *sides)
{
	for (; lanes != NULL; lanes = lanes->touched_next) {
		if (!rt_keep_is_here(lanes->kept))
			return false;
	}
	for (; sides != NULL; sides = sides->touched_next) {
		if (!rt_side_is_kept_here(sides))
			return false;
	}
	return true;
}

/* The batch's only fence: between the published words and the words of sleepers
 * and refused posters [LANE-3] [LEDGER-2]. */
static inline void deliver_fence(const struct rt_poller *poller,
				 const struct rt_lane *lanes,
				 const struct rt_side *sides, bool has_numbers)
{
	/* the looks at the keepers come behind the published words, in the
	 * order of the program [KEEP-2] [TURN-6] */
	rt_fence_light();
	if (!poller->threaded && !has_numbers && deliver_is_own(lanes, sides))
		rt_fence_light();
	else
		rt_fence_dekker();
}

/* Publishes everything that was touched, and rings. The caller answers the
 * sides. */
static inline void deliver_publish(struct rt_poller *poller,
				   struct rt_reserved *numbers)
{
	struct rt_lane *lanes = poller->touched_lanes;
	struct rt_side *sides = poller->touched_sides;

	poller->touched_lanes = NULL;
	poller->touched_sides = NULL;
	RT_STAT_ADD(poller, delivered, poller->written);
	poller->written = 0;
	deliver_date_lanes(poller, lanes);
	deliver_publish_retired(sides, rt_poller_tick(poller));
	if (unlikely(numbers != NULL))
		deliver_publish_numbers(poller, lanes, numbers);
	deliver_publish_lanes(poller, lanes);
	deliver_fence(poller, lanes, sides, numbers != NULL);
	deliver_ring_lanes(poller, lanes);
}

static void deliver_flush_once(struct rt_poller *poller)
{
	struct rt_reserved *numbers = poller->touched_numbers;
	struct rt_side *side = poller->touched_sides;

	poller->touched_numbers = NULL;
	deliver_publish(poller, numbers);
	/* after the walk of the list of lanes, because an answer begins a new
	 * list */
	for (; side != NULL; side = side->touched_next) {
		if (unlikely(rt_side_is_due(side)))
			side->ops->answer(side, poller, RT_SIDE_ANSWERS);
	}
	if (unlikely(numbers != NULL))
		deliver_answer_numbers(numbers);
}

void rt_deliver_publish(struct rt_poller *poller)
{
	struct rt_side *sides = poller->touched_sides;
	struct rt_side *next;

	assert(poller->touched_numbers == NULL && poller->calls.count == 0);
	deliver_publish(poller, NULL);
	for (; sides != NULL; sides = next) {
		next = sides->touched_next;
		if (unlikely(rt_side_is_due(sides)))
			rt_deliver_touch_side(poller, sides);
	}
}

void rt_deliver_flush(struct rt_poller *poller)
{
	/* a function is called when the credits are back; a later poll finds
	 * what the function posts, so this loop ends */
	while (rt_deliver_is_due(poller)) {
		deliver_flush_once(poller);
		if (poller->calls.count > 0)
			rt_callback_run(poller);
	}
}

/* Lets the numbers go on that the lane held up. */
static void deliver_ease_numbers(struct rt_poller *poller, struct rt_lane *lane)
{
	const struct rt_reserved *reserved;
	int word;

	for (word = 0; word < RT_LANE_NUMBERS / 64; word++) {
		while (lane->held_numbers[word] != 0) {
			reserved = deliver_take_number(
				poller, word, &lane->held_numbers[word]);
			reserved->ops->eased(reserved->arg);
		}
	}
}

/* Moves items from a lane's spill to its ring, as far as the ring has room.
 * Returns the number of moved items. */
static uint32_t deliver_retry_spill(struct rt_poller *poller,
				    struct rt_lane *lane)
{
	uint32_t moved;

	/* before a consumer of the last item may delete the queue */
	if (rt_lane_is_emptying_poller(lane))
		rt_queue_announce_spill_poller(lane, true);
	moved = rt_lane_retry_poller(lane);
	if (rt_lane_take_eased_poller(lane))
		deliver_ease_numbers(poller, lane);
	if (moved == 0)
		return 0;
	/* pairs with the consumer's fence before a sleep [LANE-3], and with the
	 * fence of a poster that found the backlog [LEDGER-2] */
	rt_fence_dekker();
	rt_deliver_ring(poller, lane);
	return moved;
}

/* Takes lanes off the list that neither spill nor owe an answer any more. */
static void deliver_unlist_spilling(struct rt_poller *poller)
{
	struct rt_lane **link = &poller->spilling;
	struct rt_lane *lane;

	while ((lane = *link) != NULL) {
		if (rt_lane_is_spilling_poller(lane) ||
		    rt_lane_is_answering_poller(lane)) {
			if (rt_lane_is_spilling_poller(lane))
				rt_queue_announce_spill_poller(lane, false);
			link = &lane->spill_next;
			continue;
		}
		*link = lane->spill_next;
		lane->spill_listed = false;
		/* the lane may be freed afterwards */
		rt_queue_unref_spill_poller(lane);
	}
}

/* Puts the lanes up to `last` behind the other lanes, which are served first
 * from now on. */
static void deliver_rotate_spilling(struct rt_poller *poller,
				    struct rt_lane *last)
{
	struct rt_lane *first = poller->spilling;
	struct rt_lane *end = last;

	while (end->spill_next != NULL)
		end = end->spill_next;
	poller->spilling = last->spill_next;
	end->spill_next = first;
	last->spill_next = NULL;
}

/* Retries the spills of some lanes. Returns the number of moved items. A poller
 * that moved items does not sleep, so the other lanes get a turn. */
static uint32_t deliver_retry_some(struct rt_poller *poller)
{
	struct rt_lane *lane;
	uint32_t moved = 0;
	uint32_t lanes = 0;
	uint32_t n;

	for (lane = poller->spilling; lane != NULL; lane = lane->spill_next) {
		n = deliver_retry_spill(poller, lane);
		moved += n;
		if (n > 0 && ++lanes == SPILLS && lane->spill_next != NULL) {
			deliver_rotate_spilling(poller, lane);
			break;
		}
	}
	return moved;
}

int rt_deliver_retry_spills(struct rt_poller *poller)
{
	uint32_t moved = deliver_retry_some(poller);
	uint32_t answered = 0;
	struct rt_lane *lane;

	/* an answer may call functions, whose items may fill a lane; such a
	 * lane is listed in front */
	for (lane = poller->spilling; lane != NULL; lane = lane->spill_next)
		answered += rt_lane_answer_poller(lane, ANSWERS - answered);
	deliver_unlist_spilling(poller);
	return (int)(moved + answered);
}
