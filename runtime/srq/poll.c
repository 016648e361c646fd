/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * poll.c -- the poller's side of shared receive queues: the route of a
 * completion, returned slots, lanes over their limit, refills by the program
 * and from a pool. Runs on the poller. doc/protocols/srq.md, pool.md.
 */

#include "srq/srq.h"

#include <assert.h>
#include <string.h>

#include "base/clock.h"
#include "base/runtime.h"
#include "pool/pool.h"
#include "future/future.h"
#include "poller/poller.h"
#include "poller/qp_table.h"
#include "queue/lane.h"
#include "queue/queue.h"

/* the most that an ending SRQ does in a round: slots looked at, items given
 * back */
#define END_SLOTS 4096
#define END_ITEMS 64

/* milliseconds before a refill that the device refused is repeated: at first,
 * and at most */
#define AGAIN_FIRST_MS 10
#define AGAIN_MOST_MS  160

static void srq_poll_touch(struct rpma_rt_srq *srq)
{
	rt_deliver_touch_number(srq->poller, srq->number);
}

/* ---------------------------------------------------------- completions --- */

/* Returns the route for the receives of the queue pair, 0: no route. */
static uint32_t srq_poll_find_route(struct rt_poller *poller,
				    const struct rt_cq *cq, uint32_t qp_num)
{
	uint32_t route = rt_qp_table_find(cq->qps, qp_num);

	if (route != 0)
		return route;
	/* the message that binds the queue pair may still be in the inbox */
	rt_inbox_run_owner(&poller->inbox, poller);
	return rt_qp_table_find(cq->qps, qp_num);
}

/* Returns a slot that is out, to be given out again after the batch. */
static bool srq_poll_slot_return(struct rpma_rt_srq *srq, uint64_t cookie,
				 uint64_t *context)
{
	uint32_t index = (uint32_t)(cookie >> RT_SRQ_GEN_BITS);
	struct rt_srq_slot *slot = &srq->slots[index];

	if (index >= srq->cfg.srq_size || !(slot->generation & 1) ||
	    rt_srq_cookie(index, slot->generation) != cookie)
		return false;
	slot->generation++;
	*context = slot->context;
	srq->returned[srq->count++ & srq->mask] = index;
	srq_poll_touch(srq);
	return true;
}

/* Gives back a receive that belongs to no connection: to the SRQ's own queue,
 * marked, or to the SRQ's pool. */
static void srq_poll_give_back(struct rpma_rt_srq *srq, uint64_t context,
			       uint8_t flags)
{
	const struct rpma_rt_completion item = {
		.context = context,
		.user = srq->user,
		.kind = RPMA_RT_COMPLETION,
		.status = IBV_WC_GENERAL_ERR,
		.opcode = IBV_WC_RECV,
		.flags = flags,
	};

	if (srq->cfg.pool != NULL) {
		rt_pool_give_back(srq->cfg.pool, context);
		return;
	}
	rt_deliver_write(srq->poller, srq->lane, &item);
}

static void srq_completion(struct rt_poller *poller, struct rt_cq *cq,
			   const struct ibv_wc *wc)
{
	/* first, because this may run the inbox, in which an SRQ may end */
	uint32_t route = srq_poll_find_route(poller, cq, wc->qp_num);
	struct rpma_rt_srq *srq =
		poller->reserved[rt_wr_id_route(wc->wr_id)].arg;
	struct rt_route_entry *entry = &cq->routes[route];
	struct rpma_rt_completion item;
	uint64_t context;

	if (srq == NULL || (wc->wr_id & RT_ON_ERROR_ONLY) ||
	    !srq_poll_slot_return(srq, rt_wr_id_cookie(wc->wr_id), &context)) {
		RT_STAT_ADD(poller, stale, 1);
		return;
	}
	if (route == 0) {
		if (srq->lane != NULL)
			rt_deliver_mark_lane(srq->lane, srq->number);
		srq_poll_give_back(srq, context, RPMA_RT_C_SYNTHESIZED);
		RT_STAT_ADD(poller, stale, 1);
		return;
	}
	if (wc->status != IBV_WC_SUCCESS)
		entry->side->ops->broken(entry->side, wc->status);
	if (srq->cfg.pool != NULL && wc->status != IBV_WC_SUCCESS) {
		rt_pool_give_back(srq->cfg.pool, context);
		return;
	}
	item = rt_item_of_wc(wc, context, entry->user, IBV_WC_RECV);
	if (srq->cfg.pool != NULL)
		item.flags |= RPMA_RT_C_LEASE;
	if (entry->leads_to != RT_TO_LANE) {
		rt_deliver_item(poller, entry, &item);
		return;
	}
	rt_deliver_mark_lane(entry->lane, srq->number);
	rt_deliver_write(poller, entry->lane, &item);
}

/* ------------------------------------------------------ a batch's end --- */

/* Holds the SRQ up: a lane is over its limit. */
static void srq_poll_held(void *arg)
{
	struct rpma_rt_srq *srq = arg;

	/* relaxed [SRQ-2]: the release of retired publishes the flag */
	if (srq->held++ == 0)
		atomic_store_explicit(&srq->behind, true, memory_order_relaxed);
}

static void srq_poll_publish(void *arg)
{
	struct rpma_rt_srq *srq = arg;

	/* relaxed, both: statistics, which order nothing */
	atomic_store_explicit(&srq->retired_ms, rt_poller_tick(srq->poller),
			      memory_order_relaxed);
	atomic_store_explicit(&srq->messages_listed, rt_srq_listed_poller(srq),
			      memory_order_relaxed);
	/* release [SRQ-1]: pairs with the acquire in srq_post_room(), post.c:
	 * the slots below `count`, and the flag */
	atomic_store_explicit(&srq->retired, srq->count, memory_order_release);
}

/* Lets the SRQ go on: no lane holds the SRQ up any more; the batch's end
 * answers the posters. */
static void srq_poll_let_go_on(struct rpma_rt_srq *srq)
{
	/* release [SRQ-2]: pairs with the acquire in srq_post_is_behind(),
	 * post.c: a poster that sees the flag clear sees the room, too */
	atomic_store_explicit(&srq->behind, false, memory_order_release);
	srq->refill_due |= srq->refill_waits;
	srq->refill_waits = false;
	srq_poll_touch(srq);
}

/* Notes that a lane that held the SRQ up is under its limit again. */
static void srq_poll_eased(void *arg)
{
	struct rpma_rt_srq *srq = arg;

	if (--srq->held == 0)
		srq_poll_let_go_on(srq);
}

/* -------------------------------------------------- refills and posters --- */

/* Returns the number of receives that are out, with the receives that posters
 * are handing over. */
static uint32_t srq_poll_count_out(const struct rpma_rt_srq *srq)
{
	/* relaxed: stored before the device had the receives that are counted
	 * back here */
	uint32_t out = srq->cfg.srq_size - srq->count +
		       atomic_load_explicit(&srq->posted, memory_order_relaxed);

	assert(out <= srq->cfg.srq_size);
	return out;
}

/* Returns whether SRQ_LIMIT is due, for an SRQ without a refill function. */
static bool srq_poll_pass_limit(struct rpma_rt_srq *srq)
{
	/* acquire [SRQ-3]: pairs with the release in srq_post_watch(), post.c,
	 * to count what was posted */
	if (srq->cfg.limit == 0 || srq->cfg.refill != NULL ||
	    !atomic_load_explicit(&srq->armed, memory_order_acquire) ||
	    srq_poll_count_out(srq) >= srq->cfg.limit)
		return false;
	/* relaxed: the fence orders the store */
	atomic_store_explicit(&srq->armed, false, memory_order_relaxed);
	/* pairs with the fence in srq_post_watch(), post.c: the receives of a
	 * poster that still found the flag set are counted now [SRQ-3] */
	rt_fence_dekker();
	if (srq_poll_count_out(srq) < srq->cfg.limit)
		return true;
	/* relaxed: this thread has counted what was posted */
	atomic_store_explicit(&srq->armed, true, memory_order_relaxed);
	return false;
}

/* Returns how many more receives may be posted. Listed messages count as
 * receives that are out: at most that many messages wait, then the peers
 * wait. */
static uint32_t srq_poll_room_of(const struct rpma_rt_srq *srq)
{
	uint32_t used = srq_poll_count_out(srq) + rt_srq_listed_poller(srq);

	return used < srq->cfg.srq_size ? srq->cfg.srq_size - used : 0;
}

/* Makes the refill due again: the time after a refused refill is over. */
static int srq_poll_again(struct rt_task *task, struct rt_poller *poller)
{
	struct rpma_rt_srq *srq = RT_FROM(struct rpma_rt_srq, again, task);

	(void)poller;
	srq->refill_due = true;
	srq_poll_touch(srq);
	return 1;
}

/* Has a refill that the device refused repeated after a time, twice as long
 * each time: where no receive is out, no completion brings the next refill. */
static void srq_poll_date_again(struct rpma_rt_srq *srq)
{
	uint32_t ms = 2 * srq->again_ms;

	if (ms < AGAIN_FIRST_MS)
		ms = AGAIN_FIRST_MS;
	if (ms > AGAIN_MOST_MS)
		ms = AGAIN_MOST_MS;
	srq->again_ms = ms;
	rt_schedule_at(srq->poller, &srq->again,
		       rt_now_ns() + ms * UINT64_C(1000000));
}

static void srq_poll_refill_if_due(struct rpma_rt_srq *srq)
{
	uint32_t low = srq->cfg.limit ? srq->cfg.limit : srq->cfg.srq_size;
	uint32_t out = srq_poll_count_out(srq);
	uint32_t room = srq_poll_room_of(srq);
	int cancel;

	if (srq->cfg.refill == NULL || (out >= low && !srq->refill_due))
		return;
	/* the batch that gives the refused receives back comes first */
	if (srq->refill_refused) {
		srq->refill_refused = false;
		return;
	}
	srq->refill_due = false;
	/* relaxed: a poster that posts later may arm the device again */
	atomic_store_explicit(&srq->armed, false, memory_order_relaxed);
	if (room == 0) /* another poster was faster, or messages are listed */
		return;
	srq->refilling = true;
	/* a fill from the pool is no function of the program, and has its place
	 * among the fills of the pool */
	cancel = srq->cfg.pool != NULL
			 ? rt_poller_begin_own_functions(srq->poller)
			 : rt_poller_begin_functions(srq->poller);
	rt_callback_show(&srq->poller->calls, srq);
	srq->cfg.refill(srq, room, srq->cfg.refill_arg);
	rt_callback_show(&srq->poller->calls, NULL);
	rt_poller_end_functions(srq->poller, cancel);
	srq->refilling = false;
	if (srq->refill_refused)
		srq_poll_date_again(srq);
	else
		srq->again_ms = 0;
}

static struct rpma_rt_completion srq_poll_own_item(struct rpma_rt_srq *srq,
						   enum rpma_rt_kind kind,
						   uint8_t opcode)
{
	return (struct rpma_rt_completion){
		.context = (uintptr_t)srq,
		.user = srq->user,
		.kind = (uint8_t)kind,
		.opcode = opcode,
	};
}

static void srq_poll_write_own(struct rpma_rt_srq *srq, enum rpma_rt_kind kind,
			       uint8_t opcode)
{
	const struct rpma_rt_completion item =
		srq_poll_own_item(srq, kind, opcode);

	rt_deliver_write(srq->poller, srq->lane, &item);
}

/* Writes the end to the SRQ's queue, if there is a queue, and behind all listed
 * messages. */
static void srq_poll_write_end(struct rpma_rt_srq *srq,
			       const struct rpma_rt_completion *item)
{
	if (srq->messages != NULL)
		rt_source_end_poller(srq->messages, item);
	if (srq->lane != NULL)
		rt_deliver_write(srq->poller, srq->lane, item);
}

/* Writes SRQ_LIMIT and WRITABLE, if due, to the SRQ's queue; both wait while
 * the queue's lane is over its limit. Posts may go on unless a lane holds the
 * SRQ up. */
static void srq_poll_answer_wants(struct rpma_rt_srq *srq)
{
	uint32_t wants = RT_WANT_CREDIT | (srq->held ? 0 : RT_WANT_BACKLOG);

	/* only the SRQ's pool posts, and needs no answer */
	if (srq->lane == NULL)
		return;
	if (rt_lane_is_backlogged(srq->lane)) {
		rt_lane_wait_poller(srq->lane, srq->waiter);
		return;
	}
	if (srq->limit_pending) {
		srq->limit_pending = false;
		srq_poll_write_own(srq, RPMA_RT_EVENT, RPMA_RT_EVENT_SRQ_LIMIT);
	}
	if (rt_srq_places(srq) == 0) /* the next completion answers */
		wants &= ~(uint32_t)RT_WANT_CREDIT;
	/* relaxed: ordered by the batch's fence, which pairs with the fence
	 * between the poster's store and the poster's second look */
	if (!(atomic_load_explicit(&srq->want, memory_order_relaxed) & wants))
		return;
	/* acq_rel: exactly one of two takers gets the bits */
	if (atomic_fetch_and_explicit(&srq->want, ~wants,
				      memory_order_acq_rel) &
	    wants)
		srq_poll_write_own(srq, RPMA_RT_WRITABLE, RPMA_RT_WRITABLE_SRQ);
}

/* Answers posters that may go on, and refills. After the fence. */
static void srq_poll_answer(void *arg)
{
	struct rpma_rt_srq *srq = arg;

	srq->limit_pending |= srq_poll_pass_limit(srq);
	/* the line goes first. relaxed: ordered by the batch's fence */
	if (atomic_load_explicit(&srq->want, memory_order_relaxed) &
	    RT_WANT_LINE)
		rt_srq_hold_poller(srq);
	srq_poll_answer_wants(srq);
	srq_poll_refill_if_due(srq);
}

/* Notes that the lane of the SRQ's own queue is under its limit again. */
static void srq_poll_own_eased(void *arg)
{
	srq_poll_touch(arg);
}

/* ---------------------------------------------------- slots of a pool --- */

/* Posts slots; returns how many were posted. The other slots go back to the
 * pool. */
static uint32_t srq_poll_post_slots(struct rpma_rt_srq *srq,
				    const uint64_t *cookies, uint32_t n)
{
	struct rpma_rt_pool *pool = srq->cfg.pool;
	struct rpma_rt_recv_wr wr[RT_FEED_CHUNK];
	uint32_t posted;
	uint32_t i;
	int ret;

	for (i = 0; i < n; i++)
		wr[i] = (struct rpma_rt_recv_wr){
			.context = cookies[i],
			.dst = pool->mr,
			.offset = rt_pool_offset(pool, rt_pool_at(cookies[i])),
			.len = pool->slot_size,
		};
	ret = rt_srq_post(srq, wr, (int)n);
	posted = ret > 0 ? (uint32_t)ret : 0;
	for (i = posted; i < n; i++)
		rt_pool_give_back(pool, cookies[i]);
	return posted;
}

/* Posts up to `room` receives; `out` are out. Returns true if the pool had too
 * few slots for the SRQ. */
static bool srq_poll_fill_room(struct rpma_rt_srq *srq, uint32_t out,
			       uint32_t room, uint32_t *posted)
{
	uint64_t cookies[RT_FEED_CHUNK];
	uint32_t done;
	uint32_t n;

	room = rt_feed_room(&srq->feed, out, room);
	while (*posted < room) {
		if (rt_feed_leaves_slots(
			    &srq->feed,
			    rt_feed_is_low(&srq->feed, out + *posted)))
			return true;
		n = room - *posted;
		n = rt_pool_take(srq->cfg.pool, cookies,
				 n < RT_FEED_CHUNK ? n : RT_FEED_CHUNK);
		if (n == 0)
			return true;
		done = srq_poll_post_slots(srq, cookies, n);
		*posted += done;
		/* whatever stood in the way makes the poller call the refill
		 * again */
		if (done < n)
			return false;
	}
	return false;
}

/* Refills an SRQ from its pool; an rpma_rt_refill_fn. */
static void srq_poll_fill(struct rpma_rt_srq *srq, uint32_t room, void *arg)
{
	uint32_t out = srq->cfg.srq_size - room - rt_srq_listed_poller(srq);
	struct rt_feed *feed = &srq->feed;
	uint32_t posted = 0;
	bool is_empty;

	(void)arg;
	rt_feed_begin(feed, out);
	do {
		is_empty = srq_poll_fill_room(srq, out, room, &posted);
	} while (!rt_feed_end_poller(
		feed, is_empty && rt_feed_is_low(feed, out + posted)));
	feed->was_full = out + posted == feed->share;
}

/* Refills a hungry SRQ when slots were given back. */
static void srq_poll_fill_hungry(struct rt_feed *feed)
{
	struct rpma_rt_srq *srq = RT_FROM(struct rpma_rt_srq, feed, feed);

	srq->refill_due = true;
	if (srq_poll_room_of(srq) > 0)
		srq_poll_refill_if_due(srq);
	else
		rt_feed_end_poller(feed, false);
}

/* --------------------------------------------------------- its messages --- */

/* Gives back receives that the device refused, in the order of their posts:
 * their slots were never out. Returns false if there are no such receives. */
static bool srq_poll_return_refused(struct rpma_rt_srq *srq)
{
	/* acquire: pairs with the release in srq_post_refuse_last(), post.c:
	 * the slots */
	uint32_t at = atomic_exchange_explicit(&srq->refused, 0,
					       memory_order_acquire);
	uint32_t first = 0;
	struct rt_srq_slot *slot;
	uint32_t next;

	for (; at != 0; at = next) {
		next = srq->slots[at - 1].next;
		srq->slots[at - 1].next = first;
		first = at;
	}
	for (at = first; at != 0; at = slot->next) {
		slot = &srq->slots[at - 1];
		slot->generation++;
		srq->returned[srq->count++ & srq->mask] = at - 1;
		srq_poll_give_back(srq, slot->context, RPMA_RT_C_NOT_POSTED);
	}
	return first != 0;
}

/* Looks at the SRQ: the device passed the limit or refused a receive, receives
 * were published and are not posted, or places came back. */
static void srq_poll_look_message(struct rt_msg *msg, void *owner)
{
	struct rpma_rt_srq *srq = RT_FROM(struct rpma_rt_srq, look_msg, msg);

	(void)owner;
	/* acq_rel: pairs with the exchange in rt_srq_look_mt(): from here on
	 * the message may be sent again */
	atomic_exchange_explicit(&srq->look_sent, false, memory_order_acq_rel);
	/* a message of a thread that was inside a post while the SRQ ended */
	if (srq->poller->reserved[srq->number].arg != srq)
		return;
	rt_srq_hold_poller(srq);
	/* the places of the refused receives are free again, so a lane over its
	 * limit holds the SRQ up */
	if (srq_poll_return_refused(srq) && srq->lane != NULL)
		rt_deliver_mark_lane(srq->lane, srq->number);
	srq->refill_due = true;
	srq_poll_touch(srq);
}

/* Writes SRQ_FAILED to the SRQ's queue. */
static void srq_poll_told_message(struct rt_msg *msg, void *owner)
{
	struct rpma_rt_srq *srq = RT_FROM(struct rpma_rt_srq, told_msg, msg);
	struct rpma_rt_completion item =
		srq_poll_own_item(srq, RPMA_RT_EVENT, RPMA_RT_EVENT_SRQ_FAILED);

	(void)owner;
	item.status = RPMA_RT_REASON_DEVICE;
	/* written once, and has a place in the lane: no need to wait for
	 * room */
	srq_poll_write_end(srq, &item);
}

int rt_srq_prepare_poller(struct rpma_rt_srq *srq)
{
	srq->look_msg.fn = srq_poll_look_message;
	srq->told_msg.fn = srq_poll_told_message;
	rt_task_init(&srq->again, srq_poll_again);
	if (srq->cfg.pool != NULL) {
		srq->cfg.refill = srq_poll_fill;
		rt_feed_init(&srq->feed, srq->cfg.pool, srq->poller,
			     srq_poll_fill_hungry, srq->cfg.srq_size,
			     srq->cfg.srq_size);
	}
	if (srq->cfg.queue == NULL)
		return 0;
	srq->waiter = rt_waiter_new(srq_poll_own_eased, srq);
	return srq->waiter != NULL ? 0 : RPMA_E_NOMEM;
}

static const struct rt_reserved_ops srq_ops = {
	.completion = srq_completion,
	.publish = srq_poll_publish,
	.answer = srq_poll_answer,
	.held = srq_poll_held,
	.eased = srq_poll_eased,
};

void rt_srq_begin_poller(struct rpma_rt_srq *srq)
{
	srq->poller->reserved[srq->number] =
		(struct rt_reserved){.ops = &srq_ops, .arg = srq};
	srq->refill_due = true;
	srq_poll_touch(srq);
}

static void srq_poll_let_go(struct rpma_rt_srq *srq)
{
	struct rt_lane *lane;

	for (lane = srq->poller->spilling; lane != NULL;
	     lane = lane->spill_next)
		lane->held_numbers[srq->number / 64] &=
			~(UINT64_C(1) << srq->number % 64);
	srq->poller->reserved[srq->number] = (struct rt_reserved){0};
	rt_waiter_delete(srq->waiter);
	srq->waiter = NULL;
}

/* Takes the context of the next receive in line. Returns false if the line is
 * empty. */
static bool srq_poll_take_unposted(struct rpma_rt_srq *srq, uint64_t *context)
{
	const struct rt_line_recv *slot;
	uint16_t at;

	rt_turn_gather(&srq->turn);
	at = rt_turn_front(&srq->turn);
	if (at == 0)
		return false;
	slot = rt_line_slot(&srq->turn, at);
	*context = slot->wr_id;
	rt_turn_leave_line(&srq->turn, 1);
	return true;
}

/* Gives back the next slots that are out, then the line. Returns about how many
 * are left to look at. */
static uint32_t srq_poll_give_back_some(struct rpma_rt_srq *srq)
{
	struct rt_srq_slot *slot;
	uint32_t looked = 0;
	uint32_t given = 0;
	uint64_t context;

	srq_poll_return_refused(srq);
	while (srq->ended < srq->cfg.srq_size && given < END_ITEMS &&
	       looked++ < END_SLOTS) {
		slot = &srq->slots[srq->ended++];
		if (!(slot->generation & 1))
			continue;
		slot->generation++;
		srq_poll_give_back(srq, slot->context, RPMA_RT_C_SYNTHESIZED);
		given++;
	}
	for (; srq->ended == srq->cfg.srq_size && given < END_ITEMS; given++) {
		if (!srq_poll_take_unposted(srq, &context))
			return 0;
		srq_poll_give_back(srq, context, RPMA_RT_C_NOT_POSTED);
	}
	return srq->cfg.srq_size - srq->ended + 1;
}

bool rt_srq_end_poller(struct rpma_rt_srq *srq)
{
	const struct rpma_rt_completion last =
		srq_poll_own_item(srq, RPMA_RT_EVENT, RPMA_RT_EVENT_SRQ_CLOSED);

	/* does everything for which the number was touched, so the number is
	 * listed nowhere */
	srq->cfg.refill = NULL;
	rt_schedule_cancel(srq->poller, &srq->again);
	if (srq->cfg.pool != NULL)
		rt_feed_end_poller(&srq->feed, false);
	rt_deliver_flush(srq->poller);
	if (srq_poll_give_back_some(srq) > 0) {
		rt_deliver_flush(srq->poller);
		return true;
	}
	srq_poll_let_go(srq);
	if (srq->queue != NULL)
		rt_queue_announce_unref(srq->queue);
	srq_poll_write_end(srq, &last);
	/* rung before the caller lets the queue go */
	rt_deliver_flush(srq->poller);
	return false;
}
